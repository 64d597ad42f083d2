"""Latent attention (MLA), with and without experts: one short function for each `model_type`."""

import math

from ..layers import rotary
from .common import KV_KEYS, bias, deepseek_experts, experts, first_dense, gated, sizes, with_experts


def latent(c, d_ff="intermediate_size"):
    """A model with latent attention and a gated feed-forward."""
    found = sizes(c, own_head=True)
    c.skip(*KV_KEYS, "head_dim", "qk_head_dim")  # all heads are made from one latent
    rope = c.need("size", "qk_rope_head_dim")
    return found | {
        "norm": "rmsnorm", "ffn": gated(c), "d_ff": c.need("size", d_ff), "ffn_bias": c.get("bool", "mlp_bias") or None,
        "q_latent_dim": c.get("size", "q_lora_rank"), "kv_latent_dim": c.need("size", "kv_lora_rank"),
        "nope_head_dim": c.need("size", "qk_nope_head_dim"), "rope_head_dim": rope,
        "v_head_dim": c.get("size", "v_head_dim") or found["d_model"] // found["n_heads"],
        "latent_norm_eps": 1e-6, "attention_bias": bias(c), **rotary(c, {"head_dim": rope}),
    }  # fmt: skip


def deepseek_v2(c):
    found = latent(c) | {"rope_layout": "interleaved"}
    c.skip("norm_topk_prob", "moe_layer_freq", "ep_size")  # the class in transformers does not read them
    c.only("scoring_func", "softmax", "the class in transformers knows no other")
    grouped = c.get(("greedy", "group_limited_greedy"), "topk_method") == "group_limited_greedy"
    groups = c.get("size", "n_group") if grouped else None
    best = c.get("size", "topk_group")
    c.skip("n_group")
    mixture = experts(
        c, router="softmax", router_scale=c.get("positive", "routed_scaling_factor"),
        n_shared_experts=c.get("count", "n_shared_experts") or None, n_expert_groups=groups,
        expert_groups_used=None if groups is None else best, expert_group_score=None if groups is None else "max",
    )  # fmt: skip
    return with_experts(found, mixture, first_dense(c, found["n_layers"]))


def deepseek_v3(c):
    c.skip("ep_size", "is_decoder", "add_cross_attention")
    found = latent(c) | {
        "rope_layout": "interleaved" if c.get("bool", "rope_interleave") else None,
        "n_mtp_layers": c.get("count", "num_nextn_predict_layers", "num_mtp_layers") or None,
    }
    return with_experts(found, deepseek_experts(c), first_dense(c, found["n_layers"]))


def sarvam_mla(c):
    c.skip("q_head_dim")
    return deepseek_v3(c)


def glm4_moe_lite(c):
    found = latent(c) | {
        "rope_layout": "interleaved" if c.get("bool", "rope_interleave") else None,
        "n_mtp_layers": c.get("count", "num_nextn_predict_layers") or None,
    }
    return with_experts(found, deepseek_experts(c), first_dense(c, found["n_layers"], 1))


def axk1(c):
    found = latent(c) | {"rope_layout": "interleaved" if c.get("bool", "rope_interleave") else None}
    return with_experts(found, deepseek_experts(c), first_dense(c, found["n_layers"], 1),
                        beside={"ffn_output_norm": True})  # fmt: skip


def mistral4(c):
    found = latent(c) | {"rope_layout": "interleaved" if c.get("bool", "rope_interleave") else None, "rotary_dim": None}
    table = c.object("rope_parameters")
    beta, floor = table.get("positive", "llama_4_scaling_beta"), table.get("size", "original_max_position_embeddings")
    if beta is not None:
        found |= {"attention_temperature": beta, "attention_temperature_floor": floor, "attention_growth": "log"}
    table.skip("max_position_embeddings")
    mixture = deepseek_experts(c) | {"router": "softmax", "router_bias": None}
    return with_experts(found, mixture, first_dense(c, found["n_layers"]))


def youtu(c):
    c.skip("embedding_initializer_range")
    return latent(c) | {"rope_layout": "interleaved" if c.get("bool", "rope_interleave") else None}


def deepseek_v32(c):
    found = _indexed(c) | {"rope_layout": "interleaved", "index_rope_layout": "half"}
    return with_experts(found, deepseek_experts(c), first_dense(c, found["n_layers"]))


def axk2(c):
    gated = {"attention_gate": True, "q_latent_both": True, "norm_gate_rank": c.need("size", "gated_norm_rank")}
    found = _indexed(c) | {"rope_layout": "interleaved", "index_rope_layout": "half", **gated}
    return with_experts(found, deepseek_experts(c), first_dense(c, found["n_layers"], 1),
                        beside={"ffn_norm_gate": True})  # fmt: skip


def hy_v4(c):
    found, limit = _indexed(c), c.get("number", "swiglu_limit") or 0
    count, types = found["n_layers"], c.get("list", "indexer_types")
    c.skip("learnable_sink_init")
    if found.pop("n_mtp_layers"):
        c.note("Modules that predict further tokens are not counted (num_nextn_predict_layers).")
    if types is None:
        types = ["full" if layer == 0 or layer % 4 == 1 else "shared" for layer in range(count)]
    found |= {
        "index_norm_eps": found["norm_eps"], "index_rope_last": True, "attention_gate": True, "attention_sinks": True,
        "block": "hyper_connections", "hyper_streams": c.need("size", "hc_mult"),
        "hyper_eps": c.get("positive", "hc_eps"), "hyper_magnitude": c.need("positive", "hc_magnitude"),
    }  # fmt: skip
    mixture = deepseek_experts(c)
    if limit > 0:
        mixture |= {"expert_ffn": "swiglu_limited", "ffn_limit": limit}
    return with_experts(found, mixture, first_dense(c, count, 1), _index_ways(c, types, count))


def hy_v4_vl_text(c):
    return hy_v4(c) | {"rope_layout": "interleaved", "latent_norm_eps": None}


def _index_ways(c, types, count):
    """How layers differ, of which some use the keys that an earlier one chose."""
    if len(types) != count or any(each not in ("full", "shared") for each in types) or types[0] != "full":
        c.refuse("indexer_types", types, f"full or shared for each of the {count} layers, full for the first")
    return types, {"full": {}, "shared": {"index_shared": True}}


def glm_moe_dsa(c):
    found, count = _indexed(c) | {"rope_layout": "interleaved"}, c.need("size", "num_hidden_layers")
    types, pattern = c.get("list", "indexer_types"), c.data.get("index_topk_pattern")
    if types is None and pattern is not None:
        pattern = c.get("list" if isinstance(pattern, list) else "text", "index_topk_pattern")
        types = ["full" if each == "F" else "shared" if each == "S" else each for each in pattern]
    every, first = c.get("size", "index_topk_freq") or 1, c.get("count", "index_skip_topk_offset")
    c.skip("index_topk_pattern")
    first = 2 if first is None else first
    if types is None:
        types = ["shared" if max(layer - first + 1, 0) % every else "full" for layer in range(count)]
    return with_experts(found, deepseek_experts(c), first_dense(c, count), _index_ways(c, types, count))


def _indexed(c):
    c.skip("layer_types", "ep_size", "rope_interleave", "indexer_rope_interleave")
    return latent(c) | {
        "index_topk": c.need("size", "index_topk"),
        "index_heads": c.need("size", "index_n_heads"),
        "index_head_dim": c.need("size", "index_head_dim"),
        "n_mtp_layers": c.get("count", "num_nextn_predict_layers") or None,
    }


def minicpm3(c):
    found = latent(c)
    depth, base = c.get("positive", "scale_depth"), c.get("positive", "dim_model_base")
    return found | {
        "embedding_scale": c.get("positive", "scale_emb"),
        "residual_scale": None if depth is None else depth / math.sqrt(found["n_layers"]),
        "head_scale": None if base is None else base / found["d_model"],
    }


def longcat_flash(c):
    found = latent(c, "ffn_hidden_size")
    width = found["d_model"]
    c.skip(
        "attention_method",
        "mla_scale_q_lora",
        "mla_scale_kv_lora",
        "router_bias",
        "zero_expert_type",
        "rope_interleave",
    )
    mixture = experts(
        c,
        "expert_ffn_hidden_size",
        router="softmax",
        router_bias="correction",
        router_scale=c.get("positive", "routed_scaling_factor"),
        n_zero_experts=c.get("count", "zero_expert_num") or None,
    )
    c.skip("num_hidden_layers")  # twice as many in newer configs: of attention
    return (
        found
        | mixture
        | {
            "block": "shortcut",
            "rope_layout": "interleaved",
            "q_latent_scale": math.sqrt(width / c.need("size", "q_lora_rank")),
            "kv_latent_scale": math.sqrt(width / found["kv_latent_dim"]),
        }
    )
