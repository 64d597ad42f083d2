"""Dense transformers in the line of GPT-2, GPT-J and GPT-NeoX: one short function for each `model_type`."""

import math

from ..layers import by_layer, rotary
from .common import LAYER_KEYS, head_dim, plain, sizes
from .dense import gpt2, gptj

ALONE = "a decoder by itself"


def gpt_bigcode(c):
    c.only("scale_attn_by_inverse_layer_idx", False, "the class in transformers does not know it")
    c.skip("scale_attention_softmax_in_fp32", "inference_runner", "max_batch_size", "pad_key_length",
           "pre_allocate_kv_cache", "validate_runner_input")  # fmt: skip
    found = gpt2(c)
    kv_heads = 1 if c.get("bool", "multi_query") else found["n_heads"]
    other = c.get("size", "num_key_value_heads")  # no key of the class, which writes it
    if other not in (None, kv_heads):
        c.refuse("num_key_value_heads", other, f"{kv_heads}, which multi_query makes it")
    return found | {"n_kv_heads": kv_heads}


def codegen(c):
    found = gptj(c)
    c.need("size", "rotary_dim")
    if found["d_model"] % 4:
        c.refuse("n_embd", found["d_model"], "a multiple of 4, since queries, keys and values lie in four parts")
    return found


def ctrl(c):
    c.only("layer_norm_epsilon", 1e-6, "that of its layers, which is fixed")
    c.skip("from_tf")
    found = sizes(c)
    return found | {
        "d_ff": c.need("size", "dff"), "ffn": "relu", "ffn_bias": True, "attention_bias": "all",
        "norm": "layernorm", "norm_eps": 1e-6, "head_bias": True,
        "positions": "sinusoidal", "sinusoid_form": "halves", "embedding_scale": math.sqrt(found["d_model"]),
    }  # fmt: skip


def xglm(c):
    c.only("add_cross_attention", False, ALONE)
    c.skip("activation_dropout")
    if c.data.get("pad_token_id", 1) not in (None, 0, 1):
        c.refuse("pad_token_id", c.data["pad_token_id"], "0 or 1: the position at that number - 2 would have no sines")
    found = sizes(c, n_heads=c.need("size", "attention_heads", "num_attention_heads"))
    return found | {
        "d_ff": c.need("size", "ffn_dim"), "positions": "sinusoidal", "sinusoid_form": "tensor2tensor",
        "position_offset": 2, **_bart(c, found),
    }  # fmt: skip


def biogpt(c):
    c.skip("activation_dropout", "layer_norm_eps")  # the class in transformers does not read the latter
    found = sizes(c)
    return found | {
        "d_ff": c.need("size", "intermediate_size"), "positions": "learned", "position_offset": 2, **_bart(c, found),
    }  # fmt: skip


def _bart(c, found):
    """Layers as BART's, but norms before each branch; their epsilon is fixed."""
    return {
        "ffn": plain(c), "ffn_bias": True, "attention_bias": "all", "norm": "layernorm", "norm_eps": 1e-5,
        "embedding_scale": math.sqrt(found["d_model"]) if c.get("bool", "scale_embedding") else None,
    }  # fmt: skip


def gpt_neox_japanese(c):
    c.skip("is_decoder")  # it is causal in any case
    found, count = sizes(c), c.need("layers", *LAYER_KEYS)
    kinds = {"first": {}, "last": {"attention_bias": "out"}}  # the last layer alone has that bias
    return found | {
        "d_ff": int(found["d_model"] * c.need("ratio", "intermediate_multiple_size")), "ffn": plain(c),
        "norm": "layernorm", **rotary(c, {"head_dim": head_dim(c, found)}),
        **by_layer(["first"] * (count - 1) + ["last"], kinds),
    }  # fmt: skip


def persimmon(c):
    found = sizes(c)
    return found | {
        "d_ff": c.need("size", "intermediate_size"), "ffn": plain(c), "ffn_bias": True, "attention_bias": "all",
        "norm": "layernorm", "qk_norm": "head" if c.get("bool", "qk_layernorm") else None,
        **rotary(c, {**found, "head_dim": head_dim(c, found)}),
    }  # fmt: skip
