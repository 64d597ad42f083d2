"""The recorder: a forward pass calls its methods, and a trace of what happened comes out.

Run on sizes alone it records costs; with data (`data=`, see reference.py) it also computes, by the same calls. Axes
are single letters with one meaning everywhere: B batch, T new tokens, S keys attended, D d_model, F d_ff, K kv heads,
R query heads per kv head, H head size, V vocabulary, E experts, A experts of a token, C latent, M source tokens,
J rows of a position table or taps of a convolution, X state, Y low rank, Q chunk, I inner width.
"""

import contextlib

from . import patterns
from .compress import Compressions
from .numbers import minimum, monomial, times
from .primitives import PRIMITIVES
from .route import Routes
from .scan import Scans
from .trace import Array, Group, Mask, Op, State, Trace

_PARSED = {}  # equation -> (axes of a, of b, of the result, all distinct axes, is a contraction)


def _parse(equation):
    found = _PARSED.get(equation)
    if found is None:
        inputs, _, result = equation.partition("->")
        a, _, b = inputs.partition(",")
        every = "".join(dict.fromkeys(a + b))
        if set(result) - set(every) or any(len(set(axes)) != len(axes) for axes in (a, b, result)):
            raise ValueError(f"equation {equation!r}: result axes must come from the operands, each once")
        lost = [axis for axis in every if axis not in result]
        alone = [axis for axis in lost if axis not in a or axis not in b]
        if alone:
            raise ValueError(f"equation {equation!r}: {alone[0]} is summed over one operand only")
        found = _PARSED[equation] = (a, b, result, every, bool(lost))
    return found


class Ops(Scans, Routes, Compressions):
    """Records one forward pass of `new` tokens for `batch` sequences whose caches hold `past` tokens.

    batch, new, past: int, SymPy symbol or float array. unroll: trace every layer by itself. options: the conventions
    that change the computation (fuse_projections, mla, ...). data: None for a run on sizes, else what computes
    (see reference.py): weights by path, states by path, and a stand-in for NumPy.
    """

    def __init__(self, batch, new, past=0, unroll=False, data=None, source=None, **options):
        self.batch, self.new, self.past, self.keys, self.source = batch, new, past, past + new, source
        self.trace = Trace(batch, new, past)
        self.unroll, self.data, self.options = unroll or data is not None, data, options
        self.left = {}  # what a layer leaves for later ones, by name
        self._path, self._part, self._class = (), ("", ""), None
        self._group, self._times = None, (1, ())
        self._masks, self._spans, self._weights, self._shared, self._layer = {}, {}, {}, {}, 0

    # Where we are ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def inside(self, name, component=None):
        """Operations in the block belong to `component` and get `name` in their path."""
        saved = self._path, self._part, self._class
        self._path += (name,)
        if component is not None:
            self._part = component.contraction_part or self._part
            self._class = component.flop_class or self._class
        yield
        self._path, self._part, self._class = saved

    @contextlib.contextmanager
    def fused(self, name, group=None):
        """Operations in the block form one kernel: intermediates stay on chip. The outermost group counts.

        group: a kernel that was begun before and goes on.
        """
        if self._group is not None:
            yield
            return
        self._group = group or Group("/".join(self._path), name, self._times)
        yield
        self._group = None

    def projections(self, x=None):
        """Products of x with weights: one kernel that reads it once, where the workload says so (--fuse-projections).

        It goes on where x is used again: in a parallel layer it holds q, k, v of the attention and up, gate of the ffn.
        """
        if not self.options.get("fuse_projections"):
            return contextlib.nullcontext()
        if x is None:
            return self.fused("projections")
        shared = self._shared.get(id(x))
        if shared is None:  # x is kept, so that its id stays its own
            shared = self._shared[id(x)] = x, Group("/".join(self._path), "projections", self._times)
        return self.fused("projections", shared[1])

    def repeat(self, count, body, x):
        """x passed through `body` count times: traced once with that multiplicity, or unrolled."""
        if self.unroll:
            for _ in range(count):
                x = body(x)
            return x
        saved, self._times = self._times, times(self._times, count)
        x = body(x)
        self._times = saved
        return x

    def layer(self, name, call, x):
        """x through one block, call(name, x); it is called by its number when unrolled, else by `name`."""
        self._shared = {}
        if self.unroll:
            name = f"layers/{self._layer}"
            self._layer += 1
        return call(name, x)

    @property
    def layer_number(self):
        """The place of the layer that is running, from 0 on; known where layers are unrolled."""
        return self._layer - 1

    @property
    def number(self):
        """The number of the layer that runs, where layers are unrolled."""
        return self._layer - 1

    # An encoder -----------------------------------------------------------------------------------------------------

    def encode(self, call):
        """What an encoder makes of the source tokens (BMD): call() runs it on them, with nothing cached before."""
        saved = self.new, self.past, self.keys, self._masks, self._spans, self._layer
        self.new, self.past, self.keys, self._masks, self._spans, self._layer = self.source, 0, self.source, {}, {}, 0
        x = call()
        self.new, self.past, self.keys, self._masks, self._spans, self._layer = saved
        return self.rename(x, "BM" + x.axes[2:])

    # Records --------------------------------------------------------------------------------------------------------

    def _emit(self, name, inputs, axes, sizes, points=None, masked=None, rows=None, reads=None, role="activation",
              dtype="activations", mask=None, equation="", touched=None, broadcast=0, base=None, parts=None,
              writes=True, label=None, **attributes):  # fmt: skip
        primitive = PRIMITIVES[name]
        out = Array(axes, sizes, role, dtype, "/".join(self._path), mask, self._group, base, parts)
        out.times = self._times
        op = Op()
        op.path = f"{out.path}/{label or name}" if out.path else label or name
        op.primitive, op.equation = primitive, equation
        op.cls = primitive.cls if self._class is None or primitive.cls != "elementwise" else self._class
        op.points, op.masked, op.rows, op.mask = points or (0, ()), masked, rows, None
        if reads is None:
            reads = inputs
            for each in inputs:
                if each.parts is not None:
                    reads = [part for each in inputs for part in ((each,) if each.parts is None else each.parts)]
                    break
        op.reads, op.writes, op.touched, op.broadcast = reads, (out,) if writes else (), touched, broadcast
        op.part = self._part[0 if any(array.role == "weight" for array in inputs) else 1]
        op.group, op.times, op.counted = self._group, self._times, None
        if self.data is not None:
            if equation:
                attributes["equation"] = equation
            out.data, op.counted = self.data.compute(primitive, [array.data for array in inputs], attributes)
            if out.data.shape != tuple(sizes):
                raise AssertionError(f"{op.path}: shape {out.data.shape} computed, {sizes} predicted")
        self.trace.ops.append(op)
        return out

    def weight(self, component, path, name, spec):
        """The weight `name` of a component as an array; `spec` as "D->KRH": input axes, output axes."""
        key = path + "/" + name
        found = self._weights.get(key)
        if found is None:
            axes = spec.replace("->", "").replace("|", "")
            size_of = component.axes()
            sizes = tuple([size_of[axis] for axis in axes])
            found = self._weights[key] = Array(axes, sizes, "weight", "weights", key, blocks=_inputs(spec))
            found.times = self._times
            if self.data is not None:
                found.data = self.data.weight(key, axes, sizes)
        return found

    # Products -------------------------------------------------------------------------------------------------------

    def einsum(self, equation, a, b, mask=None, name=None, part=None):
        """The product of two arrays by axis names. `mask`: of its T x S points only the allowed pairs matter.

        It is called `name` in the trace; a product with a weight is called as that. part: its heading in
        `contraction_by_part`, where not the component's.
        """
        a_axes, b_axes, result, every, contracts = _parse(equation)
        if a.axes != a_axes or b.axes != b_axes:
            raise ValueError(f"equation {equation!r} was given axes {a.axes!r} and {b.axes!r}")
        size_of = dict(zip(a_axes, a.sizes))
        for axis, size in zip(b_axes, b.sizes):
            if size_of.setdefault(axis, size) is not size and size_of[axis] != size:
                raise ValueError(f"equation {equation!r}: axis {axis} has sizes {size_of[axis]} and {size}")
        points = monomial(*[size_of[axis] for axis in every])
        mask, masked = mask or a.mask or b.mask, None
        if mask is not None:
            masked = monomial(mask.pairs, *[size_of[axis] for axis in every if axis not in "TS"])
        sizes = tuple([size_of[axis] for axis in result])
        out = self._emit("einsum" if contracts else "product", [a, b], result, sizes, points, masked,
                         mask=mask if "T" in result and "S" in result else None, equation=equation,
                         broadcast=0 if contracts else (len(a_axes) < len(every)) + (len(b_axes) < len(every)),
                         label=name or (b.path.rpartition("/")[2] if b.role == "weight" else None))  # fmt: skip
        self.trace.ops[-1].mask = mask
        if part is not None:
            self.trace.ops[-1].part = part
        return out

    def linear(self, equation, x, weight, bias=None):
        """A product with a weight, and its bias if it has one, as one kernel."""
        if bias is None:
            return self.einsum(equation, x, weight)
        with self.fused(weight.path.rpartition("/")[2]):
            return self.add(self.einsum(equation, x, weight), bias)

    # Elementwise ----------------------------------------------------------------------------------------------------

    def apply(self, name, x, *others, **attributes):
        """An elementwise primitive of x: relu, gelu, softcap, ...; further operands broadcast to it as they are."""
        return self._emit(name, [x, *others], x.axes, x.sizes, *_points(x), mask=x.mask, **attributes)

    def add(self, a, b):
        """a + b, where b may lack axes of a."""
        return self._binary("add", a, b)

    def subtract(self, a, b):
        """a - b, where b may lack axes of a."""
        return self._binary("subtract", a, b)

    def multiply(self, a, b):
        """a * b, where b may lack axes of a."""
        return self._binary("multiply", a, b)

    def divide(self, a, b):
        """a / b, where b may lack axes of a."""
        return self._binary("divide", a, b)

    def maximum(self, a, b):
        """The larger of a and b, where b may lack axes of a."""
        return self._binary("maximum", a, b)

    def scale(self, x, by):
        """x times a number."""
        return self.apply("scale", x, by=by)

    def _binary(self, name, a, b):
        if b.axes != a.axes:
            b = self._aligned(b, a.axes)
        return self._emit(name, [a, b], a.axes, a.sizes, *_points(a), mask=a.mask,
                          broadcast=0 if b.base.axes == a.axes else 1)  # fmt: skip

    def _aligned(self, array, axes):
        """A view of the array that broadcasts against `axes`."""
        missing = set(array.axes) - set(axes)
        if missing:
            raise ValueError(f"axes {array.axes!r} do not broadcast to {axes!r}")
        out = Array(array.axes, array.sizes, array.role, array.dtype, array.path, None, array.group, array.base,
                    blocks=array.blocks)  # fmt: skip
        if self.data is not None:
            order = [array.axes.index(axis) for axis in axes if axis in array.axes]
            index = tuple(slice(None) if axis in array.axes else None for axis in axes)
            out.data = array.data.transpose(order)[index]
        return out

    def softmax(self, x, axis, sink=None):
        """Softmax over the last axis; a mask that x carries is applied first. sink: one more logit for each row."""
        assert x.axes[-1] == axis, (x.axes, axis)
        if x.mask is not None:
            reads = None if x.mask.index is None else (x, x.mask.index)
            x = self.apply("mask", x, allowed=x.mask.data, reads=reads)
        name, inputs = ("softmax", [x]) if sink is None else ("softmax_sink", [x, self._aligned(sink, x.axes)])
        return self._emit(name, inputs, x.axes, x.sizes, *_points(x), rows=monomial(*x.sizes[:-1]), mask=x.mask)

    def norm(self, name, x, *weights, over=1, **attributes):
        """A normalization over the last axis, or the last `over` axes."""
        return self._emit(name, [x, *weights], x.axes, x.sizes, x.elements(), rows=monomial(*x.sizes[:-over]),
                          axis=tuple(range(-over, 0)), **attributes)  # fmt: skip

    def alike(self, x, target, eps):
        """x at the root mean square of its last axis that `target`, which lacks that axis, says."""
        return self._emit("alike", [x, self._aligned(target, x.axes)], x.axes, x.sizes, x.elements(),
                          rows=monomial(*x.sizes[:-1]), broadcast=0, eps=eps)  # fmt: skip

    def reduce(self, name, x, over=1):
        """A reduction of the last `over` axes: log_sum_exp, mean."""
        return self._emit(name, [x], x.axes[:-over], x.sizes[:-over], x.elements(), rows=monomial(*x.sizes[:-over]),
                          axis=tuple(range(-over, 0)))  # fmt: skip

    def rotate(self, x, tables):
        """Rotary positions on (part of) the last axis, H; tables as positions.Rotary makes them."""
        size = tables.size
        points = monomial(size, *x.sizes[:-1])
        attributes = {"cos": None, "sin": None}
        if self.data is not None:
            attributes = dict(zip(("cos", "sin"), tables.values(self, x.axes)))
        return self._emit("rotate", [x], x.axes, x.sizes, points, size=size, interleaved=tables.interleaved,
                          last=tables.last, **attributes)  # fmt: skip

    # Movement -------------------------------------------------------------------------------------------------------

    def gather(self, table, index):
        """Rows of a table (its first axis) by an index array."""
        axes, sizes = index.axes + table.axes[1:], index.sizes + table.sizes[1:]
        return self._emit("gather", [table, index], axes, sizes, touched=index.elements())

    def lookup(self, table, axes, sizes, index):
        """Rows of a small table, which is read whole, by an index that is made from positions."""
        return self._emit("gather", [table], axes + table.axes[1:], sizes + table.sizes[1:], index=index)

    def by_distance(self, x, scores, index, turned=False):
        """Products with vectors of all distances (...TJ, or ...SJ where turned) put where the scores (...TS) are."""
        return self._emit("by_distance", [x], scores.axes, scores.sizes, mask=scores.mask, index=index, turned=turned)

    def table(self, axes, sizes, values):
        """An array that is made from positions: it costs nothing, and is read from nowhere."""
        return Array(axes, sizes, "activation", "activations", "/".join(self._path), parts=(), data=values)

    def pick(self, x, index):
        """The entry of the last axis that an index (of the axes before it) names."""
        axes, order = x.axes[-1] + x.axes[:-1], (len(x.axes) - 1, *range(len(x.axes) - 1))
        first = self._emit("view", [x], axes, (x.sizes[-1], *x.sizes[:-1]), reads=(), role=x.role, dtype=x.dtype,
                           base=x.base, writes=False, order=order)  # fmt: skip
        return self._emit("pick", [first, index], x.axes[:-1], x.sizes[:-1], touched=(1, ()))

    def rows(self, table, axis, start, count):
        """`count` rows of a table from `start` on, along a new name for its first axis: a view."""
        take = None
        if self.data is not None:
            if start + count > table.sizes[0]:
                raise self.data.error(f"position {start + count} is beyond the table of {table.sizes[0]} positions")
            take = slice(start, start + count)
        return self._emit("view", [table], axis + table.axes[1:], (count,) + table.sizes[1:], reads=(),
                          role=table.role, dtype=table.dtype, base=table.base, writes=False, take=take)  # fmt: skip

    def row(self, table, index):
        """One row of a table: a view."""
        return self._emit("view", [table], table.axes[1:], table.sizes[1:], reads=(), role=table.role,
                          dtype=table.dtype, base=table.base, writes=False, take=index)  # fmt: skip

    def rename(self, x, axes):
        """The same values under other axis names: a view."""
        return self._emit("view", [x], axes, x.sizes, reads=(), role=x.role, dtype=x.dtype, base=x.base,
                          writes=False)  # fmt: skip

    def reshape(self, x, axes, sizes):
        """The same values with axes split and merged, in order: a view."""
        return self._emit("view", [x], axes, sizes, reads=(), role=x.role, dtype=x.dtype, base=x.base, writes=False,
                          shape=sizes)  # fmt: skip

    def at(self, x, axis, place):
        """x at one place of an axis, which is lost: a view."""
        where = x.axes.index(axis)
        sizes = x.sizes[:where] + x.sizes[where + 1 :]
        axes, take = x.axes[:where] + x.axes[where + 1 :], (*[slice(None)] * where, place, ...)
        return self._emit("view", [x], axes, sizes, reads=(), role=x.role, dtype=x.dtype, base=x.base, writes=False,
                          take=take)  # fmt: skip

    def spread(self, x, axis, size, behind):
        """x for each of `size` places of a new axis behind another: a view, and reading it reads x."""
        at = x.axes.index(behind) + 1
        sizes = x.sizes[:at] + (size,) + x.sizes[at:]
        return self._emit("spread", [x], x.axes[:at] + axis + x.axes[at:], sizes, reads=(), role=x.role, dtype=x.dtype,
                          base=x.base, parts=(x,) if x.parts is None else x.parts, writes=False, at=at,
                          shape=sizes)  # fmt: skip

    def neighbours(self, x, sizes):
        """For each token what is at the next one, at itself and at the one before, side by side: zeros at the ends."""
        return self._emit("neighbours", [x], x.axes, sizes)

    def rest(self, x, axis, new):
        """The places of an axis behind the first, under a new name for it: a view."""
        at = x.axes.index(axis)
        sizes = x.sizes[:at] + (x.sizes[at] - 1,) + x.sizes[at + 1 :]
        return self._emit("view", [x], x.axes.replace(axis, new), sizes, reads=(), role=x.role, dtype=x.dtype,
                          base=x.base, writes=False, take=(*[slice(None)] * at, slice(1, None)))  # fmt: skip

    def lead(self, x, rest):
        """x (BTD) before the places of the last axis but one of `rest` (BTmD)."""
        sizes = rest.sizes[:-2] + (rest.sizes[-2] + 1, rest.sizes[-1])
        return self._emit("lead", [x, rest], rest.axes, sizes)

    def within(self, index, rows):
        """An index with 0 where it is beyond the rows of a table."""
        return self._emit("within", [index], index.axes, index.sizes, role="index", dtype=index.dtype, limit=rows)

    def last(self, x):
        """The last position of the axis T: a view."""
        assert x.axes[:2] == "BT", x.axes
        sizes = (x.sizes[0], 1) + x.sizes[2:]
        return self._emit("view", [x], x.axes, sizes, reads=(), role=x.role, dtype=x.dtype, base=x.base,
                          writes=False, take=(slice(None), slice(-1, None)))  # fmt: skip

    def cast(self, x, dtype):
        """x stored in another type."""
        return self._emit("cast", [x], x.axes, x.sizes, mask=x.mask, dtype=dtype)

    # State ----------------------------------------------------------------------------------------------------------

    def span(self, window=None):
        """(tokens of the past, all tokens) that a layer still holds: a window keeps those that its next token may see.

        So a call of several tokens onto a full buffer has min(past, window - 1) + new keys. Under the option
        `rectangle` (a report's prefill with mask="full") scores are counted over past + new keys in windowed layers
        too, as a kernel that keeps everything computes them.
        """
        found = self._spans.get(_key(window))
        if found is None:
            held = patterns.held(self.past, window)
            found = held, self.keys if window is None or self.options.get("rectangle") else held + self.new
            self._spans[_key(window)] = found
        return found

    def append(self, name, x, window=None):
        """The cache `name` of this layer with x (axes BT...) behind it: axes BS..., S as `span` says.

        Writes the new rows only. Whoever reads the result reads the stored rows from the cache, and the new rows.
        """
        assert x.axes[:2] == "BT", x.axes
        axes, key, (held, keys) = "BS" + x.axes[2:], "/".join((*self._path, name)), self.span(window)
        sizes, stored = (self.batch, keys) + x.sizes[2:], (self.batch, held) + x.sizes[2:]
        rows = Array(x.axes, x.sizes, "cache", "cache", key, group=self._group)
        fresh = Array(x.axes, x.sizes, "activation", "cache", key, base=rows)
        held = Array(axes, stored, "cache", "cache", key)
        inputs = [x]
        if self.data is not None:
            held.data = self.data.state(key, stored[1])
            inputs = [held, x]
        out = self._emit("append", inputs, axes, sizes, reads=(x,), role="cache", dtype="cache", base=rows,
                         parts=(held, fresh), writes=False)  # fmt: skip
        self.trace.ops[-1].writes = (rows,)
        self.trace.states[key] = State(key, "cache", "cache", x.sizes[2:], patterns.most(window), self._times)
        if self.data is not None:
            most = patterns.most(window)
            self.data.keep(key, out.data if most is None else self.data.extended(key, x.data), most)
        return out

    def keep(self, name, x):
        """x (axes BM...), computed once from a source and written to the cache `name` of this layer."""
        key = "/".join((*self._path, name))
        rows = Array(x.axes, x.sizes, "cache", "cache", key, group=self._group)
        fresh = Array(x.axes, x.sizes, "activation", "cache", key, base=rows)
        out = self._emit("cast", [x], x.axes, x.sizes, role="cache", dtype="cache", base=rows, parts=(fresh,),
                         writes=False, label="keep")  # fmt: skip
        self.trace.ops[-1].writes = (rows,)
        self._remember_source(key, x.sizes[2:], out.data)
        return out

    def recall(self, name, axes, sizes):
        """What `keep` wrote in an earlier call: axes BM..., with `sizes` behind those of B and M."""
        key = "/".join((*self._path, name))
        out = Array(axes, (self.batch, self.source, *sizes), "cache", "cache", key)
        if self.data is not None:
            out.data = self.data.states[key]
        self._remember_source(key, sizes, out.data)
        return out

    def _remember_source(self, key, sizes, data):
        self.trace.states[key] = State(key, "cache", "cache", sizes, None, self._times, self.source)
        if self.data is not None:
            self.data.kept[key] = data

    def some(self, x, most):
        """A cache of which each new token reads at most so many rows (which, is decided as it runs): a view."""
        stored, fresh = x.parts
        rows = minimum(stored.sizes[1], most * self.new)
        stored = Array(stored.axes, (stored.sizes[0], rows, *stored.sizes[2:]), "cache", "cache", stored.path)
        return self._emit("view", [x], x.axes, x.sizes, reads=(), role=x.role, dtype=x.dtype, base=x.base,
                          parts=(stored, fresh), writes=False)  # fmt: skip

    def best(self, scores, count):
        """The mask under which each new token sees the `count` keys of the largest scores (BTS), which are masked."""
        index = self.choose(scores, minimum(self.keys, count))
        data = None if self.data is None else self.data.chosen(index.data, scores.mask.data)
        return Mask(patterns.pairs(self.past, self.new, count), data, index)

    def causal(self, window=None):
        """The mask under which each new token sees itself and what came before, as a window or pattern allows."""
        found = self._masks.get(_key(window))
        if found is None:
            found = self._masks[_key(window)] = Mask(patterns.pairs(self.past, self.new, window))
            if self.data is not None:
                found.data = self.data.causal(self, window)
        return found

    def near(self, reach):
        """The mask under which each token of an encoder sees itself and `reach` tokens on either side."""
        key = "near", _key(reach)
        found = self._masks.get(key)
        if found is None:
            found = self._masks[key] = Mask(patterns.near_pairs(self.new, reach))
            if self.data is not None:
                query, place = self.data.positions(self)
                found.data = abs(query - place) <= reach
        return found


def _inputs(spec):
    """Places of the input axes in a weight's axes: what blocks of a block format tile."""
    stacked, _, rest = spec.rpartition("|")
    inputs = rest.partition("->")[0]
    return tuple(range(len(stacked), len(stacked) + len(inputs)))


def _key(size):
    """What a size is looked up by; an array of a sweep has no hash, and lives as long as its model."""
    return size if size is None or isinstance(size, int) else id(size)


def _points(x):
    """(points, masked points) of an operation on every element of x."""
    if x.mask is None:
        return x.elements(), None
    rest = [size for axis, size in zip(x.axes, x.sizes) if axis not in "TS"]
    return x.elements(), monomial(x.mask.pairs, *rest)
