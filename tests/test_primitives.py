"""The table of primitives against what NumPy does: forward FLOPs, gradients, and the FLOPs of gradients."""

import numpy
import pytest
from gradients import EXAMPLES, GRADIENTS, MORE, WEIGHTS

from lmcalc.compute import Kernels
from lmcalc.counting import count
from lmcalc.primitives import CLASSES, MOVEMENT, PRIMITIVES

SHAPES = [(1, 2), (3, 5), (7, 4), (2, 11)]
COMPUTED = sorted(name for name, primitive in PRIMITIVES.items() if primitive.cls != MOVEMENT)


def examples(name):
    """Examples of a primitive: (operands, attributes, points, rows) over several shapes."""
    missing = "tests/gradients.py lacks it: add a row to GRADIENTS, its NumPy gradient, and to EXAMPLES, its operands"
    assert name in EXAMPLES and name in GRADIENTS, f"primitive {name!r}: {missing}"
    for seed, (m, n) in enumerate(SHAPES):
        for example in (EXAMPLES[name], *MORE.get(name, ())):
            yield example(numpy.random.default_rng(seed), m, n)


def forward(name, arrays, attributes):
    result = PRIMITIVES[name].kernel(Kernels(), *arrays, **attributes)
    return result.astype(float) if result.dtype == object else result


def kept(name, arrays, attributes):
    """(operands, output) as the backward pass has them: None for what `keeps` does not name."""
    keeps, weights = PRIMITIVES[name].keeps, WEIGHTS.get(name, 0)
    activations = len(arrays) - weights
    operands = [each if keeps == "inputs" or at >= activations else None for at, each in enumerate(arrays)]
    return operands, forward(name, arrays, attributes) if keeps == "output" else None


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_row_is_well_formed(name):
    primitive = PRIMITIVES[name]
    assert primitive.cls in CLASSES
    assert primitive.keeps in (None, "inputs", "output", "index")
    for number in (primitive.per_element, primitive.per_row, *primitive.backward):
        assert type(number) is int and number >= 0
    if primitive.cls == MOVEMENT:
        assert (primitive.per_element, primitive.per_row, primitive.backward) == (0, 0, (0, 0))


@pytest.mark.parametrize("name", COMPUTED)
def test_forward_flops_are_those_that_numpy_performs(name):
    primitive = PRIMITIVES[name]
    for arrays, attributes, points, rows in examples(name):
        result, counted = count(primitive.kernel, Kernels(), arrays, attributes)
        assert counted == primitive.per_element * points + primitive.per_row * rows
        numpy.testing.assert_allclose(result, forward(name, arrays, attributes), rtol=1e-13)


@pytest.mark.parametrize("name", COMPUTED)
def test_backward_flops_are_those_of_the_gradient_kernel(name):
    for arrays, attributes, points, rows in examples(name):
        operands, output = kept(name, arrays, attributes)
        g = numpy.random.default_rng(1).standard_normal(forward(name, arrays, attributes).shape)
        counted = gradient_flops(name, g, operands, output, attributes)
        per_element, per_row = PRIMITIVES[name].backward
        assert counted == per_element * points + per_row * rows, f"the gradient kernel of {name} in tests/gradients.py"


def gradient_flops(name, g, operands, output, attributes):
    """FLOPs that NumPy performs for the gradients; a weight's broadcast sum included where the kernel takes it."""

    def kernel(np, g, *operands):
        found = GRADIENTS[name](np, g, *operands[:-1], output=operands[-1], **attributes)
        for each in found:
            assert type(each).__name__ == "Counted"
        return found[0]

    return count(kernel, Kernels(), [g, *operands, output], {})[1]


@pytest.mark.parametrize("name", COMPUTED)
def test_gradients_agree_with_finite_differences(name):
    step = 1e-6
    for arrays, attributes, _, _ in examples(name):
        operands, output = kept(name, arrays, attributes)
        g = numpy.random.default_rng(2).standard_normal(forward(name, arrays, attributes).shape)
        g = numpy.where(numpy.isinf(forward(name, arrays, attributes)), 0.0, g)  # nothing comes back
        found = GRADIENTS[name](Kernels(), g, *operands, output=output, **attributes)
        assert len(found) == len(arrays)
        for at, gradient in enumerate(found):
            expected = numpy.zeros(arrays[at].shape)
            for index in numpy.ndindex(expected.shape):
                ends = []
                for sign in (1, -1):
                    moved = [each.copy() for each in arrays]
                    moved[at][index] += sign * step
                    value = forward(name, moved, attributes)
                    ends.append(float((numpy.where(numpy.isinf(value), 0, value) * g).sum()))
                expected[index] = (ends[0] - ends[1]) / (2 * step)
            numpy.testing.assert_allclose(
                gradient.astype(float).reshape(expected.shape), expected, rtol=2e-6, atol=2e-8
            )


def test_tables_hold_nothing_else():
    assert set(GRADIENTS) == set(EXAMPLES) == set(COMPUTED)
