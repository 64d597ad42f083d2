"""The recorder refuses what is not an equation, axes that do not fit, and sizes that differ."""

import pytest

from lmcalc.ops import Ops
from lmcalc.trace import Array


def array(axes, *sizes, role="activation"):
    return Array(axes, sizes, role, "activations")


@pytest.fixture
def ops():
    return Ops(batch=2, new=5, past=3)


def test_a_contraction_costs_two_a_point_and_a_product_one(ops):
    x, w = array("BTD", 2, 5, 7), array("DF", 7, 11, role="weight")
    out = ops.einsum("BTD,DF->BTF", x, w)
    assert (out.axes, out.sizes) == ("BTF", (2, 5, 11))
    contraction = ops.trace.ops[-1]
    assert (contraction.cls, contraction.points, contraction.primitive.per_element) == (
        "contraction",
        (2 * 5 * 7 * 11, ()),
        2,
    )
    ops.einsum("BTF,F->BTF", out, array("F", 11))
    product = ops.trace.ops[-1]
    assert (product.cls, product.points, product.primitive.per_element) == ("elementwise", (2 * 5 * 11, ()), 1)
    assert product.broadcast == 1


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("BTD,DF->BTX", "result axes must come from the operands"),
        ("BTD,DF->BTT", "each once"),
        ("BTD,DF->BF", "T is summed over one operand only"),
        ("BTD,FD->BTF", "was given axes 'BTD' and 'DF'"),
    ],
)
def test_an_equation_that_is_none_is_refused(ops, equation, message):
    with pytest.raises(ValueError, match=message):
        ops.einsum(equation, array("BTD", 2, 5, 7), array("DF", 7, 11))


def test_sizes_that_differ_are_named(ops):
    with pytest.raises(ValueError, match="axis D has sizes 7 and 8"):
        ops.einsum("BTD,DF->BTF", array("BTD", 2, 5, 7), array("DF", 8, 11))


def test_axes_that_do_not_broadcast_are_refused(ops):
    with pytest.raises(ValueError, match="'F' do not broadcast to 'BTD'"):
        ops.add(array("BTD", 2, 5, 7), array("F", 11))


def test_a_kernel_reads_and_writes_what_crosses_its_edge(ops):
    x = array("BTD", 2, 5, 7)
    with ops.fused("outer"):
        with ops.fused("inner"):  # the outermost group counts
            y = ops.scale(x, 2.0)
        ops.add(y, x)
    ops.scale(x, 3.0)
    assert [(path, len(operations)) for path, _, operations in ops.trace.kernels()] == [("/outer", 2), ("scale", 1)]


def test_appending_turns_new_tokens_into_keys(ops):
    out = ops.append("k", array("BTKH", 2, 5, 3, 14))
    assert (out.axes, out.sizes) == ("BSKH", (2, 3 + 5, 3, 14))
    append = ops.trace.ops[-1]
    assert [each.sizes for each in append.writes] == [(2, 5, 3, 14)]
    ops.einsum("BTKH,BSKH->BKTS", array("BTKH", 2, 5, 3, 14), out)
    assert [(each.role, each.sizes) for each in ops.trace.ops[-1].reads] == [
        ("activation", (2, 5, 3, 14)),
        ("cache", (2, 3, 3, 14)),
        ("activation", (2, 5, 3, 14)),
    ]


def test_what_is_repeated_carries_its_multiplicity():
    x = array("BTD", 2, 5, 7)
    once, each = Ops(2, 5), Ops(2, 5, unroll=True)
    for ops in (once, each):
        ops.repeat(4, lambda x, ops=ops: ops.scale(x, 2.0), x)
    assert [op.times for op in once.trace.ops] == [(4, ())]
    assert [op.times for op in each.trace.ops] == [(1, ())] * 4
