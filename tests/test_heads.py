"""Embedding, head and loss: what they compute, cost and hold."""

import math

import numpy
import pytest
from soundness import BASE, assert_sound, built, bytes_of, component, logits, weight

import lmcalc
from lmcalc.components.embeddings import embedding, head
from lmcalc.compute import Data, random_weights
from lmcalc.lenses.activations import kept
from lmcalc.lenses.flops import backward_flops, flops, of_op
from lmcalc.lenses.params import params
from lmcalc.model import Fields
from lmcalc.numbers import Sum

X = numpy.random.default_rng(5).standard_normal((2, 3, 23))
VARIANTS = {
    "untied": {},
    "tied": {"tied": True},
    "bias": {"head_bias": True},
    "tied, bias": {"tied": True, "head_bias": True},
    "scaled": {"embedding_scale": 4.0, "logit_scale": 0.5, "head_scale": 0.25},
    "soft cap": {"logit_softcap": 3.0},
    "some tokens": {"head_vocab": 32, "head_bias": True},
    "factorised": {"embedding_dim": 17},
    "factorised, tied": {"embedding_dim": 17, "tied": True, "embedding_scale": 4.0},
    "token types": {"token_types": 2},
    "token types, norm, learned": {"token_types": 2, "embedding_norm": True, "positions": "learned"},
    "transform": {"head_transform": True, "ffn": "gelu", "tied": True, "head_bias": True, "norm": "layernorm"},
    "everything": {"head_transform": True, "ffn": "relu", "tied": True, "head_bias": True, "embedding_dim": 17,
                   "logit_scale": 0.5, "logit_softcap": 3.0, "head_scale": 2.0, "embedding_scale": 4.0},
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_every_head_is_sound(name):
    assert_sound(**VARIANTS[name])


def layer_norm(x, gain, bias):
    x = x - x.mean(-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain + bias


@pytest.mark.parametrize("name", VARIANTS)
def test_head_values(name):
    given = {**BASE, **VARIANTS[name]}
    made, width, known = head(Fields(given, "test")), given.get("embedding_dim", 23), given.get("head_vocab", 37)
    table, x = weight("table", 37, width), X
    if "head_transform" in given:
        x = x @ weight("it/transform/weight", 23, 23) + weight("it/transform/bias", 23)
        x = numpy.maximum(x, 0) if given["ffn"] == "relu" else x * 0.5 * (1 + numpy.vectorize(math.erf)(x / 2**0.5))
        gain = weight("it/transform/norm/weight", 23)
        if given.get("norm") == "layernorm":
            x = layer_norm(x, gain, weight("it/transform/norm/bias", 23))
        else:
            x = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain
    if width != 23:
        x = x @ weight("it/project_out/weight", 23, width)
    x = x * given.get("head_scale", 1)
    expected = x @ (table.T if given.get("tied") else weight("it/weight", width, known))
    if given.get("head_bias"):
        expected = expected + weight("it/bias", known)
    expected = expected * given.get("logit_scale", 1)
    if "logit_softcap" in given:
        expected = given["logit_softcap"] * numpy.tanh(expected / given["logit_softcap"])

    class WithTable:
        """The head as the model calls it: with the embedding table."""

        contraction_part = flop_class = None

        def __init__(self):
            self.weights, self.buffers, self.axes = made.weights, made.buffers, made.axes
            self.__dict__.update(made.children())

        def forward(self, ops, p, x):
            from lmcalc.trace import Array

            axes = "VD" if width == 23 else "VX"
            return made.forward(ops, p, x, Array(axes, table.shape, "weight", "weights", data=table))

    numpy.testing.assert_allclose(component(WithTable(), X), expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["untied", "scaled", "factorised, tied"])
def test_embedding_values(name):
    given = {**BASE, **VARIANTS[name]}
    tokens = numpy.random.default_rng(6).integers(0, 37, (2, 5))
    expected = weight("it/table", 37, given.get("embedding_dim", 23))[tokens] * given.get("embedding_scale", 1)
    if "embedding_dim" in given:
        expected = expected @ weight("it/project_in/weight", 17, 23)
    numpy.testing.assert_allclose(component(embedding(Fields(given, "test")), tokens), expected, rtol=1e-12)


def test_token_types_add_the_first_row():
    """All that BERT's table of two types does to one segment is to shift every embedding."""
    tokens = numpy.random.default_rng(6).integers(0, 37, (2, 5))
    shift = weight("token_types/table", 2, 23)[0]

    def shifted(path, axes, sizes):
        found = random_weights(path, axes, sizes)
        return found + shift if path == "embedding/table" else found

    given = logits(built(token_types=2), tokens)
    numpy.testing.assert_allclose(given, logits(built(), tokens, shifted), rtol=1e-12)
    assert abs(given - logits(built(), tokens)).max() > 1e-3


def test_parameters():
    of = {name: params(built(**VARIANTS[name])) for name in VARIANTS}
    assert of["untied"]["lm_head"] == of["untied"]["token_embedding"] == 37 * 23
    assert of["tied"].get("lm_head", 0) == 0
    assert of["bias"]["lm_head"] == 37 * 23 + 37 and of["tied, bias"]["lm_head"] == 37
    assert (of["some tokens"]["lm_head"], of["some tokens"]["token_embedding"]) == (32 * 23 + 32, 37 * 23)
    assert of["factorised"]["embedding_projection"] == 2 * 17 * 23
    assert of["factorised"]["lm_head"] == of["factorised"]["token_embedding"] == 37 * 17
    assert of["token types"]["token_type_embedding"] == 2 * 23
    assert of["transform"]["lm_head"] == 23 * 23 + 23 + 37
    assert of["transform"]["norms"] == (2 * 3 + 1 + 1) * 2 * 23


def test_a_learned_table_of_2048_positions():
    model = lmcalc.build({**BASE, "d_model": 4096, "max_positions": 2048, "positions": "learned"})
    assert params(model)["position_embedding"] == 8_388_608


def test_costs_of_what_lies_around_the_matrix():
    """An operation for each element; what lies around the matrix is in its kernel, so no bytes but those of a bias."""
    plain, tokens = built(), 10
    for changes, each in [({"head_bias": True}, 37), ({"logit_scale": 0.5}, 37), ({"logit_softcap": 3.0}, 3 * 37),
                          ({"head_scale": 0.5}, 23), ({"embedding_scale": 4.0}, 23)]:  # fmt: skip
        one, two = (lmcalc.trace(model, 2, 5, logits="all") for model in (plain, built(**changes)))
        assert flops(two)[0]["elementwise"] - flops(one)[0]["elementwise"] == tokens * each
        extra = [b - a for a, b in zip(bytes_of(one), bytes_of(two))]
        assert extra == [37 * 2 if "head_bias" in changes else 0, 0, 0, 0]


def test_refusals():
    for changes, message in [
        ({"head_transform": True}, "head_transform = True; allowed: false, since ffn = 'swiglu'"),
        ({"embedding_dim": 23}, "embedding_dim = 23; allowed: a width other than d_model"),
        ({"head_vocab": 30, "tied": True}, "head_vocab = 30; allowed: none with tied = true"),
    ]:
        with pytest.raises(lmcalc.InputError, match=message):
            built(**changes)


# Loss --------------------------------------------------------------------------------------------------------------

TOKENS, TARGETS = (numpy.random.default_rng(seed).integers(0, 37, (2, 5)) for seed in (7, 8))


def test_loss_values():
    """Cross-entropy and z-loss (Chowdhery et al. 2022, sec. 5) from the logits, by their definitions."""
    model = built()
    given = logits(model, TOKENS)
    log_z = numpy.log(numpy.exp(given).sum(-1))
    entropy = log_z - numpy.take_along_axis(given, TARGETS[..., None], -1)[..., 0]
    assert logits(model, TOKENS, targets=TARGETS, loss="cross_entropy") == pytest.approx(entropy.mean(), rel=1e-12)
    with_z = (entropy + 1e-4 * log_z**2).mean()
    assert logits(model, TOKENS, targets=TARGETS, loss="z_loss") == pytest.approx(with_z, rel=1e-12)
    assert with_z > entropy.mean()


def test_loss_of_large_logits_is_finite():
    def large(path, axes, sizes):
        return random_weights(path, axes, sizes) * (1e4 if path == "head/weight" else 1)

    assert 1e3 < logits(built(), TOKENS, large, targets=TARGETS, loss="cross_entropy") < 1e5


@pytest.mark.parametrize("loss", ["cross_entropy", "z_loss"])
def test_loss_counted_equals_predicted(loss):
    data = Data(random_weights, TOKENS, targets=TARGETS, counting=True)
    trace = lmcalc.trace(built(), 2, 5, loss=loss, data=data)
    ops = [op for op in trace.ops if op.path.startswith("loss/")]
    assert [op.counted for op in ops] == [Sum(of_op(op, "full")).value() for op in ops]
    tokens, vocabulary = 10, 37
    normalization = 4 * tokens * vocabulary + 2 * tokens + tokens + 1  # log-sum-exp; mean
    elementwise = tokens * (1 if loss == "cross_entropy" else 4)
    assert sum(op.counted for op in ops) == normalization + elementwise


def test_loss_bytes():
    """Logits are read once, targets once; one number is written. Without a loss, logits are what the model returns."""
    plain, loss = (lmcalc.trace(built(), 2, 5, logits="all", loss=each) for each in (None, "z_loss"))
    tokens, vocabulary = 10, 37
    fused = [b - a for a, b in zip(bytes_of(plain), bytes_of(loss))]
    assert fused == [0, tokens * vocabulary * 2 + tokens * 4 + 2, 0, 0]
    ideal = [b - a for a, b in zip(bytes_of(plain, "ideal"), bytes_of(loss, "ideal"))]
    assert ideal == [0, tokens * 4 + 2 - tokens * vocabulary * 2, 0, 0]


def test_loss_in_symbols():
    import sympy

    b, t, v = sympy.symbols("B T V", positive=True)
    model = lmcalc.build({**BASE, "vocab_size": v})
    loss, plain = (flops(lmcalc.trace(model, b, t, logits="all", loss=each))[0] for each in ("cross_entropy", None))
    assert sympy.expand(loss["normalization"] - plain["normalization"] - (4 * b * t * v + 3 * b * t + 1)) == 0
    assert sympy.expand(loss["elementwise"] - plain["elementwise"] - b * t) == 0


def test_loss_in_training():
    """The backward pass reads the logits that were kept."""
    plain, loss = (lmcalc.trace(built(), 2, 5, logits="all", loss=each) for each in (None, "cross_entropy"))
    dtypes = {"weights": "bf16", "activations": "bf16", "cache": "bf16", "state": "fp32"}
    assert kept(loss, dtypes) - kept(plain, dtypes) == 10 * 37 * 2 + 10 * 4  # logits and targets
    added = backward_flops(loss)["normalization"] - backward_flops(plain)["normalization"]
    assert added == 5 * 10 * 37 + 10 + 1


def test_a_loss_sends_all_positions_through_the_head():
    assert flops(lmcalc.trace(built(), 2, 5, loss="z_loss"))[1] == flops(lmcalc.trace(built(), 2, 5, logits="all"))[1]
    with pytest.raises(lmcalc.InputError, match="unknown loss 'hinge'; allowed: cross_entropy, z_loss"):
        lmcalc.trace(built(), 2, 5, loss="hinge")
