"""Dense transformers."""

L, M = "layers/{}/", "model.layers.{}."
LLAMA = {
    "embedding/table": "model.embed_tokens",
    "final_norm": "model.norm",
    "head": "lm_head",
    L + "attention_norm": "model.layers.{}.input_layernorm",
    L + "attention/q": "model.layers.{}.self_attn.q_proj",
    L + "attention/k": "model.layers.{}.self_attn.k_proj",
    L + "attention/v": "model.layers.{}.self_attn.v_proj",
    L + "attention/out": "model.layers.{}.self_attn.o_proj",
    L + "attention/q_norm": "model.layers.{}.self_attn.q_norm",
    L + "attention/k_norm": "model.layers.{}.self_attn.k_norm",
    L + "ffn_norm": "model.layers.{}.post_attention_layernorm",
    L + "ffn/gate": "model.layers.{}.mlp.gate_proj",
    L + "ffn/up": "model.layers.{}.mlp.up_proj",
    L + "ffn/down": "model.layers.{}.mlp.down_proj",
}
GATE_UP = {L + "ffn/gate|up": "model.layers.{}.mlp.gate_up_proj"}
DOUBLE = {
    L + "attention_output_norm": "model.layers.{}.post_attention_layernorm",
    L + "ffn_norm": "model.layers.{}.pre_feedforward_layernorm",
    L + "ffn_output_norm": "model.layers.{}.post_feedforward_layernorm",
}
GPT2 = {
    "embedding/table": "transformer.wte",
    "positions/table": "transformer.wpe",
    "final_norm": "transformer.ln_f",
    "head": "lm_head",
    L + "attention_norm": "transformer.h.{}.ln_1",
    L + "attention/q|k|v": "transformer.h.{}.attn.c_attn",
    L + "attention/out": "transformer.h.{}.attn.c_proj",
    L + "ffn_norm": "transformer.h.{}.ln_2",
    L + "ffn/up": "transformer.h.{}.mlp.c_fc",
    L + "ffn/down": "transformer.h.{}.mlp.c_proj",
}
BLOOM = {
    "embedding/table": "transformer.word_embeddings",
    "embedding_norm": "transformer.word_embeddings_layernorm",
    "final_norm": "transformer.ln_f",
    "head": "lm_head",
    L + "attention_norm": "transformer.h.{}.input_layernorm",
    L + "attention/q|k|v": "transformer.h.{}.self_attention.query_key_value:groups",
    L + "attention/out": "transformer.h.{}.self_attention.dense",
    L + "ffn_norm": "transformer.h.{}.post_attention_layernorm",
    L + "ffn/up": "transformer.h.{}.mlp.dense_h_to_4h",
    L + "ffn/down": "transformer.h.{}.mlp.dense_4h_to_h",
}
FALCON_40B = {
    L + "attention_norm": "transformer.h.{}.ln_attn",
    L + "ffn_norm": "transformer.h.{}.ln_mlp",
}
T5_NORMS = {
    "encoder/" + L + "attention_norm": "encoder.block.{}.layer.0.layer_norm",
    "encoder/" + L + "ffn_norm": "encoder.block.{}.layer.1.layer_norm",
    L + "attention_norm": "decoder.block.{}.layer.0.layer_norm",
    L + "cross_attention_norm": "decoder.block.{}.layer.1.layer_norm",
    L + "ffn_norm": "decoder.block.{}.layer.2.layer_norm",
}
T5 = {
    "embedding/table": "shared",
    "head": "lm_head",
    "encoder/position_bias/table": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    "encoder/final_norm": "encoder.final_layer_norm",
    "position_bias/table": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    "final_norm": "decoder.final_layer_norm",
    **T5_NORMS,
    **{
        f"{ours}/{part}": f"{theirs}.{name}"
        for ours, theirs in (
            ("encoder/" + L + "attention", "encoder.block.{}.layer.0.SelfAttention"),
            (L + "attention", "decoder.block.{}.layer.0.SelfAttention"),
            (L + "cross_attention", "decoder.block.{}.layer.1.EncDecAttention"),
        )
        for part, name in (("q", "q"), ("k", "k"), ("v", "v"), ("out", "o"))
    },
    **{
        f"{ours}/{part}": f"{theirs}.DenseReluDense.{name}"
        for ours, theirs in (
            ("encoder/" + L + "ffn", "encoder.block.{}.layer.1"),
            (L + "ffn", "decoder.block.{}.layer.2"),
        )
        for part, name in (("gate", "wi_0"), ("up", "wi_1"), ("down", "wo"))
    },
}
T5_PLAIN = {"encoder/" + L + "ffn/up": "encoder.block.{}.layer.1.DenseReluDense.wi",
            L + "ffn/up": "decoder.block.{}.layer.2.DenseReluDense.wi"}  # fmt: skip
PHI = {
    "final_norm": "model.final_layernorm",
    L + "attention/out": "model.layers.{}.self_attn.dense",
    L + "attention/q_norm": "model.layers.{}.self_attn.q_layernorm",
    L + "attention/k_norm": "model.layers.{}.self_attn.k_layernorm",
    L + "ffn/up": "model.layers.{}.mlp.fc1",
    L + "ffn/down": "model.layers.{}.mlp.fc2",
}
DENSE = {
    "gpt2": GPT2,
    "openai-gpt": GPT2
    | {
        "embedding/table": "transformer.tokens_embed",
        "positions/table": "transformer.positions_embed",
        L + "attention_sum_norm": "transformer.h.{}.ln_1",
        L + "ffn_sum_norm": "transformer.h.{}.ln_2",
    },
    "opt": {
        "embedding/table": "model.decoder.embed_tokens",
        "embedding/project_in": "model.decoder.project_in",
        "positions/table": "model.decoder.embed_positions",
        "final_norm": "model.decoder.final_layer_norm",
        "head": "lm_head",
        "head/project_out": "model.decoder.project_out",
        L + "attention_norm": "model.decoder.layers.{}.self_attn_layer_norm",
        L + "attention_sum_norm": "model.decoder.layers.{}.self_attn_layer_norm",
        L + "attention/q": "model.decoder.layers.{}.self_attn.q_proj",
        L + "attention/k": "model.decoder.layers.{}.self_attn.k_proj",
        L + "attention/v": "model.decoder.layers.{}.self_attn.v_proj",
        L + "attention/out": "model.decoder.layers.{}.self_attn.out_proj",
        L + "ffn_norm": "model.decoder.layers.{}.final_layer_norm",
        L + "ffn_sum_norm": "model.decoder.layers.{}.final_layer_norm",
        L + "ffn/up": "model.decoder.layers.{}.fc1",
        L + "ffn/down": "model.decoder.layers.{}.fc2",
    },
    "gptj": GPT2
    | {
        L + "attention/q": "transformer.h.{}.attn.q_proj",
        L + "attention/k": "transformer.h.{}.attn.k_proj",
        L + "attention/v": "transformer.h.{}.attn.v_proj",
        L + "attention/out": "transformer.h.{}.attn.out_proj",
        L + "ffn/up": "transformer.h.{}.mlp.fc_in",
        L + "ffn/down": "transformer.h.{}.mlp.fc_out",
    },
    "gpt_neo": GPT2
    | {
        L + "attention/q": "transformer.h.{}.attn.attention.q_proj",
        L + "attention/k": "transformer.h.{}.attn.attention.k_proj",
        L + "attention/v": "transformer.h.{}.attn.attention.v_proj",
        L + "attention/out": "transformer.h.{}.attn.attention.out_proj",
    },
    "gpt_neox": {
        "embedding/table": "gpt_neox.embed_in",
        "final_norm": "gpt_neox.final_layer_norm",
        "head": "embed_out",
        L + "attention_norm": "gpt_neox.layers.{}.input_layernorm",
        L + "attention/q|k|v": "gpt_neox.layers.{}.attention.query_key_value:groups",
        L + "attention/out": "gpt_neox.layers.{}.attention.dense",
        L + "ffn_norm": "gpt_neox.layers.{}.post_attention_layernorm",
        L + "ffn/up": "gpt_neox.layers.{}.mlp.dense_h_to_4h",
        L + "ffn/down": "gpt_neox.layers.{}.mlp.dense_4h_to_h",
    },
    "bloom": BLOOM,
    "mpt": {
        "embedding/table": "transformer.wte",
        "final_norm": "transformer.norm_f",
        "head": "lm_head",
        L + "attention_norm": "transformer.blocks.{}.norm_1",
        L + "attention/q|k|v": "transformer.blocks.{}.attn.Wqkv",
        L + "attention/out": "transformer.blocks.{}.attn.out_proj",
        L + "ffn_norm": "transformer.blocks.{}.norm_2",
        L + "ffn/up": "transformer.blocks.{}.ffn.up_proj",
        L + "ffn/down": "transformer.blocks.{}.ffn.down_proj",
    },
    "falcon": BLOOM,
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "qwen3": LLAMA,
    "phi": LLAMA | PHI,
    "phi3": LLAMA | GATE_UP | {L + "attention/q|k|v": "model.layers.{}.self_attn.qkv_proj"},
    "gemma": LLAMA,
    "gemma2": LLAMA | DOUBLE,
    "gemma3_text": LLAMA | DOUBLE,
    "olmo": LLAMA,
    "olmo2": LLAMA | DOUBLE,
    "olmo3": LLAMA | DOUBLE,
    "cohere": LLAMA
    | {
        L + "attention/q_norm": "model.layers.{}.self_attn.q_norm:rows",
        L + "attention/k_norm": "model.layers.{}.self_attn.k_norm:rows",
    },
    "cohere2": LLAMA,
    "starcoder2": LLAMA | {L + "ffn/up": "model.layers.{}.mlp.c_fc", L + "ffn/down": "model.layers.{}.mlp.c_proj"},
    "stablelm": LLAMA
    | {
        L + "attention/q_norm": "model.layers.{}.self_attn.q_layernorm.norms.*",
        L + "attention/k_norm": "model.layers.{}.self_attn.k_layernorm.norms.*",
    },
    "nemotron": LLAMA,
    "granite": LLAMA,
    "smollm3": LLAMA,
    "glm": LLAMA | GATE_UP,
    "glm4": LLAMA
    | GATE_UP
    | {
        L + "attention_output_norm": "model.layers.{}.post_self_attn_layernorm",
        L + "ffn_output_norm": "model.layers.{}.post_mlp_layernorm",
    },
    "t5": T5,
    "mt5": T5,
    "bert": {
        "embedding/table": "bert.embeddings.word_embeddings",
        "positions/table": "bert.embeddings.position_embeddings",
        "token_types/table": "bert.embeddings.token_type_embeddings",
        "embedding_norm": "bert.embeddings.LayerNorm",
        "head": "cls.predictions.decoder",
        "head/bias": "=cls.predictions.bias",
        "head/transform": "cls.predictions.transform.dense",
        "head/transform/norm": "cls.predictions.transform.LayerNorm",
        L + "attention/q": "bert.encoder.layer.{}.attention.self.query",
        L + "attention/k": "bert.encoder.layer.{}.attention.self.key",
        L + "attention/v": "bert.encoder.layer.{}.attention.self.value",
        L + "attention/out": "bert.encoder.layer.{}.attention.output.dense",
        L + "attention_sum_norm": "bert.encoder.layer.{}.attention.output.LayerNorm",
        L + "ffn/up": "bert.encoder.layer.{}.intermediate.dense",
        L + "ffn/down": "bert.encoder.layer.{}.output.dense",
        L + "ffn_sum_norm": "bert.encoder.layer.{}.output.LayerNorm",
    },
    "seed_oss": LLAMA,
    "exaone4": LLAMA | DOUBLE,
    "ernie4_5": LLAMA,
    "helium": LLAMA,
    "arcee": LLAMA,
    "apertus": LLAMA
    | {
        L + "attention_norm": "model.layers.{}.attention_layernorm",
        L + "ffn_norm": "model.layers.{}.feedforward_layernorm",
        L + "ffn/alpha_p": "=model.layers.{}.mlp.act_fn.alpha_p",
        L + "ffn/alpha_n": "=model.layers.{}.mlp.act_fn.alpha_n",
    },
}
