"""Text parts of multimodal models, as transformers calls them without what stands before."""

from .dense import DENSE, LLAMA, L
from .llama import LLAMAS
from .moe import DEEPSEEK, M, experts

MULTIMODAL = {
    "deepseek_ocr2_text": DEEPSEEK,
    "ernie4_5_vl_moe_text": LLAMA
    | experts(M, "mlp.text_moe")
    | {f"{L}ffn/shared/ffn/{part}": f"{M}mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down")}
    | {L + "ffn/router/correction": f"={M}mlp.text_moe.gate.moe_statics.e_score_correction_bias:1>"},
    "glm4v_text": DENSE["glm4"],
    "glm4v_moe_text": DEEPSEEK,
    "glm_ocr_text": DENSE["glm4"],
    "granite4_vision_text": LLAMA,
    "granite_docling_text": LLAMA,
    "hunyuan_vl_text": LLAMAS["hunyuan_v1_dense"],
    "paddleocr_vl_text": LLAMA,
    "qwen2_5_omni_text": LLAMA,
    "qwen2_5_vl_text": LLAMA,
    "qwen2_vl_text": LLAMA,
    "qwen3_omni_moe_text": LLAMA | experts(M),
    "qwen3_vl_text": LLAMA,
    "qwen3_vl_moe_text": LLAMA | experts(M),
}
