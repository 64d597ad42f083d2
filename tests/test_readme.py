"""The README: its commands are the ones that work, and its report is what the command prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = "lmcalc report llama-3.1-8b -H a100 -H h100"


def blocks(language):
    """The code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "lmcalc", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_block_is_what_the_command_prints():
    shown = blocks("console")[0]
    prompt, _, output = shown.partition("\n")
    assert prompt == f"$ {COMMAND}"
    assert output == run(*COMMAND.split()[1:])


def test_the_report_fits_80_columns():
    assert max(map(len, run(*COMMAND.split()[1:]).splitlines())) <= 80


def test_the_two_set_up_commands():
    """One ends in the report, one runs the tests and is what .ci/run calls; both from a checkout, in an environment."""
    report, tests = (block.strip() for block in blocks("sh")[:2])
    assert report.startswith("python3 -m venv .venv && ") and report.endswith(f".venv/bin/{COMMAND}")
    assert tests.endswith(".venv/bin/python -m pytest") and ".[test,notebooks]" in tests
    assert tests in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", re.findall(r"^\$ lmcalc (.*)$", README, re.M))
def test_every_command_shown_runs(line):
    assert run(*line.split())


def test_the_card_and_the_machine_of_ones_own(tmp_path):
    model, machine = (tmp_path / f"{name}.toml" for name in ("my-model", "my-machine"))
    for path, block in zip((model, machine), blocks("toml")):
        path.write_text(block, encoding="utf-8")
    assert "fits my-machine" in run("report", str(model), "-H", str(machine), "--activations", "fp8")
