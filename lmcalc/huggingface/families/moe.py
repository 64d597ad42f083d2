"""Mixtures of experts on softmax attention: one short function for each `model_type`."""

from ..layers import ROTARY_FIELDS, layer_types, numbers_of, rotary
from .common import (
    bias,
    deepseek_experts,
    experts,
    first_dense,
    flag,
    gated,
    heads,
    llama_like,
    plain,
    sizes,
    with_experts,
)
from .dense import cohere as _cohere
from .llama import granite_layers
from .seq2seq import mixtures


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
    for key, value in (("qkv_bias", False), ("use_qk_norm", True), ("shared_expert_intermediate_size", 0)):
        c.only(key, value, "the class in transformers knows no other")
    found = llama_like(c) | {"attention_bias": bias(c), "qk_norm": "head"}
    on = c.get("bool", "use_sliding_window")
    found["window"] = c.get("size", "sliding_window") if on else None
    c.skip("sliding_window", "max_window_layers")
    mixture = experts(c, router="softmax", router_normalized=c.get("bool", "norm_topk_prob") or None)
    return with_experts(found, mixture, qwen_sparse(c, found["n_layers"]))


def qwen_sparse(c, count):
    """Which layers of a Qwen model have experts."""
    every, dense = c.get("size", "decoder_sparse_step") or 1, numbers_of(c, "mlp_only_layers") or ()
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


def granitemoe_swa(c):
    found = granite(c) | {"attention_sinks": True}
    ways = granite_layers(c, found)
    mixture = experts(c, "intermediate_size", router="topk_softmax",
                      shared_d_ff=c.get("count", "shared_intermediate_size") or None)  # fmt: skip
    return with_experts(found, mixture, [True] * found["n_layers"], *ways)


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
    c.skip("initial_context_length")
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
    first, last = c.get("count", "moe_layer_start_index") or 0, c.get("number", "moe_layer_end_index")
    last = count - 1 if last in (None, -1) else last
    mixture = experts(
        c, router="softmax", router_bias="correction_parameter", router_normalized=True,
        n_shared_experts=c.get("count", "moe_num_shared_experts") or None,
    )  # fmt: skip
    c.skip("moe_norm_min")
    return with_experts(found, mixture, [first <= layer <= last and (layer + 1) % every == 0 for layer in range(count)])


def switch_transformers(c):
    found = sizes(c, own_head=True)
    count = {"encoder": found["n_layers"], "decoder": c.get("layers", "num_decoder_layers") or found["n_layers"]}
    found |= {
        "stack": "encoder_decoder", "n_encoder_layers": count["encoder"], "n_layers": count["decoder"],
        "head_dim": c.need("size", "d_kv"), "d_ff": c.need("size", "d_ff"), "ffn": plain(c, "dense_act_fn"),
        "norm": "rmsnorm", "positions": "relative_bias", "score_scale": 1.0,
        "position_buckets": c.need("size", "relative_attention_num_buckets"),
        "position_max_distance": c.need("size", "relative_attention_max_distance"),
        "head_scale": found["d_model"] ** -0.5 if found["tied"] is not False else None,
    }  # fmt: skip
    c.skip(
        "router_dtype", "router_ignore_padding_tokens", "router_jitter_noise", "add_router_probs", "feed_forward_proj"
    )
    c.skip("is_decoder", "add_cross_attention", "encoder_sparse_step", "decoder_sparse_step", "is_gated_act")
    sparse = {}
    for stack, layers in count.items():
        number = c.get("count", f"num_sparse_{stack}_layers")
        step = layers // number if number else layers
        sparse[stack] = [step == 1 or (step and layer % step == 1) for layer in range(layers)]
    mixture = experts(
        c, "d_ff", router="softmax", expert_capacity=c.need("size", "expert_capacity"), experts_per_token=1,
        router_bias=flag(c, "router_bias", "linear", None),
    )  # fmt: skip
    return mixtures(found, mixture, sparse)


def aria_text(c):
    c.only("hidden_act", "silu", "its experts have no other")
    found = llama_like(c) | {"attention_bias": bias(c), "ffn_bias": c.get("bool", "mlp_bias") or None}
    return every_layer(found, experts(c, "intermediate_size", router="topk_softmax",
                                      n_shared_experts=c.get("count", "moe_num_shared_experts") or None))  # fmt: skip


def cohere2_moe(c):
    rms = c.get("positive", "rms_norm_eps") is not None
    found = _cohere(c.without("layer_norm_eps") if rms else c)
    found["norm"] = "rmsnorm" if rms else found["norm"]
    found["d_ff"] = c.get("size", "prefix_dense_intermediate_size") or found["d_ff"]
    count, window = found["n_layers"], c.get("size", "sliding_window")
    shared, dense = c.get("count", "num_shared_experts") or None, c.get("count", "first_k_dense_replace") or 0
    first, every = (c.need("size", key) for key in ("prefix_dense_sliding_window_pattern", "sliding_window_pattern"))
    types = layer_types(c, count, lambda at: (at + 1) % first if at < dense else (at - dense + 1) % every)
    scores = c.need(("softmax", "sigmoid"), "expert_selection_fn")
    how = c.need(("average", "sum"), "shared_expert_combination_strategy")
    normalized = c.get("bool", "norm_topk_prob")
    if c.given("rope_parameters"):
        c.skip("rope_theta", "rope_scaling")  # what rope_parameters came from
    mixture = experts(
        c, "intermediate_size", router=f"topk_{scores}", n_shared_experts=shared,
        router_normalized=(normalized and scores == "sigmoid") or None,
        experts_scale=0.5 if shared and how == "average" else None,
    )  # fmt: skip
    sparse, rope = first_dense(c, count), {key: found.pop(key, None) for key in ROTARY_FIELDS}
    types = ["turned" if kind == "full" and first == 1 and not each else kind for kind, each in zip(types, sparse)]
    kinds = {"full": {"positions": "none"}, "turned": rope, "sliding": {"window": window, **rope}}
    return with_experts(found, mixture, sparse, (types, kinds))


def minimax_m2(c):
    found = llama_like(c) | {"qk_norm": "full"}
    c.skip("router_jitter_noise", "mtp_transformer_layers", "attn_type_list")
    for key, value in (("scoring_func", "sigmoid"), ("use_qk_norm", True), ("qk_norm_type", "per_layer"),
                       ("use_routing_bias", True), ("shared_intermediate_size", 0)):  # fmt: skip
        c.only(key, value, "the class in transformers knows no other")
    modules = c.get("count", "num_mtp_modules")
    found["n_mtp_layers"] = modules or None if c.get("bool", "use_mtp") else None
    return every_layer(
        found,
        experts(c, "intermediate_size", router="sigmoid", router_bias="correction", router_normalized=True),
    )
