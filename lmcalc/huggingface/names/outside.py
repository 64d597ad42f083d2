"""Models that are published with code of their own (families/outside.py); those without a row have no known names."""

from .dense import GPT2, LLAMA, L, M
from .moe import experts
from .recurrent import RECURRENT, R

G, T = "transformer.encoder.layers.{}.", "transformer.h.{}."
OUTSIDE = {
    "baichuan": LLAMA | {L + "attention/q|k|v": M + "self_attn.W_pack"},
    "chatglm": {
        "embedding/table": "transformer.embedding.word_embeddings",
        "final_norm": "transformer.encoder.final_layernorm",
        "head": "transformer.output_layer",
        L + "attention_norm": G + "input_layernorm",
        L + "attention/q|k|v": G + "self_attention.query_key_value",
        L + "attention/out": G + "self_attention.dense",
        L + "ffn_norm": G + "post_attention_layernorm",
        L + "ffn/gate|up": G + "mlp.dense_h_to_4h",
        L + "ffn/down": G + "mlp.dense_4h_to_h",
    },
    "deepseek": LLAMA | experts(M),
    "internlm": LLAMA,
    "internlm2": {
        "embedding/table": "model.tok_embeddings",
        "final_norm": "model.norm",
        "head": "output",
        L + "attention_norm": M + "attention_norm",
        L + "attention/q|k|v": M + "attention.wqkv:groups",
        L + "attention/out": M + "attention.wo",
        L + "ffn_norm": M + "ffn_norm",
        L + "ffn/gate": M + "feed_forward.w1",
        L + "ffn/up": M + "feed_forward.w3",
        L + "ffn/down": M + "feed_forward.w2",
    },
    "mimo": LLAMA,
    "phi3small": LLAMA
    | {
        "final_norm": "model.final_layernorm",
        L + "attention/q|k|v": M + "self_attn.query_key_value:groups",
        L + "attention/out": M + "self_attn.dense",
        L + "ffn/gate|up": M + "mlp.up_proj:turns",
    },
    "rwkv5": RECURRENT["rwkv"]
    | {
        L + "mixer/mix_gate": "=" + R + "attention.time_mix_gate:11>",
        L + "mixer/gate": R + "attention.gate",
        L + "mixer/first": "=" + R + "attention.time_faaaa:last",
        L + "mixer/decay": "=" + R + "attention.time_decay:last",
        L + "mixer/norm": R + "attention.ln_x",
    },
    "qwen": GPT2 | {L + "ffn/gate": T + "mlp.w2", L + "ffn/up": T + "mlp.w1", L + "ffn/down": T + "mlp.c_proj"},
}
