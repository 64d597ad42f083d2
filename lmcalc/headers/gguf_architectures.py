"""What general.architecture says: which model_type of huggingface/families/ it is, and how its metadata tell the rest.

A row is (model_type, {key behind the architecture's name: key of a config.json, or None}, a function or None). The function gets
the file's keys and tensors (Keys) and the config so far, and adds what is computed, found in the tensors, or fixed in
llama.cpp's reading of the architecture. Keys: gguf-py's constants.py; what they hold: llama.cpp's converter (conversion/)
and its readers (src/models/).
"""

import math

from ..errors import InputError, shown
from ..fields import MOST, MOST_LAYERS
from .gguf import Skipped


class Keys:
    """A file's metadata under its architecture's name, and which tensors each layer has. read: the keys asked for."""

    def __init__(self, header, architecture):
        self.metadata, self.where, self.architecture = header.metadata, header.path, architecture
        self.tensors, self.read = header.tensors, set()
        nextn = self.count("nextn_predict_layers") or 0
        self.layers = self.count("block_count", needed=True) - nextn
        self.nextn = nextn
        if not 0 < self.layers <= MOST_LAYERS:
            self.refuse("block_count", self.layers + nextn, f"from {nextn + 1} to {MOST_LAYERS:,}")

    def get(self, key, needed=False):
        """The value under a key, or None."""
        self.read.add(key)
        value = self.metadata.get(f"{self.architecture}.{key}")
        if value is None and needed:
            raise InputError(f"{self.where}: the metadata key {self.architecture}.{key} is missing")
        if isinstance(value, Skipped):
            self.refuse(key, f"{value.count:,} entries", "one for each layer")
        return value

    def refuse(self, key, value, allowed):
        """Raise the error for a value that cannot be."""
        raise InputError(f"{self.where}: {self.architecture}.{key} = {shown(value)}; allowed: {allowed}")

    def one(self, key, needed=False):
        """The value for all layers: of a list the entry, if all are alike."""
        value = self.get(key, needed)
        if isinstance(value, list):
            if not value or any(each != value[0] for each in value):
                raise InputError(
                    f"{self.where}: {self.architecture}.{key} differs from layer to layer, which is not read"
                )
            value = value[0]
        return value

    def count(self, key, needed=False):
        """A whole number, or None."""
        value = self.one(key, needed)
        if value is not None and not _whole(value):
            self.refuse(key, value, "an integer from 0 to 2**40")
        return value

    def size(self, key):
        """A whole number above 0."""
        value = self.count(key, needed=True)
        return value or self.refuse(key, value, "an integer from 1 to 2**40")

    def each(self, key, kind=int):
        """A value for each layer: numbers, or (bool) yes and no."""
        value = self.get(key, needed=True)
        value = value[: self.layers] if isinstance(value, list) else [value] * self.layers
        if len(value) != self.layers or not all(map(_whole, value)):
            self.refuse(key, value, f"integers from 0 to 2**40, one for each of the {self.layers:,} layers")
        return [kind(each) for each in value]

    def holds(self, module):
        """Whether the first layer that could has a tensor that starts so; or a tensor of no layer is called so."""
        return f"{module}.weight" in self.tensors or self._first(module) is not None

    def where_held(self, module):
        """For each layer whether it has a tensor of this name."""
        return [
            any(f"blk.{layer}.{module}{ending}" in self.tensors for ending in ("", ".weight"))
            for layer in range(self.layers)
        ]

    def shape(self, module, axis, otherwise=None):
        """A size of a tensor: of no layer, or of the first layer that has it."""
        found = self.tensors.get(f"{module}.weight") or self._first(module)
        return otherwise if found is None or len(found.shape) < abs(axis) else found.shape[axis]

    def _first(self, module):
        for layer in range(self.layers):
            for ending in ("", ".weight"):
                found = self.tensors.get(f"blk.{layer}.{module}{ending}")
                if found is not None:
                    return found
        return None


def _whole(value):
    return isinstance(value, int) and 0 <= value <= MOST


# Keys that several architectures have ------------------------------------------------------------------------------

SIZES = {
    "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps", "attention.layer_norm_epsilon": "layer_norm_eps",
    "rope.freq_base": "rope_theta",
}  # fmt: skip
HEADS = SIZES | {"attention.head_count": "num_attention_heads"}
GROUPS = HEADS | {"attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim"}
FEED = {"feed_forward_length": "intermediate_size"}
DENSE = GROUPS | FEED
WINDOW = {"attention.sliding_window": "sliding_window"}
CLIP = {"attention.clamp_kqv": "clip_qkv"}
EXPERTS = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"}
WIDE = EXPERTS | {"expert_feed_forward_length": "moe_intermediate_size"}
DEEPSEEK = WIDE | {
    "expert_shared_count": "n_shared_experts", "leading_dense_block_count": "first_k_dense_replace",
    "expert_group_count": "n_group", "expert_group_used_count": "topk_group",
    "expert_weights_scale": "routed_scaling_factor", "expert_weights_norm": "norm_topk_prob",
}  # fmt: skip
SCALES = {
    "logit_scale": "logits_scaling", "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier", "attention.scale": "attention_multiplier",
}  # fmt: skip
INDEXER = {
    "attention.indexer.head_count": "index_n_heads", "attention.indexer.key_length": "index_head_dim",
    "attention.indexer.top_k": "index_topk",
}  # fmt: skip
LATENT = HEADS | FEED | {"attention.q_lora_rank": "q_lora_rank", "attention.kv_lora_rank": "kv_lora_rank"}
FULL, LINEAR = "full_attention", "linear_attention"
# keys of a config that mean something where the file leaves theirs out, whatever the default of the class
ABSENT = {
    "sliding_window": None, "attn_logit_softcapping": None, "final_logit_softcapping": None, "q_lora_rank": None,
    "clip_qkv": None, "n_shared_experts": 0, "first_k_dense_replace": 0, "num_kv_shared_layers": 0,
    "routed_scaling_factor": 1.0, "norm_topk_prob": False, "n_group": 1, "topk_group": 1,
    "logits_scaling": 1.0, "embedding_multiplier": 1.0, "residual_multiplier": 1.0,
}  # fmt: skip


def _without(keys, *some):
    return {key: name for key, name in keys.items() if name not in some}


def _width(g, c, module="ffn_up_exps"):
    """The width of experts from their tensor, where no key says it."""
    if c.get("moe_intermediate_size") is None:
        c["moe_intermediate_size"] = g.shape(module, -2)


def _biases(g, c):
    c["attention_bias"] = g.holds("attn_q.bias") and g.holds("attn_output.bias")


def all_biases(g, c):
    _biases(g, c)
    c["mlp_bias"] = g.holds("ffn_up.bias")


def _sliding(g, c, sliding="sliding_attention"):
    """The kinds of the layers from a pattern of yes and no, or every n-th full."""
    pattern = g.get("attention.sliding_window_pattern")
    if isinstance(pattern, list):
        c["layer_types"] = [sliding if each else FULL for each in g.each("attention.sliding_window_pattern", bool)]
    elif pattern is not None:
        every = g.size("attention.sliding_window_pattern")
        c["layer_types"] = [sliding if (layer + 1) % every else FULL for layer in range(g.layers)]


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
    _biases(g, c)


def gemma3(g, c):
    _sliding(g, c)
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
    _sliding(g, c)
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
    _biases(g, c)
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
    _sliding(g, c)


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
        _width(g, c)
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
    _sigmoid(g, c)


def _sigmoid(g, c):
    """Experts as DeepSeek V3 has them: a file that says nothing of groups has none."""
    if g.one("expert_gating_func") not in (None, 2):
        g.refuse("expert_gating_func", g.one("expert_gating_func"), "2 (sigmoid)")
    c |= {"num_nextn_predict_layers": g.nextn} if g.nextn else {}


def dots1(g, c):
    _biases(g, c)
    _sigmoid(g, c)


def hunyuan(g, c):
    _biases(g, c)
    c["intermediate_size"] = g.shape("ffn_up_exps", -2, c.get("intermediate_size"))


def ernie(g, c):
    c |= {"use_bias": g.holds("attn_q.bias"), "moe_layer_end_index": g.layers - 1}
    _width(g, c)


def minimax(g, c):
    _width(g, c)
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
    _width(g, c)
    _sigmoid(g, c)
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
    _sigmoid(g, c)
    if not g.nextn:
        c["num_nextn_predict_layers"] = 0


def _endings(g):
    return {name.split(".", 2)[-1] for name in g.tensors}


def glm_dsa(g, c):
    latent(g, c)
    _sigmoid(g, c)
    c["indexer_types"] = ["full" if each else "shared" for each in g.where_held("indexer.attn_k")]


def minicpm3(g, c):
    latent(g, c)


def kimi_linear(g, c):
    attention = [bool(each) for each in g.each("attention.head_count_kv")]
    latent(g, c)
    _sigmoid(g, c)
    c["linear_attn_config"] = {
        "full_attn_layers": [layer + 1 for layer, each in enumerate(attention) if each],
        "kda_layers": [layer + 1 for layer, each in enumerate(attention) if not each],
        "num_heads": g.shape("ssm_beta", 0, g.size("attention.head_count")), "head_dim": g.size("kda.head_dim"),
        "short_conv_kernel_size": g.size("ssm.conv_kernel"),
    }  # fmt: skip


# State spaces, linear attention, convolutions ------------------------------------------------------------------------


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
    _biases(g, c)
    c.setdefault("attention_multiplier", (c.get("head_dim") or 1) ** -0.5)  # Bamba's
    c["num_local_experts"] = c.pop("num_experts", None) or 0


def falcon_h1(g, c):
    _biases(g, c)
    c |= _mamba2_inside(g) | {"mamba_d_ssm": g.size("ssm.inner_size"), "mlp_bias": g.holds("ffn_up.bias"),
                              "mamba_rms_norm": g.holds("ssm_norm"), "projectors_bias": g.holds("ssm_out.bias")}  # fmt: skip


def nemotron_h(g, c):
    heads, widths = g.each("attention.head_count_kv"), g.each("feed_forward_length")
    number, sparse = g.size("ssm.time_step_rank"), g.where_held("ffn_gate_inp")
    kinds = [
        "attention" if head else ("moe" if each else "mlp") if wide else "mamba"
        for head, wide, each in zip(heads, widths, sparse)
    ]
    _biases(g, c)
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
        _sigmoid(g, c)
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
    _width(g, c)
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


HYBRID = _without(DENSE, "num_key_value_heads")
BASE = {"rope.freq_base": None}  # read, and of no use: the class keeps its own beside how frequencies are rescaled
SOFTCAPS = {"attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping"}
SOFTCAP = {"final_logit_softcapping": "final_logit_softcapping"}
SHARED = SOFTCAP | {"attention.shared_kv_layers": "num_kv_shared_layers"}
# general.architecture: (model_type, {key: key of a config.json}, what else there is to know)
ARCHITECTURES = {
    "llama": ("llama", DENSE | EXPERTS, llama),
    "mistral3": ("llama", DENSE | EXPERTS, llama),
    "llama4": ("llama4_text", DENSE | WIDE | {"interleave_moe_layer_step": "interleave_moe_layer_step"}, llama4),
    "qwen2": ("qwen2", DENSE | WINDOW, qwen2),
    "qwen2vl": ("qwen2", DENSE, None),
    "qwen3": ("qwen3", DENSE | WINDOW, qwen3),
    "qwen3vl": ("qwen3", DENSE, qwen3),
    "qwen2moe": ("qwen2_moe", DENSE | WIDE, qwen2moe),
    "qwen3moe": ("qwen3_moe", DENSE | WIDE, normalized(True)),
    "qwen3vlmoe": ("qwen3_moe", DENSE | WIDE, normalized(True)),
    "qwen3next": ("qwen3_next", DENSE | WIDE, qwen3next),
    "qwen35": ("qwen3_5_text", DENSE, qwen_linear),
    "qwen35moe": ("qwen3_5_moe_text", DENSE | WIDE, qwen_linear_moe),
    "gemma": ("gemma", DENSE, None),
    "gemma2": ("gemma2", DENSE | WINDOW | SOFTCAPS, None),
    "gemma3": ("gemma3_text", DENSE | WINDOW | SOFTCAP, gemma3),
    "gemma3n": ("gemma3n_text", GROUPS | WINDOW | SHARED | {"altup.num_inputs": "altup_num_inputs",
                                                           "altup.active_idx": "altup_active_idx"}, gemma3n),
    "gemma4": ("gemma4_text", _without(GROUPS, "num_key_value_heads", "head_dim") | WINDOW | SHARED | WIDE | BASE, gemma4),
    "phi2": ("phi", DENSE, None),
    "phi3": ("phi3", DENSE | WINDOW, phi3),
    "phimoe": ("phimoe", DENSE | WINDOW | EXPERTS, phimoe),
    "gpt2": ("gpt2", HEADS | FEED, gpt2),
    "gptneox": ("gpt_neox", DENSE | {"use_parallel_residual": "use_parallel_residual"}, None),
    "bloom": ("bloom", HEADS, bloom),
    "mpt": ("mpt", HEADS, mpt),
    "falcon": ("falcon", HEADS | FEED, falcon),
    "starcoder2": ("starcoder2", DENSE, starcoder2),
    "stablelm": ("stablelm", DENSE | {"use_parallel_residual": "use_parallel_residual"}, stablelm),
    "olmo": ("olmo", DENSE | CLIP, _biases),
    "olmo2": ("olmo2", DENSE | WINDOW, olmo2),
    "olmoe": ("olmoe", DENSE | EXPERTS | CLIP, olmoe),
    "command-r": ("cohere", DENSE | {"logit_scale": "logit_scale"}, cohere),
    "cohere2": ("cohere2", DENSE | WINDOW | {"logit_scale": "logit_scale"}, _sliding),
    "granite": ("granite", DENSE | EXPERTS | SCALES, granite),
    "granitemoe": ("granitemoe", DENSE | EXPERTS | SCALES, granitemoe),
    "granitehybrid": ("granitemoehybrid", HYBRID | EXPERTS | SCALES, granitehybrid),
    "smollm3": ("smollm3", DENSE, llama),
    "exaone4": ("exaone4", DENSE | WINDOW, _sliding),
    "glm4": ("glm4", DENSE, qkv_bias),
    "glm4moe": ("glm4_moe", DENSE | DEEPSEEK, glm4moe),
    "gpt-oss": ("gpt_oss", DENSE | WIDE | WINDOW | BASE, gpt_oss),
    "seed_oss": ("seed_oss", DENSE, seed_oss),
    "nemotron": ("nemotron", DENSE, all_biases),
    "arcee": ("arcee", DENSE, all_biases),
    "apertus": ("apertus", DENSE | BASE, _biases),
    "ernie4_5": ("ernie4_5", DENSE, starcoder2),
    "ernie4_5-moe": ("ernie4_5_moe", DENSE | WIDE | {
        "expert_shared_count": "moe_num_shared_experts", "leading_dense_block_count": "moe_layer_start_index",
        "interleave_moe_layer_step": "moe_layer_interval"}, ernie),
    "hunyuan-moe": ("hunyuan_v1_moe", DENSE | EXPERTS, hunyuan),
    "dots1": ("dots1", DENSE | DEEPSEEK, dots1),
    "minimax-m2": ("minimax_m2", DENSE | WIDE, minimax),
    "mimo2": ("mimo_v2_flash", _without(DENSE, "num_key_value_heads") | WINDOW
              | _without(DEEPSEEK, "n_shared_experts", "first_k_dense_replace"), mimo),
    "dbrx": ("dbrx", HEADS | FEED | EXPERTS | {"attention.head_count_kv": "num_key_value_heads"}, dbrx),
    "deepseek2": ("deepseek_v3", LATENT | DEEPSEEK, deepseek2),
    "glm-dsa": ("glm_moe_dsa", LATENT | DEEPSEEK | INDEXER, glm_dsa),
    "minicpm3": ("minicpm3", LATENT, minicpm3),
    "kimi-linear": ("kimi_linear", LATENT | DEEPSEEK, kimi_linear),
    "mamba": ("mamba", _without(SIZES, "max_position_embeddings"), mamba),
    "mamba2": ("mamba2", _without(SIZES, "max_position_embeddings"), mamba2),
    "jamba": ("jamba", _without(HYBRID, "head_dim") | EXPERTS, jamba),
    "falcon-h1": ("falcon_h1", DENSE, falcon_h1),
    "nemotron_h": ("nemotron_h", _without(HYBRID, "intermediate_size"), nemotron_h),
    "nemotron_h_moe": ("nemotron_h", _without(HYBRID, "intermediate_size")
                       | _without(DEEPSEEK, "first_k_dense_replace"), nemotron_h),
    "lfm2": ("lfm2", HYBRID, lfm2_dense),
    "lfm2moe": ("lfm2_moe", HYBRID | WIDE, lfm2moe),
    "bert": ("bert", _without(HEADS, "rope_theta", "max_position_embeddings") | FEED, bert),
    "t5": ("t5", HEADS | FEED | {"attention.key_length": "head_dim",
                                 "attention.relative_buckets_count": "relative_attention_num_buckets"}, t5),
}  # fmt: skip
# Keys that say nothing about costs, or what the tensors say as well, by how they start
IRRELEVANT = """general. tokenizer. quantize. split. imatrix. rope.dimension_count rope.dimension_sections rope.scaling
rope.freq_base_swa rope.dimension_count_swa attention.value_length attention.key_length_swa attention.causal
attention.layer_norm attention.max_alibi_bias vocab_size pooling_type decoder_start_token_id tensor_data_layout
expert_shared_feed_forward_length embedding_length_out expert_gating_func classifier. n_deepstack_layers xielu.
full_attention_interval attention.temperature""".split()
