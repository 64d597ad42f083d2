"""Routing: tokens choose rows of a stack of weights (experts), and each is multiplied with those that it chose.

Which they are is an index array (axes BTA). To choose is work on integers and costs nothing, to look up costs nothing,
and to multiply costs what A experts cost, whatever E is.
"""

from . import patterns
from .numbers import ceil_div, minimum, monomial
from .trace import Mask, Routing


class Routes:
    """The part of `ops.Ops` that has to do with choosing."""

    def choose(self, x, count):
        """The places of the `count` largest entries of the last axis: an index array whose last axis is A."""
        return self._emit(
            "choose", [x], x.axes[:-1] + "A", (*x.sizes[:-1], count), role="index", dtype="int32", count=count
        )

    def named(self, table, tokens, experts):
        """The experts that a table (VA) names for each token id (BT): an index array BTA."""
        return self._emit("named", [table, tokens], tokens.axes + "A", (*tokens.sizes, table.sizes[-1]), role="index",
                          dtype="int32", touched=tokens.elements(), experts=experts)  # fmt: skip

    def chosen(self, x, index):
        """The entries of the last axis of x (BTE) that an index (BTA) names."""
        return self._emit("chosen", [x, index], index.axes, index.sizes)

    def exclude(self, x, index):
        """x (BTE) with minus infinity where an index (BTA) of one place points."""
        return self._emit("exclude", [x, index], x.axes, x.sizes, x.elements())

    def limit_groups(self, x, groups, count, score):
        """x (BTE) with minus infinity outside the `count` best of its groups; score: "max" or "top2" of a group."""
        return self._emit(f"limit_groups_{score}", [x], x.axes, x.sizes, x.elements(),
                          rows=monomial(*x.sizes[:-1], groups), groups=groups, count=count)  # fmt: skip

    def join(self, a, b):
        """The entries of a and, behind them, those of b along the last axis."""
        sizes = (*a.sizes[:-1], a.sizes[-1] + b.sizes[-1])
        role = "index" if a.role == "index" else "activation"
        return self._emit("join", [a, b], a.axes, sizes, role=role, dtype=a.dtype)

    def routed(self, equation, x, weight, index, choices):
        """x times the experts that an index (BTA) names: "BTD,EDF->BTAF", or with an x of its own for each, BTAD.

        A token does 2 D F FLOPs for each of its A experts; which matrices are read, `Routing` says. choices: of how
        many it chooses: more than E where some have no weights (computed with the last expert, and not used).
        """
        a, _, rest = equation.partition(",")
        b, _, result = rest.partition("->")
        if x.axes != a or weight.axes != b or b[0] != "E" or "A" not in result:
            raise ValueError(f"equation {equation!r} was given axes {x.axes!r} and {weight.axes!r}")
        size_of = dict(zip(b, weight.sizes)) | dict(zip(a, x.sizes)) | {"A": index.sizes[-1]}
        every = [axis for axis in dict.fromkeys(a + b + "A") if axis != "E"]
        sizes, points = tuple([size_of[axis] for axis in result]), monomial(*[size_of[axis] for axis in every])
        return self._emit("routed", [x, weight, index], result, sizes, points, reads=[weight, x, index],
                          touched=Routing(weight.sizes[0], choices, index), equation=equation,
                          label=weight.path.rpartition("/")[2])  # fmt: skip

    def routed_linear(self, equation, x, weight, bias, index, choices):
        """A product with the chosen experts, and their biases if they have some, as one kernel."""
        if bias is None:
            return self.routed(equation, x, weight, index, choices)
        with self.fused(weight.path.rpartition("/")[2]):
            rows = self._emit("gather", [bias, index], index.axes + bias.axes[1:], index.sizes + bias.sizes[1:],
                              touched=Routing(bias.sizes[0], choices, index))  # fmt: skip
            return self.add(self.routed(equation, x, weight, index, choices), rows)

    def sum(self, x, axis):
        """The sum over one axis."""
        at = x.axes.index(axis)
        axes, sizes = x.axes[:at] + x.axes[at + 1 :], x.sizes[:at] + x.sizes[at + 1 :]
        return self._emit("sum", [x], axes, sizes, x.elements(), axis=at)

    def keep_first(self, x, index, capacity):
        """x (BTA) with 0 where `capacity` earlier places of a sequence have the same index (BTA)."""
        return self._emit("keep_first", [x, index], x.axes, x.sizes, x.elements(), capacity=capacity)

    def share(self, x, eps=None):
        """x divided by its sum over the last axis (and `eps`)."""
        given = {} if eps is None else {"eps": eps}
        return self._emit("share" if eps is None else "share_eps", [x], x.axes, x.sizes, x.elements(),
                          rows=monomial(*x.sizes[:-1]), **given)  # fmt: skip

    def identity_where(self, out, x, index, experts):
        """out (BTAD), and x (BTD) instead where an index (BTA) names no expert with weights."""
        return self._emit("identity_where", [out, self._aligned(x, out.axes), self._aligned(index, out.axes)], out.axes,
                          out.sizes, out.elements(), broadcast=1, experts=experts)  # fmt: skip

    def best_blocks(self, scores, blocks, local):
        """The mask under which each query of a head sees the blocks of keys that score best (BKTS, masked).

        A block scores as its best key; the `local` blocks that end with the query's own come first.
        """
        size, count = blocks.size, ceil_div(scores.sizes[-1], blocks.size)
        masked = monomial(scores.mask.pairs, *scores.sizes[:2])
        best = self._emit("block_max", [scores], "BKTb", (*scores.sizes[:3], count), scores.elements(), masked,
                          size=size)  # fmt: skip
        own = None if self.data is None else self.data.positions(self)[0] // size
        chosen = minimum(count, blocks.count)
        index = self._emit("choose_blocks", [best], "BKTA", (*scores.sizes[:3], chosen), role="index", dtype="int32",
                           count=chosen, own=own, local=local)  # fmt: skip
        data = None
        if self.data is not None:
            np, found = self.data.np, self.data.np.zeros((*scores.sizes[:3], count), bool)
            np.put_along_axis(found, index.data, True, axis=-1)
            data = (np.repeat(found, size, axis=-1)[..., : scores.sizes[-1]] & scores.mask.data)[:, :, None]
        return Mask(patterns.pairs(self.past, self.new, blocks), data, index)
