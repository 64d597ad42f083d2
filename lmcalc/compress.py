"""Compressed caches: the tokens of a sequence in windows of one size, and an entry for each window that is complete.

Positions decide which windows those are, so everything is exact: after n tokens there are floor(n / size) entries, and
the tokens behind the last complete window wait for theirs to end.
"""

from fractions import Fraction

from .numbers import exact_div, floor_div, minimum
from .record import Frozen
from .trace import Array, Mask, State


class Entries(Frozen):
    """Rows of a cache with an entry for each complete window.

    >>> [Entries(4).held(tokens) for tokens in (3, 4, 11)]
    [0, 1, 2]
    """

    size: int

    def held(self, tokens):
        """Rows after so many tokens."""
        return floor_div(tokens, self.size)

    def growth(self, term):
        """What a token adds on average, of a term for each row."""
        if isinstance(self.size, int):
            return Fraction(term[0], self.size) if term[0] % self.size else term[0] // self.size, term[1]
        return term[0], (*term[1], 1 / self.size)


class Waiting(Entries):
    """Rows of a cache that holds the tokens behind the last complete window.

    >>> [Waiting(4).held(tokens) for tokens in (3, 4, 11)]
    [3, 0, 3]
    """

    def held(self, tokens):
        return tokens - floor_div(tokens, self.size) * self.size

    def growth(self, term):
        return 0, ()


class Last(Waiting):
    """Rows of a cache that holds the tokens of the last complete window, once there is one.

    >>> [Last(4).held(tokens) for tokens in (3, 4, 11)]
    [0, 4, 4]
    """

    def held(self, tokens):
        return minimum(floor_div(tokens, self.size), 1) * self.size


def seen(n, size, most=None):
    """(query, entry) pairs among the first n positions: a query sees the entries of windows that end at it or before.

    most: of those it sees no more than so many.

    >>> seen(9, 3), seen(9, 3, most=1)
    (12, 7)
    """
    near = n if most is None else minimum(n, size * most)
    whole = floor_div(near + 1, size)
    inside = exact_div(whole * (whole - 1), 2) * size + whole * (near + 1 - whole * size)
    return inside if most is None else inside + (n - near) * most


class Compressions:
    """The part of `ops.Ops` that has to do with compressed caches."""

    def complete(self, size):
        """(windows of `size` tokens that were complete before, those that are complete now)."""
        key = "windows", size if isinstance(size, int) else id(size)
        found = self._spans.get(key)
        if found is None:
            found = self._spans[key] = floor_div(self.past, size), floor_div(self.past + self.new, size)
        return found

    def windows(self, name, x, size):
        """The windows that x (axes BTc) completes, with the tokens that waited for it: axes BtJc.

        Tokens behind the last one wait in the cache `name` of this layer.
        """
        assert x.axes[:2] == "BT", x.axes
        key, (before, now), rest = "/".join((*self._path, name)), self.complete(size), x.axes[2:]
        count, end = now - before, self.past + self.new - now * size  # tokens behind the last window
        waited = minimum(self.past - before * size, count * size)  # read by the window that they are a part of
        stored = Array("BT" + rest, (self.batch, waited, *x.sizes[2:]), "cache", "cache", key)
        held = Array("BT" + rest, (), "cache", "cache", key)
        if self.data is not None:
            held.data = self._held(key, x, 0)
        found = self._emit("windows", [held, x], "BtJ" + rest, (self.batch, count, size, *x.sizes[2:]), reads=(),
                           parts=(stored, x), writes=False, count=count, size=size)  # fmt: skip
        sizes = (self.batch, minimum(self.new, end), *x.sizes[2:])
        fresh = Array("BT" + rest, sizes, "activation", x.dtype, x.path, base=x.base)
        rows = Array("BT" + rest, sizes, "cache", "cache", key, group=self._group)
        kept = self._emit("behind", [held, x], "BT" + rest, (self.batch, end, *x.sizes[2:]), reads=(fresh,),
                          role="cache", dtype="cache", base=rows, writes=False, count=count * size)  # fmt: skip
        self.trace.ops[-1].writes = (rows,)
        self._remember(key, x.sizes[2:], Waiting(size), kept)
        return found

    def window_before(self, name, x, fill):
        """For each of the windows x (axes BtJc) the one before it, `fill` before the first of a sequence: a view.

        The last one stays in the cache `name` of this layer.
        """
        assert x.axes[:3] == "BtJ", x.axes
        (_, count, size), rest = x.sizes[:3], x.sizes[3:]
        key, (before, now) = "/".join((*self._path, name)), self.complete(size)
        read = minimum(minimum(before, 1), count) * size
        stored = Array("BT" + x.axes[3:], (self.batch, read, *rest), "cache", "cache", key)
        held = Array(x.axes, (), "cache", "cache", key)
        if self.data is not None:
            held.data = self._held(key, x, 0)
            if not before:
                held.data = self.data.np.full((self.batch, 1, *x.sizes[2:]), fill)
        found = self._emit("delay", [held, x], x.axes, x.sizes, reads=(), parts=(stored, x), writes=False)
        sizes = (self.batch, minimum(count, 1) * size, *rest)
        rows = Array("BT" + x.axes[3:], sizes, "cache", "cache", key, group=self._group)
        fresh = Array("BT" + x.axes[3:], sizes, "activation", x.dtype, x.path, base=x.base)
        there = minimum(now, 1)
        kept = self._emit("columns", [held, x], x.axes, (self.batch, there, *x.sizes[2:]), reads=(fresh,), role="cache",
                          dtype="cache", base=rows, writes=False, width=there)  # fmt: skip
        self.trace.ops[-1].writes = (rows,)
        self._remember(key, rest, Last(size), kept)
        return found

    def entries(self, name, x, size):
        """The cache `name` of this layer with the entries x (axes Bt...) of new windows behind it: axes BS..."""
        assert x.axes[:2] == "Bt", x.axes
        key, (before, now) = "/".join((*self._path, name)), self.complete(size)
        rows = Array(x.axes, x.sizes, "cache", "cache", key, group=self._group)
        fresh = Array(x.axes, x.sizes, "activation", "cache", key, base=rows)
        held = Array("BS" + x.axes[2:], (self.batch, before, *x.sizes[2:]), "cache", "cache", key)
        if self.data is not None:
            held.data = self._held(key, x, before)
        out = self._emit("append", [held, x], "BS" + x.axes[2:], (self.batch, now, *x.sizes[2:]), reads=(x,),
                         role="cache", dtype="cache", base=rows, parts=(held, fresh), writes=False)  # fmt: skip
        self.trace.ops[-1].writes = (rows,)
        self._remember(key, x.sizes[2:], Entries(size), out)
        return out

    def _held(self, key, x, rows):
        """What a cache held before, or no rows of the shape of x's."""
        found = self.data.state(key)
        return self.data.np.zeros((self.batch, rows, *x.sizes[2:])) if found is None else found

    def _remember(self, key, sizes, rows, kept):
        self.trace.states[key] = State(key, "cache", "cache", sizes, None, self._times, rows=rows)
        if self.data is not None:
            self.data.keep(key, kept.data)

    # Attention to entries -------------------------------------------------------------------------------------------

    def with_entries(self, keys, entries):
        """Entries as further keys behind others (both BS...): a view, and reading it reads both."""
        sizes = (keys.sizes[0], keys.sizes[1] + entries.sizes[1], *keys.sizes[2:])
        return self._emit("append", [keys, entries], keys.axes, sizes, reads=(), role="cache", dtype="cache",
                          parts=(*keys.parts, *entries.parts), writes=False)  # fmt: skip

    def sees_entries(self, size):
        """The mask under which each new token sees the entries of windows that end at it or before."""
        data = None
        if self.data is not None:
            query, _ = self.data.positions(self)
            data = self.data.np.arange(self.complete(size)[1]) < (query + 1) // size
        return Mask(seen(self.past + self.new, size) - seen(self.past, size), data)

    def best_entries(self, scores, count, size):
        """The mask under which each new token sees the `count` entries of the largest (masked) scores (BTS)."""
        index = self.choose(scores, minimum(self.complete(size)[1], count))
        data = None if self.data is None else self.data.chosen(index.data, scores.mask.data)[:, None]
        return Mask(seen(self.past + self.new, size, count) - seen(self.past, size, count), data, index)

    def both(self, keys, entries):
        """The mask of keys and of entries behind them."""
        data = None
        if self.data is not None:
            np, of = self.data.np, entries.data
            data = np.concatenate((np.broadcast_to(keys.data, (*of.shape[:-1], keys.data.shape[-1])), of), axis=-1)
        return Mask(keys.pairs + entries.pairs, data, entries.index)

    # Residual streams -----------------------------------------------------------------------------------------------

    def stream(self, x):
        """x (BTD) as the one place of a new axis, n: a view."""
        sizes = (*x.sizes[:2], 1, *x.sizes[2:])
        return self._emit("view", [x], "BTn" + x.axes[2:], sizes, reads=(), role=x.role, dtype=x.dtype, base=x.base,
                          parts=(x,) if x.parts is None else x.parts, writes=False, shape=sizes)  # fmt: skip

    def stream_behind(self, streams, x):
        """Streams (BTnD) and behind them x (BTD): a view, and reading it reads both."""
        parts = [part for each in (streams, x) for part in ((each,) if each.parts is None else each.parts)]
        sizes = (*streams.sizes[:2], streams.sizes[2] + 1, *streams.sizes[3:])
        return self._emit("behind_all", [streams, x], streams.axes, sizes, reads=(), parts=tuple(parts), writes=False)

    # Other orders of axes -------------------------------------------------------------------------------------------

    def order(self, x, axes):
        """The same values with their axes in another order: a view."""
        sizes = tuple([x.size(axis) for axis in axes])
        return self._emit("view", [x], axes, sizes, reads=(), role=x.role, dtype=x.dtype, base=x.base,
                          parts=(x,) if x.parts is None else x.parts, writes=False,
                          order=tuple([x.axes.index(axis) for axis in axes]))  # fmt: skip
