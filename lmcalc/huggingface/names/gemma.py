"""Gemma 3n and Gemma 4."""

from .dense import DOUBLE, LLAMA, L, M
from .moe import PARTS

PER_LAYER = {
    "per_layer/table": "model.embed_tokens_per_layer",
    "per_layer/project": "model.per_layer_model_projection",
    "per_layer/norm": "model.per_layer_projection_norm",
    L + "per_layer/gate": M + "per_layer_input_gate",
    L + "per_layer/project": M + "per_layer_projection",
    L + "per_layer/norm": M + "post_per_layer_input_norm",
}
GEMMA = {
    "gemma3n_text": LLAMA
    | DOUBLE
    | PER_LAYER
    | {
        "widen/project": "model.altup_projections.*",
        "narrow/project": "model.altup_unembed_projections.*",
        L + "altup/router_norm": M + "altup.router_norm",
        L + "altup/router": M + "altup.modality_router",
        L + "altup/predict": M + "altup.prediction_coefs",
        L + "altup/correct": M + "altup.correction_coefs",
        L + "corrected_scale": "=" + M + "altup.correct_output_scale",
        L + "laurel/left": M + "laurel.linear_left",
        L + "laurel/right": M + "laurel.linear_right",
        L + "laurel/norm": M + "laurel.post_laurel_norm",
    },
    "gemma4_unified_text": LLAMA | DOUBLE | {L + "layer_scale": "=" + M + "layer_scalar:1"},
    "gemma4_text": LLAMA
    | DOUBLE
    | PER_LAYER
    | {
        L + "layer_scale": "=" + M + "layer_scalar:1",
        **{f"{L}ffn/dense/{part}": f"{M}mlp.{part}_proj" for part in PARTS},
        L + "ffn/dense_norm": M + "pre_feedforward_layernorm",
        L + "ffn/dense_output_norm": M + "post_feedforward_layernorm_1",
        L + "ffn/experts_norm": M + "pre_feedforward_layernorm_2",
        L + "ffn/experts_output_norm": M + "post_feedforward_layernorm_2",
        L + "ffn/router/gate": M + "router.proj",
        L + "ffn/router/scale": "=" + M + "router.scale",
        L + "ffn/router/expert_scale": "=" + M + "router.per_expert_scale",
        L + "ffn/experts/gate|up": "=" + M + "experts.gate_up_proj",
        L + "ffn/experts/down": "=" + M + "experts.down_proj",
    },
}
