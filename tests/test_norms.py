"""Every norm: what it computes, what it costs, and what leaving out means and biases saves."""

import numpy
import pytest
from soundness import assert_sound, built, bytes_of, component, weight

import lmcalc
from lmcalc import components
from lmcalc.fields import FIELDS
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import params

X = numpy.random.default_rng(1).standard_normal((2, 3, 5)) * 2 + 1
GAIN, BIAS, EPS = weight("it/weight", 5), weight("it/bias", 5), 0.01
CENTRED = X - X.mean(-1, keepdims=True)
RMS = X / numpy.sqrt((X**2).mean(-1, keepdims=True) + EPS)
STANDARD = CENTRED / numpy.sqrt((CENTRED**2).mean(-1, keepdims=True) + EPS)
EXPECTED = {
    "rmsnorm": RMS * GAIN,
    "rmsnorm_plus_one": RMS * (1 + GAIN),
    "rmsnorm_plain": RMS,
    "affine": X * GAIN + BIAS,
    "layernorm": STANDARD * GAIN + BIAS,
    "layernorm_no_bias": STANDARD * GAIN,
    "layernorm_plain": STANDARD,
    "layernorm_plus_one": STANDARD * (1 + GAIN) + BIAS,
}


@pytest.mark.parametrize("kind", FIELDS["norm"][0])
def test_values(kind):
    made = components.load(components.NORMS[kind])(5, EPS)
    numpy.testing.assert_allclose(component(made, X), EXPECTED[kind], rtol=1e-12)


@pytest.mark.parametrize("kind", FIELDS["norm"][0])
def test_every_norm_is_sound(kind):
    assert_sound(norm=kind, embedding_norm=True)


def test_parameters():
    of = {kind: params(built(norm=kind)).get("norms", 0) for kind in FIELDS["norm"][0]}
    norms = (2 * 3 + 1) * 23
    assert of == {"rmsnorm": norms, "rmsnorm_plus_one": norms, "rmsnorm_plain": 0, "layernorm": 2 * norms,
                  "affine": 2 * norms, "layernorm_no_bias": norms, "layernorm_plain": 0,
                  "layernorm_plus_one": 2 * norms}  # fmt: skip


def test_a_norm_less_or_more():
    assert params(built(final_norm=False))["norms"] == 2 * 3 * 23
    assert params(built(embedding_norm=True))["norms"] == (2 * 3 + 2) * 23
    assert params(built(norm_placement="post"))["norms"] == 2 * 3 * 23  # no final norm where each layer ends with one
    assert params(built(norm_placement="post", final_norm=True))["norms"] == (2 * 3 + 1) * 23


def test_a_sub_norm_in_each_branch():
    """As wide as what goes into the last matrix of a branch: 15 heads of 14 in attention, d_ff = 29."""
    with_them = params(built(attention_sub_norm=True, ffn_sub_norm=True))
    assert with_them["norms"] - params(built())["norms"] == 3 * (15 * 14 + 29)


def difference(costly, cheap, tokens=10):
    """What the first model needs beyond the second: parameters, FLOPs by class, bytes of weights."""
    runs = [lmcalc.trace(each, 2, tokens // 2, logits="all") for each in (costly, cheap)]
    classes = [flops(each)[0] for each in runs]
    return (
        sum(params(costly).values()) - sum(params(cheap).values()),
        {name: classes[0][name] - classes[1][name] for name in classes[0]},
        [a - b for a, b in zip(*map(bytes_of, runs))],
    )


def test_rmsnorm_saves_the_mean_and_the_bias():
    count, width, tokens = 2 * 3 + 1, 23, 10
    saved = difference(built(norm="layernorm"), built(norm="rmsnorm"))
    assert saved[0] == count * width
    # sum, difference and bias an element, a quotient a row
    normalization = count * tokens * (3 * width + 1)
    assert saved[1] == {"contraction": 0, "normalization": normalization, "elementwise": 0}
    assert saved[2] == [2 * count * width, 0, 0, 0]


def test_no_biases_save_an_addition_and_a_vector_each():
    d, f, q, kv = 23, 29, 15 * 14, 3 * 14
    each_layer, tokens = q + 2 * kv + d + 2 * f + d, 10
    saved = difference(built(attention_bias="all", ffn_bias=True), built())
    assert saved[0] == 3 * each_layer
    assert saved[1] == {"contraction": 0, "normalization": 0, "elementwise": 3 * tokens * each_layer}
    assert saved[2] == [2 * 3 * each_layer, 0, 0, 0]
