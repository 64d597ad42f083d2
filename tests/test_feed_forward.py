"""Every feed-forward: what it computes, its parameters, and the rule that matches those of gated and plain ones."""

import math

import numpy
import pytest
from soundness import assert_sound, built, bytes_of, component, weight

import lmcalc
from lmcalc.components.feed_forward import KINDS, feed_forward
from lmcalc.fields import resolved, rule
from lmcalc.lenses.params import params
from lmcalc.model import Fields

X = numpy.random.default_rng(2).standard_normal((2, 3, 5)) * 4  # 4: both sides of every kink, and of the clamps
UP, GATE, DOWN = X @ weight("it/up", 5, 7), X @ weight("it/gate", 5, 7), weight("it/down", 7, 5)
ERF = numpy.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def gelu(x):
    return x * 0.5 * (1 + ERF(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def elu(x):
    return numpy.where(x > 0, x, numpy.exp(x) - 1)


def selu(x):
    return 1.0507009873554805 * numpy.where(x > 0, x, 1.6732632423543772 * (numpy.exp(x) - 1))


def xielu(x):
    """As modeling_apertus has it: softplus of two numbers, beta 0.5."""
    positive, negative = (math.log(1 + math.exp(weight(f"it/alpha_{side}", 1)[0])) for side in "pn")
    below = (numpy.expm1(numpy.minimum(x, -1e-6)) - x) * (0.5 + negative) + 0.5 * x
    return numpy.where(x > 0, positive * x**2 + 0.5 * x, below)


def clamped(gate, up):
    gate, up = numpy.minimum(gate, 7), numpy.clip(up, -7, 7)
    return gate * sigmoid(1.702 * gate) * (up + 1)


EXPECTED = {
    "relu": numpy.maximum(UP, 0),
    "relu2": numpy.maximum(UP, 0) ** 2,
    "gelu": gelu(UP),
    "gelu_tanh": gelu_tanh(UP),
    "silu": UP * sigmoid(UP),
    "elu": elu(UP),
    "selu": selu(UP),
    "xielu": xielu(UP),
    "glu": sigmoid(GATE) * UP,
    "reglu": numpy.maximum(GATE, 0) * UP,
    "relu2glu": numpy.maximum(GATE, 0) ** 2 * UP,
    "geglu": gelu(GATE) * UP,
    "geglu_tanh": gelu_tanh(GATE) * UP,
    "swiglu": GATE * sigmoid(GATE) * UP,
    "liglu": GATE * UP,
    "swiglu_clamped": clamped(GATE, UP),
    "swiglu_limited": numpy.minimum(GATE, 10) * sigmoid(numpy.minimum(GATE, 10)) * numpy.clip(UP, -10, 10),
    "situ": numpy.tanh(GATE) * sigmoid(GATE) * UP,
    "swiglu_capped": numpy.minimum(GATE * sigmoid(GATE), 7) * numpy.clip(UP, -7, 7),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values(kind):
    made = feed_forward(Fields({"ffn": kind, "d_model": 5, "d_ff": 7}, "test"))
    numpy.testing.assert_allclose(component(made, X), EXPECTED[kind] @ DOWN, rtol=1e-10, atol=1e-12)


def test_inputs_reach_both_sides_of_the_clamps():
    assert GATE.max() > 7 and UP.max() > 7 and UP.min() < -7


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_feed_forward_is_sound(kind, bias):
    model = assert_sound(ffn=kind, ffn_bias=bias)
    matrices = 3 if KINDS[kind][1] else 2
    biases = 29 * (matrices - 1) + 23 if bias else 0
    assert params(model)["ffn"] == 3 * (matrices * 23 * 29 + biases + (2 if kind == "xielu" else 0))


@pytest.mark.parametrize("gated", [kind for kind, (_, gate) in KINDS.items() if gate])
def test_three_matrices_at_8_3_have_the_parameters_of_two_at_4(gated):
    """Shazeer 2020, sec. 3.1: d_ff is cut by 2/3 when a gate is added."""
    plain = params(built(d_model=24, d_ff="4*d_model", ffn="relu"))
    assert params(built(d_model=24, d_ff="8/3*d_model", ffn=gated)) == plain
    assert plain["ffn"] == 3 * 8 * 24 * 24


def test_the_rule_in_symbols():
    import sympy

    d = sympy.Symbol("D", positive=True)
    gated, plain = ({"d_model": d, "d_ff": text} for text in ("8/3*d_model", "4*d_model"))
    assert resolved(gated, "")["d_ff"] * 3 == resolved(plain, "")["d_ff"] * 2 == 8 * d


@pytest.mark.parametrize(
    ("text", "d_model", "d_ff"),
    [
        ("8/3*d_model:256", 4096, 11008),  # LLaMA 7B (Touvron et al. 2023)
        ("8/3*d_model:256", 5120, 13824),  # LLaMA 13B
        ("1.3*8/3*d_model:4096", 8192, 28672),  # LLaMA 2 70B: multiple_of 4096, ffn_dim_multiplier 1.3
        ("1.3 * 8/3 * d_model : 1024", 4096, 14336),  # LLaMA 3 8B
        ("8/3*d_model", 4096, 10923),
        ("4*d_model", 768, 3072),
        ("d_model", 7, 7),
    ],
)
def test_rules_of_published_models(text, d_model, d_ff):
    assert resolved({"d_model": d_model, "d_ff": text}, "")["d_ff"] == d_ff
    assert lmcalc.load("llama-3.1-8b", {"d_model": d_model, "d_ff": text}).fields["d_ff"] == d_ff


@pytest.mark.parametrize(
    "text", ["", "4", "4*d_mod", "d_model*4", "d_model**2", "0*d_model", "8/0*d_model", "-1*d_model", "8/3*d_model:0",
             "8/3*d_model:", "8/3*d_model:x", "1e3*d_model", "__import__('os')*d_model", "²*d_model", "4*d_model:256:2",
             "8/3/2*d_model", "1.2.3*d_model"]
)  # fmt: skip
def test_other_rules_are_refused(text):
    assert rule(text) is None
    with pytest.raises(lmcalc.InputError, match=r"d_ff.*8/3"):
        lmcalc.load("llama-3.1-8b", {"d_ff": text})
    with pytest.raises(lmcalc.InputError, match=r"d_ff.*8/3"):
        built(d_ff=text)


def test_a_rule_holds_in_a_kind_of_layer():
    model = built(layers=["wide", "own"], kinds={"wide": {"d_ff": "4*d_model"}, "own": {}}, ffn="relu")
    assert params(model)["ffn"] == 2 * 23 * (2 * 92 + 29)


def test_fused_projections_read_the_input_once():
    """Gate and up are one product of twice the width: the same FLOPs, x read once instead of twice."""
    apart, together = (lmcalc.trace(built(), 2, 5, fuse_projections=each) for each in (False, True))
    saved = [a - b for a, b in zip(bytes_of(apart), bytes_of(together))]
    reads = 2 + 1  # q, k, v: two reads less, gate and up: one
    assert saved == [0, 3 * reads * 2 * 5 * 23 * 2, 0, 0]
