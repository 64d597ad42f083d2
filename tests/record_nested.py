"""Record what multimodal classes of transformers make of their text part: parameters, prefixes, when its head is tied.

    python tests/record_nested.py [MODEL_TYPE...]        these, or all of families.NESTED that transformers has

Needs torch and transformers (5.24 or later; no network). For each model_type tests/recorded/nested.json has the text
part of a config (text), the parameters of the language model of such a class (its text model and its head, none of the
rest), the same for a config without a text part (default), what stands before their names (prefix), and whether head
and embedding share a table for each pair of what tie_word_embeddings says outside of the text part and in it: "outside
inside". Nothing is allocated. lmcalc/huggingface/nested.json has what keys that are missing mean, where that is not the
default of the text model's own class: if the text part is missing as a whole, or always.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from transformers.models.auto import modeling_auto

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from record_defaults import MISSING  # noqa: E402

from lmcalc.huggingface.families import ALIASES, NESTED  # noqa: E402
from lmcalc.huggingface.irrelevant import IRRELEVANT  # noqa: E402

RECORDED = ROOT / "tests" / "recorded" / "nested.json"
DEFAULTS = ROOT / "lmcalc" / "huggingface" / "nested.json"
MAPPINGS = ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "SPEECH_SEQ_2_SEQ", "SEQ_TO_SEQ_CAUSAL_LM", "CAUSAL_LM")
WITHOUT = {  # that cannot be built here, or whose language model is no module of its own
    **dict.fromkeys(("fast_vlm", "gemma3n", "perception_lm"), "their vision is another package's"),
    **dict.fromkeys(("qwen2_5_omni", "qwen3_omni_moe"), "their thinker is a model of its own, and recorded"),
    "phi4_multimodal": "its text model holds the other parts",
    "kimi_k3": "transformers has no class",
    "florence2": "an encoder-decoder",
    "nemo_speechlm": "its text model has no number of layers, but a pattern",
    "nemotron_h_omni": "the same",
}
# Parts whose default class cannot be built, and what else a class needs
VISION = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 1}
SIGLIP = {"vision_config": {"model_type": "siglip_vision_model", **VISION}}
MORE = {
    "aya_vision": SIGLIP,
    "granite4_vision": {"deepstack_layer_map": [], "spatial_target_layers": [], "downsample_rate": "4/8"},
    "ovis2": {"hidden_size": 4096, "vocab_size": 151936},  # of its head: those of its text model
    "emu3": {"vocabulary_map": {"<image>": 3, "<|extra_0|>": 4}},
}
TEXT = {
    "deepseek_ocr2": {"mlp_layer_types": ["dense", "sparse"]},
    "fun_asr_nano": {"hidden_size": 1024, "head_dim": 128},
}


def text_of(family):
    """The text part that is recorded: two layers of the defaults of its class."""
    inside = ALIASES.get(NESTED[family], NESTED[family])
    return {"model_type": inside, "num_hidden_layers": 2, **MISSING.get(inside, {}), **TEXT.get(family, {})}


def defaults(family):
    """Defaults of the keys of a text part by this class, and whether they hold if some of them are given; or None."""
    kind = transformers.CONFIG_MAPPING[family]
    spec = kind.sub_configs_defaults.get("text_config") if hasattr(kind, "sub_configs_defaults") else None
    given = {key: value for key, value in getattr(spec, "init_kwargs", {}).items()
             if key not in IRRELEVANT and isinstance(value, bool | int | float | str | dict | None)}  # fmt: skip
    if not given:
        return None
    key = next(key for key in ("num_hidden_layers", "rms_norm_eps", "num_key_value_heads") if key in given)
    width = {each: given[each] for each in ("hidden_size",) if each in given}  # which other parts have to fit
    some = kind(text_config={"model_type": NESTED[family], **width}).text_config
    return {"always": getattr(some, key) == given[key], "text": given}


def made(family, outside, inside=None):
    """The model of a config, on no device. inside: what its text part says of tying; None: it has no text part."""
    kind = next(
        names[family]
        for names in (getattr(modeling_auto, f"MODEL_FOR_{each}_MAPPING_NAMES") for each in MAPPINGS)
        if family in names
    )
    text = {} if inside is None else {"text_config": text_of(family) | {"tie_word_embeddings": inside}}
    config = transformers.CONFIG_MAPPING[family](tie_word_embeddings=outside, **text, **MORE.get(family, {}))
    for part in ("vision_config", "audio_config", "encoder_config", "high_res_vision_config"):
        if hasattr(getattr(config, part, None), "num_hidden_layers"):
            getattr(config, part).num_hidden_layers = 1
    with torch.device("meta"):
        model = getattr(transformers, kind)(config)
    model.tie_weights()
    return model


def language(model):
    """(its text model's name, {id: parameters} of that and of the head)."""
    table, head = model.get_input_embeddings(), model.get_output_embeddings()
    names = {id(module): name for name, module in model.named_modules()}
    prefix = names[id(table)].rpartition(".")[0].removesuffix(".decoder")
    parts = [*model.get_submodule(prefix).parameters(), *head.parameters()]
    return prefix, names[id(head)], {id(each): each.numel() for each in parts}


def record(family):
    found = {"text": text_of(family), "tied": {}}
    for outside in (False, True):
        for inside in (False, True):
            model = made(family, outside, inside)
            prefix, head, sizes = language(model)
            tied = model.get_input_embeddings().weight is model.get_output_embeddings().weight
            found["tied"][f"{outside} {inside}".lower()] = tied
            if not (outside or inside):
                found |= {
                    "class": type(model).__name__,
                    "parameters": sum(sizes.values()),
                    "prefix": prefix,
                    "head": head,
                }
    if NESTED[family] not in MISSING:
        found["default"] = sum(language(made(family, False))[2].values())
    return found


def main(names):
    transformers.logging.set_verbosity_error()
    rows, own = (json.loads(path.read_text()) if names and path.exists() else {} for path in (RECORDED, DEFAULTS))
    for family in names or NESTED:
        if family in transformers.CONFIG_MAPPING:
            own[family] = defaults(family)
            if family not in WITHOUT:
                rows[family] = record(family)
                print(family, *(rows[family].get(key) for key in ("parameters", "default", "tied")), flush=True)
    own = {family: found for family, found in own.items() if found is not None}
    for path, table in ((RECORDED, rows), (DEFAULTS, own)):
        lines = (f"{json.dumps(key)}: {json.dumps(table[key])}" for key in sorted(table))
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
