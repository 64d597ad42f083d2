"""What may be asked for, and what is refused: the message says name, value and what is allowed."""

import numpy
import pytest

import lmcalc
from lmcalc.units import DTYPES, VALUES, dtype, si
from lmcalc.workload import workload

SIZES = {"batch": 1, "prompt": 1, "past": 0, "context": 0}


@pytest.mark.parametrize(("name", "least"), SIZES.items())
@pytest.mark.parametrize(
    "value", [-1, 2.5, 2.0, True, "4", None, 2**53 + 1, 10**30, float("nan"), numpy.float64(2), [1, 2]]
)
def test_a_size_that_is_none_is_refused(name, least, value):
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.report("gpt2", **{name: value})
    assert f"{name} = {value!r}; allowed: an integer from {least} to 2**53" in str(caught.value)


@pytest.mark.parametrize("name", ["batch", "prompt"])
def test_zero_sequences_and_empty_prompts_are_refused(name):
    with pytest.raises(lmcalc.InputError, match=f"{name} = 0; allowed: an integer from 1"):
        lmcalc.report("gpt2", **{name: 0})


@pytest.mark.parametrize("name", ["past", "context"])
def test_empty_caches_are_fine(name):
    found = lmcalc.report("gpt2", **{name: 0}).to_dict()
    assert found["decode"]["bytes"]["cache_read"] == (
        0 if name == "context" else found["decode"]["bytes"]["cache_read"]
    )


def test_integers_of_other_types_become_ints():
    assert type(workload(batch=numpy.int64(4)).batch) is int


@pytest.mark.parametrize("kind", [int, "int32", "uint8", "float32", bool, object])
def test_arrays_other_than_float64_are_refused(kind):
    with pytest.raises(lmcalc.InputError, match=r"batch is an array of .*; allowed: float64 \(x.astype\(float\)\)"):
        lmcalc.report("gpt2", batch=numpy.array([1, 2], dtype=kind))


@pytest.mark.parametrize("values", [[0.0, 1.0], [1.5], [float("nan")], [float("inf")], [2.0**53 + 2], [-1.0]])
def test_arrays_of_what_is_no_size_are_refused(values):
    with pytest.raises(lmcalc.InputError, match=r"batch holds values that are not whole numbers from 1 to 2\*\*53"):
        lmcalc.report("gpt2", batch=numpy.array(values))


@pytest.mark.parametrize("slot", ["weights", "activations", "cache", "state"])
@pytest.mark.parametrize("given", ["bf17", "", None, 16, "int32", "bool"])
def test_a_dtype_that_is_none_is_refused(slot, given):
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.report("gpt2", **{slot: given})
    assert f"dtype for {slot}" in str(caught.value) and repr(given) in str(caught.value)


def test_a_typo_lists_the_closest():
    with pytest.raises(lmcalc.InputError, match=r"closest: .*bf16"):
        lmcalc.report("gpt2", weights="bf61")


@pytest.mark.parametrize(
    ("alias", "name"), [("bfloat16", "bf16"), ("float16", "fp16"), ("half", "fp16"), ("float8_e4m3fn", "fp8")]
)
def test_other_spellings_of_dtypes(alias, name):
    assert dtype(alias) == name


@pytest.mark.parametrize("name", VALUES)
def test_every_dtype_is_stored_in_whole_blocks(name):
    size, values = DTYPES[name]
    assert type(size) is int and type(values) is int
    assert lmcalc.report("gpt2", weights=name, cache=name).to_dict()["weights"]["bytes"] > 0


def test_blocks_run_along_the_inputs_of_a_matrix():
    """mxfp4: 17 bytes for 32 values. In GPT-2 all inputs, 768 and 3,072, all rows and all vectors are whole blocks."""
    found = lmcalc.report("gpt2", weights="mxfp4").to_dict()
    assert found["weights"]["bytes"] * 32 == found["params"]["total"] * 17


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("mask", "causl", "causal, full"),
        ("logits", "first", "last, all"),
        ("traffic", "none", "fused, unfused, ideal"),
        ("experts", 2, "expected, min, max, all"),
        ("mla", "", "best, expanded, absorbed"),
        ("fuse_projections", "yes", "true or false"),
    ],
)
def test_a_convention_that_is_none_is_refused(name, given, allowed):
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.report("gpt2", **{name: given})
    assert f"{name} = {given!r}; allowed: {allowed}" in str(caught.value)


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(lmcalc.InputError, match=r"unknown workload option 'batchsize'; .*batch"):
        lmcalc.report("gpt2", batchsize=3)


@pytest.mark.parametrize(("number", "text"), [(1e27, "1000 Y"), (0.5, "500 m"), (999.6e9, "1.00 T"), (-2e6, "-2.00 M")])
def test_numbers_for_people(number, text):
    assert si(number) == text
