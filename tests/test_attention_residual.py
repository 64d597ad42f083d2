"""Kimi K3: residuals over blocks of layers, SiTU, the normed latent of its experts; by hand a second time."""

import numpy
import pytest
from soundness import component, weight
from variants import EXPERTS, fields

import lmcalc
from lmcalc import reference
from lmcalc.components.gated_delta import kimi_delta
from lmcalc.compute import random_weights
from lmcalc.errors import InputError
from lmcalc.lenses.cache import cache
from lmcalc.lenses.params import params
from lmcalc.model import Fields, build, trace

WIDTH, EPS = 23, 1e-5


def rms(x):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + EPS)


def situ(gate, up, beta, up_beta):
    gate = beta * numpy.tanh(gate / beta) / (1 + numpy.exp(-gate))
    return gate * (up if up_beta is None else up_beta * numpy.tanh(up / up_beta))


def by_hand(model, token, layers, size):
    """One token: softmax attention over a single key is its value. Blocks as lists, the way the report tells them."""
    x = weight("embedding/table", 37, WIDTH)[token]
    blocks, partial = [], x

    def mixed(path, streams):
        query = weight(f"{path}/query", WIDTH) * weight(f"{path}/norm/weight", WIDTH)
        scores = numpy.exp([rms(each) @ query for each in streams])
        return sum(share * each for share, each in zip(scores / scores.sum(), streams))

    for layer in range(layers):
        at = f"layers/{layer}"
        h = mixed(f"{at}/attention_mix", [*blocks, partial]) if blocks else partial
        if layer % size == 0:
            blocks, partial = [*blocks, partial], 0
        h = rms(h) * weight(f"{at}/attention_norm/weight", WIDTH)
        v = numpy.einsum("d,dkh->kh", h, weight(f"{at}/attention/v", WIDTH, 3, 14))
        out = numpy.einsum("kh,krhd->d", v, weight(f"{at}/attention/out", 3, 5, 14, WIDTH))
        partial = partial + out
        h = rms(mixed(f"{at}/ffn_mix", [*blocks, partial])) * weight(f"{at}/ffn_norm/weight", WIDTH)
        gate, up = (h @ weight(f"{at}/ffn/{name}", WIDTH, 29) for name in ("gate", "up"))
        partial = partial + situ(gate, up, 1.0, None) @ weight(f"{at}/ffn/down", 29, WIDTH)
    x = rms(mixed("narrow", [*blocks, partial])) * weight("final_norm/weight", WIDTH)
    return x @ weight("head/weight", WIDTH, 37)


@pytest.mark.parametrize("layers, size", [(4, 3), (5, 2), (3, 1), (2, 7)])
def test_residuals_by_hand(layers, size):
    given = fields("attention residuals of like layers") | {"n_layers": layers, "residual_block_size": size}
    model = build(given)
    for token in (0, 11):
        expected = by_hand(model, token, layers, size)
        found = reference.of(model)([[token]])[0][0, 0]
        assert abs(found - expected).max() < 1e-12 * abs(expected).max()


def test_what_a_mix_costs():
    """Of n streams 2 n D multiply-adds' worth of mixing a branch; layer 0 has no mix before its attention."""
    given = fields("attention residuals of like layers") | {"n_layers": 5, "residual_block_size": 2}
    contraction = lmcalc.report(build(given), prompt=7).to_dict()["prefill"]["flops"]["contraction_by_part"]
    streams = [(0, 2), (2, 2), (2, 3), (3, 3), (3, 4)]  # before attention and feed-forward of each layer
    assert contraction["attention_residual"] == 2 * 7 * WIDTH * (sum(map(sum, streams)) + 4)


def test_streams_are_no_cache():
    model = build(fields("attention residuals"))
    states = trace(model, 1, 1, 9).states
    assert {path.split("/")[1] for path in states} <= {"attention", "mixer"}
    held = cache(trace(model, 1, 1, 9), 1, 9, {"cache": "bf16", "state": "fp32", "conv": "bf16"})
    assert held["bytes"] == 2 * 9 * 2 * 3 * 14  # of one full layer


@pytest.mark.parametrize("up_beta", [None, 1.3])
def test_situ_by_hand(up_beta):
    given = {"d_model": 23, "d_ff": 29, "ffn": "situ", "situ_beta": 0.7, "situ_up_beta": up_beta}
    from lmcalc.components.feed_forward import feed_forward

    x = numpy.random.default_rng(0).standard_normal((2, 3, 23))
    gate, up = (x @ weight(f"it/{name}", 23, 29) for name in ("gate", "up"))
    expected = situ(gate, up, 0.7, up_beta) @ weight("it/down", 29, 23)
    assert abs(component(feed_forward(Fields(given, "test")), x) - expected).max() < 1e-12


def test_experts_in_a_normed_latent_by_hand():
    """All experts chosen, so that nothing is left out: their weighted sum is normed before it leaves the latent."""
    from lmcalc.components.moe import mixture

    given = {**EXPERTS, "n_experts": 2, "experts_per_token": 2, "d_model": 23, "expert_latent": 11,
             "expert_latent_norm": True, "shared_d_ff": 13}  # fmt: skip
    x = numpy.random.default_rng(0).standard_normal((2, 3, 23))
    scores = numpy.exp(x @ weight("it/router/gate", 23, 2))
    scores = scores / scores.sum(-1, keepdims=True)

    def silu_glu(x, at, width, inner, pick=slice(None)):
        sizes = {"gate": (width, inner), "up": (width, inner), "down": (inner, width)}
        w = {name: weight(f"{at}/{name}", *((2,) if pick != slice(None) else ()), *each)[pick]
             for name, each in sizes.items()}  # fmt: skip
        gate = x @ w["gate"]
        return (gate / (1 + numpy.exp(-gate)) * (x @ w["up"])) @ w["down"]

    low = x @ weight("it/latent_in/weight", 23, 11)
    total = sum(scores[..., at, None] * silu_glu(low, "it/experts", 11, 19, at) for at in range(2))
    total = rms(total) * weight("it/latent_norm/weight", 11)
    expected = total @ weight("it/latent_out/weight", 11, 23) + silu_glu(x, "it/shared/ffn", 23, 13)
    assert abs(component(mixture(Fields(given, "test")), x) - expected).max() < 1e-12


def test_a_full_output_gate_is_its_two_matrices_multiplied():
    given = {"d_model": 23, "n_mixer_heads": 3, "mixer_head_dim": 11, "gate_rank": 5, "decay_floor": -3.0}
    x = numpy.random.default_rng(0).standard_normal((1, 6, 23))

    def weights(path, axes, sizes):
        if path == "it/gate":
            down, up = random_weights("it/gate_down", "", (23, 5)), random_weights("it/gate_up", "", (5, 3, 1, 11))
            return numpy.einsum("dy,ykru->dkru", down, up)
        return random_weights(path, axes, sizes)

    low = component(kimi_delta(Fields(given, "test")), x)
    full = component(kimi_delta(Fields(given | {"output_gate_full_rank": True}, "test")), x, weights=weights)
    assert abs(low - full).max() < 1e-12


def test_kimi_k3():
    """2.8T and 104B as published; 82,432 experts of 33,030,144 parameters, as its files hold them."""
    model = lmcalc.load("kimi-k3")
    parts = params(model)
    assert sum(parts.values()) == 2_779_484_379_232
    latent = 92 * (2 * 7168 * 3584)
    assert parts["moe_experts"] == 92 * 896 * 33_030_144 + latent
    assert parts["attention_residual"] == 7168 * (2 * 93 - 1 + 1)
    report = lmcalc.report(model, context=2**20).to_dict()
    assert report["params"]["active"] - parts["token_embedding"] == pytest.approx(104e9, rel=0.005)
    assert report["cache"]["bytes"] == 2 * 2**20 * 24 * (512 + 64)
    kda = 96 * 128 * 128 * 4 + 3 * 96 * 128 * 3 * 2
    assert report["cache"]["state_bytes"] == 69 * kda


REFUSED = [
    ({"residual_block_size": None}, "residual_block_size is missing"),
    ({"block": "serial"}, "residual_block_size = 3: no part of this model has such a field"),
    ({"norm_placement": "post"}, "norm_placement = 'post'; allowed: pre with block = 'attention_residual'"),
    ({"layers": ["a"], "kinds": {"a": {"block": "serial"}}}, "block = 'serial'; allowed: attention_residual"),
    ({"expert_latent_norm": True, **EXPERTS}, "expert_latent_norm = True; allowed: false without expert_latent"),
]


@pytest.mark.parametrize("changes, message", REFUSED)
def test_fields_refused(changes, message):
    given = {**fields("attention residuals of like layers"), **changes}
    with pytest.raises(InputError) as error:
        build({name: each for name, each in given.items() if each is not None})
    assert message in str(error.value)
