"""Dense transformers in the line of GPT-2, GPT-J and GPT-NeoX."""

from .dense import DENSE, GPT2, LLAMA, PHI, L, M

H, N = "transformer.h.{}.", "gpt_neox_japanese.layers.{}."
CTRL, BART = H + "multi_head_attention.", ("self_attn.", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm")


def bart(layer):
    """Rows of a layer as BART's decoders have it."""
    attention, attention_norm, up, down, ffn_norm = (layer + each for each in BART)
    return {
        L + "attention_norm": attention_norm,
        **{f"{L}attention/{ours}": f"{attention}{ours}_proj" for ours in ("q", "k", "v", "out")},
        L + "ffn_norm": ffn_norm,
        L + "ffn/up": up,
        L + "ffn/down": down,
    }


GPT = {
    "gpt_bigcode": GPT2 | {L + "attention/q|k|v": H + "attn.c_attn:groups"},
    "codegen": {row: module for row, module in DENSE["gptj"].items() if not row.startswith(L + "attention/")}
    | {
        L + "attention/q|v|k": H + "attn.qkv_proj:quarters",
        L + "attention/out": H + "attn.out_proj",
    },
    "ctrl": {
        "embedding/table": "transformer.w",
        "final_norm": "transformer.layernorm",
        "head": "lm_head",
        L + "attention_norm": H + "layernorm1",
        **{f"{L}attention/{each}": f"{CTRL}W{each}" for each in "qkv"},
        L + "attention/out": CTRL + "dense",
        L + "ffn_norm": H + "layernorm2",
        L + "ffn/up": H + "ffn.0",
        L + "ffn/down": H + "ffn.2",
    },
    "xglm": {
        "embedding/table": "model.embed_tokens",
        "final_norm": "model.layer_norm",
        "head": "lm_head",
        **bart(M),
    },
    "biogpt": {
        "embedding/table": "biogpt.embed_tokens",
        "positions/table": "biogpt.embed_positions",
        "final_norm": "biogpt.layer_norm",
        "head": "output_projection",
        **bart("biogpt.layers.{}."),
    },
    "gpt_neox_japanese": {
        "embedding/table": "gpt_neox_japanese.embed_in",
        "final_norm": "gpt_neox_japanese.final_layer_norm",
        "head": "embed_out",
        L + "attention_norm": N + "input_layernorm",
        L + "attention/q|k|v": N + "attention.query_key_value:groups",
        L + "attention/out": N + "attention.dense",
        L + "attention/out_bias": "=" + N + "attention.dense_bias",
        L + "ffn_norm": N + "post_attention_layernorm",
        L + "ffn/up": N + "mlp.dense_h_to_4h",
        L + "ffn/down": N + "mlp.dense_4h_to_h",
    },
    "persimmon": LLAMA
    | PHI
    | {
        L + "attention/q|k|v": M + "self_attn.query_key_value:groups",
        L + "ffn/up": M + "mlp.dense_h_to_4h",
        L + "ffn/down": M + "mlp.dense_4h_to_h",
    },
}
