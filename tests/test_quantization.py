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
ROWS, COLUMNS = 32 * (5 * 4096 + 2 * 11008), 32 * (6 * 4096 + 11008)  # of all matrices
SCALARS = 4 * 7 * 32  # two of two bytes for each matrix
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
    "hqq": (
        {"quant_method": "hqq", "quant_config": {"nbits": 4, "group_size": 64, "axis": 1}, "skip_modules": ["lm_head"]},
        LINEAR * 9 // 16,
    ),
    "hqq, as its own library writes it": (
        {"quant_method": "hqq", "skip_modules": ["lm_head"], "quant_config": {
            "weight_quant_params": {"nbits": 8, "channel_wise": True, "group_size": None, "optimize": True,
                                    "round_zero": False, "axis": 0, "view_as_float": False},
            "scale_quant_params": None, "zero_quant_params": None, "offload_meta": False}},
        LINEAR + 4 * COLUMNS),
    "hqq, 3 bits": (  # ten rows of groups in each row of integers
        {"quant_method": "hqq", "nbits": 3, "group_size": 64},
        32 * 256 * (4 * 26_215 + 3 * 70_452) + LINEAR // 16),
    "hqq, 2 bits in columns": (
        {"quant_method": "hqq", "nbits": 2, "group_size": 16, "axis": 0}, LINEAR // 4 + LINEAR // 4),
    "quanto": ({"quant_method": "quanto", "weights": "int8"}, LINEAR + 2 * ROWS + SCALARS),
    "quanto, float8": ({"quant_method": "quanto", "weights": "float8"}, LINEAR + 2 * ROWS + SCALARS),
    "quanto, 4 bits": ({"quant_method": "quanto", "weights": "int4"}, LINEAR * 17 // 32 + SCALARS),
    "aqlm": ({"quant_method": "aqlm", "in_group_size": 8, "out_group_size": 1, "num_codebooks": 1,
              "nbits_per_codebook": 16}, LINEAR // 4 + 7 * 32 * 2**20 + 2 * ROWS),
    "aqlm, two books": ({"quant_method": "aqlm", "num_codebooks": 2, "nbits_per_codebook": 8},
                        LINEAR // 4 + 7 * 32 * 2**13 + 2 * ROWS),
    "eetq": ({"quant_method": "eetq", "weights": "int8"}, LINEAR + 2 * ROWS),
    "higgs": ({"quant_method": "higgs", "bits": 4, "p": 2, "group_size": 256, "hadamard_size": 512},
              LINEAR // 2 + LINEAR // 128 + 7 * 32 * 1056),
    "bitnet": ({"quant_method": "bitnet", "linear_class": "bitlinear"}, LINEAR // 4 + SCALARS // 2),
    "bitnet, as trained": ({"quant_method": "bitnet", "linear_class": "autobitlinear"}, 2 * LINEAR),
    "metal": ({"quant_method": "metal", "bits": 4, "group_size": 64}, LINEAR * 5 // 8),
    "torchao, 8 bits": ({"quant_method": "torchao", "quant_type": {"default": {
        "_type": "Int8WeightOnlyConfig", "_version": 2, "_data": {"group_size": None}}}}, LINEAR + 2 * ROWS),
    "torchao, 4 bits": ({"quant_method": "torchao", "quant_type": {"default": {
        "_type": "Int4WeightOnlyConfig", "_version": 2, "_data": {"group_size": 128}}}}, LINEAR * 17 // 32),
    "torchao, as it was": ({"quant_method": "torchao", "quant_type": "int4_weight_only",
                            "quant_type_kwargs": {"group_size": 64}}, LINEAR * 9 // 16),
    "torchao, float8": ({"quant_method": "torchao", "quant_type": "float8_weight_only"}, LINEAR + 4 * ROWS),
}  # fmt: skip


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
    for settings in ({"quant_method": "vptq"}, {"quant_method": "spqr"}, {"quant_method": "quark"}):
        other = costs(LLAMA2, settings)
        assert other["weights"]["bytes"] == 2 * 6_738_415_616
        assert any(f"quant_method {settings['quant_method']!r} is not read" in note for note in other["notes"])
    assert any(
        "this form of compressed-tensors is not read" in note
        for note in costs(LLAMA2, compressed({"num_bits": 2, "type": "float"}))["notes"]
    )


ESTIMATES = {
    "hqq": ({"quant_method": "hqq", "nbits": 4}, "HQQ repeat its settings"),
    "torchao": ({"quant_method": "torchao", "quant_type": "int8_weight_only"}, "types of scales"),
    "quanto": ({"quant_method": "quanto", "weights": "int4"}, "quanto chooses groups itself"),
}
NOT_READ = {
    "hqq": {
        "quant_method": "hqq",
        "quant_config": {"weight_quant_params": {"nbits": 4}, "zero_quant_params": {"nbits": 8}},
    },
    "torchao": {"quant_method": "torchao", "quant_type": {"default": {"_type": "UIntXWeightOnlyConfig"}}},
    "torchao of nothing": {"quant_method": "torchao", "quant_type": {"default": 3}},
    "bitnet": {"quant_method": "bitnet", "linear_class": "trilinear"},
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_are_called_so(name):
    settings, said = ESTIMATES[name]
    assert any("are an estimate" in note and said in note for note in costs(LLAMA2, settings)["notes"])
    exact = costs(LLAMA2, {"quant_method": "quanto", "weights": "int8"})["notes"]
    assert not any("are an estimate" in note for note in exact)


@pytest.mark.parametrize("name", NOT_READ)
def test_forms_that_are_not_read(name):
    found = costs(LLAMA2, NOT_READ[name])
    assert found["weights"]["bytes"] == 2 * 6_738_415_616
    assert any(f"this form of {name.split()[0]} is not read" in note for note in found["notes"])


def test_layers_that_hqq_packs_on_their_own():
    """A table for some kinds of layers leaves the others as they are."""
    settings = {"quant_method": "hqq", "skip_modules": [], "quant_config": {
        "self_attn.q_proj": {"weight_quant_params": {"nbits": 8, "group_size": 64}},
        "mlp.down_proj": {"nbits": 4, "group_size": 64},
    }}  # fmt: skip
    query, down = 32 * 4096**2, 32 * 4096 * 11008
    packed = query + query // 16 + down * 9 // 16
    assert costs(LLAMA2, settings)["weights"]["bytes"] == packed + 2 * (LINEAR - query - down) + REST


def test_heads_and_tables():
    """HQQ packs the head unless it is left out, torchao head and table where it is told to."""
    head = 32000 * 4096
    found = costs(LLAMA2, {"quant_method": "hqq", "nbits": 4, "skip_modules": ["model.layers.0"]})["weights"]["bytes"]
    assert found == (LINEAR * 31 // 32 + head) * 9 // 16 + LINEAR // 16 + REST - 2 * head
    settings = {"quant_method": "torchao", "quant_type": "int8_weight_only", "include_input_output_embeddings": True}
    assert costs(LLAMA2, settings)["weights"]["bytes"] == LINEAR + 2 * ROWS + 2 * (head + 2 * 32000) + 2 * 65 * 4096


def test_experts_in_four_bits():
    """DeepSeek V4: experts in fp4 with a scale for 32, the rest in fp8 with a byte of scale for a block."""
    config = {"model_type": "mixtral"}
    found = lmcalc.report(config).to_dict()["params"]["by_part"]
    settings = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}
    experts, attention = found["moe_experts"], found["attention"]
    rest = 2 * (sum(found.values()) - experts - attention)
    for more, inside in (({"expert_dtype": "fp4"}, {}), ({}, {"expert_dtype": "fp4"})):
        data = costs(config | more, settings | inside)
        assert data["weights"]["bytes"] == experts * 17 // 32 + attention + attention // 2**14 + rest
        assert not any("not read" in note for note in data["notes"])
    wide = costs(config | {"expert_dtype": "fp8"}, settings)["weights"]["bytes"]
    assert wide == experts + experts // 2**14 + attention + attention // 2**14 + rest
    older = costs(config, settings)["weights"]["bytes"]  # DeepSeek V3.1 says ue8m0, and stores four bytes
    assert older == experts + experts // 2**12 + attention + attention // 2**12 + rest


BAD = [
    ({"quant_method": "gptq", "bits": 4, "dynamic": {f"+:.*a{n}": {"bits": 8} for n in range(2000)}}, "2,001 rules"),
    (compressed(GROUP, ignore=[f"re:.*a{n}" for n in range(2000)]), "2,000 patterns in a list"),
    (compressed(GROUP, ignore=[f"layers.*.a{n}" for n in range(2000)]), "2,000 patterns in a list"),
    ({"quant_method": "hqq", "nbits": 5}, "nbits = 5"),
    ({"quant_method": "hqq", "nbits": 4, "axis": 2}, "axis = 2"),
    (
        {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": "many"}}},
        "group_size",
    ),
    ({"quant_method": "hqq", "quant_config": [4]}, "quant_config"),
    ({"quant_method": "quanto", "weights": "int3"}, "weights = 'int3'; allowed: one of float8"),
    ({"quant_method": "aqlm", "nbits_per_codebook": 2**40}, "nbits_per_codebook"),
    ({"quant_method": "aqlm", "in_group_size": 0}, "in_group_size = 0"),
    ({"quant_method": "higgs", "bits": 8}, "bits = 8"),
    ({"quant_method": "bitnet", "use_rms_norm": True}, "use_rms_norm = True"),
    (
        {"quant_method": "torchao", "quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": -3}},
        "group_size",
    ),
    ({"quant_method": "fp8", "expert_dtype": "fp2", "weight_block_size": [128, 128]}, "expert_dtype = 'fp2'"),
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
        packing = Packing(layout, 8 if "8" in layout else 4, 32, books=layout == "aqlm")
        assert packing.size(64, 96) > 64 * 96 // 64 and layout in str(packing)


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


def test_many_rules_for_many_layers():
    """What would take minutes is refused: each rule is tried on each weight."""
    settings = compressed(GROUP, ignore=[f"re:.*a{n}" for n in range(1000)])
    with pytest.raises(lmcalc.InputError, match="1,001 rules for 90,003 weights; allowed: up to 10,000,000 in all"):
        costs(LLAMA2 | {"num_hidden_layers": 10_000}, settings)
