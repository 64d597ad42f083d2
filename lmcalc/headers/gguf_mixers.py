"""State spaces, linear attention and convolutions: a short function for each general.architecture.

It gets the file's keys and tensors (Keys) and the config so far, and adds what is computed, found in the tensors, or
fixed in llama.cpp's reading of the architecture (its converter, conversion/, and its readers, src/models/).
"""

from .gguf_attention import biases, expert_width, sigmoid
from .gguf_keys import FULL, LINEAR


def mamba(g, c):
    _headless(g)
    if g.one("ssm.dt_b_c_rms"):
        c["model_type"] = "falcon_mamba"
    c |= {
        "state_size": g.size("ssm.state_size"), "conv_kernel": g.size("ssm.conv_kernel"),
        "time_step_rank": g.size("ssm.time_step_rank"), "expand": _expand(g, c),
        "use_bias": g.holds("ssm_in.bias"), "use_conv_bias": g.holds("ssm_conv1d.bias"),
    }  # fmt: skip


def _expand(g, c):
    """The width inside as a multiple of the model's."""
    inside, width = g.size("ssm.inner_size"), g.size("embedding_length")
    return inside // width if inside % width == 0 else inside / width


def _headless(g):
    for form in ("attention.head_count", "attention.key_length", "attention.head_count_kv", "feed_forward_length"):
        g.get(form)


def mamba2(g, c):
    _headless(g)
    heads = g.size("ssm.time_step_rank")
    c |= {
        "num_heads": heads, "head_dim": g.size("ssm.inner_size") // heads, "n_groups": g.size("ssm.group_count"),
        "state_size": g.size("ssm.state_size"), "conv_kernel": g.size("ssm.conv_kernel"), "expand": _expand(g, c),
        "use_bias": g.holds("ssm_in.bias"), "use_conv_bias": g.holds("ssm_conv1d.bias"),
    }  # fmt: skip


def _mamba2_inside(g):
    """The same as hybrids write it."""
    heads = g.size("ssm.time_step_rank")
    return {
        "mamba_n_heads": heads, "mamba_d_head": g.size("ssm.inner_size") // heads,
        "mamba_n_groups": g.size("ssm.group_count"), "mamba_d_state": g.size("ssm.state_size"),
        "mamba_d_conv": g.size("ssm.conv_kernel"), "mamba_conv_bias": g.holds("ssm_conv1d.bias"),
        "mamba_proj_bias": g.holds("ssm_in.bias"),
    }  # fmt: skip


def jamba(g, c):
    heads = g.each("attention.head_count_kv")
    attention, sparse = [bool(each) for each in heads], g.where_held("ffn_gate_inp")
    c |= {
        "num_key_value_heads": max(heads), "mamba_d_state": g.size("ssm.state_size"), "mamba_expand": _expand(g, c),
        "mamba_d_conv": g.size("ssm.conv_kernel"), "mamba_dt_rank": g.size("ssm.time_step_rank"),
        "mamba_conv_bias": g.holds("ssm_conv1d.bias"), "mamba_proj_bias": g.holds("ssm_in.bias"),
    }  # fmt: skip
    for name, which, where in (("attn", attention, "attention.head_count_kv"), ("expert", sparse, "expert_count")):
        every, first = _period(g, which, where)
        c |= {f"{name}_layer_period": every, f"{name}_layer_offset": first}
    if not any(sparse):
        c["num_experts"] = 1


def _period(g, which, key):
    """(period, first) of layers that come every so many."""
    places = [layer for layer, each in enumerate(which) if each]
    if not places:
        return g.layers + 1, g.layers
    every = places[1] - places[0] if len(places) > 1 else g.layers
    if [layer % every == places[0] % every for layer in range(g.layers)] != list(which):
        g.refuse(key, places, "layers at the same distance from one another")
    return every, places[0] % every


def granitehybrid(g, c):
    heads = g.each("attention.head_count_kv")
    c |= {
        "layer_types": ["attention" if each else "mamba" for each in heads], "num_key_value_heads": max(heads),
        "shared_intermediate_size": g.shape("ffn_gate_shexp", 0) or g.shape("ffn_gate", 0), **_mamba2_inside(g),
        "position_embedding_type": "rope" if g.one("rope.scaling.finetuned") else "nope",
    }  # fmt: skip
    biases(g, c)
    c.setdefault("attention_multiplier", (c.get("head_dim") or 1) ** -0.5)  # Bamba's
    c["num_local_experts"] = c.pop("num_experts", None) or 0


def falcon_h1(g, c):
    biases(g, c)
    c |= _mamba2_inside(g) | {
        "mamba_d_ssm": g.size("ssm.inner_size"), "mlp_bias": g.holds("ffn_up.bias"),
        "mamba_rms_norm": g.holds("ssm_norm"), "projectors_bias": g.holds("ssm_out.bias"),
    }  # fmt: skip


def nemotron_h(g, c):
    heads, widths = g.each("attention.head_count_kv"), g.each("feed_forward_length")
    number, sparse = g.size("ssm.time_step_rank"), g.where_held("ffn_gate_inp")
    kinds = [
        "attention" if head else ("moe" if each else "mlp") if wide else "mamba"
        for head, wide, each in zip(heads, widths, sparse)
    ]
    biases(g, c)
    c |= {
        "layers_block_type": kinds, "num_key_value_heads": max(heads), "mamba_num_heads": number,
        "mlp_bias": g.holds("ffn_up.bias"),
        "mamba_head_dim": g.size("ssm.inner_size") // number, "n_groups": g.size("ssm.group_count"),
        "ssm_state_size": g.size("ssm.state_size"), "conv_kernel": g.size("ssm.conv_kernel"),
        "use_conv_bias": g.holds("ssm_conv1d.bias"), "mamba_proj_bias": g.holds("ssm_in.bias"),
        "intermediate_size": g.shape("ffn_up", -2, max(widths)),
    }  # fmt: skip
    for name in ("num_hidden_layers", "rotary_dim"):  # its attention turns nothing
        c.pop(name, None)
    if any(sparse):
        sigmoid(g, c)
        c["moe_shared_expert_intermediate_size"] = g.shape("ffn_up_shexp", -2)
        c["moe_latent_size"] = g.count("moe_latent_size")


def qwen_linear(g, c):
    heads = g.size("ssm.time_step_rank")
    c |= {
        "linear_num_value_heads": heads, "linear_num_key_heads": g.size("ssm.group_count"),
        "linear_key_head_dim": g.size("ssm.state_size"),
        "linear_value_head_dim": g.size("ssm.inner_size") // heads,
        "linear_conv_kernel_dim": g.size("ssm.conv_kernel"),
        "layer_types": [FULL if each else LINEAR for each in g.where_held("attn_k")],
    }  # fmt: skip
    g.count("full_attention_interval")  # which layers hold keys says it, too
    if g.nextn:
        c["mtp_num_hidden_layers"] = g.nextn


def qwen_linear_moe(g, c):
    qwen_linear(g, c)
    expert_width(g, c)
    c["shared_expert_intermediate_size"] = g.shape("ffn_up_shexp", -2)


def qwen3next(g, c):
    qwen_linear_moe(g, c)
    c["norm_topk_prob"] = True


def lfm2(g, c):
    heads = g.each("attention.head_count_kv")
    c |= {
        "layer_types": [FULL if each else "conv" for each in heads], "num_key_value_heads": max(heads),
        "conv_L_cache": g.size("shortconv.l_cache"), "conv_bias": g.holds("shortconv.conv.bias"),
    }  # fmt: skip


def lfm2_dense(g, c):
    lfm2(g, c)
    c["block_auto_adjust_ff_dim"] = False


def lfm2moe(g, c):
    lfm2(g, c)
    c |= {"num_dense_layers": g.count("leading_dense_block_count") or 0, "norm_topk_prob": True,
          "use_expert_bias": g.holds("exp_probs_b.bias")}  # fmt: skip
