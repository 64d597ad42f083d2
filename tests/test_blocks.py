"""Every way to put a layer together: where its norms are, and whether its branches lie in line or side by side."""

import numpy
import pytest
from soundness import assert_sound, built, bytes_of

import lmcalc
from lmcalc.components.base import Bound
from lmcalc.compute import Data, random_weights
from lmcalc.fields import FIELDS
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import params
from lmcalc.ops import Ops
from lmcalc.trace import Array

X = numpy.random.default_rng(3).standard_normal((2, 5, 23))
PLACEMENTS = FIELDS["norm_placement"][0]


def pre(at, x, s):
    x = x + s * at.attention(at.attention_norm(x))
    return x + s * at.ffn(at.ffn_norm(x))


def post(at, x, s):
    x = at.attention_sum_norm(x + s * at.attention(x))
    return at.ffn_sum_norm(x + s * at.ffn(x))


def double(at, x, s):
    x = x + s * at.attention_output_norm(at.attention(at.attention_norm(x)))
    return x + s * at.ffn_output_norm(at.ffn(at.ffn_norm(x)))


def output(at, x, s):
    x = x + s * at.attention_output_norm(at.attention(x))
    return x + s * at.ffn_output_norm(at.ffn(x))


def parallel(at, x, s):
    return x + s * at.attention(at.attention_norm(x)) + s * at.ffn(at.attention_norm(x))


def parallel_two_norms(at, x, s):
    return x + s * at.attention(at.attention_norm(x)) + s * at.ffn(at.ffn_norm(x))


class At:
    """The parts of a block as functions of NumPy arrays."""

    def __init__(self, block):
        self.block = block

    def __getattr__(self, name):
        def call(x):
            bound = Bound(Ops(2, 5, data=Data(random_weights, None)), self.block, "", "block")
            return getattr(bound, name)(Array("BTD", x.shape, "activation", "activations", data=x)).data

        return call

    def whole(self, x):
        bound = Bound(Ops(2, 5, data=Data(random_weights, None)), self.block, "", "block")
        return bound(Array("BTD", x.shape, "activation", "activations", data=x)).data


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("formula", [pre, post, double, output, parallel, parallel_two_norms])
def test_values(formula, scale):
    name = formula.__name__
    choice = {"norm_placement": name} if name in PLACEMENTS else {"block": name}
    model = built(norm="layernorm", residual_scale=scale, **choice)
    at = At(model.runs[0].items[0][1])
    numpy.testing.assert_allclose(at.whole(X), formula(at, X, scale or 1.0), rtol=1e-12)


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_every_placement_is_sound(placement, scale):
    model = assert_sound(norm_placement=placement, residual_scale=scale)
    norms = {"pre": 7, "post": 6, "double": 13, "output": 7}[placement]
    assert params(model)["norms"] == norms * 23


@pytest.mark.parametrize("ffn", ["gelu", "swiglu"])
@pytest.mark.parametrize("block", ["serial", "parallel", "parallel_two_norms"])
def test_every_block_is_sound(block, ffn):
    model = assert_sound(block=block, ffn=ffn, residual_scale=0.3, norm="layernorm")
    assert params(model)["norms"] == {"serial": 7, "parallel": 4, "parallel_two_norms": 7}[block] * 2 * 23


def test_a_scale_costs_one_operation_an_element_of_each_branch():
    plain, scaled = (flops(lmcalc.trace(built(residual_scale=each), 2, 5))[0] for each in (None, 0.3))
    assert scaled["elementwise"] - plain["elementwise"] == 3 * 2 * 2 * 5 * 23
    assert scaled["contraction"] == plain["contraction"]


@pytest.mark.parametrize("block", ["parallel", "parallel_two_norms"])
@pytest.mark.parametrize("placement", ["post", "output", "double"])
def test_parallel_branches_have_their_norms_before_them(block, placement):
    message = rf"norm_placement = '{placement}'; allowed: pre with block = '{block}'.*one sum"
    with pytest.raises(lmcalc.InputError, match=message):
        built(block=block, norm_placement=placement)


def test_parallel_branches_and_cross_attention_are_refused():
    with pytest.raises(lmcalc.InputError, match="block = 'parallel'; allowed: serial, since cross attention"):
        built(block="parallel", stack="encoder_decoder", n_encoder_layers=2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ffn_output_norm": True, "norm_placement": "double"}, "ffn_output_norm = True; allowed: false where each"),
        ({"ffn_norm_gate": True}, "ffn_norm_gate = True; allowed: false without norm_gate_rank"),
        ({"residual_by_depth": True, "residual_scale": 0.4}, "residual_scale = 0.4; allowed: none with residual_by"),
    ],
)
def test_norms_and_sums_that_cannot_be_are_refused(changes, message):
    with pytest.raises(lmcalc.InputError, match=message):
        built(**changes)


def kernels(**changes):
    """The kernels of q, k, v, gate and up, by their names, with projections fused."""
    trace = lmcalc.trace(built(**changes), 2, 5, fuse_projections=True)
    found = []
    for _, _, ops in trace.kernels():
        names = [op.path.rpartition("/")[2] for op in ops]
        if {"q", "gate", "up"} & set(names):
            found.append([name for name in names if name != "add"])
    return found


def test_fused_projections_reach_as_far_as_their_input():
    assert kernels() == [["q", "k", "v"], ["gate", "up"]]
    assert kernels(block="parallel") == [["q", "k", "v", "gate", "up"]]
    assert kernels(block="parallel", ffn="gelu", ffn_bias=True) == [["q", "k", "v", "up"]]
    assert kernels(block="parallel_two_norms") == [["q", "k", "v"], ["gate", "up"]]


@pytest.mark.parametrize(("block", "reads"), [("serial", 2 + 1), ("parallel", 4), ("parallel_two_norms", 2 + 1)])
def test_fused_projections_save_reads_and_nothing_else(block, reads):
    model = built(block=block)
    apart, together = (lmcalc.trace(model, 2, 5, fuse_projections=each) for each in (False, True))
    unrolled = lmcalc.trace(model, 2, 5, fuse_projections=True, unroll=True)
    assert flops(apart) == flops(together) == flops(unrolled)
    assert [a - b for a, b in zip(bytes_of(apart), bytes_of(together))] == [0, 3 * reads * 2 * 5 * 23 * 2, 0, 0]
    assert bytes_of(unrolled) == bytes_of(together)


def test_what_lies_between_two_branches_is_one_kernel():
    trace = lmcalc.trace(built(norm_placement="double", residual_scale=0.3), 2, 5)
    inside = {path: [op.primitive.name for op in ops] for path, _, ops in trace.kernels()}
    assert inside["layers/attention_residual"] == ["rms_norm", "scale", "add", "rms_norm"]
    assert inside["layers/ffn_residual"] == ["rms_norm", "scale", "add"]
