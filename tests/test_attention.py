"""Attention: every option counted and predicted alike, numbers by hand, windows, masks and caches, refusals."""

import itertools
import math

import numpy
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcalc.components.attention import Attention, attention
from lmcalc.components.base import Bound
from lmcalc.compute import Data, random_weights
from lmcalc.errors import InputError
from lmcalc.lenses.cache import cache
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import params
from lmcalc.lenses.traffic import traffic
from lmcalc.model import Fields, build, trace
from lmcalc.numbers import Sum
from lmcalc.ops import Ops
from lmcalc.primitives import PRIMITIVES
from lmcalc.questions.shrink import shrunk
from lmcalc.questions.validate import check
from lmcalc.trace import Array

BASE = {"n_layers": 2, "d_model": 24, "n_heads": 6, "n_kv_heads": 2, "head_dim": 8, "d_ff": 20, "vocab_size": 31}
LOCAL_GLOBAL = {
    "n_layers": 32,
    "layers": ["5*local", "global"],
    "kinds": {"local": {"window": 512, "rope_base": 100.0}, "global": {"positions": "none", "qk_norm": "full"}},
}
TWO_SHAPES = {
    "layers": ["2*narrow", "wide"],
    "n_layers": 6,
    "kinds": {
        "narrow": {"window": 8, "rotary_dim": 4},
        "wide": {"window": 80, "n_heads": 4, "n_kv_heads": 1, "head_dim": 12, "attention_sinks": True},
    },
}
CASES = {
    "no biases": {},
    "biases on q, k, v": {"attention_bias": "qkv"},
    "bias on the output": {"attention_bias": "out"},
    "biases on all": {"attention_bias": "all"},
    "norm of each head with one weight": {"qk_norm": "head"},
    "norm with 1 + weight": {"qk_norm": "head", "qk_norm_kind": "rmsnorm_plus_one"},
    "norm with a weight a head": {"qk_norm": "each_head", "qk_norm_kind": "layernorm_no_bias"},
    "norm over the full width": {"qk_norm": "full"},
    "LayerNorm over the full width": {"qk_norm": "full", "qk_norm_kind": "layernorm"},
    "norm without weights": {"qk_norm": "l2"},
    "soft cap": {"attention_softcap": 5.0},
    "sinks": {"attention_sinks": True},
    "clip": {"qkv_clip": 0.5},
    "scale": {"score_scale": 0.3},
    "no scale": {"score_scale": 1.0},
    "one kv head": {"n_kv_heads": 1},
    "window": {"window": 9},
    "window, sinks, soft cap, norm": {
        "window": 9,
        "attention_sinks": True,
        "attention_softcap": 3.0,
        "qk_norm": "head",
    },
    "local and global layers": LOCAL_GLOBAL,
    "layers of two shapes": TWO_SHAPES,
    "encoder": {"stack": "encoder", "qk_norm": "full", "attention_sinks": True},
}


@pytest.mark.parametrize("case", CASES)
def test_counted_equals_predicted_and_pieces_equal_the_whole(case):
    assert [each for each in check(build(BASE | CASES[case])) if not each["ok"]] == []


def one_of(field, *values):
    return st.sampled_from([{}, *({field: value} for value in values)])


POSITIONS = st.sampled_from([
    {}, {"positions": "none"}, {"positions": "sinusoidal"}, {"positions": "learned", "max_positions": 40},
    {"rotary_dim": 4, "rope_layout": "interleaved"}, {"positions": "alibi"}, {"positions": "relative_xl"},
    {"positions": "relative_bias", "position_buckets": 32}, {"positions": "relative_shaw", "position_max_distance": 3},
])  # fmt: skip
OPTIONS = st.tuples(
    POSITIONS, one_of("attention_bias", "qkv", "out", "all"), one_of("qk_norm", "head", "each_head", "full", "l2"),
    one_of("norm", "layernorm", "layernorm_no_bias", "rmsnorm_plus_one"), one_of("attention_softcap", 2.0),
    one_of("attention_sinks", True), one_of("qkv_clip", 0.5), one_of("score_scale", 0.3, 1.0), one_of("window", 9),
    st.sampled_from([{}, {"n_kv_heads": 6}, {"n_kv_heads": 1}]),
)  # fmt: skip


@settings(max_examples=60, deadline=None, derandomize=True)
@given(OPTIONS)
def test_any_combination_of_options(options):
    fields = dict(BASE)
    for each in options:
        fields |= each
    assert [each for each in check(build(fields)) if not each["ok"]] == []


BROKEN = [
    ("softcap", "soft cap"), ("clip", "clip"), ("softmax_sink", "sinks"), ("l2_norm", "norm without weights"),
    ("layer_norm", "LayerNorm over the full width"), ("mask", "window"), ("rotate", "window"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "case"), BROKEN)
def test_a_wrong_cost_turns_the_check_red(name, case, monkeypatch):
    monkeypatch.setattr(PRIMITIVES[name], "per_element", PRIMITIVES[name].per_element + 1)
    assert any(not each["ok"] for each in check(build(BASE | CASES[case])))


@pytest.mark.parametrize("case", [case for case in CASES if "stack" not in CASES[case]])
def test_symbols_ints_and_arrays_agree(case):
    model, (B, T, P) = build(BASE | CASES[case]), sympy.symbols("B T P", positive=True, integer=True)
    of_symbols, points = trace(model, B, T, P), [(1, 1, 0), (2, 3, 4), (3, 1, 700), (1, 600, 500), (2, 8, 8)]
    of_arrays = trace(model, *map(numpy.array, zip(*[map(float, point) for point in points])))
    for masked in ("causal", "full"):
        arrays = flops(of_arrays, masked)[0]
        for name, formula in flops(of_symbols, masked)[0].items():
            for at, (batch, new, past) in enumerate(points):
                exact = flops(trace(model, batch, new, past), masked)[0][name]
                assert formula.subs({B: batch, T: new, P: past}) == exact
                assert arrays[name][at] == exact


def test_every_size_may_be_a_symbol():
    """4BTDKH(R+1) and 4B(pairs)KRH a layer, and a window whose size is not known yet."""
    names = sympy.symbols("B T P L D K R H F V W", positive=True, integer=True)
    B, T, P, L, D, K, R, H, F, V, W = names
    model = build({"n_layers": L, "d_model": D, "n_heads": K * R, "n_kv_heads": K, "head_dim": H, "d_ff": F,
                   "vocab_size": V, "window": W, "attention_sinks": True, "qk_norm": "full"})  # fmt: skip
    parts = flops(trace(model, B, T, 0))[1]
    pairs = sympy.Min(T, W) * (sympy.Min(T, W) + 1) / 2 + (T - sympy.Min(T, W)) * W
    assert sympy.simplify(parts["attention_proj"] - 4 * B * T * D * K * H * (R + 1) * L) == 0
    assert sympy.simplify(parts["attention_scores"] - 4 * B * pairs * K * R * H * L) == 0
    sizes = dict(zip(names, (2, 3, 5, 4, 23, 3, 5, 14, 29, 37, 6)))
    ints = build({"n_layers": 4, "d_model": 23, "n_heads": 15, "n_kv_heads": 3, "head_dim": 14, "d_ff": 29,
                  "vocab_size": 37, "window": 6, "attention_sinks": True, "qk_norm": "full"})  # fmt: skip
    for masked in ("causal", "full"):
        found = flops(trace(model, B, T, P), masked)[0]
        assert {name: each.subs(sizes) for name, each in found.items()} == flops(trace(ints, 2, 3, 5), masked)[0]


# Parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "attention", "norms"),
    [
        ({}, 0, 0),
        ({"attention_bias": "qkv"}, 6 * 8 + 2 * 2 * 8, 0),
        ({"attention_bias": "out"}, 24, 0),
        ({"attention_bias": "all"}, 6 * 8 + 2 * 2 * 8 + 24, 0),
        ({"attention_sinks": True}, 6, 0),
        ({"qk_norm": "head"}, 0, 2 * 8),
        ({"qk_norm": "head", "qk_norm_kind": "layernorm"}, 0, 2 * 2 * 8),
        ({"qk_norm": "each_head"}, 0, 6 * 8 + 2 * 8),
        ({"qk_norm": "full"}, 0, 6 * 8 + 2 * 8),
        ({"qk_norm": "l2"}, 0, 0),
    ],
)
def test_parameters_of_the_options(changes, attention, norms):
    plain, found = params(build(BASE)), params(build(BASE | changes))
    assert found["attention"] - plain["attention"] == 2 * attention  # of two layers
    assert found["norms"] - plain["norms"] == 2 * norms
    assert set(found) == set(plain)


def test_norms_of_queries_and_keys_count_as_normalization():
    plain, normed = (flops(trace(build(BASE | each), 1, 5))[0] for each in ({}, {"qk_norm": "full"}))
    q, k, layers, tokens = 6 * 8, 2 * 8, 2, 5
    assert normed["normalization"] - plain["normalization"] == layers * tokens * (4 * (q + k) + 2 * 4)  # 2 rows a token
    assert normed["elementwise"] == plain["elementwise"]


# Numbers by hand --------------------------------------------------------------------------------------------------


def made(**changes):
    """The attention of a card without positions."""
    return attention(Fields(BASE | {"positions": "none"} | changes, "test"))


def run(component, x, past=0, states=None):
    """(output, states, weights) of one attention on numbers."""
    data = Data(random_weights, None, states)
    ops = Ops(x.shape[0], x.shape[1], past, data=data)
    out = Bound(ops, component, "", "attention")(Array("BTD", x.shape, "activation", "activations", data=x))
    return out.data, data.kept, {path.partition("/")[2]: each for path, each in data.used.items()}


def values(tokens=7, batch=2, seed=0):
    return numpy.random.default_rng(seed).standard_normal((batch, tokens, BASE["d_model"])) * 2


def softmax(scores):
    e = numpy.exp(scores)
    return e / e.sum(-1, keepdims=True)


def by_hand(component, x, w, allowed, normed=lambda name, each: each, capped=lambda scores: scores, sink=None,
            after=lambda mixed: mixed):  # fmt: skip
    """Attention head by head, token by token; `allowed(i, j)` says whether query i sees key j."""
    heads = component.kv_heads * component.group
    q = normed("q", numpy.einsum("btd,dkrh->btkrh", x, w["q"]) + w.get("q_bias", 0))
    k = normed("k", numpy.einsum("btd,dkh->btkh", x, w["k"]) + w.get("k_bias", 0))
    v = normed("v", numpy.einsum("btd,dkh->btkh", x, w["v"]) + w.get("v_bias", 0))
    out = numpy.zeros((*x.shape[:2], heads, component.head_dim))
    for b, i, n in itertools.product(range(x.shape[0]), range(x.shape[1]), range(heads)):
        kv, r = divmod(n, component.group)
        seen = [j for j in range(x.shape[1]) if allowed(i, j)]
        scores = capped(numpy.array([q[b, i, kv, r] @ k[b, j, kv] for j in seen]) / math.sqrt(component.head_dim))
        if sink is not None:
            scores = numpy.append(scores, sink[kv, r])
        out[b, i, n] = softmax(scores)[: len(seen)] @ v[b, seen, kv]
    return after(out.reshape(*x.shape[:2], -1)) @ w["out"].reshape(-1, x.shape[2]) + w.get("out_bias", 0)


def before(i, j):
    return j <= i


def test_grouped_query_attention_by_hand():
    component, x = made(attention_bias="all"), values()
    out, _, w = run(component, x)
    numpy.testing.assert_allclose(out, by_hand(component, x, w, before), rtol=1e-12, atol=1e-12)


def test_an_encoder_sees_both_sides_and_keeps_nothing():
    component, x = attention(Fields(BASE | {"positions": "none"}, "test"), causal=False), values()
    out, kept, w = run(component, x)
    numpy.testing.assert_allclose(out, by_hand(component, x, w, lambda i, j: True), rtol=1e-12, atol=1e-12)
    assert kept == {}


@pytest.mark.parametrize("window", [1, 2, 4, 7, 8, 100])
def test_a_window_by_hand_and_its_rolling_buffer(window):
    component, x = made(window=window), values(12)
    whole, kept, w = run(component, x)
    expected = by_hand(component, x, w, lambda i, j: i - window < j <= i)
    numpy.testing.assert_allclose(whole, expected, rtol=1e-12, atol=1e-12)
    assert kept["attention/k"].shape[1] == min(12, window)
    past, states, pieces = 0, {}, []
    for new in (3, 1, 4, 1, 1, 2):
        piece, states, _ = run(component, x[:, past : past + new], past, states)
        past += new
        pieces.append(piece)
        assert {each.shape[1] for each in states.values()} == {min(past, window)}
    numpy.testing.assert_allclose(numpy.concatenate(pieces, axis=1), expected, rtol=1e-12, atol=1e-12)


def test_sinks_are_one_more_column_of_the_softmax():
    component, x = made(attention_sinks=True), values()
    out, _, w = run(component, x)
    numpy.testing.assert_allclose(out, by_hand(component, x, w, before, sink=w["sink"]), rtol=1e-12, atol=1e-12)
    assert abs(out - by_hand(component, x, w, before)).max() > 0.01


def test_the_soft_cap_comes_before_the_mask():
    component, x = made(attention_softcap=0.5), values()
    out, _, w = run(component, x)
    expected = by_hand(component, x, w, before, capped=lambda scores: 0.5 * numpy.tanh(scores / 0.5))
    numpy.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_queries_keys_and_values_are_clipped():
    component, x = made(qkv_clip=0.3), values()
    out, kept, w = run(component, x)
    expected = by_hand(component, x, w, before, normed=lambda name, each: numpy.clip(each, -0.3, 0.3))
    numpy.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    assert abs(kept["attention/v"]).max() == 0.3


@pytest.mark.parametrize(("how", "axes"), [("head", (-1,)), ("each_head", (-1,)), ("full", None), ("l2", (-1,))])
def test_norms_of_queries_and_keys(how, axes):
    component, x = made(qk_norm=how, norm_eps=1e-3), values()

    def normed(name, each):
        if name == "v":
            return each
        over = axes or tuple(range(2, each.ndim))
        each = each / numpy.sqrt((each**2).mean(over, keepdims=True) + 1e-3)
        return each * w.get(f"{name}_norm/weight", 1.0)

    out, _, w = run(component, x)
    numpy.testing.assert_allclose(out, by_hand(component, x, w, before, normed), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["rmsnorm", "layernorm"])
def test_a_norm_of_all_heads_before_the_output(kind):
    component, x = made(attention_sub_norm=True, norm_eps=1e-3, norm=kind), values()
    out, _, w = run(component, x)

    def normed(mixed):
        mixed = mixed - (mixed.mean(-1, keepdims=True) if kind == "layernorm" else 0)
        mixed = mixed / numpy.sqrt((mixed**2).mean(-1, keepdims=True) + 1e-3) * w["sub_norm/weight"].reshape(-1)
        return mixed + (w["sub_norm/bias"].reshape(-1) if kind == "layernorm" else 0)

    numpy.testing.assert_allclose(out, by_hand(component, x, w, before, after=normed), rtol=1e-12, atol=1e-12)


def test_l2_norm_comes_after_the_turn_others_before():
    assert made(qk_norm="l2").norm_last and not made(qk_norm="head").norm_last


# Masks, pairs, rectangles, caches ---------------------------------------------------------------------------------


def test_pairs_are_the_true_entries_of_the_mask():
    for past, new, window in itertools.product(range(10), range(1, 7), [None, *range(1, 18)]):
        mask = Ops(1, new, past, data=Data({}, None)).causal(window)
        assert mask.pairs == mask.data.sum(), (past, new, window)
        keys = past + new if window is None else min(past, window - 1) + new
        assert mask.data.shape == (new, keys)
        first = past + new - keys  # nothing that a query may see was dropped
        seen = {(i, first + j) for i, j in zip(*mask.data.nonzero())}
        last = past + new if window is None else window
        assert seen == {(i, j) for i in range(new) for j in range(max(past + i - last + 1, 0), past + i + 1)}


def scores(model, new, past, masked):
    return flops(trace(model, 1, new, past), masked)[1]["attention_scores"] // (2 * 4 * 6 * 8)  # layers, FLOPs, N, H


def test_full_is_the_rectangle_at_prefill_and_at_decode_as_causal():
    model = build(BASE | {"window": 5})
    assert scores(model, 12, 0, "full") == 12 * 12  # windowed or not
    assert scores(model, 12, 0, "causal") == 1 + 2 + 3 + 4 + 8 * 5
    for context in (0, 3, 4, 5, 90):
        assert scores(model, 1, context, "full") == scores(model, 1, context, "causal") == min(context + 1, 5)
    assert scores(model, 3, 90, "full") == 3 * (4 + 3)  # onto a full buffer: what it holds, and the new ones


@pytest.mark.parametrize("context", [0, 3, 4, 5, 6, 1000])
def test_cache_and_its_traffic_with_a_window(context):
    model, dtypes = (
        build(BASE | {"window": 5}),
        {"weights": "bf16", "activations": "bf16", "cache": "fp8", "state": "fp32"},
    )
    decode, row = trace(model, 3, 1, context), 2 * 2 * 2 * 8  # layers, k and v, heads, head size
    held = cache(decode, 3, context, dtypes)
    assert held["bytes"] == 3 * min(context, 5) * row
    assert (held["bytes_per_token"], held["bytes_per_token_first"]) == (0, row)
    for convention in ("fused", "unfused", "ideal"):
        moved = [Sum(), Sum(), Sum(), Sum()]
        for _, _, _, terms in traffic(decode, dtypes, convention):
            for at, term in terms:
                moved[at].add(term)
        if convention != "unfused":  # where new rows, too, come back from memory
            assert moved[2].value() == 3 * min(context, 4) * row
        assert moved[3].value() == 3 * row


def test_gemma_3_27b_cache():
    """62 layers, 5 local of 1,024 to 1 global, 32,768 tokens: 3,120,562,176 bytes; 16,642,998,272 if all were full."""
    fields = {"n_layers": 62, "d_model": 5376, "n_heads": 32, "n_kv_heads": 16, "head_dim": 128, "d_ff": 21504,
              "vocab_size": 262208, "layers": ["5*local", "global"]}  # fmt: skip
    for window, expected in ((1024, 3_120_562_176), (None, 16_642_998_272)):
        local = {} if window is None else {"window": window}
        model = build(fields | {"kinds": {"local": local, "global": {}}})
        assert cache(trace(model, 1, 1, 32768), 1, 32768, {"cache": "bf16"})["bytes"] == expected


# Shrunken copies --------------------------------------------------------------------------------------------------


def test_a_shrunken_copy_keeps_kinds_windows_and_remainder():
    small = shrunk(build(BASE | LOCAL_GLOBAL)).fields  # 32 = 5 * (5 + 1) + 2
    assert small["layers"] == ["local", "local", "global"] and small["n_layers"] == 2 * 3 + 1
    assert small["kinds"]["local"]["window"] == 6
    small = shrunk(build(BASE | TWO_SHAPES)).fields
    narrow, wide = small["kinds"]["narrow"], small["kinds"]["wide"]
    assert (narrow["window"], wide["window"]) == (4, 6)  # the order of sizes stays
    assert (small["n_heads"], small["n_kv_heads"], small["head_dim"]) == (15, 3, 12)
    assert (wide["n_heads"], wide["n_kv_heads"], wide["head_dim"]) == (2, 1, 14)
    assert narrow["rotary_dim"] == 6 and "rotary_dim" not in wide


# Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_kv_heads": 4}, r"n_heads = 6; allowed: a multiple of n_kv_heads = 4"),
        ({"n_kv_heads": 12}, r"n_heads = 6; allowed: a multiple of n_kv_heads = 12"),
        ({"head_dim": None, "n_heads": 5, "n_kv_heads": 5}, r"d_model = 24; allowed: a multiple of n_heads = 5"),
        ({"window": 0}, r"window = 0; allowed: an integer of at least 1"),
        ({"window": 4, "stack": "encoder"}, r"window = 4; allowed: an odd number in an encoder"),
        ({"qk_norm_kind": "rmsnorm"}, r"qk_norm_kind = 'rmsnorm': no part of this model has such a field"),
    ],
)
def test_what_no_forward_can_run_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        build(BASE | changes)


def test_words_are_checked_on_cards():
    from lmcalc.cards import check as check_field

    for name, value in (
        ("window", 0),
        ("window", True),
        ("qk_norm", "both"),
        ("attention_bias", True),
        ("qkv_clip", 0),
    ):
        with pytest.raises(InputError, match=name):
            check_field(name, value, "card")


def test_attention_needs_only_its_sizes():
    assert Attention(24, 2, 3, 8).weights() == {"q": "D->KRH", "k": "D->KH", "v": "D->KH", "out": "KRH->D"}
