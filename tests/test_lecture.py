"""Every derivation of the lecture arrives at the lecture's form, and its numbers are what they are said to be."""

import json

import jsonschema
import pytest
import sympy

import lmcalc
from lmcalc import cli
from lmcalc.lecture import DERIVATIONS, derivation
from lmcalc.lecture import shares as ivanov
from lmcalc.lecture.steps import monomials

BY_NAME = {}


def made(name):
    if name not in BY_NAME:
        BY_NAME[name] = derivation(name)
    return BY_NAME[name]


def form(name, what):
    return next(each for each in made(name)["reached"] if each["what"].startswith(what))


@pytest.mark.parametrize("name", DERIVATIONS)
def test_it_arrives(name):
    data = made(name)
    assert data["reached"] and all(each["same"] for each in data["reached"])
    assert {each["good"] for each in data["examples"]} == {True, False}
    jsonschema.Draft202012Validator(lmcalc.schema("lecture")).validate(json.loads(json.dumps(data)))


def test_the_pages_of_the_issue_are_there():
    pages = " ".join(pages for pages, _, _ in DERIVATIONS.values())
    for page in (
        "15-16",
        "22-23",
        "37-39",
        "28",
        "30",
        "31-35",
        "42-44",
        "47",
        "54-56",
        "58",
        "60",
        "61",
        "62",
        "64-65",
    ):
        assert page in pages


@pytest.mark.parametrize(
    ("name", "what", "constants"),
    [
        ("intensity", "its inverse", {"1/m: 1/3", "1/k: 2/3"}),
        ("decode", "its inverse", {"1/b: 1/2", "n/d: 1/8"}),
        ("mqa", "its inverse", {"1/b: 1/2", "1/d: 2", "n/(d*h): 1/4"}),
        ("windows", "one against the other", {"w/n: 2"}),
        ("kv-cache", "grouped", set()),
        ("ffn", "F of a gated one", set()),
        ("ratios", "a block at rho = 1", set()),
    ],
)
def test_constants_that_the_lecture_leaves_out(name, what, constants):
    assert set(form(name, what)["leaves_out"]) == constants


def test_forms_that_differ_are_called_different():
    n, d = sympy.symbols("n d", positive=True)
    assert set(monomials(n + d, (n, d))) != set(monomials(n, (n, d)))
    assert monomials(sympy.S.Zero, (n,)) == {} != monomials(sympy.S.One, (n,))
    assert monomials(3 * n * d + n * d + 1, (n, d)) == {n * d: 4, 1: 1}


def test_ivanov():
    layer = ivanov.bert()
    assert layer["forward"]["contraction"] == 104 * 2**30
    both = layer["forward"]["contraction"] + layer["backward"]["contraction"]
    assert both == 312 * 2**30
    rules = ivanov.paper_rules(layer["ops"])
    softmax, norm = 6 * 8 * 16 * 512 * 512, 7 * 8 * 512 * 1024
    assert rules["normalization"] == softmax + 2 * norm == 201326592 + 58720256
    assert 100 * 2 * rules["elementwise"] / (both / 0.998) == pytest.approx(0.03, abs=0.005)
    shares = ivanov.time_shares()
    assert sum(shares.values()) == pytest.approx(1) and 0.4 < shares["contraction"] < 0.8


def test_the_examples_say_numbers_of_the_notes():
    assert "8,388,608" in made("positions")["examples"][0]["text"]
    assert any("0.125" in each["text"] for each in made("windows")["examples"])
    assert any("0.2344" in each["text"] for each in made("windows")["examples"])
    assert any("F/D = 64" in each["text"] for each in made("ffn")["examples"])
    assert any("says 128" in each["text"] for each in made("intensity")["examples"])


def test_rotary_numbers():
    from lmcalc.lecture.rotary import numerically

    assert numerically("rotary") < 1e-10 < 0.1 < numerically("added")


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_command(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert cli.main(["formula", "--lecture"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in DERIVATIONS)
    for name in ("intensity", "kv-cache"):
        assert cli.main(["formula", "--lecture", name]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= int(columns) and "DIFFERENT" not in "".join(lines)
