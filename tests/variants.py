"""Small models as dicts of card fields: one row for each variant, so that together every component occurs.

Used wherever a test loops over all that a model can be. All sizes are distinct, prime where the structure allows. To
add a variant, add a row: what it changes in BASE.
"""

BASE = {"n_layers": 3, "d_model": 23, "n_heads": 15, "n_kv_heads": 3, "head_dim": 14, "d_ff": 29, "vocab_size": 37,
        "max_positions": 31}  # fmt: skip
PLAIN = {"n_kv_heads": 15, "ffn": "gelu", "norm": "layernorm", "positions": "learned"}  # as GPT-2 has it
WINDOWS = {"layers": ["2*local", "global"], "kinds": {"local": {"window": 6}, "global": {}}, "n_layers": 7}

VARIANTS = {
    "gqa": {},
    "mha": {"n_kv_heads": 15},
    "mqa": {"n_kv_heads": 1},
    "tied": {"tied": True},
    "gpt2": {**PLAIN, "attention_bias": "all", "ffn_bias": True, "tied": True},
    "biases qkv": {"attention_bias": "qkv"},
    "biases out": {"attention_bias": "out"},
    "embedding scale": {"embedding_scale": 4.0},
    "rmsnorm_plus_one": {"norm": "rmsnorm_plus_one"},
    "layernorm_no_bias": {"norm": "layernorm_no_bias"},
    "layernorm_plain": {"norm": "layernorm_plain"},
    "layernorm_plus_one": {"norm": "layernorm_plus_one"},
    **{f"ffn {kind}": {"ffn": kind, "ffn_bias": kind == "glu"} for kind in (
        "relu", "relu2", "gelu_tanh", "silu", "elu", "selu", "xielu", "glu", "reglu", "geglu", "geglu_tanh", "liglu",
        "swiglu_clamped")},
    "sinusoidal": {"positions": "sinusoidal"},
    "no positions": {"positions": "none"},
    "learned with offset": {"positions": "learned", "position_offset": 2},
    "partial rotary": {"rotary_dim": 6},
    "interleaved rotary": {"rope_layout": "interleaved"},
    "alibi": {"positions": "alibi"},
    "relative_bias": {"positions": "relative_bias", "position_buckets": 8, "position_max_distance": 11},
    "relative_shaw": {"positions": "relative_shaw", "position_max_distance": 11},
    "relative_xl": {"positions": "relative_xl"},
    "qk_norm head": {"qk_norm": "head"},
    "qk_norm each_head": {"qk_norm": "each_head", "qk_norm_kind": "layernorm_no_bias"},
    "qk_norm full": {"qk_norm": "full"},
    "qk_norm l2": {"qk_norm": "l2"},
    "soft caps": {"attention_softcap": 5.0, "logit_softcap": 3.0},
    "sinks": {"attention_sinks": True},
    "clip": {"qkv_clip": 0.7},
    "scales": {"score_scale": 0.3, "logit_scale": 0.5, "residual_scale": 0.4},
    "window": {"window": 6},
    "windows in turn": WINDOWS,
    "parallel": {"block": "parallel"},
    "parallel_two_norms": {"block": "parallel_two_norms"},
    "post": {"norm_placement": "post", "norm": "layernorm"},
    "double": {"norm_placement": "double"},
    "output": {"norm_placement": "output"},
    "embedding norm, head bias": {"embedding_norm": True, "head_bias": True},
    "factorised embedding": {"embedding_dim": 17},
    "encoder": {**PLAIN, "stack": "encoder", "token_types": 2, "embedding_norm": True, "head_transform": True,
                "head_bias": True, "norm_placement": "post", "tied": True},
    "encoder-decoder": {"stack": "encoder_decoder", "n_encoder_layers": 2, "positions": "relative_bias",
                        "position_buckets": 8, "position_max_distance": 11, "ffn": "relu", "score_scale": 1.0},
}  # fmt: skip


def fields(name):
    """The card fields of one variant."""
    return {**BASE, **VARIANTS[name]}
