"""The primitive operations: for each its class, its cost, what its backward pass keeps and costs, and its NumPy kernel.

Costs are counted by one rule: every arithmetic or transcendental operation, comparison, maximum or select on floats is
one FLOP, a reduction costs its input size; casts, views, integer and boolean work and the making of rotary tables cost
nothing. `per_element` is counted for each point of the operation (for a contraction: each multiply-add), `per_row` for
each row that is reduced. `backward` is the same pair for the gradients of all operands, given what `keeps` names:
"inputs" (activations read), "output", or nothing; a value that can be had from them is computed again and counted.
The gradient kernels are written out in tests/gradients.py.

A kernel is called as kernel(np, *arrays, **attributes), with whatever stands in for NumPy; operands arrive broadcastable.
The test of this table runs every kernel on arrays that count what NumPy really does (see counting.py).
"""

import math

CONTRACTION, NORMALIZATION, ELEMENTWISE, MOVEMENT = "contraction", "normalization", "elementwise", "movement"
CLASSES = (CONTRACTION, NORMALIZATION, ELEMENTWISE, MOVEMENT)
PRIMITIVES = {}


class Primitive:
    """One row of the table."""

    __slots__ = ("name", "cls", "per_element", "per_row", "keeps", "backward", "kernel")

    def __init__(self, name, cls, per_element, per_row, keeps, backward, kernel):
        self.name, self.cls, self.per_element, self.per_row = name, cls, per_element, per_row
        self.keeps, self.backward, self.kernel = keeps, backward, kernel

    def __repr__(self):
        return f"Primitive({self.name})"


def primitive(cls, per_element=0, per_row=0, keeps=None, backward=(0, 0)):
    """Register the function below as a primitive of this cost."""

    def register(kernel):
        name = kernel.__name__.rstrip("_")
        PRIMITIVES[name] = Primitive(name, cls, per_element, per_row, keeps, backward, kernel)
        return kernel

    return register


# Products --------------------------------------------------------------------------------------------------------


@primitive(CONTRACTION, per_element=2, keeps="inputs", backward=(4, 0))
def einsum(np, a, b, equation):
    """A product of two operands with at least one contracted axis: 2 FLOPs for each point of all distinct axes."""
    return np.einsum(equation, a, b)


@primitive(ELEMENTWISE, per_element=1, keeps="inputs", backward=(2, 0))
def product(np, a, b, equation):
    """A product of two operands that contracts nothing: 1 FLOP a point."""
    return np.einsum(equation, a, b)


# Elementwise -----------------------------------------------------------------------------------------------------


@primitive(ELEMENTWISE, per_element=1)
def add(np, a, b):
    return a + b


@primitive(ELEMENTWISE, per_element=1, backward=(1, 0))
def subtract(np, a, b):
    return a - b


@primitive(ELEMENTWISE, per_element=1, keeps="inputs", backward=(2, 0))
def multiply(np, a, b):
    return a * b


@primitive(ELEMENTWISE, per_element=1, backward=(1, 0))
def scale(np, x, by):
    return x * by


@primitive(ELEMENTWISE, per_element=1)
def shift(np, x, by):
    return x + by


@primitive(ELEMENTWISE, per_element=1, keeps="output", backward=(2, 0))
def relu(np, x):
    return np.maximum(x, 0)


@primitive(ELEMENTWISE, per_element=5, keeps="inputs", backward=(11, 0))
def gelu(np, x):
    """x * Phi(x), with the error function (Hendrycks and Gimpel 2016, eq. 1)."""
    return x * 0.5 * (np.erf(x * math.sqrt(0.5)) + 1)


@primitive(ELEMENTWISE, per_element=9, keeps="inputs", backward=(16, 0))
def gelu_tanh(np, x):
    """The tanh form of GeLU (Hendrycks and Gimpel 2016, sec. 2)."""
    return x * 0.5 * (np.tanh((x * x * x * 0.044715 + x) * math.sqrt(2 / math.pi)) + 1)


@primitive(ELEMENTWISE, per_element=4, keeps="inputs", backward=(9, 0))
def silu(np, x):
    """x * sigmoid(x) (Elfwing et al. 2017; Swish with beta 1)."""
    return x / (np.exp(-x) + 1)


@primitive(ELEMENTWISE, per_element=2, keeps="inputs", backward=(3, 0))
def relu2(np, x):
    """max(x, 0)**2 (So et al. 2021, Primer, sec. 4)."""
    kept = np.maximum(x, 0)
    return kept * kept


@primitive(ELEMENTWISE, per_element=4, keeps="output", backward=(4, 0))
def elu(np, x):
    """x above 0, exp(x) - 1 below (Clevert et al. 2015, eq. 15, alpha 1)."""
    return np.maximum(x, 0) + np.expm1(np.minimum(x, 0))


@primitive(ELEMENTWISE, per_element=6, keeps="output", backward=(4, 0))
def selu(np, x):
    """lambda times x above 0, lambda alpha (exp(x) - 1) below (Klambauer et al. 2017, eq. 2 and 14)."""
    alpha, factor = 1.6732632423543772, 1.0507009873554805
    return (np.maximum(x, 0) + np.expm1(np.minimum(x, 0)) * alpha) * factor


@primitive(ELEMENTWISE, per_element=10, keeps="inputs", backward=(17, 0))
def xielu(np, x, positive, negative, beta, eps):
    """positive x**2 + beta x above 0, negative (exp(x) - 1 - x) + beta x below (Huang and Schlag 2024; Apertus).

    Below 0 the exponent is min(x, eps), as in the published code.
    """
    below = (np.expm1(np.minimum(x, eps)) - x) * negative
    return np.where(x > 0, x * x * positive, below) + x * beta


@primitive(ELEMENTWISE, per_element=2, keeps="inputs", backward=(4, 0))
def softplus(np, x):
    """log(1 + exp(x))."""
    return np.log1p(np.exp(x))


@primitive(ELEMENTWISE, per_element=4, keeps="output", backward=(3, 0))
def sigmoid(np, x):
    """1 / (1 + exp(-x))."""
    return 1 / (np.exp(-x) + 1)


@primitive(ELEMENTWISE, per_element=9, keeps="inputs", backward=(21, 0))
def clamped_glu(np, gate, up, limit, alpha):
    """gate sigmoid(alpha gate) (up + 1), gate clamped above at limit and up to +-limit (gpt-oss)."""
    gate, up = np.minimum(gate, limit), np.maximum(np.minimum(up, limit), -limit)
    return gate / (np.exp(gate * -alpha) + 1) * (up + 1)


@primitive(ELEMENTWISE, per_element=3, keeps="output", backward=(4, 0))
def softcap(np, x, cap):
    """cap * tanh(x / cap) (Gemma 2, sec. 2)."""
    return np.tanh(x * (1 / cap)) * cap


@primitive(ELEMENTWISE, per_element=2, keeps="output", backward=(3, 0))
def clip(np, x, by):
    """x between -by and by (clip_qkv of MPT, OLMo and DBRX)."""
    return np.minimum(np.maximum(x, -by), by)


@primitive(ELEMENTWISE, per_element=1)
def mask(np, x, allowed):
    """Minus infinity where a pair is not allowed."""
    return np.where(allowed, x, -math.inf)


@primitive(ELEMENTWISE, per_element=3, backward=(3, 0))
def rotate(np, x, cos, sin, size, interleaved):
    """Rotary positions on the first `size` entries of the last axis: 4 products and 2 sums a pair (Su et al. 2021)."""
    turned = x[..., :size]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned[..., : size // 2], turned[..., size // 2 :]
    pair = a * cos - b * sin, b * cos + a * sin
    turned = np.stack(pair, axis=-1).reshape(turned.shape) if interleaved else np.concatenate(pair, axis=-1)
    return turned if size == x.shape[-1] else np.concatenate((turned, x[..., size:]), axis=-1)


# Normalization: the last axis (norms: all of `axis`) is the row ----------------------------------------------------


@primitive(NORMALIZATION, per_element=5, keeps="output", backward=(4, 0))
def softmax(np, x):
    """Maximum, difference, exponential, sum, quotient: 5 an element."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@primitive(NORMALIZATION, per_element=5, per_row=4, keeps="output", backward=(5, 3))
def softmax_sink(np, x, sink):
    """Softmax with one more logit a row, which takes part in the sum only (gpt-oss)."""
    highest = np.maximum(np.max(x, axis=-1, keepdims=True), sink)
    e = np.exp(x - highest)
    return e / (np.sum(e, axis=-1, keepdims=True) + np.exp(sink - highest))


@primitive(NORMALIZATION, per_element=4, per_row=4, keeps="inputs", backward=(11, 5))
def rms_norm(np, x, weight, eps, axis=-1):
    """x / sqrt(mean(x**2) + eps) * weight (Zhang and Sennrich 2019, eq. 4)."""
    return x * (1 / np.sqrt(_mean(np, x * x, axis) + eps)) * weight


@primitive(NORMALIZATION, per_element=3, per_row=4, keeps="inputs", backward=(8, 5))
def l2_norm(np, x, eps, axis=-1):
    """x / sqrt(mean(x**2) + eps): RMSNorm without a weight (queries and keys of Llama 4)."""
    return x * (1 / np.sqrt(_mean(np, x * x, axis) + eps))


@primitive(NORMALIZATION, per_element=7, per_row=5, keeps="inputs", backward=(16, 7))
def layer_norm(np, x, weight, bias, eps, axis=-1):
    """(x - mean) / sqrt(variance + eps) * weight + bias (Ba et al. 2016, eq. 4)."""
    x = x - _mean(np, x, axis)
    return x * (1 / np.sqrt(_mean(np, x * x, axis) + eps)) * weight + bias


def _mean(np, x, axis):
    total = np.sum(x, axis=axis, keepdims=True)
    return total / (x.size // total.size)


@primitive(NORMALIZATION, per_element=6, per_row=5, keeps="inputs", backward=(15, 7))
def layer_norm_no_bias(np, x, weight, eps, axis=-1):
    """(x - mean) / sqrt(variance + eps) * weight."""
    x = x - _mean(np, x, axis)
    return x * (1 / np.sqrt(_mean(np, x * x, axis) + eps)) * weight


@primitive(NORMALIZATION, per_element=5, per_row=5, keeps="inputs", backward=(12, 7))
def layer_norm_plain(np, x, eps, axis=-1):
    """(x - mean) / sqrt(variance + eps)."""
    x = x - _mean(np, x, axis)
    return x * (1 / np.sqrt(_mean(np, x * x, axis) + eps))


@primitive(NORMALIZATION, per_element=4, per_row=2, keeps="inputs", backward=(5, 1))
def log_sum_exp(np, x, axis=(-1,)):
    """log(sum(exp(x))), with the maximum taken out: maximum, difference, exponential, sum; logarithm and sum a row."""
    highest = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - highest), axis=axis)) + np.squeeze(highest, axis)


@primitive(NORMALIZATION, per_element=1, per_row=1, backward=(0, 1))
def mean(np, x, axis=(-1,)):
    return np.sum(x, axis=axis) / math.prod(x.shape[each] for each in axis)


# Movement: nothing is computed, but bytes may move ---------------------------------------------------------------


@primitive(MOVEMENT, keeps="index")
def gather(np, table, index):
    """Rows of a table by index: reads what it touches."""
    return np.take(table, index, axis=0)


@primitive(MOVEMENT, keeps="index")
def pick(np, x, index):
    """The entry of the first axis that the index names, for each place of the others."""
    return np.take_along_axis(x, index[None], axis=0)[0]


@primitive(MOVEMENT)
def view(np, x, take=None, order=None, shape=None):
    """Part of an axis, another order of the axes, or axes split and merged: costs nothing."""
    if take is not None:
        x = x[take]
    if order is not None:
        x = np.transpose(x, order)
    return x if shape is None else np.reshape(x, shape)


@primitive(MOVEMENT)
def relative_shift(np, x, index):
    """Scores by distance put where the keys at those distances are (Dai et al. 2019, appendix B)."""
    return np.take_along_axis(x, np.broadcast_to(index, x.shape), axis=-1)


@primitive(MOVEMENT)
def cast(np, x):
    """Another storage type; the reference computes in one type throughout."""
    return x


@primitive(MOVEMENT)
def append(np, old, new):
    """New rows behind those that the cache holds, along the axis of keys."""
    return new if old is None else np.concatenate((old, new), axis=1)


# State: what a layer keeps from one call to the next --------------------------------------------------------------


@primitive(MOVEMENT)
def write(np, x):
    """A state for the pass after."""
    return x


@primitive(MOVEMENT)
def slide(np, held, x, width):
    """For each token the window of `width` columns that ends at it."""
    whole = np.concatenate((held, x), axis=1)
    return np.stack([whole[:, i : i + x.shape[1]] for i in range(width)], axis=2)


@primitive(MOVEMENT)
def columns(np, held, x, width):
    """The last `width` columns, for the windows of the pass after."""
    whole = np.concatenate((held, x), axis=1)
    return whole[:, whole.shape[1] - width :]
