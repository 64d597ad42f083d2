"""Latent attention: two ways with one result, each at its own cost; DeepSeek's numbers; indexers; refusals."""

import numpy
import pytest
import sympy
from variants import ATTENTIONS, BASE

import lmcalc
from lmcalc.compute import Data, random_weights
from lmcalc.errors import InputError
from lmcalc.lenses.flops import flops, of_op
from lmcalc.model import build, trace
from lmcalc.numbers import Sum
from lmcalc.questions.validate import check

LATENT = [name for name in ATTENTIONS if name.startswith(("latent", "indexer"))]
V3 = {"n_layers": 61, "d_model": 7168, "n_heads": 128, "q_latent_dim": 1536, "kv_latent_dim": 512, "nope_head_dim": 128,
      "rope_head_dim": 64, "v_head_dim": 128, "d_ff": 18432, "vocab_size": 129280}  # fmt: skip
INDEXER = {"index_topk": 2048, "index_heads": 64, "index_head_dim": 128}


def small(name, **changes):
    found = {**BASE, **ATTENTIONS[name], **changes}
    return build({field: value for field, value in found.items() if value is not None})


def run(model, steps, **options):
    """(logits of a run on numbers, operations whose count is not as predicted), fed step by step."""
    tokens = numpy.random.default_rng(0).integers(0, 37, (2, 11))
    states, past, pieces, differ = {}, 0, [], []
    for new in steps:
        data = Data(random_weights, tokens[:, past : past + new], states, counting=True)
        found = trace(model, 2, new, past, "all", data=data, **options)
        differ += [op.path for op in found.ops if op.counted != Sum(of_op(op, "full")).value()]
        states, past = data.kept, past + new
        pieces.append(found.outputs[0].data)
    return numpy.concatenate(pieces, axis=1), differ


@pytest.mark.parametrize("name", LATENT)
def test_counted_equals_predicted(name):
    assert [each for each in check(small(name)) if not each["ok"]] == []


@pytest.mark.parametrize("name", LATENT)
def test_absorbed_and_expanded_give_the_same_logits(name):
    model = small(name)
    expanded, differ = run(model, (11,), mla="expanded")
    assert differ == []
    for steps in ((11,), (4, 1, 3, 1, 1, 1)):
        absorbed, differ = run(model, steps, mla="absorbed")
        assert differ == []
        assert abs(absorbed - expanded).max() < 1e-10 * abs(expanded).max()
    best, _ = run(model, (4, 1), mla="best", phase="decode")
    assert abs(best - expanded[:, :5]).max() < 1e-10 * abs(expanded).max()


# Formulas ---------------------------------------------------------------------------------------------------------

NAMES = sympy.symbols("B T P D N Q C H Z U X Y K", positive=True, integer=True)
B, T, P, D, N, Q, C, H, Z, U, X, Y, K = NAMES
FIELDS = {"n_layers": 1, "d_model": D, "n_heads": N, "q_latent_dim": Q, "kv_latent_dim": C, "nope_head_dim": H,
          "rope_head_dim": Z, "v_head_dim": U, "d_ff": 1, "vocab_size": 1}  # fmt: skip
DOWN = D * Q + Q * N * (H + Z) + D * (C + Z) + N * U * D  # a token's multiply-adds that both ways do


def parts(masked="full", **options):
    found = flops(trace(build(FIELDS), B, T, P, **options), masked)[1]
    return found["attention_proj"], found["attention_scores"]


def same(ours, by_hand):
    assert sympy.simplify(ours - by_hand) == 0


def test_expanded_by_hand():
    """All keys and values are made again in each call: of past tokens, too."""
    projections, scores = parts(mla="expanded")
    same(projections, 2 * B * T * DOWN + 2 * B * (P + T) * C * N * (H + U))
    same(scores, 2 * B * T * (P + T) * N * (H + Z + U))


def test_absorbed_by_hand():
    projections, scores = parts(mla="absorbed")
    same(projections, 2 * B * T * (DOWN + N * C * (H + U)))
    same(scores, 2 * B * T * (P + T) * N * (C + Z + C))
    same(parts("causal", mla="absorbed")[1], 2 * B * (T * P + T * (T + 1) / 2) * N * (2 * C + Z))


def test_indexer_by_hand():
    """The indexer scores all pairs; attention costs min(seen, k) of a query."""
    model = build({**FIELDS, "index_heads": X, "index_head_dim": Y, "index_topk": K})
    found = flops(trace(model, B, 1, P, mla="absorbed"))[1]
    same(found["attention_proj"], 2 * B * (DOWN + N * C * (H + U) + Q * X * Y + D * Y + D * X))
    for past, topk in ((100, 40), (30, 40)):
        pairs = 2 * B * (past + 1) * X * (Y + 1) + 2 * B * min(past + 1, topk) * N * (2 * C + Z)
        same(found["attention_scores"].subs({P: past, K: topk}), pairs)


# DeepSeek V3 ------------------------------------------------------------------------------------------------------


def report(**options):
    return lmcalc.report(build(V3), **options).to_dict()


def test_cache_of_deepseek_v3():
    """70,272 bytes a token (published as 70.272 KB); 2,196 MiB at 32,768 tokens; 4.289 GiB at 65,536."""
    assert report(context=32768)["cache"]["bytes_per_token"] == 61 * 576 * 2 == 70272
    assert report(context=32768)["cache"]["bytes"] == 2196 * 2**20
    assert round(report(context=65536)["cache"]["bytes"] / 2**30, 3) == 4.289


def test_training_attention_of_deepseek_v3():
    """30,702,305,280 FLOPs a token at 4,096 tokens, forward and backward, of half the square; ours has its diagonal."""
    scores = report(prompt=4096)["prefill"]["flops"]["contraction_by_part"]["attention_scores"]
    assert 3 * scores == 30_702_305_280 * 4097


# counted by torch.utils.flop_counter in the transformers 5.24 class of DeepSeek-V3
RECORDED = {
    (1, 512): (11_687_344_209_920, 1_309_965_025_280),
    (2, 1000): (45_653_688_320_000, 9_994_240_000_000),
}


def test_flops_of_deepseek_v3():
    def found(phase, **options):
        parts = report(mask="full", mla="expanded", **options)[phase]["flops"]["contraction_by_part"]
        return parts["attention_proj"], parts["attention_scores"]

    for (batch, prompt), expected in RECORDED.items():
        assert found("prefill", batch=batch, prompt=prompt) == expected
    assert found("decode", context=1024) == (2_118_770_884_608, 5_122_048_000)


def test_ways_of_a_report():
    """best expands at prefill and absorbs at decode, and the notes say so."""
    best, expanded, absorbed = (report(mla=mla, context=32768) for mla in ("best", "expanded", "absorbed"))
    assert best["prefill"] == expanded["prefill"] != absorbed["prefill"]
    assert best["decode"] == absorbed["decode"] != expanded["decode"]
    assert best["decode"]["flops"]["contraction"] < expanded["decode"]["flops"]["contraction"] / 50
    for each, way in (
        (best, "decode absorbs"),
        (expanded, "made from the latents"),
        (absorbed, "attend to the latents"),
    ):
        assert any("Latent attention" in note and way in note for note in each["notes"])
    assert not any("Latent attention" in note for note in lmcalc.report("gpt2").to_dict()["notes"])


@pytest.mark.parametrize("sizes", [{"prompt": 4096}, {"prompt": 1, "past": 30_000}, {"prompt": 300, "past": 300}])
def test_no_way_beats_the_bound(sizes):
    """Whichever way was chosen, the bound is that of the cheaper one; the best in most cases, not in all."""
    model, options = build(V3 | INDEXER), {"hardware": "h100", "context": 20_000, **sizes}
    found = [lmcalc.report(model, mla=mla, traffic=traffic, **options).to_dict()
             for mla in ("best", "expanded", "absorbed") for traffic in ("fused", "ideal")]  # fmt: skip
    for phase in ("prefill", "decode"):
        bounds = {each["hardware"][0][phase]["bound_s"] for each in found}
        assert len(bounds) == 1
        assert all(each["hardware"][0][phase]["roofline_s"] >= max(bounds) for each in found)


def test_bytes_of_decode():
    """Both ways read each stored token once; the expanded way also writes and reads keys and values of all heads."""
    stored = 61 * 576 * 2 * 32768
    for mla in ("expanded", "absorbed"):
        found = report(mla=mla, context=32768)["decode"]["bytes"]
        assert (found["cache_read"], found["cache_write"]) == (stored, 61 * 576 * 2)
    ways = [report(mla=mla, context=32768)["decode"]["bytes"]["activations"] for mla in ("expanded", "absorbed")]
    heads = 61 * 128 * (128 + 128) * 32769 * 2
    assert 2 * heads < ways[0] - ways[1] + 10**8 < 2 * heads + 2 * 10**8


def test_bytes_of_an_indexer():
    """All keys of the indexer, min(context, k) of the latents."""
    model = build({**V3, **INDEXER})
    for context in (1000, 32768):
        found = lmcalc.report(model, context=context).to_dict()
        assert found["decode"]["bytes"]["cache_read"] == 61 * 2 * (128 * context + 576 * min(context, 2048))
        assert found["cache"]["bytes"] == 61 * 2 * (128 + 576) * context


def test_yarn_scales_scores():
    scaling = {"kind": "yarn", "factor": 40.0, "original_max_positions": 4096, "mscale": 1.0, "mscale_all_dim": 1.0}
    attention = build({**V3, "rope_scaling": scaling}).runs[0].items[0][1].attention
    assert attention.factor == pytest.approx((0.1 * numpy.log(40) + 1) ** 2 / 192**0.5, rel=1e-15)
    assert build(V3).runs[0].items[0][1].attention.factor == 192**-0.5


# Refusals ---------------------------------------------------------------------------------------------------------

REFUSED = [
    ({"n_kv_heads": 8}, "n_kv_heads = 8; allowed: n_heads = 128"),
    ({"positions": "alibi"}, "positions = 'alibi'; allowed: rotary or none"),
    ({"q_latent_dim": None, "q_latent_scale": 2.0}, "q_latent_scale = 2.0; allowed: none without q_latent_dim"),
    ({"q_latent_dim": None, "q_latent_both": True}, "q_latent_both = True; allowed: false without q_latent_dim"),
    ({"attention_gate": True, "attention_gate_bias": "head"}, "attention_gate_bias = 'head'; allowed: none with"),
    ({"rotary_dim": 32}, "rotary_dim = 32; allowed: none, or rope_head_dim = 64"),
    ({"head_dim": 128}, "head_dim = 128: no part of this model"),
    ({"v_head_dim": None}, "v_head_dim is missing"),
    ({"index_shared": True}, "index_shared = True; allowed: false without index_topk"),
    ({**INDEXER, "q_latent_dim": None}, "index_topk = 2048; allowed: none without q_latent_dim"),
    ({**INDEXER, "window": 512}, "window = 512; allowed: none with index_topk"),
    ({**INDEXER, "index_head_dim": 32}, "index_head_dim = 32; allowed: at least rope_head_dim = 64"),
    ({"stack": "encoder"}, "kv_latent_dim = 512; allowed: none in an encoder"),
    (
        {"layers": ["a", "b"], "kinds": {"a": {"index_shared": True}, "b": {}}, **INDEXER},
        "kinds.a.index_shared = True; allowed: only",
    ),
    (
        {"index_topk": 5, "index_shared": True},
        "index_shared = True; allowed: only in layers behind one with an indexer",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_no_forward_can_run_is_refused(changes, message):
    fields = {name: value for name, value in {**V3, **changes}.items() if value is not None}
    with pytest.raises(InputError) as error:
        build(fields)
    assert message in str(error.value)
