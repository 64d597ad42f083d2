"""Zamba: Mamba, and transformer blocks that layers share. One short function for each `model_type`."""

from ..layers import combined, rotary
from .common import ACTIVATIONS, KV_KEYS, PLAIN, flag, mixer_types, sizes
from .recurrent import KINDS, biases, inner, limit, mamba_sizes

LINEAR = KINDS[0]


def zamba(c):
    found = _key_value_heads(c)
    width, number, count = found["d_model"], found.pop("n_heads"), found["n_layers"]
    c.only("attention_hidden_size", 2 * width, "the state beside the embedding")
    c.skip(*ZAMBA)
    size = c.get("size", "attention_head_dim", "head_dim") or 2 * width // number
    if size < 1:
        c.refuse("hidden_size", width, f"at least half of the {number} heads")
    every, at = c.need("size", "attn_layer_period"), c.need("count", "attn_layer_offset")
    default = ["hybrid" if layer % every == at else LINEAR for layer in range(count - 3)]
    default = [LINEAR, LINEAR, "hybrid", *default][:count]
    types = mixer_types(c, (LINEAR, "hybrid"), default, "layers_block_type", "layer_types")
    found |= {
        "norm": "rmsnorm", "mixer": "mamba", "ffn": "none", "positions": "none",
        "n_mixer_heads": c.need("size", "n_mamba_heads"), "conv_bias": flag(c, "mamba_conv_bias", None, False),
        "mixer_activation": inner(c, "hidden_mamba_act"),
        "mixer_bias": biases(c.get("bool", "mamba_proj_bias"), c.get("bool", "mamba_proj_bias")),
        **mamba_sizes(c, found, "mamba_d_state", "mamba_dt_rank", "mamba_d_conv", "mamba_expand"),
    }  # fmt: skip
    memory = {
        "n_heads": number, "n_kv_heads": found.pop("n_kv_heads"), "head_dim": size, "score_scale": (size / 2) ** -0.5,
        "d_ff": c.need("size", "intermediate_size"), "shared_blocks": 1,
        "shared_ffn": ACTIVATIONS[c.need(PLAIN, "hidden_act")][1],
    }  # fmt: skip
    kinds = {LINEAR: {}, "hybrid": {"block": "hybrid", "shared_block": 0}}
    return found | (memory if "hybrid" in types else {}) | combined((types, kinds))


ZAMBA = (
    "num_logits_to_keep",
    "use_mamba_kernels",
    "use_associative_scan",
    "time_step_min",
    "time_step_max",
    "time_step_floor",
)


def zamba2(c):
    found = _key_value_heads(c)
    width, number = found["d_model"], found["n_heads"]
    size = 2 * width // number
    if size < 1:
        c.refuse("hidden_size", width, f"at least half of the {number} heads")
    types = c.get("list", "layers_block_type", "layer_types")
    default = [
        LINEAR,
        *([LINEAR] * 5 + ["hybrid"]) * 7,
        *[LINEAR] * 4,
        "hybrid",
        *[LINEAR] * 3,
        "hybrid",
        LINEAR,
        LINEAR,
    ]
    types = mixer_types(c, (LINEAR, "hybrid"), default if types is None else types, "layers_block_type", "layer_types")
    inside, heads_inside = int(c.need("ratio", "mamba_expand") * width), c.need("size", "n_mamba_heads")
    c.skip(*ZAMBA2)
    found |= {
        "norm": "rmsnorm", "mixer": "mamba2", "ffn": "none",
        "n_mixer_heads": heads_inside, "mixer_head_dim": inside // heads_inside,
        "n_mixer_groups": c.need("size", "mamba_ngroups"), "state_dim": c.need("size", "mamba_d_state"),
        "conv_kernel": c.need("size", "mamba_d_conv"), "chunk_size": c.need("size", "chunk_size"),
        "conv_bias": flag(c, "use_conv_bias", None, False), "mixer_norm_eps": 1e-5,
        "mixer_bias": biases(c.get("bool", "add_bias_linear"), c.get("bool", "add_bias_linear")),
        "time_step_limit": limit(c, low=c.get("number", "time_step_min")),
    }  # fmt: skip
    rope, turned = rotary(c, {"head_dim": size}), c.get("bool", "use_mem_rope")
    count = c.need("layers", "num_mem_blocks")
    memory = {
        "n_heads": number,
        "n_kv_heads": found.pop("n_kv_heads"),
        "head_dim": size,
        "score_scale": (size / 2) ** -0.5,
        "d_ff": c.get("size", "intermediate_size") or 4 * width,
        "shared_blocks": count,
        "shared_ffn": ACTIVATIONS[c.need(PLAIN, "hidden_act")][1],
        "adapter_rank": c.need("size", "adapter_rank"),
        "attention_adapter": c.get("bool", "use_shared_attention_adapter") or None,
        **(rope if turned else {"positions": "none"}),
    }
    found.pop("n_heads")
    c.only("add_bias_linear", False, "no published model has it")
    used = [at for at, kind in enumerate(types) if kind == "hybrid"]
    names = [f"hybrid_{used.index(at) % count}" if at in used else LINEAR for at in range(len(types))]
    kinds = {f"hybrid_{at}": {"block": "hybrid", "shared_block": at} for at in range(count)} | {LINEAR: {}}
    return found | (memory if used else {"positions": "none"}) | combined((names, kinds))


ZAMBA2 = (
    "use_mamba_kernels",
    "use_mem_eff_path",
    "use_long_context",
    "num_logits_to_keep",
    "hybrid_layer_ids",
    "kv_channels",
    "attention_head_dim",
    "attention_hidden_size",
    "mamba_headdim",
    "num_query_groups",
    "time_step_max",
    "time_step_floor",
    "time_step_limit",
    "num_attention_heads",
)


def _key_value_heads(c):
    """Sizes with key/value heads of their own; the size of a head is not the width divided by their number."""
    found = sizes(c, own_head=True)
    return found | {"n_kv_heads": c.get("size", *KV_KEYS) or found["n_heads"]}
