"""Published formulas and figures: all that agree do, the others have a reason, and the checks can fail."""

import json
import re

import jsonschema
import pytest

from lmcalc import catalogue, cli
from lmcalc.errors import InputError
from lmcalc.lenses import flops as lens
from lmcalc.questions import published as asked
from lmcalc.questions.published import check, half_digit, published
from lmcalc.schemas import schema

SOURCES = catalogue.names(asked.FOLDER)
REQUIRED = {"kaplan-2020", "chinchilla", "palm-2022", "narayanan-2021", "korthikanti-2022", "shazeer-2019", "pope-2022",
            "deepseek", "gpt3-compute", "scaling-book"}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_differs_without_a_reason(name):
    found = published([name])
    assert [each for each in found["checks"] if each["verdict"] == "differs"] == []
    assert found["failed"] == 0
    assert all(each["why"] for each in found["checks"] if each["verdict"] == "explained")


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_is_named_and_says_what_it_leaves_out(name):
    source = catalogue.read(f"{asked.FOLDER}/{name}.toml")
    assert source["title"] and source["source"]
    assert set(source) <= {"title", "source", "models", "default", "check", "not_covered"}
    for each in source.get("not_covered", ()):
        assert each["what"] and each["why"]


def test_the_sources_that_were_asked_for_are_there():
    assert set(SOURCES) >= REQUIRED


def test_formulas_are_symbols_and_not_only_numbers():
    found = published()
    equal = [each for each in found["checks"] if each["verdict"] == "equal"]
    assert len(equal) >= 15 and all("theirs" in each for each in equal)
    by_what = {each["what"]: each for each in found["checks"]}
    assert by_what["FLOPs of an iteration F, layers recomputed"]["verdict"] == "equal"
    assert by_what["cache of MLA"]["verdict"] == "equal"


def one(**row):
    source = catalogue.read(f"{asked.FOLDER}/kaplan-2020.toml")
    source["default"] = {**source["default"], "what": "a check"}
    return check(row, source, "kaplan-2020")


def test_a_wrong_formula_is_found():
    assert one(ours="flops_ffn/(b*n)", theirs="2*L*2*d*f")["verdict"] == "equal"
    found = one(ours="flops_ffn/(b*n)", theirs="2*L*3*d*f")
    assert found["verdict"] == "differs" and "2*L*d*f" in found["why"]


def test_a_wrong_explanation_is_found():
    given = {"ours": "params_ffn", "theirs": "L*2*d*f"}
    assert one(**given)["verdict"] == "differs"
    assert one(**given, differs=[{"term": "L*(f + d)", "why": "biases"}])["verdict"] == "explained"
    assert one(**given, differs=[{"term": "L*f", "why": "biases"}])["verdict"] == "differs"


def test_figures_agree_to_their_digits_and_no_further():
    given = {"model": "gpt2", "ours": "params", "unit": 1e6}
    assert one(**given, printed="124")["verdict"] == "agrees"
    assert one(**given, printed="124.4")["verdict"] == "agrees"
    assert one(**given, printed="124.5")["verdict"] == "differs"
    assert one(**given, printed="124.5", tolerance=0.001)["verdict"] == "agrees"


def test_a_reason_is_needed_and_has_to_hold():
    given = {"model": "gpt2", "ours": "params", "unit": 1e6, "printed": "117"}
    assert one(**given)["verdict"] == "differs"
    assert one(**given, why="as first published", finds=124.4)["verdict"] == "explained"
    assert one(**given, why="as first published", finds=130)["verdict"] == "differs", "not what lmcalc finds"
    assert one(**{**given, "printed": "124"}, why="none", finds=124.4)["verdict"] == "differs", "no reason was needed"


def test_orders_are_checked_both_ways():
    given = {"model": "gpt", "ours": "flops_attention_proj + flops_attention_scores", "mask": "full"}
    both = ["b*n*L*d*a*h", "b*n**2*L*a*h"]
    assert one(**given, order=both)["verdict"] == "equal"
    assert "b*n**2" not in one(**given, order=both[:1], assume=["n<=d"])["why"]
    assert one(**given, order=both[:1], assume=["n<=d"])["verdict"] == "equal"
    assert one(**given, order=both[:1])["verdict"] == "differs"
    assert one(**given, order=[*both, "L*V"])["verdict"] == "differs"


def test_a_key_that_nobody_reads_is_refused():
    with pytest.raises(InputError, match="tolerence"):
        one(ours="params", printed="1", tolerence=0.1)


def test_a_quantity_that_is_unknown_is_no_agreement():
    assert one(ours="flops", theirs="2*d*V")["verdict"] == "differs"


@pytest.mark.parametrize("text, half", [("1.03", 0.005), ("43000", 0.5), ("3.14e23", 0.5e21), ("70.272", 0.0005)])
def test_half_a_digit(text, half):
    assert half_digit(text) == pytest.approx(half)


def test_breaking_a_rule_turns_checks_red(monkeypatch):
    def wrong(op, masked="causal"):
        return [(3 * coefficient, atoms) for coefficient, atoms in lens_of_op(op, masked)]

    lens_of_op = lens.of_op
    monkeypatch.setattr(lens, "of_op", wrong)
    assert published(["narayanan-2021"])["failed"] == 1
    assert published(["palm-2022"])["failed"] == 2


def test_the_page(capsys):
    assert cli.main(["validate", "--published"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    for words in ("What does not agree", "Not covered", "DeepSeek", "0 unexplained"):
        assert words in out
    assert cli.main(["validate", "--published", "-f", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schema("published")).validate(data)
    said = re.search(r"(\d+) checks", out).group(1)
    assert data["schema"] == "lmcalc.published/1" and len(data["checks"]) == int(said)


def test_a_miss_is_exit_status_one(monkeypatch, capsys):
    monkeypatch.setattr(asked, "half_digit", lambda text: 0)
    assert cli.main(["validate", "--published"]) == 1
    assert "MISS" in capsys.readouterr().out


def test_it_takes_no_model(capsys):
    assert cli.main(["validate", "--published", "gpt2"]) == 2
    assert "--published" in capsys.readouterr().err
