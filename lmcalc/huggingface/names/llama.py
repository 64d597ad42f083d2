"""Dense transformers in the line of LLaMA."""

from .dense import DENSE, LLAMA, L, M

A, E = M + "self_attn.", "transformer.h.{}."
MODELS_OF_LLAMA = ("cwm", "ministral", "ministral3", "jais2", "internlm3", "iquestcoder", "cohere_compass_text",
                   "emu3_text_model")  # fmt: skip
LLAMAS = {
    **dict.fromkeys(MODELS_OF_LLAMA, LLAMA),
    "hunyuan_v1_dense": LLAMA
    | {L + "attention/q_norm": A + "query_layernorm", L + "attention/k_norm": A + "key_layernorm"},
    "nanochat": LLAMA | {L + "ffn/up": M + "mlp.fc1", L + "ffn/down": M + "mlp.fc2"},
    "vaultgemma": LLAMA | {L + "ffn_norm": M + "pre_feedforward_layernorm"},
    "bitnet": LLAMA | {L + "attention/sub_norm": A + "attn_sub_norm", L + "ffn/sub_norm": M + "mlp.ffn_sub_norm"},
    "exaone": {
        "embedding/table": "transformer.wte",
        "final_norm": "transformer.ln_f",
        "head": "lm_head",
        L + "attention_norm": E + "ln_1",
        **{f"{L}attention/{ours}": f"{E}attn.attention.{ours}_proj" for ours in ("q", "k", "v", "out")},
        L + "ffn_norm": E + "ln_2",
        L + "ffn/gate": E + "mlp.c_fc_0",
        L + "ffn/up": E + "mlp.c_fc_1",
        L + "ffn/down": E + "mlp.c_proj",
    },
    "granite_swa": LLAMA | {L + "attention/sink": "=" + A + "sinks"},
    "hyperclovax": LLAMA | {L + "attention_output_norm": M + "post_norm1", L + "ffn_output_norm": M + "post_norm2"},
    "apertus1p5_text": DENSE["apertus"],
}
