"""Mixtures of experts: values against a loop over tokens, parameters, FLOPs, and whose weights are read."""

import itertools
import math
from fractions import Fraction

import numpy
import pytest
import sympy
from soundness import DTYPES, bytes_of, component, logits, weight

import lmcalc
from lmcalc.components.moe import mixture
from lmcalc.compute import Data, random_weights
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import active, buffers, mtp, params
from lmcalc.lenses.traffic import ESTIMATED, chosen, traffic
from lmcalc.model import Fields
from lmcalc.numbers import touched
from lmcalc.questions.shrink import shrunk
from lmcalc.questions.validate import check
from lmcalc.trace import Routing

D, F, E, A = 23, 19, 7, 3
MOE = {"n_experts": E, "experts_per_token": A, "expert_d_ff": F}
GROUPS = {"n_experts": 12, "n_expert_groups": 4, "expert_groups_used": 2}

# Values, against a loop over tokens --------------------------------------------------------------------------------

ROUTERS = {
    "mixtral": {"router_normalized": True},
    "qwen2_moe": {"shared_d_ff": 13, "shared_gate": True},
    "granitemoe": {"router": "topk_softmax"},
    "gpt_oss": {"router": "topk_softmax", "router_bias": "linear", "expert_bias": True, "ffn": "swiglu_clamped",
                "ffn_limit": 0.7},
    "deepseek_v2": {**GROUPS, "router_scale": 16.0, "n_shared_experts": 2},
    "deepseek_v3": {**GROUPS, "router": "sigmoid", "router_bias": "correction", "expert_group_score": "top2",
                    "router_normalized": True, "router_eps": 1e-20, "router_scale": 2.5, "shared_d_ff": 13},
    "deepseek_v4": {"router": "sqrtsoftplus", "router_bias": "correction", "router_normalized": True,
                    "router_eps": 1e-20, "router_scale": 1.5, "ffn": "swiglu_limited", "ffn_limit": 0.6,
                    "shared_d_ff": 13},
    "lfm2_moe": {"router": "sigmoid", "router_bias": "correction", "router_normalized": True, "router_eps": 1e-6},
    "ernie4_5": {"router_bias": "correction_parameter", "router_normalized": True, "n_shared_experts": 2},
    "llama4": {"router": "sigmoid", "expert_input_scaled": True, "shared_d_ff": 13},
    "longcat": {"n_zero_experts": 4, "router_bias": "correction", "router_scale": 6.0},
    "nemotron": {"router": "sigmoid", "ffn": "relu2", "expert_latent": 11, "shared_d_ff": 13,
                 "router_normalized": True},
    "phimoe": {"router": "sparsemixer", "router_jitter": 0.3, "experts_per_token": 2},
    "jetmoe": {"router": "topk_softmax", "expert_output_bias": True},
    "switch": {"experts_per_token": 1, "ffn": "relu"},
}  # fmt: skip


def w(path, *sizes):
    return weight(f"it/{path}", *sizes)


def softmax(x):
    e = numpy.exp(x - x.max())
    return e / e.sum()


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def best(x, count):
    return sorted(range(len(x)), key=lambda i: -x[i])[:count]


def expert(kind, x, up, down, gate=None, biases=(0, 0, 0), limit=None):
    """One feed-forward, written out."""
    hidden = x @ up + biases[1]
    if kind == "relu":
        hidden = numpy.maximum(hidden, 0)
    elif kind == "relu2":
        hidden = numpy.maximum(hidden, 0) ** 2
    else:
        gated = x @ gate + biases[0]
        if limit is not None:
            gated, hidden = numpy.minimum(gated, limit), numpy.clip(hidden, -limit, limit)
        if kind == "swiglu_clamped":
            hidden = gated * sigmoid(1.702 * gated) * (hidden + 1)
        else:
            hidden = gated * sigmoid(gated) * hidden
    return hidden @ down + biases[2]


def route(c, x):
    """[(expert, weight)] of one token, as the classes of transformers 5.24 say it."""
    choices = c["n_experts"] + c.get("n_zero_experts", 0)
    x = x @ w("router/gate", D, choices)
    if c.get("router_bias") == "linear":
        x = x + w("router/bias", choices)
    kind, k = c.get("router", "softmax"), c["experts_per_token"]
    if kind == "sparsemixer":
        first = best(x, 1)[0]
        rest = numpy.where(numpy.arange(E) == first, -math.inf, x)
        second, found = best(rest, 1)[0], []
        for scores, at in ((x, first), (rest, second)):
            factor = numpy.maximum(abs(x), scores.max())
            keep = ~((scores.max() - x) / factor > 2 * c["router_jitter"])
            found.append((at, softmax(numpy.where(keep, scores, -math.inf))[at]))
        return found
    if kind == "topk_softmax":
        return list(zip(best(x, k), softmax(numpy.array([x[i] for i in best(x, k)]))))
    scores = {"softmax": softmax, "sigmoid": sigmoid, "sqrtsoftplus": lambda x: numpy.sqrt(numpy.log1p(numpy.exp(x)))}[
        kind
    ](x)
    choice = scores + (w("router/correction", choices) if "correction" in c.get("router_bias", "") else 0)
    if "n_expert_groups" in c:
        grouped = choice.reshape(c["n_expert_groups"], -1)
        top = c.get("expert_group_score") == "top2"
        points = [sorted(group)[-1] + (sorted(group)[-2] if top else 0) for group in grouped]
        used = best(points, c["expert_groups_used"])
        choice = numpy.array([x if i // grouped.shape[1] in used else -math.inf for i, x in enumerate(choice)])
    index = best(choice, k)
    weights = scores[index]
    if c.get("router_normalized"):
        weights = weights / (weights.sum() + c.get("router_eps", 0))
    return list(zip(index, weights * c.get("router_scale", 1)))


def by_hand(c, x):
    """The output for one token."""
    kind, inner = c.get("ffn", "swiglu"), c.get("expert_latent", D)
    gated, n = not kind.startswith("relu"), c["n_experts"]
    up, down = w("experts/up", n, inner, F), w("experts/down", n, F, inner)
    gate = w("experts/gate", n, inner, F) if gated else [None] * n
    biases = [(0, 0, 0)] * n
    if c.get("expert_bias"):
        biases = list(zip(w("experts/gate_bias", n, F), w("experts/up_bias", n, F), w("experts/down_bias", n, D)))
    given = x if inner == D else x @ w("latent_in/weight", D, inner)
    out = numpy.zeros(inner)
    for at, share in route(c, x):
        scaled, share = (given * share, 1) if c.get("expert_input_scaled") else (given, share)
        if at >= n:
            out += share * given
        else:
            out += share * expert(kind, scaled, up[at], down[at], gate[at], biases[at], c.get("ffn_limit"))
    out = out if inner == D else out @ w("latent_out/weight", inner, D)
    out = out + (w("output_bias", D) if c.get("expert_output_bias") else 0)
    width = c.get("shared_d_ff") or c.get("n_shared_experts", 0) * F
    if width:
        gate = w("shared/ffn/gate", D, width) if gated else None
        shared = expert(
            kind, x, w("shared/ffn/up", D, width), w("shared/ffn/down", width, D), gate, limit=c.get("ffn_limit")
        )
        out = out + shared * (sigmoid(x @ w("shared/gate", D)) if c.get("shared_gate") else 1)
    return out


@pytest.mark.parametrize("name", ROUTERS)
def test_values_of_a_loop_over_tokens(name):
    c = {**MOE, **ROUTERS[name]}
    x = numpy.random.default_rng(0).standard_normal((2, 5, D)) * 2
    found = component(mixture(Fields({**c, "d_model": D}, name)), x)
    expected = numpy.array([[by_hand(c, token) for token in sequence] for sequence in x])
    numpy.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ROUTERS)
def test_counted_equals_predicted(name):
    assert [each for each in check(built_moe(**ROUTERS[name])) if not each["ok"]] == []


PLAIN = {"n_layers": 3, "d_model": D, "n_heads": 6, "n_kv_heads": 3, "head_dim": 8, "vocab_size": 37}


def built_moe(**changes):
    return lmcalc.build({**PLAIN, **MOE, **changes})


def test_one_expert_that_all_tokens_use_is_a_plain_feed_forward():
    plain = lmcalc.build({**PLAIN, "d_ff": F})
    alone = built_moe(n_experts=1, experts_per_token=1, router_normalized=True)
    tokens = numpy.random.default_rng(0).integers(0, 37, (2, 5))

    def weights(path, axes, sizes):
        found = random_weights(path.replace("/experts", ""), axes, sizes[1:] if axes[0] == "E" else sizes)
        return found.reshape(sizes)

    numpy.testing.assert_allclose(logits(alone, tokens, weights), logits(plain, tokens), rtol=1e-12)
    one, other = (flops(lmcalc.trace(model, 2, 5))[1] for model in (alone, plain))
    assert one["moe_experts"] == other["ffn"]


# What is read ------------------------------------------------------------------------------------------------------


def test_expected_experts_by_enumeration():
    """Every way in which 3 tokens can each choose 2 of 4 experts, all alike."""
    ways = list(itertools.product(itertools.combinations(range(4), 2), repeat=3))
    mean = Fraction(sum(len(set().union(*way)) for way in ways), len(ways))
    assert mean == 4 * (1 - Fraction(2, 4) ** 3)
    assert touched(1000, 4, 2, 4, 3) == 1000 * mean


def test_expected_experts_of_a_small_batch():
    """Case D3: of Mixtral's 8 experts, 3 tokens with 2 each touch 4.625; 1 token 2; at most 6."""
    one = touched(10**6, 8, 2, 8, 3), touched(10**6, 8, 2, 8, 1)
    assert one == (4_625_000, 2_000_000)
    each = 3 * 4096 * 14336 * 2
    found = {
        how: report("mixtral-8x7b", batch=3, experts=how)["bytes"]["weights"]
        for how in ("expected", "min", "max", "all")
    }
    rest = found["all"] - 32 * 8 * each
    assert {how: (number - rest) / (32 * each) for how, number in found.items()} == {
        "expected": 4.625,
        "min": 2,
        "max": 6,
        "all": 8,
    }


def report(model, **options):
    return lmcalc.report(model, **options).to_dict()["decode"]


def test_decode_reads_what_one_token_uses():
    """Case D1: Qwen3 30B A3B, batch 1: 6,083,735,552 bytes without the input table (of which one row is read)."""
    found = lmcalc.report("qwen-3-30b-a3b", hardware="h100", context=1, traffic="ideal").to_dict()
    assert found["decode"]["bytes"]["weights"] == 6_083_735_552 + 2 * 2048
    assert found["weights"]["bytes"] == 2 * 30_532_122_624
    assert found["hardware"][0]["decode"]["bound_s"] >= 6_083_735_552 / 3.35e12


@pytest.mark.parametrize("skew", [0, 0.7, 2.0])
def test_estimates_are_apart_and_the_same_on_arrays(skew):
    batch = numpy.array([1.0, 3.0, 64.0, 4096.0])
    swept = lmcalc.sweep(
        "mixtral-8x7b", batch=batch, context=100, expert_skew=skew, columns=["decode_bytes", "decode_bytes_weights"]
    )
    for at, size in enumerate([1, 3, 64, 4096]):
        found = report("mixtral-8x7b", batch=size, context=100, expert_skew=skew)["bytes"]
        assert all(type(number) is int for number in found.values())
        assert swept["decode_bytes"][at] == found["total"]
        assert found["total"] == sum(found[kind] for kind in ("weights", "activations", "cache_read", "cache_write"))
        exact = report("mixtral-8x7b", batch=size, context=100, experts="all")["bytes"]
        assert exact["weights"] - 2 * 45_097_156_608 == found["weights"] - found["estimated"]
        assert "estimated" not in exact


def test_parts_add_up_with_estimates():
    found = report("gpt-oss-20b", batch=7)
    assert sum(row["bytes"] for row in found["by_part"]) == found["bytes"]["total"]


def test_limits_of_the_estimate():
    few, many = touched(10**6, 256, 8, 256, 1), touched(10**6, 256, 8, 256, 2**40)
    assert (few, many) == (8 * 10**6, 256 * 10**6)
    assert touched(10**6, 256, 8, 256, 1, skew=1.5) == 8 * 10**6  # a token never chooses one twice
    assert touched(10**6, 256, 8, 256, 30, skew=1.5) < touched(10**6, 256, 8, 256, 30)
    close = touched(10**6, 256, 8, 256, 30, skew=1e-12)
    assert abs(close - touched(10**6, 256, 8, 256, 30)) <= 1


def test_a_formula_gives_the_estimate():
    tokens = sympy.Symbol("n", positive=True, integer=True)
    formula = touched(352_321_536, 8, 2, 8, tokens)
    for n in (1, 2, 3, 17, 400):
        assert formula.subs(tokens, n) == touched(352_321_536, 8, 2, 8, n)


def test_the_bound_takes_the_fewest_experts():
    found = {
        how: lmcalc.report("mixtral-8x7b", hardware="h100", batch=16, experts=how).to_dict() for how in ("min", "all")
    }
    assert len({each["hardware"][0]["decode"]["bound_s"] for each in found.values()}) == 1
    assert found["min"]["hardware"][0]["decode"]["roofline_s"] < found["all"]["hardware"][0]["decode"]["roofline_s"]


def test_a_numeric_run_says_which_experts_it_read():
    """Exactly those bytes that the chosen experts have; between the fewest and the most that are possible."""
    model = built_moe(expert_bias=True)
    tokens = numpy.random.default_rng(0).integers(0, 37, (1, 2))
    t = lmcalc.trace(model, 1, 2, data=Data(random_weights, tokens))
    routed = [op for op in t.ops if type(op.touched) is Routing]
    assert len(routed) == 3 * 6
    for op in routed:
        assert chosen(op) == len(set(op.touched.index.data.ravel().tolist())) and A <= chosen(op) <= 2 * A
    found = {}
    for how in ("chosen", "min", "max", "all"):
        terms = [term for _, _, _, terms in traffic(t, DTYPES, "fused", how) for at, term in terms if at == 0]
        found[how] = sum(coefficient for coefficient, _ in terms)
    each = 2 * (3 * D * F + 2 * F + D)
    assert found["all"] - found["chosen"] == sum(E - chosen(op) for op in routed[::6]) * each
    assert found["min"] <= found["chosen"] <= found["max"] <= found["all"]


def test_expected_is_what_random_routers_do_on_average():
    """Uniform and independent is an assumption; a random router with random inputs comes near it."""
    random = numpy.random.default_rng(0)
    hit = [len(set(random.permuted(numpy.tile(range(16), (5, 1)), axis=1)[:, :4].ravel())) for _ in range(4000)]
    assert abs(numpy.mean(hit) - touched(10**6, 16, 4, 16, 5) / 10**6) < 0.05


def test_zero_experts_may_leave_nothing_to_read():
    model = built_moe(n_zero_experts=4)
    t = lmcalc.trace(model, 1, 1)
    terms = {
        how: sum(c for _, _, _, terms in traffic(t, DTYPES, "fused", how) for _, (c, _) in terms)
        for how in ("min", "max")
    }
    assert terms["max"] - terms["min"] == 3 * A * 2 * 3 * D * F
    estimate = [
        c for _, _, _, terms in traffic(t, DTYPES, "fused", "expected") for at, (c, _) in terms if at == ESTIMATED
    ]
    assert sum(estimate) == 3 * 3 * math.floor(2 * D * F * E * A / 11 + 0.5)
    assert bytes_of(t, "ideal")[0] < bytes_of(lmcalc.trace(built_moe(), 1, 1), "ideal")[0]


# Parameters and FLOPs of real models ---------------------------------------------------------------------------------

QWEN_MOE = {"n_layers": 24, "d_model": 2048, "n_heads": 16, "vocab_size": 151_936, "attention_bias": "qkv",
            "n_experts": 60, "experts_per_token": 4, "expert_d_ff": 1408, "shared_d_ff": 5632,
            "shared_gate": True}  # fmt: skip
QWEN2_57B = {"n_layers": 28, "d_model": 3584, "n_heads": 28, "n_kv_heads": 4, "vocab_size": 151_936,
             "attention_bias": "qkv", "n_experts": 64, "experts_per_token": 8, "expert_d_ff": 2560,
             "shared_d_ff": 20480, "shared_gate": True}  # fmt: skip
DEEPSEEK = {"n_layers": 61, "d_model": 7168, "n_heads": 128, "d_ff": 18432, "vocab_size": 129_280,
            "q_latent_dim": 1536, "kv_latent_dim": 512, "nope_head_dim": 128, "rope_head_dim": 64, "v_head_dim": 128,
            "n_experts": 256, "experts_per_token": 8, "expert_d_ff": 2048, "n_shared_experts": 1,
            "router": "sigmoid", "router_bias": "correction", "router_normalized": True, "router_scale": 2.5,
            "n_expert_groups": 8, "expert_groups_used": 4, "expert_group_score": "top2", "n_mtp_layers": 1,
            "layers": ["3*dense", "58*moe"], "kinds": {"dense": {"n_experts": 0}, "moe": {}}}  # fmt: skip


def test_parameters():
    assert sum(params(lmcalc.build(QWEN_MOE)).values()) == 14_315_784_192  # case P6
    assert sum(params(lmcalc.load("mixtral-8x7b")).values()) == 46_702_792_704
    assert sum(params(lmcalc.load("gpt-oss-20b")).values()) == 20_914_757_184  # case P2
    assert active(lmcalc.load("mixtral-8x7b")) == 12_879_925_248
    assert active(lmcalc.load("gpt-oss-20b")) == 4_187_440_704
    assert active(lmcalc.load("qwen-3-30b-a3b")) == 3_353_032_704


def test_deepseek_v3():
    """Case P4: 671,026,419,200 with the router's buffers; a prediction module, with its own, 11,610,068,224."""
    model = lmcalc.build(DEEPSEEK)
    found = params(model)
    assert sum(found.values()) == 671_026_404_352
    assert buffers(model) == 14_848
    assert active(model) == 37_552_282_624
    assert mtp(model) == 11_610_068_224
    expected = {
        "ffn": 1_189_085_184,
        "moe_router": 106_430_464,
        "moe_experts": 653_908_770_816,
        "moe_shared": 2_554_331_136,
    }
    assert {part: found[part] for part in expected} == expected
    data = lmcalc.report(model).to_dict()["params"]
    assert (data["total"], data["active"], data["buffers"], data["mtp"]) == (
        671_026_404_352, 37_552_282_624, 14_848, 11_610_068_224)  # fmt: skip


def test_contraction_flops_of_parts():
    """torch.utils.flop_counter in transformers' classes: DeepSeek V3 with 512 tokens, Qwen2 57B A14B by formula."""
    found = flops(lmcalc.trace(lmcalc.build(DEEPSEEK), 1, 512, logits="all"), "full")[1]
    assert found["moe_router"] == 108_984_795_136
    assert found["moe_experts"] == 20_925_080_666_112
    assert found["moe_shared"] == 2_615_635_083_264
    assert found["ffn"] == 1_217_623_228_416
    found = flops(lmcalc.trace(lmcalc.build(QWEN2_57B), 1, 512, logits="all"), "full")[1]
    assert found["moe_shared"] == 28 * 512 * 2 * (3 * 3584 * 20480 + 3584)


def test_published_training_flops():
    """Case F3: Mixtral, 1,024 tokens, not causal: 79.98 TFLOP. Case F5: gpt-oss-20b, 4,096: 24,141,260,160 a token."""
    found = flops(lmcalc.trace(lmcalc.load("mixtral-8x7b"), 1, 1024, logits="all"), "full")[1]
    assert round(3 * sum(found.values()) / 1e12, 2) == 79.98
    model, length = lmcalc.load("gpt-oss-20b"), 4096
    found = flops(lmcalc.trace(model, 1, length, logits="all"), "full")[1]
    ours = 3 * (sum(found.values()) - found["attention_scores"])
    # theirs is 6 for each parameter that a token uses, biases, norms and sinks too; head, not the table
    bare = active(model) - params(model)["token_embedding"] - params(model)["norms"] - _vectors()
    assert ours == 6 * bare * length
    scores = 12 * 6 * 64 * 128 * (length + 128)
    assert 6 * (active(model) - params(model)["token_embedding"]) + scores == 24_141_260_160


def _vectors():
    """Biases and sinks of gpt-oss-20b that one token uses."""
    return 24 * (4096 + 2 * 512 + 2880 + 64 + 32 + 4 * (5760 + 2880))


# Models and cards ----------------------------------------------------------------------------------------------------


def test_a_shrunken_card_keeps_its_groups():
    small = shrunk(lmcalc.build(DEEPSEEK)).fields
    assert (small["n_experts"], small["n_expert_groups"], small["expert_groups_used"], small["experts_per_token"]) == (
        12,
        4,
        2,
        3,
    )
    assert small["kinds"]["dense"] == {"n_experts": 0}
    assert [each for each in check(lmcalc.build(DEEPSEEK)) if not each["ok"]] == []


def test_what_if():
    base, more = (lmcalc.report("mixtral-8x7b", set=changes).to_dict() for changes in (None, {"n_experts": 16}))
    assert more["params"]["by_part"]["moe_experts"] == 2 * base["params"]["by_part"]["moe_experts"]
    assert (
        more["prefill"]["flops"]["contraction_by_part"]["moe_experts"]
        == base["prefill"]["flops"]["contraction_by_part"]["moe_experts"]
    )


def test_notes_say_what_is_estimated():
    text = " ".join(lmcalc.report("mixtral-8x7b", expert_skew=0.5).to_dict()["notes"])
    assert "an estimate" in text and "i^-0.5" in text and "bytes.estimated" in text
    assert "estimate" not in " ".join(lmcalc.report("mixtral-8x7b", experts="max").to_dict()["notes"])
    assert "xpert" not in " ".join(lmcalc.report("llama-3.1-8b").to_dict()["notes"])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"experts_per_token": 8}, "experts_per_token = 8; allowed: at most the 7 experts"),
        ({"experts_per_token": None}, "experts_per_token is missing"),
        ({"expert_d_ff": None}, "expert_d_ff is missing"),
        ({"n_expert_groups": 4, "expert_groups_used": 2}, "n_experts = 7; allowed: a multiple of n_expert_groups = 4"),
        ({**GROUPS, "expert_groups_used": 5}, "at most n_expert_groups = 4"),
        ({**GROUPS, "experts_per_token": 7}, "at most the 6 experts of 2 groups"),
        ({**GROUPS, "expert_groups_used": None}, "expert_groups_used is missing"),
        ({"n_expert_groups": 7, "expert_groups_used": 4, "expert_group_score": "top2"}, "a group has 1 expert"),
        ({"router": "sparsemixer", "router_jitter": 0.1}, "experts_per_token = 3; allowed: 2"),
        ({"router": "sparsemixer", "experts_per_token": 2}, "router_jitter is missing"),
        ({"router": "topk_softmax", "router_bias": "correction"}, "router_bias = 'correction'; allowed: none or"),
        ({"router_eps": 1e-6}, "router_eps = 1e-06; allowed: none"),
        ({"shared_gate": True}, "there is no shared expert"),
        ({"shared_d_ff": 13, "n_shared_experts": 1}, "shared_d_ff = 13; allowed: none with n_shared_experts"),
        ({"n_zero_experts": 2, "expert_bias": True}, "false with n_zero_experts"),
        ({"ffn": "xielu"}, "ffn = 'xielu'"),
        ({"d_ff": 29}, "d_ff = 29: no part of this model has such a field"),
        ({"n_experts": 0, "d_ff": 29}, "no part of this model has such a field"),
    ],
)  # fmt: skip
def test_refused(changes, text):
    with pytest.raises(lmcalc.InputError, match=text.replace("(", r"\(")):
        built_moe(**changes)


@pytest.mark.parametrize("skew", [-1, float("nan"), "much", True, 1e9])
def test_a_skew_that_is_none(skew):
    with pytest.raises(lmcalc.InputError, match="expert_skew"):
        lmcalc.report("mixtral-8x7b", expert_skew=skew)
