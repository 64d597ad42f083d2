"""What turns a run on sizes into a run on numbers: weights by path, states by path, and NumPy."""

import math
import zlib

import numpy

from . import patterns
from .errors import InputError


class Kernels:
    """NumPy, and the error function that it lacks."""

    erf = numpy.frompyfunc(math.erf, 1, 1)

    def __getattr__(self, name):
        return getattr(numpy, name)


class Data:
    """The numbers of one forward pass (see ops.Ops, `data`).

    weights: path -> array, a mapping or a function of (path, axes, sizes). tokens: (B, T) ints. states: {path: array}
    from the pass before; `kept` collects those for the pass after. counting: count what NumPy does (see counting.py).
    source: (B, M) ints, what an encoder reads. targets: (B, T) ints, the tokens that a loss asks for.
    """

    error = InputError

    def __init__(self, weights, tokens, states=None, counting=False, source=None, targets=None):
        self.weights, self.tokens, self.states, self.kept = weights, tokens, states or {}, {}
        self.source, self.targets = source, targets
        self.np, self.counting, self.used = Kernels(), counting, {}

    def compute(self, primitive, arrays, attributes):
        """(result, None), or (result, counted FLOPs) where counting."""
        if not self.counting:
            return _real(primitive.kernel(self.np, *arrays, **attributes)), None
        from .counting import count

        return count(primitive.kernel, self.np, arrays, attributes)

    def weight(self, path, axes, sizes):
        """The weight at a path, of these sizes."""
        found = self.weights(path, axes, sizes) if callable(self.weights) else self.weights.get(path)
        if found is None:
            raise InputError(f"weight {path} is missing")
        if found.shape != tuple(sizes):
            raise InputError(f"weight {path} has shape {found.shape}; {tuple(sizes)} is needed")
        self.used[path] = found
        return found

    def state(self, path, tokens=None):
        """What a layer kept in the pass before, or None; of a cache the last `tokens` rows."""
        found = self.states.get(path)
        return found if found is None or tokens is None else found[:, found.shape[1] - tokens :]

    def keep(self, path, array, window=None):
        """Remember a state for the pass after this one; of a cache the last `window` rows."""
        self.kept[path] = array if window is None else array[:, max(array.shape[1] - window, 0) :]

    def extended(self, path, rows):
        """What a layer kept, with further rows behind it."""
        found = self.states.get(path)
        return rows if found is None else numpy.concatenate((found, rows), axis=1)

    def positions(self, ops, window=None):
        """(positions of the new tokens as a column, positions of the keys that a layer of this window holds)."""
        end = ops.past + ops.new
        return numpy.arange(ops.past, end)[:, None], numpy.arange(end - ops.span(window)[1], end)

    def causal(self, ops, window=None):
        """Queries x keys, booleans: which of the keys that a layer holds each new token sees."""
        query, key = self.positions(ops, window)
        return patterns.allowed(query, key, window)

    def chosen(self, index, allowed):
        """Sequences x 1 x queries x keys, booleans: those that the index (BTA) names, as far as they are allowed."""
        found = numpy.zeros((len(index), *allowed.shape), bool)
        numpy.put_along_axis(found, index, True, axis=-1)
        return (found & allowed)[:, None]


def _real(array):
    return array.astype(float) if array.dtype == object else array


def random_weights(path, axes, sizes):
    """Seeded by the path: the same weight has the same values in every run. About 1 in size after a product."""
    rng = numpy.random.default_rng(zlib.crc32(path.encode()))
    return rng.standard_normal(sizes) / math.sqrt(max([4, *sizes[:1]]))
