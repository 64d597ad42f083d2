"""The machines: each loads, into base units; what is not public stays unknown; bad files are refused with a reason."""

import tomllib
from pathlib import Path

import pytest

import lmcalc
from lmcalc.hardware import FOLDER, machine, machines
from lmcalc.units import VALUES

FILES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(FOLDER).glob("*.toml"))}


@pytest.mark.parametrize("name", FILES)
def test_machine_loads_into_base_units(name):
    card, one = FILES[name], machine(name)
    assert one.name == name
    assert one.peak == {dtype: pytest.approx(tera * 1e12) for dtype, tera in card["peak"].items()}
    assert one.vector == {dtype: pytest.approx(tera * 1e12) for dtype, tera in card["vector"].items()}
    assert one.bandwidth == pytest.approx(card["memory"]["bandwidth_GBps"] * 1e9)
    assert 1e9 < one.bandwidth < 1e17
    assert all(1e9 < rate < 1e18 for rate in (*one.peak.values(), *one.vector.values()))
    assert one.memory is None or 1e8 < one.memory < 1e13
    assert card["source"].strip() and card["grade"] in ("seen", "mixed", "recalled")


def test_names_and_aliases_are_unique():
    seen = {}
    for name, card in FILES.items():
        for each in {name, *card.get("aliases", [])}:
            assert each.lower() not in seen, f"{each} stands for {name} and for {seen.get(each.lower())}"
            seen[each.lower()] = name


def test_every_machine_reports():
    found = lmcalc.report("gpt2", hardware=list(FILES)).to_dict()
    assert [row["id"] for row in found["hardware"]] == list(FILES)
    for row, one in zip(found["hardware"], machines()):
        for phase in ("prefill", "decode"):
            times = row[phase]
            known = [times[f"{side}_s"] for side in ("compute", "memory", "vector") if times[f"{side}_s"] is not None]
            assert times["bound_s"] == max(known) > 0
            if len(known) == 3:
                assert times["bound_s"] <= times["roofline_s"] <= times["serial_s"] <= 2 * times["roofline_s"]
        assert (row["ridge"] is None) == (one.matrix_peak("bf16")[0] is None)


def test_ridge_points_exactly():
    found = lmcalc.report("gpt2", hardware=["a100", "h100"]).to_dict()["hardware"]
    assert [row["ridge"] for row in found] == [312e12 / 2.039e12, 989.4e12 / 3.35e12]


@pytest.mark.parametrize(("alias", "name"), [("a100", "a100-sxm-80gb"), ("h100", "h100-sxm"), ("H100", "h100-sxm")])
def test_short_names(alias, name):
    assert lmcalc.hardware(alias).name == name


def test_a_machine_is_itself():
    one = lmcalc.hardware("h100")
    assert machine(one) is one


def test_the_catalogue_lists_every_machine():
    assert [row["id"] for row in lmcalc.hardware()] == sorted(FILES)


# What is not public ----------------------------------------------------------------------------------------------


def report_on(name, **options):
    found = lmcalc.report("llama-3.1-8b", hardware=[name], **options).to_dict()
    return found["hardware"][0], [note for note in found["notes"] if name in note]


def test_a_cpu_without_a_memory_size_says_nothing_about_fitting():
    row, notes = report_on("epyc-9654")
    assert (row["fits"], row["memory_available"]) == (None, None)
    assert row["memory_needed"] > 16e9
    assert any("memory size is not given" in note for note in notes)


def test_without_any_peak_only_memory_bounds():
    row, notes = report_on("cerebras-wse3")
    assert row["ridge"] is None
    for phase in ("prefill", "decode"):
        times = row[phase]
        assert times["bound_s"] == times["memory_s"]
        unknown = ("bound_by", "compute_s", "vector_s", "roofline_s", "serial_s")
        assert [times[name] for name in unknown] == [None] * len(unknown)
    assert any("no public peak for bf16 or wider" in note for note in notes)


def test_without_a_vector_peak_there_is_a_bound_and_no_sum():
    row, notes = report_on("tpu-v5e")
    assert row["prefill"]["bound_by"] == "compute" and row["decode"]["bound_by"] == "memory"
    assert row["prefill"]["vector_s"] is row["prefill"]["roofline_s"] is row["prefill"]["serial_s"] is None
    assert any("no public vector peak" in note for note in notes)


def test_contractions_fall_back_to_the_next_wider_peak_with_a_note():
    row, notes = report_on("a100-sxm-80gb", activations="fp8")
    assert row["ridge"] == 312e12 / 2.039e12
    assert any("lists no peak for fp8: contractions run at its bf16 peak" in note for note in notes)


def test_without_a_matrix_unit_contractions_run_on_the_vector_units():
    assert machine("epyc-9654").matrix_peak("bf16") == (14.75e12, "bf16")
    assert machine("apple-m1").matrix_peak("bf16") == (2.6e12, "fp16")


@pytest.mark.parametrize("dtype", VALUES)
def test_a_peak_for_every_dtype_or_none(dtype):
    for one in machines():
        rate, at = one.matrix_peak(dtype)
        assert (rate is None) == (at is None)
        if rate is not None:
            assert rate == {**one.vector, **one.peak}[at]


# Bad input -------------------------------------------------------------------------------------------------------

GOOD = """
[peak]
bf16 = 100

[vector]
fp32 = 10

[memory]
usable_GiB = 8
bandwidth_GBps = 1000
"""


@pytest.fixture
def file(tmp_path):
    def write(old="", new=""):
        assert old in GOOD
        path = tmp_path / "mine.toml"
        path.write_text(GOOD.replace(old, new) if old else GOOD, encoding="utf-8")
        return str(path)

    return write


def test_a_machine_of_ones_own(file):
    one = lmcalc.hardware(file())
    assert (one.name, one.memory, one.bandwidth, one.peak) == ("mine", 8 * 2**30, 1e12, {"bf16": 100e12})


@pytest.mark.parametrize(
    ("old", "new", "given", "allowed"),
    [
        ("bf16 = 100", "bf17 = 100", "peak.bf17 = 100", "bf16"),
        ("bf16 = 100", "bf16 = -1", "peak.bf16 = -1", "a number above 0"),
        ("bf16 = 100", "bf16 = inf", "peak.bf16 = inf", "a number above 0"),
        ("bf16 = 100", 'bf16 = "100"', "peak.bf16 = '100'", "a number above 0"),
        ("bf16 = 100", "bf16 = true", "peak.bf16 = True", "a number above 0"),
        ("bandwidth_GBps = 1000", "", "memory.bandwidth_GBps = None", "a number above 0"),
        ("usable_GiB = 8", "usable_GiB = 0", "memory.usable_GiB = 0", "a number above 0"),
        ("[vector]\nfp32 = 10", "", "[vector] is missing", "empty"),
        ("[vector]\nfp32 = 10", "[vectors]\nfp32 = 10", "'vectors'", "vector"),
    ],
)
def test_a_bad_figure_is_refused_with_file_key_value_and_what_is_allowed(file, old, new, given, allowed):
    path = file(old, new)
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.hardware(path)
    assert path in str(caught.value) and given in str(caught.value) and allowed in str(caught.value)


@pytest.mark.parametrize(("name", "closest"), [("h1000", "h100"), ("a100-80", "a100-sxm-80gb"), ("tpuv5", "tpu-v5e")])
def test_an_unknown_machine_lists_the_closest(name, closest):
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.hardware(name)
    assert f"unknown hardware {name!r}; closest: " in str(caught.value) and closest in str(caught.value)


def test_what_is_no_machine_at_all_is_refused():
    for given in (3, 2.5, ["h100"]):
        with pytest.raises(lmcalc.InputError, match="allowed: a name or a path"):
            lmcalc.hardware(given)


def test_changed_figures():
    changes = {"bandwidth": 3.0e12, "peak.bf16": 1e15, "memory": 96e9}
    row = lmcalc.report("gpt2", hardware=["h100"], set_hardware=changes).to_dict()["hardware"][0]
    assert row["ridge"] == 1e15 / 3.0e12 and row["memory_available"] == 96e9 and "changed" in row["id"]
    for name, value in (
        ("bandwith", 1e12),
        ("bandwidth", -1),
        ("bandwidth", True),
        ("peak.bf16", "1e15"),
        ("peak", 1e15),
    ):
        with pytest.raises(lmcalc.InputError, match=f"set-hardware {name}"):
            lmcalc.report("gpt2", hardware=["h100"], set_hardware={name: value})


def test_the_function_stays_where_the_package_has_a_file_of_that_name():
    import lmcalc.hardware
    import lmcalc.trace

    assert lmcalc.hardware("h100").name == "h100-sxm"
    assert len(lmcalc.trace(lmcalc.load("gpt2"), 1, 1).ops) > 10


# Units and sparsity ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bf16 = 100", "bf16 = 1.0e14", ["peak.bf16", "1e+14 TFLOP/s", "looks like FLOP/s, which is 100 TFLOP/s"]),
        ("bf16 = 100", "bf16 = 100_000_000_000", ["peak.bf16", "1e+11 TFLOP/s", "allowed: TFLOP/s from 0.001"]),
        ("fp32 = 10", "fp32 = 1e-6", ["vector.fp32", "1e-06 TFLOP/s"]),
        ("bandwidth_GBps = 1000", "bandwidth_GBps = 1e12", ["memory.bandwidth_GBps", "bytes/s, which is 1000 GB/s"]),
        ("bandwidth_GBps = 1000", "bandwidth_GBps = 0.5", ["memory.bandwidth_GBps", "TB/s, which is 500 GB/s"]),
        ("bandwidth_GBps = 1000", "bandwidth_GBps = 1e6", ["0.1 FLOP a byte", "allowed: 1 to 10,000", "in GB/s"]),
        ("bandwidth_GBps = 1000", "bandwidth_GBps = 3.35", ["FLOP a byte", "bandwidth in GB/s (1e9 bytes/s)"]),
        ("bandwidth_GBps = 1000", "bandwidth_TBps = 1", ["memory.bandwidth_TBps = 1", "bandwidth_GBps"]),
        ("usable_GiB = 8", "usable_GB = 8", ["memory.usable_GB = 8", "usable_GiB"]),
        ("usable_GiB = 8", "usable_GiB = 8e9", ["memory.usable_GiB", "bytes, which is 7.45058 GiB"]),
        ("usable_GiB = 8", "usable_GiB = 81920", ["memory.usable_GiB", "MB, which is 76.2939 GiB"]),
        ("usable_GiB = 8", "marketed_GB = 80e9", ["memory.marketed_GB", "bytes, which is 80 GB"]),
        ("usable_GiB = 8", "usable_GiB = 84.9\nmarketed_GB = 80", ["= 84.9 of marketed_GB = 80", "79.07 GiB"]),
        ("usable_GiB = 8", "usable_GiB = 8\nmarketed_GB = 'x'", ["marketed_GB = 'x'", "a number above 0"]),
        ("bf16 = 100", "bf16 = 100\nsparse = true", ["peak.sparse = True", "dense peaks alone"]),
        ("bf16 = 100", "bf16_sparse = 100", ["peak.bf16_sparse = 100", "dense peaks alone"]),
        ("[peak]", "sparse = true\n[peak]", ["sparse = True", "dense peaks alone"]),
        ("[peak]\nbf16 = 100", 'name = "h100"\n[peak]\nbf16 = 1978.8', ["peak.bf16 = 1978.8", "twice the 989.4"]),
        ("[peak]\nbf16 = 100", 'name = "B200"\n[peak]\nbf16 = 2250\nfp8 = 9000', ["peak.fp8", "twice", "b200"]),
    ],
)  # fmt: skip
def test_mistaken_units_and_sparse_peaks_are_refused_with_the_likely_meaning(file, old, new, said):
    path = file(old, new)
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.hardware(path)
    for each in (path, *said):
        assert each in str(caught.value)


def test_a_catalogue_machine_given_as_a_file_of_its_name_is_taken(tmp_path):
    path = tmp_path / "h100-sxm.toml"
    path.write_bytes(Path(FOLDER, "h100-sxm.toml").read_bytes())
    assert lmcalc.hardware(str(path)).peak == lmcalc.hardware("h100").peak


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("bandwidth", 3350, "looks like GB/s, which is 3.35e+12 bytes/s"),
        ("bandwidth", 3.35, "looks like TB/s, which is 3.35e+12 bytes/s"),
        ("peak.bf16", 989.4, "looks like TFLOP/s, which is 9.894e+14 FLOP/s"),
        ("vector.fp32", 66.9, "looks like TFLOP/s"),
        ("memory", 80, "looks like GB, which is 8e+10 bytes"),
        ("memory", 10**400, "allowed: a number above 0"),
        ("peak.bf17", 1e15, "'bf17'; allowed: bf16"),
    ],
)
def test_changed_figures_are_in_base_units(name, value, said):
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.report("gpt2", hardware=["h100"], set_hardware={name: value})
    assert name in str(caught.value) and said in str(caught.value)
