"""Encoder-decoders: BART and what was made from it, T5's later forms. One short function for each `model_type`."""

import math

from ..irrelevant import IRRELEVANT
from ..layers import by_layer, layer_types, rotary
from .common import ACTIVATIONS, GATED, experts, flag, grouped, plain
from .dense import t5

SIDES = ("encoder", "decoder")
# Keys of the class that BART, mBART, Pegasus, Marian and Blenderbot once shared. Each has its own now, which does not
# read them; where they say what it does they need no note.
ONCE = {
    "add_bias_logits": lambda found: False,
    "add_final_layer_norm": lambda found: found["final_norm"],
    "normalize_before": lambda found: found["norm_placement"] == "pre",
    "normalize_embedding": lambda found: found.get("embedding_norm", False),
    "static_position_embeddings": lambda found: found["positions"] == "sinusoidal",
}
UNUSED = ("do_blenderbot_90_layernorm", "extra_layer_norm", "extra_pos_embeddings", "layernorm_variant")


def bart(c):
    return _bart(c, **POST, embedding_norm=True, **LEARNED, position_offset=2, logits_bias=True)


def mbart(c):
    return _bart(c, **PRE, embedding_norm=True, **LEARNED, position_offset=2, logits_bias=True)


def mvp(c):
    c.only("use_prompt", False, "no prompts that are learned layer by layer")
    c.skip("prompt_length", "prompt_mid_dim")
    return bart(c)


def pegasus(c):
    return _bart(c, **PRE, positions="sinusoidal", sinusoid_form="halves", logits_bias=True)


def bigbird_pegasus(c):
    """Block-sparse attention in the encoder chooses blocks at random: only its other mode can be counted."""
    kind = c.need("text", "attention_type")
    if kind != "original_full":
        c.refuse("attention_type", kind, "'original_full' (block_sparse attends to blocks that are drawn at random)")
    c.skip("block_size", "num_random_blocks")
    return _bart(c, **PRE, **LEARNED, logits_bias=True) | {"attention_bias": flag(c, "use_bias", "all", "none")}


def marian(c):
    shared, own = c.get("bool", "share_encoder_decoder_embeddings") is not False, c.get("size", "decoder_vocab_size")
    found = _bart(c, **POST, positions="sinusoidal", sinusoid_form="halves", logits_bias=True)
    vocab = found["vocab_size"]
    if shared:
        c.only("decoder_vocab_size", vocab, "that of the encoder, whose embedding the decoder shares")
        return found
    return _beside(found, vocab_size=vocab) | {"vocab_size": own or vocab}


def blenderbot(c):
    return _bart(c, **PRE, **LEARNED, logits_bias=True)


def blenderbot_small(c):
    """With scale_embedding the class scales in its encoder only; the norm behind undoes it, but for its epsilon."""
    found = _bart(c, **POST, embedding_norm=True, embedding_norm_first=True, **LEARNED, logits_bias=True)
    return _beside(found, embedding_norm_first=False)


def m2m_100(c):
    return _bart(c, **PRE, **_fairseq(c))


def fsmt(c):
    c.skip("decoder", "langs")
    found = _bart(c, vocab=("tgt_vocab_size", "vocab_size"), **POST, **_fairseq(c))
    source = c.need("size", "src_vocab_size")
    if found["tied"] is False:
        return _beside(found, vocab_size=source)
    if source != found["vocab_size"]:
        c.refuse("src_vocab_size", source, f"tgt_vocab_size = {found['vocab_size']} with tie_word_embeddings")
    return found


def nllb_moe(c):
    for key, value, why in (
        ("second_expert_policy", "all", "others leave out the second expert by chance"),
        ("moe_eval_capacity_token_fraction", 1.0, "with less, experts drop tokens"),
    ):
        c.only(key, value, why)
    c.skip("expert_capacity", "router_dtype", "router_ignore_padding_tokens", "batch_prioritized_routing",
           "normalize_router_prob_before_dropping")  # fmt: skip
    found = m2m_100(c)
    dropped = c.get("number", "moe_token_dropout") or 0  # what experts make is scaled down for it in inference, too
    if not 0 <= dropped < 1:
        c.refuse("moe_token_dropout", dropped, "a number from 0 to below 1")
    mixture = experts(
        c, "decoder_ffn_dim", router="softmax", experts_per_token=2, router_normalized=True, expert_bias=True,
        router_bias=flag(c, "router_bias", "linear", None), router_scale=1 - dropped if dropped else None,
    )  # fmt: skip
    steps = {side: c.get("count", f"{side}_sparse_step") or 0 for side in SIDES}
    counts = {"encoder": found["n_encoder_layers"], "decoder": found["n_layers"]}
    sparse = {
        side: [step > 0 and (layer + 1) % step == 0 for layer in range(counts[side])] for side, step in steps.items()
    }
    if (found.get("encoder") or {}).get("d_ff") is not None:
        found = _beside(found, expert_d_ff=found["encoder"]["d_ff"])
    return mixtures(found, mixture, sparse)


def umt5(c):
    return t5(c) | {"own_position_bias": True}


def longt5(c):
    """Its files have no head of their own, whatever tie_word_embeddings says: that only means the factor before it."""
    kind, radius = c.need("text", "encoder_attention_type"), c.need("count", "local_radius")
    if kind != "local":
        c.refuse("encoder_attention_type", kind, "'local' (no part of ours attends to sums over blocks, too)")
    c.skip("global_block_size")
    return t5(c) | {"tied": True, "encoder": {"window": 2 * radius + 1}}


def t5gemma(c):
    c.only("is_encoder_decoder", True, "encoder and decoder")
    c.skip("vocab_size", "classifier_dropout_rate")
    sides, found, layers = {side: c.object(side) for side in SIDES}, {}, {}
    for side, own in sides.items():
        found[side] = _gemma(own)
        types = layer_types(own, found[side]["n_layers"], lambda layer: (layer + 1) % 2)
        size = own.get("size", "sliding_window")
        if size is not None and side == "encoder":
            size = 2 * size + 1  # so many keys on either side
        layers[side] = types, {"full": {}, "sliding": {"window": size}}
    cap = sides["decoder"].get("positive", "final_logit_softcapping")
    for own in sides.values():
        own.skip("final_logit_softcapping", "dropout_rate", "classifier_dropout_rate", "is_decoder", *IRRELEVANT)
    found["encoder"].pop("max_positions")
    decoder = found["decoder"] | {
        "stack": "encoder_decoder", "n_encoder_layers": found["encoder"].pop("n_layers"),
        "tied": c.get("bool", "tie_word_embeddings") is not False, "logit_softcap": cap,
        "dropout": c.get("number", "dropout_rate"), "attention_dropout": c.get("number", "attention_dropout"),
    }  # fmt: skip
    encoder = _differing(c, found["encoder"], decoder) | {"vocab_size": found["encoder"]["vocab_size"]}
    return by_side(decoder | {"encoder": encoder}, layers)


def _gemma(c):
    """One side of T5Gemma: a Gemma 2."""
    c.skip("attention_dropout", "tie_word_embeddings")
    found = {key: value for key, value in grouped(c).items() if key not in ("tied", "dropout", "attention_dropout")}
    return found | {
        "ffn": ACTIVATIONS[c.need(GATED, "hidden_activation", "hidden_act")][1],
        "attention_bias": flag(c, "attention_bias", "all", "none"),
        "norm": "rmsnorm_plus_one", "norm_placement": "double", "embedding_scale": math.sqrt(found["d_model"]),
        "score_scale": c.need("positive", "query_pre_attn_scalar") ** -0.5,
        "attention_softcap": c.get("positive", "attn_logit_softcapping"), **rotary(c, found),
    }  # fmt: skip


# What these families share ----------------------------------------------------------------------------------------

PRE = {"norm_placement": "pre", "final_norm": True}
POST = {"norm_placement": "post", "final_norm": False}
LEARNED = {"positions": "learned"}


def _fairseq(c):
    """Sinusoids whose first position has the number behind that of padding tokens."""
    padding = c.get("count", "pad_token_id")
    return {"positions": "sinusoidal", "sinusoid_form": "tensor2tensor",
            "position_offset": (1 if padding is None else padding) + 1}  # fmt: skip


def _bart(c, vocab=("vocab_size",), **form):
    """An encoder-decoder with BART's keys. form: in which ways the families differ."""
    c.only("is_decoder", False, "encoder and decoder")
    c.only("is_encoder_decoder", True, "encoder and decoder")
    width, vocab_size = c.need("size", "d_model", "hidden_size"), c.need("size", *vocab)
    own = {
        "layers": {"encoder": ("encoder_layers", "num_hidden_layers"), "decoder": ("decoder_layers",)},
        "heads": {"encoder": ("encoder_attention_heads", "num_attention_heads"),
                  "decoder": ("decoder_attention_heads",)},
    }  # fmt: skip
    counts = {side: c.need("layers", *own["layers"][side]) for side in SIDES}
    sides = {side: {"n_heads": c.need("size", *own["heads"][side]), "d_ff": c.need("size", f"{side}_ffn_dim")}
             for side in SIDES}  # fmt: skip
    for side, found in sides.items():
        if width % found["n_heads"]:
            c.refuse(own["heads"][side][0], found["n_heads"], f"a divisor of the width {width}")
    tied = c.get("bool", "tie_word_embeddings")
    found = {
        "stack": "encoder_decoder", "n_layers": counts["decoder"], "n_encoder_layers": counts["encoder"],
        "d_model": width, "vocab_size": vocab_size, "max_positions": c.need("size", "max_position_embeddings"),
        **sides["decoder"], "ffn": plain(c, "activation_function"), "ffn_bias": True, "attention_bias": "all",
        "norm": "layernorm", "norm_eps": 1e-5, "tied": tied is not False,
        "embedding_scale": math.sqrt(width) if c.get("bool", "scale_embedding") else None,
        "dropout": c.get("number", "dropout"),
        "attention_dropout": c.get("number", "attention_dropout", "attention_probs_dropout_prob"), **form,
    }  # fmt: skip
    for key, expected in ONCE.items():
        if c.data.get(key) == expected(found):
            c.skip(key)
    c.skip(*UNUSED)
    found["encoder"] = _differing(c, sides["encoder"], found) or None
    return found if found["tied"] else _beside(found, vocab_size=vocab_size)


def _beside(found, **own):
    """The same with further fields of which the encoder has its own."""
    return found | {"encoder": (found.get("encoder") or {}) | own}


def _differing(c, own, found):
    """In which fields an encoder differs from its decoder."""
    lacking = {key: None for key, value in own.items() if value is None and found.get(key) is not None}
    if lacking:
        c.refuse("encoder", lacking, "a value of its own for what the decoder has")
    return {key: value for key, value in own.items() if value != found.get(key)}


def mixtures(found, mixture, sparse):
    """The fields of an encoder-decoder of which some layers have experts; sparse: which, by side."""
    if not any(sparse["encoder"] + sparse["decoder"]):
        return found
    encoder = found.get("encoder") or {}
    if all(sparse["encoder"] + sparse["decoder"]):
        found = found | {"d_ff": None, "ffn_bias": None}
    elif all(sparse["decoder"]) and "d_ff" in encoder:
        found = found | {"d_ff": None}
    if all(sparse["encoder"]):
        found = found | {"encoder": {key: value for key, value in encoder.items() if key != "d_ff"} or None}
    kinds = {"dense": {"n_experts": 0}, "experts": {"n_experts": mixture["n_experts"]}}
    names = {side: ["experts" if each else "dense" for each in sparse[side]] for side in SIDES}
    return by_side(found | mixture, {side: (names[side], kinds) for side in SIDES})


def by_side(found, layers):
    """The fields of an encoder-decoder whose layers differ; layers: for each side (types in order, kinds)."""
    ways = {side: by_layer(*given) for side, given in layers.items()}
    if not any("layers" in way for way in ways.values()) and ways["encoder"] == ways["decoder"]:
        return found | ways["decoder"]
    for side, (types, _) in layers.items():
        if "layers" not in ways[side]:  # alike, but not as those of the other side
            alike = {key: value for key, value in ways[side].items() if value is not None}
            ways[side] = {"layers": types[:1], "kinds": {types[0]: alike}}
    found = found | ways["decoder"]
    return found if ways["encoder"] == ways["decoder"] else _beside(found, **ways["encoder"])
