"""Every notebook runs from a clean kernel, and keeps the text that it prints."""

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


def text(cell):
    """What a cell prints and returns, as text; a kernel may send what it prints in several pieces."""
    return "".join(
        each.get("text") or each.data.get("text/plain")
        for each in cell.outputs
        if each.output_type != "display_data" and not ("data" in each and "image/png" in each.data)
    )
