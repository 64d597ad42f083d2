"""Multimodal configs: their text part, wherever it lies, against the classes of transformers; and their checkpoints."""

import json
from pathlib import Path

import numpy as np
import pytest
from checkpoints import safetensors, table
from safetensors.numpy import load_file, save_file

import lmcalc
from lmcalc import reference
from lmcalc.huggingface import read, translate
from lmcalc.huggingface.families import ALIASES, FAMILIES, NESTED, OUTSIDE, TIED
from lmcalc.huggingface.nested import text_part
from lmcalc.lenses.params import params
from lmcalc.questions.inspect import inspect

HERE = Path(__file__).parent / "recorded"
# what the classes of transformers 5.24 make of such configs (record_nested.py)
CLASSES = json.loads((HERE / "nested.json").read_text())
NOTE = "text part only; not counted: {}, and what joins them to the text."


# what a class counts as its text model's and no token of text uses: in each layer with experts, those of images
WITHIN = {"ernie4_5_vl_moe": 64 * 2560 + 64 + 64 * 3 * 2560 * 512}


def total(config):
    return sum(params(lmcalc.load(config)).values())


def test_tables():
    """A default is that of a model that is known, and each special case is of a type in the table."""
    known = {*FAMILIES, *OUTSIDE, *ALIASES}
    assert set(NESTED.values()) <= known and not set(NESTED) & set(FAMILIES)
    assert set(TIED) <= set(NESTED) | {"minimax_m3_vl"} and set(CLASSES) <= set(NESTED)
    assert len(CLASSES) > 60


@pytest.mark.parametrize("family", CLASSES)
def test_parameters_of_the_text_part(family):
    """Those of the class's text model and head, none of the rest."""
    row = CLASSES[family]
    config = {"model_type": family, "text_config": {**row["text"], "tie_word_embeddings": False},
              "tie_word_embeddings": False, "vision_config": {"x": 1}}  # fmt: skip
    assert total(config) == row["parameters"] - WITHIN.get(family, 0)
    others = "experts of images, vision_config" if family in WITHIN else "vision_config"
    assert lmcalc.load(config).notes[0] == NOTE.format(others)


@pytest.mark.parametrize("family", [name for name, row in CLASSES.items() if "default" in row])
def test_a_config_without_a_text_part_is_the_default_of_its_class(family):
    expected = CLASSES[family]["default"] - 27 * WITHIN.get(family, 0)
    assert total({"model_type": family, "tie_word_embeddings": False}) == expected


@pytest.mark.parametrize("family", CLASSES)
def test_whether_the_head_is_tied(family):
    for given, tied in CLASSES[family]["tied"].items():
        outside, inside = (word == "true" for word in given.split())
        text = CLASSES[family]["text"] | {"tie_word_embeddings": inside}
        config = {"model_type": family, "text_config": text, "tie_word_embeddings": outside}
        assert lmcalc.load(config).fields["tied"] == tied, given


LLAMA = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 80, "vocab_size": 100}  # fmt: skip
FLAT = {key: value for key, value in LLAMA.items() if key != "model_type"}
WHERE = [  # a config, what is not counted
    ({"model_type": "internvl_chat", "llm_config": LLAMA, "vision_config": {}}, "vision_config"),
    ({"model_type": "deepseek_vl_v2", "language_config": LLAMA, "projector_config": {}}, "projector_config"),
    ({"model_type": "kimi_vl", "text_config": LLAMA, "vision_config": {}}, "vision_config"),
    ({"model_type": "never heard of", "text_config": LLAMA}, "the other parts of never heard of"),
    (
        {
            "model_type": "qwen2_5_omni",
            "thinker_config": {"text_config": LLAMA, "audio_config": {}, "vision_config": {}},
            "talker_config": {},
        },
        "audio_config, talker_config, vision_config",
    ),
    ({"model_type": "llava_llama", **FLAT, "mm_hidden_size": 1024, "mm_vision_tower": "x"},
     "the other parts of llava_llama"),
]  # fmt: skip


@pytest.mark.parametrize("config, others", WHERE)
def test_wherever_it_lies(config, others):
    assert translate(config) == (translate(LLAMA)[0], "llama", (NOTE.format(others),))


def test_flat_configs_are_the_nested_ones():
    """Published files of Qwen2-VL and Qwen2.5-VL have the keys of the text among the others."""
    # Qwen/Qwen2-VL-7B-Instruct, config.json, without token ids
    flat = {
        "model_type": "qwen2_vl", "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 3584,
        "intermediate_size": 18944, "max_position_embeddings": 32768, "max_window_layers": 28,
        "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": False, "use_cache": True,
        "use_sliding_window": False, "vision_config": {"depth": 32, "embed_dim": 1280},
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "vocab_size": 152064,
    }  # fmt: skip
    model = lmcalc.load(flat)
    assert sum(params(model).values()) == 7_615_616_512 and model.family == "qwen2_vl_text"  # those of Qwen2 7B
    assert model.notes[:1] == (NOTE.format("vision_config"),) and model.beside == ("vision_config",)
    text = {key: value for key, value in flat.items() if key not in ("model_type", "vision_config")}
    nested = {"model_type": "qwen2_vl", "text_config": {**text, "model_type": "qwen2_vl_text"}, "vision_config": {}}
    assert lmcalc.load(nested).fields == model.fields
    both = nested | text  # as some files repeat them
    assert lmcalc.load(both).fields == model.fields and lmcalc.load(both).notes[:1] == (NOTE.format("vision_config"),)
    older = nested | {"text_config": {**text, "model_type": "qwen2_vl"}}
    assert lmcalc.load(older).family == "qwen2_vl_text"


def test_positions_of_images_turn_text_as_usual():
    plain = translate({"model_type": "qwen2_vl_text"})[0]
    for scaling in (
        {"type": "mrope", "mrope_section": [16, 24, 24]},
        {"rope_type": "default", "type": "mrope", "mrope_section": [16, 24, 24]},
        {"rope_type": "mrope", "mrope_section": [24, 20, 20], "mrope_interleaved": True},
    ):
        assert translate({"model_type": "qwen2_vl_text", "rope_scaling": scaling})[::2] == (plain, ())
    # tencent/HunyuanOCR, config.json: positions in four sections, and a base that grows with alpha
    scaling = {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
               "type": "xdrope", "xdrope_section": [16, 16, 16, 16]}  # fmt: skip
    fields, _, notes = translate({"model_type": "hunyuan_vl_text", "rope_scaling": scaling, "rope_theta": 10000.0})
    assert fields["rope_base"] == 10000.0 * 1000.0 ** (128 / 126) and notes == () and "rope_scaling" not in fields


def test_deepseek_without_latent_attention():
    """The text part of DeepSeek-VL2 and DeepSeek-OCR: deepseek-ai/deepseek-vl2-tiny, config.json, without token ids."""
    text = {
        "first_k_dense_replace": 1, "hidden_size": 1280, "intermediate_size": 6848, "kv_lora_rank": None,
        "lm_head": True, "max_position_embeddings": 4096, "model_type": "deepseek_v2", "moe_intermediate_size": 896,
        "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 10,
        "num_experts_per_tok": 6, "num_hidden_layers": 12, "num_key_value_heads": 10, "q_lora_rank": None,
        "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "rm_head": False, "topk_group": 1, "topk_method": "greedy",
        "use_mla": False, "v_head_dim": 0, "vocab_size": 129280,
    }  # fmt: skip
    model = lmcalc.load({"model_type": "deepseek_vl_v2", "language_config": text, "projector_config": {}})
    assert model.family == "deepseek_ocr2_text" and len(model.notes) == 1
    # by hand: table and head, attention, a plain feed-forward, 11 layers with router, 64 experts and 2 shared, norms
    d, experts = 1280, 3 * 1280 * 896
    assert sum(params(model).values()) == (
        2 * 129280 * d + 12 * 4 * d * d + 3 * d * 6848 + 11 * (64 * d + 66 * experts) + 25 * d
    )


def test_phi4_multimodal():
    """Its published config is flat; its text part is Phi-4-mini (3.836B), adapters apart."""
    config = {
        "model_type": "phi4mm", "audio_processor": {"name": "cascades"}, "embd_layer": {"embedding_cls": "image_audio"},
        "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 131072, "num_attention_heads": 24,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "partial_rotary_factor": 0.75, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "sliding_window": 262144, "speech_lora": {"r": 320}, "tie_word_embeddings": True,
        "vision_lora": {"r": 256}, "vocab_size": 200064,
    }  # fmt: skip
    model = lmcalc.load(config)
    assert sum(params(model).values()) == 3_836_021_760
    assert model.beside == ("audio_processor", "embd_layer", "speech_lora", "vision_lora")


def test_what_is_said_beside_the_text_part():
    given = {"model_type": "llava", "text_config": LLAMA, "vision_config": {}, "vision_feature_layer": -2, "colour": 1}
    assert lmcalc.load(given).notes[1:2] == ("config keys not read: colour.",)
    packed = {"quant_method": "awq", "bits": 4, "group_size": 64}
    weights = lmcalc.report(given | {"quantization_config": packed}).to_dict()["weights"]["bytes"]
    inside = given | {"text_config": {**LLAMA, "quantization_config": packed}}
    assert weights == lmcalc.report(inside).to_dict()["weights"]["bytes"]
    assert weights < lmcalc.report(given).to_dict()["weights"]["bytes"]


REFUSED = [
    ({"model_type": "llava", "text_config": 3}, "text_config = 3; allowed: an object"),
    ({"model_type": "x", "text_config": {"hidden_size": 3}}, "text_config: the key 'model_type' is missing"),
    ({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model"}},
     "text_config: model_type = 'mllama_text_model' is not known"),
    ({"model_type": "qwen2_5_omni", "thinker_config": {"text_config": {"num_hidden_layers": 0}}},
     "thinker_config: text_config: num_hidden_layers = 0"),
    ({"model_type": "llavva"}, "closest: llava"),
    ({"model_type": "llava", "text_config": {"model_type": ["llama"]}}, "model_type = ['llama'] is not known"),
]  # fmt: skip


@pytest.mark.parametrize("config, message", REFUSED)
def test_refused(config, message):
    with pytest.raises(lmcalc.InputError) as error:
        lmcalc.load(config)
    assert message in str(error.value)


def test_a_text_model_is_left_alone():
    assert text_part({"model_type": "llama", "text_config": True}, "config").beside == ()
    assert lmcalc.load(LLAMA).beside == ()


# Checkpoints ------------------------------------------------------------------------------------------------------

FORMS = {  # what stands before the names of the text model and its head, and another part's tensor
    "qwen3_vl": ("model.language_model.", "lm_head.", "model.visual.blocks.0.attn.qkv.weight"),
    "llava": ("language_model.model.", "language_model.lm_head.", "vision_tower.model.encoder.layers.0.x.weight"),
    "qwen2_vl": ("model.", "lm_head.", "visual.merger.mlp.0.weight"),
    "smolvlm": ("model.text_model.", "lm_head.", "model.connector.modality_projection.proj.weight"),
    "qwen3_omni_moe_thinker": ("thinker.model.", "thinker.lm_head.", "talker.model.layers.0.self_attn.q_proj.weight"),
    "deepseek_vl_v2": ("language.model.", "language.lm_head.", "projector.layers.0.weight"),
}  # fmt: skip


def multimodal(folder, form, name="qwen3_vl_text", **changes):
    """A multimodal checkpoint whose text part is a recorded one."""
    text, head, other = FORMS[form]
    weights = load_file(HERE / "logits" / name / "model.safetensors")
    found = {
        (head + key.removeprefix("lm_head.") if key.startswith("lm_head.") else text + key.removeprefix("model.")): each
        for key, each in weights.items()
    }
    found[other] = np.ones((2, 3), "float32")
    save_file(found, folder / "model.safetensors")
    inside = read(HERE / "logits" / name / "config.json") | changes
    config = {"model_type": form, "text_config": inside, "vision_config": {"depth": 1}, "tie_word_embeddings":
              inside.get("tie_word_embeddings", False)}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_logits_of_a_multimodal_checkpoint(form, tmp_path):
    expected = np.load(HERE / "logits" / "qwen3_vl_text" / "expected.npz")
    logits, _ = reference.open(multimodal(tmp_path, form))(expected["input_ids"])
    assert abs(logits - expected["logits"]).max() <= 1e-6 * abs(expected["logits"]).max()


@pytest.mark.parametrize("form", FORMS)
def test_inspect_of_a_multimodal_checkpoint(form, tmp_path):
    found = inspect(multimodal(tmp_path, form))
    assert found["differences"] == [] and found["against"]["family"] == "qwen3_vl_text"
    assert found["params"]["total"] == lmcalc.report(tmp_path).to_dict()["params"]["total"]
    assert found["notes"][-1] == "1 weights of other parts than the text part are not counted (6 elements)."
    stored = table(tmp_path / "model.safetensors")
    for tensor in [name for name, (_, shape) in stored.items() if len(shape) == 2 and shape[0] != shape[1]][:2]:
        if tensor == FORMS[form][2]:
            continue
        dtype, shape = stored[tensor]
        other = tensor.replace("_proj", "_projection") + "x"
        safetensors(tmp_path / "model.safetensors", {key: row for key, row in stored.items() if key != tensor}
                    | {other: (dtype, shape)})  # fmt: skip
        problems = {row["tensor"]: row["problem"] for row in inspect(tmp_path)["differences"]}
        assert problems.pop(other) == "not used by the model" and len(problems) == 1
        assert next(iter(problems.values())) == f"missing; needed: shape {shape}"


def test_a_tied_copy_in_a_multimodal_checkpoint(tmp_path):
    """A head that repeats the embedding, under the text part's prefix."""
    folder = multimodal(tmp_path, "llava", "glm_ocr_text")
    weights = load_file(folder / "model.safetensors")
    weights["language_model.lm_head.weight"] = weights["language_model.model.embed_tokens.weight"].copy()
    save_file(weights, folder / "model.safetensors")
    found = inspect(folder)
    assert found["differences"] == [] and [row["tensor"] for row in found["duplicates"]] == [
        "language_model.lm_head.weight"
    ]
    reference.open(folder)
