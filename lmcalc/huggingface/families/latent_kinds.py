"""Latent attention that differs from layer to layer, or between streams: one short function for each `model_type`."""

import math

from ..layers import ROTARY_FIELDS, kinds_of, rotary
from .common import deepseek_experts, first_dense, with_experts
from .latent import latent

# word in layer_types: our kind of layer
KINDS = {"indexed_attention": "indexed", "full_attention": "full", "sliding_attention": "sliding"}
# our field: key of a layer
SIZES = {
    "n_heads": "num_attention_heads", "q_latent_dim": "q_lora_rank", "kv_latent_dim": "kv_lora_rank",
    "nope_head_dim": "qk_nope_head_dim", "rope_head_dim": "qk_rope_head_dim", "v_head_dim": "v_head_dim",
}  # fmt: skip
# of layers with a window, where a config says nothing
SLIDING = {"num_attention_heads": 64, "q_lora_rank": 1024, "kv_lora_rank": 1024, "qk_nope_head_dim": 192,
           "v_head_dim": 128}  # fmt: skip


def dots3_note_text(c):
    found = {key: value for key, value in latent(c).items() if key not in ROTARY_FIELDS}
    found |= {"latent_norm_eps": None, "attention_gate": True, "attention_gate_by_head": True, "k_rope_norm": True}
    count = found["n_layers"]
    own = {name: found.pop(name) for name in SIZES}
    types, kinds, names = _types(c, count), {}, []
    for layer, kind in enumerate(types):
        sizes = own | _sizes(c, layer, kind)
        if sizes["q_latent_dim"] is None:
            c.refuse("q_lora_rank", None, "a size: queries of this model come from a latent")
        fields = sizes | _of_kind(c, kind, sizes, found["d_model"])
        alike = [name for name, other in kinds.items() if name.split("_")[0] == kind]
        name = next((each for each in alike if kinds[each] == fields), f"{kind}_{len(alike) + 1}" if alike else kind)
        kinds[name] = fields
        names.append(name)
    c.skip("index_topk", "index_n_heads", "index_head_dim", "sliding_window", "sliding_window_size", "rope_scaling")
    c.skip(*[f"swa_{key}" for key in (*SLIDING, "head_dim", "qk_rope_head_dim", "num_key_value_heads", "rope_theta")])
    shared = c.need("size", "shared_experts_intermediate_size", "moe_shared_expert_intermediate_size")
    mixture = deepseek_experts(c)
    mixture["shared_d_ff"] = shared * (mixture.pop("n_shared_experts") or 1)
    return with_experts(found, mixture, first_dense(c, count, 1), (names, kinds))


def _types(c, count):
    """The kind of each layer; older configs call those with an indexer full."""
    types, windows = c.get("list", "layer_types"), c.get("bool", "use_sliding_window")
    indexes = c.get("bool", "use_dsa")
    if types is None:
        full = [windows is False or layer < 2 or layer % 4 == 1 for layer in range(count)]
        types = ["full_attention" if each else "sliding_attention" for each in full]
        indexes = indexes is not False
    kinds = [KINDS[each] for each in kinds_of(c, "layer_types", types, KINDS, count)]
    if indexes is None:
        indexes = None if c.given("per_layer_config") else True
    old, new = ("full", "indexed") if indexes else ("indexed", "full")
    return kinds if indexes is None else [new if each == old else each for each in kinds]


def _sizes(c, layer, kind):
    """The sizes in which this layer differs from what the config says of all."""
    table = c.inside("per_layer_config")
    if table is not None:
        own = table.inside(str(layer))
        if own is None:
            return {}
        own.skip("num_key_value_heads", "head_dim")
        found = {name: own.get("size", key) for name, key in SIZES.items()}
        return {name: value for name, value in found.items() if value is not None}
    if kind != "sliding":
        return {}
    found = {name: c.get("size", f"swa_{key}") or SLIDING.get(key) for name, key in SIZES.items()}
    found["rope_head_dim"] = found["rope_head_dim"] or (c.get("size", "swa_head_dim") or 256) - found["nope_head_dim"]
    return found


def _of_kind(c, kind, sizes, width):
    """What else a layer has."""
    word = next(word for word, ours in KINDS.items() if ours == kind)
    rope = rotary(c, {"head_dim": sizes["rope_head_dim"]}, word, "swa_rope_theta" if kind == "sliding" else None)
    rope |= {"rotary_dim": None, "rope_layout": "interleaved"}  # the turned part of a head turns whole
    if rope["rope_base"] is None:
        rope["rope_base"] = 5e4 if kind == "sliding" else c.get("positive", "rope_theta")
    fields = {
        "q_latent_scale": math.sqrt(width / sizes["q_latent_dim"]),
        "kv_latent_scale": math.sqrt(width / sizes["kv_latent_dim"]), **rope,
    }  # fmt: skip
    if (rope["rope_scaling"] or {}).get("mscale_all_dim"):
        fields["score_scale"] = (sizes["nope_head_dim"] + sizes["rope_head_dim"]) ** -0.5  # whatever the table says
    if kind == "sliding":
        fields["window"] = c.get("size", "sliding_window", "sliding_window_size") or 512
    if kind == "indexed":
        fields |= {
            "index_topk": c.need("size", "index_topk"), "index_heads": c.need("size", "index_n_heads"),
            "index_head_dim": c.need("size", "index_head_dim"), "index_norm_eps": 1e-6,
        }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}
