"""What holds for every model and workload, whatever the numbers: on cards of all kinds, one report against another."""

import functools
import itertools

import numpy
import pytest

import lmcalc
from lmcalc.lenses.flops import flops

CARDS = [
    "gpt2",  # dense
    "gemma-3-27b",  # windows
    "bert-base-uncased",  # an encoder
    "t5-base",  # encoder and decoder
    "mixtral-8x7b",  # experts
    "deepseek-v3",  # latent attention, experts behind dense layers
    "deepseek-v4-flash",  # compressed keys, several residual streams, experts by token id
    "minimax-m3",  # chosen blocks of keys
    "llama-4-scout",  # chunks
    "gemma-3n-e4b",  # several residual streams, shared keys and values
    "mamba-2.8b",  # a state
    "rwkv-4-169m",
    "jamba-1.5-mini",  # all of it
    "qwen3-next-80b-a3b",
]
SIZES = [(1, 1, 0, 0), (3, 7, 5, 2), (2, 100, 99, 33), (1, 2000, 5000, 1000), (1, 1, 4096, 4096)]
CONVENTIONS = [
    ("mask", ("causal", "full")),
    ("logits", ("last", "all")),
    ("traffic", ("ideal", "fused", "unfused")),
    ("experts", ("min", "expected", "max", "all")),
    ("mla", ("best", "expanded", "absorbed")),
    ("fuse_projections", (True, False)),
]
CHUNKED = {"qwen3-next-80b-a3b"}  # a prefill of one token takes a whole chunk, which a step does not


@functools.cache
def model(card):
    return lmcalc.load(card)


@functools.cache
def report(card, batch, prompt, context, past, **options):
    past = 0 if model(card).bidirectional else past
    given = {"batch": batch, "prompt": prompt, "context": context, "past": past}
    return lmcalc.report(model(card), hardware=["h100"], **given, **options).to_dict()


def phases(data):
    return [(name, data[name], data["hardware"][0][name]) for name in ("prefill", "decode") if data[name] is not None]


def total(data, name, what):
    return data[name][what]["total"]


def near(a, b):
    return abs(a - b) <= 1e-12 * abs(b)


@pytest.fixture(params=CARDS)
def card(request):
    return request.param


@pytest.mark.parametrize("convention", [{}] + [{name: word} for name, words in CONVENTIONS for word in words])
def test_parts_are_the_whole_and_bounds_are_in_order(card, convention):
    for size in SIZES[1:4]:
        data = report(card, *size, **convention)
        assert data["params"]["total"] == sum(data["params"]["by_part"].values())
        for name, phase, times in phases(data):
            count, moved, rows = phase["flops"], phase["bytes"], phase["by_part"]
            assert count["total"] == count["contraction"] + count["normalization"] + count["elementwise"]
            assert count["contraction"] == sum(count["contraction_by_part"].values())
            assert count["total"] == sum(row["flops"] for row in rows)
            assert near(moved["total"], sum(moved[each] for each in moved if each not in ("total", "estimated")))
            assert near(moved["total"], sum(row["bytes"] for row in rows))
            assert min(min(row["flops"], row["bytes"]) for row in rows) >= 0
            assert times["bound_s"] <= times["roofline_s"] * (1 + 1e-12), (name, size)
            assert times["roofline_s"] <= times["serial_s"] * (1 + 1e-12), (name, size)


def test_a_wider_convention_costs_no_less(card):
    """From one word of a convention to the next, bytes or FLOPs grow, or stay."""
    for size in SIZES:
        for name, words in (each for each in CONVENTIONS if each[0] != "mla"):
            found = [report(card, *size, **{name: word}) for word in words]
            for less, more in itertools.pairwise(found):
                for phase, _, _ in phases(less):
                    for what in ("flops", "bytes"):
                        least, most = total(less, phase, what), total(more, phase, what)
                        assert least <= most * (1 + 1e-12), (size, name, phase, what)


def test_fused_projections_save_bytes_and_no_flops(card):
    fused, apart = (report(card, *SIZES[2], fuse_projections=each) for each in (True, False))
    for name, phase, _ in phases(fused):
        assert phase["flops"] == apart[name]["flops"]
        assert phase["bytes"]["weights"] == apart[name]["bytes"]["weights"]
    assert total(fused, "prefill", "bytes") < total(apart, "prefill", "bytes") or card in ("gpt2", *NOTHING_TO_FUSE)


NOTHING_TO_FUSE = (
    "mamba-2.8b",
    "rwkv-4-169m",
    "rwkv5-3b",
)  # one projection a block, or each with its own shifted input


def test_costs_are_linear_in_the_batch(card):
    """Contractions in proportion; the rest on top of what work on weights alone costs."""
    for size in SIZES[:4]:
        one, three, five = (report(card, batch, *size[1:], experts="all") for batch in (1, 3, 5))
        for name, phase, _ in phases(one):
            assert five[name]["flops"]["contraction"] == 5 * phase["flops"]["contraction"]
            for what in ("flops", "bytes"):
                a, b, c = (total(each, name, what) for each in (one, three, five))
                assert c - b == b - a, (size, name, what)
        assert [five["cache"][each] for each in HELD] == [5 * one["cache"][each] for each in HELD]


HELD = ("bytes", "state_bytes")


def test_the_cache_grows_with_the_context(card):
    if model(card).bidirectional:
        return
    if card == "deepseek-v4-flash":  # by steps of 128 tokens, between them tokens wait that are not kept for long
        held = [report(card, 1, 3, context, 0)["cache"]["bytes"] for context in range(128, 2**20, 2**18)]
        slope = report(card, 1, 3, 2**20, 0)["cache"]["bytes_per_token"]
        assert [b - a for a, b in itertools.pairwise(held)] == [2**18 * slope] * 3
        return
    held = [
        report(card, 1, 3, context, 0)["cache"]["bytes"]
        for context in (0, 1, 127, 128, 129, 1023, 1024, 1025, 8191, 8192, 8193, 10**6, 10**6 + 1)
    ]
    assert held == sorted(held)
    cache = report(card, 1, 3, 10**6, 0)["cache"]
    assert held[-1] - held[-2] == cache["bytes_per_token"]
    assert held[1] - held[0] == cache["bytes_per_token_first"]


@pytest.mark.parametrize("mla", ["expanded", "absorbed"])
def test_one_token_of_prefill_is_a_step_of_decode(card, mla):
    if model(card).bidirectional or model(card).encoder is not None or card in CHUNKED:
        return
    for context in (0, 1, 127, 128, 5000, 9000):
        data = report(card, 2, 1, context, context, mla=mla)
        assert data["prefill"]["flops"] == data["decode"]["flops"], context
        assert data["prefill"]["bytes"] == data["decode"]["bytes"], context


def test_multiplied_layers_are_layers_one_by_one(card):
    for new, past in ((7, 0), (1, 0 if model(card).bidirectional else 9)):
        traced = [lmcalc.trace(model(card), batch=2, new=new, past=past, unroll=each) for each in (False, True)]
        assert flops(traced[0]) == flops(traced[1])


def test_layers_cost_the_same_each(card):
    """Twice and three times the pattern: what is added is the same. (Half experts, half dense: a whole pattern.)"""
    layers = model(card).fields["n_layers"]
    if card in ("deepseek-v3", "deepseek-v3.2"):  # its first layers are dense, and come back with each repetition
        assert model(card).fields["layers"][0].startswith("3*")
    found = [
        lmcalc.report(lmcalc.load(card, {"n_layers": times * layers}), prompt=9, context=10).to_dict()
        for times in (1, 2, 3)
    ]
    if card == "gemma-3n-e4b":  # its per-layer table is as wide as it has layers, its last ones share
        found = found[:2]
    for path in (("params", "total"), ("prefill", "flops", "total"), ("cache", "bytes")):
        values = [functools.reduce(lambda data, key: data[key], path, data) for data in found]
        steps = [b - a for a, b in itertools.pairwise(values)]
        assert steps[0] >= 0 and len({*steps}) <= 1 + (values[0] % 1 != 0), path


def test_formulas_are_the_numbers(card):
    """FLOPs on symbols, with the sizes filled in afterwards."""
    import sympy

    B = sympy.Symbol("B")
    for name, options in (("prefill", {"new": 6}), ("decode", {"new": 1, "encoded": True, "past": 5})):
        if name == "decode" and model(card).bidirectional:
            continue
        if model(card).encoder is not None:
            options = options | {"source": 6}
        traced = lmcalc.trace(model(card), batch=B, phase=name, **options)
        whole = report(card, 3, 6, 5, 0)[name]["flops"]
        found = flops(traced)[0]
        assert {each: sympy.sympify(found[each]).subs(B, 3) for each in found} == {each: whole[each] for each in found}


def test_a_sweep_is_its_reports(card):
    batch, context = numpy.array([1.0, 4.0, 7.0]), numpy.array([0.0, 100.0, 5000.0])
    swept = lmcalc.sweep(model(card), batch=batch, context=context, prompt=64, hardware=["h100"])
    for at in range(3):
        data = report(card, int(batch[at]), 64, int(context[at]), 0)
        assert float(swept["cache_bytes"][at]) == data["cache"]["bytes"]
        for name, phase, times in phases(data):
            for column, value in (
                (f"{name}_flops", phase["flops"]["total"]),
                (f"{name}_bytes", phase["bytes"]["total"]),
                (f"{name}_bound_s", times["bound_s"]),
            ):
                assert near(float(swept[column][at]), value), (at, column)
