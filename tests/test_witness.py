"""Witness 1 and its own checks: the counting array counts right, and a broken rule turns a named check red."""

import numpy
import pytest
import test_truth
from variants import VARIANTS, fields

import lmcalc
from lmcalc import counting, primitives
from lmcalc.components.attention import Attention
from lmcalc.components.feed_forward import GatedFeedForward
from lmcalc.compute import Data, Kernels
from lmcalc.model import build
from lmcalc.ops import Ops
from lmcalc.questions import validate
from lmcalc.questions.catalogue import architectures

CARD = "llama-3.2-1b"
CARDS = architectures()


def failures(name=CARD):
    """What the checks that fail are called."""
    return [each["what"] for each in lmcalc.validate([name])["checks"] if not each["ok"]]


@pytest.mark.parametrize("name", CARDS)
def test_every_card_counts_what_is_predicted(name):
    answer = lmcalc.validate([name])
    assert answer["schema"] == "lmcalc.validate/1"
    assert [each for each in answer["checks"] if not each["ok"]] == []
    least = 7 if lmcalc.load(name).bidirectional else 16  # an encoder has one pass
    assert answer["failed"] == 0 and len(answer["checks"]) >= least


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_counts_what_is_predicted(name):
    checks = validate.check(build(fields(name), name))
    assert [each for each in checks if not each["ok"]] == []


# The checks are checked ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["einsum", "softmax", "rms_norm", "silu", "rotate", "add", "mask", "scale", "multiply"]
)
def test_doubling_the_flops_of_a_primitive_is_noticed(name, monkeypatch):
    row = primitives.PRIMITIVES[name]
    monkeypatch.setattr(row, "per_element", 2 * row.per_element)
    found = failures()
    assert any(what.startswith("operations that differ") for what in found)
    assert any(what.startswith("contraction FLOPs" if name == "einsum" else "other FLOPs") for what in found)


def test_doubling_the_flops_of_einsum_breaks_the_recorded_truth(monkeypatch):
    monkeypatch.setattr(primitives.PRIMITIVES["einsum"], "per_element", 4)
    with pytest.raises(AssertionError, match="prefill_B1_S512"):
        test_truth.test_contraction_flops_by_part(CARD)


def test_a_weight_that_is_declared_and_not_used_is_noticed(monkeypatch):
    declared = GatedFeedForward.weights
    monkeypatch.setattr(GatedFeedForward, "weights", lambda self: declared(self) | {"spare": "D->F"})
    assert failures() == ["weights"]
    with pytest.raises(AssertionError):
        test_truth.test_parameters_by_part(CARD)


def test_a_weight_that_is_used_and_not_declared_is_noticed(monkeypatch):
    declared = GatedFeedForward.weights
    monkeypatch.setattr(
        GatedFeedForward, "weights", lambda self: {k: v for k, v in declared(self).items() if k != "up"}
    )
    with pytest.raises(AttributeError, match="up"):
        failures()


def test_a_weight_left_out_of_the_count_is_noticed(monkeypatch):
    counted = validate.params
    monkeypatch.setattr(validate, "params", lambda model: {**counted(model), "norms": 0})
    assert failures() == ["weights"]


def test_forgetting_to_write_the_cache_is_noticed(monkeypatch):
    def forgetful(self, name, x, *rest):
        out = append(self, name, x, *rest)
        del self.trace.states[out.base.path]
        return out

    append = Ops.append
    monkeypatch.setattr(Ops, "append", forgetful)
    found = failures()
    assert found and all(what.startswith("cache bytes after") for what in found)
    with pytest.raises(AssertionError, match="ctx1024"):
        test_truth.test_cache_bytes(CARD)


def test_not_keeping_what_was_written_is_noticed(monkeypatch):
    monkeypatch.setattr(Data, "keep", lambda self, *given: None)
    with pytest.raises(AssertionError, match=r"layers/0/attention/append: shape .* computed, .* predicted"):
        failures()


def test_holding_one_token_too_few_is_noticed(monkeypatch):
    keep = Data.keep
    monkeypatch.setattr(Data, "keep", lambda self, path, array, *rest: keep(self, path, array[:, 1:], *rest))
    with pytest.raises(AssertionError, match=r"layers/0/attention/append: shape .* computed, .* predicted"):
        failures()


def test_counting_one_token_too_few_is_noticed(monkeypatch):
    counted = validate.cache
    monkeypatch.setattr(
        validate, "cache", lambda trace, batch, context, dtypes: counted(trace, batch, context - 1, dtypes)
    )
    found = failures()
    assert found and all(what.startswith("cache bytes after") for what in found)


def test_a_mask_that_allows_the_wrong_pairs_is_noticed(monkeypatch):
    causal = Ops.causal

    def wrong(self, window=None):
        mask = causal(self, window)
        if mask.data is not None:
            mask.data = numpy.ones_like(mask.data)
        return mask

    monkeypatch.setattr(Ops, "causal", wrong)
    found = failures()
    assert any(what.startswith("pairs allowed by masks") for what in found)
    assert any(what.startswith("logits step by step") for what in found)


def test_turning_keys_to_the_wrong_positions_is_noticed(monkeypatch):
    place = Attention.place

    def wrong(self, ops, p, q, k, v):
        past, ops.past = ops.past, 0  # as if every call began a sequence
        found = place(self, ops, p, q, k, v)
        ops.past = past
        return found

    monkeypatch.setattr(Attention, "place", wrong)
    assert failures() == ["logits step by step against one pass: largest relative difference"]


# The counting array ----------------------------------------------------------------------------------------------


def flops(kernel, *arrays):
    return counting.count(lambda np, *given: kernel(*given), Kernels(), arrays, {})[1]


A, C = numpy.ones((3, 5)), numpy.ones((5, 7))


@pytest.mark.parametrize(
    ("kernel", "arrays", "expected"),
    [
        (lambda a, c: numpy.einsum("ij,jk->ik", a, c), (A, C), 2 * 3 * 5 * 7),
        (lambda a, c: numpy.einsum("ij,jk->ijk", a, c), (A, C), 3 * 5 * 7),
        (lambda a, c: numpy.matmul(a, c), (A, C), 2 * 3 * 5 * 7),
        (lambda a, c: a @ c, (A, C), 2 * 3 * 5 * 7),
        (lambda a: a + 1, (A,), 15),
        (lambda a: a + a[:, :1], (A,), 15),
        (lambda a: -a, (A,), 15),
        (lambda a: numpy.exp(a) / 2, (A,), 30),
        (lambda a: numpy.maximum(a, 0), (A,), 15),
        (lambda a: numpy.where(a > 0, a, 0.0), (A,), 30),
        (lambda a: numpy.sum(a, axis=0), (A,), 15),
        (lambda a: numpy.max(a, axis=-1, keepdims=True), (A,), 15),
        (lambda a: a.sum(), (A,), 15),
        (lambda a: a.max(axis=1), (A,), 15),
        (lambda a: numpy.add.reduce(a), (A,), 15),
        (lambda a: numpy.concatenate((a, a)), (A,), 0),
        (lambda a: numpy.transpose(a)[1:], (A,), 0),
        (lambda a: a.reshape(5, 3), (A,), 0),
        (lambda a: numpy.take(a, numpy.array([0, 2]), axis=0), (A,), 0),
        (lambda a: numpy.stack((a, a)) * 2, (A,), 30),
    ],
)
def test_what_numpy_does_is_counted(kernel, arrays, expected):
    assert flops(kernel, *arrays) == expected


def test_work_on_integers_and_booleans_is_free():
    assert flops(lambda a: a + 1, numpy.ones((3, 5), dtype=int)) == 0
    assert flops(lambda a: numpy.logical_and(a > 0, a < 2), A) == 30  # the two comparisons


def test_the_count_starts_anew():
    assert flops(lambda a: a * 2, A) == flops(lambda a: a * 2, A) == 15


@pytest.mark.parametrize(
    "kernel",
    [
        lambda a: numpy.linalg.norm(a),
        lambda a: numpy.tensordot(a, a),
        lambda a: numpy.cumsum(a),
        lambda a: numpy.sort(a),
        lambda a: numpy.sin(a),
        lambda a: numpy.dot(a, a.T),
        lambda a: numpy.multiply.outer(a, a),
        lambda a: a.mean(),
        lambda a: a.std(),
        lambda a: a.cumsum(),
        lambda a: a.dot(a.T),
        lambda a: numpy.add(a, a, out=numpy.empty_like(numpy.ones((3, 5)))),
    ],
)
def test_a_call_that_it_does_not_know_raises(kernel):
    with pytest.raises(TypeError, match="counting: "):
        flops(kernel, A)


@pytest.mark.parametrize(
    "lost", [lambda a: numpy.asarray(a), lambda a: a.view(numpy.ndarray) * 2, lambda a: float(a[0, 0])]
)
def test_a_result_that_lost_the_subclass_raises(lost):
    with pytest.raises(TypeError, match="went uncounted"):
        flops(lost, A)
