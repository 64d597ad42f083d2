"""From which context on does one model keep less than another? Exact: a cache is a straight line between windows.

A compressed cache goes up by steps, the same ones in each window of tokens: there every token that has the same place
in its window lies on a straight line.
"""

import math
from itertools import pairwise

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
    """[(context, name)]: from that context on, up to the next, the model of that name keeps fewer bytes than the other.

    a, b: anything `load` takes. Between two places where a window of either is full, the difference is a straight line
    in the context; where it changes its sign is a quotient of integers, rounded down, and one token more.

    >>> crossovers("gemma-3-27b", "llama-3.1-70b")
    [(1, 'llama-3.1-70b'), (1775, 'gemma-3-27b')]
    """
    models = [load(a), load(b)]
    bytes_of = [_of(model, workload(**options)) for model in models]
    turns = sorted({0, upto, *(size for model in models for size in _windows(model) if 0 < size < upto)})
    step = math.lcm(*(each for model in models for each in _steps(model)))
    found = []

    def note(context, difference):
        if difference:
            name = models[difference > 0].name
            if not found or found[-1][1] != name:
                found.append((context, name))

    for start, end in pairwise(turns):
        if step > 1:
            for context in _changing(bytes_of, start, end, step):
                note(context, bytes_of[0](context) - bytes_of[1](context))
            continue
        first, slope = _line(bytes_of, start)
        note(start, first)
        if slope and (not first or (first > 0) != (slope > 0)):
            meet = start + abs(first) // abs(slope) + 1
            if meet <= end:
                note(meet, slope)
    return found


def _line(bytes_of, start, step=1):
    """(a - b at a context, its change for one step more)."""
    here, next_ = (bytes_of[0](context) - bytes_of[1](context) for context in (start, start + step))
    return here, next_ - here


def _changing(bytes_of, start, end, step):
    """Contexts from start to end in order, among them all where the sign of a - b is another than one before.

    Those that have the same place in a step lie on a straight line, with one slope for all places. So signs are mixed
    at most from the first line that meets 0 to the last, or all along where the slope is 0.
    """
    if end - start <= 2 * step:
        return range(start, end + 1)
    lines = [_line(bytes_of, place, step) for place in range(start, start + step)]
    slope, signs = lines[0][1], {first > 0 for first, _ in lines if first}
    meets = [
        place + (abs(first) // abs(slope) + 1) * step
        for place, (first, _) in enumerate(lines, start=start)
        if slope and (not first or (first > 0) != (slope > 0))
    ]
    if len(signs) > 1:
        return range(start, (min(max(meets), end) if meets else end) + 1)
    near = range(max(min(meets) - step, start), min(max(meets), end) + 1) if meets else ()
    return sorted({*range(start, start + step), *near})


def _states(model):
    """The states of a decode pass."""
    return trace(model, 1, 1, 1, source=1 if model.encoder is not None else None,
                 encoded=model.encoder is not None, phase="decode")  # fmt: skip


def _windows(model):
    """Where a window is full, or the first window of a compressed cache."""
    states = _states(model).states.values()
    return {state.window for state in states if state.window is not None} | _steps(model)


def _steps(model):
    """The sizes of windows of compressed caches."""
    return {state.rows.size for state in _states(model).states.values() if state.rows is not None}


def _of(model, asked):
    """The function from a context to the bytes that one sequence keeps."""
    traced = _states(model)

    def bytes_at(context):
        found = cache(traced, 1, context, asked.storage())
        return found["bytes"] + found["state_bytes"]

    return bytes_at
