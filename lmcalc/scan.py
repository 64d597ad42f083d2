"""Recurrences: state that a layer keeps, causal convolutions, and scans over the axis of tokens."""

from .numbers import ceil_div, minimum, monomial, times
from .trace import Array, State


class Scans:
    """The part of `ops.Ops` that has to do with state of constant size.

    State is named and found by path, like a cache. Before the first token it is zero and is not read from memory.
    """

    @property
    def recurrent(self):
        """Does this pass go token by token (decode), not chunk by chunk? Said by the option `phase`, not by a size."""
        return self.options.get("phase") == "decode"

    # State ----------------------------------------------------------------------------------------------------------

    def hold(self, name, axes, sizes, dtype="state"):
        """The state `name` of this layer as the pass before left it: axes B + `axes`. dtype: "state" or "conv"."""
        key = "/".join((*self._path, name))
        there = Array("B" + axes, (self.batch * self._begun(), *sizes), "state", dtype, key)
        out = Array("B" + axes, (self.batch, *sizes), "state", dtype, key, parts=(there,))
        self.trace.states[key] = State(key, "state", dtype, sizes, None, self._times)
        if self.data is not None:
            found = self.data.state(key)
            out.data = self.data.np.zeros(out.sizes) if found is None else found
        return out

    def _begun(self):
        """1 if there is a past, else 0, as a size."""
        found = self._spans.get("begun")
        if found is None:
            found = self._spans["begun"] = minimum(self.past, 1)
        return found

    def write(self, name, x, dtype="state"):
        """x as the state `name` of this layer for the pass after."""
        out = self._emit("write", [x], x.axes, x.sizes, role="state", dtype=dtype)
        if self.data is not None:
            self.data.keep("/".join((*self._path, name)), out.data)

    # Earlier tokens -------------------------------------------------------------------------------------------------

    def convolve(self, name, x, weight, bias=None):
        """Causal depthwise convolution of x (axes BTc) with a weight (axes Jc): each token sees the J - 1 before it.

        The last J - 1 columns are state, stored as the cache is. A window view and a contraction: 2 B T J c FLOPs.
        """
        channel, width = x.axes[2:], weight.sizes[0]
        with self.fused(name):
            held = self._columns(name, x, width - 1)
            axes, sizes = f"BTJ{channel}", (*x.sizes[:2], width, *x.sizes[2:])
            seen = self._emit("slide", [held, x], axes, sizes, reads=(), parts=(*held.parts, x), writes=False,
                              width=width)  # fmt: skip
            out = self.einsum(f"{axes},J{channel}->BT{channel}", seen, weight, part="mixer_conv")
            return out if bias is None else self.add(out, bias)

    def previous(self, name, x):
        """For each token of x (axes BTc) the one before it, a view; the last one is state, stored as the cache is."""
        held = self._columns(name, x, 1)
        return self._emit("delay", [held, x], x.axes, x.sizes, reads=(), parts=(*held.parts, x), writes=False)

    def _columns(self, name, x, width):
        """The `width` columns before x; the last of x are kept in their place."""
        held = self.hold(name, "J" + x.axes[2:], (width, *x.sizes[2:]), dtype="conv")
        out = self._emit("columns", [held, x], held.axes, held.sizes, role="state", dtype="conv", width=width)
        if self.data is not None:
            self.data.keep("/".join((*self._path, name)), out.data)
        return held

    # Within a chunk: axis Q, second of all ---------------------------------------------------------------------------

    def apply_by_row(self, name, x):
        """An elementwise primitive of x that takes the tokens of a chunk together; its rows are all other axes."""
        assert x.axes[1] == "Q", x.axes
        return self._emit(name, [x], x.axes, x.sizes, x.elements(), rows=monomial(x.sizes[0], *x.sizes[2:]))

    def pair_decay(self, c, axes):
        """By how much each token of a chunk (axis S) has decayed at each later one (Q); c: accumulated log decays."""
        size_of = {**dict(zip(c.axes, c.sizes)), "S": c.sizes[1]}
        sizes = tuple([size_of[axis] for axis in axes])
        assert axes == c.axes[0] + c.axes[2:] + "QS", (axes, c.axes)
        return self._emit("pair_decay", [c], axes, sizes, monomial(*sizes), rows=c.elements())

    def solve(self, a, b):
        """x in (1 + what is below the diagonal of a) x = b; axes ...QS and ...Qc."""
        assert a.axes[:-1] == b.axes[:-1], (a.axes, b.axes)
        points = monomial(*a.sizes, b.sizes[-1])
        return self._emit("solve", [a, b], b.axes, b.sizes, points, rows=a.elements())

    # Scans ----------------------------------------------------------------------------------------------------------

    def scan(self, name, slices, carried, body, chunk=None):
        """(outputs, carried): `body` run along the axis T of `slices`, one kernel whose carried state stays on chip.

        body(slices, carried) -> (outputs, carried), lists of arrays. chunk None: a token at a time, slices lose their
        axis T. chunk: an int, ceil(T / chunk) trips; slices have axis Q of that size in its place, the last one padded
        with zeros. The body is traced once, with the trips as multiplicity. Outputs come back with T behind B.
        """
        trips = self.new if chunk is None else ceil_div(self.new, chunk)
        with self.fused(name):
            saved, self._times = self._times, times(self._times, trips)
            if self.data is None:
                outputs, carried = body([_slice(x, chunk) for x in slices], [_carry(x) for x in carried])
                stacked = [None] * len(outputs)
            else:
                outputs, stacked, carried = self._run(slices, carried, body, chunk, trips)
            self._times = saved
            return [self._stack(x, chunk, data) for x, data in zip(outputs, stacked)], carried

    def _run(self, slices, carried, body, chunk, trips):
        """The trips one after the other; the trace keeps the first, with what all of them counted."""
        start, first, pieces = len(self.trace.ops), None, []
        for trip in range(trips):
            begin = len(self.trace.ops)
            given = [_slice(x, chunk, trip, self.data.np) for x in slices]
            outputs, carried = body(given, [_carry(x) for x in carried])
            pieces.append([x.data for x in outputs])
            if first is None:
                first = outputs, carried
                continue
            for op, again in zip(self.trace.ops[start:begin], self.trace.ops[begin:], strict=True):
                if op.counted is not None:
                    op.counted += again.counted
            del self.trace.ops[begin:]
        np = self.data.np
        stacked = [np.stack(all, 1) if chunk is None else np.concatenate(all, 1)[:, : self.new] for all in zip(*pieces)]
        for x, last in zip(first[1], carried):
            x.data = last.data
        return first[0], stacked, first[1]

    def _stack(self, x, chunk, data):
        """What the trips put out, with the axis T behind B again."""
        skip = 1 if chunk is None else 2
        assert x.axes[:skip] == "BQ"[:skip], x.axes
        sizes = (self.batch, self.new, *x.sizes[skip:])
        out = Array("BT" + x.axes[skip:], sizes, x.role, x.dtype, x.path, group=x.group, base=x.base)
        out.data, x.base.whole = data, out
        return out


def _slice(x, chunk, trip=None, np=None):
    """What one trip sees of x; `whole` is what all trips together read."""
    at = x.axes.index("T")
    middle, size = ("", ()) if chunk is None else ("Q", (chunk,))
    axes, sizes = x.axes[:at] + middle + x.axes[at + 1 :], x.sizes[:at] + size + x.sizes[at + 1 :]
    out = Array(axes, sizes, x.role, x.dtype, x.path, base=x.base)
    out.whole = x
    if trip is not None and chunk is None:
        out.data = x.data[(*[slice(None)] * at, trip)]
    elif trip is not None:
        out.data = x.data[(*[slice(None)] * at, slice(trip * chunk, (trip + 1) * chunk))]
        short = chunk - out.data.shape[at]
        out.data = np.pad(out.data, [(0, short if i == at else 0) for i in range(len(axes))])
    return out


def _carry(x):
    """The state as a trip finds it, on chip; `whole` is what the first one reads."""
    out = Array(x.axes, x.sizes, "activation", x.dtype, x.path, base=x.base, data=x.data)
    out.whole = x
    return out
