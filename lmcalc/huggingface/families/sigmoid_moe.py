"""Mixtures of experts on softmax attention, routers that score by sigmoids: one short function a `model_type`."""

import math

from ...cards import is_kind
from ..layers import ROTARY_FIELDS, layer_types, rotary
from .common import bias, deepseek_experts, experts, first_dense, flag, gated, heads, llama_like, with_experts
from .dense import exaone
from .moe import every_layer, glm4_moe, qwen_sparse

ONLY = "the class in transformers knows no other"


def solar_open(c):
    c.skip("intermediate_size", "first_k_dense_replace")  # all layers have experts
    c.only("use_qk_norm", False, ONLY)
    found = heads(c)
    found |= {"norm": "rmsnorm", "ffn": gated(c), "attention_bias": flag(c, "attention_bias", "qkv", "none")}
    return every_layer(found | rotary(c, found), deepseek_experts(c))


def exaone_moe(c):
    found, way = exaone(c, llama_like(c))
    found["n_mtp_layers"] = c.get("count", "num_nextn_predict_layers") or None
    return with_experts(found, deepseek_experts(c), first_dense(c, found["n_layers"]), way)


def afmoe(c):
    found = llama_like(c) | {
        "norm_placement": "double", "attention_bias": bias(c), "qk_norm": "head",
        "attention_gate": True, "attention_gate_bias": "none",
    }  # fmt: skip
    if c.get("bool", "mup_enabled"):
        found["embedding_scale"] = math.sqrt(found["d_model"])
    for key, value in (("score_func", "sigmoid"), ("route_norm", True), ("n_group", 1), ("topk_group", 1),
                       ("num_expert_groups", 1), ("num_limited_groups", 1)):  # fmt: skip
        c.only(key, value, ONLY)
    c.skip("load_balance_coeff", "use_grouped_mm")
    count, window = found["n_layers"], c.get("size", "sliding_window")
    every = c.get("size", "global_attn_every_n_layers")
    types = layer_types(c, count, lambda layer: every and (layer + 1) % every)
    mixture = experts(
        c, router="sigmoid", router_bias="correction_parameter", router_normalized=True, router_eps=1e-20,
        router_scale=c.get("positive", "route_scale"), n_shared_experts=c.get("count", "num_shared_experts") or None,
    )  # fmt: skip
    dense = c.get("count", "num_dense_layers") or 0
    sparse = [layer >= dense for layer in range(count)]
    return with_experts(found, mixture, sparse, turned_in_windows(found, types, window))


def turned_in_windows(found, types, window):
    """How layers differ of which only those with a window turn queries and keys; takes the rotary fields of all."""
    rope = {key: found.pop(key, None) for key in ROTARY_FIELDS}
    return types, {"full": {"positions": "none"}, "sliding": {"window": window, **rope}}


def hy_v3(c):
    found = llama_like(c) | {
        "attention_bias": bias(c), "qk_norm": "head", "ffn_bias": c.get("bool", "mlp_bias") or None,
        "n_mtp_layers": c.get("count", "num_nextn_predict_layers") or None,
    }  # fmt: skip
    c.skip("enable_moe_fp32_combine")
    c.only("qk_norm", True, ONLY)
    mixture = experts(
        c, router="sigmoid", router_bias="correction", router_normalized=True, router_eps=1e-20,
        router_scale=c.get("positive", "router_scaling_factor"),
        n_shared_experts=c.get("count", "num_shared_experts") or None,
    )  # fmt: skip
    return with_experts(found, mixture, first_dense(c, found["n_layers"], 1))


def sarvam_moe(c):
    biased = c.get("bool", "attention_bias", "use_qkv_bias")
    return glm4_moe(c) | {"attention_bias": "qkv" if biased else "none"}


def laguna(c):
    found = heads(c) | {
        "norm": "rmsnorm", "ffn": gated(c), "attention_bias": bias(c), "qk_norm": "head",
        "d_ff": c.need("size", "intermediate_size"),
        "attention_gate": True, "attention_gate_activation": "softplus", "attention_gate_bias": "none",
    }  # fmt: skip
    count, gating = found["n_layers"], c.data.get("gating", True)
    if gating not in (True, "per-head", "per-element"):
        c.refuse("gating", gating, "true, per-head or per-element")
    found["attention_gate_by_head"] = gating != "per-element" or None
    c.skip("gating")
    c.only("moe_apply_router_weight_on_input", False, ONLY)
    each = c.get("list", "num_attention_heads_per_layer") or [found["n_heads"]] * count
    for number in each:
        if not is_kind(number, "size") or number % found["n_kv_heads"] or len(each) != count:
            allowed = f"a multiple of {found['n_kv_heads']} key/value heads for each of the {count} layers"
            c.refuse("num_attention_heads_per_layer", each, allowed)
    types = layer_types(c, count, lambda layer: False)
    rope = {kind: rotary(c, found, f"{kind}_attention") for kind in ("full", "sliding")}
    rope["sliding"]["window"] = c.get("size", "sliding_window")
    mixture = experts(
        c, router="sigmoid", router_bias="correction_parameter", router_normalized=True,
        router_scale=c.get("positive", "moe_routed_scaling_factor"),
        router_softcap=c.get("number", "moe_router_logit_softcapping") or None,
        shared_d_ff=c.need("size", "shared_expert_intermediate_size"),
    )  # fmt: skip
    heads_of = {f"heads_{number}": {"n_heads": number} for number in each}
    return with_experts(found, mixture, first_dense(c, count, 1), (types, rope),
                        ([f"heads_{number}" for number in each], heads_of))  # fmt: skip


def beam(c):
    found = heads(c) | {
        "norm": "rmsnorm", "ffn": gated(c), "attention_bias": bias(c), "qk_norm": "head", "norm_placement": "double",
        "residual_by_depth": True, "attention_gate": True, "attention_gate_bias": "head",
        "d_ff": c.need("size", "intermediate_size"), "logit_softcap": c.get("positive", "final_logit_softcapping"),
    }  # fmt: skip
    count, window = found["n_layers"], c.get("size", "sliding_window")
    types = layer_types(c, count, lambda layer: (layer + 1) % 6 and layer != count - 1)
    table = c.object("rope_parameters")
    still = {"positions": "none", "attention_temperature": 0.1, "attention_temperature_floor": 2048,
             "attention_growth": "power"}  # fmt: skip
    kinds = {}
    for kind in dict.fromkeys(types):
        turns = table.get("table", f"{kind}_attention") is not None
        kinds[kind] = rotary(c, found, f"{kind}_attention") if turns else dict(still)
    if "sliding" in kinds:
        kinds["sliding"]["window"] = window
    return with_experts(found, deepseek_experts(c), first_dense(c, count, min(3, count)), (types, kinds))


def flint(c):
    found = llama_like(c) | {"attention_bias": bias(c), "qk_norm": "head", "attention_sinks": True}
    count, window = found["n_layers"], c.get("size", "sliding_window")
    types = layer_types(c, count, lambda layer: layer > 1 and layer % 4 != 1 and layer != count - 1)
    mixture = experts(
        c, router="sigmoid", router_normalized=c.get("bool", "norm_topk_prob") or None,
        shared_d_ff=c.need("size", "shared_expert_intermediate_size"),
    )  # fmt: skip
    sparse = qwen_sparse(c, count)
    if c.data.get("mlp_only_layers") is None:
        sparse = [layer > 1 and each for layer, each in enumerate(sparse)]
    return with_experts(found, mixture, sparse, turned_in_windows(found, types, window))


def kolibri1(c):
    found = heads(c)
    found |= {"norm": "rmsnorm", "ffn": gated(c), "norm_placement": "double", "qk_norm": "head", **rotary(c, found)}
    count, window = found["n_layers"], c.get("size", "sliding_window")
    # all layers have experts in one group, whatever the config says
    c.skip("intermediate_size", "n_group", "topk_group", "n_shared_experts", "routed_scaling_factor")
    types = layer_types(c, count, lambda layer: (layer + 1) % 5)
    mixture = experts(
        c, router="topk_sigmoid", router_bias="correction", router_normalized=c.get("bool", "norm_topk_prob") or None,
        shared_d_ff=c.need("size", "shared_expert_intermediate_size"),
    )  # fmt: skip
    if window is None:
        return every_layer(found, mixture)
    return with_experts(found, mixture, [True] * count, turned_in_windows(found, types, window))
