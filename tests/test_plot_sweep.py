"""Pictures of sweeps: what is drawn is what the columns hold, axis by axis; what cannot be drawn is refused."""

import numpy
import pytest

from lmcalc.cli import main
from lmcalc.plot import drawn
from lmcalc.plot.sweep import Side, draw, needed
from lmcalc.questions.sweep import Sweep


def pictured(columns=None, models=("llama-3.1-8b",), hardware=("h100",), **vary):
    """(figure, columns drawn, the sweep in memory)"""
    asked = Sweep(list(models), list(hardware), columns, vary=vary)
    names, all_names = needed(asked, columns is not None)
    held = asked.of(all_names).held()
    return draw(held, names, columns is not None), names, held


def meshes(figure):
    return [each for axes in figure.axes for each in axes.collections if each.__class__.__name__ == "QuadMesh"
            and axes.get_xlabel()]  # fmt: skip


def test_maps_show_the_columns():
    vary = {"batch": [512, 1, 8, 64], "context": [4096, 64, 1024, 16384, 512]}  # in no order
    figure, names, held = pictured(["decode_bound_s", "decode_tokens_per_s"], **vary)
    found = meshes(figure)
    assert names == ["decode_bound_s", "decode_tokens_per_s"] and len(found) == 2
    for name, mesh in zip(names, found):
        grid = numpy.asarray(held[name], float).reshape(4, 5)
        assert numpy.array_equal(mesh.get_array(), grid[numpy.ix_([1, 2, 3, 0], [1, 4, 2, 0, 3])])
    axes = figure.axes[0]
    assert [each.get_text() for each in axes.get_xticklabels()] == ["64", "512", "1k", "4k", "16k"]
    assert [each.get_text() for each in axes.get_yticklabels()] == ["1", "8", "64", "512"]
    assert {"border of: compute bound", "border of: does not fit"} == {
        each.get_text() for each in figure.legends[0].get_texts()
    }


def test_borders_lie_where_the_bound_changes_sides():
    figure, _, held = pictured(["decode_bound_s"], batch=[64, 128, 256, 512], context=[1, 64, 128, 256])
    compute = (held["decode_bound_by"] == "compute").reshape(4, 4)
    border = next(each for each in figure.axes[0].collections if each.__class__.__name__ == "LineCollection")
    x, y = (Side(name, values) for name, values in (("context", [1, 64, 128, 256]), ("batch", [64, 128, 256, 512])))
    drawn_edges = {tuple(sorted((float(a), float(b)) for a, b in each)) for each in border.get_segments()}
    expected = set()
    for row, column in numpy.ndindex(4, 4):
        if column < 3 and compute[row, column] != compute[row, column + 1]:
            expected.add(((x.edges[column + 1], y.edges[row]), (x.edges[column + 1], y.edges[row + 1])))
        if row < 3 and compute[row, column] != compute[row + 1, column]:
            expected.add(((x.edges[column], y.edges[row + 1]), (x.edges[column + 1], y.edges[row + 1])))
    assert expected and drawn_edges == {tuple(sorted((float(a), float(b)) for a, b in each)) for each in expected}


def test_lines_show_the_columns():
    figure, names, held = pictured(hardware=("h100", "a100"), batch=[1, 4, 16, 64, 256])
    assert names == ["decode_bound_s", "prefill_bound_s"]
    for axes, name in zip(figure.axes, names):
        grid = numpy.asarray(held[name], float).reshape(2, 5)
        whole = [line for line in axes.lines if line.get_alpha() == 0.3]
        assert numpy.array_equal([line.get_ydata() for line in whole], grid)
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "#FFFFFF" and len(line.get_xdata())]
        memory = held[name.replace("_s", "_by")] != "compute"
        assert sum(len(line.get_xdata()) for line in hollow) == memory.sum()


def test_words_and_fields_as_axes():
    figure, _, _ = pictured(["weights_bytes"], hardware=(), weights=["bf16", "fp8", "int4"], n_layers=[2, 4])
    axes = figure.axes[0]
    assert axes.get_xlabel() == "n layers" and len(axes.lines) > 3
    assert {each.get_text() for each in figure.legends[0].get_texts()} == {"weights bf16", "weights fp8",
                                                                          "weights int4"}  # fmt: skip
    assert "cache bf16" in figure.get_suptitle() and "weights" not in figure.get_suptitle().split("\n")[1]


def test_the_same_grid_draws_the_same_bytes():
    vary = {"batch": range(1, 40), "context": range(1, 2000, 50)}
    assert drawn(pictured(**vary)[0], "png") == drawn(pictured(**vary)[0], "png")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "a grid of one point"),
        (["--vary", "batch=1:3", "--columns", "batch"], "no column to draw"),
        (["--vary", "batch=1:99", "--vary", "context=1:99", "--vary", "n_layers=1:9", "--vary", "prompt=1,2"], "lines"),
        (["--vary", "batch=1:2000", "--vary", "context=1:2000"], "4,000,000 points"),
    ],
)
def test_what_cannot_be_drawn(arguments, words, tmp_path, capsys):
    path = tmp_path / "grid.png"
    assert main(["sweep", "gpt2", *arguments, "--plot", str(path)]) == 2
    assert words in capsys.readouterr().err and not path.exists()


def test_endings(tmp_path, capsys):
    picture, table = tmp_path / "grid.svg", tmp_path / "grid.csv"
    assert main(["sweep", "gpt2", "--vary", "batch=1,2,4", "--plot", str(picture), "-o", str(table)]) == 0
    assert picture.read_bytes().startswith(b"<?xml") and table.read_text().startswith("model,")
    assert main(["sweep", "gpt2", "--vary", "batch=1,2,4", "-o", str(picture)]) == 0
    assert "decode_flops" in capsys.readouterr().out
    for arguments, words in (
        (["sweep", "gpt2", "--vary", "batch=1,2", "--plot", "grid.jpg"], ["--plot grid.jpg", ".svg"]),
        (["sweep", "gpt2", "--vary", "batch=1,2", "--plot", str(picture), "-o", "a.png"], ["two pictures"]),
        (["report", "gpt2", "-o", str(tmp_path / "report.xlsx")], ["report.xlsx", ".json", ".md"]),
        (["report", "gpt2", "-o", str(tmp_path / "report.png")], ["report.png", ".json"]),
        (["sweep", "gpt2", "--vary", "batch=1,2", "--plot", "/no/such/folder/a.png"], ["--plot", "no folder"]),
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert all(word in error for word in words), error
    assert not (tmp_path / "report.xlsx").exists()


def test_a_long_table_is_left_out_beside_a_picture(tmp_path, capsys):
    path = tmp_path / "grid.png"
    assert main(["sweep", "gpt2", "--vary", "batch=1:200", "--vary", "context=1:100", "--plot", str(path)]) == 0
    assert capsys.readouterr().out == "" and path.exists()
