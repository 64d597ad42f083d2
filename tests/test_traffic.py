"""Bytes under the three conventions: by hand for one small model, and what must hold for every model."""

import math

import pytest
from test_spine import moved
from variants import VARIANTS, fields

import lmcalc
from lmcalc.lenses.params import buffers, tensors, weight_bytes
from lmcalc.model import build, trace
from lmcalc.questions.catalogue import architectures

BF16 = {"weights": "bf16", "activations": "bf16", "cache": "bf16", "state": "fp32", "conv": "bf16"}
CARDS = architectures()
DECODERS = [name for name in CARDS if lmcalc.load(name).fields.get("stack", "decoder") == "decoder"]

# One layer, multi-query, a plain feed-forward; every size is another prime
TINY = {"n_layers": 1, "d_model": 11, "n_heads": 3, "n_kv_heads": 1, "head_dim": 2, "d_ff": 13, "vocab_size": 17,
        "ffn": "relu", "positions": "none", "norm": "rmsnorm"}  # fmt: skip
B, T, P = 5, 7, 19
X, Q, KV, F, LOGITS = B * T * 11, B * T * 3 * 2, B * T * 2, B * T * 13, B * T * 17  # elements
SCORES, HELD, IDS = B * 3 * T * (P + T), B * P * 2, 4 * B * T
NORMS, MATRICES = 3 * 11, 11 * 6 + 2 * 11 * 2 + 6 * 11 + 2 * 11 * 13 + 11 * 17


@pytest.fixture(scope="module")
def tiny():
    return trace(build(TINY), B, T, P, logits="all")


def test_unfused_by_hand(tiny):
    rows = X  # the rows of the table that are looked up
    operations = [
        rows,  # gather writes them
        X + X,  # norm
        X + Q, X + KV, X + KV,  # q, k, v
        KV, KV,  # append reads what it stores; the write is the cache's
        Q + KV + SCORES,  # scores read q and the new keys
        SCORES + SCORES, SCORES + SCORES, SCORES + SCORES,  # scale, mask, softmax
        SCORES + KV + Q,  # mixed
        Q + X,  # out
        X + X + X, X + X,  # sum, norm
        X + F, F + F, F + X,  # up, relu, down
        X + X + X, X + X,  # sum, final norm
        X + LOGITS,
    ]  # fmt: skip
    assert moved(tiny, "unfused", BF16) == {
        "weights": 2 * (rows + NORMS + MATRICES),
        "activations": 2 * sum(operations) + IDS,
        "cache_read": 2 * 2 * HELD,
        "cache_write": 2 * 2 * KV,
    }


def test_fused_by_hand(tiny):
    kernels = [
        X,  # embedding
        X + X,  # norm
        X + Q, X + KV, X + KV,
        KV + KV,  # into the cache
        Q + 2 * KV + Q,  # scores, softmax and mixed in one: scores never leave
        Q + X,
        X + X + X + X,  # sum and norm in one: stream and branch read, stream and normed written
        X + F, F + F, F + X,
        X + X + X, X + X,
        X + LOGITS,
    ]  # fmt: skip
    assert moved(tiny, "fused", BF16) == {
        "weights": 2 * (X + NORMS + MATRICES),
        "activations": 2 * sum(kernels) + IDS,
        "cache_read": 2 * 2 * HELD,
        "cache_write": 2 * 2 * KV,
    }


def test_ideal_by_hand(tiny):
    assert moved(tiny, "ideal", BF16) == {
        "weights": 2 * (11 + NORMS + MATRICES),  # one row of the table is all that is certain
        "activations": 2 * LOGITS + IDS,
        "cache_read": 2 * 2 * HELD,
        "cache_write": 2 * 2 * KV,
    }


def ordered(t, dtypes):
    ideal, fused, unfused = (sum(moved(t, each, dtypes).values()) for each in ("ideal", "fused", "unfused"))
    assert 0 < ideal <= fused <= unfused


@pytest.mark.parametrize("name", VARIANTS)
def test_ideal_is_at_most_fused_is_at_most_unfused(name):
    model = build(fields(name))
    for batch, new, past in ((1, 1, 0), (2, 5, 0), (3, 1, 8), (2, 4, 6)):
        ordered(trace(model, batch, new, 0 if model.bidirectional else past), BF16)


@pytest.mark.parametrize("name", CARDS)
def test_on_cards_too(name):
    model = lmcalc.load(name)
    for batch, new, past in ((1, 1024, 0), (64, 1, 2048)):
        ordered(trace(model, batch, new, 0 if model.bidirectional else past), BF16)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize(("dtype", "size"), [("fp8", 1), ("bf16", 2), ("fp32", 4)])
def test_a_decode_step_reads_each_weight_once(name, dtype, size):
    model = lmcalc.load(name)
    whole, rows = weight_bytes(model, dtype), 0
    for path, _, spec, size_of, times in tensors(model):
        if spec in (
            "V|D",
            "V|X",
            "J|D",
            "V|Le",
        ):  # a table of which a step reads one row, and if it is the head, too, all
            row = math.prod(size_of[axis] for axis in spec[2:])
            rows += row
            if not (model.head.tied and path == "embedding/table"):
                whole -= size * size_of[spec[0]] * row
        if path.endswith(("altup/router", "altup/router_norm/weight")):  # used before a layer and after it
            rows += times * math.prod(size_of[axis] for axis in spec if axis in size_of)
        if path == "position_bias/table":  # shared, and read by each layer
            rows += (model.fields["n_layers"] - 1) * math.prod(size_of.values())
        if path.endswith("router/expert_scale"):  # of a number for each expert a token reads those of its own
            rows -= times * (size_of["E"] - model.fields["experts_per_token"])
    for _, _, spec, size_of, times in tensors(model, "buffers"):
        if spec == "V|A":  # experts by token id: one row
            rows -= times * (size_of["V"] - 1) * size_of["A"]
    # of a mixture of experts all of them, as a large batch does
    found = moved(trace(model, 1, 1, 1024), "fused", {**BF16, "weights": dtype}, "all")["weights"]
    assert found == whole + size * (rows + buffers(model))


def test_fused_projections_read_their_input_once():
    model = lmcalc.load("llama-3.1-8b")
    apart = trace(model, 2, 128)
    together = trace(model, 2, 128, fuse_projections=True)
    saved = moved(apart, "fused", BF16)["activations"] - moved(together, "fused", BF16)["activations"]
    assert saved == 32 * 3 * 2 * (2 * 128 * 4096)  # q, k, v: two readings less; gate, up: one


def test_the_cache_takes_its_own_dtype():
    t = trace(lmcalc.load("llama-3.1-8b"), 1, 1, 1000)
    for dtype, size in (("fp8", 1), ("bf16", 2), ("fp32", 4)):
        found = moved(t, "fused", {**BF16, "cache": dtype})
        assert found["cache_read"] == 1000 * 32 * 2 * 8 * 128 * size
        assert found["cache_write"] == 32 * 2 * 8 * 128 * size
