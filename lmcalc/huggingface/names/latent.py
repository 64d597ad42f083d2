"""Latent attention, with and without experts."""

from .dense import LLAMA, L, M
from .moe import PARTS, experts

A = M + "self_attn."
MLA = LLAMA | {
    L + "attention/q_down": A + "q_a_proj",
    L + "attention/q_norm": A + "q_a_layernorm",
    L + "attention/q|q_rope": A + "q_b_proj:groups",
    L + "attention/kv_down|k_rope": A + "kv_a_proj_with_mqa",
    L + "attention/kv_norm": A + "kv_a_layernorm",
    L + "attention/k_up|v_up": A + "kv_b_proj:groups",
    L + "attention/indexer/q": A + "indexer.wq_b",
    L + "attention/indexer/k": A + "indexer.wk",
    L + "attention/indexer/k_norm": A + "indexer.k_norm",
    L + "attention/indexer/weigh": A + "indexer.weights_proj",
}
WITHOUT_Q_LATENT = {L + "attention/q|q_rope": A + "q_proj:groups"}


def without_q_latent(rows):
    """The rows of a family that change where queries come from no latent."""
    return {row: module.replace("q_b_proj", "q_proj") for row, module in rows.items() if "q_b_proj" in module}


DEEPSEEK = MLA | experts(M)
LONGCAT = {
    row.replace("attention", f"attention_{at}", 1): module.replace("self_attn.", f"self_attn.{at}.")
    for row, module in MLA.items()
    for at in "01"
    if row.startswith(L + "attention/")
}
HY_V4 = (
    DEEPSEEK
    | {L + "attention/gate": A + "linear_gate", L + "attention/sink": "=" + A + "learnable_sink_param"}
    | {
        f"{L}{branch}_streams/{ours}": f"={M}hc_pre.hc_{short}_layer.hc_{theirs}"
        for branch, short in (("attention", "attn"), ("ffn", "mlp"))
        for ours, theirs in (("pre|post", "fn"), ("pre_base|post_base", "base"), ("scale", "scale"))
    }
    | {
        f"narrow/{ours}": f"=model.hc_pre.hc_head.hc_head_{theirs}"
        for ours, theirs in (("pre", "fn"), ("base", "base"), ("scale", "scale"))
    }
)
LATENT = {
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK,
    "deepseek_v32": DEEPSEEK,
    "glm_moe_dsa": DEEPSEEK,
    "minicpm3": MLA,
    "glm4_moe_lite": DEEPSEEK,
    "sarvam_mla": DEEPSEEK,
    "axk1": DEEPSEEK | {L + "ffn_output_norm": M + "post_mlp_layernorm"},
    "axk2": DEEPSEEK
    | {
        L + "attention/q|q_rope|gate": A + "q_b_proj:groups",
        **{
            L + ours + row: M + theirs + module
            for ours, theirs in (("attention_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm"))
            for row, module in (("/norm", ".norm"), ("/down", ".W_down"), ("/up", ".W_up"))
        },
    },
    "dots3_note_text": DEEPSEEK
    | {L + "attention/k_rope_norm": A + "k_rope_only_layernorm", L + "attention/gate": A + "g_proj"},
    "hy_v4": HY_V4,
    "hy_v4_vl_text": HY_V4,
    "mistral4": DEEPSEEK,
    "youtu": MLA,
    "longcat_flash": LLAMA
    | LONGCAT
    | {f"{L}attention_norm_{at}": f"{M}input_layernorm.{at}" for at in "01"}
    | {f"{L}ffn_norm_{at}": f"{M}post_attention_layernorm.{at}" for at in "01"}
    | {f"{L}ffn_{at}/{part}": f"{M}mlps.{at}.{part}_proj" for at in "01" for part in PARTS}
    | {f"{L}experts/experts/{part}": f"{M}mlp.experts.*.{part}_proj" for part in PARTS}
    | {
        L + "experts/router/gate": M + "mlp.router.classifier",
        L + "experts/router/correction": "=" + M + "mlp.router.e_score_correction_bias",
    },
}
