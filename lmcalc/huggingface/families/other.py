"""Attention of other forms: chunks, sinks, differences, shared keys and values. One function for each `model_type`."""

from ...cards import is_kind
from ..irrelevant import IRRELEVANT
from ..layers import ROTARY_FIELDS, combined, kinds_of, layer_types, numbers_of, rotary
from .common import KV_KEYS, bias, deepseek_experts, experts, first_dense, gated, heads, llama_like, sizes, with_experts


def llama4(c):
    found = heads(c) | {
        "norm": "rmsnorm", "ffn": gated(c), "attention_bias": bias(c), "d_ff": c.need("size", "intermediate_size_mlp"),
    }  # fmt: skip
    count, rope = found["n_layers"], rotary(c, found) | {"rope_layout": "interleaved"}
    c.skip("router_jitter_noise")
    chunk, every = c.get("size", "attention_chunk_size"), c.need("size", "no_rope_layer_interval")
    turned = c.get("list", "no_rope_layers") or [int((layer + 1) % every != 0) for layer in range(count)]
    turned = ["turned" if each else "still" for each in kinds_of(c, "no_rope_layers", turned, (0, 1), count)]
    chunked = {"full_attention": {}, "chunked_attention": {"attention_chunk": chunk}}
    default = ["chunked_attention" if each == "turned" and chunk is not None else "full_attention" for each in turned]
    types = c.get("list", "layer_types") or default
    growth, floor = c.need("positive", "attn_scale"), c.need("size", "floor_scale")
    still = {"positions": "none"}
    if c.get("bool", "attn_temperature_tuning"):
        still |= {"attention_temperature": growth, "attention_temperature_floor": floor}
    normed = {"qk_norm": "l2"} if c.get("bool", "use_qk_norm") else {}
    step = c.need("size", "interleave_moe_layer_step")
    sparse = numbers_of(c, "moe_layers")
    sparse = range(step - 1, count, step) if sparse is None else sparse
    mixture = experts(c, "intermediate_size", router="sigmoid", expert_input_scaled=True, n_shared_experts=1)
    return with_experts(
        found,
        mixture,
        [layer in sparse for layer in range(count)],
        (kinds_of(c, "layer_types", types, chunked, count), chunked),
        (turned, {"turned": rope | normed, "still": still}),
    )


def mimo_v2_flash(c):
    found = heads(c) | {
        "norm": "rmsnorm",
        "ffn": gated(c),
        "attention_bias": "qkv" if c.get("bool", "attention_bias") else None,
    }
    found |= {"d_ff": c.need("size", "intermediate_size"), "v_head_dim": c.get("size", "v_head_dim")}
    found |= {"value_scale": c.get("positive", "attention_value_scale")}
    count, size = found["n_layers"], c.get("size", "sliding_window_size")
    window = c.get("size", "sliding_window") if size is None else size + 1
    c.skip("sliding_window", "attention_chunk_size")
    pattern, kv_heads = c.get("list", "hybrid_layer_pattern"), found.pop("n_kv_heads")
    for key, value in (("swa_num_attention_heads", found["n_heads"]), ("swa_num_key_value_heads", 2 * kv_heads),
                       ("swa_head_dim", found["head_dim"]), ("swa_v_head_dim", found["v_head_dim"]),
                       ("add_swa_attention_sink_bias", True), ("add_full_attention_sink_bias", False)):  # fmt: skip
        c.only(key, value, "the class in transformers knows no other")
    pattern = kinds_of(c, "hybrid_layer_pattern", pattern, (0, 1), count) if pattern else None
    types = layer_types(c, count, lambda layer: pattern[layer] if pattern else layer and (layer + 1) % 6)
    kinds = {
        "full": {"n_kv_heads": kv_heads, **rotary(c, found, "full_attention")},
        "sliding": {"n_kv_heads": 2 * kv_heads, "window": window, "attention_sinks": True,
                    **rotary(c, found, "sliding_attention", ("swa_rope_theta", "rope_local_base_freq"))},
    }  # fmt: skip
    mixture = deepseek_experts(c) | {"n_shared_experts": None}  # whatever the config says
    return with_experts(found, mixture, first_dense(c, count, 1), (types, kinds))


def diffllama(c):
    c.skip("lambda_std_dev")
    return llama_like(c) | {"attention_bias": bias(c), "differential": True}


def dbrx(c):
    found = sizes(c)
    attention, fed = (c.inside(key) or c.default(key) or c.need("table", key) for key in ("attn_config", "ffn_config"))
    for each in (attention, fed):
        each.skip("hidden_size", "moe_jitter_eps", "dtype", *IRRELEVANT)
    c.skip(*KV_KEYS)
    found |= {
        "norm": "layernorm_no_bias", "norm_eps": 1e-5, "n_kv_heads": attention.need("size", "kv_n_heads"),
        "qkv_clip": attention.get("positive", "clip_qkv"), "attention_dropout": attention.get("number", "attn_pdrop"),
    }  # fmt: skip
    table, base = fed.inside("ffn_act_fn"), attention.get("positive", "rope_theta")
    name = "silu" if table is None else table.need("text", "name")
    if name != "silu":
        table.refuse("name", name, "silu, which published models have")
    power = fed.get("positive", "moe_normalize_expert_weights")
    if power not in (None, 1):
        fed.refuse("moe_normalize_expert_weights", power, "1 or none: weights are divided by their sum")
    rope = rotary(c, found | {"head_dim": found["d_model"] // found["n_heads"]})
    if base is not None and not c.given("rope_parameters"):
        rope["rope_base"] = base
    return (
        found
        | rope
        | {
            "ffn": "swiglu",
            "n_experts": fed.need("size", "moe_num_experts"),
            "experts_per_token": fed.need("size", "moe_top_k"),
            "expert_d_ff": fed.need("size", "ffn_hidden_size"),
            "router": "softmax",
            "router_normalized": power == 1 or None,
        }
    )


def muse_glimmer_text(c):
    found = llama_like(c)
    count, size, window = found["n_layers"], found["head_dim"], c.get("size", "sliding_window")
    far = [(count - 1 - layer) % 4 == 0 for layer in range(count)]
    types = layer_types(c, count, lambda layer: not far[layer])
    bases = c.get("list", "layer_rope_theta") or [int(not each) for each in far]
    if len(bases) != count or not all(is_kind(each, "number") and each >= 0 for each in bases):
        c.refuse("layer_rope_theta", bases, f"a number of at least 0 for each of the {count} layers")
    rope = {key: found.pop(key, None) for key in ROTARY_FIELDS}
    found |= {
        "norm": "rmsnorm_plus_one", "norm_placement": "double", "output_norm_eps": c.get("positive", "post_norm_eps"),
        "embedding_norm": True, "embedding_norm_kind": "rmsnorm_plain", "final_norm_kind": "rmsnorm",
        "qk_norm": "l2", "score_scale": (c.get("positive", "qk_scale_factor") or 1.0) * size**-0.5,
        "attention_bias": bias(c), "attention_gate": True, "attention_gate_bias": "none",
        "logit_scale": c.get("positive", "output_multiplier"),
        "logit_softcap": c.get("positive", "final_logit_softcapping"),
    }  # fmt: skip
    turned = ["turned" if each else "still" for each in bases]
    return found | combined((types, {"full": {}, "sliding": {"window": window}}),
                            (turned, {"turned": rope, "still": {"positions": "none"}}))  # fmt: skip
