"""Inputs that once broke something, or might: each is refused in one line, with status 2, in bounded time."""

import json

import pytest

import lmcalc
from lmcalc import cli

CARD = """name = "mine"
[architecture]
n_layers = {n_layers}
d_model = 64
n_heads = 4
d_ff = 128
vocab_size = 100
{more}
"""
PATTERN = 'layers = ["{pattern}"]\n[architecture.kinds.a]\n'
LLAMA = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "vocab_size": 100}  # fmt: skip


@pytest.mark.parametrize(
    ("n_layers", "more", "word"),
    [
        (2**40, PATTERN.format(pattern="a"), "n_layers"),  # must not be written out in memory
        (4, PATTERN.format(pattern="0*a"), "layers"),
        (4, PATTERN.format(pattern="b"), "layers"),
        (4, PATTERN.format(pattern="a") + "n_layer = 3", "n_layer"),
        (0, "", "n_layers"),
        (-1, "", "n_layers"),
        (2.5, "", "n_layers"),
        ('"two"', "", "n_layers"),
        ("true", "", "n_layers"),
        (4, "window = 0", "window"),
        (4, "head_dim = 15", "head_dim"),
        (4, "norm_eps = nan", "norm_eps"),
        (4, "n_kv_heads = 3", "n_heads"),
        (4, "n_kv_head = 2", "n_kv_heads"),
    ],
)
def test_cards(n_layers, more, word, tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text(CARD.format(n_layers=n_layers, more=more))
    status = cli.main(["report", str(path)])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "") and err.count("\n") == 1 and "mine.toml" in err and word in err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_attention_heads", 0),
        ("num_attention_heads", -4),
        ("num_attention_heads", "4"),
        ("num_attention_heads", True),
        ("hidden_size", [64]),
        ("hidden_size", 65),
        ("vocab_size", float("nan")),
        ("num_hidden_layers", 10**30),
        ("num_key_value_heads", 3),
        ("hidden_act", "square"),
        ("rope_scaling", {"rope_type": "round"}),
        ("model_type", "lama"),
    ],
)
def test_configs(key, value, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, key: value}))
    status = cli.main(["report", str(path)])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "") and err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"model_type": 3}', "{}"])
def test_files_that_are_no_config(text, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(text)
    assert cli.main(["report", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("model", [None, 3, [], b"gpt2", "", "no such\nmodel", "../gpt2", "gpt2/"])
def test_things_that_are_no_model(model):
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.load(model)
    assert "\n" not in str(caught.value)
