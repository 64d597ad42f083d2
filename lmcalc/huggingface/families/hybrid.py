"""Hybrids of attention and recurrences: one short function for each `model_type`."""

from ..layers import ROTARY_FIELDS, combined, numbers_of, rotary
from .common import (
    ACTIVATIONS,
    LAYER_KEYS,
    PLAIN,
    bias,
    deepseek_experts,
    experts,
    first_dense,
    flag,
    gated,
    grouped,
    heads,
    llama_like,
    mixer_types,
    with_experts,
    with_mixers,
)
from .latent import latent
from .moe import qwen_sparse
from .recurrent import KINDS, biases, inner, limit, mamba_sizes, size_or_auto

LINEAR, FULL = KINDS
SLIDING = "sliding_attention"


def mamba2_sizes(c, found, low=0.0):
    """Mamba-2 as most hybrids write it in their configs."""
    number, size = c.need("size", "mamba_n_heads"), size_or_auto(c, "mamba_d_head")
    inside = c.need("ratio", "mamba_expand") * found["d_model"]
    return {
        "n_mixer_heads": number, "mixer_head_dim": size or int(inside) // number,
        "n_mixer_groups": c.need("size", "mamba_n_groups"), "state_dim": c.need("size", "mamba_d_state"),
        "conv_kernel": c.need("size", "mamba_d_conv"), "chunk_size": c.need("size", "mamba_chunk_size"),
        "time_step_limit": limit(c, "time_step_limit", low=low), "conv_bias": flag(c, "mamba_conv_bias", None, False),
        "mixer_bias": biases(c.get("bool", "mamba_proj_bias"), c.get("bool", "mamba_proj_bias")),
    }  # fmt: skip


def jamba(c):
    found = grouped(c) | {"norm": "rmsnorm", "ffn": gated(c), "positions": "none"}
    c.skip(
        "use_mamba_kernels",
        "use_mambapy",
        "use_associative_scan",
        "num_logits_to_keep",
        "calc_logits_for_entire_prompt",
    )
    mixture = experts(c, "intermediate_size", router="softmax")
    count, mamba = (
        found["n_layers"],
        mamba_sizes(c, found, "mamba_d_state", "mamba_dt_rank", "mamba_d_conv", "mamba_expand"),
    )
    mamba |= {
        "conv_bias": flag(c, "mamba_conv_bias", None, False), "mixer_norm": "selected",
        "mixer_bias": biases(c.get("bool", "mamba_proj_bias"), c.get("bool", "mamba_proj_bias")),
    }  # fmt: skip
    c.only("mamba_inner_layernorms", True, "the class in transformers has them")
    every, at = c.need("size", "attn_layer_period"), c.need("count", "attn_layer_offset")
    types = [FULL if layer % every == at else LINEAR for layer in range(count)]
    every, at = c.need("size", "expert_layer_period"), c.need("count", "expert_layer_offset")
    sparse = [mixture["n_experts"] > 1 and layer % every == at for layer in range(count)]
    found, way = with_mixers(found, types, {LINEAR: ({"mixer": "mamba"}, mamba)})
    return with_experts(found, mixture, sparse, way)


def bamba(c):
    found = llama_like(c)
    c.skip("num_logits_to_keep", "z_loss_coefficient", "use_mamba_kernels", "layer_types", "layers_block_type")
    half = found["head_dim"] // 2  # whatever the config says
    found |= {"rotary_dim": half, "attention_bias": bias(c), "ffn_bias": c.get("bool", "mlp_bias") or None}
    attention = numbers_of(c, "attn_layer_indices") or ()
    types = [FULL if layer in attention else LINEAR for layer in range(found["n_layers"])]
    mamba = mamba2_sizes(c, found)
    found, way = with_mixers(found, types, {LINEAR: ({"mixer": "mamba2"}, mamba)})
    return found | combined(way)


def granitemoehybrid(c):
    found = grouped(c) | {
        "norm": "rmsnorm", "ffn": gated(c), "attention_bias": bias(c),
        "embedding_scale": c.get("positive", "embedding_multiplier"),
        "residual_scale": c.get("positive", "residual_multiplier"),
        "score_scale": c.get("positive", "attention_multiplier"),
        "logit_scale": 1 / c.need("positive", "logits_scaling"),
    }  # fmt: skip
    turned = c.get("text", "position_embedding_type") == "rope"
    rope = rotary(c, found)
    found |= rope if turned else {"positions": "none"}
    count, shared = found["n_layers"], c.need("size", "shared_intermediate_size")
    types = mixer_types(c, KINDS, [LINEAR] * count, "layer_types", "layers_block_type")
    mamba = mamba2_sizes(c, found)
    c.skip("normalization_function", "attention_head_type", "init_method")
    found, way = with_mixers(found, types, {LINEAR: ({"mixer": "mamba2"}, mamba)})
    number = c.get("count", "num_local_experts")
    c.get("count", "num_experts_per_tok")
    if not number:
        return found | {"d_ff": shared} | combined(way)
    mixture = experts(c, "intermediate_size", router="topk_softmax", shared_d_ff=shared)
    return with_experts(found, mixture, [True] * count, way)


def falcon_h1(c):
    found = llama_like(c)
    size = found["head_dim"]
    key, ssm = c.get("positive", "key_multiplier") or 1.0, c.get("list", "ssm_multipliers") or [1.0] * 5
    found |= {
        "mixer": "attention_and_mamba2",
        "attention_bias": bias(c),
        "ffn_bias": c.get("bool", "mlp_bias") or None,
        "embedding_scale": _factor(c, "embedding_multiplier"),
        "logit_scale": _factor(c, "lm_head_multiplier"),
        "score_scale": None if key == 1 else key * size**-0.5,  # of keys in the published code
        "attention_in_scale": _factor(c, "attention_in_multiplier"),
        "attention_out_scale": _factor(c, "attention_out_multiplier"),
        "mixer_in_scale": _factor(c, "ssm_in_multiplier"),
        "mixer_out_scale": _factor(c, "ssm_out_multiplier"),
        "mixer_scales": None if all(each == 1 for each in ssm) else ssm,
    }
    c.skip("num_logits_to_keep", "mamba_use_mlp", "layers_block_type", "layer_types", "attn_layer_indices")
    width, mamba = c.get("size", "mamba_d_ssm"), mamba2_sizes(c, found)
    if width is not None and not isinstance(c.data.get("mamba_d_head"), int):
        mamba["mixer_head_dim"] = width // mamba["n_mixer_heads"]
    fed = c.get("list", "mlp_multipliers") or [1.0, 1.0]
    inputs, out = c.get("bool", "mamba_proj_bias"), c.get("bool", "projectors_bias")
    normed, first = c.get("bool", "mamba_rms_norm"), c.get("bool", "mamba_norm_before_gate")
    return found | mamba | {
        "ffn_scales": None if all(each == 1 for each in fed) else fed, "mixer_bias": biases(inputs, out),
        "mixer_norm": ("before_gate" if first else "gated") if normed else "none",
    }  # fmt: skip


def _factor(c, key):
    """A factor, or None for 1."""
    found = c.get("positive", key)
    return None if found == 1 else found


def nemotron_h(c):
    pattern, types = c.get("text", "hybrid_override_pattern"), c.get("list", "layers_block_type", "layer_types")
    if types is None:
        letters = {"M": LINEAR, "*": FULL, "-": "mlp", "E": "moe"}
        if set(pattern or "") - set(letters):
            c.refuse("hybrid_override_pattern", pattern, "the letters M, *, - and E")
        types = [letters[each] for each in pattern] if pattern else [LINEAR, "moe", FULL, "mlp"]
    c.skip(*LAYER_KEYS)
    found = heads(c, len(types)) | {"norm": "rmsnorm", "positions": "none", "attention_bias": bias(c)}
    types = mixer_types(c, (LINEAR, FULL, "mlp", "moe"), types)
    found["window"] = c.get("size", "sliding_window")
    activation = ACTIVATIONS[c.need(PLAIN, "mlp_hidden_act")][0]
    mamba = {
        "n_mixer_heads": c.need("size", "mamba_num_heads"), "mixer_head_dim": c.need("size", "mamba_head_dim"),
        "n_mixer_groups": c.need("size", "mamba_n_groups", "n_groups"), "state_dim": c.need("size", "ssm_state_size"),
        "conv_kernel": c.need("size", "mamba_d_conv", "conv_kernel"),
        "chunk_size": c.need("size", "mamba_chunk_size", "chunk_size"),
        "conv_bias": flag(c, "use_conv_bias", None, False), "mixer_activation": inner(c, "mamba_hidden_act"),
        "mixer_bias": biases(c.get("bool", "mamba_proj_bias"), c.get("bool", "mamba_proj_bias")),
        "time_step_limit": limit(c, "mamba_dt_limit", low=c.get("number", "mamba_dt_min", "time_step_min")),
    }  # fmt: skip
    c.skip(*NEMOTRON_H)
    if not c.get("count", "num_nextn_predict_layers"):
        c.skip("mtp_layers_block_type", "mtp_hybrid_override_pattern")
    feed = {"d_ff": c.get("size", "intermediate_size"), "ffn_bias": c.get("bool", "mlp_bias") or None}
    mixture = deepseek_experts(c) | {"expert_latent": c.get("size", "moe_latent_size")}
    count = mixture.pop("n_shared_experts")
    mixture["shared_d_ff"] = c.get("size", "moe_shared_expert_intermediate_size") if count else None
    none = {"mixer": "none", "ffn": activation}
    found, way = with_mixers(found, types, {
        LINEAR: ({"mixer": "mamba2", "ffn": "none"}, mamba), FULL: ({"ffn": "none"}, {}),
        "mlp": (none | {"n_experts": 0} if "moe" in types else none, feed), "moe": (none, mixture),
    })  # fmt: skip
    return found | combined(way)


NEMOTRON_H = (
    "expand",
    "mamba_expand",
    "time_step_limit",
    "time_step_max",
    "time_step_floor",
    "mamba_dt_max",
    "mamba_dt_init_floor",
    "use_mamba_kernels",
    "mamba_ssm_cache_dtype",
    "first_k_dense_replace",
    "moe_shared_expert_overlap",
    "num_logits_to_keep",
    "time_step_rank",
    "rescale_prenorm_residual",
    "residual_in_fp32",
    "use_bias",
    "num_query_groups",
    "rope_theta",
    "partial_rotary_factor",
)


def gated_delta(c, found):
    """Gated DeltaNet as Qwen's configs write it."""
    return {
        "n_mixer_heads": c.need("size", "linear_num_value_heads"),
        "n_mixer_groups": c.need("size", "linear_num_key_heads"),
        "mixer_head_dim": c.need("size", "linear_key_head_dim"),
        "mixer_value_dim": c.need("size", "linear_value_head_dim"),
        "conv_kernel": c.need("size", "linear_conv_kernel_dim"),
    }


def qwen3_next(c):
    mixture = experts(
        c,
        router="softmax",
        router_normalized=c.get("bool", "norm_topk_prob") or None,
        shared_d_ff=c.need("size", "shared_expert_intermediate_size"),
        shared_gate=True,
    )
    return _qwen_linear(c, grouped(c), mixture, qwen_sparse(c, c.need("size", "num_hidden_layers")))


def qwen3_5(c):
    return _qwen_linear(c, grouped(c), {}, [])


def qwen3_5_moe(c):
    mixture = experts(
        c, router="topk_softmax", shared_d_ff=c.need("size", "shared_expert_intermediate_size"), shared_gate=True
    )
    c.skip("intermediate_size")
    return _qwen_linear(c, heads(c), mixture, [True])


def _qwen_linear(c, found, mixture, sparse):
    """Three layers of Gated DeltaNet, one of gated attention."""
    found |= {
        "norm": "rmsnorm_plus_one",
        "ffn": gated(c),
        "attention_bias": bias(c),
        "qk_norm": "head",
        "attention_gate": True,
        **rotary(c, found),
    }
    modules = c.get("count", "mtp_num_hidden_layers")
    c.skip("mtp_use_dedicated_embeddings", "mlp_only_layers")
    c.only("attn_output_gate", True, "the class in transformers knows no other")
    c.only("output_gate_type", "swish", "the class in transformers knows no other")
    found["n_mtp_layers"] = modules or None
    every = c.get("size", "full_attention_interval") or 4
    default = [LINEAR if (layer + 1) % every else FULL for layer in range(found["n_layers"])]
    types = mixer_types(c, KINDS, default, "layer_types")
    found, way = with_mixers(found, types, {LINEAR: ({"mixer": "gated_delta"}, gated_delta(c, found))})
    return with_experts(found, mixture, sparse, way)


def olmo_hybrid(c):
    found = grouped(c) | {"norm": "rmsnorm", "ffn": gated(c), "attention_bias": bias(c), "qk_norm": "full"}
    table = c.inside("rope_parameters")
    turned = table is None or table.get("positive", "rope_theta") is not None
    rope = rotary(c, found)
    found |= rope if turned else {"positions": "none"}
    count, number = found["n_layers"], found["n_heads"]
    default = [FULL if layer % 4 == 3 else LINEAR for layer in range(count)]
    if FULL not in default:
        default[-1] = FULL
    keys = c.get("size", "linear_num_key_heads") or number
    size = c.get("size", "linear_key_head_dim") or int(0.75 * found["d_model"] / keys)
    delta = {
        "n_mixer_heads": c.get("size", "linear_num_value_heads") or number, "n_mixer_groups": keys,
        "mixer_head_dim": size, "mixer_value_dim": c.get("size", "linear_value_head_dim") or 2 * size,
        "conv_kernel": c.need("size", "linear_conv_kernel_dim"), "mixer_norm_eps": 1e-5,
        "beta_scale": 2.0 if c.get("bool", "linear_allow_neg_eigval") else None,
    }  # fmt: skip
    c.skip("linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max", "linear_dt_init_floor")
    c.only("linear_use_gate", True, "the class in transformers knows no other")
    types = mixer_types(c, KINDS, default, "layer_types")
    found, (types, kinds) = with_mixers(found, types, {LINEAR: ({"mixer": "gated_delta"}, delta)})
    return found | combined(
        (types, {FULL: {"norm_placement": "output"}, **{k: v for k, v in kinds.items() if k != FULL}})
    )


def lfm2(c):
    found = _lfm2(c)
    width = c.need("size", "block_ff_dim", "intermediate_size")
    if c.get("bool", "block_auto_adjust_ff_dim"):
        multiple = c.need("size", "block_multiple_of")
        width = int((c.get("ratio", "block_ffn_dim_multiplier") or 1.0) * int(2 * width / 3))
        width = multiple * -(-width // multiple)
    c.skip("block_multiple_of", "block_ffn_dim_multiplier")
    attention = numbers_of(c, "full_attn_idxs")
    default = [FULL if attention is None or layer in attention else "conv" for layer in range(found["n_layers"])]
    found, way = _with_convolutions(c, found | {"d_ff": width}, default)
    return found | combined(way)


def lfm2_moe(c):
    found = _lfm2(c) | {"d_ff": c.need("size", "intermediate_size")}
    normalized = c.get("bool", "norm_topk_prob")
    mixture = experts(
        c, router="sigmoid", router_bias="correction" if c.get("bool", "use_expert_bias") else None,
        router_normalized=normalized or None, router_eps=1e-6 if normalized else None,
        router_scale=c.get("positive", "routed_scaling_factor"),
    )  # fmt: skip
    found, way = _with_convolutions(c, found, c.need("list", "layer_types"))
    dense = c.get("count", "num_dense_layers") or 0
    return with_experts(found, mixture, [layer >= dense for layer in range(found["n_layers"])], way)


def lfm3(c):
    found, width = _lfm2(c), c.need("size", "intermediate_size")
    found = {key: value for key, value in found.items() if key not in ROTARY_FIELDS}
    found |= {"d_ff": width, "attention_bias": bias(c)}
    if c.get("bool", "use_sandwich_norm"):
        found["norm_placement"] = "double"
    if c.get("bool", "use_attention_gate"):
        found |= {"attention_gate": True, "attention_gate_by_head": True, "attention_gate_bias": "none"}
    count = found["n_layers"]
    default = [FULL if layer % 4 == 2 else SLIDING if layer and layer % 4 == 0 else "conv" for layer in range(count)]
    types = mixer_types(c, ("conv", FULL, SLIDING), default, "layer_types")
    rope = {kind: rotary(c, found, kind) for kind in (FULL, SLIDING)}
    rope[SLIDING]["window"] = c.get("size", "sliding_window")
    mixers = ["conv" if each == "conv" else FULL for each in types]
    found, way = with_mixers(found, mixers, {"conv": _convolutions(c)})
    return found | combined(way, (types, {"conv": {}, **rope}))


def _lfm2(c):
    found = heads(c)
    tied = c.get("bool", "tie_embedding", "tie_word_embeddings")
    c.skip("block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu",
           "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "use_pos_enc", "theta",
           "num_heads")  # fmt: skip
    return found | {"norm": "rmsnorm", "ffn": "swiglu", "qk_norm": "head", "tied": tied, **rotary(c, found)}


def _with_convolutions(c, found, default):
    """Short convolutions in the layers that are no attention."""
    types = mixer_types(c, ("conv", FULL), default, "layer_types")
    return with_mixers(found, types, {"conv": _convolutions(c)})


def _convolutions(c):
    """In what layers of short convolutions differ, and what only these read."""
    has = c.get("bool", "conv_bias")
    conv = {"conv_kernel": c.need("size", "conv_L_cache"), "conv_bias": has or None, "mixer_bias": biases(has, has)}
    return {"mixer": "short_conv"}, conv


def kimi_linear(c):
    found = latent(c) | {"positions": "none"}
    found = {key: value for key, value in found.items() if key not in ROTARY_FIELDS} | {"positions": "none"}
    found["n_mtp_layers"] = c.get("count", "num_nextn_predict_layers") or None
    count, inside = found["n_layers"], c.inside("linear_attn_config")
    get = (lambda kind, *keys: None) if inside is None else inside.get
    default = [FULL if layer and layer % 4 == 0 else LINEAR for layer in range(count)]
    attention, others = (
        None if inside is None else numbers_of(inside, key) for key in ("full_attn_layers", "kda_layers")
    )
    if attention is not None:
        if set(others or ()) & set(attention):
            inside.refuse("kda_layers", others, f"none of full_attn_layers = {attention}")
        default = [FULL if layer + 1 in attention else LINEAR for layer in range(count)]
    number = get("size", "num_heads") or c.need("size", "linear_num_heads")
    size = get("size", "head_dim") or c.need("size", "linear_head_dim")
    kernel = get("size", "short_conv_kernel_size") or c.need("size", "linear_conv_kernel_dim")
    c.skip(
        "linear_num_heads",
        "linear_head_dim",
        "linear_conv_kernel_dim",
        "mla_use_nope",
        "rope_theta",
        "use_grouped_topk",
        "moe_layer_freq",
    )
    delta = {
        "n_mixer_heads": number, "mixer_head_dim": size, "conv_kernel": kernel,
        "output_gate_full_rank": get("bool", "use_full_rank_gate") or None,
        "decay_floor": get("number", "gate_lower_bound"),
    }  # fmt: skip
    types = mixer_types(c, KINDS, default, "layer_types")
    found, way = with_mixers(found | kimi_k3(c, found), types, {LINEAR: ({"mixer": "kimi_delta"}, delta)})
    return with_experts(found, deepseek_experts(c), first_dense(c, count, 1), way)


def kimi_k3(c, found):
    """What Kimi K3 has beside Kimi Linear, in code of its own (modeling_kimi_linear.py): a config without has none."""
    size, situ = c.get("size", "attn_res_block_size"), found["ffn"] == "situ"
    return {
        "block": None if size is None else "attention_residual", "residual_block_size": size,
        "attention_gate": c.get("bool", "mla_use_output_gate") or None,
        "expert_latent": c.get("size", "routed_expert_hidden_size"),
        "expert_latent_norm": c.get("bool", "latent_moe_use_norm") or None,
        "situ_beta": c.get("positive", "activation_situ_beta") if situ else None,
        "situ_up_beta": c.get("positive", "activation_situ_linear_beta") if situ else None,
    }  # fmt: skip


def bailing_hybrid(c):
    found = latent(c) | {"rope_layout": "interleaved", "attention_gate": True, "attention_gate_by_head": True}
    found["n_mtp_layers"] = c.get("count", "num_nextn_predict_layers", "num_mtp_layers") or None
    c.skip("mtp_loss_scaling_factor", "rope_theta")
    count, every = found["n_layers"], c.need("size", "layer_group_size")
    default = [LINEAR if (layer + 1) % every else FULL for layer in range(count)]
    size = c.get("size", "linear_head_dim") or c.need("size", "head_dim")  # a saved head_dim is that of other layers
    delta = {
        "n_mixer_heads": c.get("size", "linear_num_heads") or found["n_heads"], "mixer_head_dim": size,
        "conv_kernel": c.get("size", "linear_conv_kernel_dim", "short_conv_kernel_size"), "gates_full_rank": True,
        "decay_floor": c.get("number", "kda_lower_bound") if c.get("bool", "kda_safe_gate") else None,
    }  # fmt: skip
    c.get("number", "kda_lower_bound")
    types = mixer_types(c, KINDS, default, "layer_types")
    found, way = with_mixers(found, types, {LINEAR: ({"mixer": "kimi_delta"}, delta)})
    return with_experts(found, deepseek_experts(c), first_dense(c, count), way)


def minimax(c):
    found = heads(c) | {"norm": "rmsnorm", "ffn": gated(c), "block": "normed_residual"}
    found |= rotary(c, found)
    c.skip("router_jitter_noise", "sliding_window", "shared_moe_mode")
    c.only("postnorm", True, "the class in transformers knows no other")
    c.only("shared_intermediate_size", 0, "the class in transformers has no shared expert")
    count, older = found["n_layers"], c.get("list", "attn_type_list")
    default = [FULL if each else LINEAR for each in older] if older else [(FULL, LINEAR)[i % 2] for i in range(count)]
    types = mixer_types(c, KINDS, default, "layer_types")
    lightning = {"n_mixer_heads": found["n_heads"], "mixer_head_dim": found["head_dim"], "mixer_norm_eps": 1e-6,
                 "chunk_size": c.need("size", "block_size")}  # fmt: skip
    full, linear, fed = (
        [c.get("positive", f"layernorm_{old}_{which}", f"{new}_{which}_factor") for which in ("alpha", "beta")]
        for old, new in (("full_attention", "full_attn"), ("linear_attention", "linear_attn"), ("mlp", "mlp"))
    )
    found, (types, kinds) = with_mixers(found, types, {LINEAR: ({"mixer": "lightning"}, lightning)})
    residual = {FULL: full, LINEAR: linear}
    kinds = {name: {**changes, "residual_factors": [*residual[name], *fed]} for name, changes in kinds.items()}
    return with_experts(found, experts(c, "intermediate_size", router="topk_softmax"), [True] * count, (types, kinds))
