"""Record what multimodal classes of transformers make of their text part: parameters, prefixes, when its head is tied.

    python tests/record_nested.py [MODEL_TYPE...]        these, or all of families.NESTED that transformers has

Needs torch and transformers (5.24 or later; no network). For each model_type tests/recorded/nested.json has the text
part of a config (text), the parameters of the language model of such a class (its text model and its head, none of the
rest), what stands before their names (prefix), and whether head and embedding share a table for each pair of what
tie_word_embeddings says outside of the text part and in it: "outside inside". Nothing is allocated.
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

RECORDED = ROOT / "tests" / "recorded" / "nested.json"
MAPPINGS = ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "SPEECH_SEQ_2_SEQ", "SEQ_TO_SEQ_CAUSAL_LM", "CAUSAL_LM")
WITHOUT = {  # that cannot be built here, or whose language model is no module of its own
    **dict.fromkeys(("fast_vlm", "gemma3n", "perception_lm"), "their vision is another package's"),
    **dict.fromkeys(("qwen2_5_omni", "qwen3_omni_moe"), "their thinker is a model of its own, and recorded"),
    "phi4_multimodal": "its text model holds the other parts",
    "kimi_k3": "transformers has no class",
    "florence2": "an encoder-decoder",
    "nemotron_h_omni": "its own tests leave its head out",
}
# Parts whose default class cannot be built, and what else a class needs
VISION = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 1}
SIGLIP = {"vision_config": {"model_type": "siglip_vision_model", **VISION}}
MORE = {
    "aya_vision": SIGLIP,
    "emu3": {"vocabulary_map": {"<image>": 3, "<|extra_0|>": 4}},
}
TEXT = {"fun_asr_nano": {"num_hidden_layers": 28}, "granite4_vision": {"num_hidden_layers": 40}}


def text_of(family):
    """The text part that is recorded: two layers of the defaults of its class."""
    inside = ALIASES.get(NESTED[family], NESTED[family])
    return {"model_type": inside, "num_hidden_layers": 2, **MISSING.get(inside, {}), **TEXT.get(family, {})}


def made(family, outside, inside):
    """The model of a config, on no device."""
    kind = next(
        names[family]
        for names in (getattr(modeling_auto, f"MODEL_FOR_{each}_MAPPING_NAMES") for each in MAPPINGS)
        if family in names
    )
    text = text_of(family) | {"tie_word_embeddings": inside}
    config = transformers.CONFIG_MAPPING[family](
        text_config=text, tie_word_embeddings=outside, **MORE.get(family, {})
    )
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
                found |= {"class": type(model).__name__, "parameters": sum(sizes.values()), "prefix": prefix, "head": head}
    return found


def main(names):
    transformers.logging.set_verbosity_error()
    rows = json.loads(RECORDED.read_text()) if names and RECORDED.exists() else {}
    for family in names or NESTED:
        if family in transformers.CONFIG_MAPPING and family not in WITHOUT:
            rows[family] = record(family)
            print(family, rows[family]["parameters"], rows[family]["prefix"], rows[family]["tied"], flush=True)
    RECORDED.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(rows[k])}" for k in sorted(rows)) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
