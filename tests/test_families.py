"""Mixtures of experts, state spaces and hybrids from config.json: older keys, kinds of layers, what is refused."""

import math
from pathlib import Path

import pytest

import lmcalc
from lmcalc.huggingface import read, translate
from lmcalc.lenses.params import active, buffers, mtp, params
from lmcalc.questions.validate import check

RECORDED = Path(__file__).parent / "recorded" / "logits"
FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"


def fields(model_type, **config):
    return translate({"model_type": model_type, **config})[0]


def notes(model_type, **config):
    return translate({"model_type": model_type, **config})[2]


# Sums that are published ---------------------------------------------------------------------------------------------


def test_deepseek_v3():
    """Its class's own defaults are the published model."""
    model = lmcalc.load({"model_type": "deepseek_v3"})
    assert sum(params(model).values()) == 671_026_404_352 and buffers(model) == 14_848
    assert active(model) == 37_552_282_624
    assert mtp(model) > 11_000_000_000  # one prediction module, apart


def test_mixtral():
    assert sum(params(lmcalc.load({"model_type": "mixtral"})).values()) == 46_702_792_704


def test_gpt_oss():
    model = lmcalc.load({"model_type": "gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32})
    assert sum(params(model).values()) == 20_914_757_184


# The same in older and newer keys ------------------------------------------------------------------------------------

SAME = [
    ("qwen3_next", {"full_attention_interval": 4}, {"layer_types": ([LINEAR] * 3 + [FULL]) * 12}),
    ("nemotron_h", {"hybrid_override_pattern": "ME*-"}, {"layers_block_type": ["mamba", "moe", "attention", "mlp"]}),
    ("lfm2", {"full_attn_idxs": [2, 5], "num_hidden_layers": 6},
     {"layer_types": ["conv", "conv", FULL] * 2, "num_hidden_layers": 6}),
    ("kimi_linear",
     {"num_hidden_layers": 4, "linear_attn_config": {
         "full_attn_layers": [4], "kda_layers": [1, 2, 3], "head_dim": 64, "num_heads": 8,
         "short_conv_kernel_size": 3}},
     {"num_hidden_layers": 4, "layer_types": [LINEAR] * 3 + [FULL], "linear_head_dim": 64, "linear_num_heads": 8,
      "linear_conv_kernel_dim": 3}),
    ("minimax", {"num_hidden_layers": 3, "attn_type_list": [0, 0, 1], "layernorm_mlp_alpha": 3.5},
     {"num_hidden_layers": 3, "layer_types": [LINEAR, LINEAR, FULL], "mlp_alpha_factor": 3.5}),
    ("mimo_v2_flash", {"num_hidden_layers": 3, "hybrid_layer_pattern": [0, 1, 1], "moe_layer_freq": [0, 1, 1],
                       "sliding_window_size": 128, "swa_rope_theta": 3e4},
     {"num_hidden_layers": 3, "layer_types": [FULL, SLIDING, SLIDING], "mlp_layer_types": ["dense", "sparse", "sparse"],
      "sliding_window": 129, "rope_local_base_freq": 3e4}),
    ("gemma4_text", {"num_hidden_layers": 6, "global_head_dim": 384, "num_global_key_value_heads": 2,
                     "attention_k_eq_v": True},
     {"num_hidden_layers": 6, "per_layer_config": {"5": {"head_dim": 384, "num_key_value_heads": 2}},
      "attention_k_eq_v": True}),
    ("llama4_text", {"interleave_moe_layer_step": 2}, {"moe_layers": list(range(1, 48, 2))}),
    ("glm_moe_dsa", {"num_hidden_layers": 6, "index_topk_freq": 3},
     {"num_hidden_layers": 6, "indexer_types": ["full", "full", "shared", "shared", "full", "shared"]}),
    ("glm_moe_dsa", {"num_hidden_layers": 4, "index_topk_pattern": "FSFS"},
     {"num_hidden_layers": 4, "indexer_types": ["full", "shared"] * 2}),
    ("minimax_m2", {"rotary_dim": 64}, {"partial_rotary_factor": 0.5}),
    ("bamba", {"attn_layer_indices": [1], "mamba_d_head": "auto"}, {"attn_layer_indices": [1], "mamba_d_head": 64}),
    ("dbrx", {"attn_config": {"kv_n_heads": 4, "rope_theta": 5e5}},
     {"attn_config": {"kv_n_heads": 4}, "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}),
]  # fmt: skip


@pytest.mark.parametrize("family, old, new", SAME)
def test_older_and_newer_keys(family, old, new):
    assert fields(family, **old) == fields(family, **new)
    assert notes(family, **old) == notes(family, **new) == ()


def test_other_names_of_families():
    assert translate({"model_type": "kimi_k2"})[:2] == translate({"model_type": "deepseek_v3"})[:2]
    nested = {"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2", "num_hidden_layers": 7}}
    assert lmcalc.load(nested).family == "deepseek_v3" and lmcalc.load(nested).fields["n_layers"] == 7
    outer = {"model_type": "qwen3_5", "text_config": {"num_hidden_layers": 8}, "vision_config": {}}
    assert lmcalc.load(outer).family == "qwen3_5_text"
    with pytest.raises(lmcalc.InputError, match=r"text_config: hidden_act = 'sith'"):
        lmcalc.load({"model_type": "kimi_k3", "text_config": {"model_type": "kimi_linear", "hidden_act": "sith"}})


# Layers that differ --------------------------------------------------------------------------------------------------


def test_layers():
    assert fields("jamba")["layers"][:2] == [f"{LINEAR}_dense", f"{LINEAR}_experts"]
    assert fields("deepseek_v3")["layers"] == ["3*dense", "58*experts"]
    assert fields("deepseek_v3")["kinds"] == {"dense": {"n_experts": 0}, "experts": {}}
    assert "d_ff" not in fields("mixtral") and fields("deepseek_v3")["d_ff"] == 18432
    dense = fields("deepseek_v3", num_hidden_layers=2, num_nextn_predict_layers=0)
    assert "layers" not in dense and "n_experts" not in dense
    ernie = fields("ernie4_5_moe", num_hidden_layers=6, moe_layer_start_index=2, moe_layer_end_index=4)
    assert ernie["layers"] == ["2*dense", "3*experts"]  # repeated: then dense again
    qwen = fields("qwen2_moe", num_hidden_layers=4, decoder_sparse_step=2, mlp_only_layers=[3])
    assert qwen["layers"] == ["dense", "experts", "dense"]  # and dense again
    assert fields("gemma3n_text")["kinds"]["sliding_shared"]["kv_from"] == "sliding"
    assert fields("gemma3n_text")["kinds"]["sliding_sparse95"]["ffn_sparsity"] == 0.95
    assert fields("llama4_text")["layers"] == ["3*chunked_attention_turned", f"{FULL}_still"]
    assert fields("zamba2")["kinds"]["hybrid_0"] == {"block": "hybrid", "shared_block": 0}


def test_a_hybrid_without_attention_has_no_heads():
    found = fields("granitemoehybrid")  # the class's own default
    assert "n_heads" not in found and found["mixer"] == "mamba2" and found["positions"] == "none"


def test_dense_granite_hybrid():
    """Without experts the shared feed-forward is the only one."""
    found = fields("granitemoehybrid", num_local_experts=0, shared_intermediate_size=12288)
    assert found["d_ff"] == 12288 and "n_experts" not in found


def test_hunyuan_has_a_larger_base():
    rope = {"rope_type": "dynamic", "alpha": 1000.0, "factor": 1.0, "rope_theta": 1e4}
    found = fields("hunyuan_v1_moe", rope_parameters=rope)
    assert found["rope_base"] == 1e4 * 1000 ** (128 / 126) and "rope_scaling" not in found


def test_time_step_limits():
    assert "time_step_limit" not in fields("mamba2", time_step_limit=[0.0, {"__float__": "Infinity"}])
    assert fields("mamba2", time_step_limit=[0.1, 0.2])["time_step_limit"] == [0.1, 0.2]
    assert fields("nemotron_h")["time_step_limit"] == [0.001, math.inf]


def test_factors_of_one_are_no_operations():
    found = fields("falcon_h1")
    assert not {"score_scale", "mixer_scales", "ffn_scales", "mixer_in_scale", "embedding_scale"} & set(found)


# What is refused -----------------------------------------------------------------------------------------------------

REFUSED = [
    ("deepseek_v3", {"scoring_func": "softmax"}, "scoring_func = 'softmax'"),
    ("deepseek_v3", {"mlp_layer_types": ["dense"]}, "one entry for each of the 61 layers"),
    ("mamba2", {"num_heads": 7}, r"num_heads = 7; allowed: 128"),
    ("dbrx", {"ffn_config": {"moe_normalize_expert_weights": 2.0}}, "moe_normalize_expert_weights = 2.0"),
    ("nemotron_h", {"hybrid_override_pattern": "MX"}, "the letters M"),
    ("gemma3n_text", {"activation_sparsity_pattern": [0.5]}, "a share below 1 for each of the 35 layers"),
    ("gemma3n_text", {"num_kv_shared_layers": 35}, "so few that a layer of each type"),
    ("gemma4_text", {"per_layer_config": {"0": {"head_dim": 64}}}, "the same head_dim"),
    ("glm_moe_dsa", {"indexer_types": ["shared"] * 78}, "full for the first"),
    ("gpt_oss", {"swiglu_alpha": 1.0}, "swiglu_alpha = 1.0; allowed: 1.702"),
    ("qwen3_next", {"layer_types": ["sliding"] * 48}, "one of linear_attention, full_attention"),
    ("mixtral", {"num_experts_per_tok": 9}, "at most the 8 experts"),
]  # fmt: skip


@pytest.mark.parametrize("family, config, message", REFUSED)
def test_refused(family, config, message):
    with pytest.raises(lmcalc.InputError, match=message):
        lmcalc.load({"model_type": family, **config})


# Every recording is counted as predicted, too -------------------------------------------------------------------------

BY_CALL = {  # models that compute otherwise in one pass than step by step, and why
    "llama-dynamic": "a base that grows with the length of a call",
    "phi3-longrope-long": "factors that depend on the length of a call",
    "mamba2-limit": "a limit of time steps that single steps do not have",
    "switch_transformers-capacity": "a capacity of experts for each call",
}


def test_what_no_component_expresses_is_refused():
    with pytest.raises(lmcalc.InputError, match="reformer"):  # keys in buckets by their hash
        lmcalc.load({"model_type": "reformer"})


@pytest.mark.parametrize("name", sorted(folder.name for folder in RECORDED.iterdir()))
def test_recorded_configs_are_counted(name):
    model = lmcalc.load(read(RECORDED / name / "config.json"))
    failed = [each["what"] for each in check(model) if not each["ok"]]
    assert all(what.startswith("logits step by step") for what in failed) if name in BY_CALL else failed == []
