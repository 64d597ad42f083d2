"""Models whose layers attend, with and without experts: a short function for each general.architecture.

It gets the file's keys and tensors (Keys) and the config so far, and adds what is computed, found in the tensors, or
fixed in llama.cpp's reading of the architecture (its converter, conversion/, and its readers, src/models/).
"""

import math

from ..errors import InputError
from .gguf_keys import EXPERTS, FULL


def expert_width(g, c, module="ffn_up_exps"):
    """The width of experts from their tensor, where no key says it."""
    if c.get("moe_intermediate_size") is None:
        c["moe_intermediate_size"] = g.shape(module, -2)


def biases(g, c):
    c["attention_bias"] = g.holds("attn_q.bias") and g.holds("attn_output.bias")


def all_biases(g, c):
    biases(g, c)
    c["mlp_bias"] = g.holds("ffn_up.bias")


def windows(g, c):
    """The kinds of the layers from a pattern of yes and no, or every n-th full."""
    pattern = g.get("attention.sliding_window_pattern")
    if isinstance(pattern, list):
        c["layer_types"] = [
            "sliding_attention" if each else FULL for each in g.each("attention.sliding_window_pattern", bool)
        ]
    elif pattern is not None:
        every = g.size("attention.sliding_window_pattern")
        c["layer_types"] = ["sliding_attention" if (layer + 1) % every else FULL for layer in range(g.layers)]


# Dense -------------------------------------------------------------------------------------------------------------


def llama(g, c):
    if g.count("expert_count"):
        c["model_type"] = "mixtral"
        return
    all_biases(g, c)
    for name in EXPERTS.values():
        c.pop(name, None)


def qwen2(g, c):
    if c.get("sliding_window"):
        c["use_sliding_window"] = True


def qwen3(g, c):
    qwen2(g, c)
    biases(g, c)


def gemma3(g, c):
    windows(g, c)
    base = g.one("rope.freq_base_swa")
    if base is not None:
        c["rope_local_base_freq"] = base


def gemma3n(g, c):
    gemma3(g, c)
    sparsity = g.get("activation_sparsity_scale")
    if sparsity is not None:
        numbers = sparsity if isinstance(sparsity, list) else [sparsity]
        if len(numbers) != g.layers or not all(isinstance(each, int | float) and each == each for each in numbers):
            g.refuse("activation_sparsity_scale", sparsity, f"a number for each of the {g.layers:,} layers")
        # a point of the normal distribution, below which lies the share that is cut off
        c["activation_sparsity_pattern"] = [round((1 + math.erf(each / 2**0.5)) / 2, 6) for each in numbers]
    widths = g.each("feed_forward_length")
    c |= {
        "intermediate_size": widths[0] if len(set(widths)) == 1 else widths,
        "laurel_rank": g.shape("laurel_l", 0), "altup_correct_scale": g.holds("altup_correct_scale"),
        "vocab_size_per_layer_input": g.shape("per_layer_token_embd", 0),
    }  # fmt: skip
    c["hidden_size_per_layer_input"] = g.count("embedding_length_per_layer_input") or 0


def gemma4(g, c):
    windows(g, c)
    sliding = [each != FULL for each in c.get("layer_types") or [layer % 6 != 5 for layer in range(g.layers)]]
    widths, heads = g.each("feed_forward_length"), g.each("attention.head_count_kv")
    full = next((number for number, each in zip(heads, sliding) if not each), heads[-1])
    values = g.where_held("attn_v")
    c |= {
        "intermediate_size": widths[0], "use_double_wide_mlp": len(set(widths)) > 1,
        "num_key_value_heads": heads[0], "num_global_key_value_heads": full,
        "head_dim": g.size("attention.key_length_swa"), "global_head_dim": g.size("attention.key_length"),
        "attention_k_eq_v": any(not held and not each and key for held, each, key in
                                zip(values, sliding, g.where_held("attn_k"))),
        "hidden_size_per_layer_input": g.count("embedding_length_per_layer_input") or 0,
        "enable_moe_block": bool(g.count("expert_count")),
    }  # fmt: skip
    if c["hidden_size_per_layer_input"]:
        c["vocab_size_per_layer_input"] = g.shape("per_layer_token_embd", 0)


def phi3(g, c):
    c["sliding_window"] = c.get("sliding_window") or None


def phimoe(g, c):
    phi3(g, c)
    biases(g, c)
    c["lm_head_bias"] = "output.bias" in g.tensors


def gpt2(g, c):
    c["n_inner"] = c.pop("intermediate_size", None)


def mpt(g, c):
    table = {"clip_qkv": g.one("attention.clamp_kqv"), "alibi_bias_max": g.one("attention.max_alibi_bias")}
    c["attn_config"] = {key: value for key, value in table.items() if value is not None}
    bloom(g, c)


def falcon(g, c):
    kv, two = g.count("attention.head_count_kv") or g.size("attention.head_count"), g.holds("attn_norm_2")
    new = two or kv not in (1, c.get("num_attention_heads"))
    c |= {
        "num_kv_heads": kv, "new_decoder_architecture": new, "multi_query": kv == 1, "parallel_attn": True,
        "alibi": False, "bias": g.holds("attn_qkv.bias"), "num_ln_in_parallel_attn": 2 if two else 1,
        "ffn_hidden_size": c.pop("intermediate_size", None),
    }  # fmt: skip


def starcoder2(g, c):
    c["use_bias"] = g.holds("attn_q.bias")


def stablelm(g, c):
    c |= {"qk_layernorm": g.holds("attn_q_norm"), "use_qkv_bias": g.holds("attn_q.bias")}


def olmo2(g, c):
    if c.get("sliding_window") is None:
        del c["sliding_window"]
        return
    c["model_type"] = "olmo3"
    windows(g, c)


def cohere(g, c):
    c["use_qk_norm"] = g.holds("attn_q_norm")


def granite(g, c):
    all_biases(g, c)
    for name in EXPERTS.values():
        c.pop(name, None)


def granitemoe(g, c):
    width = g.count("expert_shared_feed_forward_length")
    if width:
        c |= {"model_type": "granitemoeshared", "shared_intermediate_size": width}


def qkv_bias(g, c):
    c["attention_bias"] = g.holds("attn_q.bias") or g.holds("attn_qkv.bias")


def seed_oss(g, c):
    c |= {"attention_bias": g.holds("attn_q.bias"), "attention_out_bias": g.holds("attn_output.bias"),
          "mlp_bias": g.holds("ffn_up.bias")}  # fmt: skip


def bloom(g, c):
    g.get("feed_forward_length")  # 4 times the width in any case


def bert(g, c):
    for key, module in (("max_position_embeddings", "position_embd"), ("type_vocab_size", "token_types")):
        c[key] = g.shape(module, 0)
    g.get("context_length")  # no longer than the table
    c["tie_word_embeddings"] = True


def nomic_bert(g, c):
    c["type_vocab_size"] = g.shape("token_types", 0)


def modern_bert(g, c):
    every = g.count("attention.sliding_window_pattern") or 3
    c["layer_types"] = ["sliding_attention" if layer % every else FULL for layer in range(g.layers)]
    c["attention_bias"] = g.holds("attn_qkv.bias")


def gpt_bigcode(g, c):
    c |= {"n_inner": c.pop("intermediate_size", None), "multi_query": g.count("attention.head_count_kv") == 1}


def t5(g, c):
    if not g.holds("enc.output_norm"):
        raise InputError(f"{g.where}: no encoder in it (enc.output_norm); allowed: an encoder and a decoder")
    gated = "enc.blk.0.ffn_gate.weight" in g.tensors
    c |= {
        "num_layers": c.pop("num_hidden_layers"), "d_ff": c.pop("intermediate_size", None),
        "d_kv": c.pop("head_dim", None), "feed_forward_proj": "gated-gelu" if gated else "relu",
        "num_decoder_layers": g.count("decoder_block_count"),
    }  # fmt: skip


# Mixtures of experts -----------------------------------------------------------------------------------------------


def normalized(yes):
    """Shares of the chosen experts add up to one, or not: llama.cpp knows it by the architecture."""

    def more(g, c):
        expert_width(g, c)
        c["norm_topk_prob"] = yes

    return more


def qwen2moe(g, c):
    normalized(False)(g, c)
    c |= {"shared_expert_intermediate_size": g.shape("ffn_up_shexp", -2), "qkv_bias": g.holds("attn_q.bias")}


def olmoe(g, c):
    c["norm_topk_prob"] = False


def dbrx(g, c):
    c["attn_config"] = {
        "kv_n_heads": c.pop("num_key_value_heads", None), "rope_theta": c.pop("rope_theta", None),
        "clip_qkv": g.one("attention.clamp_kqv"),
    }  # fmt: skip
    c["ffn_config"] = {
        "moe_num_experts": c.pop("num_experts", None), "moe_top_k": c.pop("num_experts_per_tok", None),
        "ffn_hidden_size": c.pop("intermediate_size", None), "moe_normalize_expert_weights": 1.0,
    }  # fmt: skip


def gpt_oss(g, c):
    c["attention_bias"] = g.holds("attn_q.bias")
    c["intermediate_size"] = c.pop("moe_intermediate_size", None) or c.get("intermediate_size")


def glm4moe(g, c):
    c |= {"attention_bias": g.holds("attn_q.bias"), "use_qk_norm": g.holds("attn_q_norm")}
    sigmoid(g, c)


def sigmoid(g, c):
    """Experts as DeepSeek V3 has them: a file that says nothing of groups has none."""
    if g.one("expert_gating_func") not in (None, 2):
        g.refuse("expert_gating_func", g.one("expert_gating_func"), "2 (sigmoid)")
    c |= {"num_nextn_predict_layers": g.nextn} if g.nextn else {}


def dots1(g, c):
    biases(g, c)
    sigmoid(g, c)


def exaone_moe(g, c):
    windows(g, c)
    sigmoid(g, c)


def afmoe(g, c):
    """Every fourth layer sees all, and only the others turn."""
    biases(g, c)
    expert_width(g, c)
    g.one("expert_weights_norm")  # its weights are divided by their sum in any case
    c |= {"num_dense_layers": g.count("leading_dense_block_count") or 0, "global_attn_every_n_layers": 4,
          "mup_enabled": True, "route_scale": g.one("expert_weights_scale") or 1.0}  # fmt: skip


def hunyuan(g, c):
    biases(g, c)
    c["intermediate_size"] = g.shape("ffn_up_exps", -2, c.get("intermediate_size"))


def ernie(g, c):
    c |= {"use_bias": g.holds("attn_q.bias"), "moe_layer_end_index": g.layers - 1}
    expert_width(g, c)


def minimax(g, c):
    expert_width(g, c)
    c["intermediate_size"] = c.pop("moe_intermediate_size")
    c |= {"use_mtp": bool(g.nextn)} | ({"num_mtp_modules": g.nextn} if g.nextn else {})


def mimo(g, c):
    sliding, heads = g.each("attention.sliding_window_pattern", bool), g.each("attention.head_count_kv")
    c |= {
        "hybrid_layer_pattern": [int(each) for each in sliding], "v_head_dim": g.size("attention.value_length"),
        "num_key_value_heads": next((number for number, each in zip(heads, sliding) if not each), heads[0]),
        "attention_value_scale": g.one("attention.value_scale"), "attention_bias": g.holds("attn_q.bias"),
        "moe_layer_freq": [int(each) for each in g.where_held("ffn_gate_inp")],
    }  # fmt: skip
    expert_width(g, c)
    sigmoid(g, c)
    c.pop("num_nextn_predict_layers", None)  # its class has none


def llama4(g, c):
    c |= {
        "intermediate_size_mlp": c.pop("intermediate_size", None),
        "intermediate_size": c.pop("moe_intermediate_size", None) or g.shape("ffn_up_exps", -2),
        "use_qk_norm": c.get("num_experts") != 128,  # llama.cpp knows the larger one by this number
    }  # fmt: skip


# Latent attention --------------------------------------------------------------------------------------------------


def latent(g, c):
    """Sizes of heads; files from before 2025 keep the sizes of queries under the keys of plain attention."""
    rope = g.size("rope.dimension_count")
    key = g.count("attention.key_length_mla") or g.size("attention.key_length")
    value = g.count("attention.value_length_mla") or g.shape("attn_v_b", 1) or g.count("attention.value_length")
    value = value or g.shape("attn_output", -1, 0) // g.size("attention.head_count")
    if key <= rope:
        g.refuse("attention.key_length", key, f"more than the {rope} that are turned")
    c |= {"qk_rope_head_dim": rope, "qk_nope_head_dim": key - rope, "v_head_dim": value,
          "attention_bias": g.holds("attn_kv_a_mqa.bias")}  # fmt: skip
    for form in ("attention.head_count_kv", "attention.key_length"):  # of a cache of latents
        g.get(form)


def deepseek2(g, c):
    latent(g, c)
    if not c.get("num_experts"):
        for name in ("num_experts", "num_experts_per_tok", "n_shared_experts"):
            c.pop(name, None)
        c["first_k_dense_replace"] = g.layers
    if g.one("expert_gating_func") in (None, 1) and "exp_probs_b.bias" not in _endings(g):
        c |= {"model_type": "deepseek_v2", "topk_method": "greedy"}
        if (c.get("n_group") or 1) > 1:
            c["topk_method"] = "group_limited_greedy"
        return
    sigmoid(g, c)
    if not g.nextn:
        c["num_nextn_predict_layers"] = 0


def _endings(g):
    return {name.split(".", 2)[-1] for name in g.tensors}


def glm_dsa(g, c):
    latent(g, c)
    sigmoid(g, c)
    c["indexer_types"] = ["full" if each else "shared" for each in g.where_held("indexer.attn_k")]


def minicpm3(g, c):
    latent(g, c)


def kimi_linear(g, c):
    attention = [bool(each) for each in g.each("attention.head_count_kv")]
    latent(g, c)
    sigmoid(g, c)
    c["linear_attn_config"] = {
        "full_attn_layers": [layer + 1 for layer, each in enumerate(attention) if each],
        "kda_layers": [layer + 1 for layer, each in enumerate(attention) if not each],
        "num_heads": g.shape("ssm_beta", 0, g.size("attention.head_count")), "head_dim": g.size("kda.head_dim"),
        "short_conv_kernel_size": g.size("ssm.conv_kernel"),
    }  # fmt: skip
