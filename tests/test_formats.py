"""Every command in every format: the same plain data, flat, with units in the names; pages that need no network."""

import csv
import html.parser
import io
import json
import os
import re
import subprocess
import sys

import numpy
import pytest
from safetensors.numpy import save_file

import lmcalc
from lmcalc import cli
from lmcalc.render import FORMATS, flat

CHECKPOINT = "a checkpoint"  # stands for its path
COMMANDS = {
    "report": ["llama-3.1-8b", "-H", "a100", "-H", "cerebras-wse3"],
    "compare": ["gpt2", "llama-3.2-1b", "-H", "h100"],
    "roofline": ["gpt2", "-H", "h100"],
    "sweep": ["gpt2", "bert-base-uncased", "--vary", "batch=1,8", "-H", "h100", "-H", "cerebras-wse3"],
    "models": ["--family", "gpt"],
    "hardware": ["--where", "vendor == 'NVIDIA'"],
    "show": ["gpt2"],
    "validate": ["gpt2"],
    "inspect": [CHECKPOINT],
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "model.safetensors"
    save_file({"transformer.wte.weight": numpy.zeros((6, 4), numpy.float32)}, path)
    return str(path)


def text_of(capsys, checkpoint, command, *more):
    given = [checkpoint if each == CHECKPOINT else each for each in COMMANDS[command]]
    assert cli.main([command, *given, *more]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


class Page(html.parser.HTMLParser):
    """Checks that tags nest, and collects the cells of all tables."""

    def __init__(self):
        super().__init__()
        self.open, self.tables, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta",):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append(0)
        if tag in ("td", "th"):
            self.tables[-1][-1] += 1
        self.links += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("command", COMMANDS)
def test_every_format_of_every_command(command, capsys, checkpoint):
    texts = {form: text_of(capsys, checkpoint, command, "-f", form) for form in FORMATS}
    json.loads(texts["json"], parse_constant=pytest.fail)  # no NaN or Infinity
    rows = list(csv.reader(io.StringIO(texts["csv"])))
    assert len(rows) > 1 and {len(row) for row in rows} == {len(rows[0])}
    assert len({*rows[0]}) == len(rows[0]) and all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in rows[0]), rows[0]
    tables = re.findall(r"(?:^\|.*\n)+", texts["markdown"], re.M)
    assert tables
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    page = Page()
    page.feed(texts["html"])
    assert page.open == [] and page.links == [] and page.tables
    assert all(len({*cells}) == 1 for cells in page.tables)
    assert "prefers-color-scheme: dark" in texts["html"] and "<script" not in texts["html"]
    assert not re.search(r"https?:|@import|url\(", texts["html"].partition("</style>")[0])


def long(text):
    """{(keys ..., quantity): value} of a long table."""
    return {tuple(row[:-1]): row[-1] for row in csv.reader(io.StringIO(text))}


def test_the_csv_of_a_report_holds_the_numbers_of_the_json(capsys, checkpoint):
    data = json.loads(text_of(capsys, checkpoint, "report", "-f", "json"))
    found = long(text_of(capsys, checkpoint, "report", "-f", "csv"))
    name = data["model"]["id"]

    def at(table, hardware="", phase="", part="", quantity=""):
        return found[(table, name, hardware, phase, part, quantity)]

    assert at("model", quantity="params_total") == str(data["params"]["total"])
    assert at("model", quantity="cache_bytes") == str(data["cache"]["bytes"])
    for phase in ("prefill", "decode"):
        assert at("totals", phase=phase, quantity="flops") == str(data[phase]["flops"]["total"])
        assert at("totals", phase=phase, quantity="bytes_weights") == str(data[phase]["bytes"]["weights"])
        assert float(at("totals", phase=phase, quantity="intensity_flop_per_byte")) == data[phase]["intensity"]
        for row in data[phase]["by_part"]:
            assert at("kernels", phase=phase, part=row["path"], quantity="bytes") == str(row["bytes"])
        for part, count in data[phase]["flops"]["contraction_by_part"].items():
            assert at("flops_by_part", phase=phase, part=part, quantity="flops_contraction") == str(count)
        for each in data["hardware"]:
            times = each[phase]
            for quantity, value in times.items():
                key = ("rooflines", name, each["id"], phase, "", quantity)
                assert found.get(key, "None") == (value if isinstance(value, str) else repr(value))
    for part, count in data["params"]["by_part"].items():
        assert at("params_by_part", part=part, quantity="params") == str(count)
    assert {key[-1] for key in found if key[0] == "notes"} == {"note"}


def test_the_csv_of_a_comparison_adds_up(capsys, checkpoint):
    found = long(text_of(capsys, checkpoint, "compare", "-f", "csv"))
    first, second = (int(found[("quantities", name, "", "", "", "params")]) for name in ("gpt2", "llama-3.2-1b"))
    changes = [int(value) for key, value in found.items() if key[0] == "changes_by_part" and key[-1] == "params_change"]
    assert first + sum(changes) == second


def test_one_table_is_that_table(capsys, checkpoint):
    rows = list(csv.DictReader(io.StringIO(text_of(capsys, checkpoint, "hardware", "-f", "csv"))))
    h100 = next(row for row in rows if row["id"] == "h100-sxm")
    assert float(h100["peak_bf16_flop_per_s"]) == 989.4e12 and float(h100["bandwidth_bytes_per_s"]) == 3.35e12
    assert int(h100["memory_bytes"]) == lmcalc.hardware("h100").memory
    rows = list(csv.DictReader(io.StringIO(text_of(capsys, checkpoint, "models", "-f", "csv"))))
    assert {row["name"]: row["params_total"] for row in rows}["gpt2"] == "124439808"


@pytest.mark.parametrize(
    ("column", "unit"),
    {
        "flops": "FLOP", "flops_contraction": "FLOP", "bytes": "B", "weights_bytes": "B", "memory_needed_bytes": "B",
        "bound_s": "s", "decode_bound_s": "s", "tokens_per_s": "tokens/s", "intensity_flop_per_byte": "FLOP/B",
        "peak_bf16_flop_per_s": "FLOP/s", "bandwidth_bytes_per_s": "B/s", "params": "",
        "cache_bytes_per_token": "B/token",
        "decode_flops_ratio": "", "memory_needed": "B", "prefill_intensity": "FLOP/B", "batch": "sequences",
    }.items(),
)  # fmt: skip
def test_units_of_columns(column, unit):
    assert flat.unit_of(column) == unit


def test_the_format_follows_the_ending_unless_it_is_given(capsys, tmp_path):
    for name, start in {
        "a.csv": "table,",
        "a.md": "# gpt2",
        "a.html": "<!doctype",
        "a.json": "{",
        "a.txt": "gpt2: ",
    }.items():
        assert cli.main(["report", "gpt2", "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    assert cli.main(["report", "gpt2", "-f", "json", "-o", str(tmp_path / "b.csv")]) == 0
    assert json.loads((tmp_path / "b.csv").read_text())["params"]["total"] == 124439808


def test_names_and_notes_are_quoted(capsys, tmp_path):
    card = """
name = 'a,"b"|<i>'
notes = ["<script>alert(1)</script>, said \\"x|y\\""]
[architecture]
n_layers = 1
d_model = 8
n_heads = 2
d_ff = 16
vocab_size = 32
"""
    path = tmp_path / "odd.toml"
    path.write_text(card, encoding="utf-8")
    texts = {}
    for form in ("csv", "markdown", "html"):
        assert cli.main(["report", str(path), "-f", form]) == 0
        texts[form] = capsys.readouterr().out
    rows = list(csv.reader(io.StringIO(texts["csv"])))
    assert rows[1][1] == 'a,"b"|<i>' and {len(row) for row in rows} == {len(rows[0])}
    assert 'a,"b"\\|<i> |' in texts["markdown"]
    assert "<script>" not in texts["html"] and "<i>" not in texts["html"] and "&lt;script&gt;" in texts["html"]


def test_what_does_not_fit_is_in_the_title(capsys):
    for form in ("markdown", "html"):
        assert cli.main(["report", "llama-3.1-405b", "-H", "h100", "-f", form]) == 0
        first = re.search(r"^(?:# |<h1>)(.*?)(?:</h1>)?$", capsys.readouterr().out, re.M).group(1)
        assert first == "llama-3.1-405b does not fit h100-sxm"


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_imports_only_what_it_needs(form):
    command = ["report", "gpt2", "-H", "h100", "-f", form]
    code = f"import sys, lmcalc.cli; lmcalc.cli.main({command}); print(*sys.modules)"
    settings = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=settings, encoding="utf-8")
    loaded = {*done.stdout.splitlines()[-1].split()}
    heavy = {"numpy", "pandas", "sympy", "matplotlib", "pyarrow", "dask", "jsonschema"}
    assert not loaded & heavy
    if form != "table":
        assert not any(name.partition(".")[0] == "rich" for name in loaded)
    if form in ("json", "table"):
        assert not loaded & {"lmcalc.render.flat", "lmcalc.render.html", "csv", "html"}
