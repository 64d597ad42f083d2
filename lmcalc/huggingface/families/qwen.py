"""Mixtures of experts made from Qwen's classes: one short function for each `model_type`."""

from ...fields import MOST_LAYERS
from ..layers import kinds_of, layer_types, rotary
from .common import bias, experts, gated, grouped, heads, mixer_types, with_experts, with_mixers
from .hybrid import gated_delta
from .recurrent import KINDS

LINEAR, FULL = KINDS
SLIDING = "sliding_attention"


def mellum(c):
    found = grouped(c) | {"norm": "rmsnorm", "ffn": gated(c), "attention_bias": bias(c), "qk_norm": "head"}
    count = found["n_layers"]
    sparse = _sparse(c, "mlp_layer_types", count)
    modules = c.get("count", "num_mtp_layers", "num_nextn_predict_layers") or None
    if modules is not None and set(_sparse(c, "mtp_mlp_layer_types", min(modules, MOST_LAYERS))) != {sparse[-1]}:
        c.refuse("mtp_mlp_layer_types", c.data.get("mtp_mlp_layer_types"), "as mlp_layer_types has the last layer")
    c.skip("mtp_layer_types", "mtp_mlp_layer_types")
    types = layer_types(c, count, lambda layer: False)
    kinds = {
        "full": rotary(c, found, FULL),
        "sliding": {
            "window": c.get("size", "sliding_window"),
            **rotary(c, found, SLIDING, base_key="rope_local_base_freq"),
        },
    }
    mixture = experts(c, router="softmax", router_normalized=c.get("bool", "norm_topk_prob") or None)
    return with_experts(found | {"n_mtp_layers": modules}, mixture, sparse, (types, kinds))


def _sparse(c, key, count):
    """Whether each of these layers has experts, as they all do where the key is left out."""
    types = c.get("list", key)
    return [each == "sparse" for each in kinds_of(c, key, types or ["sparse"] * count, ("dense", "sparse"), count)]


def lara_mini(c):
    """Gated DeltaNet, windows, and full attention without positions; experts in each layer."""
    found = heads(c) | {"norm": "rmsnorm", "ffn": gated(c), "attention_bias": bias(c), "qk_norm": "head"}
    cycle, rope = (LINEAR, SLIDING, LINEAR, FULL, SLIDING), rotary(c, found)
    default = [cycle[layer % len(cycle)] for layer in range(found["n_layers"])]
    types = mixer_types(c, (*KINDS, SLIDING), default, "layer_types")
    mixers = {
        LINEAR: ({"mixer": "gated_delta"}, gated_delta(c, found)),
        FULL: ({"positions": "none"}, {}),
        SLIDING: ({"window": c.get("size", "sliding_window"), **rope}, {}),
    }
    found, way = with_mixers(found, types, mixers, SLIDING if SLIDING in types else FULL)
    mixture = experts(
        c, router="softmax", router_normalized=c.get("bool", "norm_topk_prob") or None,
        shared_d_ff=c.need("size", "shared_expert_intermediate_size"),
    )  # fmt: skip
    return with_experts(found, mixture, [True], way)
