"""Do the predictions hold? A real forward of a shrunken copy of each model, counted by machine."""

from ..arguments import several
from ..cards import load
from ..lenses.cache import cache
from ..lenses.flops import of_op
from ..lenses.params import buffers, params
from ..model import trace
from ..numbers import Sum
from .shrink import shrunk

SCHEMA = "lmcalc.validate/1"
BATCH, PROMPT, STEPS, SOURCE = 2, 5, (1, 3, 1), 7  # with a window of 6: below it, at it, across it, beyond it
TOLERANCE = 1e-10  # of the largest logit, in float64


def validate(models=None, progress=None):
    """{schema, checks, failed}: for each model, what was predicted, what was counted, and whether they are equal.

    models: names (default: every card). The copy keeps a card's structure at small sizes; weights are random, and the
    same logits must come out of one pass and of a cache filled step by step.
    """
    from .catalogue import architectures

    checks = []
    for name in several(models) or architectures():
        checks += check(load(name))
        if progress is not None:
            progress(name)
    return {"schema": SCHEMA, "checks": checks, "failed": sum(not each["ok"] for each in checks)}


def check(model):
    """The checks of one model: [{what, model, predicted, counted, ok}]."""
    import numpy

    from ..compute import Data, random_weights

    small, found = shrunk(model), []

    def note(what, predicted, counted):
        ok = bool(predicted == counted)
        found.append({"what": what, "model": model.name, "predicted": predicted, "counted": counted, "ok": ok})

    steps = (PROMPT,) if small.bidirectional else (PROMPT, *STEPS)
    length, random = sum(steps), numpy.random.default_rng(0)
    tokens = random.integers(0, small.fields["vocab_size"], (BATCH, length))
    source = random.integers(0, small.source_vocab, (BATCH, SOURCE))
    states, past, pieces, used = {}, 0, [], {}
    for new in steps:
        run = {"source": SOURCE, "encoded": bool(states), "phase": "decode" if states and new == 1 else "prefill"}
        data = Data(random_weights, tokens[:, past : past + new], states, counting=True, source=source)
        real = trace(small, BATCH, new, past, "all", data=data, **run)
        predicted = trace(small, BATCH, new, past, "all", unroll=True, **run)
        phase = f"{new} tokens onto {past}"
        differ = [
            f"{op.path}: {_full(op)} predicted, {op.counted} counted"
            for op in real.ops
            if op.counted != _full(op)
        ]  # fmt: skip
        differ += [
            f"{a.path} {a.equation}: {_full(a)} on sizes, {_full(b)} with data"
            for a, b in zip(predicted.ops, real.ops, strict=True)
            if (a.path, a.equation, _full(a)) != (b.path, b.equation, _full(b))
        ]
        note(f"operations that differ, {phase}", [], differ)
        for what in ("contraction", "other"):
            note(f"{what} FLOPs, {phase}", _sum(predicted.ops, what), sum(
                op.counted for op in real.ops if (op.cls == "contraction") == (what == "contraction")))  # fmt: skip
        pairs = [op for op in real.ops if op.masked is not None and op.cls == "contraction"]
        note(f"pairs allowed by masks, {phase}", sum(op.masked[0] for op in pairs), sum(_allowed(op) for op in pairs))
        states, past = data.kept, past + new
        used |= data.used
        pieces.append(real.outputs[0].data)
        held = cache(real, BATCH, past, {"cache": "fp64", "state": "fp64", "conv": "fp64"})
        note(f"cache bytes after {past} tokens", held["bytes"] + held["state_bytes"],
             sum(each.nbytes for each in states.values()))  # fmt: skip
    note("weights", sum(params(small).values()) + buffers(small), sum(each.size for each in used.values()))
    data = Data(random_weights, tokens, source=source)
    whole = trace(small, BATCH, length, 0, "all", data=data, source=SOURCE).outputs[0].data
    error = float(abs(numpy.concatenate(pieces, axis=1) - whole).max() / abs(whole).max())
    found.append({"what": "logits step by step against one pass: largest relative difference", "model": model.name,
                  "predicted": TOLERANCE, "counted": error, "ok": error < TOLERANCE})  # fmt: skip
    return found


def _full(op):
    return Sum(of_op(op, "full")).value()


def _sum(ops, what):
    return sum(_full(op) for op in ops if (op.cls == "contraction") == (what == "contraction"))


def _allowed(op):
    """Multiply-adds of a masked contraction, with the pairs counted in the mask's own booleans."""
    pairs = int(op.mask.data.sum())
    rectangle = op.mask.data.size
    return op.points[0] * pairs // rectangle
