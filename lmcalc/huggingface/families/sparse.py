"""Attention to compressed keys, or to chosen blocks of keys: one short function for each `model_type`."""

from ..layers import combined, kinds_of, rotary
from .common import KV_KEYS, experts, heads, sizes, with_experts

ONLY = "the class in transformers knows no other"
# word in layer_types: what a layer's entries are, beside its window; entries of tokens by default
COMPRESSED = {"sliding_attention": None, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
SHORT = dict(zip(COMPRESSED, ("sliding", "sparse", "heavy")))


def deepseek_v4(c):
    found = sizes(c, own_head=True)
    for key, value in (("num_key_value_heads", 1), ("n_shared_experts", 1), ("topk_method", "noaux_tc"),
                       ("attention_bias", False), ("mlp_bias", False), ("hidden_act", "silu")):  # fmt: skip
        c.only(key, value, ONLY)
    c.skip(*KV_KEYS, "norm_topk_prob", "router_jitter_noise", "rope_interleave", "expert_dtype")
    found |= {"n_kv_heads": 1, "head_dim": c.need("size", "head_dim")}
    found |= {
        "norm": "rmsnorm", "ffn": "swiglu_limited", "ffn_limit": c.need("positive", "swiglu_limit"),
        "rope_layout": "interleaved", "window": c.need("size", "sliding_window"),
        "q_latent_dim": c.need("size", "q_lora_rank"), "out_groups": c.need("size", "o_groups"),
        "out_latent_dim": c.need("size", "o_lora_rank"), "block": "hyper_connections",
        "hyper_streams": c.need("size", "hc_mult"), "hyper_iterations": c.need("size", "hc_sinkhorn_iters"),
        "hyper_eps": c.get("positive", "hc_eps"), "n_mtp_layers": c.get("count", "num_nextn_predict_layers") or None,
        **_turned(c, found, compressed=False),
    }  # fmt: skip
    mixture = experts(
        c, router=c.need(("sqrtsoftplus", "sigmoid"), "scoring_func"), router_bias="correction",
        router_normalized=True, router_eps=1e-20, router_scale=c.get("positive", "routed_scaling_factor"),
        n_shared_experts=1,
    )  # fmt: skip
    types, kinds = _compressed(c, found)
    kinds = {
        name: {key: value for key, value in each.items() if found.get(key) != value} for name, each in kinds.items()
    }
    return found | mixture | combined((types, kinds), _hashed(c, found["n_layers"]))


def _compressed(c, found):
    """(kind of each layer's attention, in what the kinds differ)."""
    count, types, ratios = found["n_layers"], c.get("list", "layer_types"), c.get("list", "compress_ratios")
    if types is None and ratios is not None:  # older configs; a last one is of the module that predicts
        named = {ratio or 0: name for name, ratio in COMPRESSED.items()}
        types = [named[each] for each in kinds_of(c, "compress_ratios", ratios[:count], named, count)]
    if types is None:
        types = [list(COMPRESSED)[1 if layer % 2 and layer > 1 else 2] for layer in range(count)]
    rates, kinds = c.inside("compress_rates"), {}
    for name in kinds_of(c, "layer_types", types, COMPRESSED, count):
        kind, size = SHORT[name], COMPRESSED[name]
        if kind in kinds:
            continue
        if rates is not None and size is not None:
            size = rates.get("size", name) or size
        if size is not None:
            size = c.get("size", f"compress_rate_{'csa' if kind == 'sparse' else 'hca'}") or size
        kinds[kind] = {} if size is None else {"compression": size, **_turned(c, found)}
        if kind == "sparse":
            kinds[kind] |= {
                "compression_overlap": True, "index_topk": c.need("size", "index_topk"),
                "index_heads": c.need("size", "index_n_heads"), "index_head_dim": c.need("size", "index_head_dim"),
            }  # fmt: skip
    c.skip("index_topk", "index_n_heads", "index_head_dim", "compress_ratios", "compress_rates")
    c.skip("compress_rope_theta", "rope_scaling", "rope_theta", "rope_parameters")
    return [SHORT[name] for name in types], kinds


def _turned(c, found, compressed=True):
    """Rotary fields of a layer: one with entries has a base of its own, and its frequencies may be rescaled."""
    part, size = c.get("ratio", "partial_rotary_factor"), c.get("size", "qk_rope_head_dim")
    given = c.get("table", "rope_parameters") if c.given("rope_parameters") else {}
    nested = isinstance(given.get("main"), dict)
    if compressed:
        turn = rotary(c, found, "compress", "compress_rope_theta")
    else:
        turn = rotary(c if nested else c.without("rope_scaling", "rope_parameters"), found, "main")
    if nested:
        return turn
    scaling = turn.get("rope_scaling")
    if scaling is not None and scaling["kind"] == "yarn":
        scaling.setdefault("attention_factor", 1.0)
    size = int(found["head_dim"] * part) if part is not None else size or found["head_dim"] // 8
    return turn | {"rotary_dim": size}


def _hashed(c, count):
    """(which layers choose experts by token id, in what they differ)."""
    types, first = c.get("list", "mlp_layer_types"), c.get("count", "num_hash_layers")
    if types is None:
        first = 3 if first is None else first
        types = ["hash_moe"] * min(first, count) + ["moe"] * max(count - first, 0)
    kinds_of(c, "mlp_layer_types", types, ("hash_moe", "moe"), count)
    kinds = {"hashed": {"router_hashed": True, "router_bias": "none"}, "scored": {}}
    return ["hashed" if each == "hash_moe" else "scored" for each in types], kinds


# key in sparse_attention_config of older configs: key of the class
OLDER = {
    "sparse_num_index_heads": "index_n_heads",
    "sparse_index_dim": "index_head_dim",
    "sparse_block_size": "index_block_size",
    "sparse_topk_blocks": "index_topk_blocks",
    "sparse_local_block": "index_local_blocks",
}


def minimax_m3(c):
    found, older = heads(c), c.inside("sparse_attention_config")
    for key, value in (("swiglu_alpha", 1.702), ("n_shared_experts", 1), ("use_gemma_norm", True),
                       ("use_qk_norm", True), ("attention_output_gate", False), ("qk_norm_type", "per_head"),
                       ("scoring_func", "sigmoid"), ("use_routing_bias", True)):  # fmt: skip
        c.only(key, value, ONLY)
    c.skip("hidden_act", "router_jitter_noise")
    if c.get("count", "num_mtp_modules"):
        c.note("Modules that predict further tokens are not counted (num_mtp_modules).")
    count = found["n_layers"]
    found |= {
        "norm": "rmsnorm_plus_one", "qk_norm": "head", "ffn": "swiglu_clamped",
        "ffn_limit": c.need("positive", "swiglu_limit"), "d_ff": c.need("size", "dense_intermediate_size"),
        **rotary(c, found),
    }  # fmt: skip
    mixture = experts(
        c, "intermediate_size", router="sigmoid", router_bias="correction", router_normalized=True,
        router_scale=c.get("positive", "routed_scaling_factor"), shared_d_ff=c.need("size", "shared_intermediate_size"),
    )  # fmt: skip
    ffns = _types(c, "mlp_layer_types", count, ("dense", "sparse"), "moe_layer_freq", c)
    sparse = [each == "sparse" for each in ffns]
    words = ("full_attention", "minimax_m3_sparse")
    types = _types(c, "layer_types", count, words, "sparse_attention_freq", older)
    kinds = {"full_attention": {}, "minimax_m3_sparse": _blocks(c, older, found, types)}
    short = dict(zip(words, ("full", "blocks")))
    ways = [short[each] for each in types], {short[name]: kind for name, kind in kinds.items()}
    return with_experts(found, mixture, sparse, ways)


def _types(c, key, count, words, older_key, older):
    """The word of each layer: from a list of words, or of 0 and 1 under an older key; the class's default is one."""
    types, flags = c.get("list", key), None if older is None else older.get("list", older_key)
    if types is None and flags is not None:
        types = [words[each] for each in kinds_of(older, older_key, flags, (0, 1), count)]
    if types is None:
        types = [words[key == "mlp_layer_types"]] * count
    return kinds_of(c, key, types, words, count)


def _blocks(c, older, found, types):
    """Fields of layers whose indexer chooses blocks of keys."""
    size = {key: c.need("count", key) for key in OLDER.values()}
    if older is not None:
        for key, value in (("use_sparse_attention", True), ("sparse_init_block", 0), ("sparse_score_type", "max")):
            older.only(key, value, ONLY)
        size |= {name: older.get("count", key) for key, name in OLDER.items() if older.given(key)}
        values = older.get("list", "sparse_disable_index_value")
        if values is not None and any(
            not each and kind != "full_attention"
            for each, kind in zip(kinds_of(older, "sparse_disable_index_value", values, (0, 1), len(types)), types)
        ):
            older.refuse("sparse_disable_index_value", values, f"1 for each layer with an indexer ({ONLY})")
    if "minimax_m3_sparse" not in types:
        return {}
    if size["index_n_heads"] != found["n_kv_heads"]:
        c.refuse("index_n_heads", size["index_n_heads"], f"one for each of the {found['n_kv_heads']} key/value heads")
    if not size["index_local_blocks"]:
        allowed = "at least 1: without its own block a query sees a number of keys that depends on the tokens"
        c.refuse("index_local_blocks", 0, allowed)
    return {
        "index_head_dim": size["index_head_dim"], "index_block_size": size["index_block_size"],
        "index_topk_blocks": size["index_topk_blocks"],
        "index_local_blocks": size["index_local_blocks"] if size["index_local_blocks"] > 1 else None,
    }  # fmt: skip
