"""Measured kernels against bounds: a sample of published timings (tests/recorded/measured_sample.csv, sources in its
rows)."""

import csv
from pathlib import Path

import jsonschema
import pytest

import lmcalc
from lmcalc.cli import main
from lmcalc.questions.measured import CAUSES, KINDS, bound, measured

SAMPLE = Path(__file__).parent / "recorded" / "measured_sample.csv"
ROWS = list(csv.DictReader(SAMPLE.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def found():
    return measured([SAMPLE])


def test_the_sample_has_every_kind_with_source_and_licence():
    assert {row["kind"] for row in ROWS} == {*KINDS, "p2p"}
    assert all(row["source"] and row["licence"] in ("Apache-2.0", "MIT", "BSD-3-Clause") for row in ROWS)


def test_nothing_measured_beats_its_bound_without_a_cause(found):
    assert found["failed"] == 0
    assert found["files"] == [{"file": str(SAMPLE), "rows": len(ROWS) - 2}]
    assert found["skipped"] == [{"what": "moe: experts of several ranks (moe_ep)", "rows": 1},
                                {"what": "p2p: no bound is made for this kind yet", "rows": 1}]  # fmt: skip
    reasons = [reason for _, reason in CAUSES]
    assert found["above"] and all(each["cause"] in reasons and each["ratio"] > 1 for each in found["above"])
    assert any(each["fits_llc"] == "no" for each in found["above"])  # the row that needs its cause named


def test_the_answer_is_as_its_schema_says(found):
    jsonschema.validate(found, lmcalc.schema("measured"))


def test_the_distribution(found):
    for each in found["distribution"]:
        quantiles = [each[name] for name in ("q05", "q25", "q50", "q75", "q95", "largest")]
        assert quantiles == sorted(quantiles) and 0 < quantiles[0]
    assert sum(each["rows"] for each in found["distribution"]) == len(ROWS) - 2
    assert sum(each["above"] for each in found["distribution"]) == len(found["above"])
    kinds = [each["kind"] for each in found["distribution"]]
    assert kinds == sorted(kinds, key=kinds.index)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["kind"] in KINDS and row["moe_ep"] in ("", "1")], ids=lambda row: row["kind"]
)
def test_bytes_and_bounds_against_those_that_others_counted(row):
    """The tables come with a simple bound of their own: each operand once."""
    ours, theirs = bound(row), {"bytes": float(row["bytes_min"] or 0), "bound_s": float(row["bound_s_simple"])}
    if row["kind"] in ("norm", "moe", "embedding"):  # gains of norms; routing; of a table only one row is certain
        low, high = {"norm": (1, 2), "moe": (0.85, 1.1), "embedding": (2 / 3, 4 / 3 + 0.01)}[row["kind"]]
        assert low <= ours["bytes"] / theirs["bytes"] <= high
    else:
        assert ours["bytes"] == theirs["bytes"]
    if row["kind"] == "gemm":
        assert ours["bound_s"] == pytest.approx(theirs["bound_s"], rel=1e-5)


def test_products_by_hand():
    row = {"kind": "gemm", "machine": "h100-sxm", "dtype": "bf16", "m": "512", "n": "4096", "k": "8192", "batch": "1"}
    found = bound(row)
    assert found["flops"] == 2 * 512 * 4096 * 8192
    assert found["bytes"] == 2 * (512 * 8192 + 8192 * 4096 + 512 * 4096)
    assert found["bound_s"] == found["compute_s"] == found["flops"] / 989.4e12
    small = bound({**row, "m": "1", "dtype_weights": "int4"})
    assert small["bytes"] == 2 * 8192 + 8192 * 4096 // 2 + 2 * 4096
    assert small["bound_by"] == "memory"


def test_attention_by_hand():
    row = {
        "kind": "attention_decode",
        "machine": "a100-sxm-80gb",
        "dtype": "bf16",
        "batch": "8",
        "new_tokens": "1",
        "context": "1000",
        "n_heads": "32",
        "n_kv_heads": "8",
        "head_dim": "128",
        "v_head_dim": "128",
        "window": "0",
    }
    assert bound(row)["bytes"] == 2 * 8 * (2 * 1000 * 8 * 128 + 2 * 32 * 128)
    assert bound({**row, "window": "100"})["bytes"] == 2 * 8 * (2 * 100 * 8 * 128 + 2 * 32 * 128)
    assert bound({**row, "dtype_cache": "fp8"})["bytes"] == 8 * (2 * 1000 * 8 * 128 + 4 * 32 * 128)


def changed(tmp_path, text, **columns):
    """A file of one row of the sample with other values."""
    row = next(row for row in ROWS if row["kind"] == text) | columns
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    return str(path)


def test_a_row_that_beats_its_bound_fails(tmp_path, capsys):
    path = changed(tmp_path, "gemm", seconds="1e-9", fits_llc="no")
    data = measured([path])
    assert data["failed"] == 1 and data["above"][0]["cause"] is None
    assert main(["validate", "--measured", path]) == 1
    out = capsys.readouterr().out
    assert "FASTER THAN ITS BOUND" in out and "rows.csv,line2:gemmon" in "".join(out.split())
    assert main(["validate", "--measured", str(SAMPLE)]) == 0


def test_causes_are_no_excuse_for_more_than_the_cache_can_hold(tmp_path):
    path = changed(tmp_path, "residual_add", seconds="1e-7", fits_llc="no", hidden="8192", new_tokens="65536")
    assert measured([path])["failed"] == 1


@pytest.mark.parametrize(
    "columns, said",
    [
        ({"machine": "h1000"}, "h100"),
        ({"m": "many"}, "m = 'many'"),
        ({"m": "0"}, "integer from 1"),
        ({"seconds": "0"}, "seconds = "),
        ({"seconds": "soon"}, "soon"),
        ({"kind": ""}, "column kind"),
        ({"dtype_weights": "bf17"}, "bf17"),
    ],
)
def test_bad_rows_are_named(columns, said, tmp_path):
    path = changed(tmp_path, "gemm", **columns)
    with pytest.raises(lmcalc.InputError, match="line 2") as caught:
        measured([path])
    assert said in str(caught.value)


@pytest.mark.parametrize("arguments", [["gpt2", "--measured", str(SAMPLE)], ["--measured", "no/such.csv"]])
def test_bad_usage(arguments, capsys):
    assert main(["validate", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_table_fits_80_columns_and_the_plot_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["validate", "--measured", str(SAMPLE), "-o", str(tmp_path / "x.png")]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
