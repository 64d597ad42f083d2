"""Published models for which transformers has no class: configs against our cards, and checkpoints converted."""

import json
from pathlib import Path

import numpy as np
import pytest
from checkpoints import safetensors, table
from safetensors.numpy import load_file, save_file

import lmcalc
from lmcalc import reference
from lmcalc.huggingface import read
from lmcalc.huggingface.families import FAMILIES, OUTSIDE
from lmcalc.huggingface.names import NAMES
from lmcalc.lenses.params import mtp, params
from lmcalc.questions.inspect import inspect

RECORDED = Path(__file__).parent / "recorded" / "logits"
# Each is the config.json of the model, without what neither sizes nor structure depend on: of the first eight as their
# publishers have it (the sources are those of the cards), of the rest as copies of a paper's table or of its code's
# defaults have it.
CONFIGS = {
    "baichuan-2-7b": {
        "model_type": "baichuan", "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008,
        "max_position_embeddings": 4096, "model_max_length": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
        "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "vocab_size": 125696, "z_loss_weight": 0,
    },
    "baichuan-2-13b": {
        "model_type": "baichuan", "hidden_size": 5120, "intermediate_size": 13696, "num_attention_heads": 40,
        "num_hidden_layers": 40, "vocab_size": 125696,
    },
    "qwen-1-7b": {
        "model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016, "kv_channels": 128,
        "layer_norm_epsilon": 1e-6, "max_position_embeddings": 32768, "no_bias": True, "num_attention_heads": 32,
        "num_hidden_layers": 32, "rotary_emb_base": 10000, "rotary_pct": 1.0, "scale_attn_weights": True,
        "seq_length": 8192, "tie_word_embeddings": False, "use_dynamic_ntk": True, "use_logn_attn": True,
        "vocab_size": 151936,
    },
    "glm-4-9b": {
        "model_type": "chatglm", "add_bias_linear": False, "add_qkv_bias": True, "ffn_hidden_size": 13696,
        "apply_query_key_layer_scaling": True, "apply_residual_connection_post_layernorm": False, "hidden_size": 4096,
        "kv_channels": 128, "layernorm_epsilon": 1.5625e-07, "multi_query_attention": True, "multi_query_group_num": 2,
        "num_attention_heads": 32, "num_layers": 40, "original_rope": True, "padded_vocab_size": 151552,
        "post_layer_norm": True, "rmsnorm": True, "seq_length": 8192, "tie_word_embeddings": False,
    },
    "internlm2-7b": {
        "model_type": "internlm2", "bias": False, "hidden_act": "silu", "hidden_size": 4096,
        "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_scaling": None,
        "rope_theta": 1000000, "tie_word_embeddings": False, "vocab_size": 92544,
    },
    "mimo-7b": {
        "model_type": "mimo", "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 11008, "vocab_size": 151680,
        "max_position_embeddings": 32768, "rope_theta": 640000, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "attention_bias": True, "sliding_window": 32768, "max_window_layers": 32, "use_sliding_window": False,
        "num_nextn_predict_layers": 1, "tie_word_embeddings": False,
    },
    "deepseek-moe-16b": {
        "model_type": "deepseek", "attention_bias": False, "first_k_dense_replace": 1, "hidden_act": "silu",
        "hidden_size": 2048, "intermediate_size": 10944, "max_position_embeddings": 4096,
        "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 64, "n_shared_experts": 2,
        "norm_topk_prob": False, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 28,
        "num_key_value_heads": 16, "rms_norm_eps": 1e-6, "rope_theta": 10000, "scoring_func": "softmax",
        "tie_word_embeddings": False, "vocab_size": 102400,
    },
    "phi-3-small-8k": {
        "model_type": "phi3small", "blocksparse_block_size": 64, "blocksparse_homo_head_pattern": False,
        "blocksparse_num_local_blocks": 16, "blocksparse_vert_stride": 8, "dense_attention_every_n_layers": 2,
        "ff_intermediate_size": 14336, "gegelu_limit": 20.0, "hidden_act": "gegelu", "hidden_size": 4096,
        "layer_norm_epsilon": 1e-5, "max_position_embeddings": 8192, "mup_attn_multiplier": 1.0,
        "mup_embedding_multiplier": 10.0, "mup_use_scaling": True, "mup_width_multiplier": 8.0,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "attention_bias": False,
        "rope_embedding_base": 1000000, "rope_position_scale": 1.0, "vocab_size": 100352,
    },
    "grok-1": {
        "model_type": "grok-1", "hidden_size": 6144, "num_hidden_layers": 64, "num_attention_heads": 48,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072, "widening_factor": 8,
        "intermediate_size": 32768, "num_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 8192,
        "embedding_multiplier_scale": 78.38367176906169, "output_multiplier_scale": 0.5773502691896257,
        "attn_output_multiplier": 0.08838834764831845, "hidden_act": "gelu", "gated": True,
    },
    "step-3": {
        "model_type": "step3_text", "hidden_size": 7168, "intermediate_size": 18432, "num_attention_heads": 64,
        "num_attention_groups": 1, "num_hidden_layers": 61, "vocab_size": 128815, "rms_norm_eps": 1e-5,
        "moe_intermediate_size": 5120, "moe_num_experts": 48, "moe_top_k": 3, "share_expert_dim": 5120,
        "share_q_dim": 2048, "head_dim": 256, "rope_theta": 500000, "max_position_embedding": 65536,
        "moe_layers": "4..60",
    },
    "rwkv5-3b": {
        "model_type": "rwkv5", "attention_hidden_size": 2560, "context_length": 4096, "head_size": 64,
        "hidden_size": 2560, "intermediate_size": None, "layer_norm_epsilon": 1e-5, "model_version": "5_2",
        "num_hidden_layers": 32, "rescale_every": 6, "tie_word_embeddings": False, "vocab_size": 65536,
    },
    "dclm-7b": {
        "model_type": "openlm", "hidden_dim": 4096, "n_layers": 32, "n_heads": 32, "vocab_size": 50432,
        "seq_len": 2048, "post_embed_norm": False, "weight_tying": False,
    },
    "gpt3-xl": {
        "model_type": "gpt3", "n_layer": 24, "n_embd": 2048, "n_head": 24, "head_dim": 128, "n_inner": 8192,
        "n_positions": 2048, "vocab_size": 50257, "tie_word_embeddings": True,
        "attention_pattern": "alternating dense / locally banded sparse",
    },
    "gopher-280b": {
        "model_type": "gopher", "hidden_size": 16384, "intermediate_size": 65536, "num_hidden_layers": 80,
        "num_attention_heads": 128, "head_dim": 128,
    },
    "chinchilla-70b": {
        "model_type": "chinchilla", "hidden_size": 8192, "intermediate_size": 32768, "num_hidden_layers": 80,
        "num_attention_heads": 64, "head_dim": 128,
    },
    "lamda-137b": {
        "model_type": "lamda", "hidden_size": 8192, "intermediate_size": 65536, "num_hidden_layers": 64,
        "num_attention_heads": 128, "head_dim": 128, "vocab_size": 32000, "activation": "gated-gelu",
        "position_encoding": "relative attention as in T5",
    },
    "palm-8b": {
        "model_type": "palm", "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32,
        "num_attention_heads": 16, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000,
        "activation": "swiglu", "parallel_block": True, "bias": False, "position": "rope",
    },
    "transformer-base": {
        "model_type": "encoder-decoder", "d_model": 512, "d_ff": 2048, "num_heads": 8, "d_kv": 64, "num_layers": 6,
        "num_decoder_layers": 6, "activation": "relu", "norm": "layernorm", "norm_placement": "post",
        "position_encoding": "sinusoidal", "tie_word_embeddings": True, "is_gated_act": False, "vocab_size": 37000,
    },
}  # fmt: skip
# keys that no default stands for
NEEDED = {
    "baichuan-2-7b": "hidden_size intermediate_size num_attention_heads num_hidden_layers vocab_size",
    "qwen-1-7b": "hidden_size intermediate_size num_attention_heads num_hidden_layers vocab_size",
    "glm-4-9b": "ffn_hidden_size hidden_size multi_query_attention multi_query_group_num num_attention_heads "
    "num_layers padded_vocab_size",
    "internlm2-7b": "hidden_size intermediate_size num_attention_heads num_hidden_layers vocab_size",
    "mimo-7b": "hidden_size intermediate_size num_attention_heads num_hidden_layers vocab_size",
    "deepseek-moe-16b": "hidden_size intermediate_size moe_intermediate_size num_attention_heads num_experts_per_tok "
    "num_hidden_layers vocab_size",
    "phi-3-small-8k": "hidden_size ff_intermediate_size num_attention_heads num_hidden_layers vocab_size",
    "grok-1": "hidden_size intermediate_size num_attention_heads num_experts num_experts_per_tok num_hidden_layers "
    "vocab_size attn_output_multiplier embedding_multiplier_scale output_multiplier_scale",
    "step-3": "hidden_size intermediate_size num_attention_heads num_hidden_layers vocab_size moe_intermediate_size "
    "moe_num_experts moe_top_k share_expert_dim share_q_dim",
    "rwkv5-3b": "head_size hidden_size num_hidden_layers vocab_size",
    "dclm-7b": "hidden_dim n_layers n_heads vocab_size",
    "gpt3-xl": "n_layer n_embd n_head vocab_size",
    "gopher-280b": "hidden_size intermediate_size num_hidden_layers num_attention_heads",
    "lamda-137b": "hidden_size intermediate_size num_hidden_layers num_attention_heads vocab_size",
    "palm-8b": "hidden_size intermediate_size num_hidden_layers num_attention_heads vocab_size",
    "transformer-base": "d_model d_ff num_heads num_layers num_decoder_layers",
}


def changed(name, **changes):
    found = CONFIGS[name] | changes
    return {key: value for key, value in found.items() if value is not ...}


# Configs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGS)
def test_has_the_parameters_of_our_card(name):
    model, card = lmcalc.load(CONFIGS[name]), lmcalc.load(name)
    assert params(model) == params(card) and model.family == CONFIGS[name]["model_type"]
    one, other = (lmcalc.report(each, prompt=512, context=512).to_dict() for each in (model, card))
    assert one["cache"] == other["cache"]
    for phase in ("prefill", "decode"):
        assert one[phase]["flops"]["contraction"] == other[phase]["flops"]["contraction"]
    assert not [note for note in model.notes if "not read" in note]


def test_every_type_outside_transformers_has_a_config_here_or_elsewhere():
    tested = {config["model_type"] for config in CONFIGS.values()} | {"internlm", "rwkv5"}
    own = {name for name, (file, _) in OUTSIDE.items() if file in ("outside", "papers")}
    assert own == tested and not own & set(FAMILIES)


@pytest.mark.parametrize("name, key", [(name, key) for name, keys in NEEDED.items() for key in keys.split()])
def test_a_missing_key_is_named(name, key):
    with pytest.raises(lmcalc.InputError, match=f"^config: {key} = None; allowed: "):
        lmcalc.load(changed(name, **{key: ...}))


def test_what_the_notes_say():
    assert "positions are ALiBi" in lmcalc.load(CONFIGS["baichuan-2-13b"]).notes[0]
    assert "upper bounds" in lmcalc.load(CONFIGS["phi-3-small-8k"]).notes[0]
    assert lmcalc.load(CONFIGS["step-3"]).notes == ("moe_layers = '4..60' is read as layers 4 to 59.",)
    assert "not public" in lmcalc.load(CONFIGS["gpt3-xl"]).notes[0]
    assert "vocabulary 32,000" in lmcalc.load(CONFIGS["gopher-280b"]).notes[0]
    assert "vocabulary" not in lmcalc.load(changed("gopher-280b", vocab_size=32_000)).notes[0]
    assert "about 37,000" in lmcalc.load(changed("transformer-base", vocab_size=...)).notes[0]
    assert lmcalc.load(CONFIGS["transformer-base"]).notes == ()
    assert "DCLM" in lmcalc.load(CONFIGS["dclm-7b"]).notes[0]
    assert lmcalc.load(changed("dclm-7b", qk_norm=True, model_norm="rms_norm")).notes == ()
    flags = {"model_norm": "gain_only_lp_layer_norm", "qk_norm": True, "lr": 0.002}
    assert lmcalc.load(changed("dclm-7b", params_args_dict=flags)).notes == ()
    note = lmcalc.load(changed("internlm2-7b", colour="red")).notes
    assert note == ("config keys not read: colour.",)


def test_forms_of_a_type():
    """What published models of the same type have otherwise."""
    rotary, alibi = lmcalc.load(CONFIGS["baichuan-2-7b"]).fields, lmcalc.load(CONFIGS["baichuan-2-13b"]).fields
    assert (rotary["positions"], alibi["positions"], alibi["max_positions"]) == ("rotary", "alibi", 4096)
    assert "rope_base" not in alibi
    biased = lmcalc.load(changed("qwen-1-7b", no_bias=False)).fields
    assert (biased["attention_bias"], biased["ffn_bias"]) == ("all", True)
    later = lmcalc.load(changed("glm-4-9b", rope_ratio=500, add_bias_linear=True)).fields
    assert (later["rope_base"], later["rotary_dim"], later["attention_bias"]) == (5e6, 64, "all")
    assert lmcalc.load(changed("internlm2-7b", bias=...)).fields["attention_bias"] == "all"
    assert mtp(lmcalc.load(CONFIGS["mimo-7b"])) == 210_790_400
    assert mtp(lmcalc.load(changed("mimo-7b", num_nextn_predict_layers=...))) == 0
    dense = lmcalc.load(changed("deepseek-moe-16b", n_routed_experts=...)).fields
    assert "n_experts" not in dense and dense["d_ff"] == 10944
    for layers in (list(range(4, 60)), ",".join(map(str, range(4, 60))), ...):
        given = changed("step-3", moe_layers=..., moe_layers_enum=layers)
        assert params(lmcalc.load(given)) == params(lmcalc.load("step-3"))
    gelu = lmcalc.load(changed("dclm-7b", ffn_type="gelu", qk_norm=False, model_norm="default_layer_norm")).fields
    assert (gelu["ffn"], gelu["d_ff"], gelu["norm"]) == ("gelu", 16384, "layernorm") and "qk_norm" not in gelu


def test_internlm():
    """Biases in attention, and a rotary base that grows with the context."""
    config = changed("internlm2-7b", model_type="internlm", bias=..., rope_theta=..., num_key_value_heads=...)
    found = lmcalc.load(config).fields
    assert (found["attention_bias"], found["n_kv_heads"], found["rope_base"]) == ("all", 32, 10000.0)
    assert found["rope_scaling"] == {"kind": "dynamic", "factor": 1.0, "original_max_positions": 32768}
    plain = lmcalc.load(config | {"rotary": {"base": 1e6, "type": "origin"}, "bias": False}).fields
    assert (plain["attention_bias"], plain["rope_base"], plain.get("rope_scaling")) == ("none", 1e6, None)


REFUSED = [
    ("glm-4-9b", {"multi_query_attention": False}, "multi_query_attention = False; allowed: true"),
    ("glm-4-9b", {"multi_query_group_num": 5}, "multi_query_group_num = 5; allowed: a divisor of the 32 query heads"),
    ("glm-4-9b", {"position_encoding_2d": True}, "not the first ChatGLM"),
    ("qwen-1-7b", {"intermediate_size": 22017}, "intermediate_size = 22017; allowed: an even number"),
    ("step-3", {"moe_layers": "4..70"}, "moe_layers = '4..70'; allowed: numbers of layers below 61"),
    ("step-3", {"moe_layers": "all"}, "moe_layers = 'all'; allowed: numbers of layers"),
    ("phi-3-small-8k", {"hidden_act": "gelu"}, "hidden_act = 'gelu'; allowed: 'gegelu'"),
    ("grok-1", {"gated": False}, "gated = False; allowed: True"),
    ("palm-8b", {"bias": True}, "bias = True; allowed: False"),
    ("lamda-137b", {"position_encoding": "rope"}, "position_encoding = 'rope'"),
    ("dclm-7b", {"ffn_type": "moe"}, "ffn_type = 'moe'; allowed: one of swiglu"),
    ("transformer-base", {"encoder": {"model_type": "bert"}}, "two models of any kind tied together are not read"),
]


@pytest.mark.parametrize("name, changes, message", REFUSED)
def test_refused(name, changes, message):
    with pytest.raises(lmcalc.InputError) as error:
        lmcalc.load(changed(name, **changes))
    assert message in str(error.value)


# Checkpoints ------------------------------------------------------------------------------------------------------
# Recorded checkpoints of transformers, laid out by hand as the code of these models does, must give the same logits.


def layers(weights):
    return sorted({name.split(".")[2] for name in weights if name.startswith("model.layers.")})


def by_group(q, k, v, groups):
    """Queries, keys and values of one key/value head after the other."""
    parts = [np.split(each, groups) for each in (q, k, v)]
    return np.concatenate([each for group in zip(*parts) for each in group])


def internlm2(weights):
    found = {
        "model.tok_embeddings.weight": weights["model.embed_tokens.weight"],
        "model.norm.weight": weights["model.norm.weight"],
        "output.weight": weights["lm_head.weight"],
    }
    for at in layers(weights):
        old, new = f"model.layers.{at}.", f"model.layers.{at}."
        qkv = [weights[f"{old}self_attn.{each}_proj.weight"] for each in "qkv"]
        found[new + "attention.wqkv.weight"] = by_group(*qkv, 2)
        for ours, theirs in (("attention.wo", "self_attn.o_proj"), ("attention_norm", "input_layernorm"),
                             ("ffn_norm", "post_attention_layernorm"), ("feed_forward.w1", "mlp.gate_proj"),
                             ("feed_forward.w3", "mlp.up_proj"), ("feed_forward.w2", "mlp.down_proj")):  # fmt: skip
            found[f"{new}{ours}.weight"] = weights[f"{old}{theirs}.weight"]
    return found


def repeated(weights, at, ending="weight"):
    """Queries, keys and values of a layer, the 2 heads of the latter each twice."""
    q, k, v = (weights[f"model.layers.{at}.self_attn.{each}_proj.{ending}"] for each in "qkv")
    heads = [np.repeat(each.reshape(2, -1, *each.shape[1:]), 2, 0) for each in (k, v)]
    return q, *(each.reshape(-1, *each.shape[2:]) for each in heads)


def baichuan(weights):
    found = {
        name: each for name, each in weights.items() if not name.endswith(tuple(f"{n}_proj.weight" for n in "qkv"))
    }
    for at in layers(weights):
        found[f"model.layers.{at}.self_attn.W_pack.weight"] = np.concatenate(repeated(weights, at))
    return found


def qwen(weights):
    found = {
        "transformer.wte.weight": weights["model.embed_tokens.weight"],
        "transformer.ln_f.weight": weights["model.norm.weight"],
        "lm_head.weight": weights["lm_head.weight"],
        "transformer.rotary_emb.inv_freq": np.ones(3, "float32"),
    }
    for at in layers(weights):
        old, new = f"model.layers.{at}.", f"transformer.h.{at}."
        for ending in ("weight", "bias"):
            found[f"{new}attn.c_attn.{ending}"] = np.concatenate(repeated(weights, at, ending))
        for ours, theirs in (("attn.c_proj", "self_attn.o_proj"), ("ln_1", "input_layernorm"),
                             ("ln_2", "post_attention_layernorm"), ("mlp.w2", "mlp.gate_proj"),
                             ("mlp.w1", "mlp.up_proj"), ("mlp.c_proj", "mlp.down_proj")):  # fmt: skip
            found[f"{new}{ours}.weight"] = weights[f"{old}{theirs}.weight"]
    return found


def chatglm(weights):
    found = {
        "transformer.embedding.word_embeddings.weight": weights["model.embed_tokens.weight"],
        "transformer.rotary_pos_emb.inv_freq": np.ones(2, "float32"),
        "transformer.encoder.final_layernorm.weight": weights["model.norm.weight"],
        "transformer.output_layer.weight": weights["lm_head.weight"],
    }
    for at in layers(weights):
        old, new = f"model.layers.{at}.", f"transformer.encoder.layers.{at}."
        for ending in ("weight", "bias"):
            qkv = [weights[f"{old}self_attn.{each}_proj.{ending}"] for each in "qkv"]
            found[f"{new}self_attention.query_key_value.{ending}"] = np.concatenate(qkv)
        for ours, theirs in (("self_attention.dense", "self_attn.o_proj"), ("input_layernorm", "input_layernorm"),
                             ("post_attention_layernorm", "post_attention_layernorm"),
                             ("mlp.dense_h_to_4h", "mlp.gate_up_proj"),
                             ("mlp.dense_4h_to_h", "mlp.down_proj")):  # fmt: skip
            found[f"{new}{ours}.weight"] = weights[f"{old}{theirs}.weight"]
    return found


def deepseek(weights):
    parts = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj", "gate": "gate"}
    found = {}
    for name, each in weights.items():
        last = name.split(".")[-2]
        found[name.replace("block_sparse_moe", "mlp").replace(f".{last}.", f".{parts.get(last, last)}.")] = each
    return found


SIZES = ("hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size", "rms_norm_eps",
         "max_position_embeddings")  # fmt: skip
# model_type: (recording, how its file is laid out, keys of its config beside SIZES)
CONVERTED = {
    "internlm": ("llama", dict, {"bias": False, "rotary": {"base": 100.0}, "num_key_value_heads": 2, "head_dim": 8,
                                 "intermediate_size": 28}),
    "internlm2": ("llama", internlm2, {"bias": False, "rope_theta": 100.0, "num_key_value_heads": 2, "head_dim": 8,
                                       "intermediate_size": 28}),
    "baichuan": ("llama", baichuan, {"rope_theta": 100.0, "head_dim": 8, "intermediate_size": 28}),
    "qwen": ("qwen2", qwen, {"rotary_emb_base": 100, "intermediate_size": 56, "layer_norm_epsilon": 1e-6,
                             "kv_channels": 6}),
    "chatglm": ("glm", chatglm, {"rope_ratio": 0.01, "kv_channels": 8, "multi_query_attention": True, "num_layers": 2,
                                 "multi_query_group_num": 2, "add_qkv_bias": True, "ffn_hidden_size": 28,
                                 "padded_vocab_size": 53, "seq_length": 64, "layernorm_epsilon": 1.5625e-07}),
    "mimo": ("qwen2", dict, {"rope_theta": 100.0, "num_key_value_heads": 2, "intermediate_size": 28}),
    "deepseek": ("mixtral", deepseek, {"rope_theta": 100.0, "num_key_value_heads": 2, "intermediate_size": 33,
                                       "moe_intermediate_size": 10, "n_routed_experts": 5, "num_experts_per_tok": 2,
                                       "norm_topk_prob": True}),
}  # fmt: skip


def converted(folder, model_type, change=lambda weights: None):
    """A checkpoint of a type, from a recorded one."""
    name, lay, config = CONVERTED[model_type]
    old = read(RECORDED / name / "config.json")
    weights = dict(lay(load_file(RECORDED / name / "model.safetensors")))
    change(weights)
    save_file({key: np.ascontiguousarray(value) for key, value in weights.items()}, folder / "model.safetensors")
    used = {"chatglm": ("hidden_size", "num_attention_heads"), "qwen": tuple(set(SIZES) - {"rms_norm_eps"})}
    given = {key: old[key] for key in used.get(model_type, SIZES)}
    (folder / "config.json").write_text(json.dumps(given | {"model_type": model_type} | config))
    return folder


@pytest.mark.parametrize("model_type", CONVERTED)
def test_logits_of_converted_checkpoints(model_type, tmp_path):
    expected = np.load(RECORDED / CONVERTED[model_type][0] / "expected.npz")
    logits, _ = reference.open(converted(tmp_path, model_type))(expected["input_ids"])
    assert abs(logits - expected["logits"]).max() <= 1e-6 * abs(expected["logits"]).max()


@pytest.mark.parametrize("model_type", CONVERTED)
def test_inspect_names_each_difference(model_type, tmp_path):
    found = inspect(converted(tmp_path, model_type))
    assert found["differences"] == [] and found["against"]["family"] == model_type
    assert found["params"]["total"] == lmcalc.report(tmp_path).to_dict()["params"]["total"]
    stored = table(tmp_path / "model.safetensors")
    tensor = next(name for name, (_, shape) in stored.items() if len(shape) == 2 and shape[0] != shape[1])
    dtype, shape = stored.pop(tensor)
    for changes, problem in (
        ({}, {tensor: f"missing; needed: shape {shape}"}),
        ({tensor: (dtype, shape[::-1])}, {tensor: f"shape {shape[::-1]}; needed: {shape}"}),
        ({tensor: (dtype, shape), "x.weight": (dtype, [2])}, {"x.weight": "not used by the model"}),
    ):
        safetensors(tmp_path / "model.safetensors", stored | changes)
        rows = inspect(tmp_path)["differences"]
        assert {row["tensor"]: row["problem"] for row in rows} == problem


def test_prediction_layers_of_mimo(tmp_path):
    """Their tensors (modeling_mimo.py, MiMoMTPLayers) are counted apart."""

    def predict(weights):
        for name, each in list(weights.items()):
            if name.startswith("model.layers.1."):
                weights[name.replace("layers.1", "mtp_layers.0")] = each
        for name in ("token_layernorm", "hidden_layernorm", "final_layernorm"):
            weights[f"model.mtp_layers.0.{name}.weight"] = np.ones(24, "float32")
        weights["model.mtp_layers.0.input_proj.weight"] = np.ones((24, 48), "float32")

    folder = converted(tmp_path, "mimo", predict)
    config = json.loads((folder / "config.json").read_text()) | {"num_nextn_predict_layers": 1}
    (folder / "config.json").write_text(json.dumps(config))
    found = inspect(folder)
    assert found["differences"] == [] and found["params"]["mtp"] == mtp(lmcalc.load(folder)) > 0


def test_phi3_small(tmp_path):
    """Its forward pass, written again: grouped projections, a clamped GELU of which every second entry is the gate."""
    d, heads, kv, h, f, v = 24, 4, 2, 6, 10, 31
    rng = np.random.default_rng(5)
    shapes = {
        "model.embed_tokens.weight": (v, d),
        "model.final_layernorm.weight": (d,),
        "model.final_layernorm.bias": (d,),
    }
    for at in range(2):
        shapes |= {f"model.layers.{at}.{name}": shape for name, shape in {
            "input_layernorm.weight": (d,), "input_layernorm.bias": (d,), "post_attention_layernorm.weight": (d,),
            "post_attention_layernorm.bias": (d,), "self_attn.query_key_value.weight": ((heads + 2 * kv) * h, d),
            "self_attn.query_key_value.bias": ((heads + 2 * kv) * h,), "self_attn.dense.weight": (d, d),
            "self_attn.dense.bias": (d,), "mlp.up_proj.weight": (2 * f, d), "mlp.up_proj.bias": (2 * f,),
            "mlp.down_proj.weight": (d, f), "mlp.down_proj.bias": (d,)}.items()}  # fmt: skip
    w = {name: rng.normal(0.0, 0.3, shape) for name, shape in shapes.items()}
    save_file(w, tmp_path / "model.safetensors")
    config = {"model_type": "phi3small", "hidden_size": d, "num_attention_heads": heads, "num_key_value_heads": kv,
              "ff_intermediate_size": f, "vocab_size": v, "num_hidden_layers": 2, "gegelu_limit": 1.5,
              "rope_embedding_base": 50.0, "dense_attention_every_n_layers": 1}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    ids = rng.integers(0, v, (1, 7))
    logits, _ = reference.open(tmp_path)(ids)

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * w[name + ".weight"] + w[name + ".bias"]

    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    angles = np.arange(7)[:, None] * 50.0 ** (-np.arange(0, h, 2) / h)
    cos, sin = (np.tile(each, 2) for each in (np.cos(angles), np.sin(angles)))

    def turned(x):
        return x * cos + np.concatenate([-x[..., h // 2 :], x[..., : h // 2]], -1) * sin

    x = 10.0 * w["model.embed_tokens.weight"][ids[0]]
    for at in range(2):
        name = f"model.layers.{at}."
        mixed = linear(norm(x, name + "input_layernorm"), name + "self_attn.query_key_value")
        mixed = mixed.reshape(7, kv, heads // kv + 2, h).transpose(1, 2, 0, 3)  # (kv, q.. k v, T, h)
        q, k, values = turned(mixed[:, :-2]), turned(mixed[:, -2:-1]), mixed[:, -1:]
        scores = np.where(np.tri(7, dtype=bool), q @ k.swapaxes(-1, -2) / h, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        out = (scores / scores.sum(-1, keepdims=True)) @ values
        x = x + linear(out.transpose(2, 0, 1, 3).reshape(7, d), name + "self_attn.dense")
        both = linear(norm(x, name + "post_attention_layernorm"), name + "mlp.up_proj")
        gate, up = np.minimum(both[:, ::2], 1.5), np.clip(both[:, 1::2], -1.5, 1.5)
        x = x + linear(gate / (1 + np.exp(-1.702 * gate)) * (up + 1), name + "mlp.down_proj")
    expected = norm(x, "model.final_layernorm") @ w["model.embed_tokens.weight"].T / 8.0
    assert abs(logits[0] - expected).max() < 1e-12 * abs(expected).max()


def test_types_without_known_names(tmp_path):
    """Their files are read, and not held against a model."""
    unnamed = [name for name in CONFIGS if CONFIGS[name]["model_type"] not in NAMES]
    assert "grok-1" in unnamed and "step-3" in unnamed
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["grok-1"]))
    safetensors(tmp_path / "model.safetensors", {"model.embed.weight": ("BF16", (4, 3))})
    found = inspect(tmp_path)
    assert found["params"]["total"] == 12 and found["against"] is None and found["differences"] == []
    assert "names of tensors are not known for model_type 'grok-1'" in found["notes"][0]
    with pytest.raises(lmcalc.InputError, match="names of tensors are not known for model_type 'grok-1'"):
        reference.open(tmp_path)
    packed = {"quant_method": "awq", "bits": 4, "group_size": 128}
    model = lmcalc.load(CONFIGS["grok-1"] | {"quantization_config": packed})
    assert model.storage is None and "which of them are packed" in model.notes[-1]
