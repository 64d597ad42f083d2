"""Models of which papers give tables and nobody code: one function for each `model_type` that copies of them use.

What such a table leaves out is said in the notes of the model, be it what the paper says elsewhere or assumed.
"""

import math

from ..layers import rotary
from .common import four_wide, heads

# What the papers say of all their models
DEFAULTS = {
    # Brown et al. 2020, sec. 2.1: the architecture of GPT-2, whose code adds 1e-5 in norms; context of 2,048
    "gpt3": {"n_positions": 2048, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True},
    # Rae et al. 2021, sec. 2.1: 32,000 tokens in the vocabulary, context of 2,048; Hoffmann et al. 2022 follow it
    "gopher": {"vocab_size": 32000, "max_position_embeddings": 2048},
    "chinchilla": {"vocab_size": 32000, "max_position_embeddings": 2048},
    # Thoppilan et al. 2022 take the relative attention of T5, with 32 buckets up to a distance of 128
    "lamda": {"norm_eps": 1e-6},
    # Chowdhery et al. 2022, sec. 2 and 5: no biases, shared embeddings, context of 2,048
    "palm": {"max_position_embeddings": 2048, "tie_word_embeddings": True},
    # Vaswani et al. 2017, sec. 5.1: source and target share "about 37000 tokens" (English-German)
    "encoder-decoder": {"vocab_size": 37000},
}


def gpt3(c):
    pattern = c.get("text", "attention_pattern")
    if pattern is not None:
        c.note(f"attention_pattern = {pattern!r}: the band of sparse layers is not public. All layers are counted as "
               "dense: an upper bound of scores and cache reads.")  # fmt: skip
    c.note("norms, biases and activation are those of GPT-2, as the paper says (Brown et al. 2020, sec. 2.1).")
    found = heads(c.calling(num_hidden_layers=("n_layer",), hidden_size=("n_embd",), num_attention_heads=("n_head",)))
    return found | {
        "d_ff": four_wide(c, found, "n_inner"), "ffn": "gelu_tanh", "ffn_bias": True, "attention_bias": "all",
        "norm": "layernorm", "positions": "learned",
    }  # fmt: skip


def gopher(c):
    """Gopher, and Chinchilla after it."""
    given = "" if c.given("vocab_size") else f"vocabulary {c.defaults['vocab_size']:,}, "
    c.note(f"of the paper (Rae et al. 2021, sec. 2.1): {given}norms without mean, relative positions of "
           "Transformer-XL. Assumed, not public: ReLU, no biases, embedding and head share a table.")  # fmt: skip
    found = heads(c)
    return found | {
        "d_ff": c.need("size", "intermediate_size"), "ffn": "relu", "norm": "rmsnorm", "positions": "relative_xl",
        "tied": True,
    }  # fmt: skip


def lamda(c):
    c.only("activation", "gated-gelu", "the paper has no other")
    c.only("position_encoding", "relative attention as in T5", "the paper has no other")
    c.note("assumed, not public: norms without mean, no biases, embedding and head share a table.")
    found = heads(c)
    return found | {
        "d_ff": c.need("size", "intermediate_size"), "ffn": "geglu", "norm": "rmsnorm", "tied": True,
        "positions": "relative_bias", "position_buckets": 32, "position_max_distance": 128,
    }  # fmt: skip


def palm(c):
    for key, value in (("activation", "swiglu"), ("parallel_block", True), ("bias", False), ("position", "rope")):
        c.only(key, value, "the paper has no other")
    c.note("of the paper (Chowdhery et al. 2022, sec. 2, 5): norms without bias, embedding and head share a table, "
           "logits over sqrt(d_model). Assumed, not public: a rotary base of 10,000.")  # fmt: skip
    found = heads(c)
    return found | {
        "d_ff": c.need("size", "intermediate_size"), "ffn": "swiglu", "norm": "layernorm_no_bias", "block": "parallel",
        "logit_scale": 1 / math.sqrt(found["d_model"]), **rotary(c, found), "rope_base": 10000.0,
    }  # fmt: skip


def transformer(c):
    """The first Transformer (Vaswani et al. 2017), whose vocabulary the paper gives as about 37,000."""
    for key in ("encoder", "decoder"):
        c.only(key, None, "the keys of the first Transformer: two models of any kind tied together are not read")
    for key, value in (("activation", "relu"), ("norm", "layernorm"), ("norm_placement", "post"),
                       ("position_encoding", "sinusoidal"), ("tie_word_embeddings", True),
                       ("is_gated_act", False)):  # fmt: skip
        c.only(key, value, "the paper has no other")
    if not c.given("vocab_size"):
        c.note("of the paper (Vaswani et al. 2017, sec. 5.1): a vocabulary of about 37,000.")
    layers = c.need("layers", "num_layers")
    c = c.calling(hidden_size=("d_model",), num_attention_heads=("num_heads",), head_dim=("d_kv",))
    found = heads(c, layers=c.need("layers", "num_decoder_layers"))
    return found | {
        "stack": "encoder_decoder", "n_encoder_layers": layers, "d_ff": c.need("size", "d_ff"),
        "ffn": "relu", "ffn_bias": True, "norm": "layernorm", "norm_placement": "post", "final_norm": False,
        "norm_eps": 1e-6, "positions": "sinusoidal", "tied": True, "embedding_scale": math.sqrt(found["d_model"]),
    }  # fmt: skip
