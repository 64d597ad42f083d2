"""Which tensor of a GGUF file holds which weight: literal tables, written as those of huggingface/names/ are.

Names: gguf-py's constants.py and tensor_mapping.py (github.com/ggml-org/llama.cpp); how tensors lie: its converter,
which stacks experts, squeezes convolutions, and parts what attention makes of a latent. A weight of None is no tensor
of the file: it stands in the metadata.
"""

import re

L, B = "layers/{}/", "blk.{}."
PARTS = ("gate", "up", "down")
# every architecture that has such a weight calls it so, where its own table below says nothing else
COMMON = {
    "embedding/table": "token_embd",
    "embedding_norm": "token_embd_norm",
    "positions/table": "position_embd",
    "token_types/table": "token_types",
    "final_norm": "output_norm",
    "head": "output",
    L + "attention_norm": B + "attn_norm",
    **{f"{L}attention/{each}": f"{B}attn_{each}" for each in ("q", "k", "v", "q_norm", "k_norm")},
    L + "attention/out": B + "attn_output",
    L + "attention/sink": "=" + B + "attn_sinks.weight",
    L + "attention_output_norm": B + "post_attention_norm",
    L + "mixer_norm": B + "attn_norm",
    L + "ffn_norm": B + "ffn_norm",
    **{f"{L}ffn/{each}": f"{B}ffn_{each}" for each in PARTS},
    L + "ffn_output_norm": B + "post_ffw_norm",
    L + "ffn/router/gate": B + "ffn_gate_inp",
    L + "ffn/router/bias": "=" + B + "ffn_gate_inp.bias",
    L + "ffn/router/correction": "=" + B + "exp_probs_b.bias",
    **{f"{L}ffn/experts/{each}": f"{B}ffn_{each}_exps" for each in PARTS},
    **{f"{L}ffn/shared/ffn/{each}": f"{B}ffn_{each}_shexp" for each in PARTS},
    L + "ffn/shared/gate": B + "ffn_gate_inp_shexp",
}
QKV = {L + "attention/q|k|v": B + "attn_qkv"}
GATE_UP = {L + "ffn/gate|up": B + "ffn_up"}
SUMS = {L + "attention_sum_norm": B + "attn_output_norm", L + "ffn_sum_norm": B + "layer_output_norm"}
SECOND = {L + "ffn_norm": B + "post_attention_norm"}  # before the feed-forward, whatever it is called
ROWS = {f"{L}attention/{each}_norm": f"{B}attn_{each}_norm:rows" for each in "qk"}
MLA = {
    L + "attention/q_down": B + "attn_q_a",
    L + "attention/q_norm": B + "attn_q_a_norm",
    L + "attention/q|q_rope": B + "attn_q_b:groups",
    L + "attention/kv_down|k_rope": B + "attn_kv_a_mqa",
    L + "attention/kv_norm": B + "attn_kv_a_norm",
    L + "attention/k_up": B + "attn_k_b:^<_",
    L + "attention/v_up": B + "attn_v_b:^_<",
    L + "attention/indexer/q": B + "indexer.attn_q_b",
    L + "attention/indexer/k": B + "indexer.attn_k",
    L + "attention/indexer/k_norm": B + "indexer.k_norm",
    L + "attention/indexer/weigh": B + "indexer.proj",
}
MAMBA = {
    L + "mixer/x|gate": B + "ssm_in",
    L + "mixer/conv": B + "ssm_conv1d",
    L + "mixer/dt_down|b|c": B + "ssm_x:(@>)<",
    L + "mixer/dt_up": B + "ssm_dt:(@>)<",
    L + "mixer/dt_bias": "=" + B + "ssm_dt.bias",
    **{f"{L}mixer/{each}_norm": f"{B}ssm_{each}_norm" for each in ("dt", "b", "c")},
    L + "mixer/a_log": "=" + B + "ssm_a:last",
    L + "mixer/skip": "=" + B + "ssm_d",
    L + "mixer/out": B + "ssm_out",
}


def _mamba2(mixer="mixer"):
    here = f"{L}{mixer}/"
    return {
        here + "gate|x|b|c|dt": B + "ssm_in",
        here + "gate_bias|x_bias|b_bias|c_bias|in_dt_bias": "=" + B + "ssm_in.bias",
        here + "conv_x|conv_b|conv_c": B + "ssm_conv1d",
        here + "dt_bias": "=" + B + "ssm_dt.bias",
        here + "a_log": "=" + B + "ssm_a:>1",
        here + "skip": "=" + B + "ssm_d:>1",
        here + "norm": B + "ssm_norm:^_",
        here + "out": B + "ssm_out",
    }


DELTA = {
    L + "attention/q|gate": B + "attn_q:groups",
    L + "mixer/q|k|v": B + "attn_qkv",
    L + "mixer/gate": B + "attn_gate",
    L + "mixer/conv_q|conv_k|conv_v": B + "ssm_conv1d",
    L + "mixer/a_log": "=" + B + "ssm_a",
    L + "mixer/dt_bias": "=" + B + "ssm_dt.bias",
    L + "mixer/norm": B + "ssm_norm",
    L + "mixer/out": B + "ssm_out",
}
QWEN3_5 = DELTA | {L + "mixer/beta": B + "ssm_beta", L + "mixer/decay": B + "ssm_alpha"}
KIMI_DELTA = {
    **{f"{L}mixer/{each}": f"{B}attn_{each}" for each in "qkv"},
    **{f"{L}mixer/conv_{each}": f"{B}ssm_conv1d_{each}:>1<" for each in "qkv"},
    **{f"{L}mixer/{ours}": f"{B}ssm_{theirs}" for ours, theirs in (
        ("beta", "beta"), ("decay_down", "f_a"), ("decay_up", "f_b"), ("gate_down", "g_a"), ("gate_up", "g_b"),
        ("norm", "norm"))},
    L + "mixer/dt_bias": "=" + B + "ssm_dt.bias",
    L + "mixer/a_log": "=" + B + "ssm_a:>1",
    L + "mixer/out": B + "attn_output",
}  # fmt: skip
LFM2 = {
    "final_norm": "token_embd_norm",
    L + "mixer/b|c|x": B + "shortconv.in_proj",
    L + "mixer/conv": B + "shortconv.conv",
    L + "mixer/out": B + "shortconv.out_proj",
}
PER_LAYER = {
    "per_layer/table": "per_layer_token_embd",
    "per_layer/project": "per_layer_model_proj",
    "per_layer/norm": "per_layer_proj_norm",
    L + "per_layer/gate": B + "inp_gate",
    L + "per_layer/project": B + "proj",
    L + "per_layer/norm": B + "post_norm",
}
GEMMA3N = PER_LAYER | {
    "widen/project": "altup_proj",
    "narrow/project": "altup_unembd_proj",
    L + "altup/router_norm": B + "altup_router_norm",
    L + "altup/router": B + "altup_router",
    L + "altup/predict": B + "altup_predict_coef",
    L + "altup/correct": B + "altup_correct_coef",
    L + "corrected_scale": "=" + B + "altup_correct_scale.weight",
    L + "laurel/left": B + "laurel_l",
    L + "laurel/right": B + "laurel_r",
    L + "laurel/norm": B + "laurel_post_norm",
}
GEMMA4 = PER_LAYER | {
    L + "layer_scale": "=" + B + "layer_output_scale.weight:1",
    **{f"{L}ffn/dense/{each}": f"{B}ffn_{each}" for each in PARTS},
    L + "ffn/dense_norm": B + "ffn_norm",
    L + "ffn/dense_output_norm": B + "post_ffw_norm_1",
    L + "ffn/experts_norm": B + "pre_ffw_norm_2",
    L + "ffn/experts_output_norm": B + "post_ffw_norm_2",
    L + "ffn/router/scale": "=" + B + "ffn_gate_inp.scale",
    L + "ffn/router/expert_scale": "=" + B + "ffn_down_exps.scale",
}
NEMOTRON_H = _mamba2() | {
    L + "ffn_norm": B + "attn_norm",
    L + "ffn/latent_in": B + "ffn_latent_down",
    L + "ffn/latent_out": B + "ffn_latent_up",
}


def _t5():
    found = {
        "encoder/final_norm": "enc.output_norm", "encoder/position_bias/table": "enc.blk.0.attn_rel_b",
        "final_norm": "dec.output_norm", "position_bias/table": "dec.blk.0.attn_rel_b",
    }  # fmt: skip
    for ours, theirs, parts in (("encoder/", "enc.", ("attention",)), ("", "dec.", ("attention", "cross_attention"))):
        for part in parts:
            name = part.replace("attention", "attn")
            found[f"{ours}{L}{part}_norm"] = f"{theirs}{B}{name}_norm"
            found |= {f"{ours}{L}{part}/{each}": f"{theirs}{B}{name}_{each[0]}" for each in ("q", "k", "v", "out")}
        found[f"{ours}{L}ffn_norm"] = f"{theirs}{B}ffn_norm"
        found |= {f"{ours}{L}ffn/{each}": f"{theirs}{B}ffn_{each}" for each in PARTS}
    return found


# model_type: in what its names differ from COMMON
TABLES = {
    "llama": {},
    "mixtral": {},
    "llama4_text": {},
    "qwen2": {},
    "qwen2_moe": {},
    "qwen3": {},
    "qwen3_moe": {},
    "qwen3_next": DELTA | {L + "mixer/beta|decay": B + "ssm_ba:groups"} | SECOND,
    "qwen3_5_text": QWEN3_5 | SECOND,
    "qwen3_5_moe_text": QWEN3_5 | SECOND,
    "gemma": {},
    "gemma2": {},
    "gemma3_text": {},
    "gemma3n_text": GEMMA3N,
    "gemma4_text": GEMMA4,
    "phi": QKV,
    "phi3": QKV | GATE_UP,
    "phimoe": {},
    "gpt2": QKV,
    "gpt_neox": QKV,
    "bloom": QKV,
    "mpt": QKV,
    "falcon": QKV,
    "starcoder2": {},
    "stablelm": ROWS,
    "exaone": {},
    "exaone_moe": {},
    "afmoe": {L + "attention/gate": B + "attn_gate"},
    "bitnet": {L + "attention/sub_norm": B + "attn_sub_norm", L + "ffn/sub_norm": B + "ffn_sub_norm"},
    "hunyuan_v1_dense": {},
    "jais2": {},
    "gpt_bigcode": QKV,
    "olmo": {},
    "olmo2": {},
    "olmo3": {},
    "olmoe": {},
    "cohere": ROWS,
    "cohere2": {},
    "granite": {},
    "granitemoe": {},
    "granitemoeshared": {},
    "granitemoehybrid": _mamba2(),
    "smollm3": {},
    "exaone4": {},
    "glm4": GATE_UP,
    "glm4_moe": SECOND,
    "gpt_oss": SECOND,
    "seed_oss": SECOND,
    "nemotron": {},
    "nemotron_h": NEMOTRON_H,
    "arcee": {},
    "apertus": {L + "ffn/alpha_p": None, L + "ffn/alpha_n": None},
    "ernie4_5": {},
    "ernie4_5_moe": {},
    "hunyuan_v1_moe": {},
    "dots1": {},
    "minimax_m2": {},
    "mimo_v2_flash": {},
    "dbrx": QKV | {L + "ffn_norm": B + "attn_output_norm"},
    "deepseek_v2": MLA,
    "deepseek_v3": MLA,
    "glm_moe_dsa": MLA,
    "minicpm3": MLA | {L + "attention/k_up|v_up": B + "attn_kv_b:groups"},
    "kimi_linear": MLA | KIMI_DELTA,
    "mamba": MAMBA,
    "falcon_mamba": MAMBA,
    "mamba2": _mamba2(),
    "jamba": MAMBA,
    "falcon_h1": _mamba2("mixer/mamba2")
    | {f"{L}mixer/attention/{ours}": f"{B}attn_{ours}" for ours in "qkv"}
    | {L + "mixer/attention/out": B + "attn_output", L + "ffn_norm": "=" + B + "ffn_norm"},  # without its ".weight"
    "lfm2": LFM2,
    "lfm2_moe": LFM2,
    "bert": SUMS,
    "nomic_bert": QKV | SUMS,
    "modernbert": QKV | GATE_UP,
    "t5": _t5(),
}
# (module that a file holds, one that it then lacks, the row that gives way, the rows that hold): other forms of a thing
FORMS = (
    ("attn_q", "attn_qkv", L + "attention/q|k|v", {f"{L}attention/{each}": f"{B}attn_{each}" for each in "qkv"}),
    ("attn_qkv", "attn_q", L + "attention/q", QKV),
    ("attn_kv_b", "attn_k_b", L + "attention/k_up", {L + "attention/k_up|v_up": B + "attn_kv_b:groups"}),
    ("attn_k_b", "attn_kv_b", L + "attention/k_up|v_up", {row: MLA[row] for row in MLA if row.endswith("_up")}),
    ("attn_q", "attn_q_a", L + "attention/q|q_rope", {L + "attention/q|q_rope": B + "attn_q:groups"}),
    ("ffn_gate_up_exps", "ffn_gate_exps", L + "ffn/experts/gate", {L + "ffn/experts/gate|up": B + "ffn_gate_up_exps"}),
    ("ffn_gate", None, L + "ffn/gate|up", {f"{L}ffn/{each}": f"{B}ffn_{each}" for each in ("gate", "up")}),
    ("ssm_in", "attn_qkv", L + "mixer/q|k|v", {L + "mixer/q|k|v|gate": B + "ssm_in:groups"}),
    ("attn_norm_2", None, L + "ffn_norm", {L + "attention_norm": B + "attn_norm_2", L + "ffn_norm": B + "attn_norm"}),
)


def table(family, names):
    """{path without ".weight" or ".bias": module} of a file with tensors of these names."""
    found = _over(COMMON, TABLES[family])
    there = {re.sub(r"^blk\.\d+\.", "", name).rpartition(".")[0] for name in names}
    for held, absent, row, rows in FORMS:
        if held in there and absent not in there and row in found:
            found = _over(found, rows)
    return found


def _over(found, rows):
    """The rows, and those of `found` for other weights."""
    ours = {weight for row in rows for weight in _weights(row)}
    return {row: name for row, name in found.items() if ours.isdisjoint(_weights(row))} | rows


def _weights(row):
    """The weights that a row stands for: those of "q|k|v" apart."""
    head, _, last = row.rpartition("/")
    return [f"{head}/{each}" for each in last.split("|")]
