"""Recurrences: state that a layer keeps, causal convolutions, and scans over the axis of tokens."""

from .numbers import ceil_div, minimum, times
from .trace import Array, State


class Scans:
    """The part of `ops.Ops` that has to do with state of constant size.

    State is named and found by path, like a cache. Before the first token it is zero and is not read from memory.
    """

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
        key = "/".join((*self._path, name))
        out = self._emit("write", [x], x.axes, x.sizes, role="state", dtype=dtype)
        if self.data is not None:
            self.data.keep(key, out.data)

    def convolve(self, name, x, weight, bias=None):
        """Causal depthwise convolution of x (axes BTc) with a weight (axes Jc): each token sees the J - 1 before it.

        The last J - 1 columns are state, stored as the cache is. A window view and a contraction: 2 B T J c FLOPs.
        """
        channel, width = x.axes[2:], weight.sizes[0]
        with self.fused(name):
            held = self.hold(name, "J" + channel, (width - 1, *x.sizes[2:]), dtype="conv")
            sizes = (*x.sizes[:2], width, *x.sizes[2:])
            seen = self._emit("slide", [held, x], f"BTJ{channel}", sizes, width=width)
            self._emit("columns", [held, x], held.axes, held.sizes, role="state", dtype="conv", width=width - 1)
            if self.data is not None:
                self.data.keep("/".join((*self._path, name)), self.trace.ops[-1].writes[0].data)
            out = self.einsum(f"BTJ{channel},J{channel}->BT{channel}", seen, weight, part="mixer_conv")
            return out if bias is None else self.add(out, bias)

    def scan(self, name, slices, carried, body, chunk=None):
        """(outputs, carried): `body` run along the axis T of `slices`, one kernel whose carried state stays on chip.

        body(slices, carried) -> (outputs, carried), lists of arrays. chunk None: a token at a time, slices lose their axis T.
        chunk: an int, ceil(T / chunk) trips; slices have axis Q of that size in its place, the last one padded with zeros.
        The body is traced once, with the trips as multiplicity. Outputs come back with T where the slices had it.
        """
        trips = self.new if chunk is None else ceil_div(self.new, chunk)
        with self.fused(name):
            saved, self._times = self._times, times(self._times, trips)
            if self.data is None:
                outputs, carried = body([self._slice(x, chunk) for x in slices], carried)
            else:
                outputs, carried = self._run(slices, carried, body, chunk, trips)
            self._times = saved
            return [self._stack(x, chunk) for x in outputs], carried

    def _slice(self, x, chunk, trip=None):
        at = x.axes.index("T")
        middle, size = ("", ()) if chunk is None else ("Q", (chunk,))
        axes, sizes = x.axes[:at] + middle + x.axes[at + 1 :], x.sizes[:at] + size + x.sizes[at + 1 :]
        out = Array(axes, sizes, x.role, x.dtype, x.path, base=x.base)
        out.whole = x
        if trip is not None:
            part = [slice(None)] * at
            if chunk is None:
                out.data = x.data[(*part, trip)]
            else:
                out.data = x.data[(*part, slice(trip * chunk, (trip + 1) * chunk))]
                short = chunk - out.data.shape[at]
                if short:
                    out.data = self.data.np.pad(out.data, [(0, short if i == at else 0) for i in range(len(axes))])
        return out

    def _run(self, slices, carried, body, chunk, trips):
        """The trips one after the other; the trace keeps the first, with what all of them counted."""
        found, start = [], len(self.trace.ops)
        for trip in range(trips):
            begin = len(self.trace.ops)
            outputs, carried = body([self._slice(x, chunk, trip) for x in slices], carried)
            found.append(outputs)
            if trip:
                for op, again in zip(self.trace.ops[start:begin], self.trace.ops[begin:], strict=True):
                    if op.counted is not None:
                        op.counted += again.counted
                del self.trace.ops[begin:]
        for at, first in enumerate(found[0]):
            axis = 1
            pieces = [outputs[at].data for outputs in found]
            np = self.data.np
            first.data = np.stack(pieces, axis) if chunk is None else np.concatenate(pieces, axis)[:, : self.new]
        return found[0], carried

    def _stack(self, x, chunk):
        """What the trips put out, with the axis T behind B again."""
        rest = x.axes[1:] if chunk is None else x.axes[2:]
        sizes = x.sizes[1:] if chunk is None else x.sizes[2:]
        assert x.axes[0] == "B" and (chunk is None or x.axes[1] == "Q"), x.axes
        out = Array("BT" + rest, (self.batch, self.new, *sizes), x.role, x.dtype, x.path, group=x.group, base=x.base)
        out.data, x.base.whole = x.data, out
        return out
