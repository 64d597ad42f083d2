"""Zamba: Mamba, and transformer blocks that layers share."""

from .dense import LLAMA, L, M
from .recurrent import mamba2


def mamba(at):
    """Rows of Zamba's Mamba, each head of which has B, C and dt of its own, in a module of this name."""
    return {
        L + "mixer/x|gate": at + "in_proj:turns",
        L + "mixer/conv": at + "conv1d:>1<",
        L + "mixer/dt_down|b|c": "=" + at + "x_proj_weight",
        L + "mixer/dt_up": "=" + at + "dt_proj_weight",
        L + "mixer/dt_bias": "=" + at + "dt_proj_bias:rows",
        L + "mixer/a_log": "=" + at + "A_log:apart",
        L + "mixer/skip": "=" + at + "D:rows",
        L + "mixer/out": at + "out_proj",
    }


MIXERS = {"zamba": mamba, "zamba2": mamba2}
SHARED = {"zamba": "shared_transf.", "zamba2": "shared_transformer."}
FEED_FORWARD = {
    "zamba": {"ffn/gate": "feed_forward.gate_proj", "ffn/up": "feed_forward.up_proj"},
    "zamba2": {"ffn/gate|up": "feed_forward.gate_up_proj"},
}
COMMON = LLAMA | {"final_norm": "model.final_layernorm", L + "mixer_norm": M + "input_layernorm"}
ZAMBA = {name: COMMON | rows(M + "mamba.") for name, rows in MIXERS.items()}  # and see zamba


def zamba(model):
    """The rows of a model: a shared block, and what layers add to it, lie in the first layer that uses it."""
    from ...reference import blocks

    found, family = dict(ZAMBA[model.family]), model.family
    hybrid = [number for number, block in enumerate(blocks(model)) if hasattr(block, "number")]
    for at, layer in enumerate(hybrid):
        number = blocks(model)[layer].number
        first = f"model.layers.{hybrid[number]}.{SHARED[family]}"
        rows = {
            L + "project": M + "linear",
            L + "mixer_norm": M + "mamba_decoder.input_layernorm",
            **MIXERS[family](M + "mamba_decoder.mamba."),
            **adapters(first, at),
        }
        found |= {row.format(layer): module.format(layer) for row, module in rows.items()}
        block = {
            "attention_norm": "input_layernorm",
            "ffn_norm": "pre_ff_layernorm",
            "ffn/down": "feed_forward.down_proj",
            **{f"attention/{ours}": f"self_attn.{ours[0]}_proj" for ours in ("q", "k", "v", "out")},
            **FEED_FORWARD[family],
        }
        found |= {f"memory/{number}/{ours}": first + theirs for ours, theirs in block.items()}
    return found


def adapters(first, at):
    """Rows of what the layer that is the `at`-th to use them adds to shared blocks."""
    rows = {
        L + "ffn_adapter/down": first + f"feed_forward.gate_up_proj_adapter_list.{at}.0",
        L + "ffn_adapter/gate_up|up_up": first + f"feed_forward.gate_up_proj_adapter_list.{at}.1",
    }
    for each in "qkv":
        rows[f"{L}attention_adapter/{each}_down"] = first + f"self_attn.linear_{each}_adapter_list.{at}.0"
        rows[f"{L}attention_adapter/{each}_up"] = first + f"self_attn.linear_{each}_adapter_list.{at}.1"
    return rows
