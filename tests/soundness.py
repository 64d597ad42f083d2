"""What must hold of every variant, and the means to run one component by itself on numbers."""

import numpy

import lmcalc
from lmcalc.components.base import Bound
from lmcalc.compute import Data, random_weights
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import params
from lmcalc.lenses.traffic import traffic
from lmcalc.numbers import Sum
from lmcalc.ops import Ops
from lmcalc.questions.validate import check
from lmcalc.trace import Array

BASE = {"n_layers": 3, "d_model": 23, "n_heads": 15, "n_kv_heads": 3, "head_dim": 14, "d_ff": 29, "vocab_size": 37,
        "max_positions": 31}  # fmt: skip
DTYPES = {"weights": "bf16", "activations": "bf16", "cache": "bf16", "state": "fp32", "conv": "bf16"}
SYMBOLS = {"n_layers": "L", "d_model": "D", "d_ff": "F", "vocab_size": "V"}


def built(**changes):
    """A small model with these fields; None takes one away."""
    return lmcalc.build({name: value for name, value in {**BASE, **changes}.items() if value is not None})


def bytes_of(trace, convention="fused"):
    """[weights, activations, cache read, cache written] in bytes."""
    totals = [Sum() for _ in range(4)]
    for _, _, _, terms in traffic(trace, DTYPES, convention):
        for at, term in terms:
            totals[at].add(term)
    return [total.value() for total in totals]


def costs(trace):
    """Every number that a trace gives: FLOPs by class under both masks, bytes by kind under all conventions."""
    found = [*flops(trace, "causal")[0].values(), *flops(trace, "full")[0].values()]
    for convention in ("fused", "unfused", "ideal"):
        found += bytes_of(trace, convention)
    return found


def assert_sound(**changes):
    """Counted equals predicted, pieces equal the whole, and ints, symbols, arrays and unrolled runs agree."""
    model = built(**changes)
    assert [each for each in check(model) if not each["ok"]] == []
    decode = {} if model.bidirectional else {"past": 6}
    for sizes in ({"new": 5}, {"new": 1, **decode, "encoded": bool(decode), "phase": "decode"}):
        run = {"batch": 2, **sizes, "source": 7, "logits": "all"}
        exact = costs(lmcalc.trace(model, **run))
        assert all(type(each) is int for each in exact)
        assert costs(lmcalc.trace(model, **run, unroll=True)) == exact
        assert_same_by_symbols(model, run, exact)
        numbers = {name: numpy.array([float(run[name])] * 3) for name in ("batch", "new", "source")}
        if "past" in run:
            numbers["past"] = numpy.array([6.0, 6.0, 6.0])
        for swept, whole in zip(costs(lmcalc.trace(model, **(run | numbers))), exact):
            assert (swept == whole).all() if hasattr(swept, "all") else swept == whole
    return model


def assert_same_by_symbols(model, run, exact):
    """A trace of symbols, sizes of the model too, gives formulas that give the exact numbers."""
    import sympy

    point, fields = {}, dict(model.fields)
    for name, letter in SYMBOLS.items():
        if name in fields and not (name == "n_layers" and "layers" in fields):
            point[sympy.Symbol(letter, positive=True)] = fields[name]
            fields[name] = sympy.Symbol(letter, positive=True)
    symbolic = dict(run)
    for name, letter in (("batch", "B"), ("new", "T"), ("past", "P"), ("source", "M")):
        if name in run:
            symbolic[name] = sympy.Symbol(letter, positive=True)
            point[symbolic[name]] = run[name]
    formulas = lmcalc.build(fields)
    found = [sympy.sympify(each).subs(point) for each in costs(lmcalc.trace(formulas, **symbolic))]
    assert found == exact
    total = sum(params(formulas).values())
    assert sympy.sympify(total).subs(point) == sum(params(model).values())


def component(kind, *inputs, weights=random_weights, name="it", axes="BTD"):
    """What a component makes of arrays by itself, as a NumPy array; inputs that are no floats are token ids."""
    ops = Ops(*inputs[0].shape[:2], data=Data(weights, None))
    arrays = [
        Array(axes, each.shape, "activation", "activations", data=each)
        if each.dtype.kind == "f"
        else Array("BT", each.shape, "index", "int32", data=each)
        for each in inputs
    ]
    return Bound(ops, kind, "", name)(*arrays).data


def logits(model, tokens, weights=random_weights, **run):
    """All logits of a model with random weights."""
    data = Data(weights, tokens, **{name: run.pop(name) for name in ("source", "targets", "states") if name in run})
    if data.source is not None:
        run["source"] = data.source.shape[1]
    return lmcalc.trace(model, *tokens.shape, logits="all", data=data, **run).outputs[0].data


def weight(path, *sizes):
    """The value that a weight of this path has under `random_weights`."""
    return random_weights(path, "", sizes)
