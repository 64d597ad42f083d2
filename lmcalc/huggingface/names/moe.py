"""Mixtures of experts on softmax attention."""

from .dense import DOUBLE, LLAMA, T5, L, M

PARTS, PROJ, W = ("gate", "up", "down"), ("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")


def experts(layer, mlp="mlp", shared="shared_experts", gate="gate", inside=PROJ, shared_inside=PROJ):
    """Rows of a router, of experts with a tensor each, and of a shared expert, in modules of these names."""
    return {
        L + "ffn/router/gate": f"{layer}{mlp}.{gate}",
        L + "ffn/router/correction": f"={layer}{mlp}.{gate}.e_score_correction_bias",
        **{f"{L}ffn/experts/{ours}": f"{layer}{mlp}.experts.*.{name}" for ours, name in zip(PARTS, inside)},
        **{f"{L}ffn/shared/ffn/{ours}": f"{layer}{mlp}.{shared}.{name}" for ours, name in zip(PARTS, shared_inside)},
        L + "ffn/shared/gate": f"{layer}{mlp}.{shared}_gate:1<",
    }


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
    L + "ffn/experts/gate|up": "=" + M + "mlp.experts.gate_up_proj:turns,@<>",
    L + "ffn/experts/gate_bias|up_bias": "=" + M + "mlp.experts.gate_up_proj_bias:turns",
    L + "ffn/experts/down": "=" + M + "mlp.experts.down_proj:@<>",
    L + "ffn/experts/down_bias": "=" + M + "mlp.experts.down_proj_bias",
}
X = "transformer.blocks.{}."
MOE = {
    "mixtral": MIXTRAL,
    "qwen2_moe": LLAMA | experts(M, shared="shared_expert"),
    "qwen3_moe": LLAMA | experts(M),
    "olmoe": LLAMA | experts(M),
    "flex_olmo": LLAMA | DOUBLE | experts(M),
    "phimoe": MIXTRAL,
    "granitemoe": GRANITE,
    "granitemoeshared": GRANITE,
    "granitemoe_swa": GRANITE | {L + "attention/sink": "=" + M + "self_attn.sinks"},
    "gpt_oss": GPT_OSS,
    "glm4_moe": DEEPSEEK,
    "dots1": DEEPSEEK,
    "hunyuan_v1_moe": LLAMA
    | experts(M, shared="shared_mlp", gate="gate.wg")
    | {
        L + "attention/q_norm": M + "self_attn.query_layernorm",
        L + "attention/k_norm": M + "self_attn.key_layernorm",
    },
    "ernie4_5_moe": DEEPSEEK | {L + "ffn/router/correction": "=" + M + "mlp.moe_statics.e_score_correction_bias:1>"},
    "aria_text": DEEPSEEK
    | {
        L + "ffn/router/gate": M + "mlp.router",
        L + "ffn/experts/gate|up": M + "mlp.experts.fc1:@<>",
        L + "ffn/experts/down": M + "mlp.experts.fc2:@<>",
    },
    "cohere2_moe": DEEPSEEK,
    "minimax_m2": MIXTRAL | {L + "ffn/router/correction": "=" + M + "block_sparse_moe.e_score_correction_bias"},
    "llama4_text": LLAMA
    | experts(M, "feed_forward", shared="shared_expert")
    | {f"{L}ffn/{part}": f"{M}feed_forward.{part}_proj" for part in PARTS}
    | {
        L + "ffn/router/gate": M + "feed_forward.router",
        L + "ffn/experts/gate|up": "=" + M + "feed_forward.experts.gate_up_proj:@<>",
        L + "ffn/experts/down": "=" + M + "feed_forward.experts.down_proj:@<>",
    },
    "mimo_v2_flash": DEEPSEEK | {L + "attention/sink": "=" + M + "self_attn.attention_sink_bias"},
    "muse_glimmer_text": LLAMA | DOUBLE | {L + "attention/gate": M + "self_attn.gate_proj"},
    "diffllama": LLAMA
    | {f"{L}attention/lambda_{each}": f"={M}self_attn.lambda_{each}" for each in ("q1", "k1", "q2", "k2")},
    "dbrx": {
        "embedding/table": "transformer.wte",
        "final_norm": "transformer.norm_f",
        "head": "lm_head",
        L + "attention_norm": X + "norm_attn_norm.norm_1",
        L + "attention/q|k|v": X + "norm_attn_norm.attn.Wqkv",
        L + "attention/out": X + "norm_attn_norm.attn.out_proj",
        L + "ffn_norm": X + "norm_attn_norm.norm_2",
        L + "ffn/router/gate": X + "ffn.router.layer",
        L + "ffn/experts/gate": "=" + X + "ffn.experts.mlp.w1:(@>)<",
        L + "ffn/experts/up": "=" + X + "ffn.experts.mlp.v1:(@>)<",
        L + "ffn/experts/down": "=" + X + "ffn.experts.mlp.w2:(@<)>",
    },
    "jetmoe": LLAMA
    | {
        L + "attention/k|v": M + "self_attention.kv_proj",
        L + "attention/router/gate": M + "self_attention.experts.router.layer",
        L + "attention/experts/q": M + "self_attention.experts.input_linear",
        L + "attention/experts/out": M + "self_attention.experts.output_linear",
        L + "attention/experts/output_bias": "=" + M + "self_attention.experts.bias",
        L + "ffn/router/gate": M + "mlp.router.layer",
        L + "ffn/experts/gate|up": M + "mlp.input_linear",
        L + "ffn/experts/down": M + "mlp.output_linear",
        L + "ffn/output_bias": "=" + M + "mlp.bias",
    },
    "switch_transformers": T5
    | {
        row: module
        for ours, theirs in (("encoder/" + L, "encoder.block.{}.layer.1."), (L, "decoder.block.{}.layer.2."))
        for row, module in {
            ours + "ffn/up": theirs + "mlp.wi",
            ours + "ffn/down": theirs + "mlp.wo",
            ours + "ffn/router/gate": theirs + "mlp.router.classifier",
            ours + "ffn/router/bias": "=" + theirs + "mlp.router.classifier.bias",
            ours + "ffn/experts/up": theirs + "mlp.experts.expert_*.wi",
            ours + "ffn/experts/down": theirs + "mlp.experts.expert_*.wo",
        }.items()
    },
}
