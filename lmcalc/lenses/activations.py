"""What the forward pass must keep for the backward pass."""

from ..numbers import Sum, times
from .traffic import size_in_bytes


def kept(trace, dtypes):
    """Bytes kept for the backward pass: each primitive's inputs or output, every stored value once, weights never.

    Training has no cache: keys and values are activations, in their type.

    >>> from lmcalc import load, trace
    >>> kept(trace(load("gpt2"), batch=1, new=16, logits="all"), {"activations": "bf16"})
    4841536
    """
    total = Sum()
    for _, term in kept_by(trace, dtypes):
        total.add(term)
    return total.value()


def kept_by(trace, dtypes):
    """[(operation, bytes that it is the first to keep)]."""
    seen, found = set(), []
    dtypes = {**dtypes, "cache": dtypes["activations"], "state": dtypes["activations"]}
    for op in trace.ops:
        keeps = op.primitive.keeps
        arrays = op.reads if keeps in ("inputs", "index") else op.writes if keeps == "output" else ()
        for array in arrays:
            if array.role in ("weight", "cache") or (keeps == "index" and array.role != "index"):
                continue
            storage = array.base
            if id(storage) not in seen:
                seen.add(id(storage))
                count, atoms = storage.times or op.times
                found.append((op, times(size_in_bytes(storage, dtypes), count, *atoms)))
    return found
