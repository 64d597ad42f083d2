"""Single variants by a word, as tiny models whose every size is a symbol: what `lmcalc formula` takes beside models.

SIZES gives each size of a card its letter. A row of the tables below says which fields a word changes, and where in the
model the variant is (the beginning of its paths).
"""

from ..components import BLOCKS, MIXERS, NORMS
from ..components.blocks import PLACEMENTS
from ..components.feed_forward import KINDS
from ..errors import InputError, unknown

# field: (letter, meaning)
SIZES = {
    "n_layers": ("L", "layers"),
    "n_encoder_layers": ("L_enc", "layers of the encoder"),
    "d_model": ("D", "d_model, width of the residual stream"),
    "n_heads": ("N", "query heads"),
    "n_kv_heads": ("K", "key/value heads"),
    "head_dim": ("H", "size of a head"),
    "d_ff": ("F", "d_ff, width of the feed-forward (of an expert) after its gate"),
    "expert_d_ff": ("F", "d_ff, width of the feed-forward (of an expert) after its gate"),
    "shared_d_ff": ("F_s", "width of the shared expert"),
    "vocab_size": ("V", "tokens in the vocabulary"),
    "max_positions": ("J", "rows of the table of positions"),
    "position_buckets": ("Y", "buckets of a relative bias"),
    "position_max_distance": ("X", "distance from which on relative vectors stay the same"),
    "window": ("W", "keys that a query may attend to, itself included"),
    "kv_latent_dim": ("C_kv", "latent that keys and values are made from"),
    "q_latent_dim": ("C_q", "latent that queries are made from"),
    "nope_head_dim": ("H", "size of a head, of its key without turned entries"),
    "rope_head_dim": ("Z", "turned entries of a key, the same for all heads"),
    "v_head_dim": ("U", "size of a value"),
    "n_experts": ("E", "experts"),
    "experts_per_token": ("A", "experts that a token uses"),
    "state_dim": ("X", "numbers in the state of a channel"),
    "conv_kernel": ("J", "tokens that a short convolution sees"),
    "d_inner": ("D_in", "channels of a Mamba layer"),
    "dt_rank": ("Y", "numbers that the time step goes through"),
    "n_mixer_heads": ("N", "heads of the mixer"),
    "n_mixer_groups": ("G", "groups of heads that share B and C, or queries and keys"),
    "mixer_head_dim": ("H", "size of a head of the mixer"),
    "mixer_value_dim": ("U", "size of a value of the mixer"),
    "mixer_width": ("D_in", "channels that the mixer works on"),
    "gate_rank": ("Y", "numbers that the gates go through"),
    "chunk_size": ("Q", "tokens that a recurrence takes at once"),
}
WORKLOAD = {
    "B": "batch",
    "T": "new tokens",
    "S": "keys attended (tokens in the cache, and the new ones)",
    "C": "tokens in the cache",
    "M": "source tokens",
}

# Which fields are sizes of a variant; a field set to a value, or to the letter of another size, is as it says

BASE = {"n_layers": 1, "d_model": None, "vocab_size": None}
HEADS = {"n_heads": None, "n_kv_heads": None, "head_dim": None}
FFN = {"d_ff": None}
PLAIN = {**BASE, **HEADS, **FFN, "positions": "none"}
MHA = {**PLAIN, "n_kv_heads": "N"}
LLAMA = {**BASE, **HEADS, **FFN}
LATENT = {
    **BASE,
    **FFN,
    "n_heads": None,
    "kv_latent_dim": None,
    "nope_head_dim": None,
    "rope_head_dim": None,
    "v_head_dim": None,
}
EXPERTS = {
    **BASE,
    **HEADS,
    "positions": "none",
    "n_experts": None,
    "experts_per_token": None,
    "expert_d_ff": None,
    "router_normalized": True,
}
ALONE = {**BASE, "positions": "none", "ffn": "none"}  # a mixer and no feed-forward
MIXER_SIZES = {
    "mamba": {"d_inner": None, "state_dim": None, "dt_rank": None, "conv_kernel": None},
    "mamba2": {
        "n_mixer_heads": None,
        "n_mixer_groups": None,
        "mixer_head_dim": None,
        "state_dim": None,
        "conv_kernel": None,
        "chunk_size": None,
    },
    "rwkv": {},
    "rwkv5": {"n_mixer_heads": None, "mixer_head_dim": None},
    "gated_delta": {
        "n_mixer_heads": None,
        "n_mixer_groups": None,
        "mixer_head_dim": None,
        "mixer_value_dim": None,
        "conv_kernel": None,
        "chunk_size": None,
    },
    "kimi_delta": {
        "n_mixer_heads": None,
        "mixer_head_dim": None,
        "gate_rank": None,
        "conv_kernel": None,
        "chunk_size": None,
    },
    "lightning": {"n_mixer_heads": None, "mixer_head_dim": None, "chunk_size": None},
    "rg_lru": {"n_mixer_heads": None, "mixer_head_dim": None, "conv_kernel": None},
    "short_conv": {"conv_kernel": None},
}
ATTENTION, FEED_FORWARD, MIXER = "layers/attention", "layers/ffn", "layers/mixer"

# word: (what it is, fields, where it is in the model)
VARIANTS = {
    "mha": ("multi-head attention, without positions", MHA, ATTENTION),
    "mqa": ("multi-query attention: one key/value head", {**PLAIN, "n_kv_heads": 1}, ATTENTION),
    "gqa": ("grouped-query attention: K key/value heads", PLAIN, ATTENTION),
    "sliding_window": ("grouped-query attention with a window", {**PLAIN, "window": None}, ATTENTION),
    "mla": ("multi-head latent attention, queries straight from the stream", LATENT, ATTENTION),
    "mla_q_latent": ("the same, queries from a latent of their own", {**LATENT, "q_latent_dim": None}, ATTENTION),
    "differential": ("differential attention", {**PLAIN, "differential": True}, ATTENTION),
    "rotary": ("rotary positions, of queries and keys", {**PLAIN, "positions": "rotary"}, f"{ATTENTION}/rotary"),
    "learned": (
        "a learned vector for each position",
        {**MHA, "positions": "learned", "max_positions": None},
        "positions",
    ),
    "sinusoidal": ("sines and cosines added to the embeddings", {**MHA, "positions": "sinusoidal"}, "positions"),
    "alibi": ("a linear bias on scores", {**MHA, "positions": "alibi"}, f"{ATTENTION}/relative"),
    "relative_bias": (
        "T5's bias on scores by buckets of distances",
        {**MHA, "positions": "relative_bias", "position_buckets": None},
        ("position_bias", f"{ATTENTION}/relative"),
    ),
    "qk_norm": (
        "a norm of each query and key, one weight for all heads",
        {**PLAIN, "qk_norm": "head"},
        (f"{ATTENTION}/q_norm", f"{ATTENTION}/k_norm"),
    ),
    "attention_softcap": ("cap * tanh(score / cap)", {**PLAIN, "attention_softcap": 50.0}, f"{ATTENTION}/softcap"),
    "logit_softcap": ("cap * tanh(logit / cap)", {**PLAIN, "logit_softcap": 30.0}, "head/softcap"),
    "moe": ("mixture of experts, without a shared one", EXPERTS, FEED_FORWARD),
    "moe_shared": ("mixture of experts with a shared one", {**EXPERTS, "shared_d_ff": None}, FEED_FORWARD),
    "embedding": ("the table of token embeddings", PLAIN, "embedding"),
    "lm_head": ("the output head, not tied", PLAIN, "head"),
    "decoder": ("LLaMA's whole model: L blocks, embedding, head", {**LLAMA, "n_layers": None}, ""),
    "encoder": (
        "a whole encoder, as BERT's without its head transform",
        {**MHA, "n_layers": None, "stack": "encoder"},
        "",
    ),
    "encoder_decoder": (
        "a whole encoder-decoder",
        {**MHA, "n_layers": None, "n_encoder_layers": None, "ffn": "relu", "stack": "encoder_decoder"},
        "",
    ),
}
ALIASES = {
    "attention": "gqa",
    "swa": "sliding_window",
    "window": "sliding_window",
    "transformer": "decoder",
    "block": "serial",
    "head": "lm_head",
}


def every():
    """{word: (what it is, fields, where)} of all variants, those included that the tables of the components name."""
    found = dict(VARIANTS)
    for word, (_, gated) in KINDS.items():
        what = f"feed-forward of {'three' if gated else 'two'} matrices, {word}"
        found[word] = (
            what,
            {**PLAIN, "ffn": word, **({"ffn_limit": 7.0} if "limited" in word or "clamped" in word else {})},
            FEED_FORWARD,
        )
    for word in NORMS:
        found.setdefault(word, ("a norm over d_model", {**PLAIN, "norm": word}, "final_norm"))
    for word, sizes in MIXER_SIZES.items():
        if word in MIXERS:
            found[word] = f"the mixer {word}, alone", {**ALONE, "mixer": word, **sizes}, MIXER
    for word in BLOCKS:
        if word.startswith(("serial", "parallel")):
            found[word] = (
                f"one block: attention and SwiGLU, {word}, with rotary positions",
                {**LLAMA, "block": word},
                "layers",
            )
    for word in PLACEMENTS:
        what = f"one serial block with the norm placement {word}"
        found[f"{word}_norm_block"] = what, {**LLAMA, "norm_placement": word}, "layers"
    return found


def known(word):
    """The row of a word, or None; "gelu ffn" and "GQA" are understood."""
    plain = str(word).strip().lower().replace("-", "_").replace(" ", "_")
    for ending in ("_ffn", "_attention", "_block", "_norm"):
        if plain not in every() and plain not in ALIASES:
            plain = plain.removesuffix(ending)
    plain = ALIASES.get(plain, plain)
    row = every().get(plain)
    return None if row is None else (plain, *row)


def check_numbers(word, numbers, changes=None):
    """InputError where numbers {letter: size} of a variant's sizes contradict each other, as its component says."""
    _, _, fields, _ = known(word)
    letter = {field: SIZES[field][0] if value is None else value for field, value in fields.items() if field in SIZES}
    given = {field: numbers[name] for field, name in letter.items() if name in numbers}
    if given:
        generic(word, {**given, **(changes or {})})


def generic(word, changes=None):
    """(model of symbols, {letter: meaning}, where the variant is in it) of a word."""
    from ..algebra import symbol
    from ..arguments import table
    from ..cards import check
    from ..model import build

    row = known(word)
    if row is None:
        raise unknown("variant", word, every())
    name, _, fields, where = row
    given, letters = {}, {}
    for field, value in fields.items():
        if value is None:
            letter, meaning = SIZES[field]
            value, letters[letter] = symbol(letter), meaning
        elif isinstance(value, str) and field in SIZES:
            letters[value], value = SIZES["n_heads"][1], symbol(value)
        given[field] = value
    for field, value in table("set", changes).items():
        given[field] = check(field, value, f"{name}: set")
    if changes and "layers" in changes:
        raise InputError(f"{name}: --set layers: a variant has layers of one kind")
    return build(given, name=name), letters, where
