"""Differential and factorized attention, gated outputs, values unlike keys: by hand, costs, refusals."""

import numpy
import pytest
import sympy
from variants import ATTENTIONS, BASE

from lmcalc.components.base import Bound
from lmcalc.compute import Data, random_weights
from lmcalc.errors import InputError
from lmcalc.lenses.cache import cache
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import params
from lmcalc.model import build, trace
from lmcalc.ops import Ops
from lmcalc.questions.validate import check
from lmcalc.trace import Array

NAMES = ("values of another size", "values from keys", "gated attention", "differential", "factorized")


def attention(name, **changes):
    fields = {"positions": "none", "n_layers": 1, "attention_bias": "none", **changes}
    return build({**BASE, **ATTENTIONS[name], **fields}).runs[0].items[0][1].attention


def run(component, x):
    """What the component makes of x (B, T, D), with weights seeded by their names; and those weights."""
    data = Data(random_weights, None)
    ops = Ops(*x.shape[:2], data=data)
    ops._layer = 1  # the first
    out = Bound(ops, component, "", "it")(Array("BTD", x.shape, "activation", "activations", data=x)).data
    return out, {path.rpartition("/")[2]: weight for path, weight in data.used.items()}


X = numpy.random.default_rng(1).standard_normal((2, 4, 23))


def softmax(scores):
    """Causal softmax over the last axis of (..., T, S)."""
    scores = numpy.where(numpy.tri(scores.shape[-1], dtype=bool), scores, -numpy.inf)
    e = numpy.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("name", NAMES)
def test_counted_equals_predicted(name):
    assert [each for each in check(build(BASE | ATTENTIONS[name])) if not each["ok"]] == []


def test_differential_attention_by_hand():
    """(softmax(q1 k1) - lambda softmax(q2 k2)) [v1 v2], head by head."""
    out, w = run(attention("differential"), X)
    q, k, v = (
        numpy.einsum(f"btd,d{axes}->bt{axes}", X, w[name]) for axes, name in (("gkrh", "q"), ("gkh", "k"), ("pkh", "v"))
    )
    start = 0.8 - 0.6
    share = numpy.exp(w["lambda_q1"] @ w["lambda_k1"]) - numpy.exp(w["lambda_q2"] @ w["lambda_k2"]) + start
    expected = numpy.zeros_like(X)
    for head in range(2):
        for r in range(5):
            maps = [
                softmax(numpy.einsum("bth,bsh->bts", q[:, :, g, head, r], k[:, :, g, head]) / 14**0.5) for g in (0, 1)
            ]
            both = numpy.concatenate((v[:, :, 0, head], v[:, :, 1, head]), axis=-1)
            mixed = (maps[0] - share * maps[1]) @ both
            mixed = mixed / numpy.sqrt((mixed**2).mean(-1, keepdims=True) + 1e-5) * (1 - start)
            expected += mixed @ w["out"][head, r].reshape(28, 23)
    numpy.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


def test_differential_attention_mixes_twice_as_wide():
    """The products of maps and values cost twice those of softmax attention with as many heads."""
    fields = BASE | {"n_heads": 20, "n_kv_heads": 4}
    plain, twice = (flops(trace(build(each), 1, 8))[1] for each in (fields, fields | {"differential": True}))
    assert twice["attention_scores"] * 2 == plain["attention_scores"] * 3
    assert twice["attention_proj"] == plain["attention_proj"]
    assert (
        params(build(fields | {"differential": True}))["attention"] - params(build(fields))["attention"] == 3 * 4 * 14
    )


def test_gated_attention_by_hand():
    name = "gated attention"
    out, w = run(attention(name, v_head_dim=None), X)
    ungated = {key: value for key, value in ATTENTIONS[name].items() if key != "attention_gate"}
    plain = build({**BASE, **ungated, "positions": "none", "n_layers": 1, "attention_bias": "none", "v_head_dim": None})
    _, same = run(plain.runs[0].items[0][1].attention, X)
    assert all((same[key] == w[key]).all() for key in same)
    q, k, v = (
        numpy.einsum(f"btd,d{axes}->bt{axes}", X, w[name]) for axes, name in (("krh", "q"), ("kh", "k"), ("kh", "v"))
    )
    maps = softmax(numpy.einsum("btkrh,bskh->bkrts", q, k) / 14**0.5)
    gate = 1 / (1 + numpy.exp(-numpy.einsum("btd,dkrh->btkrh", X, w["gate"])))
    expected = numpy.einsum("btkrh,krhd->btd", numpy.einsum("bkrts,bskh->btkrh", maps, v) * gate, w["out"])
    numpy.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


def test_factorized_attention_by_hand():
    out, w = run(attention("factorized"), X)
    latent = X @ w["q_down"]
    latent = latent / numpy.sqrt((latent**2).mean(-1, keepdims=True) + 1e-5) * w["weight"]
    q = numpy.einsum("btq,qkrh->btkrh", latent, w["q"])
    k, v = X @ w["k"][:, 0], X @ w["v"][:, 0]
    maps = softmax(numpy.einsum("btkrh,bsh->bkrts", q, k) / 14**0.5)
    expected = numpy.einsum("bkrts,bsh,krhd->btd", maps, v, w["out"])
    numpy.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


def test_step_3():
    """Step-3: 64 heads of 256 from a latent of 2,048, one key/value head; 61 layers keep 62,464 bytes a token."""
    fields = {"n_layers": 61, "d_model": 7168, "n_heads": 64, "n_kv_heads": 1, "head_dim": 256, "q_latent_dim": 2048,
              "d_ff": 18432, "vocab_size": 128815}  # fmt: skip
    model = build(fields)
    assert cache(trace(model, 1, 1), 1, 1, {"cache": "bf16", "state": "fp32"})["bytes_per_token"] == 61 * 2 * 256 * 2
    a_layer = 7168 * 2048 + 2048 * 64 * 256 + 2 * 7168 * 256 + 64 * 256 * 7168
    assert params(model)["attention"] == 61 * a_layer
    assert params(model)["norms"] == 61 * (2048 + 2 * 7168) + 7168


def test_values_by_formula():
    D, K, R, H, U, T = sympy.symbols("D K R H U T", positive=True, integer=True)
    model = build({"n_layers": 1, "d_model": D, "n_heads": K * R, "n_kv_heads": K, "head_dim": H, "v_head_dim": U,
                   "d_ff": 1, "vocab_size": 1})  # fmt: skip
    found = flops(trace(model, 1, T), "full")[1]
    assert sympy.expand(found["attention_proj"] - 2 * T * D * K * (R + 1) * (H + U)) == 0
    assert sympy.expand(found["attention_scores"] - 2 * T * T * K * R * (H + U)) == 0


REFUSED = [
    ({"differential": True, "n_kv_heads": 3}, "n_kv_heads = 3; allowed: a multiple of the 2 maps"),
    (
        {"differential": True, "n_kv_heads": 15, "n_heads": 30, "qk_norm": "head"},
        "a multiple of the 2 maps|qk_norm = 'head'",
    ),
    ({"differential": True, "n_heads": 8, "n_kv_heads": 4, "v_head_dim": 11}, "v_head_dim = 11; allowed: none"),
    (
        {"differential": True, "n_heads": 8, "n_kv_heads": 4, "attention_sinks": True},
        "attention_sinks = True; allowed: none",
    ),
    (
        {"differential": True, "n_heads": 8, "n_kv_heads": 4, "positions": "alibi"},
        "positions = 'alibi'; allowed: rotary",
    ),
    (
        {"differential": True, "stack": "encoder", "n_heads": 8, "n_kv_heads": 4},
        "differential = True; allowed: none in",
    ),
    ({"q_latent_dim": 19, "v_from_k": True}, "v_from_k = True; allowed: false with q_latent_dim"),
    ({"kv_latent_scale": 0.5}, "kv_latent_scale = 0.5: no part of this model"),
    ({"attention_gate_by_head": True}, "attention_gate_by_head = True; allowed: none without attention_gate"),
    ({"attention_gate_activation": "softplus"}, "'softplus'; allowed: none without attention_gate"),
    ({"attention_growth": "log"}, "attention_growth = 'log'; allowed: none without attention_temperature"),
    (
        {"stack": "encoder_decoder", "n_encoder_layers": 2, "attention_gate": True},
        "attention_gate = True; allowed: none in",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_no_forward_can_run_is_refused(changes, message):
    with pytest.raises(InputError) as error:
        build(BASE | changes)
    assert any(each in str(error.value) for each in message.split("|"))
