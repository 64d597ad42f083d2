"""Dense transformers: one short function for each `model_type`.

The functions say in which ways a family differs from what its class is built on.
"""

import math

from ..irrelevant import IRRELEVANT
from ..layers import ROTARY_FIELDS, by_layer, combined, kinds_of, layer_types, pattern_types, rotary
from .common import (
    ACTIVATIONS,
    GATED,
    LAYER_KEYS,
    flag,
    four_wide,
    gated,
    grouped,
    head_dim,
    llama_like,
    plain,
    sizes,
)  # fmt: skip


def gpt2(c):
    c.only("add_cross_attention", False, "a decoder by itself")
    found = sizes(c)
    scale = 1.0 if not c.get("bool", "scale_attn_weights") else None
    found |= {"d_ff": four_wide(c, found, "n_inner"), "ffn": plain(c), "score_scale": scale}
    found |= {"norm": "layernorm", "positions": "learned", "attention_bias": "all", "ffn_bias": True}
    if c.get("bool", "scale_attn_by_inverse_layer_idx"):
        own = scale or 1 / math.sqrt(head_dim(c, found))
        names = [f"layer{layer}" for layer in range(found["n_layers"])]
        found |= by_layer(names, {name: {"score_scale": own / (layer + 1)} for layer, name in enumerate(names)})
    return found


def openai_gpt(c):
    found = sizes(c)
    activation = c.need(("gelu", "relu", "silu", "swish"), "afn")  # its "gelu" is the tanh form
    return found | {
        "d_ff": 4 * found["d_model"],
        "ffn": "gelu_tanh" if activation == "gelu" else ACTIVATIONS[activation][0],
        "norm": "layernorm", "norm_placement": "post", "final_norm": False,
        "positions": "learned", "attention_bias": "all", "ffn_bias": True,
    }  # fmt: skip


def opt(c):
    found = sizes(c)
    biases, before = c.get("bool", "enable_bias"), c.get("bool", "do_layer_norm_before")
    width = c.get("size", "word_embed_proj_dim")
    return found | {
        "d_ff": c.need("size", "ffn_dim"), "ffn": plain(c),
        "norm": flag(c, "layer_norm_elementwise_affine", "layernorm", "layernorm_plain"),
        "norm_placement": "pre" if before else "post",
        "final_norm": not c.get("bool", "_remove_final_layer_norm") and before,
        "positions": "learned", "position_offset": 2,
        "attention_bias": "all" if biases else "none", "ffn_bias": bool(biases),
        "embedding_dim": width if width != found["d_model"] else None,
    }  # fmt: skip


def gptj(c):
    for key in ("rotary", "scale_attn_weights"):
        c.only(key, True, "the class in transformers knows no other")
    found = sizes(c)
    size = c.get("size", "rotary_dim")
    return found | {
        "d_ff": four_wide(c, found, "n_inner"), "ffn": plain(c), "ffn_bias": True,
        "norm": "layernorm", "block": "parallel", "head_bias": True,
        "positions": "rotary", "rope_layout": "interleaved", "rope_base": 10000.0,
        "rotary_dim": size if size != head_dim(c, found) else None,
    }  # fmt: skip


def gpt_neo(c):
    found = sizes(c)
    found |= {
        "d_ff": four_wide(c, found, "intermediate_size"), "ffn": plain(c), "ffn_bias": True,
        "norm": "layernorm", "positions": "learned", "attention_bias": "out", "score_scale": 1.0,
    }  # fmt: skip
    types = c.get("list", "attention_layers") or pattern_types(c, found["n_layers"])
    if c.given("attention_types") and pattern_types(c, found["n_layers"]) != types:
        c.refuse("attention_layers", types, f"what attention_types = {c.data['attention_types']} says")
    known = {"global": {}, "local": {"window": c.need("size", "window_size")}}
    return found | by_layer(kinds_of(c, "attention_layers", types, known, found["n_layers"]), known)


def gpt_neox(c):
    c.skip("is_decoder")  # it is causal in any case
    found = grouped(c)
    return found | {
        "ffn": plain(c), "ffn_bias": True, "norm": "layernorm",
        "attention_bias": flag(c, "attention_bias", "all", "none"),
        "block": flag(c, "use_parallel_residual", "parallel_two_norms", "serial"),
        **rotary(c, found),
    }  # fmt: skip


def bloom(c):
    c.only("apply_residual_connection_post_layernorm", False, "no published model has it")
    c.only("n_inner", None, "the feed-forward is 4 times as wide as the model")
    found = sizes(c)
    return found | {
        "d_ff": 4 * found["d_model"], "ffn": "gelu_tanh", "ffn_bias": True, "attention_bias": "all",
        "norm": "layernorm", "embedding_norm": True, "positions": "alibi",
    }  # fmt: skip


def mpt(c):
    for key, value, why in (
        ("expansion_ratio", 4, "the class in transformers knows no other"),
        ("no_bias", True, "the class in transformers has no biases"),
        ("logit_scale", None, "the class in transformers does not read it"),
    ):
        c.only(key, value, why)
    c.skip("learned_pos_emb", "embedding_fraction", "norm_type")  # its positions are ALiBi, its norms LayerNorm
    found = sizes(c)
    found |= {"d_ff": 4 * found["d_model"], "ffn": "gelu", "norm": "layernorm_no_bias"}
    found |= {"positions": "alibi", "alibi_slopes": "mpt"}
    return found | (_mpt_attention(c.inside("attn_config")) if c.given("attn_config") else {})


def _mpt_attention(c):
    for key, value, why in (
        ("attn_type", "multihead_attention", "one key/value head for each query head"),
        ("alibi", True, "its positions are ALiBi"),
        ("qk_ln", False, "the class in transformers has no such norm"),
        ("prefix_lm", False, "causal attention"),
        ("attn_uses_sequence_id", False, "one sequence"),
    ):
        c.only(key, value, why)
    c.skip("attn_impl", *IRRELEVANT)
    return {
        "qkv_clip": c.get("positive", "clip_qkv"),
        "score_scale": c.get("positive", "softmax_scale"),
        "attention_dropout": c.get("number", "attn_pdrop"),
        "alibi_bias_max": c.get("positive", "alibi_bias_max"),
    }


def falcon(c):
    found = sizes(c)
    new, alibi = c.get("bool", "new_decoder_architecture"), c.get("bool", "alibi")
    many, parallel = c.get("bool", "multi_query"), c.get("bool", "parallel_attn")
    kv_heads, norms = c.get("size", "num_kv_heads", "n_head_kv"), c.get("size", "num_ln_in_parallel_attn")
    found["n_kv_heads"] = (kv_heads or found["n_heads"]) if new else 1 if many else found["n_heads"]
    other = c.get("size", "num_key_value_heads")  # no key of the class: refused where it says something else
    if other not in (None, found["n_kv_heads"]):
        c.refuse("num_key_value_heads", other, f"{found['n_kv_heads']}, which multi_query, num_kv_heads and "
                 "new_decoder_architecture make it (Falcon 40B: num_kv_heads 8 and the last one true)")  # fmt: skip
    two, turned = new and norms in (None, 2), rotary(c, {**found, "head_dim": head_dim(c, found)})
    if alibi:
        turned = dict.fromkeys(turned) | {"positions": "alibi", "alibi_slopes": "falcon"}
    return found | {
        "d_ff": four_wide(c, found, "ffn_hidden_size"), "ffn": plain(c), "ffn_bias": flag(c, "bias", True, False),
        "attention_bias": flag(c, "bias", "all", "none"), "norm": "layernorm",
        "block": "parallel_two_norms" if two else "parallel" if new or parallel else "serial",
        **turned,
    }  # fmt: skip


def llama(c):
    return llama_like(c) | {
        "attention_bias": flag(c, "attention_bias", "all", "none"), "ffn_bias": c.get("bool", "mlp_bias"),
    }  # fmt: skip


def mistral(c):
    return llama_like(c) | {"window": c.get("size", "sliding_window")}


def qwen2(c):
    return llama_like(c) | {"attention_bias": "qkv"} | _qwen_windows(c)


def qwen3(c):
    return llama_like(c) | {
        "attention_bias": flag(c, "attention_bias", "all", "none"), "qk_norm": "head", **_qwen_windows(c),
    }  # fmt: skip


def _qwen_windows(c):
    """Windows only if they are switched on, in the layers from max_window_layers on."""
    count, first = c.need("layers", *LAYER_KEYS), c.get("count", "max_window_layers")
    on = c.get("bool", "use_sliding_window")
    window = c.get("size", "sliding_window") if on else None
    c.skip("sliding_window")
    types = layer_types(c, count, lambda layer: window is not None and layer >= (first or 0))
    return by_layer(types, {"full": {}, "sliding": {"window": window}})


def phi(c):
    found = grouped(c)
    return found | {
        "ffn": plain(c), "ffn_bias": True, "attention_bias": "all", "head_bias": True, "norm": "layernorm",
        "block": "parallel", "qk_norm": flag(c, "qk_layernorm", "head", None), **rotary(c, found),
    }  # fmt: skip


def phi3(c):
    found = llama_like(c) | {"window": c.get("size", "sliding_window")}
    c.skip("original_max_position_embeddings")  # where nothing is scaled
    return found


def gemma(c):
    c.only("use_bidirectional_attention", False, "causal attention")
    found = grouped(c)
    activation = c.need(GATED, "hidden_act")
    c.skip("hidden_activation")
    return found | {
        "ffn": "geglu_tanh" if activation == "gelu" else ACTIVATIONS[activation][1],  # its old configs say gelu for it
        "attention_bias": flag(c, "attention_bias", "all", "none"),
        "norm": "rmsnorm_plus_one", "embedding_scale": math.sqrt(found["d_model"]), **rotary(c, found),
    }  # fmt: skip


def gemma2(c):
    found = _gemma_later(c)
    window = c.get("size", "sliding_window", "sliding_window_size")
    types = layer_types(c, found["n_layers"], lambda layer: (layer + 1) % 2)
    return found | {
        "attention_softcap": c.get("positive", "attn_logit_softcapping"), **rotary(c, found),
        **by_layer(types, {"full": {}, "sliding": {"window": window}}),
    }  # fmt: skip


def gemma3(c):
    c.skip("attn_logit_softcapping")  # in the config, but the class does not use it
    found = _gemma_later(c)
    window = c.get("size", "sliding_window")
    every = c.get("size", "sliding_window_pattern", "_sliding_window_pattern") or 6
    types = layer_types(c, found["n_layers"], lambda layer: (layer + 1) % every)
    kinds = {
        "full": rotary(c, found, "full_attention"),
        "sliding": {"window": window, **rotary(c, found, "sliding_attention", base_key="rope_local_base_freq")},
    }
    return found | {"qk_norm": "head", **by_layer(types, kinds)}


def _gemma_later(c):
    c.only("use_bidirectional_attention", False, "causal attention")
    found = grouped(c)
    return found | {
        "ffn": ACTIVATIONS[c.need(GATED, "hidden_activation", "hidden_act")][1],
        "attention_bias": flag(c, "attention_bias", "all", "none"),
        "norm": "rmsnorm_plus_one", "norm_placement": "double", "embedding_scale": math.sqrt(found["d_model"]),
        "score_scale": c.need("positive", "query_pre_attn_scalar") ** -0.5,
        "logit_softcap": c.get("positive", "final_logit_softcapping"),
    }  # fmt: skip


def olmo(c):
    return llama_like(c) | {
        "norm": "layernorm_plain", "norm_eps": 1e-5, "qkv_clip": c.get("positive", "clip_qkv"),
        "attention_bias": flag(c, "attention_bias", "all", "none"),
    }  # fmt: skip


def olmo2(c):
    return llama_like(c) | _olmo_later(c)


def olmo3(c):
    found = grouped(c)
    window = c.get("size", "sliding_window")
    types = layer_types(c, found["n_layers"], lambda layer: (layer + 1) % 4)
    kinds = {
        "full": rotary(c, found, "full_attention"),
        "sliding": {"window": window, **rotary(c, found, "sliding_attention")},
    }
    return found | {"norm": "rmsnorm", "ffn": gated(c), **_olmo_later(c), **by_layer(types, kinds)}


def _olmo_later(c):
    return {"norm_placement": "output", "qk_norm": "full", "attention_bias": flag(c, "attention_bias", "all", "none")}


def cohere(c):
    return _cohere(c) | {"qk_norm": flag(c, "use_qk_norm", "each_head", None)}


def cohere2(c):
    found = _cohere(c)
    window, every = c.get("size", "sliding_window"), c.get("size", "sliding_window_pattern") or 4
    types = layer_types(c, found["n_layers"], lambda layer: (layer + 1) % every)
    turned, still = {key: found.pop(key, None) for key in ROTARY_FIELDS}, {"positions": "none"}
    return found | by_layer(
        types, {"full": still, "sliding": still if window is None else {"window": window, **turned}}
    )


def _cohere(c):
    return llama_like(c) | {
        "norm": "layernorm_no_bias", "block": "parallel", "rope_layout": "interleaved",
        "logit_scale": c.get("positive", "logit_scale"),
        "attention_bias": flag(c, "attention_bias", "all", "none"),
    }  # fmt: skip


def starcoder2(c):
    found = grouped(c)
    return found | {
        "ffn": plain(c), "norm": "layernorm", "window": c.get("size", "sliding_window"),
        "attention_bias": flag(c, "use_bias", "all", "none"), "ffn_bias": c.get("bool", "use_bias"), **rotary(c, found),
    }  # fmt: skip


def stablelm(c):
    heads = c.get("bool", "qk_layernorm")
    return llama_like(c) | {
        "norm": "layernorm", "attention_bias": flag(c, "use_qkv_bias", "qkv", "none"),
        "block": flag(c, "use_parallel_residual", "parallel", "serial"),
        "qk_norm": "each_head" if heads else None, "qk_norm_kind": "layernorm_no_bias" if heads else None,
    }  # fmt: skip


def nemotron(c):
    found = grouped(c)
    return found | {
        "ffn": plain(c), "norm": "layernorm_plus_one", "attention_bias": flag(c, "attention_bias", "all", "none"),
        "ffn_bias": c.get("bool", "mlp_bias"), **rotary(c, found),
    }  # fmt: skip


def granite(c):
    return llama(c) | {
        "embedding_scale": c.get("positive", "embedding_multiplier"),
        "residual_scale": c.get("positive", "residual_multiplier"),
        "score_scale": c.get("positive", "attention_multiplier"),
        "logit_scale": 1 / c.need("positive", "logits_scaling"),
    }


def smollm3(c):
    found = llama(c)
    count, on, window = found["n_layers"], c.get("bool", "use_sliding_window"), c.get("size", "sliding_window")
    turned, every = c.get("list", "no_rope_layers"), c.get("size", "no_rope_layer_interval")
    if turned is None:
        every = every or c.need("size", "no_rope_layer_interval")
        turned = [int((layer + 1) % every != 0) for layer in range(count)]
    if len(turned) != count or any(each not in (0, 1) for each in turned):
        c.refuse("no_rope_layers", turned, f"0 or 1 for each of the {count} layers")
    types = layer_types(c, count, lambda layer: on and window is not None and not turned[layer])
    rope = {key: found.pop(key, None) for key in ROTARY_FIELDS}
    windows = {"full": {}, "sliding": {"window": window if on else None}}
    kinds = {
        f"{name}_{place}": {**changes, **(rope if place == "rotary" else {"positions": "none"})}
        for name, changes in windows.items()
        for place in ("rotary", "plain")
    }
    return found | by_layer([f"{a}_{'rotary' if b else 'plain'}" for a, b in zip(types, turned)], kinds)


def glm(c):
    return llama_like(c) | {
        "attention_bias": flag(c, "attention_bias", "qkv", "none"), "rope_layout": "interleaved",
    }  # fmt: skip


def glm4(c):
    return glm(c) | {"norm_placement": "double"}


def t5(c):
    found = mt5(c)
    tied = found["tied"] is not False  # a head of its own came with version 1.1, which scales nothing before it
    scaled = c.get("bool", "scale_decoder_outputs") if c.given("scale_decoder_outputs") else tied
    return found | {"tied": tied, "head_scale": found["d_model"] ** -0.5 if scaled else None}


def mt5(c):
    found = sizes(c, own_head=True)
    decoder = c.get("layers", "num_decoder_layers") or found["n_layers"]
    c.only("is_decoder", False, "encoder and decoder")
    word = c.need("text", "feed_forward_proj")
    name = {"gated-gelu": "gated-gelu_new"}.get(word, word)
    activation = ACTIVATIONS.get(name.removeprefix("gated-"), (None, None))[name.startswith("gated-")]
    if activation is None:
        c.refuse("feed_forward_proj", word, "an activation, or gated- and one: " + ", ".join(ACTIVATIONS))
    c.skip("is_gated_act", "dense_act_fn")  # what feed_forward_proj says, once more
    return found | {
        "stack": "encoder_decoder", "n_encoder_layers": found["n_layers"], "n_layers": decoder,
        "head_dim": c.need("size", "d_kv"), "d_ff": c.need("size", "d_ff"), "ffn": activation,
        "norm": "rmsnorm", "positions": "relative_bias", "score_scale": 1.0,
        "position_buckets": c.need("size", "relative_attention_num_buckets"),
        "position_max_distance": c.need("size", "relative_attention_max_distance"),
    }  # fmt: skip


def seed_oss(c):
    inputs, out = c.get("bool", "attention_bias"), c.get("bool", "attention_out_bias")
    return llama_like(c) | {
        "attention_bias": ("all" if out else "qkv") if inputs else "out" if out else "none",
        "ffn_bias": c.get("bool", "mlp_bias"),
    }  # fmt: skip


def exaone4(c):
    found, way = exaone(c, llama_like(c))
    return found | {"norm_placement": "output"} | combined(way)


def exaone(c, found):
    """(fields, how layers differ) of EXAONE's attention: windows in most layers, and only these turn."""
    window, every = c.get("size", "sliding_window"), c.data.get("sliding_window_pattern", 4)
    if isinstance(every, str) and every and not set(every) - set("LG"):  # "LLLG": local, local, local, global
        c.skip("sliding_window_pattern")
        types = layer_types(c, found["n_layers"], lambda layer: every[layer % len(every)] == "L")
    else:
        every = c.get("count", "sliding_window_pattern")
        types = layer_types(c, found["n_layers"], lambda layer: window is not None and every and (layer + 1) % every)
    found = found | {"qk_norm": "head"}
    if window is None:
        return found, ([], {})
    rope = {key: found.pop(key, None) for key in ROTARY_FIELDS}
    return found, (types, {"full": {"positions": "none"}, "sliding": {"window": window, **rope}})


def ernie4_5(c):
    return llama_like(c) | {
        "attention_bias": flag(c, "use_bias", "all", "none"), "ffn_bias": c.get("bool", "use_bias"),
        "rope_layout": "interleaved",
    }  # fmt: skip


def helium(c):
    return llama_like(c) | {
        "attention_bias": flag(c, "attention_bias", "qkv", "none"), "ffn_bias": c.get("bool", "mlp_bias"),
        "rope_layout": "interleaved",
    }  # fmt: skip


def arcee(c):
    found = grouped(c)
    return found | {
        "norm": "rmsnorm", "ffn": plain(c), "attention_bias": flag(c, "attention_bias", "all", "none"),
        "ffn_bias": c.get("bool", "mlp_bias"), **rotary(c, found),
    }  # fmt: skip


def apertus(c):
    found = grouped(c)
    return found | {
        "norm": "rmsnorm", "ffn": plain(c), "attention_bias": flag(c, "attention_bias", "all", "none"),
        "qk_norm": "head", **rotary(c, found),
    }  # fmt: skip
