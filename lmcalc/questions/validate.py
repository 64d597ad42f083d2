"""Do the predictions hold? A real forward of a shrunken copy of each model, counted by machine."""

from ..cards import load
from ..fields import FIELDS
from ..lenses.cache import cache
from ..lenses.flops import of_op
from ..lenses.params import params
from ..model import build, trace
from ..numbers import Sum

SCHEMA = "lmcalc.validate/1"
BATCH, PROMPT, STEPS = 2, 5, (3, 1)
TOLERANCE = 1e-10  # of the largest logit, in float64


def validate(models=None, progress=None):
    """{schema, checks, failed}: for each model, what was predicted, what was counted, and whether they are equal.

    models: names (default: every card). The copy keeps a card's structure at small sizes; weights are random, and the same
    logits must come out of one pass and of a cache filled step by step.
    """
    from .catalogue import names

    checks = []
    for name in models or names():
        checks += check(load(name))
        if progress is not None:
            progress(name)
    return {"schema": SCHEMA, "checks": checks, "failed": sum(not each["ok"] for each in checks)}


def shrunk(model):
    """The model at small sizes: its own structure, all sizes distinct, prime where the structure allows."""
    fields = dict(model.fields)
    for name, (_, _, size) in FIELDS.items():
        if name in fields and size is not None:
            fields[name] = size
    heads, kv_heads = model.fields["n_heads"], model.fields.get("n_kv_heads", model.fields["n_heads"])
    small = 3 if kv_heads > 1 else 1
    group = 1 if kv_heads == heads else 5
    fields |= {"n_heads": small * group, "n_kv_heads": small, "head_dim": 14}
    return build(fields, model.name, model.source, model.family, where=f"{model.name} (shrunk)")


def check(model):
    """The checks of one model: [{what, model, predicted, counted, ok}]."""
    import numpy

    from ..compute import Data, random_weights

    small, found = shrunk(model), []

    def note(what, predicted, counted):
        ok = bool(predicted == counted)
        found.append({"what": what, "model": model.name, "predicted": predicted, "counted": counted, "ok": ok})

    length = PROMPT + sum(STEPS)
    tokens = numpy.random.default_rng(0).integers(0, small.fields["vocab_size"], (BATCH, length))
    states, past, pieces = {}, 0, []
    for new in (PROMPT, *STEPS):
        data = Data(random_weights, tokens[:, past : past + new], states, counting=True)
        real = trace(small, BATCH, new, past, "all", data=data)
        predicted = trace(small, BATCH, new, past, "all", unroll=True)
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
        for masked, what in ((False, "contraction"), (False, "other")):
            note(f"{what} FLOPs, {phase}", _sum(predicted.ops, what), sum(
                op.counted for op in real.ops if (op.cls == "contraction") == (what == "contraction")))  # fmt: skip
        pairs = [op for op in real.ops if op.masked is not None and op.cls == "contraction"]
        note(f"pairs allowed by masks, {phase}", sum(op.masked[0] for op in pairs), sum(_allowed(op) for op in pairs))
        states, past = data.kept, past + new
        pieces.append(real.outputs[0].data)
        held = cache(real, BATCH, past, {"cache": "fp64", "state": "fp64"})
        note(f"cache bytes after {past} tokens", held["bytes"] + held["state_bytes"],
             sum(each.nbytes for each in states.values()))  # fmt: skip
    note("weights", sum(params(small).values()), sum(each.size for each in data.used.values()))
    whole = trace(small, BATCH, length, 0, "all", data=Data(random_weights, tokens)).outputs[0].data
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
