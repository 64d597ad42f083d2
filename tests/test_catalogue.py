"""The catalogues: rows and their ratios, filters, the tables, and cards of models that were never described."""

import json

import pytest

import lmcalc
from lmcalc import cli
from lmcalc.questions.catalogue import architectures, row
from lmcalc.where import chosen

ROWS = [
    {"name": "a", "n": 3, "ratio": 0.5, "tied": True, "kind": "x", "peak": {"bf16": 2.0}, "notes": ["one"]},
    {"name": "b", "n": 60, "ratio": None, "tied": False, "kind": None, "peak": {}, "notes": []},
]


def names(text):
    return [each["name"] for each in chosen(ROWS, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n > 3", "b"),
        ("n >= 3", "ab"),
        ("3 < n <= 60", "b"),
        ("n != 3 and not tied", "b"),
        ("tied or n == 60", "ab"),
        ("tied", "a"),
        ("n in [3, 4]", "a"),
        ("n not in (3, 4)", "b"),
        ("'x' in kind", "a"),
        ("'one' in notes", "a"),
        ("kind == None", "b"),
        ("ratio > 0", "a"),
        ("ratio <= 1 or ratio > 1", "a"),  # unknown is neither
        ("n * 2 + 1 - 1 // 2 > -7 % 4", "ab"),
        ("n / 0 > 1", ""),
        ("peak.bf16 == 2", "a"),
        ("peak.bf16 * n > 5.5", "a"),
        ("kind", ""),
    ],
)
def test_expressions(text, expected):
    if text == "kind":
        with pytest.raises(lmcalc.InputError, match="neither true nor false"):
            names(text)
    else:
        assert "".join(names(text)) == expected


BAD = [
    ("", "not an expression"),
    ("n >", "not an expression"),
    ("n = 3", "not an expression"),
    ("n > 3; n", "not an expression"),
    ("\x00", "not an expression"),
    ("(" * 400, "not an expression"),
    ("n > 3 " + "or n > 3 " * 200, "at most 1000"),
    ("m > 3", "unknown field 'm'"),
    ("tied or m > 3", "unknown field 'm'"),
    ("peak.fp4 > 3", "unknown field 'peak.fp4'"),
    ("name.upper", "unknown field 'name.upper'"),
    ("n", "neither true nor false"),
    ("n > 'x'", "two numbers, or two texts"),
    ("n in n", "two numbers, or two texts"),
    ("name * 10 == 'a'", "allowed: numbers"),
    ("tied + 1 > 0", "allowed: numbers"),
    ("n ** 9 > 1", "is not allowed"),
    ("n << 9 > 1", "is not allowed"),
    ("n is None", "is not allowed"),
    ("len(name) > 1", "is not allowed"),
    ("__import__('os').system('true')", "is not allowed"),
    ("name.a.b == 1", "is not allowed"),
    ("notes[0] == 'one'", "is not allowed"),
    ("[n for n in [1]] == [1]", "is not allowed"),
    ("(lambda: 1) == 1", "is not allowed"),
    ("f'{n}' == '3'", "is not allowed"),
    ("(n := 3) > 1", "is not allowed"),
    ("{1: 2} == 3", "is not allowed"),
    ("n if tied else n", "is not allowed"),
    ("b'x' == 1", "is not allowed"),
    ("1j == 1", "is not allowed"),
    ("... == 1", "is not allowed"),
]


@pytest.mark.parametrize(("text", "said"), BAD)
def test_what_is_no_such_expression_is_refused(text, said):
    with pytest.raises(lmcalc.InputError) as caught:
        names(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("command", "field"), [("models", "n_layers"), ("hardware", "bandwidth")])
def test_a_bad_filter_is_one_message_and_status_two(command, field, capsys):
    for text in ("nothing > 3", f"{field} >", f"{field} > 'x'", f"open({field})"):
        assert cli.main([command, "--where", text]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and err.startswith("lmcalc: --where ")


def test_filters_of_both_catalogues(capsys):
    assert cli.main(["models", "--where", "n_layers > 60 and attention == 'gqa'", "-f", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"llama-2-70b", "llama-3.1-405b"} <= {each["name"] for each in found}
    assert all(each["n_layers"] > 60 and each["attention"] == "gqa" for each in found)
    assert cli.main(["models", "--family", "gpt", "--where", "vocab_size > 1000000"]) == 0
    assert cli.main(["hardware", "--where", "peak.fp8 > 1e15 and vendor == 'AMD'"]) == 0
    assert "mi300x" in capsys.readouterr().out
    assert [each["id"] for each in lmcalc.hardware(where="memory / bandwidth > 0.2 and peak.bf16 >= 1e14")]
    assert lmcalc.models("gemma", "d_ff_over_d_model == 8")


# Rows ------------------------------------------------------------------------------------------------------------

# name: (attention, norm, placement, positions, d_ff/D, heads*H/D, D/L), of the lecture's tables
AXES = {
    "gpt2": ("mha", "layernorm", "pre", "learned", 4.0, 1.0, 64.0),
    "gpt3-175b": ("mha", "layernorm", "pre", "learned", 4.0, 1.0, 128.0),
    "t5-11b": ("mha", "rmsnorm", "pre", "relative_bias", 64.0, 16.0, 1024 / 24),
    "lamda-137b": ("mha", "rmsnorm", "pre", "relative_bias", 8.0, 2.0, 128.0),
    "palm-540b": ("mqa", "layernorm_no_bias", "pre", "rotary", 4.0, 12288 / 18432, 18432 / 118),
    "llama-2-70b": ("gqa", "rmsnorm", "pre", "rotary", 3.5, 1.0, 102.4),
    "bert-base-uncased": ("mha", "layernorm", "post", "learned", 4.0, 1.0, 64.0),
    "olmo-2-7b": ("mha", "rmsnorm", "output", "rotary", 11008 / 4096, 1.0, 128.0),
    "command-a-111b": ("gqa", "layernorm_no_bias", "pre", "rotary+none", 3.0, 1.0, 192.0),
    "deepseek-v3.2": ("mla", "rmsnorm", "pre", "rotary", 18432 / 7168, 192 * 128 / 7168, 7168 / 61),
    "jamba-1.5-mini": ("mamba+gqa", "rmsnorm", "pre", "none", 3.5, 1.0, 128.0),
    "mamba-2.8b": ("mamba", "rmsnorm", "pre", "none", None, None, 40.0),
    "gemma-7b": ("mha", "rmsnorm_plus_one", "pre", "rotary", 8.0, 4096 / 3072, 3072 / 28),
}


@pytest.mark.parametrize("name", AXES)
def test_the_axes_of_comparison(name):
    found = row(name)
    columns = ("attention", "norm", "norm_placement", "positions", "d_ff_over_d_model", "heads_over_d_model")
    assert tuple(found[each] for each in (*columns, "d_model_over_n_layers")) == AXES[name]


def test_what_training_left_behind():
    found = row("gpt3-175b")
    assert (found["weight_decay"], found["training_tokens"], found["tied"]) == (0.1, "300B", True)
    assert row("t5-base")["z_loss"] == 1e-4
    assert row("gpt2")["dropout"] == 0.1


def test_every_row_has_the_same_columns_and_can_be_written():
    rows = lmcalc.models()
    assert len({tuple(each) for each in rows}) == 1
    json.dumps(rows, allow_nan=False)


@pytest.mark.parametrize("arguments", [[], ["--axes"]])
def test_tables_fit_the_screen(arguments, capsys, monkeypatch):
    names = [row["name"] for row in lmcalc.models()]
    for width in (80, 150):
        monkeypatch.setenv("COLUMNS", str(width))
        assert cli.main(["models", *arguments]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split(" ")[0] for line in lines[1 : 1 + len(names)]] == names and max(map(len, lines)) <= width
        assert any(line.startswith(f"Not shown in {width}") for line in lines) == (width == 80)
    assert ("decay" in lines[0]) == bool(arguments)


def test_an_empty_answer_says_so(capsys):
    assert cli.main(["models", "--where", "n_layers > 5000"]) == 0 and "no row" in capsys.readouterr().out
    assert cli.main(["models", "--family", "zzzz"]) == 2 and "qwen" in capsys.readouterr().err


# Models that were never described ----------------------------------------------------------------------------------


def test_a_model_without_dimensions_is_listed_and_refused(capsys):
    found = row("gpt-4")
    assert found["vocab_size"] == 100_276 and found["params_total"] is None and "not published" in found["unpublished"]
    assert "gpt-4" not in architectures() and "gpt2" in architectures()
    for name in ("gpt-4", "GPT4", "reka-core"):
        assert cli.main(["report", name]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and "no architecture to count" in err and "not published" in err


def test_a_card_has_an_architecture_or_says_why_not(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nunpublished = "nobody knows"\n', encoding="utf-8")
    with pytest.raises(lmcalc.InputError, match="nobody knows"):
        lmcalc.load(path)
    path.write_text('name = "mine"\nunpublished = "nobody knows"\n[architecture]\nn_layers = 2\n', encoding="utf-8")
    with pytest.raises(lmcalc.InputError, match="allowed: one of the two"):
        lmcalc.load(path)
    path.write_text('name = "mine"\nunpublished = true\n', encoding="utf-8")
    with pytest.raises(lmcalc.InputError, match=r"unpublished = True; allowed: text"):
        lmcalc.load(path)
