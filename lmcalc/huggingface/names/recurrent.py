"""State spaces and recurrences without attention."""

from .dense import LLAMA, L, M


def mamba(at):
    """Rows of Mamba in a module of this name."""
    return {
        L + "mixer/x|gate": at + "in_proj",
        L + "mixer/conv": at + "conv1d:>1<",
        L + "mixer/dt_down|b|c": at + "x_proj:(@>)<",
        L + "mixer/dt_up": at + "dt_proj:(@>)<",
        L + "mixer/dt_bias": "=" + at + "dt_proj.bias",
        L + "mixer/dt_norm": at + "dt_layernorm",
        L + "mixer/b_norm": at + "b_layernorm",
        L + "mixer/c_norm": at + "c_layernorm",
        L + "mixer/a_log": "=" + at + "A_log:last",
        L + "mixer/skip": "=" + at + "D",
        L + "mixer/out": at + "out_proj",
    }


def mamba2(at, mixer="mixer"):
    """Rows of Mamba-2 in a module of this name."""
    here = f"{L}{mixer}/"
    return {
        here + "gate|x|b|c|dt": at + "in_proj",
        here + "gate_bias|x_bias|b_bias|c_bias|in_dt_bias": "=" + at + "in_proj.bias",
        here + "conv_x|conv_b|conv_c": at + "conv1d:>1<",
        here + "dt_bias": "=" + at + "dt_bias",
        here + "a_log": "=" + at + "A_log",
        here + "skip": "=" + at + "D",
        here + "norm": at + "norm",
        here + "out": at + "out_proj",
    }


B = "backbone.layers.{}."
BACKBONE = {
    "embedding/table": "backbone.embeddings",
    "final_norm": "backbone.norm_f",
    "head": "lm_head",
    L + "mixer_norm": B + "norm",
    L + "attention_norm": B + "norm",
    L + "ffn_norm": B + "norm",
}
R = "rwkv.blocks.{}."
RECURRENT = {
    "mamba": BACKBONE | mamba(B + "mixer."),
    "falcon_mamba": BACKBONE | mamba(B + "mixer."),
    "mamba2": BACKBONE | mamba2(B + "mixer."),
    "rwkv": {
        "embedding/table": "rwkv.embeddings",
        "embedding_norm": "rwkv.blocks.0.pre_ln",
        "final_norm": "rwkv.ln_out",
        "head": "head",
        L + "mixer_norm": R + "ln1",
        L + "mixer/mix_k": "=" + R + "attention.time_mix_key:11>",
        L + "mixer/mix_v": "=" + R + "attention.time_mix_value:11>",
        L + "mixer/mix_r": "=" + R + "attention.time_mix_receptance:11>",
        L + "mixer/k": R + "attention.key",
        L + "mixer/v": R + "attention.value",
        L + "mixer/r": R + "attention.receptance",
        L + "mixer/decay": "=" + R + "attention.time_decay",
        L + "mixer/first": "=" + R + "attention.time_first",
        L + "mixer/out": R + "attention.output",
        L + "ffn_norm": R + "ln2",
        L + "ffn/mix_k": "=" + R + "feed_forward.time_mix_key:11>",
        L + "ffn/mix_r": "=" + R + "feed_forward.time_mix_receptance:11>",
        L + "ffn/k": R + "feed_forward.key",
        L + "ffn/v": R + "feed_forward.value",
        L + "ffn/r": R + "feed_forward.receptance",
    },
    "recurrent_gemma": LLAMA
    | {
        "final_norm": "model.final_norm",
        L + "attention_norm": M + "temporal_pre_norm",
        L + "attention/q": M + "temporal_block.q_proj",
        L + "attention/k": M + "temporal_block.k_proj",
        L + "attention/v": M + "temporal_block.v_proj",
        L + "attention/out": M + "temporal_block.o_proj",
        L + "mixer_norm": M + "temporal_pre_norm",
        L + "mixer/x": M + "temporal_block.linear_x",
        L + "mixer/gate": M + "temporal_block.linear_y",
        L + "mixer/conv": M + "temporal_block.conv_1d:>1<",
        L + "mixer/input_gate": "=" + M + "temporal_block.rg_lru.input_gate_weight:@<>",
        L + "mixer/input_gate_bias": "=" + M + "temporal_block.rg_lru.input_gate_bias:last",
        L + "mixer/decay_gate": "=" + M + "temporal_block.rg_lru.recurrent_gate_weight:@<>",
        L + "mixer/decay_gate_bias": "=" + M + "temporal_block.rg_lru.recurrent_gate_bias:last",
        L + "mixer/param": "=" + M + "temporal_block.rg_lru.recurrent_param",
        L + "mixer/out": M + "temporal_block.linear_out",
        L + "ffn_norm": M + "channel_pre_norm",
        L + "ffn/gate": M + "mlp_block.gate_proj",
        L + "ffn/up": M + "mlp_block.up_proj",
        L + "ffn/down": M + "mlp_block.down_proj",
    },
}
