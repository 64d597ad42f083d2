"""Step 3.5 and 3.7: heads, rotary positions and limits of the feed-forward that differ from layer to layer."""

from ...cards import is_kind
from ..layers import TYPES, kinds_of, rotary
from .common import bias, experts, with_experts

ONLY = "the class in transformers knows no other"
LEAST = 0.3  # below it a limit would cut what SiLU makes of negative numbers, too, and both sides would differ


def step3p5(c):
    count, modules = c.need("layers", "num_hidden_layers"), c.get("count", "num_nextn_predict_layers") or 0
    found = _sizes(c, count)
    types = _list(c, "layer_types", count, modules, lambda each: each in TYPES) or ["full_attention"] * count
    types = [TYPES[each] for each in kinds_of(c, "layer_types", types, TYPES, count)]
    for key, value in (("use_qk_norm", True), ("use_moe", True), ("norm_expert_weight", True), ("zero_centered", True),
                       ("moe_router_activation", "sigmoid"), ("use_head_wise_attn_gate", True),
                       ("use_moe_router_bias", True)):  # fmt: skip
        c.only(key, value, ONLY)
    c.skip("moe_layer_offset", "moe_every_n_layer", "att_impl_type", "need_fp32_gate", "use_rope_layers",
           "moe_layer_freq", "yarn_only_types", "mtp_layer_types", "mtp_mlp_layer_types", "hidden_act")  # fmt: skip
    mixture = experts(
        c, router="sigmoid", router_bias="correction", router_normalized=True,
        router_scale=c.get("positive", "moe_router_scaling_factor"),
        shared_d_ff=c.need("size", "share_expert_dim", "share_expert_dims"),
    )  # fmt: skip
    mixture["n_experts"] = c.need("size", "n_routed_experts", "moe_num_experts", "num_local_experts")
    sparse = _sparse(c, count, modules)
    found["n_mtp_layers"] = modules or None
    return with_experts(found, mixture, sparse, (types, _kinds(c, found, types, count, modules)),
                        _limits(c, count, modules, sparse))  # fmt: skip


def _sizes(c, count):
    heads, width = c.need("size", "num_attention_heads"), c.need("size", "hidden_size")
    size, scalar = c.need("size", "head_dim"), c.get("positive", "query_pre_attn_scalar")
    return {
        "n_layers": count, "d_model": width, "n_heads": heads, "head_dim": size,
        "n_kv_heads": c.need("size", "num_key_value_heads", "num_attention_groups"),
        "vocab_size": c.need("size", "vocab_size"), "d_ff": c.need("size", "intermediate_size"),
        "max_positions": c.get("size", "max_position_embeddings", "max_seq_len"),
        "norm": "rmsnorm_plus_one", "norm_eps": c.get("positive", "rms_norm_eps"), "ffn": "swiglu",
        "ffn_bias": c.get("bool", "mlp_bias") or None, "tied": c.get("bool", "tie_word_embeddings"),
        "attention_dropout": c.get("number", "attention_dropout"), "attention_bias": bias(c), "qk_norm": "head",
        "attention_gate": True, "attention_gate_by_head": True, "attention_gate_bias": "none",
        "score_scale": None if scalar in (None, size) else scalar**-0.5,
    }  # fmt: skip


def _list(c, key, count, modules, good):
    """A list with an entry for each layer; older configs have more, for modules that predict further tokens."""
    found = c.get("list", key)
    if found is None:
        return None
    if len(found) not in (count, count + modules) or not all(map(good, found)):
        c.refuse(key, found, f"one entry for each of the {count} layers")
    return found[:count]


def _sparse(c, count, modules):
    """Which layers have experts."""
    types = _list(c, "mlp_layer_types", count, modules, lambda each: each in ("dense", "sparse"))
    numbers = c.data.get("moe_layers_enum")
    c.skip("moe_layers_enum")
    if types is not None:
        return [each == "sparse" for each in types]
    if numbers is None:
        return [layer > 2 for layer in range(count)]
    numbers = [each.strip() for each in numbers.split(",")] if isinstance(numbers, str) else numbers
    if not isinstance(numbers, list) or not all(str(each).isdecimal() for each in numbers):
        c.refuse("moe_layers_enum", c.data["moe_layers_enum"], "numbers of layers, with commas between them")
    return [str(layer) in map(str, numbers) for layer in range(count)]


def _kinds(c, found, types, count, modules):
    """In what layers of full attention and of a window differ."""
    bases, parts = c.data.get("rope_theta"), None
    if isinstance(bases, list):
        bases = _list(c, "rope_theta", count, modules, lambda each: is_kind(each, "positive"))
    parts = _list(c, "partial_rotary_factors", count, modules, lambda each: is_kind(each, "ratio"))
    other = c.inside("attention_other_setting")
    heads = c.get("size", "num_sliding_attention_heads")
    if other is not None:
        other.skip("attention_type", "num_attention_groups", "head_dim", "true_head_dim")
        heads = heads or other.get("size", "num_attention_heads")
    table, kinds = c.inside("per_layer_config"), {}
    if table is not None:
        for layer in table.data:
            own = table.inside(layer)
            heads = (own and own.get("size", "num_attention_heads")) or heads
    plain = c.without("rope_theta") if isinstance(bases, list) else c
    for kind in dict.fromkeys(types):
        rope = rotary(plain if kind == "full" else plain.without("rope_scaling"), found, f"{kind}_attention")
        at = types.index(kind)
        if not c.given("rope_parameters"):
            rope["rope_base"] = bases[at] if isinstance(bases, list) else rope["rope_base"] or 10000.0
            if parts is not None and parts[at] != 1:
                rope["rotary_dim"] = int(found["head_dim"] * parts[at])
        kinds[kind] = rope
    if "sliding" in kinds:
        kinds["sliding"] |= {"window": c.get("size", "sliding_window"), "n_heads": heads or found["n_heads"]}
    return kinds


def _limits(c, count, modules, sparse):
    """How layers differ in what their experts, and their other feed-forwards, are cut off at; 0 and null: nothing."""

    def good(each):
        return each is None or each == 0 or (is_kind(each, "positive") and each >= LEAST)

    routed = _list(c, "swiglu_limits", count, modules, good) or [None] * count
    other = _list(c, "swiglu_limits_shared", count, modules, good) or [None] * count
    names, kinds = [], {}
    for each, shared, has in zip(routed, other, sparse):
        each = each if has else None
        name = f"limit_{each or 'none'}_{shared or 'none'}".replace(".", "_") if each or shared else "free"
        kinds[name] = {"ffn": "swiglu_capped", "ffn_limit": float(shared)} if shared else {}
        if has and (each or shared):
            kinds[name] |= {"expert_ffn": "swiglu_capped" if each else "swiglu"}
            kinds[name] |= {"expert_ffn_limit": float(each)} if each else {}
        names.append(name)
    return names, kinds
