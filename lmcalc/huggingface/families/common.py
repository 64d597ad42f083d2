"""What the adapters of many families share: sizes under their other names, activations, experts, layers that differ."""

from ..layers import ROTARY_FIELDS, combined, kinds_of, rotary

# name in configs: activation by itself, and with a gate
ACTIVATIONS = {
    "relu": ("relu", "reglu"),
    "relu2": ("relu2", "relu2glu"),
    "gelu": ("gelu", "geglu"),
    "gelu_new": ("gelu_tanh", "geglu_tanh"),
    "gelu_pytorch_tanh": ("gelu_tanh", "geglu_tanh"),
    "gelu_fast": ("gelu_tanh", "geglu_tanh"),
    "silu": ("silu", "swiglu"),
    "swish": ("silu", "swiglu"),
    "elu": ("elu", None),
    "selu": ("selu", None),
    "xielu": ("xielu", None),
    "linear": (None, "liglu"),
    "situ": (None, "situ"),
}
PLAIN = tuple(name for name, (alone, _) in ACTIVATIONS.items() if alone)
GATED = tuple(name for name, (_, gated) in ACTIVATIONS.items() if gated)
LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEAD_KEYS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
EPS_KEYS = ("rms_norm_eps", "layernorm_epsilon", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")
KV_KEYS = ("num_key_value_heads", "num_kv_heads")
ACTIVATION_KEYS = ("hidden_act", "hidden_activation", "activation_function", "activation", "afn")
EXPERT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
USED_KEYS = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts",
             "experts_per_token")  # fmt: skip
WIDTH_KEYS = ("moe_intermediate_size", "expert_ffn_hidden_size")


def sizes(c, own_head=False, headless=False, layers=None, n_heads=None):
    """Sizes, positions, norms' epsilon, tying and dropout of a model with as many key/value heads as query heads.

    own_head: a head has a size of its own, not the width divided by the heads. headless: there are no heads.
    layers, n_heads: these numbers, where they are no keys.
    """
    found = {
        "n_layers": layers or c.need("layers", *LAYER_KEYS),
        "d_model": c.need("size", "hidden_size", "n_embd", "d_model", "n_embed", "dim", "emb_dim"),
        "n_heads": None if headless else n_heads or c.need("size", *HEAD_KEYS),
        "vocab_size": c.need("size", "vocab_size"),
        "max_positions": longest(c),
        "norm_eps": c.get("positive", *EPS_KEYS),
        "tied": c.get("bool", "tie_word_embeddings"),
        "dropout": c.get("number", "resid_pdrop", "hidden_dropout", "dropout", "dropout_rate", "hidden_dropout_prob",
                         "residual_dropout", "resid_dropout"),
        "attention_dropout": c.get("number", "attention_dropout", "attn_pdrop", "attention_probs_dropout_prob"),
    }  # fmt: skip
    if not own_head and not headless:
        head_dim(c, found)
    return found


def longest(c):
    """The longest context. model_max_length is for tokenizers, and holds where nothing else is said."""
    keys = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")
    other = c.get("size", "model_max_length")
    return other if other is not None and not any(map(c.given, keys)) else c.get("size", *keys)


def grouped(c):
    """The same, with key/value heads, a head size and a width of the feed-forward of their own."""
    return heads(c) | {"d_ff": c.need("size", "intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner")}


def heads(c, layers=None, n_heads=None):
    """The same without the feed-forward."""
    found = sizes(c, own_head=True, layers=layers, n_heads=n_heads)
    found["n_kv_heads"] = c.get("size", *KV_KEYS) or found["n_heads"]
    if found["n_heads"] % found["n_kv_heads"]:
        key = next((key for key in KV_KEYS if c.given(key)), KV_KEYS[0])
        c.refuse(key, found["n_kv_heads"], f"a divisor of the {found['n_heads']} query heads")
    given = c.get("size", "head_dim", "attention_head_dim")
    found["head_dim"] = given or head_dim(c, found, " (or head_dim beside it)")
    return found


def head_dim(c, found, otherwise=""):
    """The size of a head where a config does not give it."""
    if found["d_model"] % found["n_heads"]:
        key = next((key for key in HEAD_KEYS if c.given(key)), HEAD_KEYS[0])
        c.refuse(key, found["n_heads"], f"a divisor of the width {found['d_model']}{otherwise}")
    return found["d_model"] // found["n_heads"]


def four_wide(c, found, key):
    """The width of the feed-forward, 4 times the model's where it is null."""
    return c.get("size", key) or 4 * found["d_model"]


def plain(c, *keys):
    """The activation of a feed-forward of two matrices."""
    return ACTIVATIONS[c.need(PLAIN, *(keys or ACTIVATION_KEYS))][0]


def gated(c):
    """The activation of a feed-forward of three matrices."""
    return ACTIVATIONS[c.need(GATED, *ACTIVATION_KEYS)][1]


def flag(c, key, yes, no):
    """One value or the other."""
    return yes if c.get("bool", key) else no


def llama_like(c):
    """RMSNorm before each branch, rotary positions, gated feed-forward, no biases."""
    found = grouped(c)
    return {**found, "norm": "rmsnorm", "ffn": gated(c), **rotary(c, found)}


def bias(c, key="attention_bias"):
    """Biases in all projections of attention, or in none."""
    return flag(c, key, "all", "none")


def experts(c, *width, **more):
    """A mixture of experts: their number, how many a token uses, how wide they are. width: its keys."""
    return {
        "n_experts": c.need("size", *EXPERT_KEYS),
        "experts_per_token": more.get("experts_per_token") or c.need("size", *USED_KEYS),
        "expert_d_ff": c.need("size", *(width or WIDTH_KEYS)),
        **more,
    }


def deepseek_experts(c):
    """Experts as DeepSeek V3 has them, and many after it: sigmoid scores, a correction for the choice, groups."""
    groups, shared = (
        c.get("size", "n_group", "num_expert_group"),
        c.get("count", "n_shared_experts", "num_shared_experts"),
    )
    normalized, used = c.get("bool", "norm_topk_prob", "moe_renormalize"), c.get("size", "topk_group")
    c.only("scoring_func", "sigmoid", "the class in transformers knows no other")
    c.only("moe_router_activation_func", "sigmoid", "the class in transformers knows no other")
    c.only("topk_method", "noaux_tc", "the class in transformers knows no other")
    many = groups is not None and groups > 1
    return experts(
        c, router="sigmoid", router_bias="correction", n_shared_experts=shared or None,
        router_normalized=normalized or None, router_eps=1e-20 if normalized else None,
        router_scale=c.get("positive", "routed_scaling_factor"),
        n_expert_groups=groups if many else None, expert_groups_used=used if many else None,
        expert_group_score="top2" if many else None,
    )  # fmt: skip


def first_dense(c, count, first=0):
    """Which layers have experts: those behind the first few, or every n-th, or those that a list names."""
    types, each = c.get("list", "mlp_layer_types"), c.data.get("moe_layer_freq")
    given = c.get("count", "first_k_dense_replace")
    if not isinstance(each, list):
        each = c.get("count", "moe_layer_freq") if c.given("moe_layer_freq") else None
    c.skip("moe_layer_freq")
    if types is not None:
        kinds_of(c, "mlp_layer_types", types, ("dense", "sparse"), count)
        return [kind == "sparse" for kind in types]
    if isinstance(each, list):
        return [bool(kind) for kind in kinds_of(c, "moe_layer_freq", each, (0, 1), count)]
    first, every = first if given is None else given, each or 1
    return [layer >= first and layer % every == 0 for layer in range(count)]


def with_experts(found, mixture, sparse, *ways, beside=None):
    """The fields of a model whose layers have experts or not, `sparse` says which; ways: what else differs; beside: in
    what else layers with experts differ from the others."""
    if not any(sparse):
        return found | combined(*ways)
    if all(sparse):
        found = {key: value for key, value in found.items() if key != "d_ff"}
        return found | mixture | (beside or {}) | combined(*ways)
    names = ["experts" if each else "dense" for each in sparse]
    return found | mixture | combined(*ways, (names, {"dense": {"n_experts": 0}, "experts": beside or {}}))


ATTENTION_FIELDS = (
    "n_heads",
    "n_kv_heads",
    "head_dim",
    "attention_bias",
    "qk_norm",
    "score_scale",
    "attention_gate",
    "attention_gate_by_head",
    "attention_gate_bias",
    "q_latent_dim",
    "kv_latent_dim",
    "nope_head_dim",
    "rope_head_dim",
    "v_head_dim",
    "latent_norm_eps",
    "window",
    *ROTARY_FIELDS,
)


def with_mixers(found, types, mixers, attention="full_attention"):
    """(fields of a model whose layers mix tokens in different ways, that way as `combined` takes it).

    types: the kind of each layer. mixers: {kind: (in what it differs, fields that only such layers read)}; a kind that
    is not among them, `attention`, reads ATTENTION_FIELDS.
    """
    used = dict.fromkeys(types)
    if attention not in used:
        found = {key: value for key, value in found.items() if key not in ATTENTION_FIELDS} | {"positions": "none"}
    for kind in used:
        found = found | mixers.get(kind, ({}, {}))[1]
    return found, (types, {kind: mixers.get(kind, ({}, {}))[0] for kind in used})


WORDS = {"mamba": "linear_attention", "attention": "full_attention", "conv": "conv", "recurrent": "linear_attention"}


def mixer_types(c, known, default, *keys):
    """The kind of each layer, by its key or by its default, with the words of older configs brought up to date."""
    found = c.get("list", *keys) if keys else None
    types = [WORDS.get(each, each) if isinstance(each, str) else each for each in (default if found is None else found)]
    return kinds_of(c, keys[0] if keys else "layer_types", types, known, len(default))
