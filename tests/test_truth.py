"""What PyTorch and transformers counted (tests/recorded/counts.json, made by record_counts.py): equal, no tolerance.

A record differs from lmcalc's conventions only in the ways that a function of CORRECTIONS says, by name.
"""

import json
import math
from pathlib import Path

import pytest

import lmcalc

RECORDED = json.loads((Path(__file__).parent / "recorded" / "counts.json").read_text(encoding="utf-8"))


def window_minus_one(model, context):
    """Windowed layers keep window - 1 tokens in transformers, ours `window`: bytes of the missing one."""
    missing = 0
    for state in lmcalc.trace(lmcalc.load(model), 1, 1, context).states.values():
        if state.window is not None and context >= state.window:
            missing += 2 * math.prod(state.sizes) * state.times[0]
    return missing


CORRECTIONS = {"mistral-7b-v0.1": window_minus_one, "gpt-oss-20b": window_minus_one}  # model: bytes more in our cache


def nonzero(parts):
    return {part: number for part, number in parts.items() if number}


def phases(model):
    """[(recorded, counted by lmcalc)] of each recorded phase: contraction FLOPs by part."""
    for key, recorded in RECORDED[model]["flops"].items():
        phase, *sizes = key.split("_")
        if phase == "prefill":
            batch, prompt = (int(size[1:]) for size in sizes)
            found = lmcalc.report(model, batch=batch, prompt=prompt, mask="full", logits="all").to_dict()
        else:
            context = int(sizes[0].removeprefix("ctx"))
            found = lmcalc.report(model, context=context, mask="full", logits="all").to_dict()
        yield key, recorded, found[phase]["flops"]


def test_every_record_has_a_card():
    """Cards without one have a count by others, or tests/test_cards.py names why there is none."""
    assert set(RECORDED) <= {row["name"] for row in lmcalc.models()}


@pytest.mark.parametrize("model", RECORDED)
def test_parameters_by_part(model):
    found = lmcalc.report(model).to_dict()["params"]
    assert nonzero(found["by_part"]) == RECORDED[model]["params"]
    assert found["total"] == sum(RECORDED[model]["params"].values())


@pytest.mark.parametrize("model", RECORDED)
def test_contraction_flops_by_part(model):
    for key, recorded, found in phases(model):
        assert nonzero(found["contraction_by_part"]) == recorded, key
        assert found["contraction"] == sum(recorded.values()), key


@pytest.mark.parametrize("model", RECORDED)
def test_cache_bytes(model):
    for key, recorded in RECORDED[model]["cache"].items():
        context = int(key.removeprefix("ctx"))
        more = CORRECTIONS[model](model, context) if model in CORRECTIONS else 0
        assert lmcalc.report(model, context=context).to_dict()["cache"]["bytes"] == recorded + more, key


def test_a_known_sum():
    """LLaMA 3.1 8B at 512 tokens, full mask, all logits, as torch counts it."""
    found = lmcalc.report("llama-3.1-8b", prompt=512, mask="full", logits="all").to_dict()
    assert found["prefill"]["flops"]["contraction"] == 7_822_209_187_840
