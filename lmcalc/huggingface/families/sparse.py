"""Attention to compressed keys, or to chosen blocks of keys: one short function for each `model_type`."""

from ..layers import combined, kinds_of, rotary
from .common import KV_KEYS, experts, gated, sizes

ONLY = "the class in transformers knows no other"
# word in layer_types: what a layer's entries are, beside its window; entries of tokens by default
COMPRESSED = {"sliding_attention": None, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
SHORT = {"sliding_attention": "sliding", "compressed_sparse_attention": "sparse", "heavily_compressed_attention": "heavy"}


def deepseek_v4(c):
    found = sizes(c, own_head=True)
    for key, value in (("num_key_value_heads", 1), ("n_shared_experts", 1), ("topk_method", "noaux_tc"),
                       ("attention_bias", False), ("mlp_bias", False), ("hidden_act", "silu")):  # fmt: skip
        c.only(key, value, ONLY)
    c.skip(*KV_KEYS, "norm_topk_prob", "router_jitter_noise", "rope_interleave", "expert_dtype")
    if c.get("count", "num_nextn_predict_layers"):
        c.note("The module that predicts a further token is not counted (num_nextn_predict_layers).")
    found |= {"n_kv_heads": 1, "head_dim": c.need("size", "head_dim")}
    found |= {
        "norm": "rmsnorm", "ffn": "swiglu_limited", "ffn_limit": c.need("positive", "swiglu_limit"),
        "rope_layout": "interleaved", "window": c.need("size", "sliding_window"),
        "q_latent_dim": c.need("size", "q_lora_rank"), "out_groups": c.need("size", "o_groups"),
        "out_latent_dim": c.need("size", "o_lora_rank"), "block": "hyper_connections",
        "hyper_streams": c.need("size", "hc_mult"), "hyper_iterations": c.need("size", "hc_sinkhorn_iters"),
        "hyper_eps": c.get("positive", "hc_eps"),
    }  # fmt: skip
    mixture = experts(
        c, router=c.need(("sqrtsoftplus", "sigmoid"), "scoring_func"), router_normalized=True, router_eps=1e-20,
        router_scale=c.get("positive", "routed_scaling_factor"), n_shared_experts=1,
    )  # fmt: skip
    types, kinds = _compressed(c, found)
    same = {key: value for key, value in next(iter(kinds.values())).items()
            if all(each.get(key) == value for each in kinds.values())}  # fmt: skip
    kinds = {name: {key: each[key] for key in each if key not in same} for name, each in kinds.items()}
    return found | mixture | same | combined((types, kinds), _hashed(c, found["n_layers"]))


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
        size = size and c.get("size", f"compress_rate_{'csa' if kind == 'sparse' else 'hca'}") or size
        kinds[kind] = {"compression": size, **_turned(c, found, size is not None)}
        if kind == "sparse":
            kinds[kind] |= {
                "compression_overlap": True, "index_topk": c.need("size", "index_topk"),
                "index_heads": c.need("size", "index_n_heads"), "index_head_dim": c.need("size", "index_head_dim"),
            }  # fmt: skip
    c.skip("index_topk", "index_n_heads", "index_head_dim", "compress_ratios", "compress_rates")
    c.skip("compress_rope_theta", "rope_scaling", "rope_theta", "rope_parameters")
    return [SHORT[name] for name in types], kinds


def _turned(c, found, compressed):
    """Rotary fields of a layer: one with entries has a base of its own, and its frequencies may be rescaled."""
    part, size = c.get("ratio", "partial_rotary_factor"), c.get("size", "qk_rope_head_dim")
    nested = isinstance((c.data.get("rope_parameters") or {}).get("main"), dict)
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
    kinds = {"hashed": {"router_hashed": True, "router_bias": "none"}, "scored": {"router_bias": "correction"}}
    return ["hashed" if each == "hash_moe" else "scored" for each in types], kinds
