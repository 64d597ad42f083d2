"""An ndarray that counts what NumPy does to it, and knows nothing of the primitives' rules.

It intercepts ufuncs, reductions and array functions: multiply-adds of einsum and matmul, two FLOPs each; each
arithmetic or transcendental operation, comparison, maximum or select on floats, one; a reduction its input size; moving
data, integers and booleans nothing, nor putting in order (choosing). It is an allow-list: a NumPy call that it does not
know raises, and so does a result that is no longer of this class, since that would count nothing.
"""

import math

import numpy

_COUNTED = {
    numpy.add, numpy.subtract, numpy.multiply, numpy.true_divide, numpy.negative, numpy.exp, numpy.tanh, numpy.sqrt,
    numpy.log, numpy.log1p, numpy.maximum, numpy.minimum, numpy.absolute, numpy.square, numpy.greater, numpy.less,
    numpy.expm1, numpy.greater_equal, numpy.less_equal, numpy.power, numpy.remainder,
}  # fmt: skip
_FREE = {numpy.logical_and, numpy.logical_or, numpy.logical_not, numpy.bitwise_and, numpy.bitwise_or, numpy.invert}
_MOVING = {
    numpy.concatenate, numpy.stack, numpy.take, numpy.transpose, numpy.reshape, numpy.expand_dims, numpy.broadcast_to,
    numpy.moveaxis, numpy.swapaxes, numpy.squeeze, numpy.repeat, numpy.pad, numpy.take_along_axis, numpy.split,
    numpy.argsort,
}  # fmt: skip
_REDUCING = {numpy.sum, numpy.max, numpy.min, numpy.prod}
_flops = [0]


class Counted(numpy.ndarray):
    """A float array whose operations are counted; see `count`."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [_plain(each) for each in inputs]
        if out is not None:
            raise TypeError("counting: in-place results are not known")
        result = getattr(ufunc, method)(*plain, **options)
        known = ufunc in _COUNTED or ufunc.__name__.startswith("erf")
        floats = any(getattr(each, "dtype", None) is not None and each.dtype.kind in "fO" for each in plain)
        if ufunc is numpy.matmul and method == "__call__":
            _flops[0] += 2 * result.size * plain[0].shape[-1]
        elif method == "__call__" and known:
            _flops[0] += result.size if floats else 0
        elif method == "reduce" and known:
            _flops[0] += plain[0].size if floats else 0
        elif method == "accumulate" and known:
            _flops[0] += result.size if floats else 0
        elif ufunc not in _FREE:
            raise TypeError(f"counting: {ufunc.__name__}.{method} is not known")
        return _wrapped(result)

    def __array_function__(self, func, types, args, kwargs):
        if func is numpy.einsum:
            equation, *operands = args
            shape_of = {}
            inputs, _, result = equation.partition("->")
            for axes, operand in zip(inputs.split(","), operands):
                shape_of.update(zip(axes, operand.shape))
            each = 2 if set(shape_of) - set(result) else 1
            _flops[0] += each * math.prod(shape_of.values())
            return _wrapped(numpy.einsum(equation, *map(_plain, operands), optimize=True, **kwargs))
        if func is numpy.where:
            result = numpy.where(*map(_plain, args))
            _flops[0] += result.size if result.dtype.kind == "f" else 0
            return _wrapped(result)
        if func in _REDUCING:
            return super().__array_function__(func, types, args, kwargs)
        if func in _MOVING:
            return _wrapped(func(*map(_plain, args), **{name: _plain(each) for name, each in kwargs.items()}))
        raise TypeError(f"counting: numpy.{func.__name__} is not known")

    def _unknown(self, *args, **kwargs):
        raise TypeError("counting: this method of ndarray is not intercepted; use the function or the operator")

    dot = mean = std = var = cumsum = cumprod = clip = round = trace = sort = partition = _unknown


def _plain(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return value.view(numpy.ndarray) if isinstance(value, Counted) else value


def _wrapped(result):
    if isinstance(result, (list, tuple)):
        return type(result)(map(_wrapped, result))
    result = numpy.asarray(result)
    return (result.astype(float) if result.dtype == object else result).view(Counted)


def count(kernel, np, arrays, attributes):
    """(result as a plain array, FLOPs that NumPy performed for it)."""
    _flops[0] = 0
    counted = [each if each is None else each.view(Counted) for each in arrays]
    result = kernel(np, *counted, **attributes)
    if not isinstance(result, Counted):
        raise TypeError(
            f"counting: {kernel.__name__} returned a {type(result).__name__}: its operations went uncounted"
        )
    return _plain(result), _flops[0]
