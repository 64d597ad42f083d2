"""`lmcalc inspect`: true parameters, packed tensors, copies, prediction modules, and every difference from a model."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest
from checkpoints import gguf, kinds, safetensors, table

import lmcalc
from lmcalc import cli
from lmcalc.huggingface import read
from lmcalc.huggingface.families import FAMILIES
from lmcalc.huggingface.names import LEFT_OVER
from lmcalc.questions.inspect import inspect

RECORDED = Path(__file__).parent / "recorded" / "logits"
NAMES = sorted(folder.name for folder in RECORDED.iterdir() if read(folder / "config.json")["model_type"] in FAMILIES)


def folder(path, tensors, config):
    path.mkdir(exist_ok=True)
    safetensors(path / "model.safetensors", tensors)
    (path / "config.json").write_text(json.dumps(config))
    return path


def differences(path, **more):
    return {row["tensor"]: row["problem"] for row in inspect(path, **more)["differences"]}


# Every family that transformers wrote a checkpoint of --------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_accepts_what_transformers_writes(name):
    found = inspect(RECORDED / name)
    assert found["differences"] == [] and found["against"]["family"] in FAMILIES
    stored = table(RECORDED / name / "model.safetensors")
    assert found["tensors"] == len(stored) and found["bits_per_weight"] == 32
    params = lmcalc.report(RECORDED / name).to_dict()["params"] if not name.startswith(("t5-v1.1", "mt5")) else None
    if params is not None:
        assert found["params"]["total"] == params["total"]
        assert {row["name"]: row["params"] for row in found["by_part"]} == {
            k: v for k, v in params["by_part"].items() if v
        }


@pytest.mark.parametrize("name", NAMES)
def test_names_each_difference(name, tmp_path):
    stored, config = table(RECORDED / name / "model.safetensors"), read(RECORDED / name / "config.json")
    counted = {row for part in inspect(RECORDED / name)["by_part"] for row in [part["name"]]}
    assert counted
    known = [key for key in stored if not any(re.fullmatch(pattern, key) for pattern in LEFT_OVER)]
    matrices = [key for key in known if len(stored[key][1]) == 2 and stored[key][1][0] != stored[key][1][1]]
    for tensor in (matrices[0], matrices[-1]):
        dtype, shape = stored[tensor]
        others = {key: row for key, row in stored.items() if key != tensor}
        found = differences(folder(tmp_path, others, config))
        assert found[tensor] == f"missing; needed: shape {shape}" and len(found) == 1
        found = differences(folder(tmp_path, others | {"x." + tensor: stored[tensor]}, config))
        assert found == {tensor: f"missing; needed: shape {shape}", "x." + tensor: "not used by the model"}
        found = differences(folder(tmp_path, stored | {tensor: (dtype, shape[::-1])}, config))
        assert found == {tensor: f"shape {shape[::-1]}; needed: {shape}"}
        found = differences(folder(tmp_path, stored | {tensor: ("BF16", shape)}, config))
        assert found == {tensor: "type BF16; needed: F32"}


def test_without_a_stated_type_the_usual_one_counts(tmp_path):
    stored, config = table(RECORDED / "llama" / "model.safetensors"), read(RECORDED / "llama" / "config.json")
    del config["dtype"]
    stored["model.norm.weight"] = "F16", [24]
    assert differences(folder(tmp_path, stored, config)) == {"model.norm.weight": "type F16; needed: F32"}


def test_against_another_model():
    found = differences(RECORDED / "llama", against=RECORDED / "llama-biases")
    assert found["model.layers.0.self_attn.q_proj.bias"].startswith("missing; needed: shape [")
    assert differences(RECORDED / "llama", against=RECORDED / "llama" / "config.json") == {}
    assert len(inspect(RECORDED / "llama", "llama-3.1-8b")["differences"]) > 200
    with pytest.raises(lmcalc.InputError, match="names of tensors are not known for the family 'of mine'"):
        inspect(RECORDED / "llama", lmcalc.load("gpt2").replace(family="of mine"))
    with pytest.raises(lmcalc.InputError, match=r"closest: llama-3\.1-8b"):
        inspect(RECORDED / "llama", "llama-3.1-8")


@pytest.mark.parametrize(
    "changes", [{"num_local_experts": 10**9}, {"num_local_experts": 10**4, "num_hidden_layers": 10**4}]
)
def test_a_config_of_endless_tensors(changes, tmp_path, capsys):
    made = folder(tmp_path, {"a": ("F32", (2,))}, {"model_type": "mixtral", "num_hidden_layers": 2, **changes})
    assert cli.main(["inspect", str(made)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "allowed: up to" in err


def test_without_a_model(tmp_path):
    shutil.copy(RECORDED / "llama" / "model.safetensors", tmp_path)
    found = inspect(tmp_path)
    assert found["against"] is None and found["differences"] == [] and "no config.json" in found["notes"][0]
    assert {row["name"] for row in found["by_part"]} == {"attention", "ffn", "norms", "token_embedding", "lm_head"}
    (tmp_path / "config.json").write_text('{"model_type": "lama"}')
    assert "model_type = 'lama' is not known; closest: llama" in inspect(tmp_path)["notes"][0]


def test_remote_code_is_named_and_not_run(tmp_path):
    stored, config = table(RECORDED / "llama" / "model.safetensors"), read(RECORDED / "llama" / "config.json")
    config["auto_map"] = {"AutoModelForCausalLM": "modeling.Evil"}
    made = folder(tmp_path, stored, config)
    (tmp_path / "modeling.py").write_text("raise SystemExit(7)")
    found = inspect(made)
    assert found["differences"] == [] and "auto_map asks for code of its own: none was run" in found["notes"][0]


def test_index_that_disagrees(tmp_path):
    stored, config = table(RECORDED / "llama" / "model.safetensors"), read(RECORDED / "llama" / "config.json")
    names = sorted(stored)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in halves.items():
        safetensors(tmp_path / file, {name: stored[name] for name in some})
    where = {name: file for file, some in halves.items() for name in some}
    (tmp_path / "config.json").write_text(json.dumps(config))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": where}))
    assert differences(tmp_path) == {} and inspect(tmp_path)["files"] == 2
    lies = {key: file for key, file in where.items() if key != names[0]} | {
        names[1]: "a.safetensors",
        "more.weight": "a.safetensors",
    }
    index.write_text(json.dumps({"weight_map": lies}))
    assert differences(tmp_path) == {
        names[0]: "in a.safetensors, and not in the index",
        names[1]: "not in a.safetensors, where the index has it, but in b.safetensors",
        "more.weight": "not in a.safetensors, where the index has it",
    }


# Copies and prediction modules -------------------------------------------------------------------------------------


def test_tied_tensors_that_are_stored_twice(tmp_path):
    """P1 of the cases: a head that is the embedding is no further parameters."""
    stored, config = table(RECORDED / "gpt2" / "model.safetensors"), read(RECORDED / "gpt2" / "config.json")
    stored.pop("lm_head.weight", None)
    before = inspect(folder(tmp_path, stored, config))
    shape = stored["transformer.wte.weight"][1]
    found = inspect(folder(tmp_path, stored | {"lm_head.weight": ("F32", shape)}, config))
    assert found["differences"] == [] and found["params"]["total"] == before["params"]["total"]
    assert found["params"]["duplicated"] == math.prod(shape)
    assert found["duplicates"] == [
        {"tensor": "lm_head.weight", "of": "transformer.wte.weight", "bytes": 4 * math.prod(shape)}
    ]
    found = inspect(folder(tmp_path, stored | {"lm_head.weight": ("F32", [1, *shape])}, config))
    assert found["differences"][0]["tensor"] == "lm_head.weight"


H, E, VOCAB = 7168, 256, 129280


def deepseek_v3(packed=True):
    """{name: (dtype, shape)} of DeepSeek-V3's files: FP8 with scales for blocks, and layer 61 for prediction."""
    found = {
        "model.embed_tokens.weight": ("BF16", (VOCAB, H)),
        "lm_head.weight": ("BF16", (VOCAB, H)),
        "model.norm.weight": ("BF16", (H,)),
    }

    def matrix(name, outputs, inputs):
        found[name + ".weight"] = "F8_E4M3", (outputs, inputs)
        found[name + ".weight_scale_inv"] = "F32", (-(-outputs // 128), -(-inputs // 128))

    for number in range(62):
        at = f"model.layers.{number}."
        matrix(at + "self_attn.q_a_proj", 1536, H), matrix(at + "self_attn.q_b_proj", 24576, 1536)
        matrix(at + "self_attn.kv_a_proj_with_mqa", 576, H), matrix(at + "self_attn.kv_b_proj", 32768, 512)
        matrix(at + "self_attn.o_proj", H, 16384)
        for name, size in (("self_attn.q_a_layernorm", 1536), ("self_attn.kv_a_layernorm", 512),
                           ("input_layernorm", H), ("post_attention_layernorm", H)):  # fmt: skip
            found[f"{at}{name}.weight"] = "BF16", (size,)
        parts = (
            {"mlp.": 18432}
            if number < 3
            else {f"mlp.experts.{each}.": 2048 for each in range(E)} | {"mlp.shared_experts.": 2048}
        )
        for part, size in parts.items():
            (
                matrix(f"{at}{part}gate_proj", size, H),
                matrix(f"{at}{part}up_proj", size, H),
                matrix(f"{at}{part}down_proj", H, size),
            )
        if number >= 3:
            found[at + "mlp.gate.weight"] = "BF16", (E, H)
            found[at + "mlp.gate.e_score_correction_bias"] = "F32", (E,)
    at = "model.layers.61."
    found |= {
        at + "embed_tokens.weight": ("BF16", (VOCAB, H)),
        at + "shared_head.head.weight": ("BF16", (VOCAB, H)),
        at + "eh_proj.weight": ("BF16", (H, 2 * H)),
        at + "enorm.weight": ("BF16", (H,)),
        at + "hnorm.weight": ("BF16", (H,)),
        at + "shared_head.norm.weight": ("BF16", (H,)),
    }
    return found


def test_deepseek_v3(tmp_path):
    """P4 of the cases: 671B and 685B are the same files, counted with and without what is no parameter of the model."""
    config = {
        "model_type": "deepseek_v3",
        "torch_dtype": "bfloat16",
        "num_nextn_predict_layers": 1,
        "quantization_config": {
            "quant_method": "fp8",
            "fmt": "e4m3",
            "weight_block_size": [128, 128],
            "activation_scheme": "dynamic",
        },
    }
    found = inspect(folder(tmp_path, deepseek_v3(), config))
    assert found["differences"] == []
    params = found["params"]
    assert params["total"] + 58 * E == 671_026_419_200  # the cases count correction biases, which are buffers
    assert params["mtp"] + params["total"] + params["buffers"] - 58 * E == 671_026_404_352 + 11_610_068_224
    assert params["duplicated"] == 2 * VOCAB * H
    assert found["elements_stored"] == 684_531_386_000
    scales = sum(found["bytes"][key] for key in ("scales",)) // 4
    assert scales == 41_540_496 and found["elements_stored"] - scales == 684_489_845_504
    assert [row["of"] for row in found["duplicates"]] == ["model.embed_tokens.weight", "lm_head.weight"]
    held = sum(row["bytes"] for row in found["by_dtype"])
    assert held == lmcalc.report(tmp_path).to_dict()["weights"]["bytes"]
    stored = deepseek_v3()
    stored["model.layers.5.self_attn.o_proj.weight_scale_inv"] = "F32", (56, 127)
    del stored["model.layers.6.self_attn.o_proj.weight_scale_inv"]
    stored["model.layers.7.self_attn.o_proj.weight"] = "BF16", stored["model.layers.7.self_attn.o_proj.weight"][1]
    del stored["model.layers.61.eh_proj.weight"]
    found = differences(folder(tmp_path, stored, config))
    assert "shape [56, 127]; needed: [56, 128]" in found["model.layers.5.self_attn.o_proj.weight_scale_inv"]
    assert "fp8, 8 bits" in found["model.layers.6.self_attn.o_proj.weight"]
    assert "fp8, 8 bits" in found["model.layers.7.self_attn.o_proj.weight"]
    assert any("prediction have" in problem for problem in found.values()) and len(found) == 5


# Packed weights ----------------------------------------------------------------------------------------------------

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}


def llama(matrix, layers=32, h=4096, kv=1024, ff=14336, vocab=128256, dtype="BF16"):
    """{name: (dtype, shape)} of a llama whose matrices are stored as matrix(outputs, inputs) says, by ending."""
    found = {
        "model.embed_tokens.weight": (dtype, (vocab, h)),
        "lm_head.weight": (dtype, (vocab, h)),
        "model.norm.weight": (dtype, (h,)),
    }
    for number in range(layers):
        at = f"model.layers.{number}."
        for name, outputs, inputs in (
            ("self_attn.q_proj", h, h),
            ("self_attn.k_proj", kv, h),
            ("self_attn.v_proj", kv, h),
            ("self_attn.o_proj", h, h),
            ("mlp.gate_proj", ff, h),
            ("mlp.up_proj", ff, h),
            ("mlp.down_proj", h, ff),
        ):
            for ending, stored in matrix(outputs, inputs).items():
                found[at + name + ending] = stored
        for name in ("input_layernorm", "post_attention_layernorm"):
            found[f"{at}{name}.weight"] = dtype, (h,)
    return found


W4A16 = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "group_size": 128, "strategy": "group", "symmetric": True, "type": "int"},
        }
    },
}


def test_llama_w4a16(tmp_path):
    """P13 of the cases: packed integers are not parameters. 872,415,232 of them and 54,525,952 scales are stored."""

    def matrix(outputs, inputs):
        return {".weight_packed": ("I32", (outputs, inputs // 8)), ".weight_scale": ("BF16", (outputs, inputs // 128))}

    made = folder(tmp_path, llama(matrix), LLAMA | {"quantization_config": W4A16})
    found = inspect(made)
    # without the two sizes that compressed-tensors writes beside each matrix, as the case counts
    assert found["params"]["total"] == 8_030_261_248 and found["elements_stored"] == 1_977_880_576
    assert found["differences"] == [] and found["bytes"]["scales"] == 2 * 54_525_952
    by_dtype = {row["name"]: row for row in found["by_dtype"]}
    assert by_dtype["4 bits (pack-quantized)"]["params"] == 872_415_232 * 8
    assert by_dtype["4 bits (pack-quantized)"]["bits_per_weight"] == 4 + 16 / 128
    with_sizes = llama(lambda *sizes: matrix(*sizes) | {".weight_shape": ("I64", (2,))})
    found = inspect(folder(tmp_path, with_sizes, LLAMA | {"quantization_config": W4A16}))
    assert found["params"]["total"] == 8_030_261_248 and found["differences"] == []
    assert found["bytes"]["total"] == lmcalc.report(tmp_path).to_dict()["weights"]["bytes"]


def test_llama_70b_gptq(tmp_path):
    """P14 of the cases: without the packed matrices a thirtieth is left to see."""

    def matrix(outputs, inputs):
        return {".qweight": ("I32", (inputs // 8, outputs)), ".qzeros": ("I32", (inputs // 128, outputs // 8)),
                ".scales": ("F16", (inputs // 128, outputs)), ".g_idx": ("I32", (inputs,))}  # fmt: skip

    config = LLAMA | {
        "hidden_size": 8192,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "intermediate_size": 28672,
        "torch_dtype": "float16",
        "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128},
    }
    stored = llama(matrix, 80, 8192, 1024, 28672, dtype="F16")
    found = inspect(folder(tmp_path, stored, config))
    assert found["params"]["total"] == 70_553_706_496 and found["differences"] == []
    assert sum(row["params"] for row in found["by_dtype"] if row["name"] == "F16") == 2_102_665_216
    assert found["bytes"]["total"] == lmcalc.report(tmp_path).to_dict()["weights"]["bytes"]
    del config["quantization_config"]
    found = inspect(folder(tmp_path, stored, config))
    assert len(found["differences"]) == 560 and "does not say that it is packed" in found["differences"][0]["problem"]
    (tmp_path / "config.json").unlink()
    assert inspect(tmp_path)["params"]["total"] == 70_553_706_496


SMALL = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 384,
    "vocab_size": 320,
    "torch_dtype": "bfloat16",
}
# what the config says, and what is stored of a matrix (outputs, inputs): written down from the formats, not packing.py
FORMATS = {
    "awq": (
        {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm", "zero_point": True},
        lambda o, i: {
            ".qweight": ("I32", (i, o // 8)),
            ".qzeros": ("I32", (i // 64, o // 8)),
            ".scales": ("F16", (i // 64, o)),
        },
    ),
    "gptq, 8 bits": (
        {"quant_method": "gptq", "bits": 8, "group_size": -1, "desc_act": False, "sym": True},
        lambda o, i: {
            ".qweight": ("I32", (i // 4, o)),
            ".qzeros": ("I32", (1, o // 4)),
            ".scales": ("F16", (1, o)),
            ".g_idx": ("I32", (i,)),
        },
    ),
    "fp8 blocks": (
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        lambda o, i: {".weight": ("F8_E4M3", (o, i)), ".weight_scale_inv": ("F32", (-(-o // 128), -(-i // 128)))},
    ),
    "fbgemm": (
        {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": ["lm_head"]},
        lambda o, i: {".weight": ("F8_E4M3", (o, i)), ".weight_scale": ("F32", (o, 1))},
    ),
    "w8a8": (
        {
            "quant_method": "compressed-tensors",
            "format": "int-quantized",
            "ignore": ["lm_head"],
            "config_groups": {
                "a": {
                    "targets": ["Linear"],
                    "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True},
                }
            },
        },
        lambda o, i: {".weight": ("I8", (o, i)), ".weight_scale": ("BF16", (o, 1))},
    ),
    "nvfp4": (
        {
            "quant_method": "compressed-tensors",
            "format": "nvfp4-pack-quantized",
            "ignore": ["lm_head"],
            "config_groups": {
                "a": {
                    "targets": ["Linear"],
                    "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
                }
            },
        },
        lambda o, i: {
            ".weight_packed": ("U8", (o, i // 2)),
            ".weight_scale": ("F8_E4M3", (o, i // 16)),
            ".weight_global_scale": ("F32", (1,)),
            ".input_global_scale": ("F32", (1,)),
        },
    ),
    "modelopt nvfp4": (
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
        lambda o, i: {
            ".weight": ("U8", (o, i // 2)),
            ".weight_scale": ("F8_E4M3", (o, i // 16)),
            ".weight_scale_2": ("F32", (1,)),
            ".input_scale": ("F32", (1,)),
        },
    ),
    "hqq": (
        {"quant_method": "hqq", "quant_config": {"nbits": 4, "group_size": 64, "axis": 1}, "skip_modules": ["lm_head"]},
        lambda o, i: {
            ".W_q": ("U8", (o * i // 128, 64)),
            ".scale": ("BF16", (o * i // 64, 1)),
            ".zero": ("BF16", (o * i // 64, 1)),
        },
    ),
    "hqq, 3 bits": (
        {"quant_method": "hqq", "quant_config": {"nbits": 3, "group_size": 64}, "skip_modules": ["lm_head"]},
        lambda o, i: {
            ".W_q": ("I32", (-(-o * i // 640), 64)),
            ".scale": ("BF16", (o * i // 64, 1)),
            ".zero": ("BF16", (o * i // 64, 1)),
        },
    ),
    "aqlm": (
        {"quant_method": "aqlm", "in_group_size": 8, "num_codebooks": 2, "nbits_per_codebook": 8},
        lambda o, i: {
            ".codes": ("I8", (o, i // 8, 2)),
            ".codebooks": ("BF16", (2, 256, 1, 8)),
            ".scales": ("BF16", (o, 1, 1, 1)),
        },
    ),
    "quanto": (
        {"quant_method": "quanto", "weights": "int8"},
        lambda o, i: {
            ".weight._data": ("I8", (o, i)),
            ".weight._scale": ("BF16", (o, 1)),
            ".input_scale": ("BF16", ()),
            ".output_scale": ("BF16", ()),
        },
    ),
    "quanto, 4 bits": (
        {"quant_method": "quanto", "weights": "int4"},
        lambda o, i: {
            ".weight._data": ("U8", (o * i // 256, 128)),
            ".weight._scale": ("BF16", (o * i // 128, 1)),
            ".weight._shift": ("BF16", (o * i // 128, 1)),
            ".input_scale": ("BF16", ()),
            ".output_scale": ("BF16", ()),
        },
    ),
    "eetq": (
        {"quant_method": "eetq", "weights": "int8"},
        lambda o, i: {".weight": ("I8", (i, o)), ".weight_scales": ("F16", (o,))},
    ),
    "higgs": (
        {"quant_method": "higgs", "bits": 4, "group_size": 64},
        lambda o, i: {
            ".weight": ("I16", (o // 4, i)),
            ".scales": ("BF16", (o, i // 64)),
            ".tables": ("BF16", (16,)),
            ".tables2": ("BF16", (16, 16, 2)),
        },
    ),
    "bitnet": (
        {"quant_method": "bitnet"},
        lambda o, i: {".weight": ("U8", (o // 4, i)), ".weight_scale": ("BF16", (1,))},
    ),
    "metal": (
        {"quant_method": "metal", "bits": 4, "group_size": 64},
        lambda o, i: {
            ".weight": ("U32", (o, i // 8)),
            ".scales": ("F32", (o, i // 64)),
            ".qbiases": ("F32", (o, i // 64)),
        },
    ),
    "fp8 blocks with short scales": (
        {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0", "expert_dtype": "fp8"},
        lambda o, i: {".weight": ("F8_E4M3", (o, i)), ".scale": ("F8_E8M0", (-(-o // 128), -(-i // 128)))},
    ),
    "bitsandbytes, 8 bits": (
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        lambda o, i: {".weight": ("I8", (o, i)), ".SCB": ("F32", (o,))},
    ),
    "bitsandbytes, 4 bits": (
        {
            "quant_method": "bitsandbytes",
            "load_in_4bit": True,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": True,
        },
        lambda o, i: {
            ".weight": ("U8", (o * i // 2, 1)),
            ".weight.absmax": ("U8", (o * i // 64,)),
            ".weight.quant_map": ("F32", (16,)),
            ".weight.nested_absmax": ("F32", (-(-o * i // 64 // 256),)),
            ".weight.nested_quant_map": ("F32", (256,)),
        },
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name, tmp_path):
    """Counted as the model that it is, with every byte where the report has it; and a tensor too few is named."""
    settings, matrix = FORMATS[name]
    stored = llama(matrix, 2, 256, 128, 384, 320)
    found = inspect(folder(tmp_path, stored, SMALL | {"quantization_config": settings}))
    assert found["differences"] == []
    assert found["params"]["total"] == lmcalc.report(SMALL).to_dict()["params"]["total"]
    assert found["bytes"]["total"] == lmcalc.report(tmp_path).to_dict()["weights"]["bytes"]
    side = next(
        key
        for key in stored
        if key.startswith("model.layers.1.mlp.up_proj.")
        and key.endswith(("scale", "scales", "inv", "SCB", "absmax"))
        and not key.endswith(("input_scale", "output_scale"))
    )
    del stored[side]
    assert any(
        each.startswith("model.layers.1.mlp.up_proj.")
        for each in differences(folder(tmp_path, stored, SMALL | {"quantization_config": settings}))
    )
    plain = differences(
        folder(
            tmp_path,
            llama(lambda o, i: {".weight": ("BF16", (o, i))}, 2, 256, 128, 384, 320),
            SMALL | {"quantization_config": settings},
        )
    )
    assert len(plain) == 14 and all("stored in BF16; needed: " in problem for problem in plain.values())


def test_mlx(tmp_path):
    """MLX packs embeddings and head, too."""
    settings = {"group_size": 64, "bits": 4}

    def matrix(o, i):
        return {".weight": ("U32", (o, i // 8)), ".scales": ("BF16", (o, i // 64)), ".biases": ("BF16", (o, i // 64))}

    stored = llama(matrix, 2, 256, 128, 384, 320)
    for name in ("model.embed_tokens", "lm_head"):
        stored |= {name + ending: each for ending, each in matrix(320, 256).items()}
    found = inspect(folder(tmp_path, stored, SMALL | {"quantization": settings, "quantization_config": settings}))
    assert found["differences"] == [] and found["params"]["total"] == lmcalc.report(SMALL).to_dict()["params"]["total"]
    assert found["bytes"]["total"] == lmcalc.report(tmp_path).to_dict()["weights"]["bytes"]


def test_gpt_oss(tmp_path):
    """M1 and P2 of the cases: 20,914,757,184 parameters, experts in 4 bits with a scale for 32."""
    config = {
        "model_type": "gpt_oss",
        "torch_dtype": "bfloat16",
        "num_hidden_layers": 24,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "num_local_experts": 32,
        "num_experts_per_tok": 4,
        "vocab_size": 201088,
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": [
                "model.layers.*.self_attn",
                "model.layers.*.mlp.router",
                "model.embed_tokens",
                "lm_head",
            ],
        },
    }
    stored = {
        "model.embed_tokens.weight": (201088, 2880),
        "lm_head.weight": (201088, 2880),
        "model.norm.weight": (2880,),
    }
    for number in range(24):
        at = f"model.layers.{number}."
        for name, size in (("q", 4096), ("k", 512), ("v", 512)):
            stored |= {f"{at}self_attn.{name}_proj.weight": (size, 2880), f"{at}self_attn.{name}_proj.bias": (size,)}
        stored |= {
            at + "self_attn.o_proj.weight": (2880, 4096),
            at + "self_attn.o_proj.bias": (2880,),
            at + "self_attn.sinks": (64,),
            at + "mlp.router.weight": (32, 2880),
            at + "mlp.router.bias": (32,),
            at + "mlp.experts.gate_up_proj_bias": (32, 5760),
            at + "mlp.experts.down_proj_bias": (32, 2880),
            at + "input_layernorm.weight": (2880,),
            at + "post_attention_layernorm.weight": (2880,),
        }
    stored = {name: ("BF16", shape) for name, shape in stored.items()}
    for number in range(24):
        for name, size in (("gate_up_proj", 5760), ("down_proj", 2880)):
            at = f"model.layers.{number}.mlp.experts.{name}"
            stored |= {at + "_blocks": ("U8", (32, size, 90, 16)), at + "_scales": ("U8", (32, size, 90))}
    found = inspect(folder(tmp_path, stored, config))
    assert found["differences"] == [] and found["params"]["total"] == 20_914_757_184
    assert {row["name"]: row["bits_per_weight"] for row in found["by_dtype"]} == {"4 bits (mxfp4)": 4.25, "BF16": 16}
    assert found["bytes"]["total"] == lmcalc.report(tmp_path).to_dict()["weights"]["bytes"]


def test_experts_in_four_bits(tmp_path):
    """As DeepSeek V4 stores them: two values a byte, a scale for 32 of a row; the rest in eight bits."""
    settings = {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0", "expert_dtype": "fp4"}
    config = {"model_type": "mixtral", "hidden_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
              "num_key_value_heads": 2, "intermediate_size": 384, "vocab_size": 320, "num_local_experts": 3,
              "torch_dtype": "bfloat16", "quantization_config": settings}  # fmt: skip

    def eight(o, i):
        return {".weight": ("F8_E4M3", (o, i)), ".weight_scale_inv": ("F8_E8M0", (-(-o // 128), -(-i // 128)))}

    def four(o, i):
        return {".weight": ("I8", (o, i // 2)), ".scale": ("F8_E8M0", (o, i // 32))}

    stored = {key: row for key, row in llama(eight, 1, 256, 128, 384, 320).items() if ".mlp." not in key}
    at = "model.layers.0.block_sparse_moe."
    stored[at + "gate.weight"] = "BF16", (3, 256)
    for number in range(3):
        for name, outputs, inputs in (("w1", 384, 256), ("w2", 256, 384), ("w3", 384, 256)):
            stored |= {f"{at}experts.{number}.{name}{end}": row for end, row in four(outputs, inputs).items()}
    found = inspect(folder(tmp_path, stored, config))
    assert (
        found["differences"] == [] and found["params"]["total"] == lmcalc.report(tmp_path).to_dict()["params"]["total"]
    )
    assert found["bytes"]["total"] == lmcalc.report(tmp_path).to_dict()["weights"]["bytes"]
    assert {row["name"]: row["bits_per_weight"] for row in found["by_dtype"]}["4 bits (fp4)"] == 4.25
    stored[at + "experts.1.w2.weight"] = "F8_E4M3", (256, 384)
    assert "needed: fp4, 4 bits" in differences(folder(tmp_path, stored, config))[at + "experts.1.w2.weight"]


def test_scales_of_nothing(tmp_path):
    stored = table(RECORDED / "llama" / "model.safetensors") | {"model.layers.0.mlp.up_proj.qzeros": ("I32", (1, 2))}
    found = differences(folder(tmp_path, stored, read(RECORDED / "llama" / "config.json")))
    assert found == {"model.layers.0.mlp.up_proj.qzeros": "scales or zero points of no weight in the file"}


# GGUF --------------------------------------------------------------------------------------------------------------

KEYS = {
    "block_count": 2,
    "context_length": 64,
    "embedding_length": 256,
    "feed_forward_length": 512,
    "attention__head_count": 4,
    "attention__head_count_kv": 2,
    "attention__layer_norm_rms_epsilon": 1e-6,
    "rope__freq_base": 1e4,
}


def metadata(architecture, **more):
    return kinds(
        general__architecture=architecture,
        general__name="small",
        **{f"{architecture}__{key}": value for key, value in (KEYS | more).items()},
    )


def blocks(dtype="Q8_0", extra=(), tied=False, qkv=False, head=64):
    """{name: (dtype, shape)} of a small model in llama.cpp's names. extra: (name, shape) in each layer."""
    found = {"token_embd.weight": (dtype, (320, 256)), "output_norm.weight": ("F32", (256,))}
    if not tied:
        found["output.weight"] = "Q6_K", (320, 256)
    for number in range(2):
        parts = {"attn_q": (4 * head, 256), "attn_k": (2 * head, 256), "attn_v": (2 * head, 256)}
        parts = (
            {"attn_qkv": (8 * head, 256), "ffn_up": (1024, 256)}
            if qkv
            else parts | {"ffn_gate": (512, 256), "ffn_up": (512, 256)}
        )
        parts |= {"attn_output": (256, 4 * head), "ffn_down": (256, 512)}
        found |= {f"blk.{number}.{name}.weight": (dtype, shape) for name, shape in parts.items()}
        for name, shape in (("attn_norm", (256,)), ("ffn_norm", (256,)), *extra):
            found[f"blk.{number}.{name}"[:99] + ("" if "." in name else ".weight")] = "F32", shape
    return found


POST = (("post_attention_norm", (256,)), ("post_ffw_norm", (256,)))
QK = (("attn_q_norm", (64,)), ("attn_k_norm", (64,)))
MODELS = {
    "llama": (metadata("llama"), blocks()),
    "qwen2": (
        metadata("qwen2"),
        blocks(extra=(("attn_q.bias", (256,)), ("attn_k.bias", (128,)), ("attn_v.bias", (128,)))),
    ),
    "qwen3": (metadata("qwen3", attention__key_length=64), blocks(extra=QK)),
    "gemma": (metadata("gemma", attention__key_length=32), blocks(tied=True, head=32)),
    "gemma2": (
        metadata(
            "gemma2",
            attention__key_length=64,
            attention__sliding_window=8,
            final_logit_softcapping=30.0,
            attn_logit_softcapping=50.0,
        ),
        blocks(tied=True, extra=POST),
    ),
    "gemma3": (
        metadata("gemma3", attention__key_length=64, attention__sliding_window=8),
        blocks(tied=True, extra=POST + QK),
    ),
    "phi3": (metadata("phi3", attention__sliding_window=8), blocks(qkv=True)),
}


@pytest.mark.parametrize("architecture", MODELS)
def test_gguf_models(architecture, tmp_path, capsys):
    values, tensors = MODELS[architecture]
    path = gguf(tmp_path / "x.gguf", values, tensors)
    found = inspect(path)
    assert found["differences"] == [] and found["against"]["name"] == "small"
    data = lmcalc.report(path).to_dict()
    assert data["params"]["total"] == found["params"]["total"] == sum(math.prod(shape) for _, shape in tensors.values())
    assert data["weights"]["bytes"] == found["bytes"]["total"] and data["workload"]["dtypes"]["weights"] == "stored"
    assert any("Q8_0" in note for note in data["notes"])
    assert {row["name"]: row["bits_per_weight"] for row in found["by_dtype"]}["Q8_0"] == 8.5
    half = lmcalc.report(path, weights="bf16").to_dict()
    assert (
        half["weights"]["bytes"] == 2 * data["params"]["total"] and half["decode"]["flops"] == data["decode"]["flops"]
    )
    name = "blk.1.ffn_down.weight"
    changed = gguf(tmp_path / "y.gguf", values, tensors | {name: ("Q8_0", (512, 256))})
    assert differences(changed) == {name: "shape [512, 256]; needed: [256, 512]"}
    missing = gguf(
        tmp_path / "y.gguf",
        values,
        {key: each for key, each in tensors.items() if key != name} | {"more.weight": ("F32", (2,))},
    )
    assert differences(missing) == {name: "missing; needed: shape [256, 512]", "more.weight": "not used by the model"}
    assert cli.main(["inspect", str(missing)]) == 1 and name in capsys.readouterr().out


def test_gguf_layers_of_different_types(tmp_path):
    """As Q4_K_M has them: the bytes are those of the file, and every layer moves the mean of its like."""
    tensors = MODELS["llama"][1] | {"blk.0.ffn_down.weight": ("Q4_K", (256, 512)), "rope_freqs.weight": ("F32", (32,))}
    path = gguf(tmp_path / "x.gguf", MODELS["llama"][0], tensors)
    found, data = inspect(path), lmcalc.report(path, traffic="ideal").to_dict()
    assert found["differences"] == [] and found["params"]["buffers"] == 32
    held = found["bytes"]["total"] - 32 * 4
    assert data["weights"]["bytes"] == held
    table = 320 * 256 // 32 * 34  # one row of it is read
    assert data["decode"]["bytes"]["weights"] == held - table + table // 320
    fewer = lmcalc.report(path, set={"n_layers": 1}).to_dict()
    assert fewer["weights"]["bytes"] < held and fewer["workload"]["dtypes"]["weights"] == "stored"


def test_gguf_that_is_no_model_of_ours(tmp_path):
    path = gguf(tmp_path / "x.gguf", kinds(general__architecture="lama"), {"a": ("F32", (2,))})
    assert "general.architecture = 'lama' is not known; closest: llama" in inspect(path)["notes"][0]
    with pytest.raises(lmcalc.InputError, match="closest: llama"):
        lmcalc.load(path)
    path = gguf(tmp_path / "x.gguf", kinds(general__architecture="llama"), {"a": ("F32", (2,))})
    with pytest.raises(lmcalc.InputError, match=r"llama\.block_count is missing"):
        lmcalc.load(path)
    values = metadata("llama") | {"llama.feed_forward_length": ((4,), [3, 4])}
    with pytest.raises(lmcalc.InputError, match=r"llama\.feed_forward_length differs from layer to layer"):
        lmcalc.load(gguf(tmp_path / "x.gguf", values, {"a": ("F32", (2,))}))
    note = lmcalc.load(gguf(tmp_path / "x.gguf", metadata("llama", colour=3), blocks())).notes[0]
    assert note == "metadata keys not read: llama.colour."


# Command line ------------------------------------------------------------------------------------------------------


def test_command(capsys, tmp_path):
    assert cli.main(["inspect", str(RECORDED / "llama")]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "every tensor is as llama (llama) needs it" in out and max(map(len, out.splitlines())) <= 80
    assert cli.main(["inspect", str(RECORDED / "llama"), "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "lmcalc.inspect/1"
    assert (
        cli.main(["inspect", str(RECORDED / "llama"), "--against", str(RECORDED / "qwen2"), "-o", str(tmp_path / "x")])
        == 1
    )
    assert "differences from qwen2" in (tmp_path / "x").read_text()


@pytest.mark.parametrize("arguments", [["nothing"], ["nothing.gguf"], ["."], ["README.md"]])
def test_bad_paths(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("#")
    assert cli.main(["inspect", *arguments, "-o", "out.json"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("lmcalc: ") and err.count("\n") == 1 and arguments[0] in err
    assert [each.name for each in tmp_path.iterdir()] == ["README.md"]
