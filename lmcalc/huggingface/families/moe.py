"""Mixtures of experts on softmax attention: one short function for each `model_type`."""

from ..layers import layer_types, rotary
from .common import (
    bias,
    deepseek_experts,
    experts,
    first_dense,
    flag,
    heads,
    llama_like,
    with_experts,
)


def every_layer(found, mixture):
    """A model whose layers all have experts."""
    return with_experts(found, mixture, [True])


def mixtral(c):
    c.skip("router_jitter_noise")
    return every_layer(
        llama_like(c) | {"window": c.get("size", "sliding_window")},
        experts(c, "intermediate_size", router="topk_softmax"),
    )


def qwen2_moe(c):
    found = llama_like(c) | {"attention_bias": flag(c, "qkv_bias", "qkv", "none")}
    mixture = experts(
        c, router="softmax", router_normalized=c.get("bool", "norm_topk_prob") or None,
        shared_d_ff=c.need("size", "shared_expert_intermediate_size"), shared_gate=True,
    )  # fmt: skip
    first, on = c.get("count", "max_window_layers") or 0, c.get("bool", "use_sliding_window")
    window = c.get("size", "sliding_window") if on else None
    c.skip("sliding_window")
    types = layer_types(c, found["n_layers"], lambda layer: on and layer % 2 == 0 and layer < first)
    return with_experts(
        found, mixture, qwen_sparse(c, found["n_layers"]), (types, {"full": {}, "sliding": {"window": window}})
    )


def qwen3_moe(c):
    found = llama_like(c) | {"attention_bias": bias(c), "qk_norm": "head"}
    on = c.get("bool", "use_sliding_window")
    found["window"] = c.get("size", "sliding_window") if on else None
    c.skip("sliding_window", "max_window_layers")
    mixture = experts(c, router="softmax", router_normalized=c.get("bool", "norm_topk_prob") or None)
    return with_experts(found, mixture, qwen_sparse(c, found["n_layers"]))


def qwen_sparse(c, count):
    """Which layers of a Qwen model have experts."""
    every, dense = c.get("size", "decoder_sparse_step") or 1, c.get("list", "mlp_only_layers") or []
    return [layer not in dense and (layer + 1) % every == 0 for layer in range(count)]


def olmoe(c):
    c.skip("moe_intermediate_size")  # its experts are as wide as intermediate_size says
    return every_layer(
        llama_like(c) | {"attention_bias": bias(c), "qk_norm": "full", "qkv_clip": c.get("positive", "clip_qkv")},
        experts(c, "intermediate_size", router="softmax", router_normalized=c.get("bool", "norm_topk_prob") or None),
    )


def flex_olmo(c):
    return olmoe(c) | {"norm_placement": "output"}


def phimoe(c):
    c.skip("input_jitter_noise", "original_max_position_embeddings")
    return every_layer(
        llama_like(c)
        | {
            "norm": "layernorm", "window": c.get("size", "sliding_window"), "attention_bias": bias(c),
            "head_bias": c.get("bool", "lm_head_bias"),
        },
        experts(c, "intermediate_size", router="sparsemixer", router_jitter=c.need("positive", "router_jitter_noise")),
    )  # fmt: skip


def granitemoe(c):
    return every_layer(granite(c), experts(c, "intermediate_size", router="topk_softmax"))


def granitemoeshared(c):
    return granitemoe(c) | {"shared_d_ff": c.get("count", "shared_intermediate_size") or None}


def granite(c):
    """What Granite's models have in common: the multipliers."""
    return llama_like(c) | {
        "attention_bias": bias(c),
        "embedding_scale": c.get("positive", "embedding_multiplier"),
        "residual_scale": c.get("positive", "residual_multiplier"),
        "score_scale": c.get("positive", "attention_multiplier"),
        "logit_scale": 1 / c.need("positive", "logits_scaling"),
    }


def jetmoe(c):
    used, kv_heads = c.need("size", "num_experts_per_tok"), c.need("size", "num_key_value_heads")
    c.skip("num_attention_heads")  # those of the experts of a token
    found = heads(c, n_heads=used * kv_heads)
    found |= {
        "norm": "rmsnorm", "ffn": gated(c), "head_dim": c.need("size", "kv_channels", "head_dim"),
        "attention_experts": c.need("size", "num_local_experts"),
    }  # fmt: skip
    mixture = experts(c, "intermediate_size", router="topk_softmax", expert_output_bias=True)
    return every_layer(found | rotary(c, found), mixture)


def gpt_oss(c):
    found = heads(c)
    window = c.get("size", "sliding_window")
    types = layer_types(c, found["n_layers"], lambda layer: (layer + 1) % 2)
    c.only("hidden_act", "silu", "its experts have a SwiGLU of their own")
    c.only("swiglu_alpha", 1.702, "what its experts compute")
    found |= {"norm": "rmsnorm", "attention_sinks": True, "attention_bias": bias(c), **rotary(c, found)}
    mixture = experts(c, "intermediate_size", router="topk_softmax", router_bias="linear", expert_bias=True)
    mixture |= {"ffn": "swiglu_clamped", "ffn_limit": c.get("positive", "swiglu_limit")}
    return with_experts(
        found, mixture, [True] * found["n_layers"], (types, {"full": {}, "sliding": {"window": window}})
    )


def glm4_moe(c):
    found = llama_like(c) | {
        "attention_bias": flag(c, "attention_bias", "qkv", "none"), "qk_norm": flag(c, "use_qk_norm", "head", None),
        "n_mtp_layers": c.get("count", "num_nextn_predict_layers", "num_mtp_layers") or None,
    }  # fmt: skip
    return with_experts(found, deepseek_experts(c), first_dense(c, found["n_layers"]))


def dots1(c):
    found = llama_like(c) | {"attention_bias": bias(c), "qk_norm": "head"}
    window, first = c.get("size", "sliding_window"), c.get("count", "max_window_layers") or 0
    types = layer_types(c, found["n_layers"], lambda layer: window is not None and layer >= first)
    return with_experts(found, deepseek_experts(c), first_dense(c, found["n_layers"]),
                        (types, {"full": {}, "sliding": {"window": window}}))  # fmt: skip


def hunyuan_v1_moe(c):
    found = llama_like(c) | {"attention_bias": bias(c), "qk_norm": "head_last"}
    mixture = experts(c, "intermediate_size", router="topk_softmax", n_shared_experts=1)
    return every_layer(found, mixture)


def ernie4_5_moe(c):
    found = llama_like(c) | {
        "attention_bias": bias(c, "use_bias"), "ffn_bias": c.get("bool", "use_bias") or None,
        "head_bias": c.get("bool", "use_bias") or None, "rope_layout": "interleaved",
    }  # fmt: skip
    count, every = found["n_layers"], c.get("size", "moe_layer_interval") or 1
    first, last = c.get("count", "moe_layer_start_index") or 0, c.data.get("moe_layer_end_index")
    c.skip("moe_layer_end_index")
    last = count - 1 if last in (None, -1) else last
    mixture = experts(
        c, router="softmax", router_bias="correction_parameter", router_normalized=True,
        n_shared_experts=c.get("count", "moe_num_shared_experts") or None,
    )  # fmt: skip
    c.skip("moe_norm_min")
    return with_experts(found, mixture, [first <= layer <= last and (layer + 1) % every == 0 for layer in range(count)])


def minimax_m2(c):
    found = llama_like(c) | {"qk_norm": "full"}
    c.skip("router_jitter_noise")
    return every_layer(
        found,
        experts(c, "intermediate_size", router="sigmoid", router_bias="correction", router_normalized=True),
    )
