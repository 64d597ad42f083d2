"""Where one cache becomes smaller than another: the exact function against counting every context."""

import pytest

import lmcalc
from lmcalc.questions.crossover import _of, crossovers, held
from lmcalc.workload import workload

PAIRS = [
    ("mistral-7b-v0.1", "llama-3.1-8b"),
    ("gemma-3-27b", "llama-3.1-70b"),
    ("jamba-1.5-mini", "llama-3.1-8b"),
    ("deepseek-v3", "qwen3-next-80b-a3b"),
    ("mistral-7b-v0.1", "deepseek-v3"),
    ("gpt-oss-120b", "deepseek-v3"),
    ("falcon-mamba-7b", "gemma-2-9b"),
]


@pytest.mark.parametrize("a, b", PAIRS)
def test_crossovers_are_those_that_counting_finds(a, b):
    models, found, last = [lmcalc.load(a), lmcalc.load(b)], [], None
    for context in range(9000):
        difference = held(models[0], context) - held(models[1], context) if context < 5 or context % 50 == 0 else None
        if difference:
            name = models[difference > 0].name
            if name != last:
                found.append((context, name))
                last = name
    exact = crossovers(a, b, upto=9000)
    assert [name for _, name in exact] == [name for _, name in found]
    for (context, _), (seen, _) in zip(exact, found):
        assert seen - 50 < context <= seen


@pytest.mark.parametrize("a, b", PAIRS)
def test_at_a_crossover_the_sign_changes(a, b):
    found = crossovers(a, b)
    assert found
    for context, name in found[1:]:
        other = next(each for each in (a, b) if lmcalc.load(each).name != name)
        assert held(name, context) < held(other, context)
        assert held(name, context - 1) >= held(other, context - 1)


@pytest.mark.parametrize("other", ["deepseek-v3", "falcon-mamba-7b", "gpt-oss-20b"])
def test_a_compressed_cache_grows_by_steps(other):
    models, found = [lmcalc.load("deepseek-v4-flash"), lmcalc.load(other)], []
    bytes_of = [_of(model, workload()) for model in models]
    for context in range(4600):
        difference = bytes_of[0](context) - bytes_of[1](context)
        if difference and (not found or found[-1][1] != models[difference > 0].name):
            found.append((context, models[difference > 0].name))
    assert crossovers(*models, upto=4600) == found


def test_no_crossover_of_a_model_with_itself():
    assert crossovers("gpt2", "gpt2") == []


def test_the_held_bytes_are_the_reports():
    report = lmcalc.report("jamba-1.5-mini", context=3000).to_dict()["cache"]
    assert held("jamba-1.5-mini", 3000) == report["bytes"] + report["state_bytes"]
    fewer = lmcalc.report("jamba-1.5-mini", context=3000, cache="fp8", state="bf16").to_dict()["cache"]
    assert held("jamba-1.5-mini", 3000, cache="fp8", state="bf16") == fewer["bytes"] + fewer["state_bytes"]


def test_a_type_moves_the_crossover():
    assert (
        crossovers("jamba-1.5-mini", "llama-3.1-8b")[1][0]
        < crossovers("jamba-1.5-mini", "llama-3.1-8b", cache="fp8")[1][0]
    )
