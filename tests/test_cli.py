"""The command line: every command documented, exit statuses, messages, and output that is whole or not there."""

import json
import pathlib
import subprocess
import sys

import pytest

from lmcalc import cli

README = pathlib.Path(__file__).parent.parent / "README.md"


def run(capsys, *arguments):
    """(status, stdout, stderr) of one command."""
    status = cli.main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_is_documented(command, capsys):
    assert f"lmcalc {command}" in README.read_text()
    with pytest.raises(SystemExit) as stopped:
        cli.main([command, "--help"])
    assert stopped.value.code == 0
    assert cli.COMMANDS[command][0].__doc__.split()[0].lower() in capsys.readouterr().out.lower()


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "gpt2", "-H", "a100", "-b", "4", "-p", "1k", "--past", "10", "-c", "500", "--set", "n_layers=3"],
        ["compare", "gpt2", "--variant", "norm=rmsnorm", "-H", "h100"],
        ["compare", "gpt2", "gpt2-medium"],
        ["models", "--family", "gemma"],
        ["hardware"],
        ["validate", "gpt2"],
        ["inspect", str(README.parent / "tests" / "recorded" / "logits" / "llama")],
    ],
)
def test_commands_run_in_both_formats(arguments, capsys):
    status, table, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    assert max(map(len, table.splitlines())) <= 80, "wider than 80 columns"
    assert all(line == line.rstrip() for line in table.splitlines())
    status, text, err = run(capsys, *arguments, "-f", "json")
    assert (status, err) == (0, "")
    json.loads(text)


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["report", "llama-3.1-8"], ["llama-3.1-8", "llama-3.1-8b"]),
        (["report", "no/such.toml"], ["no/such.toml"]),
        (["report", "gpt2", "-H", "h1000"], ["h1000", "h100"]),
        (["report", "gpt2", "-b", "0"], ["batch", "0", "from 1"]),
        (["report", "gpt2", "-b", "-3"], ["batch", "-3"]),
        (["report", "gpt2", "-p", "1.5"], ["--prompt", "1.5", "integer"]),
        (["report", "gpt2", "-c", "many"], ["--context", "many"]),
        (["report", "gpt2", "--weights", "bf17"], ["weights", "bf17", "bf16"]),
        (["report", "gpt2", "--mask", "none"], ["mask", "none", "causal"]),
        (["report", "gpt2", "--traffic", "best"], ["traffic", "best", "fused"]),
        (["report", "gpt2", "--set", "n_heads"], ["--set", "FIELD=VALUE"]),
        (["report", "gpt2", "--set", "n_heads=5"], ["n_heads", "5"]),
        (["report", "gpt2", "--set", "n_heads=x"], ["n_heads", "x", "integer"]),
        (["report", "gpt2", "--set", "n_layers=2", "--set", "n_layers=3"], ["n_layers", "twice"]),
        (["report", "gpt2", "--pad-vocab", "0"], ["--pad-vocab", "0"]),
        (["report", "gpt2", "-H", "h100", "--set-hardware", "bandwidth=-1"], ["bandwidth", "-1"]),
        (["report", "gpt2", "-H", "h100", "--set-hardware", "speed=1"], ["speed", "bandwidth"]),
        (["models", "--family", "gemini"], ["gemini", "gemma"]),
        (["validate", "gpt5"], ["gpt5", "gpt2"]),
    ],
)
def test_bad_input_is_one_message_and_status_two(arguments, said, capsys, tmp_path):
    target = tmp_path / "out.txt"
    status, out, err = run(capsys, *arguments, "-o", str(target))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and err.startswith("lmcalc: ") and "Traceback" not in err
    for word in said:
        assert word in err
    assert list(tmp_path.iterdir()) == []


def test_output_file_is_whole_or_not_there(capsys, tmp_path):
    target = tmp_path / "report.json"
    assert run(capsys, "report", "gpt2", "-f", "json", "-o", str(target)) == (0, "", "")
    assert json.loads(target.read_text())["params"]["total"] == 124439808
    status, _, err = run(capsys, "report", "gpt2", "-o", str(tmp_path / "no" / "where.txt"))
    assert status == 2 and "where.txt" in err and [each.name for each in tmp_path.iterdir()] == ["report.json"]


def test_pad_vocab_and_set_hardware(capsys):
    text = run(
        capsys, "report", "gpt2", "--pad-vocab", "128", "-H", "h100", "--set-hardware", "bandwidth=1e12", "-f", "json"
    )[1]
    data = json.loads(text)
    assert data["params"]["total"] == 124475904
    assert data["hardware"][0]["ridge"] == 989.4e12 / 1e12


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m lmcalc report gpt2 | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("gpt2: ")
