"""Hybrids of attention and recurrences."""

from .dense import LLAMA, L, M
from .latent import MLA, WITHOUT_Q_LATENT
from .moe import PARTS, W, experts
from .recurrent import BACKBONE, B, mamba, mamba2

FEED_FORWARD = {
    "final_norm": "model.final_layernorm",
    L + "mixer_norm": M + "input_layernorm",
    L + "ffn_norm": M + "pre_ff_layernorm",
    **{f"{L}ffn/{part}": f"{M}feed_forward.{part}_proj" for part in PARTS},
}
S = M + "self_attn."
D = M + "linear_attn."
QWEN = {
    L + "mixer_norm": M + "input_layernorm",
    L + "attention/q|gate": S + "q_proj:groups",
    L + "mixer/conv_q|conv_k|conv_v": D + "conv1d:>1<",
    L + "mixer/a_log": "=" + D + "A_log",
    L + "mixer/dt_bias": "=" + D + "dt_bias",
    L + "mixer/norm": D + "norm",
    L + "mixer/out": D + "out_proj",
}
QWEN3_5 = QWEN | {
    L + "mixer/q|k|v": D + "in_proj_qkv",
    L + "mixer/gate": D + "in_proj_z",
    L + "mixer/beta": D + "in_proj_b",
    L + "mixer/decay": D + "in_proj_a",
}
LFM2 = LLAMA | {
    "final_norm": "model.embedding_norm",
    L + "attention_norm": M + "operator_norm",
    L + "attention/q_norm": S + "q_layernorm",
    L + "attention/k_norm": S + "k_layernorm",
    L + "attention/out": S + "out_proj",
    L + "mixer_norm": M + "operator_norm",
    L + "mixer/b|c|x": M + "conv.in_proj",
    L + "mixer/conv": M + "conv.conv:>1<",
    L + "mixer/out": M + "conv.out_proj",
    L + "ffn_norm": M + "ffn_norm",
    **{f"{L}ffn/{ours}": f"{M}feed_forward.{name}" for ours, name in zip(PARTS, W)},
}
# OLMo hybrid's convolution is one tensor at run time, which transformers 5.24 cuts in equal thirds when it writes files
FUSED_CONVOLUTION = {L + "mixer/conv_q|conv_k|conv_v": D + "conv1d:>1<"}
CUT_CONVOLUTION = {L + "mixer/conv_q|conv_k|conv_v": D + "[qkv]_conv1d:>1<"}
X = M + "attention."
BAILING = {
    **{row: module.replace(S, X) for row, module in (MLA | experts(M)).items()},
    "embedding/table": "model.word_embeddings",
    L + "attention/out": X + "dense",
    L + "attention/gate": X + "g_proj",
    L + "mixer_norm": M + "input_layernorm",
    L + "mixer/beta": X + "b_proj",
    L + "mixer/decay": X + "f_proj",
    L + "mixer/gate": X + "g_proj",
    L + "mixer/a_log": "=" + X + "A_log",
    L + "mixer/dt_bias": "=" + X + "dt_bias",
    L + "mixer/norm": X + "o_norm",
    L + "mixer/out": X + "dense",
    **{f"{L}mixer/{each}": f"{X}{each}_proj" for each in "qkv"},
    **{f"{L}mixer/conv_{each}": f"{X}{each}_conv1d:>1<" for each in "qkv"},
    L + "ffn/router/correction": "=" + M + "mlp.gate.expert_bias",
}
BAILING_FUSED = {L + "mixer/conv_q|conv_k|conv_v": X + "conv1d:>1<"}  # as transformers holds it at run time
GRANITE_DENSE = {
    L + "ffn/gate|up": M + "shared_mlp.input_linear",
    L + "ffn/down": M + "shared_mlp.output_linear",
}
HYBRID = {
    "jamba": LLAMA | FEED_FORWARD | experts(M, "feed_forward", gate="router") | mamba(M + "mamba."),
    "bamba": LLAMA | FEED_FORWARD | mamba2(M + "mamba."),
    "granitemoehybrid": LLAMA
    | mamba2(M + "mamba.")
    | {
        L + "mixer_norm": M + "input_layernorm",
        L + "ffn/router/gate": M + "block_sparse_moe.router.layer",
        L + "ffn/experts/gate|up": M + "block_sparse_moe.input_linear",
        L + "ffn/experts/down": M + "block_sparse_moe.output_linear",
        L + "ffn/shared/ffn/gate|up": M + "shared_mlp.input_linear",
        L + "ffn/shared/ffn/down": M + "shared_mlp.output_linear",
    },
    "falcon_h1": LLAMA
    | FEED_FORWARD
    | mamba2(M + "mamba.", "mixer/mamba2")
    | {f"{L}mixer/attention/{ours}": f"{S}{ours[0]}_proj" for ours in ("q", "k", "v", "out")},
    "nemotron_h": BACKBONE
    | mamba2(B + "mixer.")
    | experts(B, "mixer")
    | {f"{L}attention/{ours}": f"{B}mixer.{ours[0]}_proj" for ours in ("q", "k", "v", "out")}
    | {f"{L}ffn/{ours}": f"{B}mixer.{ours}_proj" for ours in ("up", "down")}
    | {
        L + "ffn/latent_in": B + "mixer.fc1_latent_proj",
        L + "ffn/latent_out": B + "mixer.fc2_latent_proj",
    },
    "qwen3_next": LLAMA
    | QWEN
    | experts(M, shared="shared_expert")
    | {
        L + "mixer/q|k|v|gate": D + "in_proj_qkvz:groups",
        L + "mixer/beta|decay": D + "in_proj_ba:groups",
    },
    "qwen3_5_text": LLAMA | QWEN3_5,
    "qwen3_5_moe_text": LLAMA | QWEN3_5 | experts(M, shared="shared_expert"),
    "olmo_hybrid": LLAMA
    | {
        L + "attention_output_norm": M + "post_attention_layernorm",
        L + "ffn_output_norm": M + "post_feedforward_layernorm",
        L + "mixer_norm": M + "attention_layer_norm",
        L + "ffn_norm": M + "feedforward_layer_norm",
        L + "mixer/gate": D + "g_proj",
        L + "mixer/beta": D + "b_proj",
        L + "mixer/decay": D + "a_proj",
        L + "mixer/a_log": "=" + D + "A_log",
        L + "mixer/dt_bias": "=" + D + "dt_bias",
        L + "mixer/norm": D + "o_norm",
        L + "mixer/out": D + "o_proj",
        **{f"{L}mixer/{each}": f"{D}{each}_proj" for each in "qkv"},
        **{f"{L}mixer/conv_{each}": f"{D}{each}_conv1d:>1<" for each in "qkv"},
    },
    "lfm2": LFM2,
    "lfm2_moe": LFM2
    | experts(M, "feed_forward", inside=W)
    | {L + "ffn/router/correction": "=" + M + "feed_forward.expert_bias"},
    "lfm3": LFM2
    | {
        L + "attention/q_norm": S + "q_norm",
        L + "attention/k_norm": S + "k_norm",
        L + "attention/out": S + "o_proj",
        L + "attention/gate": S + "gate_proj",
        L + "attention_output_norm": M + "post_operator_norm",
        L + "mixer_output_norm": M + "post_operator_norm",
        L + "ffn_output_norm": M + "post_ffn_norm",
    },
    "bailing_hybrid": BAILING,
    "kimi_linear": MLA
    | WITHOUT_Q_LATENT
    | experts(M, "block_sparse_moe", inside=W)
    | {
        L + "mixer_norm": M + "input_layernorm",
        L + "mixer/beta": S + "b_proj",
        L + "mixer/decay_down": S + "f_a_proj",
        L + "mixer/decay_up": S + "f_b_proj",
        L + "mixer/gate_down": S + "g_a_proj",
        L + "mixer/gate_up": S + "g_b_proj",
        L + "mixer/dt_bias": "=" + S + "dt_bias",
        L + "mixer/a_log": "=" + S + "A_log:11>1",
        L + "mixer/norm": S + "o_norm",
        L + "mixer/out": S + "o_proj",
        **{f"{L}mixer/{each}": f"{S}{each}_proj" for each in "qkv"},
        **{f"{L}mixer/conv_{each}": f"{S}{each}_conv1d:>1<" for each in "qkv"},
        **{f"{L}ffn/{part}": f"{M}block_sparse_moe.{part}_proj" for part in PARTS},
    },
    "minimax": LLAMA
    | experts(M, "block_sparse_moe", inside=W)
    | {
        L + "mixer_norm": M + "input_layernorm",
        L + "mixer/q|k|v": S + "qkv_proj:groups",
        L + "mixer/gate": S + "output_gate",
        L + "mixer/norm": S + "norm",
        L + "mixer/out": S + "out_proj",
    },
}


KIMI_K3 = {  # beside those of Kimi Linear
    L + "attention/q|q_rope": S + "q_b_proj:groups",
    L + "attention/gate": S + "g_proj",
    L + "mixer/gate": S + "g_proj",
    L + "mixer/a_log": "=" + S + "A_log",
    L + "ffn/latent_in": M + "block_sparse_moe.routed_expert_down_proj",
    L + "ffn/latent_norm": M + "block_sparse_moe.routed_expert_norm",
    L + "ffn/latent_out": M + "block_sparse_moe.routed_expert_up_proj",
    **{f"{L}{branch}_mix/norm": M + "self_attention_res_norm" for branch in ("attention", "mixer")},
    **{f"{L}{branch}_mix/query": M + "self_attention_res_proj:1<" for branch in ("attention", "mixer")},
    L + "ffn_mix/norm": M + "mlp_res_norm",
    L + "ffn_mix/query": M + "mlp_res_proj:1<",
    "narrow/norm": "model.output_attn_res_norm",
    "narrow/query": "model.output_attn_res_proj:1<",
}
