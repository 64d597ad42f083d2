"""Configs of every model_type with keys of the wrong kind: a model, or one line that says what is wrong."""

import itertools
import json
from pathlib import Path

import pytest

import lmcalc
from lmcalc import cli
from lmcalc.huggingface import _defaults, translate
from lmcalc.huggingface.families import FAMILIES, NESTED, OUTSIDE
from lmcalc.huggingface.irrelevant import IRRELEVANT

RECORDED = Path(__file__).parent / "recorded" / "logits"
DIGITS = 10**5000  # more than Python writes out
DEEP = []
for _ in range(400):
    DEEP = [DEEP]
ODD = ["x", "", [], [[]], [None], ["x"], [1, 2, 3], {}, {"a": 1}, True, None, float("nan"), float("inf"), -1, 0, 0.5,
       2**60, DIGITS, 1e308, 5e-324, {"rope_type": "x"}, [2**60], DEEP, 10**9]  # fmt: skip


def recorded():
    """One config of each model_type that has a recording."""
    found = {}
    for path in sorted(RECORDED.glob("*/config.json")):
        config = json.loads(path.read_text())
        found.setdefault(config["model_type"], config)
    return found


RECORDINGS = recorded()
CONFIGS = {family: {"model_type": family} for family in FAMILIES} | RECORDINGS


def message(config):
    """The one line that refuses a config, or None."""
    try:
        lmcalc.load(config)
    except lmcalc.InputError as error:
        assert "\n" not in str(error) and len(str(error)) < 3000
        return str(error)
    return None


@pytest.mark.parametrize("family", CONFIGS)
def test_every_key_with_values_of_other_kinds(family):
    """Each key takes one odd value, another one in each family; each object inside as well."""
    config, own, odd = CONFIGS[family], _defaults().get(family, {}), itertools.cycle(ODD)
    for _ in range(list(CONFIGS).index(family) % len(ODD)):
        next(odd)
    for key in sorted({*config, *own} - IRRELEVANT):
        value = config.get(key, own.get(key))
        changed = [{**config, key: next(odd)}]
        if isinstance(value, dict) and value:
            changed.append({**config, key: {**value, next(iter(value)): next(odd)}})
        for each in changed:
            try:
                translate(each)
            except lmcalc.InputError as error:
                assert "\n" not in str(error)


# what a class's own defaults do not make a model of: the key that is missing, or whose default cannot be counted
LACKING = {
    **dict.fromkeys(("glm4_moe", "glm4v_moe_text", "qwen3_omni_moe_text"), "head_dim"), "dots1": "num_experts",
    **dict.fromkeys(("bigbird_pegasus", "big_bird"), "attention_type"), "esm": "vocab_size",
    **dict.fromkeys(("deepseek_v2", "deepseek_ocr2_text"), "num_experts_per_tok"), "lfm2_moe": "layer_types",
    **dict.fromkeys(OUTSIDE, "num_hidden_layers"), "chatglm": "multi_query_attention", "openlm": "n_layers",
    "gpt3": "n_layer", "encoder-decoder": "num_layers",
}  # fmt: skip


@pytest.mark.parametrize("family", [*FAMILIES, *OUTSIDE, *NESTED])
def test_a_model_type_alone_is_a_model_or_says_what_is_missing(family):
    said, lacking = message({"model_type": family}), LACKING.get(family) or LACKING.get(NESTED.get(family))
    assert said is None if lacking is None else lacking in said


ONE = {"model_type": "kimi_linear", "num_hidden_layers": 4}
BROKEN = [
    # integers that Python does not write out, in every message that repeats what was given
    ({"model_type": DIGITS}, "model_type"),
    ({"model_type": []}, "model_type"),
    ({"model_type": "llava", "text_config": {"model_type": DIGITS}}, "model_type"),
    ({"model_type": "llava", "text_config": DIGITS}, "text_config"),
    ({"model_type": "deepseek_v3", "num_nextn_predict_layers": 1, "num_mtp_layers": DIGITS}, "contradict"),
    ({"model_type": "llama", "quantization_config": DIGITS}, "quantization_config"),
    # null, where a table or a size is needed
    ({"model_type": "t5gemma", "encoder": None}, "encoder"),
    ({"model_type": "t5gemma", "decoder": None}, "decoder"),
    ({"model_type": "camembert", "max_position_embeddings": None}, "max_position_embeddings"),
    ({"model_type": "esm", "vocab_size": 33, "max_position_embeddings": None}, "max_position_embeddings"),
    # values that were taken as they were
    ({"model_type": "deberta-v2", "pos_att_type": [[]]}, "pos_att_type"),
    ({"model_type": "deberta-v2", "pos_att_type": {}}, "pos_att_type"),
    ({"model_type": "deepseek_v4", "rope_parameters": [[]]}, "rope_parameters"),
    ({"model_type": "deepseek_v4", "rope_parameters": True}, "rope_parameters"),
    ({"model_type": "gemma4_text", "num_hidden_layers": 6, "per_layer_config": {"5": 1}}, "per_layer_config"),
    ({"model_type": "gemma4_text", "num_hidden_layers": 6, "per_layer_config": {"5": {"head_dim": "x"}}}, "head_dim"),
    ({"model_type": "gemma4_text", "num_hidden_layers": 6, "per_layer_config": {"5": [[]]}}, "per_layer_config"),
    # numbers that are too large for what is made of them
    ({"model_type": "lfm2", "block_ffn_dim_multiplier": 1e308}, "block_ffn_dim_multiplier"),
    ({"model_type": "mellum", "num_nextn_predict_layers": 2**40, "mtp_mlp_layer_types": ["sparse"]}, "mtp_mlp_layer"),
    ({"model_type": "deepseek_v3", "rope_scaling": {"rope_type": "yarn", "factor": 40.0, "mscale_all_dim": 1e308}},
     "mscale_all_dim"),
    ({"model_type": "llama", "rope_scaling": {"rope_type": "linear", "factor": 1e308}}, "factor"),
    # words and numbers that passed for the default, and changed nothing
    ({"model_type": "mamba", "time_step_rank": "large"}, "time_step_rank"),
    ({"model_type": "jamba", "mamba_dt_rank": [1]}, "mamba_dt_rank"),
    ({"model_type": "bamba", "mamba_d_head": "large"}, "mamba_d_head"),
    ({"model_type": "deepseek_v3", "moe_layer_freq": "x"}, "moe_layer_freq"),
    ({"model_type": "deepseek_v3", "moe_layer_freq": -1}, "moe_layer_freq"),
    ({"model_type": "deepseek_v2", "num_experts_per_tok": 6, "topk_method": "x"}, "topk_method"),
    ({"model_type": "llama", "rope_scaling": {"rope_type": ""}}, "rope_type"),
    ({"model_type": "qwen3_moe", "mlp_only_layers": ["0"]}, "mlp_only_layers"),
    ({"model_type": "bamba", "attn_layer_indices": [True]}, "attn_layer_indices"),
    ({"model_type": "lfm2", "full_attn_idxs": ["x"]}, "full_attn_idxs"),
    ({"model_type": "llama4_text", "moe_layers": ["x"]}, "moe_layers"),
    ({"model_type": "llama4_text", "no_rope_layers": ["x"] * 48}, "no_rope_layers"),
    (ONE | {"linear_attn_config": {"full_attn_layers": ["4"]}}, "full_attn_layers"),
    (ONE | {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3, 4]}}, "kda_layers"),
    ({"model_type": "gpt_neo", "num_layers": 2, "attention_types": [[["global"], 2]],
      "attention_layers": ["global", "local"]}, "attention_types"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "key"), BROKEN)
def test_broken_configs(config, key):
    assert key in (message(config) or "no message")


def test_null_and_auto_still_mean_the_default():
    for config in ({"model_type": "mamba", "time_step_rank": "auto"}, {"model_type": "mamba", "time_step_rank": None},
                   {"model_type": "bamba", "mamba_d_head": "auto"},
                   {"model_type": "deepseek_v3", "moe_layer_freq": None}):  # fmt: skip
        assert translate(config)[0] == translate({"model_type": config["model_type"]})[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_null_for_rope_parameters_is_the_default_of_the_class(family):
    null = {"model_type": family, "rope_parameters": None}
    if family not in LACKING:
        assert translate(null)[0] == translate({"model_type": family})[0]


@pytest.mark.parametrize("family", RECORDINGS)
def test_a_nested_text_part_is_read_as_the_flat_config_is(family):
    config = RECORDINGS[family]
    tied = {key: config[key] for key in ("tie_word_embeddings",) if key in config}
    for outer in ({"model_type": "some_vl", "text_config": config}, {"model_type": "some_vl", "llm_config": config},
                  {"model_type": "some_vl", "thinker_config": {"text_config": config}}):  # fmt: skip
        assert translate(outer | tied | {"vision_config": {"hidden_size": 3}})[0] == translate(config)[0]


@pytest.mark.parametrize("key", ["text_config", "language_config", "thinker_config", "vision_config", "dtype"])
def test_odd_things_where_the_text_part_would_be(key):
    for family, odd in itertools.product(("some_vl", "llava", "qwen2_5_vl", "fuyu"), ODD):
        message({"model_type": family, key: odd})
        message({"model_type": family, key: {"model_type": odd}})


@pytest.mark.parametrize("family", ["bert", "modernbert", "mpnet"])
def test_encoders_say_that_they_have_no_decode(family, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS[family]))
    assert cli.main(["formula", str(path), "--phase", "decode"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "has no decode; allowed: --phase prefill" in said
