"""Mixtures of experts on softmax attention."""

from .dense import DOUBLE, LLAMA, L

M = "model.layers.{}."


def experts(layer, mlp="mlp", shared="shared_experts", gate="gate", inside=("gate_proj", "up_proj", "down_proj")):
    """Rows of a router, of experts with a tensor each, and of a shared expert, in modules of these names."""
    return {
        L + "ffn/router/gate": f"{layer}{mlp}.{gate}",
        L + "ffn/router/correction": f"={layer}{mlp}.{gate}.e_score_correction_bias",
        **{f"{L}ffn/experts/{ours}": f"{layer}{mlp}.experts.*.{name}" for ours, name in zip(PARTS, inside)},
        **{
            f"{L}ffn/shared/ffn/{ours}": f"{layer}{mlp}.{shared}.{name}"
            for ours, name in zip(PARTS, ("gate_proj", "up_proj", "down_proj"))
        },
        L + "ffn/shared/gate": f"{layer}{mlp}.{shared}_gate:1D",
    }


PARTS = ("gate", "up", "down")
W = ("w1", "w3", "w2")
MIXTRAL = LLAMA | experts(M, "block_sparse_moe", inside=W)
DEEPSEEK = LLAMA | experts(M)
GRANITE = LLAMA | {
    L + "ffn/router/gate": M + "block_sparse_moe.router.layer",
    L + "ffn/experts/gate|up": M + "block_sparse_moe.input_linear",
    L + "ffn/experts/down": M + "block_sparse_moe.output_linear",
    L + "ffn/shared/ffn/gate|up": M + "shared_mlp.input_linear",
    L + "ffn/shared/ffn/down": M + "shared_mlp.output_linear",
}
GPT_OSS = LLAMA | {
    L + "attention/sink": "=" + M + "self_attn.sinks",
    L + "ffn/router/gate": M + "mlp.router",
    L + "ffn/router/bias": "=" + M + "mlp.router.bias",
    L + "ffn/experts/gate|up": "=" + M + "mlp.experts.gate_up_proj:turns,EDF",
    L + "ffn/experts/gate_bias|up_bias": "=" + M + "mlp.experts.gate_up_proj_bias:turns",
    L + "ffn/experts/down": "=" + M + "mlp.experts.down_proj:EFD",
    L + "ffn/experts/down_bias": "=" + M + "mlp.experts.down_proj_bias",
}
MOE = {
    "mixtral": MIXTRAL,
    "qwen2_moe": LLAMA | experts(M, shared="shared_expert"),
    "qwen3_moe": LLAMA | experts(M),
    "olmoe": LLAMA | experts(M),
    "flex_olmo": LLAMA | DOUBLE | experts(M),
    "phimoe": MIXTRAL,
    "granitemoe": GRANITE,
    "granitemoeshared": GRANITE,
    "gpt_oss": GPT_OSS,
    "glm4_moe": DEEPSEEK,
    "dots1": DEEPSEEK,
    "hunyuan_v1_moe": LLAMA
    | experts(M, shared="shared_mlp", gate="gate.wg")
    | {
        L + "attention/q_norm": M + "self_attn.query_layernorm",
        L + "attention/k_norm": M + "self_attn.key_layernorm",
    },
    "ernie4_5_moe": DEEPSEEK | {L + "ffn/router/correction": "=" + M + "mlp.moe_statics.e_score_correction_bias:1E"},
    "minimax_m2": MIXTRAL | {L + "ffn/router/correction": "=" + M + "block_sparse_moe.e_score_correction_bias"},
}
