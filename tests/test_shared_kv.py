"""Keys and values of an earlier layer, Gemma 3n's and Gemma 4's layers: stored once, read by each."""

import pytest
from variants import ATTENTIONS, BASE, EXPERTS

import lmcalc
from lmcalc.errors import InputError
from lmcalc.model import build, trace
from lmcalc.questions.validate import check

NAMES = (
    "keys and values of an earlier layer",
    "per-layer embeddings",
    "altup",
    "dense beside experts",
    "values from keys",
)


def small(name, **changes):
    found = {**BASE, **ATTENTIONS[name], **changes}
    return build({field: value for field, value in found.items() if value is not None})


@pytest.mark.parametrize("name", NAMES)
def test_counted_equals_predicted(name):
    assert [each for each in check(small(name)) if not each["ok"]] == []


GEMMA = {"n_heads": 8, "n_kv_heads": 2, "head_dim": 256, "vocab_size": 262144, "ffn": "geglu_tanh", "norm_eps": 1e-6,
         "qk_norm": "head", "v_norm": True, "score_scale": 1.0, "tied": True, "logit_softcap": 30.0,
         "per_layer_dim": 256}  # fmt: skip
LOCAL, FULL = {"window": 512, "rope_base": 1e4}, {"rope_base": 1e6}
WIDE = FULL | {"head_dim": 512, "rope_scaling": {"kind": "proportional", "turned": 128}}
GEMMA_3N_E4B = GEMMA | {
    "n_layers": 35, "d_model": 2048, "d_ff": 16384, "block": "altup", "altup_streams": 4, "laurel_rank": 64,
    "layers": [*2 * ["4*sparse", "sparse_full"], *2 * ["4*local", "full"], *3 * ["4*local_shared", "full_shared"]],
    "kinds": {"sparse": LOCAL | {"ffn_sparsity": 0.95}, "sparse_full": FULL | {"ffn_sparsity": 0.95}, "local": LOCAL,
              "full": FULL, "local_shared": LOCAL | {"kv_from": "local"}, "full_shared": FULL | {"kv_from": "full"}},
}  # fmt: skip
GEMMA_4_E4B = GEMMA | {
    "n_layers": 42, "d_model": 2560, "d_ff": 10240, "norm_placement": "double", "layer_scale": True,
    "layers": [*4 * ["5*local", "full"], *3 * ["5*local_shared", "full_shared"]],
    "kinds": {"local": LOCAL, "full": WIDE, "local_shared": LOCAL | {"kv_from": "local"},
              "full_shared": WIDE | {"kv_from": "full"}},
}  # fmt: skip
# counted in the transformers 5.24 classes: parameters, then FLOPs of 512 tokens with all logits, and of one onto 1,024
RECORDED = {
    "gemma-3n-e4b": (
        GEMMA_3N_E4B,
        {"token_embedding": 536870912, "attention": 335544320, "ffn": 3523215360, "norms": 518144,
         "altup and laurel": 34702064, "per_layer_embedding": 2403860480},
        {"per_layer_embedding": 56371445760, "altup and laurel": 35755114496 + 1174405120,
         "attention_proj": 343597383680, "attention_scores": 75161927680, "ffn": 3607772528640,
         "lm_head": 549755813888},
        {"per_layer_embedding": 110100480, "altup and laurel": 69834208 + 2293760, "attention_proj": 671088640,
         "attention_scores": 176218112, "ffn": 7046430720, "lm_head": 1073741824},
    ),
    "gemma-4-e4b": (
        GEMMA_4_E4B,
        {"token_embedding": 671088640, "attention": 587202560, "ffn": 3303014400, "norms": 560128,
         "per_layer_embedding": 2901147648},
        {"per_layer_embedding": 84557168640, "attention_scores": 105226698752, "attention_proj": 601295421440,
         "ffn": 3382286745600, "lm_head": 687194767360},
        {"per_layer_embedding": 165150720, "attention_scores": 264355840, "attention_proj": 1174405120,
         "ffn": 6606028800, "lm_head": 1342177280},
    ),
}  # fmt: skip


def merged(parts):
    """The parts that there are; AltUp and LAuReL, which transformers' modules do not part, as one."""
    found = {part: number for part, number in parts.items() if number and part not in ("altup", "laurel")}
    both = parts.get("altup", 0) + parts.get("laurel", 0)
    return found | ({"altup and laurel": both} if both else {})


@pytest.mark.parametrize("name", RECORDED)
def test_counted_by_transformers(name):
    fields, params, prefill, decode = RECORDED[name]
    report = lmcalc.report(build(fields), prompt=512, context=1024, mask="full", logits="all").to_dict()
    assert merged(report["params"]["by_part"]) == params
    assert report["params"]["buffers"] == (42 if fields.get("layer_scale") else 0)
    assert merged(report["prefill"]["flops"]["contraction_by_part"]) == prefill
    assert merged(report["decode"]["flops"]["contraction_by_part"]) == decode


def test_cache_of_gemma_4_e4b():
    """24 of 42 layers own a cache: 4 full of 2 x 512, 20 windowed of 2 x 256; all 42 read one."""
    full, local = 2 * 2 * 512 * 2, 2 * 2 * 256 * 2
    for context in (100, 512, 4096):
        report = lmcalc.report(build(GEMMA_4_E4B), context=context).to_dict()
        held, seen = min(context, 512), min(context, 511)
        assert report["cache"]["bytes"] == 4 * full * context + 20 * local * held
        assert report["decode"]["bytes"]["cache_read"] == 7 * full * context + 35 * local * seen
        assert report["decode"]["bytes"]["cache_write"] == 4 * full + 20 * local
        once = lmcalc.report(build(GEMMA_4_E4B), context=context, traffic="ideal").to_dict()["decode"]["bytes"]
        assert once["cache_read"] == 4 * full * context + 20 * local * seen
    mib = lmcalc.report(build(GEMMA_4_E4B), context=4096).to_dict()["cache"]["bytes"] - 20 * local * 512
    assert mib == 64 * 2**20


def test_gemma_3_27b():
    """Rolling buffers of 1,024 in 5 layers of 6, against all layers full."""
    assert lmcalc.report("gemma-3-27b", context=32768).to_dict()["cache"]["bytes"] == 3_120_562_176
    every = lmcalc.report("gemma-3-27b", context=32768, set={"layers": ["full"]}).to_dict()
    assert every["cache"]["bytes"] == 16_642_998_272


def test_gemma_4_26b_layers():
    """25 layers of window 1,024 (8 x 256), 5 full ones (2 x 512) whose values are keys; both are stored."""
    fields = {"n_layers": 30, "d_model": 2816, "n_heads": 16, "n_kv_heads": 8, "head_dim": 256, "d_ff": 2112,
              "vocab_size": 262144, "qk_norm": "head", "v_norm": True, "score_scale": 1.0,
              "layers": ["5*local", "full"], "kinds": {"local": {"window": 1024},
                        "full": {"n_kv_heads": 2, "head_dim": 512, "v_from_k": True}}}  # fmt: skip
    assert lmcalc.report(build(fields), context=131072).to_dict()["cache"]["bytes"] == 2_894_069_760


def test_a_layer_that_shares_has_no_weights_of_keys():
    model = small("keys and values of an earlier layer")
    own = {path.rpartition("/")[0] for path, state in trace(model, 1, 1).states.items()}
    assert own == {
        "layers.local/attention",
        "layers.full/attention",
        "layers.local.2/attention",
        "layers.full.2/attention",
    }
    shared = next(component for path, component, _ in model.declared() if path == "layers.full_shared/attention")
    assert set(shared.weights()) == {"q", "out"} and shared.children().keys() == {"q_norm", "rotary"}


SHARED = ATTENTIONS["keys and values of an earlier layer"]
REFUSED = [
    ({"kv_from": "local"}, "kv_from = 'local'; allowed: the kind of an earlier layer"),
    (
        {"kinds": {**SHARED["kinds"], "full_shared": {"kv_from": "some"}}},
        "kv_from = 'some'; allowed: a kind that comes before",
    ),
    ({"kinds": {**SHARED["kinds"], "full_shared": {"kv_from": "local_shared"}}}, "such are: local, full"),
    ({"kinds": {**SHARED["kinds"], "full_shared": {"kv_from": "full"}}}, "head_dim = 14; allowed: 12"),
    ({"kinds": {**SHARED["kinds"], "local_shared": {"kv_from": "local"}}}, "window = None; allowed: 6"),
    ({"layers": ["local", "full_shared", "full", "local_shared"], "n_layers": 4}, "allowed: a kind that comes before"),
    ({"v_from_k": True, "v_head_dim": 11}, "v_head_dim = 11; allowed: none with v_from_k"),
    ({"block": "altup", "altup_streams": 3, "laurel_rank": 5}, "per_layer_dim is missing"),
    ({"ffn_sparsity": 1.5}, "ffn_sparsity = 1.5; allowed: less than 1"),
    ({"ffn": "gelu", "ffn_sparsity": 0.5}, "ffn_sparsity = 0.5; allowed: none with ffn = 'gelu'"),
    ({**EXPERTS, "d_ff": 29, "experts_beside_ffn": True}, "norm_placement = 'pre'; allowed: double"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_no_forward_can_run_is_refused(changes, message):
    base = SHARED if "layers" in changes or "kinds" in changes else {}
    with pytest.raises(InputError) as error:
        build({**BASE, **base, **changes})
    assert message in str(error.value)
