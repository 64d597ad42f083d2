"""Later adapters, of dense decoders above all: published sums, the same in older keys, what is refused."""

from pathlib import Path

import pytest

import lmcalc
from lmcalc import reference
from lmcalc.huggingface import read, tensors, translate
from lmcalc.huggingface.checkpoint import Checkpoint
from lmcalc.lenses.params import params

RECORDED = Path(__file__).parent / "recorded" / "logits"
FULL, SLIDING = "full_attention", "sliding_attention"


def fields(model_type, **config):
    return translate({"model_type": model_type, **config})[0]


def notes(model_type, **config):
    return translate({"model_type": model_type, **config})[2]


# Sums that are published ---------------------------------------------------------------------------------------------

PUBLISHED = [
    # model cards of Ministral 8B (2410) and Mistral Small 3.1, whose text part is Mistral Small 3
    ("ministral", {"num_hidden_layers": 36, "intermediate_size": 12288, "head_dim": 128, "vocab_size": 131072,
                   "sliding_window": 32768}, 8_019_808_256),
    ("mistral3", {"text_config": {"hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40,
                                  "head_dim": 128, "vocab_size": 131072}}, 23_572_403_200),
    # nanochat's d20: "Number of parameters" of its base training log
    ("nanochat", {"num_hidden_layers": 20, "hidden_size": 1280, "num_attention_heads": 10, "intermediate_size": 5120,
                  "vocab_size": 65536}, 560_988_160),
]  # fmt: skip
# (model_type, config, billions that its name, paper or model card says)
ROUNDED = [
    ("gpt_bigcode", {"n_layer": 24, "n_embd": 2048, "n_head": 16, "vocab_size": 49280, "n_positions": 2048}, 1.1),
    ("gpt_bigcode", {"n_layer": 40, "n_embd": 6144, "n_head": 48, "vocab_size": 49152, "n_positions": 8192}, 15.5),
    ("ctrl", {"n_positions": 50000}, 1.6),
    ("xglm", {}, 0.6),
    ("biogpt", {}, 0.3),
    ("persimmon", {}, 9.4),
    ("exaone", {}, 7.8),
    ("cwm", {}, 32.6),
    ("ministral3", {}, 8.5),
    ("iquestcoder", {}, 39.8),
    ("internlm3", {}, 8.8),
    ("jais2", {}, 8.1),
    ("bitnet", {"tie_word_embeddings": True}, 2.4),
    ("vaultgemma", {"hidden_size": 1152, "intermediate_size": 6912, "num_attention_heads": 4,
                    "num_key_value_heads": 4}, 1.0),
    ("hyperclovax", {"hidden_size": 6144, "intermediate_size": 14336, "num_hidden_layers": 38, "head_dim": 128,
                     "num_attention_heads": 48, "num_key_value_heads": 8, "vocab_size": 110592}, 14.7),
]  # fmt: skip


@pytest.mark.parametrize("family, config, total", PUBLISHED)
def test_published_sums(family, config, total):
    assert sum(params(lmcalc.load({"model_type": family, **config})).values()) == total


@pytest.mark.parametrize("family, config, billions", ROUNDED)
def test_sums_as_published_with_a_decimal(family, config, billions):
    assert round(sum(params(lmcalc.load({"model_type": family, **config})).values()) / 1e9, 1) == billions


# The same in older and newer keys ------------------------------------------------------------------------------------

SAME = [
    ("exaone", {"num_layers": 3, "layer_norm_epsilon": 1e-6, "activation_function": "silu"},
     {"num_hidden_layers": 3, "rms_norm_eps": 1e-6, "hidden_act": "silu"}),
    ("internlm3", {"qkv_bias": True, "bias": True}, {"attention_bias": True, "mlp_bias": True}),
    ("xglm", {"num_layers": 3, "attention_heads": 8}, {"num_hidden_layers": 3, "num_attention_heads": 8}),
    ("gpt_neox_japanese", {"rotary_pct": 0.5, "rotary_emb_base": 500.0},
     {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}}),
    ("persimmon", {"rope_theta": 25000.0},
     {"rope_parameters": {"rope_type": "default", "rope_theta": 25000.0, "partial_rotary_factor": 0.5}}),
    ("ministral", {}, {"layer_types": [SLIDING] * 32}),
    ("apertus", {"rope_parameters": {"rope_theta": 5e5}},
     {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
    ("ministral", {"sliding_window": None}, {"sliding_window": 9, "layer_types": [FULL] * 32}),
    ("cwm", {"num_hidden_layers": 5}, {"num_hidden_layers": 5, "layer_types": [FULL, SLIDING, SLIDING, SLIDING, FULL]}),
    ("granite_swa", {"num_hidden_layers": 4, "rope_theta": 500.0},
     {"num_hidden_layers": 4, "layer_types": [FULL] + [SLIDING] * 3, "layer_rope_theta": [500] * 4}),
    ("apertus1p5_text", {"output_vocab_size": 266752}, {"output_vocab_size": None}),
    ("hyperclovax", {"attention_multiplier": None}, {}),
    ("gpt_bigcode", {"multi_query": False}, {"multi_query": False, "num_key_value_heads": 12}),
    ("cohere_compass_text", {"rope_theta": 500.0}, {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    ("cohere_compass_text",  # with what published configs hold beside their tables
     {"rope_parameters": {FULL: {"rope_type": "default", "rope_theta": 500.0}, "rope_theta": 1.0,
                          "rope_type": "default"}}, {"rope_theta": 500.0}),
    ("codegen", {"n_inner": None}, {"n_inner": 4 * 4096}),
    ("gpt-sw3", {"n_head": 12}, {"n_head": 12}),
]  # fmt: skip


@pytest.mark.parametrize("family, old, new", SAME)
def test_older_keys(family, old, new):
    assert fields(family, **old) == fields(family, **new) and notes(family, **old) == ()


def test_each_layer_of_a_kind():
    """Where layers differ, in what."""
    japanese = fields("gpt_neox_japanese", num_hidden_layers=3)
    assert japanese["layers"] == ["2*first", "last"] and japanese["kinds"]["last"] == {"attention_bias": "out"}
    found = fields("granite_swa", num_hidden_layers=4, layer_rope_theta=[0, 50, 50, 0], sliding_window=9)
    assert found["kinds"]["full_base_0.0"] == {"positions": "none"}
    assert found["kinds"]["sliding_base_50.0"] == {"window": 9, "positions": "rotary", "rope_base": 50.0}
    table = {FULL: None, SLIDING: {"rope_type": "default", "rope_theta": 50.0, "mrope_section": [1, 2, 3]}}
    types = [SLIDING, FULL]
    found = fields("cohere_compass_text", num_hidden_layers=2, layer_types=types, rope_parameters=table)
    assert found["kinds"]["full"] == {"positions": "none"} and found["kinds"]["sliding"]["window"] == 4096


def test_multi_query_is_a_boolean():
    assert fields("gpt_bigcode")["n_kv_heads"] == 1 and fields("gpt_bigcode", multi_query=False)["n_kv_heads"] == 12


def test_mellum():
    """Mellum 2 12B; a module that predicts further has a layer like the last."""
    model = lmcalc.load({"model_type": "mellum"})
    assert sum(params(model).values()) == 12_149_923_072
    two = {"num_hidden_layers": 2, "num_mtp_layers": 1}
    assert fields("mellum", **two)["n_mtp_layers"] == 1
    with pytest.raises(lmcalc.InputError, match=r"mtp_mlp_layer_types = .*as mlp_layer_types has the last layer"):
        fields("mellum", **two, mtp_mlp_layer_types=["dense"])


def test_gpt_sw3_is_gpt2():
    assert translate({"model_type": "gpt-sw3", "n_layer": 24})[:2] == (fields("gpt2", n_layer=24), "gpt2")


def test_text_parts():
    """Of multimodal configs; Fuyu's lies beside the other keys in published files, apart in newer ones."""
    text = {"num_hidden_layers": 3, "hidden_size": 128, "num_attention_heads": 4, "rope_theta": 25000.0}
    flat = {"model_type": "fuyu", **text, "image_size": 300, "patch_size": 30, "num_channels": 3}
    nested = {"model_type": "fuyu", "text_config": text, "image_size": 300, "patch_size": 30}
    assert translate(flat)[:2] == translate(nested)[:2] == (fields("persimmon", **text), "persimmon")
    for family, text in (("emu3", "emu3_text_model"), ("apertus1p5", "apertus1p5_text"), ("mistral3", "ministral3"),
                         ("cohere_compass", "cohere_compass_text")):  # fmt: skip
        assert translate({"model_type": family, "text_config": {"model_type": text}})[:2] == (fields(text), text)


# Checkpoints ---------------------------------------------------------------------------------------------------------


def test_exaone_at_run_time():
    """transformers calls tensors of EXAONE 3 as LLaMA's; its files have names of their own."""
    model = lmcalc.load(read(RECORDED / "exaone" / "config.json"))
    needed = reference.weights(model)
    for name, kept in (("exaone", "transformer.h.0.ln_1.weight"), ("llama", "model.layers.0.input_layernorm.weight")):
        found = tensors.places(model, needed, Checkpoint(RECORDED / name).shapes)
        assert found["layers/0/attention_norm/weight"].names == (kept,)


def test_lara_at_run_time():
    """Its files hold all that a recurrence is made from as one matrix, its class four."""
    model, file = lmcalc.load(read(RECORDED / "lara_mini" / "config.json")), Checkpoint(RECORDED / "lara_mini").shapes
    stem = "model.layers.0.linear_attn."
    now = {key: shape for key, shape in file.items() if not key.startswith(stem + "in_proj")}
    now = {key.replace("linear_attn.out_norm", "linear_attn.norm"): shape for key, shape in now.items()}
    # queries and keys of 2 heads of 4, values and their gate of 4 heads of 5, write strength and decay of 4 heads
    rows = {"qkv": 2 * 8 + 20, "z": 20, "b": 4, "a": 4}
    assert file[stem + "in_proj.weight"] == (sum(rows.values()), 16)
    now |= {f"{stem}in_proj_{part}.weight": (size, 16) for part, size in rows.items()}
    found = tensors.places(model, reference.weights(model), now)
    names, problems, others = tensors.compared(found, now)
    assert set(names.values()) == set(now) and not problems and not others


# What is refused -----------------------------------------------------------------------------------------------------

REFUSED = [
    ("gpt_bigcode", {"num_key_value_heads": 4}, "num_key_value_heads = 4; allowed: 1, which multi_query makes it"),
    ("gpt_bigcode", {"add_cross_attention": True}, "add_cross_attention = True; allowed: False"),
    ("codegen", {"n_embd": 18, "n_head": 3, "rotary_dim": 2}, "n_embd = 18; allowed: a multiple of 4"),
    ("codegen", {"rotary_dim": None}, "rotary_dim = None; allowed"),
    ("ctrl", {"layer_norm_epsilon": 1e-5}, "layer_norm_epsilon = 1e-05; allowed: 1e-06"),
    ("xglm", {"pad_token_id": 5}, "pad_token_id = 5; allowed: 0 or 1"),
    ("xglm", {"add_cross_attention": True}, "add_cross_attention = True; allowed: False"),
    ("cwm", {"attention_bias": True}, "attention_bias = True; allowed: False"),
    ("ministral3", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, "llama_4_scaling_beta = None"),
    ("internlm3", {"qkv_bias": True}, "qkv_bias = True; allowed: False, as bias"),
    ("iquestcoder", {"use_sliding_window": True}, "use_sliding_window = True; allowed: False"),
    ("granite_swa", {"layer_rope_theta": [1, 2]}, "layer_rope_theta = [1, 2]; allowed: a number of at least 0"),
    ("granite_swa", {"layer_rope_theta": [-1] * 24}, "allowed: a number of at least 0 for each of the 24 layers"),
    ("granite_swa", {"layer_rope_theta": ["x"] * 24}, "allowed: a number of at least 0 for each of the 24 layers"),
    ("apertus1p5_text", {"output_vocab_size": 266753}, "output_vocab_size = 266753; allowed: at most vocab_size"),
    ("hunyuan_v1_dense", {"use_cla": True}, "use_cla = True; allowed: False"),
    ("bitnet", {"head_dim": 64}, "head_dim = 64; allowed: 2560 / 20"),
    ("ministral", {"layer_types": ["chunked"] * 32}, "layer_types = 'chunked'; allowed: one of"),
]  # fmt: skip


@pytest.mark.parametrize("family, config, message", REFUSED)
def test_refusals(family, config, message):
    with pytest.raises(lmcalc.InputError) as error:
        lmcalc.load({"model_type": family, **config})
    assert message in str(error.value)
