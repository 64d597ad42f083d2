"""Record the defaults of the config classes of transformers: what a config.json that leaves a key out means.

    python tests/record_defaults.py [MODEL_TYPE...]        these, or all of families.FAMILIES

Needs torch and transformers (5.24 or later; no network). For each model_type it writes to
lmcalc/huggingface/defaults.json the defaults of the keys that its class declares, but for those that never matter, and
what the class makes of rotary settings that are not given; to tests/recorded/default_parameters.json how many
parameters the model of such a class has.
"""

import dataclasses
import json
import sys
from pathlib import Path

import torch
import transformers

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from record_logits_models import CLASSES, MASKED, SEQ2SEQ, TEXT_PARTS  # noqa: E402
from record_text_part import TextPart  # noqa: E402

from lmcalc.huggingface.families import FAMILIES  # noqa: E402
from lmcalc.huggingface.irrelevant import IRRELEVANT  # noqa: E402

DEFAULTS = ROOT / "lmcalc" / "huggingface" / "defaults.json"
PARAMETERS = ROOT / "tests" / "recorded" / "default_parameters.json"
MISSING = {  # what a class cannot do without and has no default for
    "deepseek_ocr2_text": {"num_experts_per_tok": 2, "mlp_layer_types": ["dense"] + ["sparse"] * 31},
    "nemotron": {"num_key_value_heads": 48},
    "qwen3_omni_moe_text": {"head_dim": 128},
    "hunyuan_vl_text": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "hunyuan_v1_dense": {"head_dim": 128},
    "ministral": {"head_dim": 128},
    "cohere_compass_text": {"rope_parameters": {"full_attention": None}},
    "glm4_moe": {"head_dim": 128},
    "glm4v_moe_text": {"head_dim": 128},
    "dbrx": {"attn_config": {"rope_theta": 10000.0}},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "lfm2_moe": {"layer_types": ["full_attention"] * 32},
    "esm": {"vocab_size": 33, "pad_token_id": 1},
    "dots1": {"n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 2},
}
KINDS = dict.fromkeys(SEQ2SEQ, "Seq2SeqLM") | dict.fromkeys(MASKED, "MaskedLM")


def defaults(kind):
    """{key: default} of a config class, of those inside it, too."""
    found = {}
    for field in dataclasses.fields(kind):
        if field.name in IRRELEVANT or (field.name.startswith("_") and field.name != "_remove_final_layer_norm"):
            continue
        if field.default is not dataclasses.MISSING and isinstance(field.default, bool | int | float | str):
            found[field.name] = field.default
    inside = {key: defaults(part) for key, part in kind.sub_configs.items()}
    return found | inside | rotary(kind())


def rotary(config):
    """The rotary settings of a config that gives none, under the keys of the old form."""
    table = getattr(config, "rope_parameters", None)
    if not table or "main" in table:  # DeepSeek V4: its own keys say all
        return {}
    if "rope_type" not in table and "sliding_attention" not in table:
        table = next(iter(table.values()))  # of the only type of layers that a class has by default
    if "sliding_attention" in table and "rope_type" not in table:
        other = next(each for each in table if each != "sliding_attention")
        full, sliding = table[other], table["sliding_attention"]
        parts = [each and each.get("partial_rotary_factor", 1.0) for each in (full, sliding)]
        if full is None or full.get("rope_type", "default") != "default" or parts[0] != parts[1]:
            return {"rope_parameters": table}
        found = {"rope_theta": full["rope_theta"]} | {
            key: full[key] for key in ("partial_rotary_factor",) if key in full
        }
        other = sliding["rope_theta"]
        return found | ({} if other == full["rope_theta"] else {"rope_local_base_freq": other})
    if table["rope_type"] != "default":
        return {"rope_theta": table["rope_theta"], "rope_parameters": table}
    return {key: table[key] for key in ("rope_theta", "partial_rotary_factor") if key in table}


def parameters(model_type):
    """Parameters of the model of a default config, tied ones once; nothing is allocated."""
    config = transformers.CONFIG_MAPPING[model_type](**MISSING.get(model_type, {}))
    with torch.device("meta"):
        if model_type in TEXT_PARTS:
            config._attn_implementation = "eager"
            model = TextPart(config, TEXT_PARTS[model_type])
        elif model_type in CLASSES:
            model = getattr(transformers, CLASSES[model_type])(config)
        else:
            model = getattr(transformers, "AutoModelFor" + KINDS.get(model_type, "CausalLM")).from_config(config)
    model.tie_weights()
    for module in model.modules():
        if "Sinusoidal" in type(module).__name__:  # Marian, Pegasus and FSMT hold what they compute as a parameter
            module.weight = None
    return sum({id(each): each.numel() for each in model.parameters()}.values())


def write(path, values, others):
    """One line for each entry, with the others that the file has if they still are of a family."""
    if others:
        values = {name: found for name, found in json.loads(path.read_text()).items() if name in FAMILIES} | values
    path.write_text(
        "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(values[key])}" for key in sorted(values)) + "\n}\n"
    )


def main(names):
    chosen = names or FAMILIES
    write(DEFAULTS, {name: defaults(transformers.CONFIG_MAPPING[name]) for name in chosen}, others=bool(names))
    write(PARAMETERS, {name: parameters(name) for name in chosen}, others=bool(names))


if __name__ == "__main__":
    main(sys.argv[1:])
