"""Style: ruff's checks and format, no machine's paths, one screen an idea."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = ("lmcalc", "tests", "benchmarks", "notebooks")


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_ruff(command):
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "-q", *CODE], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_paths_of_a_machine():
    for path in (*ROOT.glob("*.md"), *(each for folder in CODE for each in (ROOT / folder).rglob("*"))):
        if path.suffix in (".py", ".md", ".toml", ".json", ".ipynb"):
            found = re.search(r"(?<![\w.])/(?:home|Users|root|work|tmp|mnt|opt)/\w+", path.read_text(encoding="utf-8"))
            assert found is None, f"{path}: {found.group()}"
