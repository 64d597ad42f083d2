"""A sweep is a loop over reports, for thousands of points at once."""

import numpy
import pytest

import lmcalc
from lmcalc.questions import sweep as module

LLAMA = "llama-3.1-8b"


def one(row):
    """The columns of one row, from a report on ints."""
    sizes = {name: int(row[name]) for name in ("batch", "prompt", "past", "context")}
    found = lmcalc.report(row["model"], hardware=[row["hardware"]], **sizes).to_dict()
    machine = found["hardware"][0]
    columns = {
        "model": found["model"]["id"],
        "hardware": machine["id"],
        **sizes,
        "params_total": found["params"]["total"],
        "weights_bytes": found["weights"]["bytes"],
        "cache_bytes": found["cache"]["bytes"],
        "state_bytes": found["cache"]["state_bytes"],
        "memory_needed": machine["memory_needed"],
        "fits": machine["fits"],
    }
    for phase in ("prefill", "decode"):
        flops, moved = found[phase]["flops"], found[phase]["bytes"]
        columns |= {
            f"{phase}_flops": flops["total"],
            f"{phase}_bytes": moved["total"],
            f"{phase}_intensity": found[phase]["intensity"],
        }
        columns |= {f"{phase}_flops_{name}": flops[name] for name in ("contraction", "normalization", "elementwise")}
        columns |= {
            f"{phase}_bytes_{name}": moved[name] for name in ("weights", "activations", "cache_read", "cache_write")
        }
        columns |= {f"{phase}_{name}": value for name, value in machine[phase].items()}
    return columns


def rows(columns):
    return [dict(zip(columns, values)) for values in zip(*columns.values(), strict=True)]


def agree(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        if (isinstance(value, int) and value < 2**53) or isinstance(value, str):
            assert found[name] == value, name
        else:
            assert found[name] == pytest.approx(value, rel=1e-13), name


def test_all_columns_are_those_of_a_loop_over_reports():
    found = lmcalc.sweep(
        [LLAMA, "gpt2"],
        hardware=["a100", "h100"],
        batch=[[1], [7], [300]],
        context=[0, 1, 4096, 131_072],
        prompt=100,
        past=10,
        columns=module.COLUMNS,
    )
    assert list(found) == list(module.COLUMNS)
    every = rows(found)
    assert len(every) == 2 * 2 * 3 * 4
    for row in every:
        agree(row, one(row))


@pytest.mark.parametrize("shapes", [(5,), (3, 2), (1, 70_000), (70_000,), (70_000, 1), (2, 3, 12_000), (1,), ()])
def test_chunks_leave_no_point_out(shapes):
    count = int(numpy.prod(shapes))
    batch = numpy.asarray(1 + numpy.arange(count, dtype=float).reshape(shapes) % 500)
    found = lmcalc.sweep(
        "gpt2", batch=batch, context=numpy.full(shapes, 1000.0), columns=["batch", "context", "cache_bytes"]
    )
    numpy.testing.assert_array_equal(found["batch"], batch.reshape(-1))
    numpy.testing.assert_array_equal(found["cache_bytes"], batch.reshape(-1) * 1000 * 36_864)


def test_grids_broadcast_in_order():
    found = lmcalc.sweep("gpt2", batch=[[1], [2]], context=[10, 20, 30], columns=["batch", "context"])
    assert rows(found) == [{"batch": b, "context": c} for b in (1, 2) for c in (10, 20, 30)]


def test_ints_lists_ranges_and_integer_arrays_are_all_taken():
    expected = [36_864 * c for c in (1, 2, 3)]
    for context in (
        [1, 2, 3],
        (1, 2, 3),
        range(1, 4),
        numpy.arange(1, 4),
        numpy.arange(1, 4, dtype="uint8"),
        numpy.array([1.0, 2, 3]),
    ):
        assert lmcalc.sweep("gpt2", context=context, columns=["cache_bytes"])["cache_bytes"].tolist() == expected
    assert lmcalc.sweep("gpt2", context=3, columns="cache_bytes")["cache_bytes"].tolist() == expected[2:]


@pytest.mark.parametrize(
    "batch",
    [
        [0, 1],
        [1.5],
        [True, 2],
        ["1"],
        [[1], [1, 2]],
        [2**60],
        [10**30],
        numpy.array([-1]),
        numpy.array([2**60]),
        numpy.array([True]),
        numpy.array([1.5]),
        numpy.array([1], dtype="float32"),
        "3",
        None,
        0,
        2.5,
        numpy.array([numpy.nan]),
    ],
)
def test_what_is_no_size_is_refused(batch):
    with pytest.raises(lmcalc.InputError, match="batch"):
        lmcalc.sweep("gpt2", batch=batch)


def test_integers_that_would_overflow_do_not():
    """6e12 x 15e12 is beyond 64 bits; at this door integers become floats."""
    found = lmcalc.sweep(
        "llama-3.1-405b", batch=numpy.array([2**30]), context=numpy.array([2**30]), columns=["decode_flops"]
    )
    exact = lmcalc.report("llama-3.1-405b", batch=2**30, context=2**30).to_dict()["decode"]["flops"]["total"]
    assert exact > 2**63
    assert found["decode_flops"][0] == pytest.approx(exact, rel=1e-14)


def test_shapes_that_do_not_broadcast_are_refused():
    with pytest.raises(lmcalc.InputError, match=r"do not broadcast.*batch \(2,\), context \(3,\)"):
        lmcalc.sweep("gpt2", batch=[1, 2], context=[1, 2, 3])


def test_unknown_columns_and_machines_are_refused():
    with pytest.raises(lmcalc.InputError, match="unknown column 'decode_flop'; closest: decode_flops"):
        lmcalc.sweep("gpt2", columns=["decode_flop"])
    with pytest.raises(lmcalc.InputError, match="column decode_bound_s needs a machine"):
        lmcalc.sweep("gpt2", columns=["decode_bound_s"])
    with pytest.raises(lmcalc.InputError, match="unknown hardware 'h1000'; closest: "):
        lmcalc.sweep("gpt2", hardware="h1000")


def test_usual_columns():
    alone, on = lmcalc.sweep("gpt2"), lmcalc.sweep("gpt2", hardware="h100")
    assert (
        {
            "model",
            "batch",
            "prompt",
            "context",
            "params_total",
            "weights_bytes",
            "cache_bytes",
            "prefill_flops",
            "prefill_bytes",
            "decode_flops",
            "decode_bytes",
        }
        <= set(alone)
        < set(on)
    )
    assert {"hardware", "prefill_bound_s", "decode_bound_s"} <= set(on) - set(alone)


def test_figures_that_are_not_public_are_nan():
    found = lmcalc.sweep(
        "gpt2",
        hardware=["tpu-v5e", "cerebras-wse3"],
        context=[1, 2],
        columns=["decode_roofline_s", "decode_bound_by", "fits"],
    )
    assert numpy.isnan(found["decode_roofline_s"]).all()
    assert found["decode_bound_by"].tolist() == ["memory", "memory", None, None]
    assert found["fits"].tolist() == [True] * 4


def test_as_a_frame():
    frame = lmcalc.sweep("gpt2", hardware="h100", batch=[1, 2, 3]).to_frame()
    assert frame["batch"].tolist() == [1, 2, 3]
    assert set(frame["hardware"]) == {"h100-sxm"}


def test_options_and_changes():
    plain, changed = (
        lmcalc.sweep(LLAMA, context=[100], columns=["cache_bytes"], **more)["cache_bytes"][0]
        for more in ({}, {"set": {"n_kv_heads": 1}, "cache": "fp8"})
    )
    assert plain == 16 * changed
