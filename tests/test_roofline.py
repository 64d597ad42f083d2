"""Rooflines: ridge points and bounds by hand, published examples, and turning points against a search."""

import itertools
import math

import jsonschema
import pytest

import lmcalc
from lmcalc.hardware import machine
from lmcalc.ops import Ops
from lmcalc.questions.measured import Kernel
from lmcalc.questions.report import bounds
from lmcalc.questions.roofline import FAR, Polynomial, levels, roofline
from lmcalc.trace import Array

LLAMA = "llama-3.1-8b"
# machine: (bf16 FLOP/s, bytes/s, fp32 vector FLOP/s) of their data sheets
FIVE = {
    "a100-sxm-80gb": (312e12, 2.039e12, 19.5e12),
    "h100-sxm": (989.4e12, 3.35e12, 66.9e12),
    "mi300x": (1307.4e12, 5.325e12, 163.4e12),
    "rtx-4090": (165.2e12, 1.008e12, 82.6e12),
    "b200": (2250e12, 8e12, 75e12),
}


@pytest.mark.parametrize("name", FIVE)
def test_ridges_and_bounds_by_hand(name):
    """Decode reads each weight (of the table one row) and the cache once, and writes one token; prefill multiplies."""
    peak, bandwidth, vector = machine(name).peak["bf16"], machine(name).bandwidth, machine(name).vector["fp32"]
    assert (peak, bandwidth) == pytest.approx(FIVE[name][:2], rel=0.04)
    table = 128_256 * 4096
    moved = 2 * (8_030_261_248 - table + 4096) + 2048 * 131_072 + 131_072 + 4 + 2 * 128_256
    contraction = 2 * 2048 * (8_030_261_248 - 2 * table - 266_240) + 2 * table + 32 * 4 * 4096 * 2048 * 2049 // 2
    data = roofline(LLAMA, name)
    assert data["machines"][0]["ridge"] == peak / bandwidth
    prefill, decode = data["points"]
    assert decode["bound_s"] == decode["memory_s"] == moved / bandwidth and decode["bound_by"] == "memory"
    assert prefill["bound_s"] == prefill["contraction_s"] == contraction / peak and prefill["bound_by"] == "compute"
    assert prefill["ridge_distance"] == pytest.approx((contraction / peak) / prefill["memory_s"])
    assert (data["machines"][0]["vector_flop_per_s"], vector) == (vector, pytest.approx(FIVE[name][2], rel=0.04))


def test_points_are_those_of_report():
    for points in ("phase", "kernel"):
        data = roofline(LLAMA, ["h100", "a100"], points, batch=4, context=500)
        report = lmcalc.report(LLAMA, ["h100", "a100"], batch=4, context=500).to_dict()
        for at, name in enumerate(("h100-sxm", "a100-sxm-80gb")):
            for phase in ("prefill", "decode"):
                rows = [row for row in data["points"] if (row["hardware"], row["phase"]) == (name, phase)]
                told = report["hardware"][at][phase]
                if points == "phase":
                    (row,) = rows
                    assert [row[key] for key in ("bound_s", "bound_by")] == [told["bound_s"], told["bound_by"]]
                    assert row["roofline_s"] == pytest.approx(told["roofline_s"], rel=1e-12)
                    assert row["intensity"] == report[phase]["intensity"]
                else:
                    assert [(row["kernel"], row["flops"], row["bytes"]) for row in rows] == [
                        (row["path"], row["flops"], row["bytes"]) for row in report[phase]["by_part"]]  # fmt: skip
                    assert sum(row["bound_s"] for row in rows) == pytest.approx(told["roofline_s"], rel=1e-12)


@pytest.mark.parametrize("points", ["phase", "kernel"])
def test_no_point_lies_above_its_roof(points):
    data = roofline([LLAMA, "gpt2", "mistral-7b"], list(FIVE), points, batch=16)
    roofs = {each["id"]: each for each in data["machines"]}
    for row in data["points"]:
        if row["intensity"]:
            roof = roofs[row["hardware"]]
            most = min(roof["peak_flop_per_s"], row["intensity"] * roof["bandwidth"])
            assert 0 < row["reached_flop_per_s"] <= most * (1 + 1e-12), row


def test_shares_of_classes_add_up_and_flops_are_not_time():
    """The lecture's page 16: contractions have nearly all FLOPs and less of the time; norms the other way round."""
    data = roofline(LLAMA, "h100", traffic="unfused")
    for phase in ("prefill", "decode"):
        rows = {row["class"]: row for row in data["classes"] if row["phase"] == phase}
        for share in ("flops_share", "time_share"):
            assert sum(row[share] for row in rows.values()) == pytest.approx(1)
    prefill = {row["class"]: row for row in data["classes"] if row["phase"] == "prefill"}
    assert prefill["contraction"]["flops_share"] > 0.99 > 0.9 > prefill["contraction"]["time_share"]
    for name in ("normalization", "elementwise"):
        assert prefill[name]["time_share"] > 20 * prefill[name]["flops_share"]


# Where bounds turn: closed forms against a search ------------------------------------------------------------------


def bound_by(model, on, phase, **options):
    return lmcalc.report(model, on, **options).to_dict()["hardware"][0][phase]["bound_by"]


ON = [*itertools.product([LLAMA, "gpt2", "mixtral-8x7b", "gemma-3-1b"], ["a100", "h100", "epyc-9654"])]


@pytest.mark.parametrize(("model", "name"), [*ON, ("deepseek-v2-lite", "h100")])
def test_the_batch_at_which_decode_turns(model, name):
    for context in (0, 7, 100):
        turn = roofline(model, name, context=context)["turns"][1]
        batch = turn["batch"]
        if batch is None:
            assert all(
                bound_by(model, name, "decode", batch=b, context=context) == "memory" for b in (1, 10**3, 10**6, 10**9)
            )
            continue
        assert bound_by(model, name, "decode", batch=batch, context=context) == turn["to"] != "memory"
        assert bound_by(model, name, "decode", batch=10 * batch, context=context) != "memory"
        if batch > 1:
            assert bound_by(model, name, "decode", batch=batch - 1, context=context) == "memory"


@pytest.mark.parametrize("name", ["a100", "h100"])
def test_the_batch_at_which_decode_turns_by_brute_force(name):
    found = roofline(LLAMA, name, context=16)["turns"][1]["batch"]
    first = next(b for b in range(1, 1000) if bound_by(LLAMA, name, "decode", batch=b, context=16) != "memory")
    assert found == first


@pytest.mark.parametrize(
    "model, name", [(LLAMA, "h100"), ("gpt2", "a100"), ("mistral-7b", "a100"), ("llama-3.1-70b", "tpu-v5e")]
)
def test_beyond_a_context_no_batch_helps(model, name):
    limit = roofline(model, name)["turns"][1]["context_limit"]
    assert bound_by(model, name, "decode", batch=10**12, context=limit) != "memory"
    assert bound_by(model, name, "decode", batch=10**12, context=limit + 1) == "memory"
    for context in (limit + 1, limit + 50, 10 * limit, 100 * limit):
        assert roofline(model, name, context=context)["turns"][1]["batch"] is None


def test_the_longest_context_at_a_batch():
    turn = roofline(LLAMA, "h100", batch=1000)["turns"][1]
    assert bound_by(LLAMA, "h100", "decode", batch=1000, context=turn["context"]) == "compute"
    assert bound_by(LLAMA, "h100", "decode", batch=1000, context=turn["context"] + 1) == "memory"
    assert roofline(LLAMA, "h100", batch=2)["turns"][1]["context"] is None


@pytest.mark.parametrize("model", [LLAMA, "gpt2", "gemma-3-1b"])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_prompt_at_which_prefill_turns_by_brute_force(model, batch):
    found = roofline(model, "h100", batch=batch)["turns"][0]["prompt"]
    first = next(p for p in range(1, 1000) if bound_by(model, "h100", "prefill", batch=batch, prompt=p) != "memory")
    assert found == first


def test_windows_bound_what_attention_reads_so_that_some_batch_always_helps():
    """A window of 256 keeps llama's decode below its limit at any context; without one it ends."""
    assert roofline(LLAMA, "h100", set={"window": 256})["turns"][1]["context_limit"] is None
    assert 0 < roofline(LLAMA, "h100")["turns"][1]["context_limit"] < FAR


def test_without_a_public_peak_nobody_knows():
    turns = roofline("gpt2", "cerebras-wse3")["turns"]
    assert all(not turn["known"] and turn["batch"] is None for turn in turns)


def test_polynomials():
    b = Polynomial((0, 1))
    assert (2 * b * (b + 3) + 1).coefficients == (1, 6, 2)


# Published examples ------------------------------------------------------------------------------------------------


def product(b, d, f, weights="bf16", activations="bf16"):
    """The kernel [b, d] x [d, f]."""
    ops = Ops(1, b)
    x = Array("BTD", (1, b, d), "activation", "activations")
    out = ops.einsum("BTD,DF->BTF", x, Array("DF", (d, f), "weight", "weights", "w", blocks=(0,)))
    ops.trace.inputs, ops.trace.outputs = [x], [out]
    return Kernel(ops.trace, {"weights": weights, "activations": activations, "cache": "bf16", "state": "fp32"})


def least(bandwidth, peak, **options):
    """The least batch at which a product with a matrix of 8192 x 32768 is compute bound."""
    return next(
        b
        for b in range(1, 2000)
        if bounds(product(b, 2**13, 2**15, **options), bandwidth, peak, None)["bound_by"] == "compute"
    )


def test_the_scaling_books_products():
    """jax-ml/scaling-book roofline.md: for large d and f, b is peak over bandwidth times half the bytes of a weight."""
    # bf16 on a TPU v5e, 1.97e14 over 8.2e11: the book leaves out activations and says b > 240. With them, exactly:
    # 2 b d f / peak >= 2 (b d + d f + b f) / bandwidth, so b >= r d f / (d f - r (d + f)), r = peak / bandwidth
    ratio = 1.97e14 / 8.2e11
    assert least(8.2e11, 1.97e14) == math.ceil(ratio * 2**28 / (2**28 - ratio * (2**13 + 2**15))) == 250
    assert round(ratio, 1) == 240.2
    # int8 (question 1): 3.94e14 over 8.1e11 is 486, so b > 243; activations of a byte, too
    ratio = 3.94e14 / 8.1e11 / 2
    assert least(8.1e11, 3.94e14, weights="int8", activations="int8") == math.ceil(
        ratio * 2**28 / (2**28 - ratio * (2**13 + 2**15))
    )
    assert round(ratio) == 243
    # int8 weights under bf16 activations (question 2): b > 120
    peak, bandwidth, size = 1.97e14, 8.2e11, 2**28
    exact = (size / bandwidth) / (2 * size / peak - 2 * (2**13 + 2**15) / bandwidth)
    assert least(bandwidth, peak, weights="int8") == math.ceil(exact)
    assert round(peak / bandwidth / 2) == 120


def test_the_scaling_books_question_4_on_tpus():
    """tpus.md 4.1: int8[16384, 4096] x int8[b, 4096] on v5e, 3.94e14 over 8.1e11: b > 262.7 exactly."""
    found = next(
        b
        for b in range(1, 1000)
        if bounds(product(b, 4096, 16384, "int8", "int8"), 8.1e11, 3.94e14, None)["bound_by"] == "compute"
    )
    ratio, size, edges = 3.94e14 / 8.1e11 / 2, 4096 * 16384, 4096 + 16384
    assert found == math.ceil(ratio * size / (size - ratio * edges)) == 263


def test_the_scaling_books_sum_of_two_arrays():
    """gpus.md quiz 1: adding 2**30 float32 on an H100 moves 12 bytes an element, 3.84 ms; measured 4.1."""
    ops = Ops(1, 2**15)
    a, b = (Array("BTD", (1, 2**15, 2**15), "activation", "activations") for _ in range(2))
    ops.trace.inputs, ops.trace.outputs = [a, b], [ops.add(a, b)]
    kernel = Kernel(ops.trace, {"weights": "fp32", "activations": "fp32", "cache": "fp32", "state": "fp32"})
    found = bounds(kernel, 3.35e12, None, 66.9e12)
    assert found["memory_s"] == 12 * 2**30 / 3.35e12 < 4.1e-3
    assert found["memory_s"] == pytest.approx(3.846e-3, rel=1e-3)


def lecture(b, n, d, h, kv_heads, causal=True, past=0):
    """(multiply-adds of q, k, v, out; elements of cache that attention reads) of one layer."""
    sizes = {
        "n_layers": 1,
        "d_model": d,
        "n_heads": h,
        "n_kv_heads": kv_heads,
        "d_ff": 1,
        "vocab_size": 1,
        "norm": "rmsnorm",
    }
    report = lmcalc.report({"model_type": "llama", "hidden_size": d, "num_hidden_layers": 1, "num_attention_heads": h,
                            "num_key_value_heads": kv_heads, "intermediate_size": sizes["d_ff"], "vocab_size": 1,
                            "max_position_embeddings": 2**20}, batch=b, prompt=n, context=past).to_dict()  # fmt: skip
    return report


@pytest.mark.parametrize("b, n, d, h", [(8, 2048, 4096, 32), (2, 512, 1024, 8)])
def test_the_lectures_pages_58_to_62(b, n, d, h):
    """Its terms b n d**2, b n**2 d and n d**2 with their constants, for MHA, MQA and GQA."""
    k = d // h
    mha, mqa, gqa = (lecture(b, n, d, h, heads, past=n) for heads in (h, 1, h // 4))
    # page 58: four projections of the whole sequence, 2 multiply-add each: 8 b n d**2; scores 4 b d pairs
    prefill = mha["prefill"]["flops"]["contraction_by_part"]
    assert prefill["attention_proj"] == 8 * b * n * d**2
    assert prefill["attention_scores"] == 4 * b * d * n * (n + 1) // 2
    # page 60: generating n tokens does the same work ...
    decode = mha["decode"]["flops"]["contraction_by_part"]
    assert n * decode["attention_proj"] == prefill["attention_proj"]
    # ... and reads a cache that grows to n: 2 b (0 + 1 + ... + n - 1) d elements in all, of order b n**2 d
    assert mha["decode"]["bytes"]["cache_read"] == 2 * 2 * b * n * d
    # pages 61 and 62: with one key/value head, or with h / 4 of them, that is d / h or d / 4 instead of d
    assert mqa["decode"]["bytes"]["cache_read"] == 2 * 2 * b * n * k
    assert gqa["decode"]["bytes"]["cache_read"] == 2 * 2 * b * n * d // 4
    assert mha["cache"]["bytes_per_token"] == h * mqa["cache"]["bytes_per_token"] == 4 * gqa["cache"]["bytes_per_token"]


def test_the_lectures_page_60_intensity():
    """(n / d + 1 / b)**-1 up to constants: 8 b d**2 over 2 (2 b n d + 4 d**2) is (n / (2 d) + 1 / b)**-1."""
    b, n, d, h = 16, 4096, 4096, 32
    decode = lecture(b, n, d, h, h, past=n)["decode"]
    rows = {row["path"].rpartition("/")[2]: row for row in decode["by_part"]}
    products = sum(rows[name]["flops_by_class"]["contraction"] for name in ("q", "k", "v", "out"))
    moved = (
        sum(rows[name]["bytes_by_kind"]["weights"] for name in ("q", "k", "v", "out")) + decode["bytes"]["cache_read"]
    )
    assert products / moved == (n / (2 * d) + 1 / b) ** -1


def test_gpt_fasts_bytes_a_token():
    """pytorch-labs/gpt-fast@32971d3: Llama-2-7B bf16 on an A100, 104.9 tokens/s at 1397.31 GB/s: 13.32 GB a token."""
    implied = 1397.31e9 / 104.9
    found = lmcalc.report("llama-2-7b", hardware="a100", prompt=5, context=5 + 100).to_dict()
    assert found["decode"]["bytes"]["total"] == pytest.approx(implied, rel=0.01)
    assert found["hardware"][0]["decode"]["tokens_per_s"] > 104.9  # nothing that was measured beats the bound


# Machines ------------------------------------------------------------------------------------------------------------


def test_levels_from_the_chip_outwards():
    found = {each["level"]: each["bytes_per_s"] for each in levels(machine("h100"))}
    assert found == {"last-level cache": 5.5e12, "device memory": 3.35e12, "scale-up link": 450e9}
    for name in ("mi300x", "tpu-v5e"):
        rates = [each["bytes_per_s"] for each in levels(machine(name))]
        assert rates == sorted(rates, reverse=True) and len(rates) == 3
    assert [each["level"] for each in levels(machine("rtx-4090"))] == ["device memory"]


def test_ceilings_are_the_machines_peaks():
    data = roofline("gpt2", "h100")["machines"][0]
    found = {(each["unit"], dtype): each["flop_per_s"] for each in data["ceilings"] for dtype in each["dtypes"]}
    one = machine("h100")
    assert found == {
        **{("matrix", name): rate for name, rate in one.peak.items()},
        **{("vector", name): rate for name, rate in one.vector.items()},
    }


@pytest.mark.parametrize(
    "given, said",
    [(("gpt2", []), "needs a machine"), (("gpt2", "h100", "layer"), "phase, kernel"), (("gpt2", "h1000"), "h100")],
)
def test_refusals(given, said):
    with pytest.raises(lmcalc.InputError, match=said):
        roofline(*given)


@pytest.mark.parametrize("points", ["phase", "kernel"])
def test_the_answer_is_as_its_schema_says(points):
    jsonschema.validate(
        roofline([LLAMA, "bert-base-uncased"], ["h100", "cerebras-wse3"], points), lmcalc.schema("roofline")
    )
