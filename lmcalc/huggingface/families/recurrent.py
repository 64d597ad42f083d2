"""State spaces and recurrences without attention: one short function for each `model_type`."""

import math
import struct

from ...cards import is_kind
from ..layers import combined, rotary
from .common import ACTIVATIONS, PLAIN, flag, heads, mixer_types, sizes, with_mixers

PROJECTIONS = {(True, True): "all", (True, False): "in", (False, True): "out", (False, False): None}


def biases(inputs, out):
    """Which projections of a mixer have biases."""
    return PROJECTIONS[bool(inputs), bool(out)]


def inner(c, *keys):
    """The activation inside a mixer, None for silu."""
    found = ACTIVATIONS[c.need(PLAIN, *(keys or ("hidden_act",)))][0]
    return None if found == "silu" else found


def mamba_sizes(c, found, state, rank, kernel, expand):
    """Sizes of Mamba under these keys."""
    return {
        "d_inner": int(c.need("ratio", expand) * found["d_model"]), "state_dim": c.need("size", state),
        "dt_rank": size_or_auto(c, rank) or math.ceil(found["d_model"] / 16), "conv_kernel": c.need("size", kernel),
    }  # fmt: skip


def size_or_auto(c, key):
    """A size, or None where it is "auto", and so goes by others."""
    given = c.data.get(key, c.defaults.get(key))
    if given is None or given == "auto":
        c.skip(key)
        return None
    return c.get("size", key)


def limit(c, *keys, low=0.0):
    """The least and largest time step of Mamba-2, or None for all."""
    given = (c.get("list", *keys) if keys else None) or [low or 0.0, math.inf]
    least, *most = [math.inf if each == {"__float__": "Infinity"} else each for each in given]
    if not is_kind(least, "number") or len(most) != 1 or not (most[0] == math.inf or is_kind(most[0], "number")):
        c.refuse(keys[0], given, "two numbers, the least and the largest")
    return None if least == 0 and most[0] == math.inf else [float(least), float(most[0])]


def mamba(c):
    found = _without_heads(c)
    c.skip("intermediate_size", "residual_in_fp32", "use_mambapy", "use_associative_scan")
    return found | {
        "mixer": "mamba", "ffn": "none", "norm": "rmsnorm", "positions": "none",
        **mamba_sizes(c, found, "state_size", "time_step_rank", "conv_kernel", "expand"),
        "mixer_bias": biases(c.get("bool", "use_bias"), c.get("bool", "use_bias")),
        "conv_bias": flag(c, "use_conv_bias", None, False), "mixer_activation": inner(c),
    }  # fmt: skip


def falcon_mamba(c):
    c.skip("use_falcon_mambapy")
    return mamba(c) | {"mixer_norm": "selected_plain", "mixer_norm_eps": c.get("positive", "mixer_rms_eps")}


def mamba2(c):
    found = _without_heads(c)
    c.skip("intermediate_size", "residual_in_fp32", "time_step_rank", "rms_norm", "norm_before_gate")
    number, size = c.need("size", "num_heads"), c.need("size", "head_dim")
    inside = c.need("ratio", "expand") * found["d_model"]
    if number * size != inside:
        c.refuse("num_heads", number, f"{inside / size:g}, of {size} each in a width of {inside:g}")
    return found | {
        "mixer": "mamba2", "ffn": "none", "norm": "rmsnorm", "positions": "none",
        "n_mixer_heads": number, "mixer_head_dim": size, "n_mixer_groups": c.need("size", "n_groups"),
        "state_dim": c.need("size", "state_size"), "conv_kernel": c.need("size", "conv_kernel"),
        "chunk_size": c.need("size", "chunk_size"), "time_step_limit": limit(c, "time_step_limit"),
        "mixer_bias": biases(c.get("bool", "use_bias"), c.get("bool", "use_bias")),
        "conv_bias": flag(c, "use_conv_bias", None, False), "mixer_activation": inner(c),
    }  # fmt: skip


def _without_heads(c):
    found = sizes(c, headless=True)
    c.skip("time_step_min", "time_step_max", "time_step_floor", "time_step_init_scheme", "time_step_scale",
           "rescale_prenorm_residual")  # fmt: skip
    return found


def rwkv(c):
    found = sizes(c, headless=True)
    c.skip("context_length")
    c.skip("rescale_every")  # halves activations for float16: only the epsilon of a norm notices
    width = c.get("size", "attention_hidden_size")
    return found | {
        "mixer": "rwkv", "ffn": "channel_mix", "norm": "layernorm", "positions": "none", "embedding_norm": True,
        "d_ff": c.get("size", "intermediate_size") or 4 * found["d_model"],
        "mixer_width": width if width != found["d_model"] else None,
    }  # fmt: skip


def recurrent_gemma(c):
    found = heads(c)
    width, count = c.get("size", "lru_width") or found["d_model"], found["n_heads"]
    c.skip("w_init_variance_scale", "final_w_init_variance_scale")
    found |= {
        "norm": "rmsnorm_plus_one", "d_ff": c.need("size", "intermediate_size") // 2, "ffn_bias": True,
        "ffn": ACTIVATIONS[c.need(PLAIN, "hidden_activation")][1],
        "embedding_scale": bfloat16(math.sqrt(found["d_model"])),
        "logit_softcap": c.get("positive", "logits_soft_cap"),
        "window": c.need("size", "attention_window_size", "sliding_window"),
        "attention_bias": "all" if c.get("bool", "attention_bias") else "out", **rotary(c, found),
    }  # fmt: skip
    recurrent = {
        "n_mixer_heads": count,
        "mixer_head_dim": width // count,
        "conv_kernel": c.need("size", "conv1d_width"),
    }
    blocks = c.get("list", "block_types", "_block_types") or ["recurrent", "recurrent", "attention"]
    types = mixer_types(c, KINDS, (blocks * found["n_layers"])[: found["n_layers"]])
    found, way = with_mixers(found, types, {"linear_attention": ({"mixer": "rg_lru"}, recurrent)})
    return found | combined(way)


def bfloat16(number):
    """A number rounded to bfloat16."""
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]


KINDS = ("linear_attention", "full_attention")
