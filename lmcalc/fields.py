"""The vocabulary of model cards: every field that an architecture may have, one row each.

A row is (kind, what it is, size when shrunk). Kinds: "size" (integer of at least 1), "count" (integer of at least 0),
"number" (finite), "positive" (finite, above 0), "bool", "text", "table" (checked by its component), "list", or a
tuple of the allowed words. The last entry is the size that a field takes in a shrunken copy of a card
(`lmcalc validate`): small, all distinct, prime where the structure allows; None keeps the card's own value.
A component says itself which fields it reads and what they default to; a field that no part of a model reads is an
error.
"""

FIELDS = {
    # sizes
    "n_layers": ("size", "decoder blocks (encoder blocks in an encoder), L", 3),
    "n_encoder_layers": ("size", "encoder blocks of an encoder-decoder", 2),
    "d_model": ("size", "width of the residual stream, D", 23),
    "n_heads": ("size", "query heads, N = K*R", None),
    "n_kv_heads": ("size", "key/value heads, K", None),
    "head_dim": ("size", "size of a head, H", None),
    "d_ff": ("size", "width of the feed-forward after its gate, F", 29),
    "vocab_size": ("size", "tokens in the vocabulary, V", 37),
    "max_positions": ("size", "longest context that the model was made for; rows of a learned table", 31),
    "embedding_dim": ("size", "width of the embedding table where it is not d_model (OPT 350M)", 17),
    "token_types": ("size", "rows of a table of token types (BERT)", 2),
    # layers that differ
    "layers": ("list", "kinds of the layers in order, repeated to n_layers: names of [architecture.kinds], or \"5*name\"", None),
    "kinds": ("table", "for each kind of layer the fields in which it differs", None),
    # choices
    "stack": (("decoder", "encoder", "encoder_decoder"), "which stacks the model has", None),
    "block": (
        ("serial", "parallel", "parallel_two_norms"),
        "attention and feed-forward one after the other, or side by side behind one shared norm or one each",
        None,
    ),
    "norm_placement": (
        ("pre", "post", "double", "output"),
        "norms before each branch, after each sum, before and after each branch, or after each branch only",
        None,
    ),
    "norm": (
        ("rmsnorm", "rmsnorm_plus_one", "layernorm", "layernorm_no_bias", "layernorm_plain", "layernorm_plus_one"),
        "kind of every norm",
        None,
    ),
    "norm_eps": ("positive", "epsilon of the norms", None),
    "embedding_norm": ("bool", "a norm right behind the embedding (BLOOM, BERT)", None),
    "final_norm": ("bool", "a norm before the head", None),
    "ffn": (
        ("relu", "relu2", "gelu", "gelu_tanh", "silu", "elu", "selu", "xielu",
         "glu", "reglu", "geglu", "geglu_tanh", "swiglu", "liglu", "swiglu_clamped"),
        "activation of the feed-forward; names in -glu are gated (three matrices)",
        None,
    ),
    "ffn_bias": ("bool", "biases in the feed-forward", None),
    "residual_scale": ("positive", "factor on each branch before it is added (Granite, MiniCPM)", None),
    # positions
    "positions": (
        ("none", "learned", "sinusoidal", "rotary", "alibi", "relative_bias", "relative_shaw", "relative_xl"),
        "how positions enter",
        None,
    ),
    "position_offset": ("count", "rows of a learned table before the first position (OPT: 2)", 2),
    "rope_base": ("positive", "base of the rotary frequencies", None),
    "rope_layout": (("half", "interleaved"), "rotary pairs: two halves of a head, or neighbours", None),
    "rotary_dim": ("size", "entries of a head that are turned, where not all are", 6),
    "rope_scaling": ("table", "rescaled rotary frequencies", None),
    "position_buckets": ("size", "buckets of a relative bias (T5)", 8),
    "position_max_distance": ("size", "distance from which on a relative bias, or relative vectors, stay the same", 11),
    # attention
    "attention_bias": (("none", "qkv", "out", "all"), "which attention projections have biases", None),
    "qk_norm": (
        ("none", "head", "each_head", "full", "l2"),
        "norm of queries and keys: one weight of head size, one for each head, over the full width, or L2 without weight",
        None,
    ),
    "qk_norm_kind": (
        ("rmsnorm", "rmsnorm_plus_one", "layernorm", "layernorm_no_bias"), "its kind, where not that of the others", None
    ),
    "attention_softcap": ("positive", "cap * tanh(score / cap) on attention scores", None),
    "attention_sinks": ("bool", "a learned logit a head that takes part in the softmax only (gpt-oss)", None),
    "qkv_clip": ("positive", "queries, keys and values clipped to +- this", None),
    "score_scale": ("positive", "factor on attention scores, where not 1/sqrt(head_dim)", None),
    "window": ("size", "keys that a query may attend to, itself included", 6),
    # embedding and head
    "tied": ("bool", "the output head is the input embedding", None),
    "head_bias": ("bool", "a bias on the logits", None),
    "head_transform": ("bool", "a dense layer, activation and norm before the head (BERT)", None),
    "embedding_scale": ("positive", "factor on the embeddings", None),
    "logit_scale": ("positive", "factor on the logits", None),
    "logit_softcap": ("positive", "cap * tanh(logit / cap) on the logits", None),
    # recorded, not computed
    "dropout": ("number", "dropout of training", None),
    "attention_dropout": ("number", "dropout on attention weights in training", None),
    "weight_decay": ("number", "weight decay of training", None),
}
