"""From which context on does one model keep less than another? Exact: a cache is a straight line between its windows."""

from ..cards import load
from ..lenses.cache import cache
from ..model import trace
from ..workload import workload


def held(model, context, **options):
    """Bytes of cache and state of a model after `context` tokens of one sequence; options: cache, state (dtypes).

    >>> held("llama-3.1-8b", 8192)
    1073741824
    """
    return _of(load(model), workload(**options))(context)


def crossovers(a, b, upto=2**20, **options):
    """[(context, name)]: from that context on the model of that name keeps no more than the other, up to `upto` tokens.

    The first is at context 0. a, b: anything `load` takes. Between two places where a window of either is full, both
    caches grow by the same bytes a token; so where they cross is a quotient of integers, rounded up.

    >>> crossovers("mistral-7b-v0.1", "llama-2-7b")
    [(0, 'mistral-7b-v0.1')]
    """
    models = [load(a), load(b)]
    bytes_of = [_of(model, workload(**options)) for model in models]
    turns = sorted({0, upto, *(size for model in models for size in _windows(model) if 0 < size < upto)})
    found = []

    def less(context):
        """The sign of a - b: -1, 0 or 1."""
        difference = bytes_of[0](context) - bytes_of[1](context)
        return (difference > 0) - (difference < 0)

    def note(context, sign):
        if sign and (not found or found[-1][1] != models[sign > 0].name):
            found.append((context, models[sign > 0].name))

    note(0, less(0) or less(1))
    for start, end in zip(turns, turns[1:]):
        first, slope = _line(bytes_of, start)
        if slope and first and (first > 0) != (slope > 0):  # they meet at start - first / slope
            meet = start + -(-abs(first) // abs(slope))
            if meet <= end:
                note(meet, less(meet) or (1 if slope > 0 else -1))
        elif slope and not first:
            note(start, 1 if slope > 0 else -1)
    return found


def _line(bytes_of, start):
    """(a - b at a context, its change for one more token)."""
    here, next_ = (bytes_of[0](context) - bytes_of[1](context) for context in (start, start + 1))
    return here, next_ - here


def _states(model):
    """The states of a decode pass."""
    return trace(model, 1, 1, 1, source=1 if model.encoder is not None else None,
                 encoded=model.encoder is not None, phase="decode")  # fmt: skip


def _windows(model):
    return {state.window for state in _states(model).states.values() if state.window is not None}


def _of(model, asked):
    """The function from a context to the bytes that one sequence keeps."""
    traced = _states(model)

    def bytes_at(context):
        found = cache(traced, 1, context, asked.storage())
        return found["bytes"] + found["state_bytes"]

    return bytes_at
