"""Mixtures of experts on softmax attention whose routers score by sigmoids."""

from .dense import DOUBLE, LLAMA, L, M
from .moe import DEEPSEEK, experts

SIGMOID_MOE = {
    "solar_open": DEEPSEEK,
    "exaone_moe": DEEPSEEK | {L + "ffn/router/correction": "=" + M + "mlp.e_score_correction_bias"},
    "afmoe": LLAMA
    | experts(M, gate="router.gate")
    | {
        L + "attention/gate": M + "self_attn.gate_proj",
        L + "attention_output_norm": M + "post_attention_layernorm",
        L + "ffn_norm": M + "pre_mlp_layernorm",
        L + "ffn_output_norm": M + "post_mlp_layernorm",
        L + "ffn/router/correction": "=" + M + "mlp.expert_bias",
    },
    "hy_v3": LLAMA
    | experts(M, shared="shared_mlp", gate="router.gate")
    | {L + "ffn/router/correction": "=" + M + "mlp.expert_bias"},
    "sarvam_moe": DEEPSEEK,  # see SARVAM
    "laguna": LLAMA
    | experts(M, shared="shared_expert")
    | {
        L + "attention/gate": M + "self_attn.g_proj",
        L + "ffn/router/correction": "=" + M + "mlp.experts.e_score_correction_bias",
    },
    "beam": DEEPSEEK
    | DOUBLE
    | {L + "attention/gate": M + "self_attn.gate_proj", L + "attention/gate_bias": "=" + M + "self_attn.gate_bias"},
    "step3p5": DEEPSEEK | {L + "attention/gate": M + "self_attn.g_proj"},
    "flint": LLAMA | experts(M, shared="shared_expert") | {L + "attention/sink": "=" + M + "self_attn.softmax_offset"},
    "kolibri1": DEEPSEEK
    | {
        L + "attention_output_norm": M + "post_attn_norm",
        L + "ffn_norm": M + "post_attention_layernorm",
        L + "ffn_output_norm": M + "post_ffn_norm",
        L + "ffn/router/correction": "=" + M + "moe.router.expert_bias",
    },
}
# Sarvam's files, whose tensors transformers calls at run time as those of GLM 4.5
SARVAM = {
    "embedding/table": "model.word_embeddings",
    L + "attention/q|k|v": M + "attention.query_key_value",
    L + "attention/out": M + "attention.dense",
    L + "attention/q_norm": M + "attention.query_layernorm",
    L + "attention/k_norm": M + "attention.key_layernorm",
    L + "ffn/router/correction": "=" + M + "mlp.gate.expert_bias",
}
