"""What a sequence keeps between calls: key/value cache that grows with the context, and state that does not."""

from ..numbers import Sum, ceil_div, minimum, monomial
from ..units import DTYPES


def cache(trace, batch, context, dtypes):
    """Bytes of a cache without waste after `context` tokens of `batch` sequences.

    bytes: full layers hold all tokens, windowed ones min(context, window), cross attention those of the source.
    bytes_per_token: growth for one more token of one sequence when all windows are full; bytes_per_token_first: while
    none is. state_bytes: what does not grow.
    """
    held, growing, first, constant = Sum(), Sum(), Sum(), Sum()
    for state in trace.states.values():
        size, values = DTYPES[dtypes.get(state.dtype) or state.dtype]
        sizes = (*state.sizes[:-1], ceil_div(state.sizes[-1], values))
        term = monomial(size, *sizes, *(state.times[0], *state.times[1]))
        if state.kind == "state":
            constant.add((term[0], (*term[1], *monomial(batch)[1])), monomial(batch)[0])
            continue
        if state.rows is not None:  # entries for windows of tokens: grow by steps, counted on average
            tokens, growth = monomial(state.rows.held(context), batch), state.rows.growth(term)
            held.add((term[0] * tokens[0], term[1] + tokens[1]))
            growing.add(growth)
            first.add(growth)
            continue
        tokens = context if state.window is None else minimum(context, state.window)
        if state.source is not None:  # of an encoder: does not grow
            tokens = monomial(state.source, batch)
            held.add((term[0] * tokens[0], term[1] + tokens[1]))
            continue
        tokens = monomial(tokens, batch)
        held.add((term[0] * tokens[0], term[1] + tokens[1]))
        first.add(term)
        if state.window is None:
            growing.add(term)
    return {
        "bytes": held.value(),
        "bytes_per_token": growing.value(),
        "bytes_per_token_first": first.value(),
        "state_bytes": constant.value(),
    }
