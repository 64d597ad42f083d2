"""The tiny models that record_logits.py records: plain data.

MODELS      name: (model_type, fields of its config)
WORKLOADS   where the usual workload (WORKLOAD) does not show what a model does
SEEDS       another draw of a model's values, where the first routes some token by a near tie
"""

SEQ2SEQ = {"t5", "mt5", "switch_transformers", "bart", "mbart", "plbart", "mvp", "pegasus", "bigbird_pegasus", "marian",
           "blenderbot", "blenderbot-small", "m2m_100", "nllb-moe", "fsmt", "umt5", "t5gemma"}  # fmt: skip
UNTIED = {"t5", "mt5", "umt5"}  # whose classes tie the head always, while files have one of its own
MASKED = {"bert"} | set(
    """
    albert big_bird camembert data2vec-text deberta deberta-v2 distilbert electra ernie esm esmc eurobert flaubert gte
    jina_embeddings_v3 megatron-bert mobilebert modernbert mpnet nomic_bert rembert roberta roberta-prelayernorm
    roc_bert roformer squeezebert tapas xlm xlm-roberta xlm-roberta-xl xmod
    """.split()
)
DOUBLE = {"xglm"}  # whose classes make constants of the default type, which has to be float64 for a run in float64
CLASSES = {  # of which AutoModelForCausalLM does not know
    "emu3_text_model": "Emu3ForCausalLM",
    "mistral4": "Mistral4ForCausalLM",
}

TOKENS = {"vocab_size": 53, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}
HALF_ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}}
HEADS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
SIZES = {"hidden_size": 24, "intermediate_size": 28, "max_position_embeddings": 64}
WIDE_HEAD = {"head_dim": 8}  # 4 heads of 8 on a width of 24
LLAMA = {**TOKENS, **HEADS, **SIZES, **ROPE}
GPT2 = {**TOKENS, "n_embd": 24, "n_head": 4, "n_layer": 2, "n_positions": 32}
SMALLER = {"vocab_size": 37, "hidden_size": 16, "intermediate_size": 20}
SMALL = {**LLAMA, **SMALLER}
SMALL_GPT2 = {**GPT2, "vocab_size": 37, "n_embd": 16}
GPT_NEOX = {
    **TOKENS,
    **HALF_ROPE,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
OPT = {
    **TOKENS,
    "hidden_size": 24,
    "ffn_dim": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "pad_token_id": 1,
}
FALCON = {**TOKENS, **ROPE, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
PHI = {**LLAMA, **HALF_ROPE, "hidden_size": 32}
GEMMA = {**LLAMA, **WIDE_HEAD}
GEMMA2 = {
    **GEMMA,
    "query_pre_attn_scalar": 6,
    "attn_logit_softcapping": 3.0,
    "final_logit_softcapping": 8.0,
    "num_hidden_layers": 3,
}
GEMMA3 = {
    **{k: v for k, v in GEMMA.items() if k != "rope_parameters"},
    "query_pre_attn_scalar": 6,
    "num_hidden_layers": 3,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
        "full_attention": {"rope_type": "linear", "rope_theta": 400.0, "factor": 4.0},
    },
}
COHERE = {**LLAMA, "logit_scale": 0.25}
STABLELM = {**LLAMA, **HALF_ROPE, "hidden_size": 32, "use_qkv_bias": True}
PHI3_LONGROPE = {
    **LLAMA,
    "hidden_size": 32,
    "max_position_embeddings": 40,
    "rope_parameters": {
        "rope_type": "longrope",
        "rope_theta": 100.0,
        "partial_rotary_factor": 0.75,
        "short_factor": [1.0, 1.1, 1.3],
        "long_factor": [1.5, 2.5, 4.0],
    },
}
T5 = {
    "vocab_size": 53,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 28,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
}


def rope(kind, theta=100.0, **fields):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **fields}}


# Windows, latent attention, state spaces, mixtures of experts
TINY = {**LLAMA, "vocab_size": 40}
TINY_TYPED = {k: v for k, v in TINY.items() if k != "rope_parameters"}
TINY_STATE = {**TOKENS, "vocab_size": 40, "hidden_size": 20, "num_hidden_layers": 2}
EXPERTS = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 9, "intermediate_size": 20}
LOCAL_EXPERTS = {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 10}
ROUTED_EXPERTS = {
    "n_routed_experts": 5,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 9,
    "intermediate_size": 20,
    "routed_scaling_factor": 1.5,
    "n_group": 1,
    "topk_group": 1,
    "norm_topk_prob": True,
    "first_k_dense_replace": 1,
}
LATENT = {
    "num_key_value_heads": 4,
    "q_lora_rank": 10,
    "kv_lora_rank": 8,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 5,
}
YARN = {"factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1}
DELTA = {
    "linear_conv_kernel_dim": 3,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 4,
    "linear_value_head_dim": 5,
}
SSD = {
    "mamba_n_heads": 4,
    "mamba_d_head": 12,
    "mamba_n_groups": 2,
    "mamba_d_state": 5,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 4,
}
GRANITE_SCALES = {
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.4,
    "attention_multiplier": 0.3,
    "logits_scaling": 2.5,
}
SLIDING_FULL = {
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
        "full_attention": {"rope_type": "default", "rope_theta": 400.0},
    }
}
GEMMA4 = {
    **TINY_TYPED,
    "hidden_size": 16,
    "intermediate_size": 20,
    "head_dim": 6,
    "global_head_dim": 8,
    "sliding_window": 4,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
        "full_attention": {"rope_type": "proportional", "rope_theta": 400.0, "partial_rotary_factor": 0.5},
    },
}
LLAMA4 = {
    **TINY,
    "head_dim": 6,
    "intermediate_size": 10,
    "intermediate_size_mlp": 20,
    "num_local_experts": 4,
    "attention_chunk_size": 4,
    "no_rope_layer_interval": 2,
    "floor_scale": 4,
    "attn_scale": 0.3,
}
MAMBA2 = {
    **TINY_STATE,
    "num_heads": 4,
    "head_dim": 10,
    "n_groups": 2,
    "state_size": 6,
    "chunk_size": 4,
    "tie_word_embeddings": False,
}
FALCON_H1 = {
    **TINY,
    **SSD,
    "mamba_d_ssm": 32,
    "mamba_d_head": 8,
    "lm_head_multiplier": 0.7,
    "embedding_multiplier": 2.5,
    "mlp_multipliers": [0.8, 0.6],
    "key_multiplier": 0.5,
    "attention_out_multiplier": 0.9,
    "attention_in_multiplier": 1.2,
    "ssm_multipliers": [0.9, 0.8, 0.7, 1.1, 1.2],
    "ssm_in_multiplier": 1.3,
    "ssm_out_multiplier": 0.75,
}
ZAMBA2 = {
    **TINY,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_key_value_heads": 4,
    "n_mamba_heads": 4,
    "mamba_ngroups": 2,
    "mamba_d_state": 5,
    "chunk_size": 4,
    "num_hidden_layers": 5,
    "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid", "hybrid"],
}
NEMOTRON_H = {
    **{k: v for k, v in TINY.items() if k not in ("rope_parameters", "num_hidden_layers")},
    **ROUTED_EXPERTS,
    "head_dim": 8,
    "mamba_num_heads": 4,
    "mamba_head_dim": 6,
    "ssm_state_size": 5,
    "n_groups": 2,
    "chunk_size": 4,
    "moe_shared_expert_intermediate_size": 11,
}
LFM2 = {**TINY, "conv_L_cache": 3, "layer_types": ["conv", "full_attention", "conv"], "num_hidden_layers": 3}
SPARSE_INDEX = {"index_topk": 5, "index_head_dim": 6, "index_n_heads": 4}
BART = {
    "vocab_size": 37,
    "d_model": 12,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 14,
    "decoder_ffn_dim": 10,
    "max_position_embeddings": 16,
    "scale_embedding": True,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
FSMT = {**{key: value for key, value in BART.items() if key != "vocab_size"}, "src_vocab_size": 41,
        "tgt_vocab_size": 37, "pad_token_id": 0, "max_length": 20}  # fmt: skip
UMT5 = {**T5, "vocab_size": 37, "d_model": 12, "d_ff": 10, "num_layers": 1, "num_decoder_layers": 2}
T5GEMMA = {
    "vocab_size": 37,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "max_position_embeddings": 32,
    "query_pre_attn_scalar": 5,
    "attn_logit_softcapping": 3.0,
    "final_logit_softcapping": 8.0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
}
SWITCH = {
    **T5,
    "vocab_size": 40,
    "num_decoder_layers": 2,
    "d_ff": 12,
    "num_experts": 4,
    "num_sparse_encoder_layers": 1,
    "num_sparse_decoder_layers": 1,
}

TINY_EXPERTS = {
    **{k: v for k, v in TINY.items() if k != "intermediate_size"},
    **{k: v for k, v in ROUTED_EXPERTS.items() if k not in ("intermediate_size", "first_k_dense_replace")},
}
COHERE2_MOE = {
    **TINY_TYPED,
    "rope_theta": 100.0,
    "head_dim": 8,
    "num_hidden_layers": 3,
    "intermediate_size": 10,
    "num_experts": 5,
    "num_experts_per_tok": 2,
    "logit_scale": 0.25,
    "sliding_window": 4,
}

# name: (model_type, fields of its config)
MODELS = {
    "gpt2": ("gpt2", {**GPT2, "n_inner": 40}),
    "gpt2-layer-scale": ("gpt2", {**GPT2, "scale_attn_by_inverse_layer_idx": True}),
    "openai-gpt": ("openai-gpt", {**GPT2}),
    "opt": ("opt", {**OPT}),
    "opt-post-norm": ("opt", {**OPT, "do_layer_norm_before": False, "word_embed_proj_dim": 16}),
    "gptj": ("gptj", {**GPT2, "rotary_dim": 4, "n_inner": 40}),
    "gpt_neo": (
        "gpt_neo",
        {
            **TOKENS,
            "hidden_size": 24,
            "num_layers": 3,
            "num_heads": 4,
            "intermediate_size": 40,
            "attention_types": [[["global", "local", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 32,
        },
    ),
    "gpt_neox": ("gpt_neox", {**GPT_NEOX}),
    "gpt_neox-serial": ("gpt_neox", {**GPT_NEOX, "use_parallel_residual": False}),
    "bloom": ("bloom", {**TOKENS, "hidden_size": 24, "n_layer": 2, "n_head": 6}),
    "mpt": (
        "mpt",
        {
            **TOKENS,
            "d_model": 24,
            "n_heads": 6,
            "n_layers": 2,
            "max_seq_len": 32,
            "attn_config": {"clip_qkv": 1.0, "softmax_scale": 0.4, "alibi_bias_max": 8},
        },
    ),
    "falcon-7b": ("falcon", {**FALCON, "multi_query": True, "parallel_attn": True}),
    "falcon-40b": ("falcon", {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2}),
    "falcon-11b": (
        "falcon",
        {
            **FALCON,
            "new_decoder_architecture": True,
            "num_kv_heads": 2,
            "num_ln_in_parallel_attn": 1,
            "ffn_hidden_size": 40,
            "tie_word_embeddings": False,
        },
    ),
    "falcon-rw": (
        "falcon",
        {**FALCON, "multi_query": False, "parallel_attn": False, "alibi": True, "bias": True},
    ),
    "llama": ("llama", {**LLAMA, **WIDE_HEAD}),
    "llama-tied": ("llama", {**LLAMA, "tie_word_embeddings": True, "num_key_value_heads": 1}),
    "llama-biases": ("llama", {**LLAMA, "attention_bias": True, "mlp_bias": True}),
    "llama-llama3": (
        "llama",
        {
            **LLAMA,
            **WIDE_HEAD,
            **rope(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            ),
            "max_position_embeddings": 512,
        },
    ),
    "llama-linear": ("llama", {**LLAMA, **rope("linear", factor=2.5)}),
    "llama-dynamic": (
        "llama",
        {**LLAMA, **WIDE_HEAD, **rope("dynamic", factor=2.0), "max_position_embeddings": 8},
    ),
    "llama-yarn": (
        "llama",
        {
            **LLAMA,
            **WIDE_HEAD,
            **rope("yarn", factor=4.0, original_max_position_embeddings=64),
            "max_position_embeddings": 256,
        },
    ),
    "llama-yarn-options": (
        "llama",
        {
            **LLAMA,
            **WIDE_HEAD,
            **rope(
                "yarn",
                factor=4.0,
                original_max_position_embeddings=64,
                beta_fast=8.0,
                beta_slow=0.5,
                mscale=1.2,
                mscale_all_dim=0.7,
                truncate=False,
            ),
            "max_position_embeddings": 256,
        },
    ),
    "mistral": ("mistral", {**LLAMA, **WIDE_HEAD, "sliding_window": None}),
    "mistral-window": ("mistral", {**LLAMA, "sliding_window": 4}),
    "qwen2": ("qwen2", {**LLAMA}),
    "qwen2-window": (
        "qwen2",
        {
            **LLAMA,
            "use_sliding_window": True,
            "sliding_window": 4,
            "max_window_layers": 1,
            "tie_word_embeddings": True,
        },
    ),
    "qwen3": ("qwen3", {**LLAMA, **WIDE_HEAD}),
    "phi": ("phi", {**PHI}),
    "phi-qk-norm": ("phi", {**PHI, "qk_layernorm": True}),
    "phi3": ("phi3", {**LLAMA, "sliding_window": None}),
    "phi3-window": ("phi3", {**LLAMA, "sliding_window": 4}),
    "phi3-longrope-short": ("phi3", {**PHI3_LONGROPE, "original_max_position_embeddings": 16}),
    "phi3-longrope-long": ("phi3", {**PHI3_LONGROPE, "original_max_position_embeddings": 8}),
    "gemma": ("gemma", {**GEMMA}),
    "gemma2": ("gemma2", {**GEMMA2, "sliding_window": 32}),
    "gemma2-window": ("gemma2", {**GEMMA2, "sliding_window": 4}),
    "gemma3": ("gemma3_text", {**GEMMA3, "sliding_window": 32}),
    "gemma3-window": ("gemma3_text", {**GEMMA3, "sliding_window": 4, "final_logit_softcapping": 8.0}),
    "olmo": ("olmo", {**LLAMA, "clip_qkv": 1.0}),
    "olmo2": ("olmo2", {**LLAMA}),
    "olmo3": (
        "olmo3",
        {
            **LLAMA,
            "num_hidden_layers": 4,
            "sliding_window": 4,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                "full_attention": {
                    "rope_type": "yarn",
                    "rope_theta": 100.0,
                    "factor": 4.0,
                    "original_max_position_embeddings": 64,
                },
            },
        },
    ),
    "cohere": ("cohere", {**COHERE}),
    "cohere-qk-norm": ("cohere", {**COHERE, "use_qk_norm": True}),
    "cohere2": ("cohere2", {**COHERE, "num_hidden_layers": 4, "sliding_window": 4}),
    "starcoder2": ("starcoder2", {**LLAMA, "sliding_window": None}),
    "starcoder2-window": ("starcoder2", {**LLAMA, "sliding_window": 4, "tie_word_embeddings": False}),
    "stablelm": ("stablelm", {**STABLELM, "qk_layernorm": True, "use_parallel_residual": True}),
    "stablelm-serial": ("stablelm", {**STABLELM}),
    "nemotron": ("nemotron", {**LLAMA, **HALF_ROPE, **WIDE_HEAD, "attention_bias": True, "mlp_bias": True}),
    "granite": (
        "granite",
        {
            **LLAMA,
            "embedding_multiplier": 3.0,
            "residual_multiplier": 0.4,
            "attention_multiplier": 0.3,
            "logits_scaling": 2.5,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
        },
    ),
    "smollm3": ("smollm3", {**LLAMA, "num_hidden_layers": 4, "no_rope_layer_interval": 2}),
    "glm": ("glm", {**LLAMA, **HALF_ROPE, **WIDE_HEAD}),
    "glm4": ("glm4", {**LLAMA, **HALF_ROPE, **WIDE_HEAD}),
    "t5": ("t5", {**T5}),
    "t5-v1.1": ("t5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "mt5": ("mt5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "bert": (
        "bert",
        {
            **TOKENS,
            "hidden_size": 24,
            "intermediate_size": 40,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 32,
        },
    ),
    "seed_oss": ("seed_oss", {**LLAMA, **WIDE_HEAD}),
    "seed_oss-biases": ("seed_oss", {**LLAMA, **WIDE_HEAD, "attention_out_bias": True, "mlp_bias": True}),
    "exaone4": (
        "exaone4",
        {**LLAMA, "num_hidden_layers": 4, "sliding_window": 4, "sliding_window_pattern": 4},
    ),
    "exaone4-full": ("exaone4", {**LLAMA, "sliding_window": None, "layer_types": ["full_attention"] * 2}),
    "ernie4_5": ("ernie4_5", {**LLAMA, **WIDE_HEAD, "use_bias": True}),
    "helium": ("helium", {**LLAMA, "head_dim": 6, "attention_bias": True, "mlp_bias": True}),
    "arcee": ("arcee", {**LLAMA, "attention_bias": True, "mlp_bias": True}),
    "gpt_bigcode": ("gpt_bigcode", {**SMALL_GPT2, "n_inner": 40}),
    "gpt_bigcode-mha": ("gpt_bigcode", {**SMALL_GPT2, "multi_query": False, "scale_attn_weights": False}),
    "codegen": ("codegen", {**SMALL_GPT2, "n_embd": 12, "n_head": 3, "rotary_dim": 2, "n_inner": 40}),
    "ctrl": ("ctrl", {**SMALL_GPT2, "dff": 40}),
    "xglm": (
        "xglm",
        {
            **TOKENS,
            "vocab_size": 37,
            "pad_token_id": 1,
            "d_model": 16,
            "ffn_dim": 28,
            "num_layers": 2,
            "attention_heads": 4,
            "max_position_embeddings": 32,
        },
    ),
    "biogpt": (
        "biogpt",
        {
            **TOKENS,
            "vocab_size": 37,
            "pad_token_id": 1,
            "hidden_size": 16,
            "intermediate_size": 28,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 32,
            "layer_norm_eps": 0.1,
        },
    ),
    "gpt_neox_japanese": (
        "gpt_neox_japanese",
        {
            **TOKENS,
            "vocab_size": 37,
            **HALF_ROPE,
            "hidden_size": 16,
            "intermediate_multiple_size": 2,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "max_position_embeddings": 64,
        },
    ),
    "persimmon": (
        "persimmon",
        {
            **TOKENS,
            "vocab_size": 37,
            **HALF_ROPE,
            "hidden_size": 16,
            "intermediate_size": 28,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "max_position_embeddings": 64,
        },
    ),
    "cwm": (
        "cwm",
        {
            **SMALL,
            **WIDE_HEAD,
            **rope(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            ),
            "layer_types": ["sliding_attention", "full_attention"],
            "sliding_window": 4,
            "mlp_bias": True,
        },
    ),
    "ministral": (
        "ministral",
        {**SMALL, **WIDE_HEAD, "layer_types": ["full_attention", "sliding_attention"], "sliding_window": 4},
    ),
    "ministral3": (
        "ministral3",
        {
            **SMALL,
            **WIDE_HEAD,
            **rope(
                "yarn",
                factor=4.0,
                original_max_position_embeddings=3,
                mscale=0.7,
                mscale_all_dim=1.0,
                llama_4_scaling_beta=0.6,
            ),
            "sliding_window": 6,
        },
    ),
    "hunyuan_v1_dense": (
        "hunyuan_v1_dense",
        {**SMALL, **WIDE_HEAD, **rope("dynamic", alpha=4.0, factor=1.0), "attention_bias": True},
    ),
    "jais2": ("jais2", {**SMALL, **WIDE_HEAD}),
    "nanochat": ("nanochat", {**SMALL, "final_logit_softcapping": 4.0, "attention_bias": True}),
    "vaultgemma": (
        "vaultgemma",
        {
            **GEMMA2,
            **SMALLER,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
            "sliding_window": 4,
        },
    ),
    "bitnet": ("bitnet", {**SMALL, "attention_bias": True}),
    "exaone": ("exaone", {**SMALL, **WIDE_HEAD}),
    "internlm3": ("internlm3", {**SMALL, **WIDE_HEAD, "attention_bias": True, "mlp_bias": True}),
    "iquestcoder": ("iquestcoder", {**SMALL, **WIDE_HEAD}),
    "emu3_text_model": ("emu3_text_model", {**SMALL}),
    "granite_swa": (
        "granite_swa",
        {
            **SMALL,
            **GRANITE_SCALES,
            "num_hidden_layers": 3,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
            "sliding_window": 4,
            "layer_rope_theta": [0, 50.0, 100.0],
            "mlp_bias": True,
        },
    ),
    "hyperclovax": ("hyperclovax", {**SMALL, **WIDE_HEAD, **GRANITE_SCALES, "attention_bias": True}),
    "apertus1p5_text": ("apertus1p5_text", {**SMALL, "output_vocab_size": 29}),
    "cohere_compass_text": (
        "cohere_compass_text",
        {
            **{k: v for k, v in SMALL.items() if k != "rope_parameters"},
            "num_hidden_layers": 3,
            "logit_scale": 0.25,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
            "sliding_window": 4,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 50.0, "mrope_section": [1, 1, 1]},
                "full_attention": None,
            },
        },
    ),
    "apertus": (
        "apertus",
        {
            **LLAMA,
            **rope(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            ),
        },
    ),
    # Windows, chunks, sinks, shared keys
    "gemma3n": (
        "gemma3n_text",
        {
            **TINY_TYPED,
            **SLIDING_FULL,
            "hidden_size": 16,
            "head_dim": 6,
            "num_hidden_layers": 5,
            "layer_types": ["sliding_attention"] * 2 + ["full_attention", "sliding_attention", "full_attention"],
            "num_kv_shared_layers": 2,
            "sliding_window": 4,
            "intermediate_size": [18, 20, 18, 20, 22],
            "activation_sparsity_pattern": [0.5, 0.0, 0.7, 0.0, 0.0],
            "hidden_size_per_layer_input": 5,
            "vocab_size_per_layer_input": 38,
            "altup_num_inputs": 3,
            "laurel_rank": 3,
            "final_logit_softcapping": 8.0,
        },
    ),
    "gemma4": (
        "gemma4_text",
        {
            **GEMMA4,
            "num_hidden_layers": 5,
            "layer_types": ["sliding_attention"] * 2 + ["full_attention", "sliding_attention", "full_attention"],
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "hidden_size_per_layer_input": 5,
            "vocab_size_per_layer_input": 40,
            "final_logit_softcapping": 8.0,
        },
    ),
    "gemma4-moe": (
        "gemma4_text",
        {
            **GEMMA4,
            "num_hidden_layers": 3,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 1,
            "hidden_size_per_layer_input": 0,
            "enable_moe_block": True,
            "num_experts": 5,
            "top_k_experts": 2,
            "moe_intermediate_size": 9,
        },
    ),
    "gpt_oss": (
        "gpt_oss",
        {
            **TINY,
            **LOCAL_EXPERTS,
            **rope("yarn", **YARN, truncate=False),
            "head_dim": 8,
            "sliding_window": 4,
            "swiglu_limit": 1.0,
        },
    ),
    "llama4": (
        "llama4_text",
        {**LLAMA4, "num_hidden_layers": 4, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2},
    ),
    "llama4-top2": (
        "llama4_text",
        {
            **LLAMA4,
            "num_experts_per_tok": 2,
            "use_qk_norm": False,
            "attention_bias": True,
            "attn_temperature_tuning": False,
        },
    ),
    "diffllama": ("diffllama", {**TINY, "attention_bias": True}),
    "mimo_v2_flash": (
        "mimo_v2_flash",
        {
            **TINY_TYPED,
            **ROUTED_EXPERTS,
            "num_key_value_heads": 1,
            "num_hidden_layers": 3,
            "head_dim": 8,
            "v_head_dim": 6,
            "sliding_window": 4,
            "attention_bias": True,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
            "mlp_layer_types": ["dense", "sparse", "sparse"],
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 0.5},
                "full_attention": {"rope_type": "default", "rope_theta": 400.0, "partial_rotary_factor": 0.5},
            },
        },
    ),
    # Mixtures of experts
    "mixtral": ("mixtral", {**TINY, **LOCAL_EXPERTS}),
    "qwen2_moe": (
        "qwen2_moe",
        {
            **TINY,
            **EXPERTS,
            "num_hidden_layers": 4,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [3],
            "shared_expert_intermediate_size": 11,
        },
    ),
    "qwen2_moe-norm-window": (
        "qwen2_moe",
        {
            **TINY,
            **EXPERTS,
            "norm_topk_prob": True,
            "qkv_bias": False,
            "shared_expert_intermediate_size": 11,
            "use_sliding_window": True,
            "sliding_window": 4,
            "max_window_layers": 2,
        },
    ),
    "qwen3_moe": ("qwen3_moe", {**TINY, **EXPERTS, "head_dim": 8, "mlp_only_layers": [0]}),
    "qwen3_moe-norm": ("qwen3_moe", {**TINY, **EXPERTS, "norm_topk_prob": True}),
    "olmoe": ("olmoe", {**TINY, **EXPERTS, "intermediate_size": 10, "clip_qkv": 1.0}),
    "flex_olmo": ("flex_olmo", {**TINY, **EXPERTS, "intermediate_size": 10, "norm_topk_prob": True}),
    "phimoe": (
        "phimoe",
        {**TINY, **LOCAL_EXPERTS, "attention_bias": True, "lm_head_bias": True, "router_jitter_noise": 0.2},
    ),
    "phimoe-longrope": (
        "phimoe",
        {
            **TINY,
            **LOCAL_EXPERTS,
            "router_jitter_noise": 0.2,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 100.0,
                "short_factor": [1.0, 1.1, 1.3],
                "long_factor": [1.5, 2.5, 4.0],
                "short_mscale": 1.1,
                "long_mscale": 1.3,
                "original_max_position_embeddings": 32,
            },
        },
    ),
    "granitemoe": ("granitemoe", {**TINY, **LOCAL_EXPERTS, **GRANITE_SCALES}),
    "granitemoeshared": (
        "granitemoeshared",
        {**TINY, **LOCAL_EXPERTS, **GRANITE_SCALES, "shared_intermediate_size": 12, "tie_word_embeddings": True},
    ),
    "jetmoe": (
        "jetmoe",
        {**TINY, "kv_channels": 6, "intermediate_size": 10, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "dbrx": (
        "dbrx",
        {
            **TOKENS,
            **ROPE,
            "vocab_size": 40,
            "d_model": 24,
            "n_heads": 4,
            "n_layers": 2,
            "max_seq_len": 64,
            "attn_config": {"clip_qkv": 1.0, "kv_n_heads": 2, "rope_theta": 100.0},
            "ffn_config": {"ffn_hidden_size": 9, "moe_num_experts": 5, "moe_top_k": 2},
        },
    ),
    "glm4_moe": (
        "glm4_moe",
        {**TINY, **HALF_ROPE, **ROUTED_EXPERTS, "head_dim": 8, "use_qk_norm": True, "attention_bias": True},
    ),
    "dots1": (
        "dots1",
        {**TINY, **ROUTED_EXPERTS, "num_hidden_layers": 3, "sliding_window": 4, "max_window_layers": 1},
    ),
    "hunyuan_v1_moe": (
        "hunyuan_v1_moe",
        {
            **TINY,
            **rope("dynamic", alpha=4.0, factor=1.0),
            "head_dim": 8,
            "num_experts": 5,
            "moe_topk": 2,
            "intermediate_size": 10,
        },
    ),
    "ernie4_5_moe": (
        "ernie4_5_moe",
        {
            **TINY,
            "num_hidden_layers": 3,
            "moe_num_experts": 5,
            "moe_k": 2,
            "moe_num_shared_experts": 2,
            "moe_intermediate_size": 9,
            "intermediate_size": 20,
            "moe_layer_interval": 2,
            "use_bias": True,
            "tie_word_embeddings": False,
        },
    ),
    "granitemoe_swa": (
        "granitemoe_swa",
        {
            **TINY,
            **LOCAL_EXPERTS,
            **GRANITE_SCALES,
            "num_hidden_layers": 3,
            "shared_intermediate_size": 12,
            "sliding_window": 4,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
            "layer_rope_theta": [0, 50.0, 100.0],
            "attention_bias": True,
        },
    ),
    "aria_text": (
        "aria_text",
        {
            **TINY,
            "intermediate_size": 10,
            "moe_num_experts": 5,
            "moe_topk": 2,
            "moe_num_shared_experts": 2,
            "attention_bias": True,
            "mlp_bias": True,
        },
    ),
    "cohere2_moe": (
        "cohere2_moe",
        {
            **COHERE2_MOE,
            "num_shared_experts": 2,
            "layer_types": ["full_attention", "sliding_attention", "full_attention"],
            "mlp_layer_types": ["dense", "sparse", "sparse"],
            "prefix_dense_intermediate_size": 20,
            "attention_bias": True,
        },
    ),
    "cohere2_moe-sigmoid": (
        "cohere2_moe",
        {
            **COHERE2_MOE,
            "expert_selection_fn": "sigmoid",
            "num_shared_experts": 1,
            "shared_expert_combination_strategy": "sum",
            "rms_norm_eps": 1e-6,
            "sliding_window_pattern": 2,
        },
    ),
    "solar_open": (
        "solar_open",
        {**TINY_EXPERTS, "n_routed_experts": 6, "n_group": 3, "topk_group": 2, "head_dim": 8, "attention_bias": True},
    ),
    "exaone_moe": (
        "exaone_moe",
        {
            **TINY,
            **{k: v for k, v in ROUTED_EXPERTS.items() if not k.startswith("n_")},
            "num_experts": 6,
            "num_shared_experts": 2,
            "n_group": 3,
            "topk_group": 2,
            "num_hidden_layers": 3,
            "sliding_window": 4,
            "sliding_window_pattern": 2,
        },
    ),
    "afmoe": (
        "afmoe",
        {
            **TINY,
            **EXPERTS,
            "head_dim": 8,
            "num_hidden_layers": 3,
            "num_dense_layers": 1,
            "num_shared_experts": 2,
            "route_scale": 1.5,
            "global_attn_every_n_layers": 2,
            "sliding_window": 4,
            "mup_enabled": True,
            "attention_bias": True,
        },
    ),
    "hy_v3": (
        "hy_v3",
        {
            **TINY,
            **EXPERTS,
            "head_dim": 8,
            "num_shared_experts": 2,
            "router_scaling_factor": 1.5,
            "attention_bias": True,
            "mlp_bias": True,
        },
    ),
    "sarvam_moe": (
        "sarvam_moe",
        {**TINY, **ROUTED_EXPERTS, "head_dim": 8, "n_routed_experts": 6, "n_group": 3, "topk_group": 2},
    ),
    "flint": (
        "flint",
        {
            **TINY,
            **EXPERTS,
            "head_dim": 8,
            "num_hidden_layers": 4,
            "mlp_only_layers": [0],
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
            "sliding_window": 4,
            "shared_expert_intermediate_size": 11,
            "attention_bias": True,
        },
    ),
    "kolibri1": (
        "kolibri1",
        {
            **TINY_EXPERTS,
            "head_dim": 8,
            "num_experts": 5,
            "layer_types": ["full_attention", "sliding_attention"],
            "sliding_window": 4,
            "shared_expert_intermediate_size": 11,
            "norm_topk_prob": True,
        },
    ),
    "minimax_m2": ("minimax_m2", {**TINY, **HALF_ROPE, **LOCAL_EXPERTS, "head_dim": 8}),
    "switch_transformers": ("switch_transformers", {**SWITCH}),
    "switch_transformers-capacity": ("switch_transformers", {**SWITCH, "expert_capacity": 3}),
    # Encoder-decoders
    "bart": ("bart", {**BART, "scale_embedding": False}),
    "bart-untied": ("bart", {**BART, "tie_word_embeddings": False}),
    "mbart": ("mbart", {**BART, "activation_function": "relu"}),
    "plbart": ("plbart", {**BART, "encoder_attention_heads": 3, "encoder_ffn_dim": 10}),
    "mvp": ("mvp", {**BART}),
    "pegasus": ("pegasus", {**BART, "activation_function": "gelu_new"}),
    "bigbird_pegasus": ("bigbird_pegasus", {**BART, "attention_type": "original_full"}),
    "bigbird_pegasus-biases": ("bigbird_pegasus", {**BART, "attention_type": "original_full", "use_bias": True}),
    "marian": ("marian", {**BART, "activation_function": "swish"}),
    "marian-apart": ("marian", {**BART, "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 41}),
    "blenderbot": ("blenderbot", {**BART}),
    "blenderbot-small": ("blenderbot-small", {**BART}),
    "m2m_100": ("m2m_100", {**BART}),
    "nllb-moe": (
        "nllb-moe",
        {**BART, "num_experts": 3, "encoder_sparse_step": 1, "decoder_sparse_step": 2, "router_bias": True},
    ),
    "fsmt": ("fsmt", {**FSMT}),
    "fsmt-tied": ("fsmt", {**FSMT, "src_vocab_size": 37, "tie_word_embeddings": True}),
    "umt5": ("umt5", {**UMT5, "feed_forward_proj": "gated-gelu"}),
    "umt5-untied": ("umt5", {**UMT5, "feed_forward_proj": "relu", "tie_word_embeddings": False}),
    "t5gemma": (
        "t5gemma",
        {
            "encoder": {
                **T5GEMMA,
                "hidden_size": 16,
                "num_attention_heads": 2,
                "intermediate_size": 14,
                "layer_types": ["full_attention", "sliding_attention"],
                "sliding_window": 2,
            },
            "decoder": {
                **T5GEMMA,
                "hidden_size": 12,
                "num_attention_heads": 4,
                "intermediate_size": 10,
                "layer_types": ["sliding_attention", "full_attention"],
                "sliding_window": 5,
            },
            "vocab_size": 37,
        },
    ),
    # Latent attention
    "deepseek_v2": ("deepseek_v2", {**TINY, **LATENT, **ROUTED_EXPERTS, "q_lora_rank": None, "n_shared_experts": 2}),
    "deepseek_v2-groups": (
        "deepseek_v2",
        {
            **TINY,
            **LATENT,
            **ROUTED_EXPERTS,
            **rope("yarn", **YARN, mscale=0.7, mscale_all_dim=0.7),
            "topk_method": "group_limited_greedy",
            "n_routed_experts": 6,
            "n_group": 3,
            "topk_group": 2,
            "max_position_embeddings": 256,
        },
    ),
    "deepseek_v3": (
        "deepseek_v3",
        {
            **TINY,
            **LATENT,
            **ROUTED_EXPERTS,
            **rope("yarn", **YARN, mscale=1.0, mscale_all_dim=1.0),
            "n_routed_experts": 8,
            "num_experts_per_tok": 3,
            "n_group": 4,
            "topk_group": 2,
            "max_position_embeddings": 256,
        },
    ),
    "deepseek_v3-plain": (
        "deepseek_v3",
        {
            **TINY,
            **LATENT,
            **ROUTED_EXPERTS,
            "q_lora_rank": None,
            "rope_interleave": False,
            "norm_topk_prob": False,
            "attention_bias": True,
        },
    ),
    "deepseek_v32": ("deepseek_v32", {**TINY, **LATENT, **ROUTED_EXPERTS, **SPARSE_INDEX}),
    "glm_moe_dsa": (
        "glm_moe_dsa",
        {
            **TINY,
            **LATENT,
            **ROUTED_EXPERTS,
            **SPARSE_INDEX,
            "num_hidden_layers": 3,
            "first_k_dense_replace": 2,
            "indexer_types": ["full", "shared", "full"],
        },
    ),
    "glm4_moe_lite": (
        "glm4_moe_lite",
        {**TINY, **LATENT, **ROUTED_EXPERTS, **rope("yarn", **YARN, mscale=1.0, mscale_all_dim=1.0), "attention_bias": True},
    ),
    "sarvam_mla": ("sarvam_mla", {**TINY, **LATENT, **ROUTED_EXPERTS, "q_lora_rank": None}),
    "axk1": (
        "axk1",
        {**TINY, **LATENT, **ROUTED_EXPERTS, "n_routed_experts": 6, "n_group": 3, "topk_group": 2},
    ),
    "mistral4": (
        "mistral4",
        {
            **TINY,
            **LATENT,
            **ROUTED_EXPERTS,
            **rope("yarn", **{**YARN, "original_max_position_embeddings": 3}, mscale=1.0, mscale_all_dim=1.0,
                   llama_4_scaling_beta=0.4),
            "n_routed_experts": 6,
            "n_group": 3,
            "topk_group": 2,
        },
    ),
    "youtu": ("youtu", {**TINY, **LATENT}),
    "minicpm3": ("minicpm3", {**TINY, **LATENT, "scale_emb": 3, "scale_depth": 1.2, "dim_model_base": 8}),
    "longcat_flash": (
        "longcat_flash",
        {
            **{k: v for k, v in TINY.items() if k not in ("num_hidden_layers", "intermediate_size")},
            **LATENT,
            "num_layers": 2,
            "head_dim": 4,
            "ffn_hidden_size": 14,
            "expert_ffn_hidden_size": 9,
            "n_routed_experts": 4,
            "zero_expert_num": 2,
            "moe_topk": 3,
            "routed_scaling_factor": 1.5,
        },
    ),
    "deepseek_v4": (
        "deepseek_v4",
        {
            **{k: v for k, v in TINY_TYPED.items() if k != "intermediate_size"},
            "hidden_size": 16,
            "num_key_value_heads": 1,
            "num_hidden_layers": 3,
            "layer_types": ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
            "mlp_layer_types": ["hash_moe", "moe", "moe"],
            "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 4},
            "sliding_window": 4,
            "head_dim": 8,
            "partial_rotary_factor": 0.5,
            "rope_theta": 50.0,
            "compress_rope_theta": 400.0,
            "q_lora_rank": 10,
            "o_groups": 2,
            "o_lora_rank": 5,
            "index_n_heads": 4,
            "index_head_dim": 6,
            "index_topk": 2,
            "hc_mult": 2,
            "hc_sinkhorn_iters": 3,
            "moe_intermediate_size": 9,
            "n_routed_experts": 5,
            "num_experts_per_tok": 2,
            "swiglu_limit": 1.0,
        },
    ),
    # Linear attention and state spaces
    "mamba": ("mamba", {**TINY_STATE, "state_size": 5, "time_step_rank": 3}),
    "mamba-biases": (
        "mamba",
        {**TINY_STATE, "state_size": 5, "use_bias": True, "use_conv_bias": False, "tie_word_embeddings": False},
    ),
    "falcon_mamba": ("falcon_mamba", {**TINY_STATE, "state_size": 5, "time_step_rank": 3}),
    "mamba2": ("mamba2", {**MAMBA2}),
    "mamba2-limit": ("mamba2", {**MAMBA2, "time_step_limit": [0.3, 0.7], "use_bias": True}),
    "rwkv": (
        "rwkv",
        {**TOKENS, "vocab_size": 40, "hidden_size": 20, "intermediate_size": 28, "num_hidden_layers": 2},
    ),
    "rwkv-rescale": (
        "rwkv",
        {
            **TOKENS,
            "vocab_size": 40,
            "hidden_size": 20,
            "intermediate_size": 28,
            "num_hidden_layers": 3,
            "rescale_every": 2,
        },
    ),
    "recurrent_gemma": (
        "recurrent_gemma",
        {
            **TINY,
            **HALF_ROPE,
            "num_key_value_heads": 1,
            "hidden_size": 32,
            "lru_width": 24,
            "intermediate_size": 40,
            "num_hidden_layers": 3,
            "attention_window_size": 4,
            "logits_soft_cap": 8.0,
        },
    ),
    "minimax": (
        "minimax",
        {
            **TINY,
            **LOCAL_EXPERTS,
            "num_hidden_layers": 3,
            "layer_types": ["full_attention", "linear_attention", "linear_attention"],
            "block_size": 4,
            "head_dim": 8,
            "full_attn_alpha_factor": 1.1,
            "full_attn_beta_factor": 0.9,
            "linear_attn_alpha_factor": 1.2,
            "linear_attn_beta_factor": 0.8,
            "mlp_alpha_factor": 1.3,
            "mlp_beta_factor": 0.7,
        },
    ),
    "kimi_linear": (
        "kimi_linear",
        {
            **TINY_TYPED,
            **LATENT,
            "num_hidden_layers": 3,
            "q_lora_rank": None,
            "intermediate_size": 20,
            "moe_intermediate_size": 9,
            "num_experts": 5,
            "num_experts_per_token": 2,
            "num_shared_experts": 1,
            "first_k_dense_replace": 1,
            "linear_attn_config": {
                "full_attn_layers": [2],
                "kda_layers": [1, 3],
                "head_dim": 6,
                "num_heads": 3,
                "short_conv_kernel_size": 4,
            },
        },
    ),
    "qwen3_next": (
        "qwen3_next",
        {
            **TINY,
            **HALF_ROPE,
            **EXPERTS,
            **DELTA,
            "head_dim": 8,
            "num_hidden_layers": 3,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "mlp_only_layers": [2],
            "shared_expert_intermediate_size": 11,
        },
    ),
    "qwen3_5": (
        "qwen3_5_text",
        {
            **TINY,
            **rope("default", partial_rotary_factor=0.5, mrope_section=[1, 1, 0], mrope_interleaved=True),
            **DELTA,
            "head_dim": 8,
            "full_attention_interval": 2,
        },
    ),
    "qwen3_5-moe": (
        "qwen3_5_moe_text",
        {
            **{k: v for k, v in TINY.items() if k != "intermediate_size"},
            **rope("default", partial_rotary_factor=0.5, mrope_section=[1, 1, 0], mrope_interleaved=True),
            **DELTA,
            "head_dim": 8,
            "full_attention_interval": 2,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 9,
            "shared_expert_intermediate_size": 11,
        },
    ),
    "olmo_hybrid": (
        "olmo_hybrid",
        {**TINY, **DELTA, "num_hidden_layers": 3, "layer_types": ["linear_attention"] * 2 + ["full_attention"]},
    ),
    "olmo_hybrid-nope": (
        "olmo_hybrid",
        {
            **TINY,
            **DELTA,
            "rope_parameters": {"rope_type": "default", "rope_theta": None},
            "linear_allow_neg_eigval": False,
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
    "lfm2": ("lfm2", {**LFM2, "intermediate_size": 40, "block_multiple_of": 8, "conv_bias": True}),
    "lfm2_moe": ("lfm2_moe", {**LFM2, **EXPERTS, "num_dense_layers": 1, "routed_scaling_factor": 1.5}),
    # Hybrids
    "falcon_h1": ("falcon_h1", {**FALCON_H1}),
    "falcon_h1-norm": (
        "falcon_h1",
        {
            **FALCON_H1,
            "mamba_rms_norm": True,
            "mamba_norm_before_gate": False,
            "mamba_proj_bias": True,
            "projectors_bias": True,
        },
    ),
    "jamba": (
        "jamba",
        {
            **TINY_TYPED,
            "hidden_size": 20,
            "intermediate_size": 12,
            "num_hidden_layers": 4,
            "attn_layer_period": 4,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "mamba_d_state": 5,
            "mamba_dt_rank": 3,
        },
    ),
    "bamba": (
        "bamba",
        {
            **TINY,
            **HALF_ROPE,
            **SSD,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "num_hidden_layers": 3,
            "attn_layer_indices": [1],
        },
    ),
    "zamba": (
        "zamba",
        {
            **TINY_TYPED,
            "hidden_size": 16,
            "intermediate_size": 20,
            "num_hidden_layers": 5,
            "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid", "hybrid"],
            "n_mamba_heads": 2,
            "mamba_d_state": 5,
            "mamba_dt_rank": 3,
            "mamba_proj_bias": True,
        },
    ),
    "zamba2": (
        "zamba2",
        {**ZAMBA2, "num_mem_blocks": 2, "use_shared_attention_adapter": True, "adapter_rank": 3, "use_mem_rope": True},
    ),
    "zamba2-plain": (
        "zamba2",
        {**ZAMBA2, "num_hidden_layers": 3, "layers_block_type": ["mamba", "hybrid", "hybrid"], "adapter_rank": 3},
    ),
    "nemotron_h": ("nemotron_h", {**NEMOTRON_H, "hybrid_override_pattern": "M*E-M"}),
    "nemotron_h-latent": (
        "nemotron_h",
        {**NEMOTRON_H, "hybrid_override_pattern": "ME*", "moe_latent_size": 10, "n_routed_experts": 6, "n_group": 2},
    ),
    "granitemoehybrid": (
        "granitemoehybrid",
        {
            **TINY,
            **SSD,
            **LOCAL_EXPERTS,
            **GRANITE_SCALES,
            "shared_intermediate_size": 12,
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
    "granitemoehybrid-dense": (
        "granitemoehybrid",
        {
            **TINY,
            **SSD,
            **GRANITE_SCALES,
            "num_local_experts": 0,
            "num_experts_per_tok": 0,
            "shared_intermediate_size": 12,
            "position_embedding_type": "rope",
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
}

# Encoders: one of each class, options that are off by default on. No token is the one for padding, or a mask
TINY_BERT = {
    "vocab_size": 37,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 24,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
TINY_ROBERTA = {**TINY_BERT, "pad_token_id": 1, "bos_token_id": 0}
TINY_MODERN = {
    **TINY_BERT,
    "num_hidden_layers": 4,
    "local_attention": 5,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
        "full_attention": {"rope_type": "default", "rope_theta": 400.0},
    },
}
TINY_XLM = {
    "vocab_size": 37,
    "emb_dim": 16,
    "n_layers": 2,
    "n_heads": 4,
    "max_position_embeddings": 24,
}
NARROW = {"embedding_size": 10}
TURNED = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}
MODELS |= {
    "roberta": ("roberta", {**TINY_ROBERTA, "type_vocab_size": 1, "hidden_act": "relu"}),
    "xlm-roberta": ("xlm-roberta", TINY_ROBERTA),
    "camembert": ("camembert", TINY_ROBERTA),
    "data2vec-text": ("data2vec-text", TINY_ROBERTA),
    "xlm-roberta-xl": ("xlm-roberta-xl", TINY_ROBERTA),
    "roberta-prelayernorm": ("roberta-prelayernorm", {**TINY_ROBERTA, "pad_token_id": 2, "eos_token_id": 1}),
    "megatron-bert": ("megatron-bert", TINY_BERT),
    "ernie": ("ernie", TINY_BERT),
    "ernie-tasks": ("ernie", {**TINY_BERT, "use_task_id": True}),
    "tapas": ("tapas", {**TINY_BERT, "type_vocab_sizes": [3, 4, 4, 2, 5, 5, 6], "num_hidden_layers": 1}),
    "electra": ("electra", {**TINY_BERT, **NARROW, "hidden_act": "relu"}),
    "electra-wide": ("electra", {**TINY_BERT, "embedding_size": 16}),
    "distilbert": (
        "distilbert",
        {
            "vocab_size": 37,
            "dim": 16,
            "hidden_dim": 20,
            "n_layers": 2,
            "n_heads": 4,
            "max_position_embeddings": 24,
            "activation": "relu",
        },
    ),
    "mpnet": ("mpnet", {**TINY_ROBERTA, "relative_attention_num_buckets": 32}),
    "rembert": (
        "rembert",
        {**TINY_BERT, "input_embedding_size": 10, "output_embedding_size": 18},
    ),
    "roformer": ("roformer", {**TINY_BERT, **NARROW}),
    "roformer-wide": ("roformer", TINY_BERT),
    "albert": ("albert", {**TINY_BERT, **NARROW, "num_hidden_layers": 4}),
    "albert-groups": ("albert", {**TINY_BERT, **NARROW, "num_hidden_layers": 5, "num_hidden_groups": 2}),
    "bert-generation": ("bert-generation", {**TINY_BERT, "is_decoder": True}),
    "big_bird": (
        "big_bird",
        {**TINY_BERT, "attention_type": "original_full", "use_bias": False, "rescale_embeddings": True},
    ),
    "modernbert": ("modernbert", TINY_MODERN),
    "modernbert-biases": (
        "modernbert",
        {
            **TINY_MODERN,
            "norm_bias": True,
            "attention_bias": True,
            "mlp_bias": True,
            "classifier_bias": True,
            "decoder_bias": False,
            "classifier_activation": "relu",
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
            "tie_word_embeddings": False,
        },
    ),
    "modernbert-decoder": ("modernbert-decoder", {**TINY_MODERN, "local_attention": 8}),
    "eurobert": (
        "eurobert",
        {**TINY_BERT, **TURNED, "num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True},
    ),
    "nomic_bert": ("nomic_bert", {**TINY_BERT, **TURNED}),
    "jina_embeddings_v3": ("jina_embeddings_v3", {**TINY_ROBERTA, **TURNED}),
    "gte": ("gte", {**TINY_ROBERTA, **TURNED}),
    "gte-plain": ("gte", {**TINY_ROBERTA, **TURNED, "type_vocab_size": 0}),
    "esm": ("esm", {**TINY_ROBERTA, "position_embedding_type": "rotary", "token_dropout": True, "mask_token_id": 2}),
    "esm-learned": ("esm", {**TINY_ROBERTA, "emb_layer_norm_before": True, "mask_token_id": 2}),
    "esmc": ("esmc", {**TINY_ROBERTA, **TURNED}),
    "xlm": ("xlm", {**TINY_XLM, "gelu_activation": False}),
    "xlm-causal": ("xlm", {**TINY_XLM, "causal": True}),
    "flaubert": ("flaubert", TINY_XLM),
}

# Unless a model says otherwise: rows, length of prompt and source, new tokens of each cached step, attention code,
# whether position ids are passed (a class that counts them wrongly without)
WORKLOAD = {
    "batch": 2,
    "prompt": 8,
    "source": 11,
    "steps": (1, 2, 1),
    "attention": "eager",
    "positions": False,
    "note": "",
}
WORKLOADS = {
    "falcon-rw": {"attention": "sdpa", "note": "eager attention adds ALiBi twice here; sdpa once"},
    "llama-dynamic": {
        "prompt": 10,
        "note": "cached keys keep the rotation of the call that made them: one forward over all differs",
    },
    "phi3-longrope-long": {
        "prompt": 10,
        "note": "prompt past original_max_position_embeddings: long factors",
    },
    "phi3-longrope-short": {"note": "never past original_max_position_embeddings: short factors"},
    "openai-gpt": {"note": "the class has no cache: steps come from forwards over the whole sequence"},
    # prompts past windows, chunks and blocks
    "gemma3n": {"prompt": 10},
    "gemma4": {"prompt": 10},
    "gemma4-moe": {"prompt": 10},
    "gpt_oss": {"prompt": 10},
    "llama4": {"prompt": 10},
    "llama4-top2": {"prompt": 10},
    "mimo_v2_flash": {"prompt": 10},
    "deepseek_v32": {"prompt": 10},
    "glm_moe_dsa": {"prompt": 10},
    "deepseek_v4": {"prompt": 10},
    "mamba2": {"prompt": 10},
    "falcon_h1": {"prompt": 10},
    "falcon_h1-norm": {"prompt": 10},
    "zamba": {"prompt": 10, "steps": (1, 1, 1, 1)},
    "zamba2": {"prompt": 10},
    "zamba2-plain": {"prompt": 10},
    "nemotron_h": {"prompt": 10},
    "nemotron_h-latent": {"prompt": 10},
    "granitemoehybrid": {"prompt": 10},
    "granitemoehybrid-dense": {"prompt": 10},
    "minimax": {"prompt": 10},
    "granitemoe_swa": {"prompt": 10},
    "cwm": {"prompt": 10},
    "ministral": {"prompt": 10},
    "ministral3": {"prompt": 10},
    "vaultgemma": {"prompt": 10},
    "granite_swa": {"prompt": 10},
    "cohere_compass_text": {"prompt": 10},
    "cohere2_moe": {"prompt": 10},
    "cohere2_moe-sigmoid": {"prompt": 10},
    "exaone_moe": {"prompt": 10},
    "afmoe": {"prompt": 10},
    "flint": {"prompt": 10},
    "kolibri1": {"prompt": 10},
    # the class restarts its positions at every call
    "bamba": {"prompt": 10, "positions": True},
    # the class mixes the rows of a batch in cached steps of one token
    "rwkv": {"batch": 1},
    "rwkv-rescale": {"batch": 1},
    # classes that start from an empty state when a call with a cache brings more than one token
    "mamba": {"prompt": 10, "steps": (1, 1, 1, 1)},
    "mamba-biases": {"prompt": 10, "steps": (1, 1, 1, 1)},
    "falcon_mamba": {"prompt": 10, "steps": (1, 1, 1, 1)},
    "jamba": {"prompt": 10, "steps": (1, 1, 1, 1)},
    "recurrent_gemma": {"prompt": 10, "steps": (1, 1, 1, 1)},
    "mamba2-limit": {"prompt": 10, "note": "a cached step of one token does not clamp its time step; longer calls do"},
    "switch_transformers-capacity": {"note": "an expert takes 3 tokens a row and call: one forward over all differs"},
}


SEEDS = {
    "afmoe": 1,
    "axk1": 1,
    "deepseek_v4": 5,
    "dots1": 1,
    "exaone_moe": 1,
    "gemma4-moe": 30,
    "glm_moe_dsa": 3,
    "hunyuan_v1_moe": 3,
    "kimi_linear": 4,
    "lfm2_moe": 2,
    "mixtral": 4,
    "qwen3_5-moe": 2,
    "switch_transformers-capacity": 1,
}
