"""The model cards: each loads, gives the published count, says where it is from; bad ones are refused with a reason."""

import json
import time
import tomllib
from pathlib import Path

import pytest

import lmcalc
from lmcalc import cards, catalogue
from lmcalc.lenses.params import params

FOLDER = Path(catalogue.folder("model_cards"))
EVERY = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))}
CARDS = {name: card for name, card in EVERY.items() if "architecture" in card}

# parameters as published or counted by others; issue 1/6 names them
COUNTS = {
    "gpt2": 124_439_808,
    "llama-2-7b": 6_738_415_616,
    "llama-2-70b": 68_976_648_192,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b-v0.1": 7_241_732_096,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "qwen-2.5-7b": 7_615_616_512,
}


# cards whose parameters nobody else has counted exactly, and why
UNCOUNTED = {
    **dict.fromkeys(
        ["transformer-base", "transformer-big", "gpt3-xl", "gpt3-13b", "lamda-137b", "gopher-280b", "chinchilla-70b",
         "palm-8b", "palm-62b", "palm-540b"],
        "never released, or no program has these sizes"),
    **dict.fromkeys(
        ["t5-v1.1-small", "t5-v1.1-base", "t5-v1.1-large", "t5-v1.1-xl", "t5-v1.1-xxl", "mt5-base", "mt5-xxl"],
        "transformers 5.24 builds them without the head that they have"),
    **dict.fromkeys(
        ["baichuan-2-7b", "baichuan-2-13b", "dclm-7b", "deepseek-moe-16b", "glm-4-9b", "grok-1", "internlm2-7b",
         "kimi-k3", "rwkv5-3b", "mimo-7b", "minimax-text-01", "phi-3-small-8k", "qwen-1-7b", "qwen-1-14b", "step-3",
         "step-3.7-flash"],
        "their code is their own: transformers has no class of that model_type"),
}  # fmt: skip


def test_every_card_is_counted_by_others_or_named_above():
    recorded = json.loads((Path(__file__).parent / "recorded" / "counts.json").read_text(encoding="utf-8"))
    counted = set(recorded)
    for name, card in CARDS.items():
        published = card.get("published", {})
        if "params_counted" in published or isinstance(published.get("params_total"), int):
            counted.add(name)
    assert set(CARDS) - counted == set(UNCOUNTED)


@pytest.mark.parametrize("name", CARDS)
def test_card_loads_and_gives_its_published_count(name):
    """Or its notes have the difference as a number. params_counted is what another program counts."""
    card, model = CARDS[name], lmcalc.load(name)
    assert card["name"] == model.name == name
    published, ours = card.get("published", {}), sum(params(model).values())
    total = published.get("params_total")
    if isinstance(total, int) and total != ours:
        assert f"{abs(total - ours):,}" in " ".join(card["notes"])
    assert published.get("params_counted", ours) == ours


@pytest.mark.parametrize("name", CARDS)
def test_a_rounded_count_is_near(name):
    """A count printed as text, such as 6.7B, is within a tenth of ours; or the notes have ours."""
    text = CARDS[name].get("published", {}).get("params_total")
    if isinstance(text, str):
        ours = sum(params(lmcalc.load(name)).values())
        near = abs(float(text[:-1]) * {"M": 1e6, "B": 1e9, "T": 1e12}[text[-1]] / ours - 1) < 0.1
        assert near or f"{ours:,}" in " ".join(CARDS[name]["notes"])


@pytest.mark.parametrize("name", EVERY)
def test_card_says_where_its_figures_are_from(name):
    card = EVERY[name]
    assert card["name"] == name and card["family"] and card["organization"] and card["released"]
    assert card["source"]["config" if name in CARDS else "published"].strip()
    if card.get("published"):
        assert card["source"]["published"].strip()


@pytest.mark.parametrize("name", COUNTS)
def test_known_counts(name):
    assert lmcalc.report(name).to_dict()["params"]["total"] == COUNTS[name]


def test_names_and_aliases_are_unique():
    seen = {}
    for name, card in EVERY.items():
        for each in [name, *card.get("aliases", [])]:
            assert each.lower() not in seen, f"{each} stands for {name} and for {seen.get(each.lower())}"
            seen[each.lower()] = name


def test_every_alias_finds_its_card():
    for name, card in EVERY.items():
        for alias in card.get("aliases", []):
            assert cards.read(alias)["name"] == cards.read(alias.upper())["name"] == name


def test_a_report_by_name_reads_no_other_card(monkeypatch):
    opened = []
    monkeypatch.setattr(catalogue, "read", lambda path, read=catalogue.read: opened.append(path) or read(path))
    monkeypatch.setattr(catalogue, "aliases", None)
    lmcalc.report("gpt2")
    assert [Path(path).stem for path in opened] == ["gpt2"]


def test_the_catalogue_is_quick():
    start = time.perf_counter()
    lmcalc.models()
    assert time.perf_counter() - start < 1.5


@pytest.mark.parametrize(
    ("alias", "name"), [("mistral-7b", "mistral-7b-v0.1"), ("gpt2-small", "gpt2"), ("qwen2.5-7b", "qwen-2.5-7b")]
)
def test_common_spellings(alias, name):
    assert lmcalc.load(alias).name == name


def test_the_catalogue_lists_every_card():
    assert [row["name"] for row in lmcalc.models()] == sorted(EVERY)


# Bad input -------------------------------------------------------------------------------------------------------

GOOD = """
name = "mine"
[architecture]
n_layers = 2
d_model = 24
n_heads = 4
d_ff = 32
vocab_size = 50
"""


@pytest.fixture
def card(tmp_path):
    """A card file with one line put in place of another."""

    def write(old="", new=""):
        assert old in GOOD
        path = tmp_path / "mine.toml"
        path.write_text(GOOD.replace(old, new) if old else GOOD + new, encoding="utf-8")
        return str(path)

    return write


def test_a_card_of_ones_own(card):
    assert lmcalc.report(card()).to_dict()["model"]["id"] == "mine"


BAD = [
    ("n_heads = 4", "n_heads = 5", "d_model = 24", "a multiple of n_heads = 5"),
    ("n_heads = 4", "n_heads = 4\nn_kv_heads = 3", "n_heads = 4", "a multiple of n_kv_heads = 3"),
    ("n_heads = 4", "n_heads = 8", "head_dim = 3", "even"),
    ("n_layers = 2", "n_layers = -2", "n_layers = -2", "an integer from 1"),
    ("n_layers = 2", "n_layers = 0", "n_layers = 0", "an integer from 1"),
    ("n_layers = 2", "n_layers = 2.5", "n_layers = 2.5", "an integer from 1"),
    ("n_layers = 2", "n_layers = 2.0", "n_layers = 2.0", "an integer from 1"),
    ("n_layers = 2", "n_layers = true", "n_layers = True", "an integer from 1"),
    ("n_layers = 2", 'n_layers = "2"', "n_layers = '2'", "an integer from 1"),
    ("n_layers = 2", "n_layers = 10_000_000_000_000_000", "n_layers", "from 1 to 10,000"),
    ("n_layers = 2", "", "n_layers", "missing"),
    ("d_ff = 32", "", "d_ff", "missing"),
    ("d_ff = 32", "d_ff = 32\nd_fff = 32", "d_fff = 32", "closest: d_ff"),
    ("d_ff = 32", 'd_ff = 32\nffn = "swigloo"', "ffn = 'swigloo'", "swiglu"),
    ("d_ff = 32", "d_ff = 32\nnorm_eps = 0.0", "norm_eps = 0.0", "above 0"),
    ("d_ff = 32", "d_ff = 32\nnorm_eps = nan", "norm_eps = nan", "above 0"),
    ("d_ff = 32", 'd_ff = 32\ntied = "yes"', "tied = 'yes'", "true or false"),
    ("d_ff = 32", "d_ff = 32\nposition_buckets = 8", "position_buckets = 8", "no part of this model has such a field"),
    ("", "[architecture_2]\nx = 1", "architecture_2", "allowed: name, family"),
    ('name = "mine"', "name = 3", "name = 3", "allowed: text"),
    ('name = "mine"', "", "'name'", "missing"),
]


@pytest.mark.parametrize(("old", "new", "given", "allowed"), BAD)
def test_a_bad_field_is_refused_with_file_key_value_and_what_is_allowed(card, old, new, given, allowed):
    path = card(old, new)
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.load(path)
    message = str(caught.value)
    assert path in message and given in message and allowed in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["name = ", "\x00", "[architecture\n"])
def test_a_file_that_is_no_toml_is_refused(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(lmcalc.InputError, match="not valid TOML"):
        lmcalc.load(path)


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(lmcalc.InputError, match=r"nowhere\.toml: no such file"):
        lmcalc.load("nowhere.toml")


@pytest.mark.parametrize(
    ("name", "closest"), [("llama-3.1-8", "llama-3.1-8b"), ("gpt22", "gpt2"), ("Mistral7b", "mistral-7b")]
)
def test_an_unknown_model_lists_the_closest(name, closest):
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.load(name)
    assert f"unknown model {name!r}; closest: " in str(caught.value) and closest in str(caught.value)


@pytest.mark.parametrize("given", [3, None, ["gpt2"], 2.5])
def test_what_is_no_model_at_all_is_refused(given):
    with pytest.raises(lmcalc.InputError, match="allowed: a name or a path"):
        lmcalc.load(given)


def test_changes_over_a_card_are_checked_alike():
    assert lmcalc.load("gpt2", {"n_layers": 3}).fields["n_layers"] == 3
    with pytest.raises(lmcalc.InputError, match=r"set\.n_layers = 0; allowed: an integer from 1"):
        lmcalc.load("gpt2", {"n_layers": 0})
    with pytest.raises(lmcalc.InputError, match=r"set\.layers_n.*closest: "):
        lmcalc.load("gpt2", {"layers_n": 3})
