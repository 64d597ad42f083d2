"""Mixtures of experts made from Qwen's classes."""

from .dense import LLAMA, L, M
from .hybrid import QWEN, QWEN3_5, D
from .moe import experts

LARA = LLAMA | experts(M, shared="shared_expert")
QWENS = {
    "mellum": LLAMA | experts(M),
    "lara_mini": LARA
    | {row: module for row, module in QWEN.items() if row.startswith(L + "mixer")}
    | {L + "mixer/q|k|v|gate|beta|decay": D + "in_proj", L + "mixer/norm": D + "out_norm"},
}
LARA_AT_RUN_TIME = LARA | {row: module for row, module in QWEN3_5.items() if row.startswith(L + "mixer")}
