"""Situations that public reports got wrong, about what files hold: bits a weight, sizes, and what they are divided by.

The letters are those of the collection that the cases come from, as in test_cases.py. Which tensor has which type is
what llama.cpp's quantize chooses (llama-quant.cpp); the sizes are those that it and others printed.
"""

import json
import math
from pathlib import Path

import pytest
from checkpoints import gguf, kinds, safetensors, table

import lmcalc
from lmcalc import cli
from lmcalc.huggingface import read
from lmcalc.questions.inspect import inspect

GiB = 2**30
LLAMA = {"block_count": 32, "context_length": 131072, "embedding_length": 4096, "feed_forward_length": 14336,
         "attention__head_count": 32, "attention__head_count_kv": 8,
         "attention__layer_norm_rms_epsilon": 1e-5}  # fmt: skip
QWEN = {"block_count": 48, "context_length": 40960, "embedding_length": 2048, "feed_forward_length": 6144,
        "attention__head_count": 32, "attention__head_count_kv": 4, "attention__key_length": 128,
        "attention__layer_norm_rms_epsilon": 1e-6, "expert_count": 128, "expert_used_count": 8,
        "expert_feed_forward_length": 768}  # fmt: skip


def metadata(architecture, values):
    return kinds(general__architecture=architecture, **{f"{architecture}__{k}": v for k, v in values.items()})


def more_bits(layer, count):
    """The layers that keep more bits: the first and last eighth, and every third between."""
    return layer < count // 8 or layer >= 7 * count // 8 or (layer - count // 8) % 3 == 2


def test_m5_bits_of_a_name_and_of_a_file(tmp_path):
    """IQ2_XS is 2.31 bits by name; half of the bytes of an 8B model are its embedding and head."""
    tensors = dict.fromkeys(("token_embd.weight", "output.weight"), ("F16", (128256, 4096)))
    tensors["output_norm.weight"] = "F32", (4096,)
    for layer in range(32):
        at = f"blk.{layer}."
        for name, shape in (("attn_q", (4096, 4096)), ("attn_k", (1024, 4096)), ("attn_output", (4096, 4096)),
                            ("ffn_gate", (14336, 4096)), ("ffn_up", (14336, 4096))):  # fmt: skip
            tensors[f"{at}{name}.weight"] = "IQ2_XS", shape
        tensors[at + "attn_v.weight"] = "Q4_K", (1024, 4096)
        tensors[at + "ffn_down.weight"] = "Q2_K" if layer < 4 else "IQ2_XS", (4096, 14336)
        tensors |= {f"{at}{name}.weight": ("F32", (4096,)) for name in ("attn_norm", "ffn_norm")}
    path = gguf(tmp_path / "x.gguf", metadata("llama", LLAMA), tensors)
    found, data = inspect(path), lmcalc.report(path).to_dict()
    assert found["differences"] == [] and found["params"]["total"] == 8_030_261_248
    assert round(found["bytes"]["total"] / GiB, 2) == 3.88 and round(found["bits_per_weight"], 3) == 4.150
    parts = {row["name"]: row for row in found["by_part"]}
    ends = [parts.pop(name) for name in ("token_embedding", "lm_head")]
    assert {row["bits_per_weight"] for row in ends} == {16.0} and sum(
        row["params"] for row in ends
    ) == 2 * 128256 * 4096
    repeating = {what: sum(row[what] for row in parts.values()) for what in ("params", "bytes")}
    assert repeating["params"] - 4096 == 6_979_584_000  # the last norm is in no layer
    assert round(repeating["bytes"] / GiB, 3) == 1.923
    assert int(repeating["bytes"] * 8 / repeating["params"] * 1000) == 2366  # printed as 2.367
    assert data["weights"]["bytes"] == found["bytes"]["total"]


@pytest.mark.parametrize(("usual", "size", "bits"), [("Q5_K", 20.228, 5.691), ("Q4_K", 17.28, 4.86)])
def test_m6_a_file_by_its_bits(usual, size, bits, tmp_path):
    """Qwen3-30B-A3B as Q5_K_M and Q4_K_M: half of the down projections and the head in Q6_K, routers in 32 bits."""
    tensors = {"token_embd.weight": (usual, (151936, 2048)), "output.weight": ("Q6_K", (151936, 2048)),
               "output_norm.weight": ("F32", (2048,))}  # fmt: skip
    for layer in range(48):
        at, wide = f"blk.{layer}.", "Q6_K" if more_bits(layer, 48) else usual
        for name, shape in (("attn_q", (4096, 2048)), ("attn_k", (512, 2048)), ("attn_output", (2048, 4096)),
                            ("ffn_gate_exps", (128, 768, 2048)), ("ffn_up_exps", (128, 768, 2048))):  # fmt: skip
            tensors[f"{at}{name}.weight"] = usual, shape
        tensors[at + "attn_v.weight"] = wide, (512, 2048)
        tensors[at + "ffn_down_exps.weight"] = wide, (128, 2048, 768)
        for name, shape in (("ffn_gate_inp", (128, 2048)), ("attn_norm", (2048,)), ("ffn_norm", (2048,)),
                            ("attn_q_norm", (128,)), ("attn_k_norm", (128,))):  # fmt: skip
            tensors[f"{at}{name}.weight"] = "F32", shape
    path = gguf(tmp_path / "x.gguf", metadata("qwen3moe", QWEN), tensors)
    found = inspect(path)
    assert found["differences"] == [] and found["params"]["total"] == 30_532_122_624
    digits = len(str(bits).partition(".")[2])
    assert round(found["bits_per_weight"], digits) == bits
    assert round(found["bytes"]["total"] / GiB, len(str(size).partition(".")[2])) == size
    assert lmcalc.report(path).to_dict()["weights"]["bytes"] == found["bytes"]["total"]


def test_m7_gigabytes_that_are_gibibytes():
    """A table of rotary angles is no weight: 131,072 x 128 entries are made again by whoever needs them."""
    stored = lmcalc.report("llama-3.1-8b").to_dict()["weights"]["bytes"]
    assert stored == 16_060_522_496 and round(stored / GiB, 4) == 14.9575
    assert round((stored + 131_072 * 128 * 2) / GiB, 4) == 14.9888


RECORDED = Path(__file__).parent / "recorded" / "logits"


@pytest.mark.parametrize("name", ["qwen3_5-moe", "deepseek_v3", "glm4_moe", "llama-tied", "kimi_linear", "gpt2"])
def test_m18_bits_are_divided_by_what_is_there(name, tmp_path):
    """No file of 16 bits has more than 16 a weight, whatever it holds besides the model: a prediction module,
    a part for pictures, a second head."""
    stored = {key: ("BF16", shape) for key, (_, shape) in table(RECORDED / name / "model.safetensors").items()}
    more = {"mtp.layers.0.mlp.up_proj.weight": ("BF16", (40, 24)), "mtp.fc.weight": ("BF16", (24, 48)),
            "visual.blocks.0.attn.qkv.weight": ("BF16", (72, 24)),
            "visual.blocks.0.attn.qkv.bias": ("BF16", (72,))}  # fmt: skip
    (tmp_path / "config.json").write_bytes((RECORDED / name / "config.json").read_bytes())
    safetensors(tmp_path / "model.safetensors", stored | more)
    found = inspect(tmp_path)
    assert found["bits_per_weight"] == 16
    everything = sum(math.prod(shape) for _, shape in (stored | more).values())
    apart = {what: found["params"][what] for what in ("mtp", "buffers", "duplicated")}
    assert found["params"]["total"] + sum(apart.values()) == everything
    assert found["bytes"]["total"] == 2 * everything and apart["mtp"] >= 40 * 24 + 24 * 48
    if "quantization" not in str(read(tmp_path / "config.json")):
        plain = lmcalc.report(tmp_path).to_dict()
        assert plain["weights"]["bytes"] == 2 * plain["params"]["total"]


def test_m18_the_published_case():
    """A file of 71.9 GB: 16.44 bits of 35e9 by the name, 16 of what it holds."""
    held = 34.661e9 + 0.845e9 + 0.447e9  # body, prediction module, part for pictures
    size = 35e9 * 16.44 / 8
    assert round(size * 8 / held, 1) == 16.0 and size * 8 / 35e9 > 16
    text = lmcalc.report("qwen-3.5-35b-a3b").to_dict()  # of the same sizes as the 3.6 of the case
    assert round(text["params"]["total"] / 1e9, 3) == 34.661
    assert text["weights"]["bytes"] * 8 == 16 * text["params"]["total"]


def test_p11_a_vocabulary_that_is_rounded_up(capsys):
    """GPT-2's 50,257 words to multiples of 128, BERT's 30,522 to multiples of 8."""

    def params(model, *options):
        assert cli.main(["report", model, "-f", "json", *options]) == 0
        return json.loads(capsys.readouterr().out)["params"]

    assert params("gpt2", "--pad-vocab", "128")["total"] == 124_475_904
    assert params("bert-base-uncased")["by_part"]["token_embedding"] == 30_522 * 768
    assert params("bert-base-uncased", "--pad-vocab", "8")["by_part"]["token_embedding"] == 30_528 * 768
