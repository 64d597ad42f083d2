"""The command line as a process: it prints what the Python API returns; see test_cli.py for its commands one by one."""

import json
import os
import subprocess
import sys

import pytest

import lmcalc
from lmcalc.cli import main

GOOD = ["report", "gpt2", "-H", "h100"]


def run(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "lmcalc", *arguments], capture_output=True, text=True, **options)


def test_json_is_the_python_report(capsys):
    options = {
        "batch": 4,
        "prompt": 100,
        "past": 10,
        "context": 50,
        "weights": "fp8",
        "mask": "full",
        "traffic": "ideal",
        "logits": "all",
    }
    arguments = [each for name, value in options.items() for each in (f"--{name}", str(value))]
    assert main([*GOOD, *arguments, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == lmcalc.report("gpt2", hardware=["h100"], **options).to_dict()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["models", "-f", "json"], lmcalc.models),
        (["hardware", "-f", "json"], lmcalc.hardware),
        (["validate", "gpt2", "-f", "json"], lambda: lmcalc.validate(["gpt2"])),
    ],
)
def test_other_commands_in_json(arguments, expected, capsys):
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(expected()))


@pytest.mark.parametrize(
    "arguments", [GOOD, ["models"], ["hardware"], ["validate", "gpt2"], ["report", "llama-3.1-405b", "-H", "h100"]]
)
def test_tables_fit_80_columns(arguments):
    done = run(*arguments, env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 0 and done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout  # not a terminal: no colours


def test_what_does_not_fit_is_said_first():
    lines = run("report", "llama-3.1-405b", "-H", "h100").stdout.splitlines()[:4]
    assert any(line.startswith("DOES NOT FIT h100-sxm: needs 813 GB") for line in lines), lines


BAD = [
    ([], "usage"),
    (["reprot", "gpt2"], "report"),
    (["report"], "MODEL"),
    (["report", "gpt22"], "closest: gpt2"),
    (["report", "gpt2", "-H", "h1000"], "closest: "),
    (["report", "gpt2", "-b", "0"], "an integer from 1"),
    (["report", "gpt2", "-b", "-3"], "an integer from 1"),
    (["report", "gpt2", "-p", "2.5"], "2.5"),
    (["report", "gpt2", "-c", "many"], "many"),
    (["report", "gpt2", "-c", str(2**60)], "2**53"),
    (["report", "gpt2", "--weights", "bf17"], "bf16"),
    (["report", "gpt2", "--mask", "causl"], "causal"),
    (["report", "gpt2", "--set", "n_heads=5"], "n_heads"),
    (["report", "gpt2", "--set", "n_head=4"], "closest: n_heads"),
    (["report", "gpt2", "--set", "n_heads"], "n_heads"),
    (["report", "gpt2", "-H", "h100", "--set-hardware", "bandwith=1"], "bandwidth"),
    (["report", "gpt2", "-f", "yaml"], "json"),
    (["report", "gpt2", "--nonsense"], "--nonsense"),
    (["report", "nowhere.toml"], "no such file"),
    (["report", "gpt2", "-o", "no/such/folder/x.json"], "no/such/folder"),
    (["validate", "gpt22"], "closest: gpt2"),
    (["models", "--family", "lama"], "llama"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_message_and_status_2(arguments, message, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failed_check_is_status_1(monkeypatch, capsys):
    from lmcalc.primitives import PRIMITIVES

    monkeypatch.setattr(PRIMITIVES["softmax"], "per_element", 6)
    assert main(["validate", "gpt2"]) == 1
    assert "operations that differ" in capsys.readouterr().out
