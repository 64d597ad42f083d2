"""The vocabulary of model cards: every field that an architecture may have, one row each.

A row is (kind, what it is, size when shrunk). Kinds: "size" (integer of at least 1), "count" (integer of at least 0),
"number" (finite), "positive" (finite, above 0), "bool", "text", "table" (checked by its component), "list",
"size_rule" (a size, or text that gives it from d_model, see `rule`), or a tuple of the allowed words. The last entry is
the size that a field takes in a shrunken copy of a card (`lmcalc validate`): small, all distinct, prime where the
structure allows; None keeps the card's own value. A component says itself which fields it reads and what they default to;
a field that no part of a model reads is an error.
"""

from .errors import InputError
from .numbers import exact_div

FIELDS = {
    # sizes
    "n_layers": ("size", "decoder blocks (encoder blocks in an encoder), L", 3),
    "n_encoder_layers": ("size", "encoder blocks of an encoder-decoder", 2),
    "d_model": ("size", "width of the residual stream, D", 23),
    "n_heads": ("size", "query heads, N = K*R", None),
    "n_kv_heads": ("size", "key/value heads, K", None),
    "head_dim": ("size", "size of a head, H", None),
    "d_ff": ("size_rule", "width of the feed-forward after its gate, F; or a rule, see `rule`", 29),
    "vocab_size": ("size", "tokens in the vocabulary, V", 37),
    "max_positions": ("size", "longest context that the model was made for; rows of a learned table", 31),
    "embedding_dim": ("size", "width of the embedding table where it is not d_model (OPT 350M)", 17),
    "token_types": ("size", "rows of a table of token types (BERT)", 2),
    # layers that differ
    "layers": (
        "list",
        'kinds of the layers in order, repeated to n_layers: names of [architecture.kinds], or "5*name"',
        None,
    ),
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
    "alibi_slopes": (("bloom", "mpt", "falcon"), "ALiBi slopes: what a number of heads that is no power of two gets", None),
    "alibi_bias_max": ("positive", "exponent of the last ALiBi slope (MPT)", None),
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
    "head_scale": ("positive", "factor on the hidden state before the head (T5: 1/sqrt(d_model))", None),
    "logit_scale": ("positive", "factor on the logits", None),
    "logit_softcap": ("positive", "cap * tanh(logit / cap) on the logits", None),
    # recorded, not computed
    "dropout": ("number", "dropout of training", None),
    "attention_dropout": ("number", "dropout on attention weights in training", None),
    "weight_decay": ("number", "weight decay of training", None),
}


def rule(text):
    """A size given as a multiple of d_model, as (numerator, denominator, multiple), or None if it is no such rule.

    "8/3*d_model" gives a gated feed-forward the parameters of a plain one of 4*d_model (Shazeer 2020, sec. 3.1);
    "8/3*d_model:256" rounds up to a multiple of 256 (LLaMA 1 and 2), "1.3*8/3*d_model:1024" is LLaMA 3's 8B.

    >>> rule("8/3*d_model:256"), rule("1.3*8/3*d_model:1024"), rule("d_model**2")
    ((8, 3, 256), (104, 30, 1024), None)
    """
    product, _, multiple = text.replace(" ", "").partition(":")
    *factors, last = product.split("*")
    if last != "d_model" or (":" in text and not _digits(multiple)):
        return None
    numerator = denominator = 1
    for factor in factors:
        for number, below in zip(factor.split("/", 1), (False, True)):
            whole, _, decimals = number.partition(".")
            if not _digits(whole + decimals):
                return None
            over, under = int(whole + decimals), 10 ** len(decimals)
            numerator, denominator = numerator * (under if below else over), denominator * (over if below else under)
    return numerator, denominator, int(multiple or 1)


def _digits(text):
    return text.isascii() and text.isdigit() and int(text) > 0


def resolved(fields, where):
    """The fields with a rule for d_ff replaced by the size that it gives, rounded up; of a symbol it is exact."""
    d_model, kinds = fields.get("d_model"), fields.get("kinds")

    def done(table):
        text = table.get("d_ff")
        if not isinstance(text, str):
            return table
        parts = rule(text)
        if parts is None or d_model is None:
            allowed = "a size, or a rule with a given d_model such as 8/3*d_model:256"
            raise InputError(f"{where}: d_ff = {text!r}; allowed: {allowed}")
        numerator, denominator, multiple = parts
        if isinstance(d_model, int):
            return table | {"d_ff": -(-numerator * d_model // (denominator * multiple)) * multiple}
        return table | {"d_ff": exact_div(numerator * d_model, denominator)}

    found = done(fields)
    return found if kinds is None else found | {"kinds": {name: done(each) for name, each in kinds.items()}}
