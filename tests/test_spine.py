"""One forward pass, many readings: symbols, ints and float arrays give the same, and by hand the same."""

import importlib
import pkgutil

import numpy
import pytest
import sympy
from variants import VARIANTS, fields

import lmcalc
from lmcalc.components.base import Component
from lmcalc.components.loss import LOSSES
from lmcalc.fields import FIELDS
from lmcalc.lenses.activations import kept
from lmcalc.lenses.cache import cache
from lmcalc.lenses.flops import backward_flops, flops
from lmcalc.lenses.params import params, weight_bytes
from lmcalc.lenses.traffic import CATEGORIES, traffic
from lmcalc.model import Stack, build, trace
from lmcalc.numbers import Sum
from lmcalc.questions.catalogue import architectures

DTYPES = {"weights": "int4", "activations": "bf16", "cache": "fp8", "state": "fp32", "conv": "bf16"}
WORKLOADS = [(2, 5, 3), (1, 1, 9), (3, 8, 0)]  # batch, new, past
SOURCE = 7


def moved(t, convention, dtypes=DTYPES, experts="max"):
    """{category: bytes} of a trace."""
    totals = [Sum() for _ in CATEGORIES]
    for _, _, _, terms in traffic(t, dtypes, convention, experts):
        for at, term in terms:
            totals[at].add(term)
    return {name: total.value() for name, total in zip(CATEGORIES, totals)}


def readings(model, batch, new, past, unroll=False, source=None):
    """Everything that the lenses read off one forward pass, as one flat dict."""
    past = 0 if model.bidirectional else past  # an encoder keeps nothing
    t = trace(model, batch, new, past, unroll=unroll, source=source)
    found = {}
    for masked in ("causal", "full"):
        classes, parts = flops(t, masked)
        found |= {(masked, name): number for name, number in {**classes, **parts}.items()}
        found |= {(masked, "backward", name): number for name, number in backward_flops(t, masked).items()}
    for convention in ("fused", "unfused", "ideal"):
        found |= {(convention, name): number for name, number in moved(t, convention).items()}
    found |= {("cache", name): number for name, number in cache(t, batch, past + new, DTYPES).items()}
    found["kept"] = kept(t, DTYPES)
    found |= {("params", name): number for name, number in params(model).items()}
    found["weight bytes"] = weight_bytes(model, "mxfp4")
    return found


# The GQA block by hand -------------------------------------------------------------------------------------------

B, T, P, L, D, F, K, R, H, V = sympy.symbols("B T P L D F K R H V", positive=True, integer=True)
GQA = {"n_layers": L, "d_model": D, "d_ff": F, "n_heads": K * R, "n_kv_heads": K, "head_dim": H, "vocab_size": V}


def same(ours, by_hand):
    assert sympy.expand(sympy.simplify(ours - by_hand)) == 0, f"{sympy.expand(ours)} is not {sympy.expand(by_hand)}"


@pytest.fixture(scope="module")
def block():
    """LLaMA's block on symbols, without position turns, in a model of L layers."""
    model = build({**GQA, "positions": "none"})
    return model, trace(model, B, T, P, logits="all")


def test_parameters_by_hand(block):
    by_hand = {
        "attention": L * (2 * D * K * R * H + 2 * D * K * H),  # q and out; k and v
        "ffn": L * 3 * D * F,
        "norms": (2 * L + 1) * D,
        "token_embedding": V * D,
        "lm_head": V * D,
    }
    found = params(block[0])
    assert set(found) == set(by_hand)
    for part, expected in by_hand.items():
        same(found[part], expected)


@pytest.mark.parametrize(("masked", "pairs"), [("full", T * (P + T)), ("causal", T * P + T * (T + 1) / 2)])
def test_flops_by_hand(block, masked, pairs):
    classes, parts = flops(block[1], masked)
    same(parts["attention_proj"], L * 4 * B * T * D * K * H * (R + 1))
    same(parts["attention_scores"], L * 4 * B * pairs * K * R * H)
    same(parts["ffn"], L * 6 * B * T * D * F)
    same(parts["lm_head"], 2 * B * T * D * V)
    same(classes["contraction"], sum(parts.values()))
    # norms: x*x, its sum, two products an element; quotient, sum, root, quotient a row. softmax: 5 an element
    same(classes["normalization"], (2 * L + 1) * B * T * (4 * D + 4) + L * 5 * B * pairs * K * R)
    # scores: scale and mask; SwiGLU: silu (4) and a product; two residual sums
    same(classes["elementwise"], L * (2 * B * pairs * K * R + 5 * B * T * F + 2 * B * T * D))


def test_cache_by_hand(block):
    found = cache(block[1], B, P, {"cache": "bf16", "state": "fp32"})
    same(found["bytes"], B * P * L * 2 * K * H * 2)
    same(found["bytes_per_token"], L * 2 * K * H * 2)
    assert found["state_bytes"] == 0


def test_fused_traffic_by_hand(block):
    dtypes = {"weights": "bf16", "activations": "bf16", "cache": "bf16", "state": "fp32"}
    found = moved(block[1], "fused", dtypes)
    x, q, kv, f = B * T * D, B * T * K * R * H, B * T * K * H, B * T * F  # elements
    projections = 3 * x + (q + 2 * kv)  # x read by each of q, k, v; written
    cached = 2 * kv  # k, v on their way into the cache
    core = q + 2 * kv + q  # q and the new rows read, mixed written; scores stay on chip
    out = q + x
    norms = 2 * (x + x)  # each norm reads the stream and writes what the branch reads
    sums = 2 * (x + x + x)  # stream and branch read, stream written
    shared = x  # the sum of the attention and the norm of the feed-forward are one kernel: its input is at hand
    ffn = 2 * x + 2 * f + (2 * f + f) + (f + x)  # gate, up; silu(gate) * up; down
    ends = x + 2 * x + (x + B * T * V)  # rows of the table; final norm; head
    ids = 4 * B * T
    same(found["activations"], 2 * (L * (projections + cached + core + out + norms + sums - shared + ffn) + ends) + ids)
    same(found["weights"], 2 * (L * (2 * D * K * R * H + 2 * D * K * H + 3 * D * F + 2 * D) + D + V * D + B * T * D))
    same(found["cache_read"], 2 * L * B * P * 2 * K * H)
    same(found["cache_write"], 2 * L * 2 * kv)


# Every variant on ints, symbols and arrays -----------------------------------------------------------------------


def on_symbols(name):
    """(model whose every size is a fresh symbol, {symbol: size})."""
    values = {}

    def fresh(key, size):
        symbol = sympy.Symbol(key, positive=True, integer=True)
        values[symbol] = size
        return symbol

    found = {}
    for key, size in fields(name).items():
        is_size = FIELDS[key][0] in ("size", "count", "size_rule") and isinstance(size, int)
        if (key == "n_layers" and "layers" in fields(name)) or key in ("chunk_size", "shared_blocks"):
            is_size = False  # structure: with a pattern, how many layers there are; how a scan is cut; how many blocks
        found[key] = fresh(key, size) if is_size else size
    return build(found), values


@pytest.mark.parametrize("name", VARIANTS)
def test_fresh_symbols_run_and_substitute_to_the_ints(name):
    model, values = on_symbols(name)
    symbols = sympy.symbols("batch new past source", positive=True, integer=True)
    found = readings(model, *symbols[:3], source=symbols[3])
    for workload in WORKLOADS[:2]:
        expected = readings(build(fields(name)), *workload, source=SOURCE)
        assert set(found) == set(expected)
        chosen = {**values, **dict(zip(symbols, (*workload, SOURCE)))}
        for key, number in expected.items():
            assert type(number) is int, (key, number)
            assert sympy.sympify(found[key]).subs(chosen) == number, key


@pytest.mark.parametrize("name", VARIANTS)
def test_float_arrays_give_what_a_loop_over_ints_gives(name):
    model = build(fields(name))
    batch, new, past = (numpy.array(sizes, dtype=float) for sizes in zip(*WORKLOADS))
    found = readings(model, batch, new, past, source=SOURCE)
    each = [readings(model, *workload, source=SOURCE) for workload in WORKLOADS]
    for key, numbers in found.items():
        assert numpy.broadcast_to(numbers, len(WORKLOADS)).tolist() == [one[key] for one in each], key


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_unrolled_and_multiplied_agree_in_every_lens(name, workload):
    model = build(fields(name))
    assert readings(model, *workload, unroll=True, source=SOURCE) == readings(model, *workload, source=SOURCE)


def test_the_variants_hold_every_component():
    import lmcalc.components as package

    for file in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{file.name}")
    found = set()
    for name in VARIANTS:
        found |= {type(component) for mtp in (False, True) for _, component, _ in build(fields(name)).declared(mtp)}
    found |= {Stack, *(type(loss) for loss in LOSSES.values())}  # a loss: below

    def below(kind):
        return {each for sub in kind.__subclasses__() for each in (sub, *below(sub))}

    concrete = {each for each in below(Component) if "forward" in vars(each) or "weights" in vars(each)}
    missing = sorted(each.__name__ for each in concrete - found if each.__module__.startswith("lmcalc"))
    assert missing == [], "add a row to tests/variants.py that has it"


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_run_on_fresh_symbols(loss):
    symbols = sympy.symbols("batch new", positive=True, integer=True)
    model, values = on_symbols("gqa")
    found = flops(trace(model, *symbols, loss=loss))[0]
    expected = flops(trace(build(fields("gqa")), 2, 5, loss=loss))[0]
    for name, number in expected.items():
        assert sympy.sympify(found[name]).subs({**values, **dict(zip(symbols, (2, 5)))}) == number


# Cards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", architectures())
def test_contractions_cost_twice_as_much_backward(name):
    t = trace(lmcalc.load(name), 2, 128, logits="all")
    for masked in ("causal", "full"):
        assert backward_flops(t, masked)["contraction"] == 2 * flops(t, masked)[0]["contraction"]
