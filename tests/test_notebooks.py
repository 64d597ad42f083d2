"""Every notebook runs from a clean kernel, and keeps the text that it prints."""

import re
from base64 import b64decode
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")
def test_notebook_runs_and_prints_what_it_shows(path):
    kept, run = (nbformat.read(path, as_version=4) for _ in range(2))
    assert kept.cells[0].cell_type == "markdown" and kept.cells[0].source.startswith("# ")
    NotebookClient(run, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    for before, after in zip(kept.cells, run.cells):
        if before.cell_type == "code":
            assert text(before) == text(after), before.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_kept_is_small_and_clean(path):
    """No warnings, no errors, no times of a run, no machine's version of anything; figures below 60 kB."""
    notebook = nbformat.read(path, as_version=4)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert dict(notebook.metadata.language_info) == {"name": "python"}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not any(cell.metadata for cell in notebook.cells)
    outputs = [each for cell in code for each in cell.outputs]
    assert all(each.output_type != "error" and each.get("name") != "stderr" for each in outputs)
    assert all(
        len(b64decode(each.data["image/png"])) < 60_000 for each in outputs if "image/png" in each.get("data", ())
    )
    assert any("image/png" in each.get("data", ()) for each in outputs)


def test_the_readme_lists_them():
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\d\d_\w+)` \|", readme, re.M) == [path.stem for path in NOTEBOOKS]


def text(cell):
    """What a cell prints and returns, as text; a kernel may send what it prints in several pieces."""
    return "".join(
        each.get("text") or each.data.get("text/plain")
        for each in cell.outputs
        if each.output_type != "display_data" and not ("data" in each and "image/png" in each.data)
    )
