"""config.json to fields: aliases, nulls, defaults, rotary settings, layers that differ; what is refused or reported."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

import lmcalc
from lmcalc.huggingface import _defaults, translate
from lmcalc.huggingface.families import FAMILIES, OUTSIDE
from lmcalc.huggingface.names import NAMES
from lmcalc.huggingface.tensors import places
from lmcalc.lenses.params import buffers, params
from lmcalc.reference import weights

RECORDED = Path(__file__).parent / "recorded" / "logits"


def fields(model_type, **config):
    return translate({"model_type": model_type, **config})[0]


def notes(model_type, **config):
    return besides(translate({"model_type": model_type, **config})[2])


def besides(found):
    """The notes without the one that names sizes which the config leaves out."""
    return tuple(each for each in found if not each.startswith("not in the config"))


# Where a model comes from --------------------------------------------------------------------------------------------


def test_path_folder_and_dict(tmp_path):
    path = RECORDED / "llama" / "config.json"
    by_path, by_folder, by_dict = (
        lmcalc.load(path),
        lmcalc.load(str(path.parent)),
        lmcalc.load(json.loads(path.read_text())),
    )
    assert by_path.fields == by_folder.fields == by_dict.fields
    assert (by_path.name, by_path.family, by_dict.name) == ("llama", "llama", "llama")
    assert lmcalc.load(path, {"n_layers": 5}).fields["n_layers"] == 5
    with pytest.raises(lmcalc.InputError, match=r"nothing\.json: cannot be read: No such file"):
        lmcalc.load(tmp_path / "nothing.json")


def test_report_of_a_card_loads_no_adapter():
    code = "import sys, lmcalc; lmcalc.report('gpt2'); print([name for name in sys.modules if 'huggingface' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"a": 1, "a": 2}', '{"a": ' * 9000, "\udce9", '{"a": ' + "9" * 5000 + "}"]
)
def test_bad_json(text, tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(lmcalc.InputError, match=r"config\.json: (not valid JSON|holds a list)"):
        lmcalc.load(path)


def test_unknown_model_type():
    with pytest.raises(lmcalc.InputError, match="'lama' is not known; closest: llama"):
        lmcalc.load({"model_type": "lama"})
    with pytest.raises(lmcalc.InputError, match="'model_type' is missing"):
        lmcalc.load({"hidden_size": 3})
    with pytest.raises(lmcalc.InputError, match=r"model_type = \['llama'\] is not known"):
        lmcalc.load({"model_type": ["llama"]})


# Every family --------------------------------------------------------------------------------------------------------

# parameters of the classes of transformers 5.24 with their own defaults (record_defaults.py)
PARAMETERS = json.loads((Path(__file__).parent / "recorded" / "default_parameters.json").read_text())


# what a class cannot do without and has no default for
NEEDED = {
    "dots1": {"n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 2},
    "glm4_moe": {"head_dim": 128},
    "glm4v_moe_text": {"head_dim": 128},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "deepseek_ocr2_text": {"num_experts_per_tok": 2, "mlp_layer_types": ["dense"] + ["sparse"] * 31},
    "qwen3_omni_moe_text": {"head_dim": 128},
    "lfm2_moe": {"layer_types": ["full_attention"] * 32},
    "bigbird_pegasus": {"attention_type": "original_full"},
    "big_bird": {"attention_type": "original_full"},
    "esm": {"vocab_size": 33},
}


# what a class in transformers holds beside the parameters of its model
MORE = {
    "ernie4_5_vl_moe_text": 27 * (64 * 2560 + 64 + 64 * 3 * 2560 * 512),  # experts of images
    "longcat_flash": 28 * 256 * 2 * 2048 * 6144,  # gate and up of the experts that compute nothing
    "big_bird": 768 * 768 + 768,  # a pooler that no masked-language-model head reads
    "squeezebert": 768 * 768 + 768,
    "esm": 12 * 12 + 1,  # a head that predicts contacts from the attention of 12 layers of 12 heads
}


def test_every_family_is_in_every_table():
    """Those of transformers in each; those outside it have no defaults there, and names where these are known."""
    assert set(_defaults()) == set(FAMILIES) == set(PARAMETERS)
    assert set(FAMILIES) <= set(NAMES) <= {*FAMILIES, *OUTSIDE} and not set(FAMILIES) & set(OUTSIDE)


@pytest.mark.parametrize("family", FAMILIES)
def test_defaults(family):
    """A config that says nothing is the default of its class, and builds; each of its weights has a name."""
    model = lmcalc.load({"model_type": family} | NEEDED.get(family, {}))
    assert besides(model.notes) == () and model.family == family
    expected = PARAMETERS[family] - MORE.get(family, 0)
    assert sum(params(model).values()) == expected
    sizes = [math.prod(size_of[axis] for axis in spec if axis.isalpha()) for spec, size_of in weights(model).values()]
    assert sum(sizes) == expected + buffers(model)
    assert places(model, weights(model)).keys() == weights(model).keys()


@pytest.mark.parametrize("family", FAMILIES)
def test_unknown_keys_are_reported(family):
    assert notes(family, **NEEDED.get(family, {}), colour="red", attn_flavour=None) == (
        "config keys not read: attn_flavour, colour.",
    )


def test_sizes_that_a_config_leaves_out_are_named():
    config = json.loads((RECORDED / "llama" / "config.json").read_text())
    assert besides(lmcalc.load(config).notes) == lmcalc.load(config).notes
    del config["intermediate_size"]
    assert "not in the config, and so as its class has it: intermediate_size 11008." in lmcalc.load(config).notes


RECORDINGS = sorted(folder.name for folder in RECORDED.iterdir())


@pytest.mark.parametrize("name", RECORDINGS)
def test_keys_that_transformers_writes_are_known(name):
    config = json.loads((RECORDED / name / "config.json").read_text())
    if config["model_type"] in FAMILIES:
        assert translate(config)[2] == ()


# Keys ----------------------------------------------------------------------------------------------------------------


def test_aliases():
    given = {"n_layer": 3, "n_embd": 48, "n_head": 4, "n_positions": 64}
    other = {"num_hidden_layers": 3, "hidden_size": 48, "num_attention_heads": 4, "max_position_embeddings": 64}
    assert fields("gpt2", **given) == fields("gpt2", **other) == fields("gpt2", **given, **other)
    assert fields("mpt", d_model=48, n_heads=4, n_layers=2) == fields(
        "mpt", hidden_size=48, num_attention_heads=4, num_hidden_layers=2
    )
    assert fields("bloom", n_embed=48, n_head=4)["d_model"] == 48
    with pytest.raises(lmcalc.InputError, match="hidden_size = 48 and n_embd = 64 contradict"):
        fields("gpt2", n_embd=64, hidden_size=48)


def test_null_and_absent():
    assert fields("llama", num_key_value_heads=None)["n_kv_heads"] == 32  # null: as many as query heads
    assert fields("mistral")["n_kv_heads"] == 8  # absent: the default of the class
    assert fields("mistral", num_key_value_heads=None)["n_kv_heads"] == 32
    assert fields("gpt2", n_inner=None)["d_ff"] == 3072
    assert fields("gpt_neo", intermediate_size=None)["d_ff"] == 8192
    assert fields("llama", head_dim=None)["head_dim"] == 128
    assert fields("qwen3", hidden_size=1024, num_attention_heads=64)["head_dim"] == 128
    assert "window" not in fields("mistral", sliding_window=None) and fields("mistral")["window"] == 4096
    assert "attention_softcap" not in fields("gemma2", attn_logit_softcapping=None)


BAD = {  # key: (value, what the message says is allowed)
    "hidden_size": ("4096", "an integer from 1"),
    "num_attention_heads": (True, "an integer from 1"),
    "num_hidden_layers": (20_000, "an integer from 1 to 10,000"),
    "num_key_value_heads": (5, "a divisor of the 32 query heads"),
    "vocab_size": (-1, "an integer from 1"),
    "intermediate_size": (2**60, "an integer from 1"),
    "rms_norm_eps": (float("nan"), "a finite number above 0"),
    "rope_theta": (float("inf"), "a finite number above 0"),
    "max_position_embeddings": (2048.5, "an integer from 1"),
    "tie_word_embeddings": ("no", "true or false"),
    "attention_dropout": ([0.1], "a finite number"),
    "hidden_act": ("gleu", "one of relu, relu2, gelu"),
    "rope_scaling": ("linear", "a table"),
    "mlp_bias": (1, "true or false"),
}


@pytest.mark.parametrize("key", BAD)
def test_bad_values(key, tmp_path):
    value, allowed = BAD[key]
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", key: value}))
    with pytest.raises(lmcalc.InputError) as error:
        lmcalc.load(path)
    assert str(error.value).startswith(f"{path}: {key} = {value!r}; allowed: {allowed}")


def test_null_where_a_size_is_needed():
    with pytest.raises(lmcalc.InputError, match="hidden_size = None; allowed: an integer"):
        fields("llama", hidden_size=None)


REFUSED = [
    ("llama", {"num_attention_heads": 33}, "num_attention_heads = 33; allowed: a divisor of the width 4096"),
    ("gpt2", {"n_head": 7}, "n_head = 7; allowed: a divisor of the width 768"),
    ("bert", {"is_decoder": True}, "is_decoder = True; allowed: False"),
    ("gpt2", {"add_cross_attention": True}, "add_cross_attention = True"),
    ("bloom", {"apply_residual_connection_post_layernorm": True}, "apply_residual"),
    ("mpt", {"attn_config": {"qk_ln": True}}, "attn_config: qk_ln = True; allowed: False"),
    ("falcon", {"num_key_value_heads": 8}, "num_key_value_heads = 8; allowed: 1"),
    ("gemma3_text", {"layer_types": ["full_attention"]}, "one entry for each of the 26 layers"),
    ("gemma2", {"layer_types": ["linear_attention"] * 26}, "layer_types = 'linear_attention'; allowed: one of full"),
    ("gpt_neo", {"attention_types": [[["global"], 5]]}, "one entry for each of the 24 layers"),
    ("gpt_neo", {"attention_types": [[["global"], 10**12]]}, "attention_types"),
    ("smollm3", {"no_rope_layers": [2] * 36}, "no_rope_layers"),
    ("t5", {"feed_forward_proj": "gated-selu"}, "feed_forward_proj = 'gated-selu'"),
    ("llama", {"rope_scaling": {"type": "magic"}}, "rope_scaling: rope_type = 'magic'; allowed: one of default"),
    ("llama", {"rope_scaling": {"type": "linear"}}, "rope_scaling: factor = None; allowed: a number above 0"),
    ("phi3", {"rope_scaling": {"type": "su", "short_factor": [1], "long_factor": [1]}}, "48 numbers above 0"),
    ("gemma3", {"text_config": 3}, "text_config = 3; allowed: an object"),
]


@pytest.mark.parametrize("family, config, message", REFUSED)
def test_refused(family, config, message):
    with pytest.raises(lmcalc.InputError) as error:
        lmcalc.load({"model_type": family, **config})
    assert message in str(error.value)


# Rotary settings -----------------------------------------------------------------------------------------------------

LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192}
FORMS = [  # family, old form, new form
    ("llama", {"rope_theta": 5e5}, {"rope_theta": 5e5, "rope_type": "default"}),
    ("llama", {"rope_scaling": {"rope_type": "llama3", **LLAMA3}}, {"rope_type": "llama3", **LLAMA3}),
    ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0}}, {"rope_type": "linear", "factor": 2.0}),
    ("llama", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, {"rope_type": "dynamic", "factor": 2.0}),
    ("qwen2", {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
     {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}),
    ("gpt_neox", {"rotary_pct": 0.5, "rotary_emb_base": 5e3}, {"partial_rotary_factor": 0.5, "rope_theta": 5e3}),
    ("phi", {"partial_rotary_factor": 0.25}, {"partial_rotary_factor": 0.25, "rope_theta": 10000.0}),
    ("glm", {}, {"partial_rotary_factor": 0.5, "rope_theta": 10000.0}),
    ("cohere", {}, {"rope_theta": 5e5}),
    ("apertus", {}, {"rope_type": "llama3", "rope_theta": 1.2e7, **LLAMA3}),
    ("gemma3_text",
     {"rope_theta": 2e6, "rope_local_base_freq": 3e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
     {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2e6},
      "sliding_attention": {"rope_theta": 3e4, "rope_type": "default"}}),
    ("gemma3_text", {}, {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}),
    ("olmo3", {"rope_scaling": YARN}, {"full_attention": {**YARN, "rope_theta": 5e5}, "sliding_attention": {}}),
]  # fmt: skip


@pytest.mark.parametrize("family, old, new", FORMS)
def test_both_forms_of_rotary_settings(family, old, new):
    assert fields(family, **old) == fields(family, rope_parameters=new)
    assert notes(family, **old) == notes(family, rope_parameters=new) == ()


def test_rotary_fields():
    scaling = {"kind": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    given = fields("llama", rope_parameters={"rope_type": "llama3", **LLAMA3, "rope_theta": 5e5})
    assert given["rope_scaling"] == {**scaling, "original_max_positions": 8192} and given["rope_base"] == 5e5
    assert "rotary_dim" not in given and fields("phi")["rotary_dim"] == 32 and fields("stablelm")["rotary_dim"] == 20
    note = notes("llama", rope_scaling={"type": "linear", "factor": 2.0, "finetuned": True})
    assert note == ("config keys not read: rope_scaling.finetuned.",)


def test_longrope_of_phi3():
    """Its first configs call it su or yarn; the first length is beside the table, and the factor follows."""
    table = {"type": "su", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
    for name in ("su", "yarn", "longrope"):
        found = fields("phi3", max_position_embeddings=131072, rope_scaling={**table, "type": name})["rope_scaling"]
        assert (found["kind"], found["original_max_positions"], found["factor"]) == ("longrope", 4096, 32.0)


# Layers that differ --------------------------------------------------------------------------------------------------


def test_layer_types_and_older_patterns():
    sliding, full = "sliding_attention", "full_attention"
    types = ([sliding] * 5 + [full]) * 4 + [sliding] * 2
    old = fields("gemma3_text", sliding_window_pattern=6)
    assert old == fields("gemma3_text") == fields("gemma3_text", layer_types=types)
    assert old["layers"] == ["5*sliding", "full"] and old["kinds"]["sliding"]["window"] == 4096
    assert fields("gemma2")["layers"] == ["sliding", "full"]
    assert fields("cohere2")["kinds"]["full"] == {"positions": "none"}
    assert lmcalc.load({"model_type": "cohere2", "sliding_window": None}).fields["positions"] == "none"
    assert fields("exaone4", sliding_window_pattern="LLG")["layers"] == ["2*sliding", "full"]
    assert "layers" not in fields("exaone4", sliding_window=None)
    assert fields("smollm3")["layers"] == ["3*full_rotary", "full_plain"]
    assert fields("gpt_neo", num_layers=4, attention_types=[[["global", "local"], 2]])["layers"] == ["global", "local"]


def test_windows_that_are_switched_off():
    assert fields("qwen2", sliding_window=4096) == fields("qwen2", sliding_window=-1, max_window_layers=7)
    on = fields("qwen2", use_sliding_window=True, sliding_window=100, max_window_layers=30)
    assert on["layers"] == ["30*full", "2*sliding"] and on["kinds"] == {"full": {}, "sliding": {"window": 100}}


def test_scale_by_layer():
    found = fields("gpt2", n_layer=3, scale_attn_by_inverse_layer_idx=True)
    assert [found["kinds"][name]["score_scale"] * 8 * (at + 1) for at, name in enumerate(found["layers"])] == [1, 1, 1]
    assert fields("gpt2", scale_attn_weights=False)["score_scale"] == 1.0


# Families that come in several forms ---------------------------------------------------------------------------------


def test_falcon():
    assert fields("falcon")["n_kv_heads"] == 1 and fields("falcon")["block"] == "parallel"
    new = {"new_decoder_architecture": True, "num_attention_heads": 64, "num_kv_heads": 8, "hidden_size": 4096}
    assert fields("falcon", **new)["block"] == "parallel_two_norms" and fields("falcon", **new)["n_kv_heads"] == 8
    assert fields("falcon", **new, num_ln_in_parallel_attn=1)["block"] == "parallel"
    old = fields("falcon", multi_query=False, parallel_attn=False, alibi=True, num_attention_heads=64, hidden_size=4096)
    assert (old["block"], old["positions"], old["n_kv_heads"]) == ("serial", "alibi", 64)


def test_t5():
    one, later = fields("t5"), fields("t5", feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    assert (one["ffn"], one["tied"], one["head_scale"]) == ("relu", True, 512**-0.5)
    assert (later["ffn"], later["tied"]) == ("geglu_tanh", False) and "head_scale" not in later
    assert fields("t5", num_layers=4, num_decoder_layers=2)["n_encoder_layers"] == 4


def test_gemma_says_gelu_for_its_tanh_form():
    assert fields("gemma", hidden_act="gelu")["ffn"] == "geglu_tanh" == fields("gemma")["ffn"]
    assert fields("gemma2", hidden_activation="gelu")["ffn"] == "geglu"


def test_multimodal():
    """The text part counts; the others are named."""
    text = {"model_type": "gemma3_text", "num_hidden_layers": 6, "colour": "x"}
    config = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 3}, "new_key": 1}
    model = lmcalc.load(config)
    assert (model.family, model.fields["n_layers"]) == ("gemma3_text", 6)
    assert besides(model.notes) == (
        "text part only; not counted: vision_config, and what joins them to the text.",
        "config keys not read: new_key.",
        "config keys not read: colour.",
    )
