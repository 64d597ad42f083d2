"""Plots: files are written, labels do not cover each other, pages need no network, characters fit the terminal."""

import json
import re

import pytest

from lmcalc.cli import main
from lmcalc.interactive import page
from lmcalc.plot import drawn
from lmcalc.plot.roofline import draw
from lmcalc.questions.roofline import roofline
from lmcalc.render.roofline import LETTERS, picture

CASES = {
    "one model": (["llama-3.1-8b"], ["h100"], {}),
    "twelve points": (["llama-3.1-8b", "gpt2", "llama-2-13b"], ["h100", "a100"], {"batch": 8}),
    "three machines": (["llama-3.1-8b"], ["h100", "a100", "mi300x"], {"batch": 32}),
    "kernels": (["llama-3.1-8b"], ["h100"], {"points": "kernel"}),
    "no vector peak": (["gpt2"], ["tpu-v5e"], {}),
    "no peak": (["gpt2"], ["cerebras-wse3"], {}),
}


@pytest.fixture(scope="module", params=CASES)
def data(request):
    models, machines, options = CASES[request.param]
    return roofline(models, machines, **options)


@pytest.mark.parametrize("dark", [False, True])
def test_labels_cover_neither_each_other_nor_points(data, dark):
    figure = draw(data, dark)
    axes = figure.axes[0]
    assert len(figure.boxes) >= len({(each["model"], each["phase"]) for each in data["points"]})
    extent = axes.get_window_extent()
    for at, (a, b, c, d) in enumerate(figure.boxes):
        assert extent.x0 <= a and c <= extent.x1 and extent.y0 <= b and d <= extent.y1
        for e, f, g, h in figure.boxes[at + 1 :]:
            assert min(c, g) <= max(a, e) or min(d, h) <= max(b, f), "two labels overlap"
    points = [
        axes.transData.transform((each["intensity"], each["reached_flop_per_s"]))
        for each in data["points"]
        if each["intensity"]
    ]
    for a, b, c, d in figure.boxes:
        assert not any(a < x < c and b < y < d for x, y in points), "a label covers a point"


@pytest.mark.parametrize("suffix, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_files(suffix, start):
    data = roofline("gpt2", "h100")
    first = drawn(draw(data), suffix)
    assert first[: len(start)] == start
    assert first == drawn(draw(data), suffix), "the same data, other bytes"


def test_colours_are_told_apart_without_colour():
    """Every machine has its own line, every model its own shape, and decode is hollow."""
    figure = draw(roofline(["llama-3.1-8b", "gpt2"], ["h100", "a100"]))
    lines = figure.axes[0].lines
    assert (
        len(
            {
                repr(line._unscaled_dash_pattern)
                for line in lines
                if line.get_marker() == "None" and len(line.get_xdata()) == 2
            }
        )
        >= 2
    )
    marks = [line for line in lines if line.get_marker() != "None"]
    assert len({line.get_marker() for line in marks}) == 2
    assert len({line.get_markerfacecolor() for line in marks}) == 3  # a fill a machine, and paper


# Pages ----------------------------------------------------------------------------------------------------------


def test_a_page_needs_no_network_and_holds_its_data():
    data = roofline(["llama-3.1-8b", "gpt2"], ["h100", "a100"])
    text = page(data)
    assert not re.search(r"https?:|//[a-z]|\bsrc=|@import|url\((?!#)|\bfetch\b|XMLHttpRequest|<link|<img", text)
    held = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))
    assert held["data"] == json.loads(json.dumps(data))
    for name in ("plot", "hover", "toggles", "turns", "table"):
        assert text.count(f'id="{name}"') == 1
    assert len(held["sentences"]) == len(data["turns"])
    assert "@DATA@" not in text


def test_a_name_cannot_end_the_script():
    data = roofline("gpt2", "h100")
    data["points"][0]["model"] = "</script><b>x"
    assert "</script><b>" not in page(data)


# Characters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 120])
def test_a_plot_of_characters_fits(data, columns):
    marks = [LETTERS[at] if each["intensity"] else " " for at, each in enumerate(data["points"])]
    lines = picture(data, marks, columns)
    plot = [line for line in lines if "|" in line[:10]]
    assert max(map(len, plot)) <= columns and all(ord(each) < 128 for line in plot for each in line)
    shown = "".join(line[9:] for line in plot)
    for mark, each in zip(marks, data["points"]):
        alone = not any(abs(other["intensity"] / each["intensity"] - 1) < 0.2 and other is not each
                        for other in data["points"] if other["intensity"]) if each["intensity"] else False  # fmt: skip
        assert not alone or mark in shown


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_command_on_a_terminal(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    for points in ("phase", "kernel"):
        assert main(["roofline", "llama-3.1-8b", "mistral-7b", "-H", "h100", "-H", "a100", "--points", points]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= int(columns)
        assert "Where the bound turns" in out and "h100-sxm" in out


# Commands -------------------------------------------------------------------------------------------------------


def test_pictures_and_the_table_behind_them(tmp_path, capsys):
    target = tmp_path / "x.svg"
    assert main(["roofline", "gpt2", "-H", "h100", "--dark", "-o", str(target), "-f", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "lmcalc.roofline/1" and len(data["points"]) == 2
    assert "<svg" in target.read_text(encoding="utf-8")
    page_ = tmp_path / "x.html"
    assert main(["roofline", "gpt2", "-H", "h100", "--interactive", "-o", str(page_)]) == 0
    assert page_.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("more", [[], ["--variant", "n_kv_heads=1", "--variant", "window=512"]])
def test_compare_draws(more, tmp_path, capsys):
    target = tmp_path / "x.png"
    models = ["llama-3.1-8b"] if more else ["llama-3.1-8b", "bert-base-uncased", "gpt2"]
    assert main(["compare", *models, *more, "--plot", str(target)]) == 0
    assert target.read_bytes()[:4] == b"\x89PNG" and "decode_flops" in capsys.readouterr().out


def test_curves_are_those_of_report():
    import lmcalc
    from lmcalc.questions.compare import curves

    found = curves(["llama-3.1-8b", "bert-base-uncased"], batch=3)
    for at in (0, 5):
        one = lmcalc.report("llama-3.1-8b", batch=3, context=found["context"][at]).to_dict()
        model = found["models"][0]
        assert model["cache_bytes"][at] == one["cache"]["bytes"] + one["cache"]["state_bytes"]
        assert model["flops_per_token"][at] == one["decode"]["flops"]["total"] / 3
    assert found["models"][1]["flops_per_token"] is None


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["roofline", "gpt2"], "needs a machine"),
        (["roofline", "gpt2", "-H", "h100", "--interactive"], "-o FILE.html"),
        (["roofline", "gpt2", "-H", "h100", "--interactive", "-o", "x.png"], "-o FILE.html"),
        (["roofline", "gpt2", "-H", "h100", "-o", "no/such/folder/x.png"], "no/such/folder"),
        (["compare", "gpt2", "gpt2-xl", "--plot", "x.jpeg"], ".png, .svg, .pdf"),
        (["compare", "gpt2", "gpt2-xl", "--plot", "no/such/folder/x.png"], "no/such/folder"),
    ],
)
def test_bad_usage(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and list(tmp_path.iterdir()) == []
