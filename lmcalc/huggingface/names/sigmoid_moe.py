"""Mixtures of experts on softmax attention whose routers score by sigmoids."""

from .dense import LLAMA, L, M
from .moe import DEEPSEEK, experts

SINK = {L + "attention/sink": "=" + M + "self_attn.sinks"}
SIGMOID_MOE = {
    "solar_open": DEEPSEEK,
    "exaone_moe": DEEPSEEK,
    "afmoe": LLAMA
    | experts(M, gate="router.gate")
    | {
        L + "attention/gate": M + "self_attn.gate_proj",
        L + "attention_output_norm": M + "post_attention_layernorm",
        L + "ffn_norm": M + "pre_mlp_layernorm",
        L + "ffn_output_norm": M + "post_mlp_layernorm",
        L + "ffn/router/correction": "=" + M + "mlp.expert_bias",
    },
    "hy_v3": DEEPSEEK | {L + "ffn/router/correction": "=" + M + "mlp.e_score_correction_bias"},
    "sarvam_moe": DEEPSEEK,
    "flint": LLAMA | experts(M, shared="shared_expert") | SINK,
    "kolibri1": DEEPSEEK
    | {
        L + "attention_output_norm": M + "post_self_attn_layernorm",
        L + "ffn_norm": M + "post_attention_layernorm",
        L + "ffn_output_norm": M + "post_mlp_layernorm",
    },
}
