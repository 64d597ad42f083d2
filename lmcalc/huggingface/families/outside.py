"""Models that are published with code of their own, for which transformers has no class: one function a `model_type`.

That code is never run. What it computes was read from copies of it, and every size has to stand in the config; DEFAULTS
are those of its configuration class for the other keys.
"""

from ..layers import rotary
from .common import bias, experts, first_dense, flag, heads, llama_like, sizes, with_experts
from .dense import qwen2

LLAMA = {"hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "rope_theta": 10000.0}
# Defaults of the published configuration classes, of keys that are no sizes
DEFAULTS = {
    # configuration_baichuan.py of both sizes; the 13B's names the length model_max_length
    "baichuan": LLAMA | {"model_max_length": 4096},
    # configuration_qwen.py
    "qwen": {"layer_norm_epsilon": 1e-6, "rotary_emb_base": 10000, "rotary_pct": 1.0, "no_bias": True,
             "max_position_embeddings": 8192, "tie_word_embeddings": False, "use_dynamic_ntk": True,
             "use_logn_attn": True},
    # configuration_chatglm.py of ChatGLM2 and later; its code has a head of its own in any case
    "chatglm": {"layernorm_epsilon": 1e-5, "rmsnorm": True, "post_layer_norm": True, "add_bias_linear": False,
                "add_qkv_bias": False, "multi_query_attention": False, "rope_ratio": 1, "tie_word_embeddings": False},
    # configuration_internlm.py, configuration_internlm2.py
    "internlm": LLAMA | {"bias": True, "max_position_embeddings": 2048, "rotary": {"base": 10000, "type": "dynamic"}},
    "internlm2": LLAMA | {"bias": True, "max_position_embeddings": 2048},
    # configuration_mimo.py, which is Qwen2Config with one key more
    "mimo": LLAMA | {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28,
                     "max_position_embeddings": 32768, "num_nextn_predict_layers": 0},
    # configuration_deepseek.py
    "deepseek": LLAMA | {"moe_layer_freq": 1, "first_k_dense_replace": 0, "norm_topk_prob": False,
                         "attention_bias": False, "max_position_embeddings": 2048},
    # step3's configuration, as vLLM and SGLang carry it: Step3TextConfig
    "step3_text": LLAMA | {"rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embedding": 65536,
                           "norm_expert_weight": False, "moe_layers_enum": list(range(4, 60))},
    # configuration_phi3_small.py
    "phi3small": {"hidden_act": "gegelu", "gegelu_limit": 20.0, "layer_norm_epsilon": 1e-5,
                  "max_position_embeddings": 8192, "rope_embedding_base": 1e6, "rope_position_scale": 1.0,
                  "mup_use_scaling": True, "mup_width_multiplier": 8.0, "mup_embedding_multiplier": 10.0,
                  "mup_attn_multiplier": 1.0, "dense_attention_every_n_layers": 2, "tie_word_embeddings": True},
    # run.py and model.py of xai-org/grok-1
    "grok-1": {"hidden_act": "gelu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_attn_value": 30.0,
               "tie_word_embeddings": True},
    # configuration_rwkv5.py of RWKV-5 World
    "rwkv5": {"layer_norm_epsilon": 1e-5, "tie_word_embeddings": False},
    # open_lm/model.py, Params; the two that open_lm takes from its command line are those of DCLM's training
    # configurations (mlfoundations/dclm, training/configs), whose models are the published ones of this type
    "openlm": {"norm_eps": 1e-5, "seq_len": 2048, "post_embed_norm": False, "weight_tying": False,
               "ffn_type": "swiglu", "positional_embedding_type": "rotary", "moe_freq": 0},
}  # fmt: skip


def baichuan(c):
    """The 7B turns queries and keys, the 13B has ALiBi; only the 7B's configuration has max_position_embeddings."""
    c.skip("z_loss_weight")
    found = llama_like(c)
    if c.given("max_position_embeddings"):
        return found
    c.note("positions are ALiBi, as in Baichuan's 13B: the config has no max_position_embeddings, as its 7B has.")
    found["max_positions"] = c.get("size", "model_max_length")
    return found | dict.fromkeys(("rope_base", "rotary_dim", "rope_scaling")) | {"positions": "alibi"}


def qwen(c):
    c.only("scale_attn_weights", True, "no published model is without")
    c.skip("attn_dropout_prob", "emb_dropout_prob", "bf16", "fp16", "fp32", "onnx_safe", "use_flash_attn")
    c.skip("use_cache_quantization", "use_cache_kernel", "softmax_in_fp32")
    found = heads(c)
    found["head_dim"] = c.get("size", "kv_channels") or found["head_dim"]
    both = c.need("size", "intermediate_size")  # the width of gate and the other branch together
    if both % 2:
        c.refuse("intermediate_size", both, "an even number: half of it is the width of the feed-forward")
    dynamic = [key for key in ("use_dynamic_ntk", "use_logn_attn") if c.get("bool", key)]
    if dynamic:
        c.note(f"beyond {c.get('size', 'seq_length') or found['max_positions']:,} tokens rotary base and scores are "
               f"rescaled ({', '.join(dynamic)}): not counted.")  # fmt: skip
    plain = c.get("bool", "no_bias")  # which queries, keys and values have in any case
    return found | {
        "norm": "rmsnorm", "ffn": "swiglu", "d_ff": both // 2, "ffn_bias": None if plain else True,
        "attention_bias": "qkv" if plain else "all", **rotary(c, found),
    }  # fmt: skip


def chatglm(c):
    """ChatGLM2, ChatGLM3 and GLM-4 9B."""
    for key, value, why in (
        ("position_encoding_2d", False, "ChatGLM2 and later, not the first ChatGLM"),
        ("apply_residual_connection_post_layernorm", False, "no published model has it"),
        ("fp32_residual_connection", False, "no published model has it"),
        ("prefix_projection", False, "a model without a learned prefix"),
        ("pre_seq_len", None, "a model without a learned prefix"),
        ("original_rope", True, "no published model has another"),
    ):
        c.only(key, value, why)
    c.skip("apply_query_key_layer_scaling", "quantization_bit", "hidden_dropout", "attention_dropout")
    if not c.get("bool", "multi_query_attention"):
        c.refuse("multi_query_attention", c.data.get("multi_query_attention"), "true, as in ChatGLM2 and later")
    c.need("size", "multi_query_group_num")
    found = heads(c.calling(
        num_hidden_layers=("num_layers",), num_key_value_heads=("multi_query_group_num",),
        vocab_size=("padded_vocab_size",), max_position_embeddings=("seq_length",), head_dim=("kv_channels",),
    ))  # fmt: skip
    biases = c.get("bool", "add_bias_linear")
    return found | {
        "d_ff": c.need("size", "ffn_hidden_size"), "ffn": "swiglu", "ffn_bias": True if biases else None,
        "norm": flag(c, "rmsnorm", "rmsnorm", "layernorm"), "final_norm": c.get("bool", "post_layer_norm"),
        "attention_bias": "all" if biases else flag(c, "add_qkv_bias", "qkv", "none"),
        "positions": "rotary", "rope_layout": "interleaved", "rotary_dim": found["head_dim"] // 2,
        "rope_base": 10000.0 * c.need("positive", "rope_ratio"),
    }  # fmt: skip


def internlm(c):
    found = llama_like(c)
    table = c.object("rotary")
    kind, found["rope_base"] = table.get("text", "type") or "origin", table.get("positive", "base")
    if kind not in ("origin", "dynamic"):
        table.refuse("type", kind, "origin or dynamic")
    if kind == "dynamic":
        found["rope_scaling"] = {"kind": "dynamic", "factor": 1.0, "original_max_positions": found["max_positions"]}
    return found | {"attention_bias": bias(c, "bias")}


def internlm2(c):
    return llama_like(c) | {"attention_bias": bias(c, "bias")}


def mimo(c):
    c.only("attention_bias", True, "queries, keys and values have biases in any case")
    return qwen2(c) | {"n_mtp_layers": c.get("count", "num_nextn_predict_layers") or None}


def deepseek(c):
    """DeepSeekMoE: the first version, with multi-head attention."""
    c.only("scoring_func", "softmax", "the published code knows no other")
    found = llama_like(c) | {"attention_bias": bias(c)}
    if not c.given("n_routed_experts"):
        c.skip("moe_intermediate_size", "n_shared_experts", "num_experts_per_tok", "first_k_dense_replace")
        return found
    normalized = c.get("bool", "norm_topk_prob")
    mixture = experts(
        c, router="softmax", n_shared_experts=c.get("count", "n_shared_experts") or None,
        router_normalized=normalized or None, router_eps=1e-20 if normalized else None,
    )  # fmt: skip
    return with_experts(found, mixture, first_dense(c, found["n_layers"]))


def step3(c):
    c = c.calling(
        num_key_value_heads=("num_attention_groups",), max_position_embeddings=("max_position_embedding",),
        num_experts=("moe_num_experts",), num_experts_per_tok=("moe_top_k",),
    )  # fmt: skip
    found = llama_like(c)
    found["q_latent_dim"] = c.need("size", "share_q_dim")
    layers = _numbered(c, found["n_layers"], "moe_layers_enum", "moe_layers")
    mixture = experts(
        c, router="softmax", router_normalized=c.get("bool", "norm_expert_weight") or None,
        shared_d_ff=c.need("size", "share_expert_dim"),
    )  # fmt: skip
    return with_experts(found, mixture, [layer in layers for layer in range(found["n_layers"])])


def _numbered(c, count, *keys):
    """Numbers of layers: a list, "4,5,6" as published, or "4..7" for 4 to 6."""
    key = next((key for key in keys if c.given(key)), keys[0])
    given = c.data.get(key) if c.given(key) else c.defaults[keys[0]]
    c.skip(*keys)
    found = given
    if isinstance(given, str):
        first, dots, end = given.partition("..")
        parts = [each.strip() for each in ([first, end] if dots else given.split(",")) if each.strip()]
        found = [int(each) for each in parts if each.isascii() and each.isdigit() and len(each) < 6]
        found = None if len(found) != len(parts) else list(range(*found)) if dots and len(found) == 2 else found
        if dots and found:
            c.note(f"{key} = {given!r} is read as layers {found[0]} to {found[-1]}.")
    if not isinstance(found, list) or not all(type(each) is int and 0 <= each < count for each in found):
        c.refuse(key, given, f'numbers of layers below {count}, as a list, as "4,5,6", or as "4..7" for 4 to 6')
    return set(found)


def phi3small(c):
    c.only("hidden_act", "gegelu", "the published code knows no other")
    for key in ("ff_dim_multiplier", "blocksparse_homo_head_pattern"):
        c.only(key, None if key == "ff_dim_multiplier" else False, "no published model has it")
    c.only("rope_position_scale", 1.0, "no published model has another")
    c.only("attention_bias", False, "a key that the published code does not read: its projections have biases")
    c.skip("gegelu_pad_to_256", "pad_sequence_to_multiple_of_64", "embedding_dropout_prob", "ffn_dropout_prob")
    c.skip("attention_dropout_prob", "dummy_token_indices")
    found = heads(c)
    scaled = c.get("bool", "mup_use_scaling")
    _note_blocks(c)
    return found | {
        "d_ff": c.need("size", "ff_intermediate_size"), "ffn": "swiglu_clamped", "ffn_bias": True,
        "ffn_limit": c.need("positive", "gegelu_limit"), "norm": "layernorm", "attention_bias": "all",
        "embedding_scale": c.get("positive", "mup_embedding_multiplier"),
        "score_scale": c.need("positive", "mup_attn_multiplier") / found["head_dim"] if scaled else None,
        "logit_scale": 1 / c.need("positive", "mup_width_multiplier"),
        **rotary(c, found, base_key="rope_embedding_base"),
    }  # fmt: skip


def _note_blocks(c):
    """Say what is not expressed: block-sparse attention, whose pattern is another one for each head."""
    every = c.get("count", "dense_attention_every_n_layers")
    blocks, size = c.get("size", "blocksparse_num_local_blocks"), c.get("size", "blocksparse_block_size")
    c.skip("blocksparse_vert_stride", "blocksparse_triton_kernel_block_size")
    if every != 1 and blocks and size:
        c.note(f"dense_attention_every_n_layers = {every}: block-sparse attention in the others is counted as dense, "
               f"exact up to {blocks * size:,} tokens; beyond, scores and cache reads are upper bounds.")  # fmt: skip


def grok(c):
    c.only("gated", True, "experts of three matrices")
    c.skip("widening_factor")
    found = heads(c)
    c.only("hidden_act", "gelu", "the published code knows no other")  # jax.nn.gelu: its tanh form
    mixture = experts(c, "intermediate_size", router="softmax")
    return found | mixture | {
        "norm": "rmsnorm", "norm_placement": "double", "ffn": "geglu_tanh",
        "attention_softcap": c.need("positive", "max_attn_value"),
        "score_scale": c.need("positive", "attn_output_multiplier"),
        "embedding_scale": c.need("positive", "embedding_multiplier_scale"),
        "logit_scale": c.need("positive", "output_multiplier_scale"), **rotary(c, found),
    }  # fmt: skip


def rwkv5(c):
    """RWKV-5.2; its feed-forward is 3.5 times as wide, a multiple of 32, and its norm over a head has 1e-5."""
    c.only("model_version", "5_2", "heads with a decay for each channel, and a gate")
    c.skip("context_length", "num_attention_heads")  # the published code goes by head_size
    c.skip("rescale_every")  # halves activations for float16: only the epsilon of a norm notices
    found, size = sizes(c, headless=True), c.need("size", "head_size")
    width = found["d_model"]
    if width % size:
        c.refuse("head_size", size, f"a divisor of hidden_size = {width}")
    c.only("attention_hidden_size", width, "that of hidden_size, which its heads are made of")
    return found | {
        "mixer": "rwkv5", "n_mixer_heads": width // size, "mixer_head_dim": size, "mixer_norm_eps": 1e-5,
        "ffn": "channel_mix", "d_ff": c.get("size", "intermediate_size") or width * 7 // 64 * 32,
        "norm": "layernorm", "positions": "none", "embedding_norm": True,
    }  # fmt: skip


OPENLM_NORMS = {
    "default_layer_norm": "layernorm", "lp_layer_norm": "layernorm", "gain_only_lp_layer_norm": "layernorm_no_bias",
    "gain_only_layer_norm": "layernorm_no_bias", "no_wb_layer_norm": "layernorm_plain", "rms_norm": "rmsnorm",
}  # fmt: skip
OPENLM_FFN = {"swiglu": "swiglu", "swiglu_torch": "swiglu", "gelu": "gelu"}


def openlm(c):
    """open_lm, in which DCLM was trained: the sizes of its model_configs/, or the attributes of its Params."""
    c.only("moe_freq", 0, "a model without experts")
    c.only("positional_embedding_type", "rotary", "no published model has another")
    c.skip("params", "attn_name", "attn_activation", "attn_seq_scalar", "attn_seq_scalar_alpha")
    flags = c.inside("params_args_dict")  # of the command line of training
    found = heads(c.calling(
        hidden_size=("hidden_dim", "dim"), num_hidden_layers=("n_layers",), num_attention_heads=("n_heads",),
        max_position_embeddings=("seq_len",), tie_word_embeddings=("weight_tying",),
    ))  # fmt: skip
    norm = c.get(tuple(OPENLM_NORMS), "model_norm", "norm_type")
    normed = c.get("bool", "qk_norm", "apply_qk_norm")
    if flags is not None:
        norm = flags.get(tuple(OPENLM_NORMS), "model_norm") if norm is None else norm
        normed = flags.get("bool", "qk_norm") if normed is None else normed
        flags.skip(*flags.data)
    if norm is None or normed is None:
        c.note("model_norm and qk_norm, where they are missing, are those of DCLM: gain_only_lp_layer_norm, true.")
    ffn = OPENLM_FFN[c.need(tuple(OPENLM_FFN), "ffn_type")]
    return found | {
        "norm": OPENLM_NORMS[norm or "gain_only_lp_layer_norm"], "qk_norm": "full" if normed is not False else None,
        "ffn": ffn, "d_ff": "8/3*d_model:256" if ffn == "swiglu" else 4 * found["d_model"],
        "embedding_norm": c.get("bool", "post_embed_norm") or None, **rotary(c, found),
    }  # fmt: skip
