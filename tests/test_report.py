"""The main question: its schema key by key, the values that issue 1/6 states, and bounds by hand."""

import json
import os
import subprocess
import sys

import numpy
import pytest

import lmcalc
from lmcalc.questions.catalogue import architectures

CARDS = architectures()
LLAMA = "llama-3.1-8b"


@pytest.fixture(scope="module")
def both():
    """LLaMA 3.1 8B at batch 1 and 2,048 tokens on both machines."""
    return lmcalc.report(LLAMA, hardware=["a100", "h100"]).to_dict()


# Schema: exactly the keys of INTERFACE.md ------------------------------------------------------------------------

PHASE = {
    "flops": {"total", "contraction", "normalization", "elementwise", "contraction_by_part"},
    "bytes": {"total", "weights", "activations", "cache_read", "cache_write"},
    "intensity": None,
    "by_part": None,
}
TIMES = {"bound_s", "bound_by", "compute_s", "memory_s", "vector_s", "roofline_s", "serial_s", "tokens_per_s"}
KEYS = {
    "schema": None,
    "version": None,
    "model": {"id", "name", "source", "family"},
    "workload": {
        "batch",
        "prompt",
        "past",
        "context",
        "mask",
        "logits",
        "traffic",
        "experts",
        "mla",
        "dtypes",
        "fuse_projections",
    },
    "params": {"total", "active", "buffers", "mtp", "by_part"},
    "weights": {"bytes"},
    "cache": {"bytes", "bytes_per_token", "bytes_per_token_first", "state_bytes"},
    "prefill": set(PHASE),
    "decode": set(PHASE),
    "hardware": None,
    "notes": None,
}


def test_keys_are_those_of_the_schema(both):
    assert both["schema"] == "lmcalc.report/1"
    assert set(both) == set(KEYS)
    for key, inside in KEYS.items():
        if inside is not None:
            assert set(both[key]) == inside, key
    assert set(both["workload"]["dtypes"]) == {"weights", "activations", "cache", "state"}
    for phase in ("prefill", "decode"):
        for key, inside in PHASE.items():
            assert inside is None or set(both[phase][key]) == inside
        for row in both[phase]["by_part"]:
            assert {"path", "times", "flops", "bytes"} <= set(row)
    for row in both["hardware"]:
        assert set(row) == {"id", "ridge", "fits", "memory_needed", "memory_available", "prefill", "decode"}
        assert set(row["prefill"]) == set(row["decode"]) == TIMES
    parts = (
        "token_embedding",
        "position_embedding",
        "attention",
        "ffn",
        "moe_router",
        "moe_experts",
        "moe_shared",
        "mixer",
        "norms",
        "lm_head",
    )
    assert set(parts) <= set(both["params"]["by_part"])


@pytest.mark.parametrize("name", CARDS)
def test_counts_are_exact_ints_and_parts_sum_to_totals(name):
    encoder = lmcalc.load(name).bidirectional
    found = lmcalc.report(name, batch=3, prompt=100, past=0 if encoder else 7, context=1000, experts="min").to_dict()
    phases = ["prefill"] if encoder else ["prefill", "decode"]
    assert [phase for phase in ("prefill", "decode") if found[phase] is not None] == phases
    assert json.loads(json.dumps(found, allow_nan=False)) == found

    def ints(data, path=""):
        for key, value in data.items():
            if isinstance(value, dict):
                ints(value, f"{path}/{key}")
            elif key not in ("intensity", "by_part"):
                assert type(value) is int, f"{path}/{key} = {value!r}"

    ints({key: found[key] for key in ("params", "weights", "cache", *phases)})
    assert sum(found["params"]["by_part"].values()) == found["params"]["total"]
    for phase in phases:
        flops, moved, rows = found[phase]["flops"], found[phase]["bytes"], found[phase]["by_part"]
        assert flops["contraction"] == sum(flops["contraction_by_part"].values())
        assert flops["total"] == flops["contraction"] + flops["normalization"] + flops["elementwise"]
        assert flops["total"] == sum(row["flops"] for row in rows)
        assert moved["total"] == sum(number for key, number in moved.items() if key != "total")
        assert moved["total"] == sum(row["bytes"] for row in rows)
        assert found[phase]["intensity"] == flops["total"] / moved["total"]


# Values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "bytes_"), [(LLAMA, 131_072), ("llama-2-7b", 524_288), ("llama-3.1-70b", 327_680)])
def test_cache_bytes_a_token(model, bytes_):
    found = lmcalc.report(model, batch=2, context=3000).to_dict()["cache"]
    assert found["bytes_per_token"] == found["bytes_per_token_first"] == bytes_
    assert found["bytes"] == 2 * 3000 * bytes_
    assert found["state_bytes"] == 0


def test_decode_is_memory_bound_and_prefill_compute_bound_on_both_machines(both):
    for row in both["hardware"]:
        assert row["decode"]["bound_by"] == "memory" and row["prefill"]["bound_by"] == "compute"
        assert both["decode"]["intensity"] < row["ridge"] < both["prefill"]["intensity"]


def test_ridge_points(both):
    assert [row["ridge"] for row in both["hardware"]] == [312e12 / 2.039e12, 989.4e12 / 3.35e12]


def test_bounds_by_hand(both):
    """Decode reads each weight (of the table one row) and the cache once, and writes one token's keys and values."""
    table, cached = 128_256 * 4096, 2048 * 131_072
    moved = 2 * (8_030_261_248 - table + 4096) + cached + 131_072 + 4 + 2 * 128_256
    a100, h100 = both["hardware"]
    assert a100["decode"]["bound_s"] == a100["decode"]["memory_s"] == moved / 2.039e12
    assert h100["decode"]["bound_s"] == moved / 3.35e12
    contraction = 2 * 2048 * (8_030_261_248 - 2 * table - 266_240) + 2 * table + 32 * 4 * 4096 * 2048 * 2049 // 2
    assert both["prefill"]["flops"]["contraction"] == contraction
    assert h100["prefill"]["bound_s"] == h100["prefill"]["compute_s"] == contraction / 989.4e12
    other = both["prefill"]["flops"]["normalization"] + both["prefill"]["flops"]["elementwise"]
    assert h100["prefill"]["vector_s"] == other / 66.9e12
    assert h100["prefill"]["tokens_per_s"] == 2048 / h100["prefill"]["bound_s"]


def test_kernel_by_kernel_by_hand(both):
    """roofline_s sums the larger side of each kernel, serial_s both sides."""
    row, peak, vector, bandwidth = both["hardware"][1], 989.4e12, 66.9e12, 3.35e12
    sides = []
    for kernel in both["prefill"]["by_part"]:
        classes = kernel["flops_by_class"]
        sides.append(
            (
                classes["contraction"] / peak + (kernel["flops"] - classes["contraction"]) / vector,
                kernel["bytes"] / bandwidth,
            )
        )
    assert row["prefill"]["roofline_s"] == pytest.approx(sum(map(max, sides)), rel=1e-12)
    assert row["prefill"]["serial_s"] == pytest.approx(sum(map(sum, sides)), rel=1e-12)


@pytest.mark.parametrize("name", CARDS[::6])
@pytest.mark.parametrize(
    "options", [{}, {"batch": 64, "context": 8192}, {"traffic": "ideal"}, {"traffic": "unfused", "mask": "full"}]
)
def test_no_run_is_faster_than_the_bound(name, options):
    for row in lmcalc.report(name, hardware=["a100-pcie-40gb", "h100-pcie"], **options).to_dict()["hardware"]:
        for times in filter(None, (row["prefill"], row["decode"])):
            assert 0 < times["bound_s"] <= times["roofline_s"] * (1 + 1e-12)
            assert times["roofline_s"] <= times["serial_s"] <= 2 * times["roofline_s"]


def test_a_model_that_does_not_fit():
    row = lmcalc.report("llama-3.1-405b", hardware="h100").to_dict()["hardware"][0]
    assert row["fits"] is False
    assert row["memory_needed"] == 2 * 405_853_388_800 + 2048 * 126 * 2 * 8 * 128 * 2 > row["memory_available"]


@pytest.mark.parametrize(("past", "prompt"), [(0, 512), (100, 512), (511, 1), (0, 1)])
def test_pairs_that_masks_allow(past, prompt):
    """Contractions of attention: 4 N H a pair; full counts the rectangle."""
    pairs = sum(past + i + 1 for i in range(prompt))
    for mask, expected in (("causal", pairs), ("full", prompt * (past + prompt))):
        found = lmcalc.report(LLAMA, prompt=prompt, past=past, mask=mask).to_dict()
        assert found["prefill"]["flops"]["contraction_by_part"]["attention_scores"] == 32 * 4 * 4096 * expected


def test_prefill_onto_a_full_cache_reads_it_and_one_token_of_it_is_a_decode_step():
    found = lmcalc.report(LLAMA, prompt=1, past=2048, context=2048).to_dict()
    assert found["prefill"]["flops"] == found["decode"]["flops"]
    assert found["prefill"]["bytes"] == found["decode"]["bytes"]
    assert found["prefill"]["bytes"]["cache_read"] == 2048 * 131_072


def test_pieces_of_a_prompt_add_up_to_the_whole():
    """Under the causal mask: all FLOPs of 300 tokens onto 0 are those of 100 onto 0, 120 onto 100 and 80 onto 220."""

    def parts(past, prompt):
        return lmcalc.report(LLAMA, past=past, prompt=prompt, logits="all").to_dict()["prefill"]["flops"]

    whole, pieces = parts(0, 300), [parts(0, 100), parts(100, 120), parts(220, 80)]
    for name in ("total", "contraction", "normalization", "elementwise"):
        assert whole[name] == sum(piece[name] for piece in pieces)


def test_only_the_last_position_goes_through_the_head_unless_asked():
    last, every = (
        lmcalc.report(LLAMA, batch=3, prompt=100, logits=each).to_dict()["prefill"] for each in ("last", "all")
    )
    head = 2 * 3 * 4096 * 128_256
    assert last["flops"]["contraction_by_part"]["lm_head"] == head
    assert every["flops"]["contraction_by_part"]["lm_head"] == 100 * head
    assert {**last["flops"]["contraction_by_part"], "lm_head": 0} == {
        **every["flops"]["contraction_by_part"],
        "lm_head": 0,
    }


def test_a_what_if():
    found = lmcalc.report(LLAMA, set={"n_kv_heads": 32}).to_dict()
    assert found["cache"]["bytes_per_token"] == 4 * 131_072
    assert found["params"]["total"] == 8_030_261_248 + 32 * 2 * 4096 * 24 * 128


def test_every_convention_is_named_in_the_notes(both):
    text = " ".join(both["notes"])
    for word in ("multiply-add", "dense", "fused", "causal", "last position", "bf16", "1 GiB = 2**30"):
        assert word in text
    beyond = lmcalc.report("gpt2", prompt=1000, past=100, context=1024).to_dict()["notes"]
    assert any("1,100 is beyond the 1,024 positions" in note for note in beyond)
    assert any("1,025 is beyond the 1,024 positions" in note for note in beyond)


def test_to_frame():
    frame = lmcalc.report(LLAMA, hardware=["a100", "h100"]).to_frame()
    assert frame["hardware_id"].tolist() == ["a100-sxm-80gb", "h100-sxm"]
    assert frame["params_total"].tolist() == [8_030_261_248] * 2
    assert len(lmcalc.report(LLAMA).to_frame()) == 1


# Arrays ----------------------------------------------------------------------------------------------------------


def test_a_report_on_float_arrays_is_a_loop_over_ints():
    batch, context, prompt = [1, 7, 64, 512], [1, 100, 4096, 131_072], [1, 17, 512, 8192]
    arrays = {
        "batch": numpy.array(batch, float),
        "context": numpy.array(context, float),
        "prompt": numpy.array(prompt, float),
    }
    found = lmcalc.report(LLAMA, hardware=["h100"], **arrays).to_dict()
    for at, (b, c, p) in enumerate(zip(batch, context, prompt)):
        one = lmcalc.report(LLAMA, hardware=["h100"], batch=b, context=c, prompt=p).to_dict()

        def compare(ours, theirs, path, at=at):
            for key, value in theirs.items():
                here = f"{path}/{key}"
                if isinstance(value, dict):
                    compare(ours[key], value, here)
                elif isinstance(value, str | bool):
                    assert numpy.broadcast_to(ours[key], 4)[at] == value, here
                elif isinstance(value, int | float):
                    number = float(numpy.broadcast_to(ours[key], 4)[at])
                    assert (
                        number == value
                        if value < 2**53 and isinstance(value, int)
                        else number == pytest.approx(value, rel=1e-13)
                    ), here

        for key in ("workload", "params", "weights", "cache", "prefill", "decode"):
            compare(found[key], {k: v for k, v in one[key].items() if k != "by_part"}, key)
        compare(found["hardware"][0], one["hardware"][0], "hardware")


def test_a_report_on_arrays_as_a_frame():
    frame = lmcalc.report(LLAMA, hardware=["h100"], batch=numpy.array([1.0, 2.0])).to_frame()
    assert frame["workload_batch"].tolist() == [1.0, 2.0]
    assert len(frame) == 2


# Nothing heavy is imported ---------------------------------------------------------------------------------------

HEAVY = ("sympy", "pandas", "matplotlib", "numpy")


@pytest.mark.parametrize(
    "code",
    [
        "import lmcalc; lmcalc.report('llama-3.1-405b', hardware=['h100'])",
        "from lmcalc.cli import main; assert main(['report', 'llama-3.1-405b', '-H', 'h100', '-f', 'json']) == 0",
        "from lmcalc.cli import main; assert main(['report', 'llama-3.1-405b', '-H', 'h100']) == 0",
    ],
)
def test_a_report_imports_nothing_heavy(code):
    code += f"; import sys; sys.stderr.write(' '.join(sorted(set(sys.modules) & set({HEAVY!r}))))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}
    )
    assert (done.returncode, done.stderr) == (0, "")
