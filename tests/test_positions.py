"""Positions: counted and predicted alike, and equal to what papers and transformers 5.24 compute."""

import math

import numpy
import pytest
import sympy

from lmcalc.components.base import Bound
from lmcalc.components.positions import SinusoidalPositions, sinusoids
from lmcalc.components.relative import Alibi, BucketedBias, RelativeVectors, RelativeXL, slopes
from lmcalc.components.rotary import Rotary, rotary
from lmcalc.compute import Data, random_weights
from lmcalc.errors import InputError
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import params
from lmcalc.model import Fields, build, trace
from lmcalc.ops import Ops
from lmcalc.questions.validate import check
from lmcalc.trace import Array

BASE = {"n_layers": 2, "d_model": 24, "n_heads": 6, "n_kv_heads": 2, "head_dim": 8, "d_ff": 20, "vocab_size": 31}
LLAMA3 = {
    "kind": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_positions": 8192,
}
YARN = {"kind": "yarn", "factor": 4.0, "original_max_positions": 16}
LONGROPE = {"kind": "longrope", "original_max_positions": 16, "short_factor": [1, 1.1], "long_factor": [2.0, 3.5]}
BUCKETS = {"positions": "relative_bias", "position_buckets": 32}
SHAW = {"positions": "relative_shaw", "position_max_distance": 9}
XL, ALIBI = {"positions": "relative_xl"}, {"positions": "alibi"}
CASES = {
    "none": {"positions": "none"},
    "sinusoidal": {"positions": "sinusoidal"},
    "sinusoidal, sines first": {"positions": "sinusoidal", "sinusoid_form": "halves"},
    "sinusoidal of tensor2tensor": {"positions": "sinusoidal", "sinusoid_form": "tensor2tensor", "position_offset": 2},
    "learned": {"positions": "learned", "max_positions": 40},
    "learned with offset": {"positions": "learned", "max_positions": 40, "position_offset": 2},
    "rotary": {},
    "interleaved": {"rope_layout": "interleaved"},
    "partial": {"rotary_dim": 4},
    "partial, interleaved": {"rotary_dim": 4, "rope_layout": "interleaved"},
    "backward": {"rope_backward": True},
    "linear": {"rope_scaling": {"kind": "linear", "factor": 2.5}},
    "dynamic": {"rope_scaling": {"kind": "dynamic", "factor": 2}, "max_positions": 64},
    "llama3": {"rope_scaling": LLAMA3},
    "yarn": {"rope_scaling": YARN},
    "longrope": {"rope_scaling": LONGROPE, "rotary_dim": 4, "max_positions": 64},
    "proportional": {"rope_scaling": {"kind": "proportional", "turned": 2}},
    "buckets": BUCKETS,
    "buckets in a window": {**BUCKETS, "window": 9},
    "buckets in an encoder": {**BUCKETS, "stack": "encoder"},
    "buckets in both stacks": {**BUCKETS, "stack": "encoder_decoder", "n_encoder_layers": 2, "score_scale": 1.0},
    "Shaw": SHAW,
    "Shaw in a window": {**SHAW, "window": 9},
    "Shaw in an encoder": {**SHAW, "stack": "encoder"},
    "XL": XL,
    "XL in a window": {**XL, "window": 9},
    "ALiBi": ALIBI,
    "ALiBi in a window": {**ALIBI, "window": 9},
    "ALiBi of MPT": {**ALIBI, "alibi_slopes": "mpt", "alibi_bias_max": 4},
    "ALiBi of Falcon": {**ALIBI, "alibi_slopes": "falcon"},
    "bases by kind": {
        "layers": ["2*local", "global", "plain"],
        "n_layers": 9,
        "kinds": {
            "local": {"window": 4, "rope_base": 50.0},
            "global": {"rope_base": 400.0, "rope_scaling": YARN},
            "plain": {"positions": "none"},
        },
    },
    "kinds of relative positions": {
        "layers": ["shaw", "xl", "alibi"],
        "kinds": {"shaw": SHAW, "xl": XL, "alibi": ALIBI},
        "n_layers": 3,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_counted_equals_predicted_and_pieces_equal_the_whole(case):
    assert [each for each in check(build(BASE | CASES[case])) if not each["ok"]] == []


@pytest.mark.parametrize("case", [case for case in CASES if "stack" not in CASES[case]])
def test_symbols_ints_and_arrays_agree(case):
    model, (B, T, P) = build(BASE | CASES[case]), sympy.symbols("B T P", positive=True, integer=True)
    points = [(1, 1, 0), (2, 3, 4), (2, 8, 8), (3, 1, 25)]
    of_symbols = flops(trace(model, B, T, P), "full")[0]
    of_arrays = flops(trace(model, *map(numpy.array, zip(*[map(float, each) for each in points]))), "full")[0]
    for at, (batch, new, past) in enumerate(points):
        exact = flops(trace(model, batch, new, past), "full")[0]
        assert {name: each.subs({B: batch, T: new, P: past}) for name, each in of_symbols.items()} == exact
        assert {name: each[at] for name, each in of_arrays.items()} == exact


# Rotary -----------------------------------------------------------------------------------------------------------


def numbers(new, past=0, **options):
    return Ops(2, new, past, data=Data(random_weights, None), **options)


def call(component, ops, *arrays):
    return Bound(ops, component, "", "positions")(*arrays)


def turned(component, x, past=0):
    """x (BTKH) turned from position `past` on."""
    return call(component, numbers(x.shape[1], past), Array("BTKH", x.shape, "activation", "activations", data=x)).data


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_is_a_rotation_by_the_position(interleaved):
    """Su et al. 2021, eq. 34: pair i of position m turns by m * base**(-2i / size); the rest stays."""
    component, x = Rotary(6, 100.0, interleaved), numpy.random.default_rng(0).standard_normal((2, 5, 3, 10))
    out = turned(component, x, past=4)
    for t in range(5):
        for i in range(3):
            angle = (4 + t) * 100.0 ** (-2 * i / 6)
            a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + 3)
            pair = x[:, t, :, a] + 1j * x[:, t, :, b]
            expected = pair * numpy.exp(1j * angle)
            numpy.testing.assert_allclose(out[:, t, :, a] + 1j * out[:, t, :, b], expected, rtol=1e-12)
    assert (out[..., 6:] == x[..., 6:]).all()


def test_backward_rotary_undoes_the_turn():
    x = numpy.random.default_rng(0).standard_normal((2, 5, 3, 10))
    again = turned(Rotary(6, 100.0, backward=True), turned(Rotary(6, 100.0), x, past=4), past=4)
    numpy.testing.assert_allclose(again, x, rtol=1e-12)
    made = [rotary(Fields({"rope_backward": each}, "test"), 10).backward for each in (True, False)]
    assert made == [True, False]


def test_rotary_scores_depend_on_distances_only():
    q, k = numpy.random.default_rng(0).standard_normal((2, 1, 1, 1, 8))
    component = Rotary(8)
    scores = [(turned(component, q, m) * turned(component, k, m - 5)).sum() for m in (5, 6, 50, 1000)]
    numpy.testing.assert_allclose(scores, scores[0], rtol=1e-11)


def frequencies(table, size=128, base=10000.0, length=1, max_positions=None):
    fields = {"rotary_dim": size, "rope_base": base, "rope_scaling": table, "max_positions": max_positions}
    return rotary(Fields(fields, "test"), size).frequencies(numpy, length)


def test_linear_divides_positions():
    f, factor = frequencies({"kind": "linear", "factor": 4})
    numpy.testing.assert_allclose(f, frequencies(None)[0] / 4)
    assert factor == 1


def test_llama3_as_its_authors_wrote_it():
    """meta-llama/llama-models, apply_scaling: by wave length, and a smooth part between."""
    f, factor = frequencies(LLAMA3, base=500000.0)
    for new, old in zip(f, frequencies(None, base=500000.0)[0]):
        wave = 2 * math.pi / old
        smooth = (8192 / wave - 1) / (4 - 1)
        between = (1 - smooth) * old / 8 + smooth * old
        assert math.isclose(new, old if wave < 8192 / 4 else old / 8 if wave > 8192 else between, rel_tol=1e-12)
    old = frequencies(None, base=500000.0)[0]
    kept, stretched = (abs(f - old) < 1e-12 * old).sum(), (abs(f - old / 8) < 1e-12 * old).sum()
    assert (kept, stretched, factor) == (29, 29, 1)  # of 64 pairs 6 lie between


def test_dynamic_starts_beyond_the_known_context():
    table = {"kind": "dynamic", "factor": 2}
    for length in (1, 2048):
        numpy.testing.assert_allclose(frequencies(table, length=length, max_positions=2048)[0], frequencies(None)[0])
    f, _ = frequencies(table, length=4096, max_positions=2048)
    base = 10000.0 * (2 * 4096 / 2048 - (2 - 1)) ** (128 / 126)
    numpy.testing.assert_allclose(f, base ** (-numpy.arange(0, 128, 2) / 128))


def test_yarn_pair_by_pair():
    """Peng et al. 2023, sec. 3.2 with integer bounds, as transformers has it; Llama 2 to 64k: pairs 20 to 46 of 64."""
    table = {"kind": "yarn", "factor": 16.0, "original_max_positions": 4096}
    f, factor = frequencies(table)
    low, high = 20, 46  # floor and ceil of the pairs that turn 32 times and once over 4,096 tokens
    for i, (new, old) in enumerate(zip(f, frequencies(None)[0])):
        ramp = min(max((i - low) / (high - low), 0), 1)
        assert math.isclose(new, old / 16 * ramp + old * (1 - ramp), rel_tol=1e-12)
    assert math.isclose(factor, 0.1 * math.log(16) + 1)
    assert frequencies(table | {"attention_factor": 1.25})[1] == 1.25
    deepseek = table | {"mscale": 1.0, "mscale_all_dim": 1.0}
    assert frequencies(deepseek)[1] == 1  # DeepSeek V3
    assert abs(frequencies(table | {"truncate": False})[0] - f).max() > 0


def test_longrope_has_two_tables():
    """Phi-3 mini 128k: 131,072 / 4,096 = 32, and cos and sin grow by sqrt(1 + ln 32 / ln 4096) = 1.19024."""
    table = {"kind": "longrope", "original_max_positions": 4096, "short_factor": [1.5, 2], "long_factor": [3, 40]}
    short, factor = frequencies(table, 4, length=4096, max_positions=131072)
    long, _ = frequencies(table, 4, length=4097, max_positions=131072)
    numpy.testing.assert_allclose(short * [1.5, 2], frequencies(None, 4)[0])
    numpy.testing.assert_allclose(long * [3, 40], frequencies(None, 4)[0])
    assert round(factor, 5) == 1.19024
    assert frequencies(table, 4, max_positions=4096)[1] == 1


def test_proportional_turns_the_first_pairs_of_the_whole_head():
    f, _ = frequencies({"kind": "proportional", "turned": 4}, 16)
    numpy.testing.assert_allclose(f, [*(10000.0 ** (-numpy.arange(0, 4, 2) / 16)), *[0] * 6])


# ALiBi ------------------------------------------------------------------------------------------------------------


def test_alibi_slopes():
    """Press et al. 2022, sec. 3: 1/2 ... 1/256 for 8 heads, 2**-0.5, 2**-1 ... for 16; 12 heads as in their code."""
    assert slopes(8) == [2**-i for i in range(1, 9)]
    numpy.testing.assert_allclose(slopes(16), [2 ** (-0.5 * i) for i in range(1, 17)])
    numpy.testing.assert_allclose(slopes(12), [*slopes(8), 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5])
    assert slopes(1) == [2**-8]
    numpy.testing.assert_allclose(slopes(8, "mpt", 4), [2 ** (-i / 2) for i in range(1, 9)])
    numpy.testing.assert_allclose(slopes(6, "mpt", 4), [2**-1, 2**-2, 2**-3, 2**-4, 2**-0.5, 2**-1.5])


def zeros(axes, *sizes):
    return Array(axes, sizes, "activation", "activations", data=numpy.zeros(sizes))


@pytest.mark.parametrize("window", [None, 5])
def test_alibi_adds_slope_times_position_of_the_key(window):
    ops = numbers(3, past=6)
    keys = ops.span(window)[1]
    component = Alibi(1, 3, 8)
    table = call(component, ops, zeros("BKRTS", 2, 1, 3, 3, keys), None, window, None).data
    for head, slope in enumerate(slopes(3)):
        for j in range(keys):
            assert (table[:, 0, head, :, j] == slope * (9 - keys + j)).all()


def test_falcon_rounds_slopes_and_scales_them():
    ops = numbers(2)
    table = call(Alibi(1, 12, 64, "falcon"), ops, zeros("BKRTS", 2, 1, 12, 2, 2), None, None, None).data[0, 0, :, 0, 1]
    assert table[0] == 0.5 / 8
    assert table[8] == 0.70703125 / 8  # 2**-0.5 with 8 bits of mantissa


# T5's buckets -----------------------------------------------------------------------------------------------------


def t5_bucket(relative, bidirectional, buckets, most):
    """`relative_position_bucket` of T5's code (mesh_tensorflow, transformer_layers.py), for one position."""
    first, n = 0, -relative
    if bidirectional:
        buckets //= 2
        first, n = (buckets if n < 0 else 0), abs(n)
    n = max(n, 0)
    exact = buckets // 2
    if n < exact:
        return first + n
    far = int(numpy.float32(math.log(n / exact)) / math.log(most / exact) * (buckets - exact))
    return first + min(exact + far, buckets - 1)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("buckets", "most"), [(32, 128), (8, 11), (10, 30)])
def test_t5_buckets(causal, buckets, most):
    relative = numpy.arange(-200, 201)
    found = BucketedBias(buckets, most, causal).bucket(numpy, relative)
    assert found.tolist() == [t5_bucket(each, not causal, buckets, most) for each in relative.tolist()]
    assert set(found.tolist()) <= set(range(buckets))


def test_t5_buckets_at_known_distances():
    decoder, encoder = BucketedBias(), BucketedBias(causal=False)
    at = numpy.array([0, -1, -15, -16, -19, -127, -128, -5000, 3])
    assert decoder.bucket(numpy, at).tolist() == [0, 1, 15, 16, 17, 31, 31, 31, 0]
    assert encoder.bucket(numpy, at).tolist() == [0, 1, 9, 10, 10, 15, 15, 15, 19]


def test_a_stack_has_one_table_of_buckets():
    both = {**BUCKETS, "stack": "encoder_decoder", "n_encoder_layers": 5, "score_scale": 1.0, "n_kv_heads": 6}
    for fields, stacks in ((BUCKETS, 1), (both, 2)):
        assert params(build(BASE | fields))["position_embedding"] == stacks * 32 * 6


# Vectors ----------------------------------------------------------------------------------------------------------


def test_sinusoids():
    """Vaswani et al. 2017, sec. 3.5: PE(pos, 2i) = sin(pos / 10000**(2i / d)), PE(pos, 2i + 1) the cosine."""
    table = sinusoids(numpy, numpy.arange(50), 8)
    for pos in range(50):
        for i in range(4):
            angle = pos / 10000 ** (2 * i / 8)
            numpy.testing.assert_allclose(table[pos, 2 * i : 2 * i + 2], [math.sin(angle), math.cos(angle)], atol=1e-15)
    assert sinusoids(numpy, numpy.arange(5), 7).shape == (5, 7)


@pytest.mark.parametrize("width", [8, 9])
def test_sinusoids_of_other_forms(width):
    """Sines before cosines; frequencies 10000**(-i / (d // 2 - 1)) in tensor2tensor's get_timing_signal_1d."""
    positions = numpy.arange(50)
    turns, halves, other = (sinusoids(numpy, positions, width, form) for form in ("turns", "halves", "tensor2tensor"))
    assert (halves == numpy.hstack([turns[:, ::2], turns[:, 1::2]])).all() and other.shape == (50, width)
    for i in range(4):
        angles = positions / 10000 ** (i / 3)
        numpy.testing.assert_allclose(other[:, i], numpy.sin(angles), atol=1e-15)
        numpy.testing.assert_allclose(other[:, 4 + i], numpy.cos(angles), atol=1e-15)
    assert width == 8 or not other[:, 8].any()


def test_sinusoids_may_start_at_another_number():
    out = call(SinusoidalPositions("tensor2tensor", 2), numbers(5, past=3), zeros("BTD", 2, 5, 8))
    assert (out.data == sinusoids(numpy, numpy.arange(5, 10), 8, "tensor2tensor")).all()


def test_sinusoids_cost_one_addition_an_element():
    ops = numbers(5, past=3)
    out = call(SinusoidalPositions(), ops, zeros("BTD", 2, 5, 8))
    assert (out.data == sinusoids(numpy, numpy.arange(3, 8), 8)).all()
    plain, with_them = (build(BASE | {"positions": each}) for each in ("none", "sinusoidal"))
    difference = flops(trace(with_them, 2, 5))[0]["elementwise"] - flops(trace(plain, 2, 5))[0]["elementwise"]
    assert difference == 2 * 5 * 24
    assert params(with_them) == params(plain)


def test_a_learned_table_has_rows_before_the_first_position():
    for offset in (0, 2):
        model = build(BASE | {"positions": "learned", "max_positions": 2048, "position_offset": offset})
        assert params(model)["position_embedding"] == (2048 + offset) * 24
    ops = numbers(2, past=2046)
    out = call(model.positions, ops, zeros("BTD", 2, 2, 24)).data
    assert (out == ops.data.used["positions/table"][2048:]).all()
    with pytest.raises(InputError, match="position 2051 is beyond the table of 2050"):
        call(model.positions, numbers(3, past=2046), zeros("BTD", 2, 3, 24))


def lecture(q, window=None, past=0):
    """Scores of zeros, and queries as arrays, for a component called on them."""
    ops = numbers(q.shape[1], past)
    shape = (*q.shape[:1], *q.shape[2:4], q.shape[1], ops.span(window)[1])
    scores = zeros("BKRTS", *shape)
    scores.mask = ops.causal(window)
    return ops, scores, Array("BTKRH", q.shape, "activation", "activations", data=q)


@pytest.mark.parametrize(("past", "window"), [(0, None), (6, None), (6, 5)])
def test_shaw_vectors_by_hand(past, window):
    """Shaw et al. 2018, eq. 4: q_i a_(clip(j - i)), distances beyond 2 share a vector."""
    q = numpy.random.default_rng(0).standard_normal((2, 4, 2, 3, 8))
    ops, scores, queries = lecture(q, window, past)
    component = RelativeVectors(8, 2)
    out = call(component, ops, scores, queries, window, None).data
    table, keys = ops.data.used["positions/table"], scores.size("S")
    assert table.shape == (5, 8)
    for i in range(4):
        for j in range(keys):
            distance = (past + 4 - keys + j) - (past + i)
            expected = q[:, i] @ table[min(max(distance, -2), 2) + 2]
            numpy.testing.assert_allclose(out[:, :, :, i, j], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("past", "window"), [(0, None), (6, None), (6, 5)])
def test_transformer_xl_by_hand(past, window):
    """Dai et al. 2019, sec. 3.3: (q_i + u) k_j + (q_i + v) W r_(i-j), r the sinusoids of the distance."""
    q = numpy.random.default_rng(0).standard_normal((2, 4, 2, 3, 8))
    ops, scores, queries = lecture(q, window, past)
    component = RelativeXL(10, 2, 3, 8)
    bound = Bound(ops, component, "", "positions")
    content, out = component.content(ops, bound, queries).data, bound(scores, queries, window, None).data
    w, keys = {name: ops.data.used[f"positions/{name}"] for name in "ruv"}, scores.size("S")
    numpy.testing.assert_allclose(content, q + w["u"])
    for i, j in zip(*scores.mask.data.nonzero()):
        distance = (past + i) - (past + 4 - keys + j)
        vector = sinusoids(numpy, numpy.array([distance]), 10)[0] @ w["r"].reshape(10, -1)
        expected = numpy.einsum("bkrh,kh->bkr", q[:, i] + w["v"], vector.reshape(2, 8))
        numpy.testing.assert_allclose(out[:, :, :, i, j], expected, rtol=1e-12, atol=1e-12)


def test_flops_of_relative_vectors():
    """Shaw: a second product of queries with vectors; XL: that, and the projection of a vector for each distance."""
    B, T, P = sympy.symbols("B T P", positive=True, integer=True)
    plain, shaw, xl = (flops(trace(build(BASE | each), B, T, P))[1] for each in ({"positions": "none"}, SHAW, XL))
    pairs = T * P + T * (T + 1) / 2
    for each in (shaw, xl):
        assert sympy.simplify(each["attention_scores"] - plain["attention_scores"] - 2 * 2 * B * pairs * 6 * 8) == 0
    assert shaw["attention_proj"] == plain["attention_proj"]
    assert sympy.simplify(xl["attention_proj"] - plain["attention_proj"] - 2 * 2 * (P + T) * 24 * 2 * 8) == 0
    counts = [params(build(BASE | each)) for each in ({"positions": "none"}, SHAW, XL)]
    assert counts[1]["position_embedding"] == 2 * (2 * 9 + 1) * 8
    assert counts[2]["attention"] - counts[0]["attention"] == 2 * (24 * 2 * 8 + 2 * 6 * 8)


def test_a_bias_costs_one_addition_a_score():
    plain = flops(trace(build(BASE | {"positions": "none"}), 2, 5, 3))[0]
    for each in (ALIBI, BUCKETS):
        found = flops(trace(build(BASE | each), 2, 5, 3))[0]
        assert found["elementwise"] - plain["elementwise"] == 2 * 2 * (5 * 3 + 15) * 6  # layers, batch, pairs, heads
        assert found["contraction"] == plain["contraction"]


# Refusals ---------------------------------------------------------------------------------------------------------

KINDS = "linear, dynamic, llama3, yarn, longrope, longrope_mscale, proportional"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head_dim": 7}, "head_dim = 7; allowed: an even number"),
        ({"rotary_dim": 5}, "rotary_dim = 5; allowed: an even number"),
        ({"rotary_dim": 10}, "rotary_dim = 10; allowed: at most head_dim = 8"),
        ({"rope_scaling": {"kind": "ntk"}}, f"rope_scaling.kind = 'ntk'; allowed: one of {KINDS}"),
        ({"rope_scaling": {"factor": 2}}, f"rope_scaling.kind = None; allowed: one of {KINDS}"),
        ({"rope_scaling": {"kind": "linear"}}, "rope_scaling.factor = None; allowed: a number above 0"),
        ({"rope_scaling": {"kind": "linear", "factor": True}}, "rope_scaling.factor = True; allowed: a number"),
        (
            {"rope_scaling": {"kind": "linear", "factor": 2, "beta_fast": 3}},
            "rope_scaling.beta_fast = 3; allowed: only kind, factor",
        ),
        ({"rope_scaling": {"kind": "dynamic", "factor": 2}}, "rope_scaling.original_max_positions = None"),
        ({"rope_scaling": {**YARN, "truncate": 1}}, "rope_scaling.truncate = 1; allowed: true or false"),
        ({"rope_scaling": LONGROPE, "max_positions": 64}, "long_factor = .*allowed: 4 numbers above 0"),
        ({"rope_scaling": {**LLAMA3, "low_freq_factor": 5.0}}, "low_freq_factor = 5.0; allowed: at most"),
        ({"positions": "none", "rope_scaling": YARN}, "rope_scaling = .*no part of this model"),
        ({"positions": "none", "rope_base": 2.0}, "rope_base = 2.0: no part of this model"),
        ({"positions": "relative_bias"}, "position_buckets is missing"),
        ({**BUCKETS, "position_buckets": 1}, "position_buckets = 1; allowed: at least 2"),
        ({**BUCKETS, "position_buckets": 7, "stack": "encoder"}, "position_buckets = 7; allowed: an even number"),
        ({**BUCKETS, "position_max_distance": 16}, "position_max_distance = 16; allowed: more than 16"),
        ({"positions": "relative_shaw"}, "position_max_distance is missing"),
        ({"positions": "learned"}, "max_positions is missing"),
        ({**ALIBI, "stack": "encoder"}, "positions = 'alibi'; allowed: in an encoder none, learned"),
        ({**XL, "stack": "encoder"}, "positions = 'relative_xl'; allowed: in an encoder none, learned"),
        ({**ALIBI, "alibi_bias_max": 4}, "alibi_bias_max = 4: no part of this model"),
        ({"alibi_slopes": "mpt"}, "alibi_slopes = 'mpt': no part of this model"),
        ({"layers": ["a", "b"], "kinds": {"a": {}, "b": {"positions": "learned"}}}, "kinds.b.positions = 'learned'"),
        ({**BUCKETS, "layers": ["a", "b"], "kinds": {"a": {}, "b": {"n_kv_heads": 1}}}, "kinds.b.n_kv_heads = 1"),
    ],
)
def test_what_no_forward_can_run_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        build(BASE | changes)
