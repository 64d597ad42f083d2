"""Which keys a query sees: closed forms against masks, caches of chunks, Llama 4's temperature, refusals."""

import numpy
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from variants import ATTENTIONS, BASE

import lmcalc
from lmcalc import patterns
from lmcalc.compute import Data, random_weights
from lmcalc.errors import InputError
from lmcalc.lenses.cache import cache
from lmcalc.lenses.flops import flops
from lmcalc.model import build, trace
from lmcalc.patterns import Chunk, Fixed, Strided
from lmcalc.questions.validate import check

NAMES = ("chunks", "chunks, temperature", "strided", "fixed")
SIZES = st.integers(1, 9)
WINDOWS = st.one_of(
    st.none(), SIZES, SIZES.map(Chunk), SIZES.map(Strided),
    SIZES.flatmap(lambda size: st.integers(1, size).map(lambda summary: Fixed(size, summary))),
)  # fmt: skip


def mask(past, new, window):
    """Queries x all keys, pair by pair, from the papers' words."""

    def sees(query, key):
        if key > query or window is None:
            return key <= query
        if isinstance(window, int):
            return query - key < window
        near, block = query - key < window.size, query // window.size == key // window.size
        if isinstance(window, Chunk):
            return block
        if isinstance(window, Strided):
            return near or (query - key) % window.size == 0
        return block or key % window.size >= window.size - window.summary

    return numpy.array([[sees(query, key) for key in range(past + new)] for query in range(past, past + new)])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, 40), st.integers(1, 25), WINDOWS)
def test_pairs_are_the_true_entries_of_the_mask(past, new, window):
    by_hand = mask(past, new, window)
    assert patterns.pairs(past, new, window) == by_hand.sum()
    query, key = numpy.arange(past, past + new)[:, None], numpy.arange(past + new)
    assert (patterns.allowed(query, key, window) == by_hand).all()
    held = patterns.held(past, window)  # no query sees what is no longer held, and one sees the oldest that is
    assert not by_hand[:, : past - held].any()
    if held and not isinstance(window, (Strided, Fixed)):
        assert by_hand[:, past - held].any()
    assert patterns.most(window) is None or held <= patterns.most(window)


@pytest.mark.parametrize("kind", [Chunk, Strided, lambda size: Fixed(size, 2)])
def test_pairs_on_symbols_and_arrays(kind):
    P, T, W = sympy.symbols("P T W", positive=True, integer=True)
    points = [(past, new, size) for past in (0, 1, 7, 24) for new in (1, 2, 13) for size in (3, 8)]
    of_symbols = patterns.pairs(P, T, kind(W))
    past, new, size = (numpy.array(each, float) for each in zip(*points))
    of_arrays = patterns.pairs(past, new, kind(size))
    for at, point in enumerate(points):
        expected = patterns.pairs(*point[:2], kind(point[2]))
        assert of_symbols.subs(dict(zip((P, T, W), point))) == expected == of_arrays[at]


@pytest.mark.parametrize("name", NAMES)
def test_counted_equals_predicted(name):
    assert [each for each in check(build(BASE | ATTENTIONS[name])) if not each["ok"]] == []


@pytest.mark.parametrize("name", NAMES[:2])
@pytest.mark.parametrize("length", range(1, 15))
def test_a_chunked_layer_keeps_a_rolling_buffer(name, length):
    """min(context, chunk) tokens, of which a query reads those of its own chunk; step by step as at once."""
    model, tokens = build(BASE | ATTENTIONS[name]), numpy.arange(15 * 2).reshape(2, 15)
    whole = trace(model, 2, length, data=Data(random_weights, tokens[:, :length]), logits="all").outputs[0].data
    states = {}
    for past in range(length):
        data = Data(random_weights, tokens[:, past : past + 1], states)
        logits = trace(model, 2, 1, past, data=data).outputs[0].data
        states = data.kept
        assert abs(logits - whole[:, past : past + 1]).max() < 1e-12
    held = cache(trace(model, 2, 1, length), 2, length, {"cache": "fp64", "state": "fp64"})["bytes"]
    assert held == sum(each.nbytes for each in states.values())


def test_llama_4_scout():
    """Attention of Llama 4 Scout: 3 layers with chunks of 8,192 to each full one without positions."""
    fields = {"n_layers": 48, "d_model": 5120, "n_heads": 40, "n_kv_heads": 8, "head_dim": 128, "d_ff": 16384,
              "vocab_size": 202048, "layers": ["3*local", "full"], "rope_layout": "interleaved",
              "kinds": {"local": {"attention_chunk": 8192, "qk_norm": "l2"},
                        "full": {"positions": "none", "attention_temperature": 0.1,
                                 "attention_temperature_floor": 8192}}}  # fmt: skip
    model = build(fields)
    found = lmcalc.report(model, prompt=512, mask="full").to_dict()["prefill"]["flops"]["contraction_by_part"]
    assert (found["attention_scores"], found["attention_proj"]) == (257_698_037_760, 3_092_376_453_120)  # transformers
    token = 2 * 8 * 128 * 2  # bytes of a layer
    for context in (1024, 8191, 8192, 8193, 20_000):
        report = lmcalc.report(model, context=context).to_dict()
        assert report["cache"]["bytes"] == token * (36 * min(context, 8192) + 12 * context)
        assert report["decode"]["bytes"]["cache_read"] == token * (36 * (context % 8192) + 12 * context)
        scores = report["decode"]["flops"]["contraction_by_part"]["attention_scores"]
        assert scores == 4 * 40 * 128 * (36 * (context % 8192 + 1) + 12 * (context + 1))


def test_temperature_costs_a_product_for_each_entry_of_a_query():
    fields = BASE | {"attention_temperature": 0.1, "attention_temperature_floor": 8}
    with_it, without = (flops(trace(build(each), 2, 5))[0]["elementwise"] for each in (fields, BASE))
    assert with_it - without == 3 * 2 * 5 * 15 * 14


def test_the_sparse_transformer_saves_all_but_a_root():
    """O(n sqrt(n)) pairs instead of n^2 / 2 with a stride of sqrt(n) (Child et al. 2019, sec. 4.2)."""
    n, root = 16_384, 128
    assert patterns.pairs(0, n, Strided(root)) == pytest.approx(n * root * 3 / 2, rel=0.01)
    assert patterns.pairs(0, n, Fixed(root)) == pytest.approx(n * root, rel=0.01)


REFUSED = [
    ({"window": 4, "attention_chunk": 8}, "attention_chunk = 8; allowed: none with window = 4"),
    ({"sparse_pattern": "strided", "window": 4, "sparse_stride": 2}, "sparse_pattern = 'strided'; allowed: none with"),
    ({"sparse_pattern": "fixed", "sparse_stride": 4, "sparse_summary": 5}, "sparse_summary = 5; allowed: at most"),
    ({"sparse_pattern": "fixed"}, "sparse_stride is missing"),
    ({"sparse_stride": 4}, "sparse_stride = 4: no part of this model"),
    ({"attention_chunk": 8, "stack": "encoder"}, "attention_chunk = 8; allowed: none in an encoder"),
    ({"attention_temperature": 0.1}, "attention_temperature = 0.1; allowed: only together with"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_no_forward_can_run_is_refused(changes, message):
    with pytest.raises(InputError) as error:
        build(BASE | changes)
    assert message in str(error.value)
