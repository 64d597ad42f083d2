"""Dense transformers in the line of LLaMA: one short function for each `model_type`."""

from ...cards import is_kind
from ..layers import ROTARY_FIELDS, by_layer, combined, layer_types, rotary
from .common import bias, flag, gated, grouped, llama_like, plain
from .dense import apertus, gemma2, granite, llama


def cwm(c):
    c.only("attention_bias", False, "the class in transformers has none")
    found = llama_like(c) | {"ffn_bias": c.get("bool", "mlp_bias")}
    return found | _windows(c, found, lambda layer: layer % 4)


def ministral(c):
    found = llama_like(c)
    return found | _windows(c, found, lambda layer: True)


def _windows(c, found, sliding):
    """The window of layers that have one, by layer_types, else as sliding(layer) says."""
    types = layer_types(c, found["n_layers"], sliding)
    return by_layer(types, {"full": {}, "sliding": {"window": c.get("size", "sliding_window")}})


def ministral3(c):
    found = llama_like(c) | {"window": c.get("size", "sliding_window")}
    table = c.object("rope_scaling", "rope_parameters")
    table.skip("max_position_embeddings")
    return found | {
        "attention_temperature": table.need("positive", "llama_4_scaling_beta"),
        "attention_temperature_floor": table.need("size", "original_max_position_embeddings"),
        "attention_growth": "log",
    }


def hunyuan_v1_dense(c):
    for key, value in (("use_qk_norm", True), ("use_cla", False), ("use_rotary_pos_emb", True), ("mlp_bias", False)):
        c.only(key, value, "the class in transformers knows no other")
    c.skip("attention_head_dim", "add_classification_head", "cla_share_factor", "class_num", "dense_list", "eod_id",
           "im_end_id", "im_newline_id", "im_start_id", "mask_init_id", "norm_type", "org_vocab_size", "pad_id",
           "pool_type", "sep_id", "text_end_id", "text_start_id")  # fmt: skip
    return llama_like(c) | {"attention_bias": bias(c), "qk_norm": "head_last"}


def jais2(c):
    found = grouped(c)
    return found | {
        "norm": "layernorm", "ffn": plain(c), "attention_bias": bias(c), "ffn_bias": c.get("bool", "mlp_bias"),
        **rotary(c, found),
    }  # fmt: skip


def nanochat(c):
    found = grouped(c)
    return found | {
        "norm": "rmsnorm_plain", "embedding_norm": True, "ffn": plain(c), "attention_bias": bias(c), "qk_norm": "l2",
        "logit_softcap": c.get("positive", "final_logit_softcapping"), **rotary(c, found), "rope_backward": True,
    }  # fmt: skip


def vaultgemma(c):
    return gemma2(c) | {"norm_placement": "pre"}


def bitnet(c):
    found = llama_like(c)
    if found["n_heads"] * found["head_dim"] != found["d_model"]:
        c.refuse("head_dim", found["head_dim"], f"{found['d_model']} / {found['n_heads']}, since a norm is so wide")
    return found | {"attention_bias": bias(c), "attention_sub_norm": True, "ffn_sub_norm": True}


def internlm3(c):
    attention, fed = c.get("bool", "attention_bias", "qkv_bias"), c.get("bool", "mlp_bias", "bias")
    if bool(attention) != bool(fed):
        c.refuse("qkv_bias", attention, f"{fed}, as bias: the class in transformers knows biases everywhere or nowhere")
    return llama_like(c) | {"attention_bias": "all" if attention else "none", "ffn_bias": fed}


def iquestcoder(c):
    c.only("clip_qkv", None, "the class in transformers does not clip")
    c.only("use_sliding_window", False, "the class in transformers has no windows")
    c.skip("sliding_window", "max_window_layers")
    return llama(c)


def granite_swa(c):
    found = granite(c) | {"attention_sinks": True}
    return found | combined(*granite_layers(c, found))


def granite_layers(c, found):
    """How the layers of Granite SWA differ: windows, and rotary bases of their own; takes the rotary fields of all."""
    count, window = found["n_layers"], c.get("size", "sliding_window")
    types = layer_types(c, count, lambda layer: layer % 4)
    bases = c.get("list", "layer_rope_theta") or [found["rope_base"]] * count
    if len(bases) != count or not all(each == 0 or is_kind(each, "positive") for each in bases):
        c.refuse("layer_rope_theta", bases, f"a number of at least 0 for each of the {count} layers")
    names, rope = [f"base_{float(each)}" for each in bases], {key: found.pop(key, None) for key in ROTARY_FIELDS}
    turned = {
        name: {**rope, "rope_base": float(each)} if each else {"positions": "none"} for name, each in zip(names, bases)
    }
    return (types, {"full": {}, "sliding": {"window": window}}), (names, turned)


def hyperclovax(c):
    return granite(c) | {
        "norm_placement": flag(c, "use_post_norm", "double", "pre"),
        "logit_scale": c.need("positive", "logits_scaling"),  # a factor here, a divisor in Granite
    }


def apertus1p5(c):
    found, known = apertus(c), c.get("size", "output_vocab_size")
    if known is not None and known > found["vocab_size"]:
        c.refuse("output_vocab_size", known, f"at most vocab_size = {found['vocab_size']}")
    return found | {"head_vocab": known if known != found["vocab_size"] else None}


def cohere_compass(c):
    c.skip("pooling", "head_dim")  # of embeddings; not of its choice
    found = grouped(c) | {
        "norm": "layernorm_no_bias", "block": "parallel", "ffn": gated(c), "attention_bias": bias(c),
        "logit_scale": c.get("positive", "logit_scale"),
    }  # fmt: skip
    types = layer_types(c, found["n_layers"], lambda layer: False)
    window = {"window": c.get("size", "sliding_window")}
    kinds = {
        "full": lambda: _turned(c, found, "full_attention"),
        "sliding": lambda: window | _turned(c, found, "sliding_attention"),
    }
    return found | by_layer(types, {name: kinds[name]() for name in dict.fromkeys(types)})


def _turned(c, found, layer_type):
    """The rotary fields of layers of one type, whose table is null where positions do not enter."""
    table = c.inside("rope_parameters")
    if table is not None and {"full_attention", "sliding_attention"} & set(table.data):
        table.skip("rope_theta", "rope_type", layer_type)  # left over in published configs
        if table.data.get(layer_type) is None:
            return {"positions": "none"}
    return rotary(c, found, layer_type)
