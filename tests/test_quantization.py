"""quantization_config: weights stored per part in their own type, and what a report makes of that."""

import json
import pickle

import pytest

import lmcalc
from lmcalc.huggingface.quantization import _compiled, scheme
from lmcalc.packing import LAYOUTS, Packing

LLAMA2 = {"model_type": "llama"}  # the class's defaults are Llama-2-7B
LINEAR = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
REST = 2 * (2 * 32000 * 4096 + 65 * 4096)
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}
GROUP = {"num_bits": 4, "group_size": 128, "strategy": "group", "symmetric": True, "type": "int"}


def costs(config, quantization, **more):
    return lmcalc.report(
        config if quantization is None else config | {"quantization_config": quantization}, **more
    ).to_dict()


def compressed(weights, form="pack-quantized", ignore=("lm_head",), targets=("Linear",)):
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "ignore": list(ignore),
        "config_groups": {"g": {"weights": weights, "targets": list(targets)}},
    }


# What is stored beside the packed values: bits a value, in whole groups
BYTES = {
    "awq": (AWQ, LINEAR * 133 // 256),  # M3 of the cases: 4.15625 bits
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 128}, LINEAR * 133 // 256 + 32 * 4 * (6 * 4096 + 11008)),
    "gptq, 3 bits": (
        {"quant_method": "gptq", "bits": 3, "group_size": 128},
        LINEAR * 403 // 1024 + 32 * 4 * (6 * 4096 + 11008),
    ),
    "fp8 by blocks": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, LINEAR + LINEAR // 4096),
    "fp8 by matrix": ({"quant_method": "fp8"}, LINEAR + 4 * 7 * 32),
    "w4a16": (compressed(GROUP), LINEAR * 33 // 64 + 16 * 7 * 32),
    "w4a16 with zeros": (compressed(GROUP | {"symmetric": False}), LINEAR * 133 // 256 + 16 * 7 * 32),
    "nvfp4": (
        compressed(
            {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"}, "nvfp4-pack-quantized"
        ),
        LINEAR * 9 // 16 + 8 * 7 * 32,
    ),
    "mxfp4": (
        compressed({"num_bits": 4, "type": "float", "group_size": 32, "strategy": "group"}, "mxfp4-pack-quantized"),
        LINEAR * 17 // 32,
    ),
    "bitsandbytes nf4": (
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        LINEAR // 2 + LINEAR // 16 + 64 * 7 * 32,
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes(name):
    settings, packed = BYTES[name]
    found = costs(LLAMA2, settings)
    assert found["weights"]["bytes"] == packed + REST and isinstance(found["weights"]["bytes"], int)
    assert found["workload"]["dtypes"]["weights"] == "stored"
    plain = costs(LLAMA2, None)
    assert found["params"] == plain["params"] and found["decode"]["flops"] == plain["decode"]["flops"]
    # everything but the embedding table is read in a step, one row of it
    assert found["decode"]["bytes"]["weights"] == packed + REST - 2 * 32000 * 4096 + 2 * 4096
    assert (
        sum(row["bytes_by_kind"]["weights"] for row in found["decode"]["by_part"])
        == found["decode"]["bytes"]["weights"]
    )


def test_published_sizes():
    """M3 and M1 of the cases."""
    assert costs(LLAMA2, AWQ)["weights"]["bytes"] == 3_889_307_648
    mlx = {
        "group_size": 128,
        "bits": 4,
        "model.embed_tokens": False,
        "lm_head": False,
    }  # a scale and a bias for 128: 4.25 bits
    assert lmcalc.report(LLAMA2 | {"quantization": mlx}).to_dict()["weights"]["bytes"] == 3_965_198_336
    mistral = {"model_type": "mistral", "sliding_window": None}
    assert lmcalc.report(mistral | {"quantization": mlx}).to_dict()["weights"]["bytes"] == 4_232_585_216
    oss = {
        "model_type": "gpt_oss",
        "num_hidden_layers": 36,
        "num_local_experts": 128,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 201088,
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"],
        },
    }
    assert lmcalc.report(oss).to_dict()["weights"]["bytes"] == 65_248_815_744


def test_weights_of_a_given_type_override():
    assert costs(LLAMA2, AWQ, weights="bf16") | {"notes": 0} == costs(LLAMA2, None) | {"notes": 0}
    assert costs(LLAMA2, AWQ, weights="stored") == costs(LLAMA2, AWQ)
    assert costs(LLAMA2, None, weights="stored") == costs(LLAMA2, None)
    assert costs(LLAMA2, None)["workload"]["dtypes"]["weights"] == "bf16"


def test_changed_fields_are_stored_alike():
    half = costs(LLAMA2, AWQ, set={"n_layers": 16})["weights"]["bytes"]
    assert half == 3_889_307_648 - 16 * (LINEAR // 32 * 133 // 256 + 4 * 4096)
    model = lmcalc.load(LLAMA2 | {"quantization_config": AWQ})
    assert lmcalc.report(lmcalc.load(model, {"n_layers": 16})).to_dict()["weights"]["bytes"] == half
    assert lmcalc.report(pickle.loads(pickle.dumps(model)), set={"n_layers": 16}).to_dict()["weights"]["bytes"] == half


def test_sweeps():
    numpy = pytest.importorskip("numpy")
    config = LLAMA2 | {"quantization_config": AWQ}
    found = lmcalc.sweep(config, batch=numpy.array([1.0, 64.0]), hardware=["h100"])
    assert found["weights_bytes"].tolist() == [3_889_307_648] * 2
    assert found["decode_bytes"][1] == lmcalc.report(config, batch=64).to_dict()["decode"]["bytes"]["total"]
    rows = lmcalc.sweep([config, LLAMA2], columns=["weights_bytes"])
    assert rows["weights_bytes"].tolist() == [3_889_307_648, 2 * 6_738_415_616]


# Modules that are left as they are ---------------------------------------------------------------------------------

NAMES = [
    "model.layers.3.self_attn.q_proj",
    "model.layers.3.mlp.gate",
    "model.layers.3.mlp.gate_proj",
    "model.layers.13.mlp.up_proj",
    "lm_head",
]


@pytest.mark.parametrize(
    "pattern, hit",
    [
        ("lm_head", [4]),
        ("model.layers.3", [0, 1, 2]),
        ("mlp.gate", [1]),
        ("gate", [1]),
        ("self_attn", [0]),
        ("model.layers.1", []),
        ("model.layers.*.self_attn", [0]),
        ("model.layers.*.mlp", [1, 2, 3]),
        ("*lm_head*", [4]),
        ("model.layers.3*", [0, 1, 2]),
        ("re:.*mlp\\.(gate|up|down)_proj.*", [2, 3]),
        ("re:.*self_attn.*", [0]),
        ("re:model.layers.1", [3]),
        ("re:lm", [4]),
        ("model.language_model.layers.3.self_attn*", [0]),
        ("language_model.model.layers.3.mlp.gate", [1]),
        ("vision_tower", []),
    ],
)
def test_patterns(pattern, hit):
    assert [at for at, name in enumerate(NAMES) if _compiled((pattern,))(name)] == hit


def test_layers_that_are_left_out():
    """As in Llama-3.1-405B-FP8: attention of all layers, and the first and last layer, stay in 16 bits."""
    skip = [f"model.layers.{number}.mlp.{name}_proj" for number in (0, 31) for name in ("gate", "up", "down")] + [
        "self_attn",
        "lm_head",
    ]
    found = costs(LLAMA2, {"quant_method": "fbgemm_fp8", "modules_to_not_convert": skip})
    packed = 30 * (3 * 4096 * 11008 + 4 * (2 * 11008 + 4096))
    assert found["weights"]["bytes"] == packed + 2 * (LINEAR - 30 * 3 * 4096 * 11008) + REST
    assert found["decode"]["bytes"]["weights"] == found["weights"]["bytes"] - 2 * 32000 * 4096 + 2 * 4096
    ideal = costs(LLAMA2, {"quant_method": "fbgemm_fp8", "modules_to_not_convert": skip}, traffic="ideal")
    assert ideal["decode"]["bytes"]["weights"] == found["decode"]["bytes"]["weights"]


def test_groups_of_their_own():
    groups = {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {
        "a": {"targets": ["Linear"], "weights": GROUP},
        "b": {"targets": ["re:.*down_proj"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}},
    }}  # fmt: skip
    down = 32 * 4096 * 11008
    assert (
        costs(LLAMA2, groups)["weights"]["bytes"]
        == (LINEAR - down) * 33 // 64 + 16 * 6 * 32 + down + 2 * 32 * 4096 + REST
    )
    dynamic = {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": 128,
        "dynamic": {"-:.*self_attn.*": {}, "+:.*down_proj": {"bits": 8}},
    }
    found = costs(LLAMA2, dynamic)["weights"]["bytes"]
    zeros, order = 32 * 86 * 4096, 32 * 4 * (2 * 4096 + 11008)
    assert (
        found
        == (LINEAR - down - 32 * 4 * 4096**2) * 133 // 256
        + down
        + 2 * zeros
        + zeros
        + order
        + 2 * 32 * 4 * 4096**2
        + REST
    )


def test_experts():
    """Of a mixture the experts that are read are read as they are stored."""
    config = {"model_type": "mixtral", "quantization_config": AWQ}
    found, plain = (
        lmcalc.report(config, experts="max").to_dict(),
        lmcalc.report({"model_type": "mixtral"}, experts="max").to_dict(),
    )
    experts = found["params"]["by_part"]["moe_experts"]
    attention = found["params"]["by_part"]["attention"]
    assert found["weights"]["bytes"] == (experts + attention) * 133 // 256 + 2 * (
        found["params"]["total"] - experts - attention
    )
    saved = plain["decode"]["bytes"]["weights"] - found["decode"]["bytes"]["weights"]
    assert saved == (experts // 4 + attention) * 2 - (experts // 4 + attention) * 133 // 256
    assert lmcalc.report(config).to_dict()["decode"]["bytes"]["estimated"] == experts // 4 * 133 // 256


# Notes and refusals ------------------------------------------------------------------------------------------------


def test_notes():
    odd = costs(LLAMA2, AWQ | {"colour": 3})
    assert "config keys not read: quantization_config.colour." in odd["notes"]
    assert any("awq, 4 bits, a scale for 128 values; what is not packed BF16" in note for note in odd["notes"])
    assert not any("not read" in note for note in costs(LLAMA2, AWQ)["notes"])
    other = costs(LLAMA2, {"quant_method": "hqq", "nbits": 4})
    assert other["weights"]["bytes"] == 2 * 6_738_415_616
    assert any("quant_method 'hqq' is not read" in note for note in other["notes"])
    assert any(
        "this form of compressed-tensors is not read" in note
        for note in costs(LLAMA2, compressed({"num_bits": 2, "type": "float"}))["notes"]
    )


BAD = [
    (3, "an object"),
    ({"quant_method": 3}, "quant_method = 3; allowed: text"),
    (AWQ | {"bits": 3}, "bits = 3"),
    (AWQ | {"bits": True}, "bits = True"),
    (AWQ | {"group_size": 2**70}, "group_size"),
    (AWQ | {"group_size": -2}, "group_size = -2"),
    (AWQ | {"group_size": 1.5}, "group_size = 1.5"),
    (AWQ | {"modules_to_not_convert": "lm_head"}, "a list"),
    (AWQ | {"modules_to_not_convert": [3]}, "names of modules"),
    ({"quant_method": "fp8", "weight_block_size": [128]}, "two whole numbers"),
    ({"quant_method": "fp8", "weight_block_size": [0, 128]}, "two whole numbers"),
    (compressed(GROUP, ignore=["re:(a+)+$"]), "repeats in repeats"),
    (compressed(GROUP, ignore=["re:" + ".*a" * 9]), "repeats in repeats"),
    (compressed(GROUP, ignore=["re:("]), "no regular expression"),
    (compressed(GROUP, ignore=["re:" + "(" * 900]), "no regular expression"),
    (compressed(GROUP, ignore=["re:(a)\\1*"]), "repeats in repeats"),
    (compressed(GROUP, ignore=["a" * 2000]), "names of modules"),
]


@pytest.mark.parametrize("settings, said", BAD)
def test_bad_configs(settings, said):
    with pytest.raises(lmcalc.InputError) as caught:
        costs(LLAMA2, settings)
    assert said in str(caught.value) and "quantization_config" in str(caught.value) and len(str(caught.value)) < 2200


def test_every_layout_has_whole_bytes():
    for layout in LAYOUTS:
        packing = Packing(layout, 8 if "8" in layout else 4, 32)
        assert packing.size(64, 96) > 64 * 96 // 2 - 1 and layout in str(packing)


FACTS = {
    "deepseek-v3": (
        {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"},
        "fp8",
    ),
    "minimax-m2.5": (
        {
            "quant_method": "fp8",
            "fmt": "float8_e4m3fn",
            "activation_scheme": "dynamic",
            "weight_block_size": [128, 128],
            "modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"],
        },
        "fp8",
    ),
    "kimi-k2.5": (
        {
            "config_groups": {
                "group_0": {
                    "input_activations": None,
                    "output_activations": None,
                    "targets": ["Linear"],
                    "weights": {
                        "actorder": None,
                        "block_structure": None,
                        "dynamic": False,
                        "group_size": 32,
                        "num_bits": 4,
                        "observer": "minmax",
                        "observer_kwargs": {},
                        "strategy": "group",
                        "symmetric": True,
                        "type": "int",
                    },
                }
            },
            "format": "pack-quantized",
            "ignore": [
                "lm_head",
                "re:.*self_attn.*",
                "re:.*shared_experts.*",
                "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
            ],
            "kv_cache_scheme": None,
            "quant_method": "compressed-tensors",
            "quantization_status": "compressed",
        },
        "pack-quantized",
    ),
    "gemma-4-31b": (
        {
            "config_groups": {
                "group_0": {
                    "input_activations": {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16},
                    "weights": {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16},
                    "targets": ["Linear"],
                }
            },
            "ignore": ["lm_head"],
            "quant_algo": "NVFP4",
            "producer": {"name": "modelopt", "version": "0.37.0"},
            "quant_method": "modelopt",
        },
        "modelopt-nvfp4",
    ),
}


@pytest.mark.parametrize("name", FACTS)
def test_published_configs_are_read_whole(name):
    settings, layout = FACTS[name]
    found, notes = scheme({"quantization_config": json.loads(json.dumps(settings))})
    assert notes == [] and [packing.layout for _, packing in found.groups] == [layout]
