"""The sweep command and the grids behind it: the same numbers in every format, whole files, early refusals."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy
import pandas
import pytest

import lmcalc
from lmcalc import cli
from lmcalc.questions import vary
from lmcalc.questions.grid import parts
from lmcalc.questions.piece import COLUMNS, USUAL
from lmcalc.questions.sweep import Sweep
from lmcalc.render import stream

LLAMA = "llama-3.1-8b"
GRID = {"weights": ["bf16", "fp8"], "n_kv_heads": [1, 8], "batch": range(1, 40), "context": "1k:64k:log2"}
VARY = [
    "--vary",
    "weights=bf16,fp8",
    "--vary",
    "n_kv_heads=1,8",
    "--vary",
    "batch=1:39",
    "--vary",
    "context=1k:64k:log2",
]
MACHINES = ["h100-sxm", "cerebras-wse3"]


def run(capsys, *arguments):
    """(status, stdout, stderr) of a sweep."""
    status = cli.main(["sweep", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def of_csv(path):
    """A csv file as a frame: numbers as Python reads them, empty cells as None."""
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    words = {"": None, "true": True, "false": False}

    def value(text):
        try:
            return float(text)
        except ValueError:
            return words.get(text, text)

    return pandas.DataFrame([{name: value(text) for name, text in row.items()} for row in rows])


def same(found, expected):
    """Whether two frames hold the same values, bit by bit."""
    assert list(found) == list(expected) and len(found) == len(expected)
    for name in expected:
        a, b = found[name].tolist(), expected[name].tolist()
        for left, right in zip(a, b, strict=True):
            missing = (left is None or left != left), (right is None or right != right)
            assert missing == (True, True) or left == right, name


# What is varied -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("batch=1,8,64", [1, 8, 64]),
        ("batch=1:4", [1, 2, 3, 4]),
        ("n_layers=8:64:8", [8, 16, 24, 32, 40, 48, 56, 64]),
        ("context=1k:8k:log2", [1024, 2048, 4096, 8192]),
        ("context=1k:5k:log2", [1024, 2048, 4096, 5120]),
        ("batch=1:10:4", [1, 5, 9, 10]),
        ("batch=1,2,8:32:8", [1, 2, 8, 16, 24, 32]),
        ("context=0:0", [0]),
        ("vocab_size=32k,50_257", [32768, 50257]),
        ("weights=bf16,fp8", ["bf16", "fp8"]),
        ("expert-skew=0,0.5", [0, 0.5]),
        ("tied=true,false", [True, False]),
        ("d_ff=8/3*d_model:256,4096", ["8/3*d_model:256", 4096]),
    ],
)
def test_values(text, values):
    found = list(next(iter(vary.parsed([text]).values())))
    assert found == values and list(map(type, found)) == list(map(type, values))


@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (3, 5), (1, 9), (9, 1), (2, 3, 4), (1, 1, 20), (4, 1, 3), (0,), (3, 0)]
)
@pytest.mark.parametrize("most", [1, 2, 3, 5, 7, 60, 1000])
def test_parts_of_a_grid_are_whole_and_in_order(shape, most):
    points, found = numpy.arange(int(numpy.prod(shape))).reshape(shape), []
    for part in parts(shape, most):
        assert points[part].size <= max(most, 1)
        assert tuple(cut.stop - cut.start for cut in part) == points[part].shape
        found += points[part].reshape(-1).tolist()
    assert found == points.reshape(-1).tolist()


# Numbers --------------------------------------------------------------------------------------------------------


def test_a_sweep_is_a_loop_over_reports():
    varied = {"weights": ["bf16", "fp8"], "n_layers": [2, 5], "batch": [1, 6], "context": [0, 100, 9000]}
    found = lmcalc.sweep([LLAMA, "gemma-3-4b"], ["h100", "a100"], vary=varied, mask="full", columns=COLUMNS)
    frame = found.to_frame()
    assert len(frame) == 2 * 2 * 2 * 2 * 2 * 3
    frame["n_layers"] = numpy.tile(numpy.repeat([2, 5], 12), 4)
    frame["weights"] = numpy.tile(numpy.repeat(["bf16", "fp8"], 24), 2)
    for at in range(0, len(frame), 7):
        row = frame.iloc[at]
        options = {name: int(row[name]) for name in ("batch", "context")} | {"weights": row["weights"], "mask": "full"}
        layers = {"n_layers": int(row["n_layers"])}
        data = lmcalc.report(row["model"], row["hardware"], set=layers, **options).to_dict()
        machine = data["hardware"][0]
        assert row["params_total"] == data["params"]["total"] and row["weights_bytes"] == data["weights"]["bytes"]
        assert row["cache_bytes"] == data["cache"]["bytes"] and row["fits"] == machine["fits"]
        for phase in ("prefill", "decode"):
            assert row[f"{phase}_flops"] == data[phase]["flops"]["total"]
            assert row[f"{phase}_bytes"] == data[phase]["bytes"]["total"]
            assert row[f"{phase}_bound_s"] == pytest.approx(machine[phase]["bound_s"], rel=1e-14)
            assert row[f"{phase}_roofline_s"] == pytest.approx(machine[phase]["roofline_s"], rel=1e-12)
            assert row[f"{phase}_bound_by"] == machine[phase]["bound_by"]


def test_without_a_size_that_varies_numbers_are_the_ints_of_the_report():
    """405B at lengths whose FLOPs are beyond 2**53: rounded once, not operation by operation."""
    sizes = {"batch": 999_983, "prompt": 999_979, "context": 999_961}
    found = lmcalc.sweep(
        "llama-3.1-405b", vary={"n_layers": [3, 126], "batch": [999_983]}, prompt=999_979, context=999_961
    )
    for at, layers in enumerate((3, 126)):
        data = lmcalc.report("llama-3.1-405b", set={"n_layers": layers}, **sizes).to_dict()
        assert data["prefill"]["flops"]["total"] > 2**53
        for phase in ("prefill", "decode"):
            assert found[f"{phase}_flops"][at] == float(data[phase]["flops"]["total"])
            assert found[f"{phase}_bytes"][at] == float(data[phase]["bytes"]["total"])
        assert found["cache_bytes"][at] == float(data["cache"]["bytes"])
    assert any("2**53" in note and "prefill_flops" in note for note in found.notes)
    assert not any("2**53" in note for note in lmcalc.sweep("gpt2", batch=[1, 2]).notes)


def test_every_format_holds_the_same(capsys, tmp_path):
    expected = lmcalc.sweep(LLAMA, MACHINES, vary=GRID).to_frame()
    assert list(expected) == [*USUAL[:6], "weights", "n_kv_heads", *USUAL[6:]]
    for form in ("csv", "json", "jsonl", "parquet"):
        path = tmp_path / f"sweep.{form}"
        assert run(capsys, LLAMA, *VARY, "-H", "h100", "-H", "cerebras-wse3", "-o", path) == (0, "", "")
    same(pandas.read_parquet(tmp_path / "sweep.parquet"), expected)
    same(of_csv(tmp_path / "sweep.csv"), expected)
    lines = [json.loads(line) for line in (tmp_path / "sweep.jsonl").read_text().splitlines()]
    same(pandas.DataFrame(lines), expected)
    data = json.loads((tmp_path / "sweep.json").read_text())
    assert data["rows"] == lines and data["complete"] and data["points"] == len(expected)
    assert data["axes"]["context"] == [2**k for k in range(10, 17)] and data["columns"]["decode_bound_s"] == "s"
    assert isinstance(lines[0]["prefill_flops"], int) and lines[0]["prefill_bound_s"] > 0
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        f"sweep.{form}" for form in ("csv", "json", "jsonl", "parquet")
    ]
    status, out, _ = run(capsys, LLAMA, *VARY, "-H", "h100", "-H", "cerebras-wse3", "-f", "csv")
    assert status == 0 and out == (tmp_path / "sweep.csv").read_text()


def test_parquet_says_types_and_where_it_comes_from(capsys, tmp_path):
    import pyarrow.parquet

    path = tmp_path / "sweep.parquet"
    run(capsys, "gpt2", "--vary", "n_layers=1,2", "--vary", "batch=1:3", "-H", "h100", "-o", path)
    file = pyarrow.parquet.ParquetFile(path)
    kinds = {field.name: str(field.type) for field in file.schema_arrow}
    assert (kinds["batch"], kinds["n_layers"], kinds["prefill_flops"], kinds["fits"]) == (
        "int64",
        "int64",
        "double",
        "bool",
    )
    assert "string" in kinds["decode_bound_by"]
    about = {
        key.decode(): json.loads(value) for key, value in file.metadata.metadata.items() if key.startswith(b"lmcalc")
    }
    assert about["lmcalc"]["columns"]["prefill_flops"] == "FLOP" and about["lmcalc.end"]["complete"] is True


def test_one_column_and_chosen_ones(capsys):
    assert (
        run(capsys, "gpt2", "--vary", "batch=1,3", "--columns", "cache_bytes", "-f", "csv")[1]
        == "batch,cache_bytes\n1,75497472\n3,226492416\n"  # what varies comes along, unless an axis is named
    )
    frame = lmcalc.sweep("gpt2", vary={"norm": ["rmsnorm", "layernorm"]}, columns=["norm", "params_total"]).to_frame()
    assert frame["norm"].tolist() == ["rmsnorm", "layernorm"] and frame["params_total"].diff().iloc[1] > 0


@pytest.mark.parametrize("name", ["batch", "context", "n_kv_heads", "weights", "hardware", "model"])
def test_wide_is_the_long_table_pivoted(name):
    varied = {"weights": ["bf16", "fp8"], "n_kv_heads": [1, 2], "batch": [1, 8], "context": [10, 99]}
    columns = ["model", "hardware", *varied, "cache_bytes", "decode_bound_s"]
    found = lmcalc.sweep([LLAMA, "gpt2-medium"], ["h100", "a100"], vary=varied, columns=columns)
    keys = [each for each in list(found)[:6] if each != name]
    wide, long = found.wide(name).to_frame(), found.to_frame()
    for value in found.grid.axes[name]:
        part = long[long[name] == value]
        for column in ("cache_bytes", "decode_bound_s"):
            there = f"{column}[{name}={value}]"
            assert wide[there if there in wide else column].tolist() == part[column].tolist()
        for key in keys:
            assert wide[key].astype(str).tolist() == part[key].astype(str).tolist()


def test_wide_in_files_and_on_the_screen(capsys):
    arguments = [
        "gpt2",
        "--vary",
        "batch=1,8",
        "--vary",
        "context=10,20",
        "--wide",
        "batch",
        "--columns",
        "context,batch,cache_bytes",
    ]
    rows = list(csv.reader(io.StringIO(run(capsys, *arguments, "-f", "csv")[1])))
    assert rows == [
        ["context", "cache_bytes[batch=1]", "cache_bytes[batch=8]"],
        ["10", "368640", "2949120"],
        ["20", "737280", "5898240"],
    ]
    out = run(capsys, *arguments)[1]
    assert "cache_bytes by batch:" in out and max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_table_fits_and_says_what_it_leaves_out(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    status, out, err = run(capsys, LLAMA, *VARY[:-2], "-H", "h100", "-H", "cerebras-wse3")
    assert (status, err) == (0, "") and max(map(len, out.splitlines())) <= int(columns)
    assert "Not shown for want of room" in out and "Notes" in out and "decode_bound_s" in out


def test_models_may_be_files_and_changed(capsys, tmp_path):
    status, out, _ = run(capsys, "gpt2", LLAMA, "--pad-vocab", "1000", "--columns", "params_total", "-f", "csv")
    expected = [
        lmcalc.report(name, set={"vocab_size": size}).to_dict()["params"]["total"]
        for name, size in (("gpt2", 51_000), (LLAMA, 129_000))
    ]
    assert status == 0 and [int(line.split(",")[1]) for line in out.split()[1:]] == expected


def test_python_takes_what_the_command_takes():
    options = vary.parsed(["batch=1:3", "context=1k:4k:log2"])
    a = lmcalc.sweep("gpt2", vary=options, columns="cache_bytes")
    b = lmcalc.sweep(
        "gpt2", vary={"batch": numpy.array([1, 2, 3]), "context": (1024, 2048, 4096)}, columns="cache_bytes"
    )
    c = lmcalc.sweep("gpt2", batch=[[1], [2], [3]], context=[1024, 2048, 4096], columns="cache_bytes")
    assert a["cache_bytes"].tolist() == b["cache_bytes"].tolist() == c["cache_bytes"].tolist()
    assert list(a) == ["cache_bytes"] and len(a["cache_bytes"]) == 9


# Dask -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [LLAMA, "mixtral-8x7b", "gemma-3-4b", "bert-base-uncased", "mamba-2.8b"])
def test_dask_gives_the_same_numbers(name, monkeypatch):
    pytest.importorskip("dask.array")
    from lmcalc.questions.engines import Dask

    monkeypatch.setattr(Dask, "chunk", 30)
    monkeypatch.setattr(Dask, "block", 10)  # several graphs of several chunks
    given = {"vary": {"weights": ["bf16", "int4"], "batch": range(1, 11), "context": "1k:16k:log2"}, "columns": COLUMNS}
    found = lmcalc.sweep(name, MACHINES, engine="dask", **given).to_frame()
    same(found, lmcalc.sweep(name, MACHINES, **given).to_frame())


def test_dask_on_a_cluster(capsys, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", host="127.0.0.1",
                                  dashboard_address=":0") as cluster:  # fmt: skip
        path = tmp_path / "sweep.csv"
        given = [LLAMA, *VARY, "-H", "h100", "-o", path, "--engine", "dask", "--scheduler", cluster.scheduler_address]
        assert run(capsys, *given) == (0, "", "")
        with distributed.Client(cluster) as client:
            frame = lmcalc.sweep(LLAMA, "h100", vary=GRID, engine="dask", scheduler=client).to_frame()
    expected = lmcalc.sweep(LLAMA, "h100", vary=GRID).to_frame()
    same(of_csv(path), expected)
    same(frame, expected)


# Streams --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet"])
def test_an_interrupted_sweep_leaves_a_valid_file_of_what_is_done(form, tmp_path, monkeypatch):
    """Ctrl-C comes while the second part is computed: the file has two parts, and says so."""
    asked = Sweep([LLAMA], ["h100"], vary={"batch": range(1, 11), "context": range(1, 101)})
    monkeypatch.setattr(asked.engine, "chunk", 100)
    path = tmp_path / f"part.{form}"

    def stop(done):
        if done == 200:
            os.kill(os.getpid(), signal.SIGINT)

    assert stream.streamed(asked, form, path, stop) == (200, False)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    text = path.read_text(encoding="utf-8") if form != "parquet" else ""
    rows = {
        "csv": lambda: list(csv.DictReader(io.StringIO(text))),
        "jsonl": lambda: [json.loads(each) for each in text.splitlines()],
        "json": lambda: json.loads(text)["rows"],
        "parquet": lambda: pandas.read_parquet(path).to_dict("records"),
    }[form]()
    assert [(int(row["batch"]), int(row["context"])) for row in rows] == [(b, c) for b in (1, 2) for c in range(1, 101)]
    if form == "json":
        assert json.loads(text)["complete"] is False
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_is_said_with_status_130(tmp_path):
    path = tmp_path / "long.csv"
    command = [
        sys.executable,
        "-m",
        "lmcalc",
        "sweep",
        "gpt2",
        "--vary",
        "batch=1:4000",
        "--vary",
        "context=1:25000",
        "-o",
        path,
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    partial, waited = tmp_path / "long.csv.part", time.monotonic()
    while not (partial.exists() and partial.stat().st_size) and time.monotonic() - waited < 60:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert (
        process.returncode == 130
        and said.count("\n") == 1
        and said.startswith("lmcalc: interrupted: ")
        and "of 100,000,000 rows" in said
    )
    lines = path.read_text().splitlines()
    assert f"{len(lines) - 1:,} of" in said and len({line.count(",") for line in lines}) == 1
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_an_error_while_writing_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "sweep.csv"
    path.write_text("before")
    monkeypatch.setattr(stream.Csv, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(lmcalc.InputError, match=r"sweep.csv: cannot be written: No space left"):
        stream.streamed(Sweep(["gpt2"]), "csv", path)
    assert [each.name for each in tmp_path.iterdir()] == ["sweep.csv"] and path.read_text() == "before"


def test_memory_does_not_grow_with_the_grid(tmp_path):
    """Of 6 times the rows a stream holds no more at once; the 1e8 rows of benchmarks/run.py --large take 0.3 GB."""
    import tracemalloc

    most = []
    for count in (10, 60):
        asked = Sweep(
            [LLAMA],
            vary={"batch": range(1, count + 1), "context": range(1, 5001)},
            columns=["batch", "context", "decode_bytes"],
        )
        tracemalloc.start()
        stream.streamed(asked, "csv", tmp_path / "x.csv")
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert most[1] < 1.2 * most[0] + 2e6, most


# Bad input ------------------------------------------------------------------------------------------------------

HUGE = ["--vary", "batch=1:1000000", "--vary", "context=1:1000000"]
BAD = [
    (["--vary", "batch"], "NAME=VALUES"),
    (["--vary", "batch="], "NAME=VALUES"),
    (["--vary", "=1,2"], "NAME=VALUES"),
    (["--vary", "batch=1,,2"], "empty value"),
    (["--vary", "batch=1,2", "--vary", "batch=4"], "given twice"),
    (["--vary", "batch=1,2,1"], "1 is given twice"),
    (["--vary", "batch=8:2"], "starts at 8, above its end 2"),
    (["--vary", "batch=0:8:log2"], "0 cannot be doubled"),
    (["--vary", "batch=0:8"], "from 1 to 2**53"),
    (["--vary", "batch=1:8:0"], "a step of 0"),
    (["--vary", "batch=1:8:-1"], "a step of -1"),
    (["--vary", "batch=1:8:2:2"], "start:stop:step"),
    (["--vary", "batch=1.5"], "1.5; allowed: integers"),
    (["--vary", "batch=1:2.5"], "a range has integers"),
    (["--vary", "batch=many"], "'many'"),
    (["--vary", "batch=true"], "True; allowed: integers"),
    (["--vary", "context=1:99999999999999999999"], "2**53"),
    (["--vary", "bach=1"], "closest: batch"),
    (["--vary", "n_kv_head=1"], "closest: n_kv_heads"),
    (["--vary", "model=gpt2"], "unknown name to vary 'model'"),
    (["--vary", "n_heads=12,5"], "in the combination n_heads=5"),
    (["--vary", "n_heads=x"], "allowed: an integer"),
    (["--vary", "weights=bf16,bf17"], "closest: bf16"),
    (["--vary", "mask=none"], "causal, full"),
    (["--vary", "n_layers=1:100000"], "at most 10,000"),
    (["--vary", "n_layers=1:1000", "--vary", "d_ff=1:1000"], "1,000,000 combinations"),
    (["--vary", "batch=1,2", "-b", "4"], "batch is varied and given as well (4)"),
    (["--vary", "weights=bf16,fp8", "--weights", "fp8"], "weights is varied and given as well"),
    (["--vary", "n_layers=1,2", "--set", "n_layers=3"], "n_layers is varied and given as well"),
    (["--vary", "hardware=a100", "-H", "h100"], "hardware is varied and given as well"),
    (["--vary", "hardware=h1000"], "closest: h100"),
    (["--columns", "decode_flop"], "closest: decode_flops"),
    (["--columns", "decode_bound_s"], "needs a machine"),
    (["--columns", "batch,batch"], "given twice"),
    (["--columns", "n_layers"], "unknown column 'n_layers'"),
    (["--wide", "batch"], "there is none"),
    (["--wide", "context", "--vary", "batch=1,2"], "several values: batch"),
    (["--vary", "batch=1:2000", "--wide", "batch"], "at most 1,000 side by side"),
    (["--scheduler", "tcp://127.0.0.1:1"], "allowed: engine dask"),
    (HUGE, "a grid of 1,000,000,000,000 points (batch 1,000,000 x context 1,000,000)"),
    ([*HUGE, "-f", "csv"], "a part of a range at a time"),
    ([*HUGE, "-f", "parquet"], "a part of a range at a time"),
    (["--vary", "batch=1:20000", "-f", "table"], "at most 10,000 rows; give shorter ranges, or write it to a file"),
    (["--vary", "batch=1:20000", "-f", "html"], "-o FILE.parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), BAD)
def test_bad_input_is_one_message_status_2_and_no_file(arguments, said, capsys, tmp_path):
    status, out, err = run(capsys, "gpt2", *arguments, "-o", tmp_path / "out")
    assert (status, out) == (2, "") and err.startswith("lmcalc: ") and err.count("\n") == 1
    assert said in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("path", "said"), [("no/such/x.csv", "no folder"), (".", "is a folder")])
def test_an_output_that_cannot_be_written_is_refused_before_any_work(path, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Sweep, "__init__", lambda *_, **__: pytest.fail("work began"))
    status, out, err = run(capsys, "gpt2", "--vary", "batch=1:9", "-o", path)
    assert (status, out) == (2, "") and said in err and list(tmp_path.iterdir()) == []


def test_parquet_is_no_text_and_needs_pyarrow(capsys, tmp_path, monkeypatch):
    assert "allowed: -o FILE.parquet" in run(capsys, "gpt2", "-f", "parquet")[2]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    status, _, err = run(capsys, "gpt2", "-o", tmp_path / "x.parquet")
    assert status == 2 and "pip install 'lmcalc[parquet]'" in err and list(tmp_path.iterdir()) == []


def test_dask_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.array", None)
    status, _, err = run(capsys, "gpt2", "--engine", "dask")
    assert status == 2 and "pip install 'lmcalc[distributed]'" in err


def test_a_grid_that_memory_cannot_hold_is_refused_in_python():
    with pytest.raises(lmcalc.InputError, match=r"1,000,000,000,000 points .* does not fit in memory.*-o FILE.parquet"):
        lmcalc.sweep("gpt2", vary={"batch": "1:1000000", "context": "1:1000000"})
    with pytest.raises(lmcalc.InputError, match="does not fit in memory"):
        lmcalc.sweep("gpt2", batch=numpy.ones((1 << 17, 1)), context=numpy.ones((1, 1 << 17)), columns=["params_total"])
