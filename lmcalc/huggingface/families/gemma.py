"""Gemma 3n and Gemma 4, whose later layers share keys and values: one function for each `model_type`."""

import math

from ...cards import is_kind
from ..layers import by_layer, layer_types, rotary
from .common import ACTIVATIONS, GATED, bias, experts, heads


def _gemma(c):
    c.only("use_bidirectional_attention", "vision", "causal attention in the text")
    found = heads(c)
    return found | {
        "norm": "rmsnorm",
        "ffn": ACTIVATIONS[c.need(GATED, "hidden_activation", "hidden_act")][1],
        "attention_bias": bias(c),
        "embedding_scale": math.sqrt(found["d_model"]),
        "qk_norm": "head",
        "v_norm": True,
        "score_scale": 1.0,
        "logit_softcap": c.get("positive", "final_logit_softcapping"),
    }


def _sharing(c, found, types, names):
    """The names of layers, those marked that share keys and values, and {name: the kind that these come from}."""
    count, shared = found["n_layers"], c.get("count", "num_kv_shared_layers") or 0
    first, sources = count - shared, {}
    for layer in range(first, count):
        own = [other for other in range(max(first, 0)) if types[other] == types[layer]]
        if not own:
            c.refuse("num_kv_shared_layers", shared, "so few that a layer of each type has keys of its own")
        names[layer] += "_shared"
        sources[names[layer]] = names[own[-1]]
    return names, sources


def gemma3n(c):
    found, count = _gemma(c), c.need("size", "num_hidden_layers")
    c.only("altup_active_idx", 0, "the first stream is the one that layers compute")
    c.skip("altup_coef_clip")
    found |= {
        "block": "altup",
        "altup_streams": c.need("size", "altup_num_inputs"),
        "laurel_rank": c.need("size", "laurel_rank"),
        "altup_scale": None if c.get("bool", "altup_correct_scale") else False,
        **_per_layer(c, found["vocab_size"]),
    }
    types = layer_types(c, count, lambda layer: (layer + 1) % 5)
    sparsity, widths = c.data.get("activation_sparsity_pattern"), c.data.get("intermediate_size")
    c.skip("activation_sparsity_pattern")
    if sparsity is None:
        sparsity = [0.95 if layer < 10 < count else 0.0 for layer in range(count)]
    if isinstance(widths, list) and (len(widths) != count or not all(isinstance(each, int) for each in widths)):
        c.refuse("intermediate_size", widths, f"a size, or one for each of the {count} layers")
    widths = widths if isinstance(widths, list) else [c.need("size", "intermediate_size")] * count
    c.skip("intermediate_size")
    good = isinstance(sparsity, list) and len(sparsity) == count
    if not good or not all(isinstance(each, int | float) and 0 <= each < 1 for each in sparsity):
        c.refuse("activation_sparsity_pattern", sparsity, f"a list: a share below 1 for each of the {count} layers")
    names = [
        name + (f"_{width}" if len(set(widths)) > 1 else "") + (f"_sparse{share:g}".replace("0.", "") if share else "")
        for name, width, share in zip(types, widths, sparsity)
    ]
    names, sources = _sharing(c, found, types, names)
    own = {
        "full": rotary(c, found, "full_attention"),
        "sliding": {
            "window": c.need("size", "sliding_window"),
            **rotary(c, found, "sliding_attention", "rope_local_base_freq"),
        },
    }
    kinds = {
        name: {**own[kind], "d_ff": width, "ffn_sparsity": share or None, "kv_from": sources.get(name)}
        for name, kind, width, share in zip(names, types, widths, sparsity)
    }
    return found | by_layer(names, kinds)


def gemma4(c):
    found, count = _gemma(c) | {"norm_placement": "double", "layer_scale": True}, c.need("size", "num_hidden_layers")
    width, wide = c.need("size", "intermediate_size"), c.get("bool", "use_double_wide_mlp")
    found |= _per_layer(c, found["vocab_size"]) | {"d_ff": width}
    types = layer_types(c, count, lambda layer: (layer + 1) % 6)
    types[-1] = "full"
    if c.get("bool", "enable_moe_block"):
        found |= experts(c, "moe_intermediate_size", experts_beside_ffn=True)
    c.skip("num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size")
    full = _global(c, found, types)
    own = {
        "sliding": {"window": c.need("size", "sliding_window"), **rotary(c, found, "sliding_attention")},
        "full": full | rotary(c, found | full, "full_attention"),
    }
    names, sources = _sharing(c, found, types, list(types))
    kinds = {
        name: {**own[kind], "kv_from": sources.get(name), "d_ff": 2 * width if wide and name in sources else None}
        for name, kind in zip(names, types)
    }
    return found | by_layer(names, kinds)


def gemma4_unified(c):
    for key, value in (("enable_moe_block", False), ("hidden_size_per_layer_input", 0)):
        c.only(key, value, "the class in transformers knows no other")
    return gemma4(c)


def _per_layer(c, vocab_size):
    """Embeddings of the layers' own."""
    rows, width = c.get("size", "vocab_size_per_layer_input"), c.get("count", "hidden_size_per_layer_input") or None
    given = None if width is None or rows == vocab_size else rows
    return {"per_layer_dim": width, "per_layer_vocab": given}


def _global(c, found, types):
    """In what the full layers of Gemma 4 differ: per_layer_config, or its older keys."""
    size, number = c.get("size", "global_head_dim"), c.get("size", "num_global_key_value_heads")
    same = c.get("bool", "attention_k_eq_v")
    table, changes = c.get("table", "per_layer_config"), [{"head_dim": size or 512}]
    if same and number is not None:
        changes[0]["num_key_value_heads"] = number
    if table is not None:
        full = [layer for layer, kind in enumerate(types) if kind == "full"]
        changes = [table.get(str(layer), {}) for layer in full]
        known = set(table) <= set(map(str, full)) and all(each == changes[0] for each in changes)
        own = changes[0] if isinstance(changes[0], dict) else {"": None}
        if not known or set(own) - {"head_dim", "num_key_value_heads"} or not all(is_kind(own[x], "size") for x in own):
            c.refuse(
                "per_layer_config", table, "the same head_dim and num_key_value_heads for all full layers, and no other"
            )
    return {
        "head_dim": changes[0].get("head_dim", found["head_dim"]),
        "n_kv_heads": changes[0].get("num_key_value_heads", found["n_kv_heads"]),
        "v_from_k": True if same else None,
    }
