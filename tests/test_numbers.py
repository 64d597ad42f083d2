"""Arithmetic that runs alike on ints, symbols and float arrays."""

import numpy
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from lmcalc.numbers import (
    Sum,
    causal_pairs,
    ceil_div,
    exact_div,
    maximum,
    minimum,
    monomial,
    seen,
    times,
    value,
)

n, w = sympy.symbols("n w", positive=True, integer=True)
sizes = st.integers(0, 200)


def test_terms_keep_ints_exact_and_atoms_apart():
    assert monomial(2, 3, 10**20) == (6 * 10**20, ())
    assert monomial(2, n, 3) == (6, (n,))
    assert times((6, (n,)), 2, w) == (12, (n, w))
    assert value((6, (n, w))) == 6 * n * w


def test_a_sum_collects_terms_with_the_same_atoms_in_any_order():
    total = Sum([(2, (n, w)), (3, (w, n)), (5, ())])
    total.add((1, ()), factor=-5)
    assert len(total.terms) == 2
    assert total.value() == 5 * n * w
    assert Sum([(1, ())]).update(Sum([(2, ())])).value() == 3
    assert Sum().value() == 0


def test_a_sum_of_arrays_multiplies_once_and_survives_huge_coefficients():
    a = numpy.array([1.0, 2.0])
    total = Sum([(10**30, (a,)), (10**30, (a,))])
    numpy.testing.assert_array_equal(total.value(), a * 2e30)
    assert total.value().dtype == numpy.float64


@given(st.integers(1, 200), st.integers(1, 50))
def test_helpers_agree_on_int_symbol_and_array(a, b):
    array = numpy.array([float(a)])
    for helper, exact in (
        (lambda x: minimum(x, b), min(a, b)),
        (lambda x: maximum(x, b), max(a, b)),
        (lambda x: ceil_div(x, b), -(-a // b)),
        (lambda x: exact_div(x * b, b), a),
        (lambda x: seen(x, b), sum(min(i + 1, b) for i in range(a))),
        (seen, sum(i + 1 for i in range(a))),
    ):
        assert helper(a) == exact
        assert type(helper(a)) is int
        assert helper(array).tolist() == [exact]
        assert sympy.sympify(helper(n)).subs(n, a) == exact


@given(sizes, sizes, st.none() | st.integers(1, 50))
def test_causal_pairs_are_the_ones_in_the_mask(past, new, window):
    query, key = numpy.arange(past, past + new)[:, None], numpy.arange(past + new)
    allowed = key <= query
    if window is not None:
        allowed &= key > query - window
    assert causal_pairs(past, new, window) == int(allowed.sum())
    assert causal_pairs(numpy.array([float(past)]), new, window).tolist() == [int(allowed.sum())]


def test_decode_pairs_stay_exact_where_a_triangle_would_not():
    context = 2.0**40 + 1
    assert causal_pairs(numpy.array([context]), 1).tolist() == [context + 1]


def test_a_division_that_is_not_exact_is_refused():
    with pytest.raises(ArithmeticError, match="4 does not divide 6"):
        exact_div(6, 4)
