"""GGUF files of each architecture that llama.cpp writes, held against the models that they are files of.

A file is made as llama.cpp's converter makes it: of the tensors that transformers writes (tests/recorded/logits), under
the names that the gguf package has for them, its metadata written by that package. What the converter does to shapes is
written down here: it stacks experts, squeezes convolutions, and parts fused matrices.
"""

import json
import math
import re
from pathlib import Path

import pytest
from checkpoints import table

import lmcalc
from lmcalc import cli
from lmcalc.headers.gguf_architectures import ARCHITECTURES
from lmcalc.headers.gguf_names import TABLES
from lmcalc.huggingface import read
from lmcalc.questions.inspect import inspect

gguf = pytest.importorskip("gguf")
numpy = pytest.importorskip("numpy")
RECORDED = Path(__file__).parent / "recorded" / "logits"
ARCH = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}


# Tensors: {name: shape} as the converter leaves them ---------------------------------------------------------------

RENAMED = (  # before the package's names are looked up
    (r"^(bert|nomic_bert)\.", ""),
    (r"self_attn\.attn_sub_norm", "self_attn.inner_attn_ln"),
    (r"mlp\.ffn_sub_norm", "mlp.ffn_layernorm"),
    (r"^transformer\.(h\.\d+\.(self_attention|post_attention_layernorm|input_layernorm|mlp\.dense))", r"\1"),
    (r"^transformer\.(ln_f|word_emb)", r"\1"),
    (r"(mamba|mixer|linear_attn|self_attn)\.dt_bias$", r"\1.dt_proj.bias"),
    (r"e_score_correction_bias$", "e_score_correction.bias"),
    (r"expert_bias$", "expert_bias.bias"),
    (r"(layer_scalar|correct_output_scale|sinks|attention_sink_bias)$", r"\1.weight"),
    (r"block_sparse_moe\.(gate|up|down)_proj", r"mlp.\1_proj"),
    (r"experts\.(gate_up|down)_proj$", r"experts.\1_proj.weight"),
    (r"experts\.down_proj_bias$", "experts.down_proj.bias"),
    (r"norm_attn_norm\.norm_2", "norm_attn_norm.norm_2"),
)  # fmt: skip
SKIPPED = r"cls\.|head\.|decoder\.bias|.*act_fn\.|.*\.norms\.[1-9]"


def converted(arch, tensors, config):
    """{GGUF name: shape} of {name of transformers: shape}."""
    names, found, stacked = gguf.get_tensor_name_map(ARCH[arch], 64), {}, {}
    for name, shape in tensors.items():
        if re.match(SKIPPED, name) or (arch == "bitnet" and name == "lm_head.weight"):
            continue
        name = name.removeprefix("model.") if arch == "modern-bert" else name
        for old, new in RENAMED:
            name = re.sub(old, new, name)
        expert = re.fullmatch(r".+layers\.(\d+)\..*experts\.\d+\.(\w+)\.weight", name)
        if expert is not None:
            kind = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}.get(expert[2], expert[2])
            merged = f"model.layers.{expert[1]}.mlp.experts.{kind}.weight"
            stacked[merged] = stacked.get(merged, 0) + 1
            found[merged] = shape
            continue
        for new, size in shaped(arch, name, tuple(shape), config):
            found[new] = size
    found = {name: (stacked[name], *shape) if name in stacked else shape for name, shape in found.items()}
    return {gguf_name(names, name): shape for name, shape in found.items()}


def gguf_name(names, name):
    if name.startswith(("blk.", "output", "token_embd", "altup")):
        return name
    found = names.get_name(name, try_suffixes=(".weight", ".bias"))
    assert found is not None, f"the gguf package has no name for {name}"
    return found


def shaped(arch, name, shape, c):
    """(name, shape) of each tensor that the converter makes of one."""
    layer = re.search(r"(?:layers|h)\.(\d+)\.", name)
    here = f"blk.{layer[1]}." if layer else ""
    if re.search(r"conv1d\.weight$|conv\.conv\.weight$", name):
        squeezed = tuple(size for size in shape if size != 1)
        return [(name, (1, squeezed[0], 1, squeezed[1]) if arch == "kimi-linear" else squeezed)]
    two = arch in ("mamba2", "falcon-h1", "granitehybrid", "nemotron_h", "nemotron_h_moe")
    if two and name.endswith((".A_log", ".D")):
        return [(name, (*shape, 1))]
    if two and re.search(r"(mamba|mixer)\.norm\.weight$", name):
        groups = c.get("mamba_n_groups") or c["n_groups"]
        return [(name, (groups, shape[0] // groups))]
    if name.endswith("kv_b_proj.weight") and arch != "minicpm3":
        heads, keys, values = c["num_attention_heads"], c["qk_nope_head_dim"], c["v_head_dim"]
        assert shape[0] == heads * (keys + values)
        return [
            (here + "attn_k_b.weight", (heads, shape[1], keys)),
            (here + "attn_v_b.weight", (heads, values, shape[1])),
        ]
    if name.endswith("in_proj_qkvz.weight"):
        inside = c["linear_num_value_heads"] * c["linear_value_head_dim"]
        return [
            (here + "attn_qkv.weight", (shape[0] - inside, shape[1])),
            (here + "attn_gate.weight", (inside, shape[1])),
        ]
    if re.search(r"(block_sparse_moe|shared_mlp)\.input_linear\.weight$", name):
        half = (*shape[:-2], shape[-2] // 2, shape[-1])
        ending = "_exps" if "moe" in name else "_shexp" if c.get("num_local_experts") else ""
        return [(f"{here}ffn_{each}{ending}.weight", half) for each in ("gate", "up")]
    if name.endswith("shared_mlp.output_linear.weight") and not c.get("num_local_experts"):
        return [(here + "ffn_down.weight", shape)]
    if name.endswith("experts.gate_up_proj.weight") and arch in ("gpt-oss", "llama4"):
        half = (shape[0], shape[2] // 2, shape[1])
        return [(f"{here}ffn_{each}_exps.weight", half) for each in ("gate", "up")]
    if name.endswith("experts.gate_up_proj_bias"):
        return [(f"{here}ffn_{each}_exps.bias", (shape[0], shape[1] // 2)) for each in ("gate", "up")]
    if name.endswith("experts.down_proj.weight") and arch in ("gpt-oss", "llama4"):
        return [(name, (shape[0], shape[2], shape[1]))]
    if arch == "dbrx" and ".experts.mlp." in name:
        experts, width = c["ffn_config"]["moe_num_experts"], c["ffn_config"]["ffn_hidden_size"]
        size = (experts, c["d_model"], width) if name.endswith("w2") else (experts, width, c["d_model"])
        return [(name + ".weight", size)]
    if arch == "gpt2" and re.search(r"(c_attn|c_proj|c_fc)\.weight$", name):
        return [(name, shape[::-1])]
    if re.search(r"altup_(unembed_)?projections\.0\.weight$", name):
        return [
            (
                ("altup_unembd_proj" if "unembed" in name else "altup_proj") + ".weight",
                (c["altup_num_inputs"] - 1, *shape),
            )
        ]
    if re.search(r"altup_(unembed_)?projections\.", name):
        return []
    if ".norms.0" in name:
        heads = c["num_attention_heads"] if "q_layernorm" in name else c["num_key_value_heads"]
        return [(name.replace("norms.0.", ""), (heads, *shape))]
    if name.endswith("router.scale"):
        return [(here + "ffn_gate_inp.scale", shape)]
    if name.endswith("router.per_expert_scale"):
        return [(here + "ffn_down_exps.scale", shape)]
    return [(name, shape)]


def sparse(config, tensors):
    """The same with experts in every layer: llama.cpp has no layers without in such an architecture."""
    count = config["num_hidden_layers"]
    whole = next(n for n in range(count) if any(f"layers.{n}.mlp.experts" in name for name in tensors))
    found = {name: shape for name, shape in tensors.items() if ".mlp." not in name}
    for name, shape in tensors.items():
        if f"layers.{whole}.mlp." in name:
            found |= {name.replace(f"layers.{whole}.", f"layers.{n}."): shape for n in range(count)}
    return found


# Metadata ----------------------------------------------------------------------------------------------------------


def first(c, *keys, default=None):
    return next((c[key] for key in keys if c.get(key) is not None), default)


def common(w, c):
    """What the converter writes for every model, of the keys that a config has."""
    rope = c.get("rope_parameters") or {}
    rope = rope.get("full_attention", rope)
    for value, write in (
        (first(c, "num_hidden_layers", "n_layer", "n_layers", "num_layers"), w.add_block_count),
        (first(c, "max_position_embeddings", "n_positions", "max_seq_len"), w.add_context_length),
        (first(c, "hidden_size", "n_embd", "d_model"), w.add_embedding_length),
        (first(c, "intermediate_size", "n_inner", "d_ff"), w.add_feed_forward_length),
        (first(c, "num_attention_heads", "n_head", "n_heads", "num_heads"), w.add_head_count),
        (first(c, "num_key_value_heads"), w.add_head_count_kv),
        (first(rope, "rope_theta", default=c.get("rope_theta")), w.add_rope_freq_base),
        (first(c, "rms_norm_eps", "norm_eps"), w.add_layer_norm_rms_eps),
        (first(c, "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"), w.add_layer_norm_eps),
        (first(c, "num_local_experts", "num_experts", "n_routed_experts"), w.add_expert_count),
        (first(c, "num_experts_per_tok", "num_experts_per_token", "moe_topk"), w.add_expert_used_count),
        (first(c, "n_group"), w.add_expert_group_count),
        (first(c, "topk_group"), w.add_expert_group_used_count),
        (first(c, "head_dim"), lambda size: (w.add_key_length(size), w.add_value_length(size))),
    ):
        if value is not None:
            write(value)
    size = first(c, "head_dim", default=0) or (
        first(c, "hidden_size", default=0) // (c.get("num_attention_heads") or 1)
    )
    part = first(rope, "partial_rotary_factor", default=c.get("partial_rotary_factor"))
    if part is not None and "qk_rope_head_dim" not in c:
        w.add_rope_dimension_count(int(size * part))


def window(w, c):
    if c.get("sliding_window"):
        w.add_sliding_window(c["sliding_window"])


def pattern(w, c):
    window(w, c)
    w.add_sliding_window_pattern([each == "sliding_attention" for each in c["layer_types"]])


def wide(w, c):
    w.add_expert_feed_forward_length(c["moe_intermediate_size"])
    if c.get("shared_expert_intermediate_size"):
        w.add_expert_shared_feed_forward_length(c["shared_expert_intermediate_size"])


def deepseek(w, c):
    wide(w, c)
    w.add_expert_shared_count(first(c, "n_shared_experts", "num_shared_experts", default=0))
    w.add_expert_weights_scale(float(c["routed_scaling_factor"]))
    if first(c, "norm_topk_prob", "moe_renormalize"):
        w.add_expert_weights_norm(True)
    if c["model_type"] != "deepseek_v2":
        w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def leading(w, c):
    deepseek(w, c)
    dense = c.get("first_k_dense_replace")
    w.add_leading_dense_block_count(c["mlp_layer_types"].index("sparse") if dense is None else dense)


def latent(w, c):
    w.add_head_count_kv(1)
    if c.get("q_lora_rank"):
        w.add_q_lora_rank(c["q_lora_rank"])
    w.add_kv_lora_rank(c["kv_lora_rank"])
    w.add_key_length(c["kv_lora_rank"] + c["qk_rope_head_dim"])
    w.add_value_length(c["kv_lora_rank"])
    w.add_key_length_mla(c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    w.add_value_length_mla(c["v_head_dim"])
    w.add_rope_dimension_count(c["qk_rope_head_dim"])


def deepseek2(w, c):
    latent(w, c)
    leading(w, c)


def glm_dsa(w, c):
    deepseek2(w, c)
    w.add_indexer_head_count(c["index_n_heads"])
    w.add_indexer_key_length(c["index_head_dim"])
    w.add_indexer_top_k(c["index_topk"])


def minicpm3(w, c):
    w.add_q_lora_rank(c["q_lora_rank"])
    w.add_kv_lora_rank(c["kv_lora_rank"])
    w.add_key_length(c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    w.add_rope_dimension_count(c["qk_rope_head_dim"])


def kimi_linear(w, c):
    inside = c.get("linear_attn_config") or {}
    kinds = [int(each != "linear_attention") for each in c["layer_types"]]
    latent(w, c)
    w.add_head_count_kv(kinds)
    w.add_ssm_conv_kernel(inside.get("short_conv_kernel_size") or c["linear_conv_kernel_dim"])
    w.add_kda_head_dim(inside.get("head_dim") or c["linear_head_dim"])
    leading(w, c)


def ssm(w, inner, state, kernel, rank, groups=None):
    w.add_ssm_inner_size(inner)
    w.add_ssm_state_size(state)
    w.add_ssm_conv_kernel(kernel)
    w.add_ssm_time_step_rank(rank)
    if groups is not None:
        w.add_ssm_group_count(groups)


def mamba(w, c):
    ssm(w, c["expand"] * c["hidden_size"], c["state_size"], c["conv_kernel"], c["time_step_rank"])
    w.add_head_count(0)
    w.add_feed_forward_length(0)
    w.add_ssm_dt_b_c_rms(c["model_type"] == "falcon_mamba")


def mamba2(w, c):
    ssm(w, c["expand"] * c["hidden_size"], c["state_size"], c["conv_kernel"], c["num_heads"], c["n_groups"])
    w.add_head_count(0)
    w.add_feed_forward_length(0)


def jamba(w, c):
    kinds = [n % c["attn_layer_period"] == c["attn_layer_offset"] for n in range(c["num_hidden_layers"])]
    w.add_head_count_kv([each * c["num_key_value_heads"] for each in kinds])
    ssm(w, c["mamba_expand"] * c["hidden_size"], c["mamba_d_state"], c["mamba_d_conv"], c["mamba_dt_rank"])


def hybrid(w, c, words=("attention", "full_attention")):
    kinds = [each in words for each in first(c, "layer_types", "layers_block_type")]
    w.add_head_count_kv([each * c["num_key_value_heads"] for each in kinds])
    return kinds


def granitehybrid(w, c):
    hybrid(w, c)
    scales(w, c)
    w.add_expert_shared_feed_forward_length(c["shared_intermediate_size"])
    heads = c["mamba_n_heads"]
    inner = c["mamba_expand"] * c["hidden_size"]
    ssm(w, inner, c["mamba_d_state"], c["mamba_d_conv"], heads, c["mamba_n_groups"])
    w.add_rope_scaling_finetuned(c.get("position_embedding_type") == "rope")


def falcon_h1(w, c):
    inner = c["mamba_d_ssm"] or c["mamba_expand"] * c["hidden_size"]
    ssm(w, inner, c["mamba_d_state"], c["mamba_d_conv"], c["mamba_n_heads"], c["mamba_n_groups"])


def nemotron_h(w, c):
    kinds = hybrid(w, c)
    w.add_block_count(len(kinds))
    fed = [each in ("moe", "mlp") for each in first(c, "layers_block_type", "layer_types")]
    width = first(c, "moe_intermediate_size") if "moe" in c["layers_block_type"] else c["intermediate_size"]
    w.add_feed_forward_length([each * width for each in fed])
    inner = c["mamba_num_heads"] * c["mamba_head_dim"]
    ssm(w, inner, c["ssm_state_size"], c["conv_kernel"], c["mamba_num_heads"], c["n_groups"])
    if "moe" in c["layers_block_type"]:
        wide(w, c)
        w.add_expert_shared_feed_forward_length(c["moe_shared_expert_intermediate_size"])
        w.add_expert_shared_count(c["n_shared_experts"])
        w.add_expert_weights_norm(c["norm_topk_prob"])
        w.add_expert_weights_scale(float(c["routed_scaling_factor"]))
        if c.get("moe_latent_size"):
            w.add_moe_latent_size(c["moe_latent_size"])


def qwen_linear(w, c):
    heads = c["linear_num_value_heads"]
    ssm(w, heads * c["linear_value_head_dim"], c["linear_key_head_dim"], c["linear_conv_kernel_dim"], heads,
        c["linear_num_key_heads"])  # fmt: skip
    w.add_full_attention_interval(4)
    if c.get("moe_intermediate_size"):
        wide(w, c)


def lfm2(w, c):
    hybrid(w, c)
    w.add_shortconv_l_cache(c["conv_L_cache"])
    if c.get("block_auto_adjust_ff_dim"):
        step = c["block_multiple_of"]
        w.add_feed_forward_length(
            -(-int(c["block_ffn_dim_multiplier"] * int(2 * c["intermediate_size"] / 3)) // step) * step
        )
    if c.get("moe_intermediate_size"):
        wide(w, c)
        w.add_leading_dense_block_count(c["num_dense_layers"])
        w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def scales(w, c):
    w.add_attention_scale(c["attention_multiplier"])
    w.add_embedding_scale(c["embedding_multiplier"])
    w.add_residual_scale(c["residual_multiplier"])
    w.add_logit_scale(c["logits_scaling"])
    if c.get("shared_intermediate_size"):
        w.add_expert_shared_feed_forward_length(c["shared_intermediate_size"])


def gemma3(w, c):
    pattern(w, c)
    w.add_final_logit_softcapping(c.get("final_logit_softcapping") or 0.0) if c.get("final_logit_softcapping") else None


def gemma3n(w, c):
    gemma3(w, c)
    w.add_altup_active_idx(c["altup_active_idx"])
    w.add_altup_num_inputs(c["altup_num_inputs"])
    w.add_embedding_length_per_layer_input(c["hidden_size_per_layer_input"])
    w.add_shared_kv_layers(c["num_kv_shared_layers"])
    w.add_activation_sparsity_scale([_quantile(each) for each in c["activation_sparsity_pattern"]])


def _quantile(share):
    from statistics import NormalDist

    return NormalDist().inv_cdf(share) if share else -math.inf


def gemma4(w, c):
    gemma3(w, c)
    kinds = [each == "sliding_attention" for each in c["layer_types"]]
    own = first(c.get("per_layer_config") or {}, str(kinds.index(False)), default={})
    size = first(own, "head_dim", default=c.get("global_head_dim"))
    heads = first(own, "num_key_value_heads", default=c.get("num_global_key_value_heads"))
    w.add_key_length(size)
    w.add_value_length(size)
    w.add_key_length_swa(c["head_dim"])
    w.add_value_length_swa(c["head_dim"])
    w.add_shared_kv_layers(c["num_kv_shared_layers"])
    w.add_embedding_length_per_layer_input(c["hidden_size_per_layer_input"] or 0)
    if heads is not None:
        w.add_head_count_kv([c["num_key_value_heads"] if each else heads for each in kinds])
    if c.get("use_double_wide_mlp"):
        own = c["num_hidden_layers"] - c["num_kv_shared_layers"]
        w.add_feed_forward_length([c["intermediate_size"] * (1 + (n >= own)) for n in range(len(kinds))])
    if c.get("moe_intermediate_size"):
        w.add_expert_feed_forward_length(c["moe_intermediate_size"])
        w.add_expert_used_count(c["top_k_experts"]) if c.get("top_k_experts") else None


def gpt_oss(w, c):
    window(w, c)
    w.add_expert_feed_forward_length(c["intermediate_size"])


def ernie(w, c):
    w.add_expert_count(c["moe_num_experts"])
    w.add_expert_used_count(c["moe_k"])
    w.add_interleave_moe_layer_step(c["moe_layer_interval"])
    w.add_leading_dense_block_count(c["moe_layer_start_index"])
    w.add_expert_feed_forward_length(c["moe_intermediate_size"])
    w.add_expert_shared_count(c["moe_num_shared_experts"])


def mimo(w, c):
    wide(w, c)
    w.add_expert_weights_norm(c["norm_topk_prob"])
    w.add_expert_weights_scale(float(c["routed_scaling_factor"]))
    w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    sliding = [each == "sliding_attention" for each in c["layer_types"]]
    w.add_head_count_kv([c["num_key_value_heads"] * (1 + each) for each in sliding])
    w.add_sliding_window(c["sliding_window"])
    w.add_sliding_window_pattern(sliding)
    w.add_value_length(c["v_head_dim"])
    w.add_float32("mimo2.attention.value_scale", c["attention_value_scale"])  # a key of newer versions of the package


def llama4(w, c):
    w.add_interleave_moe_layer_step(c["interleave_moe_layer_step"])
    w.add_feed_forward_length(c["intermediate_size_mlp"])
    w.add_expert_feed_forward_length(c["intermediate_size"])


def dbrx(w, c):
    attention, fed = c["attn_config"], c["ffn_config"]
    w.add_feed_forward_length(fed["ffn_hidden_size"])
    w.add_head_count_kv(attention["kv_n_heads"])
    w.add_expert_count(fed["moe_num_experts"])
    w.add_expert_used_count(fed["moe_top_k"])
    w.add_layer_norm_eps(1e-5)
    if attention.get("clip_qkv"):
        w.add_clamp_kqv(attention["clip_qkv"])


def mpt(w, c):
    w.add_feed_forward_length(4 * c["d_model"])
    inside = c["attn_config"]
    if inside.get("clip_qkv") is not None:
        w.add_clamp_kqv(inside["clip_qkv"])
    w.add_max_alibi_bias(float(inside["alibi_bias_max"]))


def starcoder(w, c):
    w.add_feed_forward_length(c["n_inner"] or 4 * c["n_embd"])
    w.add_head_count_kv(1 if c["multi_query"] else c["n_head"])


def modern_bert(w, c):
    w.add_sliding_window(c["local_attention"])
    w.add_sliding_window_pattern(3)
    w.add_causal_attention(False)


def afmoe(w, c):
    wide(w, c)
    window(w, c)
    w.add_expert_shared_count(c["num_shared_experts"])
    w.add_leading_dense_block_count(c["num_dense_layers"])
    w.add_expert_weights_scale(c["route_scale"])
    w.add_expert_weights_norm(True)
    w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def exaone_moe(w, c):
    leading(w, c)
    pattern(w, c)


def falcon(w, c):
    w.add_tensor_data_layout("jploski")
    w.add_feed_forward_length(first(c, "ffn_hidden_size", default=4 * c["hidden_size"]))
    w.add_head_count_kv(first(c, "num_kv_heads", default=1) if c["new_decoder_architecture"] else 1)


def four(w, c):
    w.add_feed_forward_length(4 * first(c, "hidden_size", "n_embd"))


def clip(w, c):
    if c.get("clip_qkv"):
        w.add_clamp_kqv(c["clip_qkv"])


def parallel(w, c):
    w.add_parallel_residual(c["use_parallel_residual"])


def t5(w, c):
    w.add_decoder_block_count(c["num_decoder_layers"])
    w.add_key_length(c["d_kv"])
    w.add_value_length(c["d_kv"])
    w.add_relative_attn_buckets_count(c["relative_attention_num_buckets"])


def softcaps(w, c):
    window(w, c)
    w.add_attn_logit_softcapping(c["attn_logit_softcapping"])
    w.add_final_logit_softcapping(c["final_logit_softcapping"])


def logit_scale(w, c):
    window(w, c)
    w.add_logit_scale(c["logit_scale"])


# (architecture, recorded checkpoint, changes of its config to what llama.cpp can hold, what else the converter writes)
LLAMA4 = {"attention_chunk_size": 8192, "no_rope_layer_interval": 4, "no_rope_layers": None, "layer_types": None}
NO_WINDOW = {"use_sliding_window": False, "sliding_window": None, "layer_types": None}
SPARSE = {"mlp_only_layers": [], "decoder_sparse_step": 1, **NO_WINDOW}
ALIKE = ("attention_in", "attention_out", "ssm_in", "ssm_out", "embedding", "lm_head", "key")
PLAIN = {f"{each}_multiplier": 1.0 for each in ALIKE} | {
    "mamba_chunk_size": 256,
    "mlp_multipliers": [1.0, 1.0],
    "ssm_multipliers": [1.0] * 5,
}
CASES = [
    ("llama", "llama", {}, None),
    ("llama", "llama-biases", {}, None),
    ("llama", "llama-tied", {}, None),
    ("llama", "mixtral", {}, None),
    ("mistral3", "llama", {}, None),
    ("llama4", "llama4", LLAMA4, llama4),
    ("qwen2", "qwen2", NO_WINDOW, None),
    ("qwen2vl", "qwen2", NO_WINDOW, None),
    ("qwen3", "qwen3", NO_WINDOW, None),
    ("qwen3vl", "qwen3", NO_WINDOW, None),
    ("qwen2moe", "qwen2_moe", SPARSE, wide),
    ("qwen3moe", "qwen3_moe", SPARSE | {"norm_topk_prob": True}, wide),
    ("qwen3vlmoe", "qwen3_moe-norm", SPARSE, wide),
    ("qwen3next", "qwen3_next", SPARSE | {"layer_types": ..., "norm_topk_prob": True}, qwen_linear),
    ("qwen35", "qwen3_5", {}, qwen_linear),
    ("qwen35moe", "qwen3_5-moe", {}, qwen_linear),
    ("gemma", "gemma", {}, None),
    ("gemma2", "gemma2", {}, softcaps),
    ("gemma3", "gemma3", {}, gemma3),
    ("gemma3n", "gemma3n", {}, gemma3n),
    ("gemma4", "gemma4", {}, gemma4),
    ("gemma4", "gemma4-moe", {}, gemma4),
    ("phi2", "phi", {}, None),
    ("phi3", "phi3", {}, window),
    ("phi3", "phi3-window", {}, window),
    ("phimoe", "phimoe", {}, window),
    ("gpt2", "gpt2", {}, None),
    ("gptneox", "gpt_neox", {}, parallel),
    ("gptneox", "gpt_neox-serial", {}, parallel),
    ("bloom", "bloom", {}, four),
    ("mpt", "mpt", {}, mpt),
    ("falcon", "falcon-7b", {}, falcon),
    ("falcon", "falcon-40b", {}, falcon),
    ("falcon", "falcon-11b", {}, falcon),
    ("starcoder2", "starcoder2", {}, None),
    ("stablelm", "stablelm", {}, parallel),
    ("stablelm", "stablelm-serial", {}, parallel),
    ("olmo", "olmo", {}, clip),
    ("olmo2", "olmo2", {}, None),
    ("olmo2", "olmo3", {}, pattern),
    ("olmoe", "olmoe", {"norm_topk_prob": False}, clip),
    ("command-r", "cohere", {}, logit_scale),
    ("command-r", "cohere-qk-norm", {}, logit_scale),
    ("cohere2", "cohere2", {}, logit_scale),
    ("granite", "granite", {}, scales),
    ("granitemoe", "granitemoe", {}, scales),
    ("granitemoe", "granitemoeshared", {}, scales),
    ("granitehybrid", "granitemoehybrid", {"mamba_chunk_size": 256}, granitehybrid),
    ("granitehybrid", "granitemoehybrid-dense", {"mamba_chunk_size": 256}, granitehybrid),
    ("smollm3", "smollm3", NO_WINDOW | {"no_rope_layer_interval": 4, "no_rope_layers": None}, None),
    ("exaone4", "exaone4", {}, pattern),
    ("exaone4", "exaone4-full", {}, None),
    ("glm4", "glm4", {}, None),
    ("glm4moe", "glm4_moe", {}, leading),
    ("gpt-oss", "gpt_oss", {}, gpt_oss),
    ("seed_oss", "seed_oss", {}, None),
    ("seed_oss", "seed_oss-biases", {}, None),
    ("nemotron", "nemotron", {}, None),
    ("nemotron_h_moe", "nemotron_h", {"chunk_size": 128}, nemotron_h),
    ("nemotron_h_moe", "nemotron_h-latent", {"chunk_size": 128}, nemotron_h),
    ("arcee", "arcee", {}, None),
    ("apertus", "apertus", {}, None),
    ("ernie4_5", "ernie4_5", {}, None),
    ("ernie4_5-moe", "ernie4_5_moe", {}, ernie),
    ("hunyuan-moe", "hunyuan_v1_moe", {}, None),
    ("dots1", "dots1", {"sliding_window": None, "layer_types": None}, leading),
    ("minimax-m2", "minimax_m2", {}, None),
    ("mimo2", "mimo_v2_flash", {}, mimo),
    ("dbrx", "dbrx", {}, dbrx),
    ("deepseek2", "deepseek_v2", {}, deepseek2),
    ("deepseek2", "deepseek_v2-groups", {}, deepseek2),
    ("deepseek2", "deepseek_v3", {"num_mtp_layers": 0, "num_nextn_predict_layers": 0}, deepseek2),
    ("deepseek2", "deepseek_v3-plain", {"num_mtp_layers": 0, "num_nextn_predict_layers": 0}, deepseek2),
    ("glm-dsa", "glm_moe_dsa", {}, glm_dsa),
    ("minicpm3", "minicpm3", {"head_dim": None}, minicpm3),
    ("kimi-linear", "kimi_linear", {}, kimi_linear),
    ("mamba", "mamba", {}, mamba),
    ("mamba", "falcon_mamba", {}, mamba),
    ("mamba2", "mamba2", {"chunk_size": 256}, mamba2),
    ("jamba", "jamba", {}, jamba),
    ("falcon-h1", "falcon_h1", PLAIN, falcon_h1),
    ("falcon-h1", "falcon_h1-norm", PLAIN, falcon_h1),
    ("lfm2", "lfm2", {}, lfm2),
    ("lfm2moe", "lfm2_moe", {}, lfm2),
    ("starcoder", "gpt_bigcode", {}, starcoder),
    ("starcoder", "gpt_bigcode", {"scale_attn_weights": True}, starcoder),
    ("starcoder", "gpt_bigcode-mha", {"scale_attn_weights": True}, starcoder),
    ("hunyuan-dense", "hunyuan_v1_dense", {}, None),
    ("exaone", "exaone", {}, None),
    ("exaone-moe", "exaone_moe", {}, exaone_moe),
    ("jais2", "jais2", {}, None),
    ("afmoe", "afmoe", {"global_attn_every_n_layers": 4, "layer_types": None}, afmoe),
    ("bitnet", "bitnet", {"tie_word_embeddings": True}, None),
    ("bert", "bert", {}, None),
    ("nomic-bert", "nomic_bert", {"head_dim": None}, None),
    ("modern-bert", "modernbert", {}, modern_bert),
    ("t5", "t5", {}, t5),
    ("t5", "t5-v1.1", {}, t5),
]


def made(path, arch, folder, changes, more, names=None):
    """(config, {name: shape}) of a GGUF file of a recorded checkpoint."""
    if arch not in ARCH:
        pytest.skip(f"gguf {arch}: not known to this version of the package")
    config = read(RECORDED / folder / "config.json")
    kept = {key: value for key, value in changes.items() if value is not ...}
    config = {**config, **kept}
    tensors = {name: shape for name, (_, shape) in table(RECORDED / folder / "model.safetensors").items()}
    tensors = sparse(config, tensors) if "mlp_only_layers" in changes else tensors
    tensors = converted(arch, tensors, config)
    tensors = tensors if names is None else names(tensors)
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name("small")
    common(writer, config)
    if more is not None:
        more(writer, config)
    for name, shape in tensors.items():
        writer.add_tensor(name, numpy.zeros(shape, dtype="float32" if len(shape) < 2 else "float16"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return config, tensors


def case(arch, folder):
    return next(row for row in CASES if row[:2] == (arch, folder))


@pytest.mark.parametrize(("arch", "folder", "changes", "more"), CASES, ids=[f"{a}-{b}" for a, b, *_ in CASES])
def test_architectures(arch, folder, changes, more, tmp_path):
    path = tmp_path / "x.gguf"
    config, tensors = made(path, arch, folder, changes, more)
    found, data = inspect(path), lmcalc.report(path).to_dict()
    assert found["differences"] == [], found["differences"][:5]
    assert not any("not read:" in note for note in data["notes"]), data["notes"]
    assert found["params"]["total"] + found["params"]["buffers"] == sum(map(math.prod, tensors.values()))
    expected = lmcalc.report(config).to_dict()
    assert data["cache"] == expected["cache"]
    if arch.endswith("bert"):  # files of encoders have no head
        assert data["params"]["total"] == found["params"]["total"] and any("no head" in note for note in data["notes"])
        return
    assert data["params"] == expected["params"]
    if arch != "apertus":  # its activation's two weights are metadata
        assert found["params"]["total"] == data["params"]["total"]
        assert data["weights"]["bytes"] == found["bytes"]["total"] - 4 * found["params"]["buffers"]
    for phase in ("prefill", "decode"):
        assert data[phase]["flops"] == expected[phase]["flops"]


def test_every_architecture_is_tried():
    assert {arch for arch, *_ in CASES} | {"nemotron_h"} == set(ARCHITECTURES)
    assert {lmcalc_type for lmcalc_type, _, _ in ARCHITECTURES.values()} <= set(TABLES)


# Other forms of the same -------------------------------------------------------------------------------------------


def joined(*parts, into, axis=0):
    """A function on {name: shape} that joins tensors of a layer along an axis."""

    def names(tensors):
        found = dict(tensors)
        for name in tensors:
            layer = re.match(r"blk\.\d+\.", name)
            own = [f"{layer[0]}{part}" for part in parts] if layer and name == f"{layer[0]}{parts[0]}" else []
            if own and all(each in tensors for each in own):
                shapes = [found.pop(each) for each in own]
                shape = list(shapes[0])
                shape[axis] = sum(each[axis] for each in shapes)
                found[layer[0] + into] = tuple(shape)
        return found

    return names


def unsplit(tensors):
    """Keys and values of a latent as one matrix, as files had them before 2025."""
    found = {}
    for name, shape in tensors.items():
        if name.endswith("attn_k_b.weight"):
            heads, latent, keys = shape
            values = tensors[name.replace("attn_k_b", "attn_v_b")][1]
            found[name.replace("attn_k_b", "attn_kv_b")] = (heads * (keys + values), latent)
        elif not name.endswith("attn_v_b.weight"):
            found[name] = shape
    return found


FORMS = {
    "one matrix for keys and values of latents": (*case("deepseek2", "deepseek_v3"), unsplit),
    "the same without a latent of queries": (*case("deepseek2", "deepseek_v2"), unsplit),
    "the same with a shared latent": (*case("glm-dsa", "glm_moe_dsa"), unsplit),
    "queries, keys and values in one": (
        *case("llama", "llama"), joined("attn_q.weight", "attn_k.weight", "attn_v.weight", into="attn_qkv.weight")),
    "gate and up of experts in one": (
        *case("qwen35moe", "qwen3_5-moe"),
        joined("ffn_gate_exps.weight", "ffn_up_exps.weight", into="ffn_gate_up_exps.weight", axis=1)),
    "all projections of a delta rule in one": (
        *case("qwen3next", "qwen3_next"), joined("attn_qkv.weight", "attn_gate.weight", into="ssm_in.weight")),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms(form, tmp_path):
    *given, names = FORMS[form]
    config, _ = made(tmp_path / "x.gguf", *given)
    made(tmp_path / "y.gguf", *given, names)
    one, other = (inspect(tmp_path / name) for name in ("x.gguf", "y.gguf"))
    assert one["differences"] == other["differences"] == [] and other["tensors"] < one["tensors"]
    assert one["params"] == other["params"] and one["bytes"] == other["bytes"]
    assert lmcalc.report(tmp_path / "y.gguf").to_dict()["params"] == lmcalc.report(config).to_dict()["params"]


def test_a_file_with_more_than_its_architecture(tmp_path):
    """One tensor renamed, dropped, transposed: named in each architecture."""
    arch, folder, changes, more = case("deepseek2", "deepseek_v3")
    name = "blk.1.attn_k_b.weight"

    def differences(change):
        made(tmp_path / "x.gguf", arch, folder, changes, more, change)
        return {row["tensor"]: row["problem"] for row in inspect(tmp_path / "x.gguf")["differences"]}

    made(tmp_path / "x.gguf", arch, folder, changes, more)
    shape = inspect_shape(tmp_path / "x.gguf", name)
    assert differences(lambda t: {k: v for k, v in t.items() if k != name})[name].startswith("missing; needed: shape [")
    turned = (shape[0], shape[2], shape[1])
    assert differences(lambda t: t | {name: turned}) == {name: f"shape {list(turned)}; needed: {list(shape)}"}
    found = differences(lambda t: {("more.weight" if k == name else k): v for k, v in t.items()})
    assert found.keys() == {name, "more.weight"} and found["more.weight"] == "not used by the model"


def inspect_shape(path, name):
    from lmcalc import headers

    return headers.read(path).tensors[name].shape


def test_prediction_modules(tmp_path):
    """A block behind the last: its own weights are counted apart, copies of the table and the head as copies."""
    arch, folder, changes, more = case("glm4moe", "glm4_moe")

    def names(tensors):
        last = max(int(name.split(".")[1]) for name in tensors if name.startswith("blk."))
        vocabulary, width = tensors["token_embd.weight"]
        found = tensors | {
            name.replace(f"blk.{last}.", f"blk.{last + 1}."): shape
            for name, shape in tensors.items() if name.startswith(f"blk.{last}.")
        }  # fmt: skip
        at = f"blk.{last + 1}.nextn."
        return found | {
            at + "eh_proj.weight": (width, 2 * width), at + "enorm.weight": (width,), at + "hnorm.weight": (width,),
            at + "shared_head_norm.weight": (width,), at + "embed_tokens.weight": (vocabulary, width),
            at + "shared_head_head.weight": (vocabulary, width),
        }  # fmt: skip

    def with_module(w, c):
        more(w, c)
        w.add_block_count(c["num_hidden_layers"] + 1)
        w.add_nextn_predict_layers(1)

    config, _ = made(tmp_path / "x.gguf", arch, folder, changes | {"num_nextn_predict_layers": 1}, with_module, names)
    found, data = inspect(tmp_path / "x.gguf"), lmcalc.report(tmp_path / "x.gguf").to_dict()
    expected = lmcalc.report(config).to_dict()
    assert found["differences"] == [] and data["params"] == expected["params"] and data["params"]["mtp"] > 0
    assert found["params"]["mtp"] == data["params"]["mtp"] and found["params"]["total"] == data["params"]["total"]
    assert [row["of"] for row in found["duplicates"]] == ["token_embd.weight", "output.weight"]


# Metadata that lie -------------------------------------------------------------------------------------------------

LIES = {
    "block_count": (0, 2**31, "ten", [1, 2], -1.5),
    "nextn_predict_layers": (5,),
    "embedding_length": (0, "wide"),
    "attention.head_count": (0, [4, 2]),
    "attention.head_count_kv": ([1, 2, 3], [0, "a"]),
    "feed_forward_length": ([1.5, 2.5],),
    "expert_count": (2**31, "many"),
    "rope.dimension_count": (2**31, "all"),
    "attention.sliding_window_pattern": ([True], "LLLG", 0),
    "ssm.inner_size": (0, 7, "x"),
    "ssm.time_step_rank": (0,),
    "activation_sparsity_scale": ([math.nan, 0.0, 0.0], "x"),
    "attention.key_length_mla": (1,),
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in LIES.items() for value in values])
@pytest.mark.parametrize("arch", ["llama", "gemma3n", "gemma4", "deepseek2", "jamba", "mamba2", "qwen3next", "cohere2"])
def test_metadata_that_lie(arch, key, value, tmp_path):
    """Either a model, or one line that names the file."""
    _, folder, changes, more = next(row for row in CASES if row[0] == arch)

    def lying(w, c):
        if more is not None:
            more(w, c)
        name, kind = f"{arch}.{key}", gguf.GGUFValueType
        if isinstance(value, list):
            w.add_array(name, value) if not isinstance(value[-1], str) else w.add_array(name, ["a", "b"])
        elif isinstance(value, str):
            w.add_string(name, value)
        else:
            w.add_key_value(name, value, kind.FLOAT32 if isinstance(value, float) else kind.UINT32)

    made(tmp_path / "x.gguf", arch, folder, changes, lying)
    try:
        lmcalc.load(tmp_path / "x.gguf")
    except lmcalc.InputError as error:
        assert "\n" not in str(error) and "x.gguf" in str(error)
    inspect(tmp_path / "x.gguf")


# Folders -----------------------------------------------------------------------------------------------------------


def test_a_folder_that_holds_a_gguf_file(tmp_path, capsys):
    made(tmp_path / "a-F16.gguf", *case("llama", "llama"))
    alone = lmcalc.report(tmp_path / "a-F16.gguf").to_dict()
    assert cli.main(["report", str(tmp_path), "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["params"] == alone["params"]
    (tmp_path / "mmproj-a.gguf").write_bytes(b"of pictures")
    (tmp_path / "README.md").write_text("#")
    assert lmcalc.report(tmp_path).to_dict() | {"model": 0} == alone | {"model": 0}
    assert inspect(tmp_path)["differences"] == []
    made(tmp_path / "b-F16.gguf", *case("qwen2", "qwen2"))
    for command in ("report", "inspect"):
        assert cli.main([command, str(tmp_path)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and "holds a-F16.gguf, b-F16.gguf" in err
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 1}))
    assert lmcalc.load(tmp_path).fields["n_layers"] == 1  # a config says more


def test_a_folder_that_holds_a_file_in_parts(tmp_path):
    arch, folder, changes, more = case("llama", "llama")
    _, tensors = made(tmp_path / "whole.gguf", arch, folder, changes, more)
    whole = lmcalc.report(tmp_path / "whole.gguf").to_dict()
    (tmp_path / "whole.gguf").unlink()
    for number in range(3):

        def part(w, c, number=number):
            w.add_uint16("split.no", number)
            w.add_uint16("split.count", 3)
            w.add_int32("split.tensors.count", len(tensors))

        some = dict(list(tensors.items())[number::3])
        made(tmp_path / f"x-0000{number + 1}-of-00003.gguf", arch, folder, changes, part, lambda _, some=some: some)
    assert lmcalc.report(tmp_path).to_dict() | {"model": 0} == whole | {"model": 0}
    found = inspect(tmp_path)
    assert found["files"] == 3 and found["differences"] == []
    assert inspect(tmp_path / "x-00002-of-00003.gguf")["params"] == found["params"]
    (tmp_path / "x-00001-of-00003.gguf").unlink()
    with pytest.raises(lmcalc.InputError, match=r"holds x-00002-of-00003\.gguf, x-00003-of-00003\.gguf; allowed: one"):
        lmcalc.load(tmp_path)
