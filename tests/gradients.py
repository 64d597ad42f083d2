"""Gradients of the primitives in NumPy, and small examples of each: what test_primitives.py holds the table to.

GRADIENTS[name](np, g, *operands, output, **attributes) returns the gradients of the operands, in order. It sees what
the row's `keeps` names: every operand ("inputs"), or `output` alone; weights are always there, and other operands are
None. Sums over the axes along which an operand was broadcast belong to a norm (its weights always are), but not to add,
multiply and product, where `Op.broadcast` counts them.

EXAMPLES[name](random, m, n) returns (operands, attributes, points, rows) for m rows of n elements; WEIGHTS says how
many of the operands are weights. To add a primitive, add a row to both tables.
"""

import math

import gradients_scan
import numpy

from lmcalc.primitives import PRIMITIVES


def _norm_sums(np, x, eps):
    """x / rms(x) and 1 / rms(x): 3 an element, 4 a row."""
    r = 1 / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) / x.shape[-1] + eps)
    return x * r, r


def _norm_input(np, g, normed, r):
    """Gradient of the input of x / rms(x): 5 an element, 1 a row."""
    return (g - normed * (np.sum(g * normed, axis=-1, keepdims=True) / g.shape[-1])) * r


def _centred(np, x):
    """1 an element for the mean, 1 a row, 1 an element for the difference."""
    return x - np.sum(x, axis=-1, keepdims=True) / x.shape[-1]


def einsum(np, g, a, b, output, equation):
    inputs, _, result = equation.partition("->")
    left, _, right = inputs.partition(",")
    return np.einsum(f"{result},{right}->{left}", g, b), np.einsum(f"{left},{result}->{right}", a, g)


def add(np, g, a, b, output):
    return g, g


def subtract(np, g, a, b, output):
    return g, -g


def multiply(np, g, a, b, output):
    return g * b, g * a


def scale(np, g, x, output, by):
    return (g * by,)


def shift(np, g, x, output, by):
    return (g,)


def relu(np, g, x, output):
    return (np.where(output > 0, g, 0.0),)


def relu2(np, g, x, output):
    return (g * (np.maximum(x, 0) * 2),)


def gelu(np, g, x, output):
    below = (np.erf(x * math.sqrt(0.5)) + 1) * 0.5
    density = np.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return (g * (below + x * density),)


def gelu_tanh(np, g, x, output):
    k, c, square = math.sqrt(2 / math.pi), 0.044715, x * x
    t = np.tanh((square * x * c + x) * k)
    inner = square * (3 * c * k) + k
    return ((t + 1 + x * (1 - t * t) * inner) * 0.5 * g,)


def silu(np, g, x, output):
    s = 1 / (np.exp(-x) + 1)
    return (g * s * (x * (1 - s) + 1),)


def elu(np, g, x, output):
    return (np.where(output > 0, g, g * (output + 1)),)


def selu(np, g, x, output):
    alpha, factor = 1.6732632423543772, 1.0507009873554805
    return (g * np.where(output > 0, factor, output + alpha * factor),)


def xielu(np, g, x, positive, negative, output, beta, eps):
    below, above = np.expm1(np.minimum(x, eps)), x > 0
    dx = g * (np.where(above, x * 2 * positive, below * negative) + beta)
    return dx, np.sum(np.where(above, x * x * g, 0.0)), np.sum(np.where(above, 0.0, (below - x) * g))


def softplus(np, g, x, output):
    return (g / (np.exp(-x) + 1),)


def sigmoid(np, g, x, output):
    return (g * output * (1 - output),)


def clamped_glu(np, g, gate, up, output, limit, alpha):
    open_gate, low, high = gate < limit, up > -limit, up < limit
    gate, up = np.minimum(gate, limit), np.maximum(np.minimum(up, limit), -limit)
    s = 1 / (np.exp(gate * -alpha) + 1)
    passed = gate * s
    d_gate = g * (up + 1) * (passed * (1 - s) * alpha + s)
    return np.where(open_gate, d_gate, 0.0), np.where(np.logical_and(low, high), g * passed, 0.0)


def limited_glu(np, g, gate, up, output, limit):
    open_gate, low, high = gate < limit, up > -limit, up < limit
    gate, up = np.minimum(gate, limit), np.maximum(np.minimum(up, limit), -limit)
    s = 1 / (np.exp(-gate) + 1)
    passed = gate * s
    d_gate = g * up * (s * (gate * (1 - s) + 1))
    return np.where(open_gate, d_gate, 0.0), np.where(np.logical_and(low, high), g * passed, 0.0)


def sqrt_softplus(np, g, x, output):
    return (g * (1 - np.exp(-(output * output))) / (output * 2),)


def softcap(np, g, x, output, cap):
    t = output * (1 / cap)
    return (g * (1 - t * t),)


def clip(np, g, x, output, by):
    return (np.where(np.absolute(output) < by, g, 0.0),)


def tanh(np, g, x, output):
    return (g * (1 - output * output),)


def rms(np, g, x, output, axis):
    root = np.sqrt(np.sum(x * x, axis=-1) / x.shape[-1])
    return (x * np.expand_dims(g / (root * x.shape[-1]), -1),)


def alike(np, g, x, target, output, eps):
    square = np.sum(x * x, axis=-1, keepdims=True)
    mean = square / x.shape[-1]
    root = np.sqrt(np.maximum(mean, eps))
    dot, factor = np.sum(g * x, axis=-1, keepdims=True), target / root
    return (g - x * np.where(mean > eps, dot / square, 0.0)) * factor, dot / root


def sparse_relu(np, g, x, output, deviations):
    x, n = _centred(np, x), g.shape[-1]
    deviation = np.sqrt(np.sum(x * x, axis=-1, keepdims=True) / n)
    g = np.where(x > deviation * deviations, g, 0.0)
    mean = np.sum(g, axis=-1, keepdims=True) / n
    return (g - (x * (mean / deviation * deviations) + mean),)


def mask(np, g, x, output, allowed):
    return (g,)  # behind a mask is a softmax, whose gradient is 0 where it is


def rotate(np, g, x, output, cos, sin, size, interleaved, last=False):
    start = g.shape[-1] - size if last else 0
    turned = g[..., start : start + size]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned[..., : size // 2], turned[..., size // 2 :]
    pair = a * cos + b * sin, b * cos - a * sin
    turned = np.stack(pair, axis=-1).reshape(turned.shape) if interleaved else np.concatenate(pair, axis=-1)
    return (np.concatenate((g[..., :start], turned, g[..., start + size :]), axis=-1),)


def block_max(np, g, x, output, size):
    def each(of):
        return np.repeat(of, size, axis=-1)[..., : x.shape[-1]]

    return (np.where(x >= each(PRIMITIVES["block_max"].kernel(np, x, size)), each(g), 0.0),)


def softmax(np, g, x, output):
    return (output * (g - np.sum(g * output, axis=-1, keepdims=True)),)


def softmax_sink(np, g, x, sink, output):
    dot = np.sum(g * output, axis=-1, keepdims=True)
    left = np.sum(output, axis=-1, keepdims=True) - 1  # minus the sink's own share
    return output * (g - dot), np.sum(left * dot)


def rms_norm(np, g, x, weight, output, eps):
    normed, r = _norm_sums(np, x, eps)
    return _norm_input(np, g * weight, normed, r), np.sum(g * normed, axis=0)


def l2_norm(np, g, x, output, eps):
    return (_norm_input(np, g, *_norm_sums(np, x, eps)),)


def layer_norm(np, g, x, weight, bias, output, eps):
    return *layer_norm_no_bias(np, g, x, weight, output, eps), np.sum(g, axis=0)


def layer_norm_no_bias(np, g, x, weight, output, eps):
    normed, r = _norm_sums(np, _centred(np, x), eps)
    return _norm_input(np, _centred(np, g * weight), normed, r), np.sum(g * normed, axis=0)


def layer_norm_plain(np, g, x, output, eps):
    return (_norm_input(np, _centred(np, g), *_norm_sums(np, _centred(np, x), eps)),)


def log_sum_exp(np, g, x, output, axis):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return (e * (np.expand_dims(g, -1) / np.sum(e, axis=-1, keepdims=True)),)


def mean(np, g, x, output, axis):
    g = g / MEAN
    return (np.broadcast_to(np.expand_dims(g, -1), (*g.shape, MEAN)),)


def share(np, g, x, output, eps=None):
    total = np.sum(x, axis=-1, keepdims=True)
    total = total if eps is None else total + eps
    return ((g - np.sum(g * (x / total), axis=-1, keepdims=True)) / total,)


def routed(np, g, x, weight, output, index, equation):
    a, _, b = equation.partition("->")[0].partition(",")
    result, alike = equation.partition("->")[2], b.replace("E", "BTA")
    dx = np.einsum(f"{result},{alike}->{a}", g, np.take(weight, index, axis=0))
    each = np.einsum(f"{a},{result}->{alike}", x, g)  # of each token alone, then added up by expert
    one = [np.sum(each[index == expert], axis=0) for expert in range(len(weight))]
    return dx, np.stack(one)


def sum_(np, g, x, output, axis):
    return (np.broadcast_to(np.expand_dims(g, axis), (*g.shape, MEAN)),)


def passed_on(np, g, x, output, **attributes):
    return (g,)  # behind it is a choice, which has no gradient


def identity_where(np, g, out, x, output, index, experts):
    return np.where(index >= experts, 0.0, g), np.where(index >= experts, g, 0.0)


def keep_first(np, g, x, output, index, capacity):
    return (np.where(np.reshape(first_places(index, capacity), g.shape), g, 0.0),)


def first_places(index, capacity):
    """Which places of a row are among the first so many of their index."""
    seen = [[sum(one == other for other in row[: at + 1]) for at, one in enumerate(row)] for row in index.tolist()]
    return numpy.array(seen) <= capacity


GRADIENTS = {
    "block_max": block_max,
    "keep_first": keep_first,
    "tanh": tanh,
    "rms": rms,
    "alike": alike,
    "sparse_relu": sparse_relu,
    "limited_glu": limited_glu,
    "sqrt_softplus": sqrt_softplus,
    "share": share,
    "share_eps": share,
    "routed": routed,
    "sum": sum_,
    "limit_groups_max": passed_on,
    "limit_groups_top2": passed_on,
    "near_best": passed_on,
    "exclude": passed_on,
    "identity_where": identity_where,
    "einsum": einsum,
    "product": einsum,
    "add": add,
    "subtract": subtract,
    "log_sum_exp": log_sum_exp,
    "mean": mean,
    "multiply": multiply,
    "scale": scale,
    "shift": shift,
    "relu": relu,
    "relu2": relu2,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "elu": elu,
    "selu": selu,
    "xielu": xielu,
    "softplus": softplus,
    "sigmoid": sigmoid,
    "clamped_glu": clamped_glu,
    "softcap": softcap,
    "clip": clip,
    "mask": mask,
    "rotate": rotate,
    "softmax": softmax,
    "softmax_sink": softmax_sink,
    "rms_norm": rms_norm,
    "l2_norm": l2_norm,
    "layer_norm": layer_norm,
    "layer_norm_no_bias": layer_norm_no_bias,
    "layer_norm_plain": layer_norm_plain,
}


# Examples --------------------------------------------------------------------------------------------------------


MEAN = 6  # entries of a row in the example of mean, whose gradient has nothing else to know it by


def normal(random, *shape):
    """Random numbers that keep away from 0, where some of the functions have a kink."""
    x = random.standard_normal(shape)
    return x + 0.05 * (1 - 2 * (x < 0))


def one(**attributes):
    """An example with one operand of m x n."""
    return lambda random, m, n: ([normal(random, m, n)], attributes, m * n, m)


def norm(weights):
    """A norm of m rows of n with so many weights of n."""
    return lambda random, m, n: (
        [normal(random, m, n), *[normal(random, n) for _ in range(weights)]],
        {"eps": 1e-3},
        m * n,
        m,
    )


def rotated(interleaved, spare, **more):
    """Rotary positions on the first n of n + spare entries, or on the last."""

    def example(random, m, n):
        n += n % 2
        angles = random.uniform(0, 6, (m, n // 2))
        attributes = {"cos": numpy.cos(angles), "sin": numpy.sin(angles), "size": n, "interleaved": interleaved, **more}
        return [normal(random, m, n + spare)], attributes, m * n, m

    return example


def masked(random, m, n):
    allowed = random.random((m, n)) < 0.7
    return [normal(random, m, n)], {"allowed": allowed}, m * n, m


def positive(**attributes):
    """An example with one operand of m x n numbers above 0, as weights of experts are."""
    return lambda random, m, n: ([random.uniform(0.5, 2, (m, n))], attributes, m * n, m)


def route(equation, shape):
    """m x n tokens that choose 2 of 3 experts, of 4 x 5."""

    def example(random, m, n):
        index = random.permuted(numpy.tile([0, 1, 2], (m, n, 1)), axis=-1)[..., :2]
        arrays = [normal(random, *(m, n, 2, 4)[: 2 + shape - 1], 4), normal(random, 3, 4, 5)]
        return arrays, {"index": index, "equation": equation}, m * n * 2 * 4 * 5, m

    return example


def grouped(random, m, n):
    return [normal(random, m, n * 6)], {"groups": 2 * n, "count": n}, m * n * 6, m * 2 * n


def placed(random, m, n):
    return [normal(random, m, n)], {"index": random.integers(0, n, (m, 1))}, m * n, m


def zeroed(random, m, n):
    attributes = {"index": random.integers(0, 4, (m, n)), "experts": 2}
    return [normal(random, m, n), normal(random, m, n)], attributes, m * n, m


def crowded(random, m, n):
    return [normal(random, m, n)], {"index": random.integers(0, 3, (m, n)), "capacity": 2}, m * n, m


EXAMPLES = {
    "keep_first": crowded,
    "tanh": one(),
    "rms": one(axis=(-1,)),
    "sparse_relu": one(deviations=0.3),
    "alike": lambda random, m, n: ([normal(random, m, n), normal(random, m, 1)], {"eps": 1e-5}, m * n, m),
    "limited_glu": lambda random, m, n: ([normal(random, m, n), normal(random, m, n)], {"limit": 0.9}, m * n, m),
    "sqrt_softplus": lambda random, m, n: ([normal(random, m, n)], {}, m * n, m),
    "share": positive(),
    "share_eps": positive(eps=0.1),
    "routed": route("BTD,EDF->BTAF", 1),
    "sum": lambda random, m, n: ([normal(random, m, 6)], {"axis": 1}, m * 6, m),
    "limit_groups_max": grouped,
    "limit_groups_top2": grouped,
    "exclude": placed,
    "identity_where": zeroed,
    "near_best": lambda random, m, n: ([normal(random, m, n)], {"jitter": 0.2}, m * n, m),
    "einsum": lambda random, m, n: (
        [normal(random, m, n, 3), normal(random, n, 3, 4)],
        {"equation": "bxy,xyo->bo"},
        m * n * 3 * 4,
        m,
    ),
    "product": lambda random, m, n: ([normal(random, m, n), normal(random, n, m)], {"equation": "xy,yx->xy"}, m * n, m),
    "add": lambda random, m, n: ([normal(random, m, n), normal(random, m, n)], {}, m * n, m),
    "subtract": lambda random, m, n: ([normal(random, m, n), normal(random, m, n)], {}, m * n, m),
    "log_sum_exp": one(axis=(-1,)),
    "mean": lambda random, m, n: ([normal(random, m, 6)], {"axis": (-1,)}, m * 6, m),
    "multiply": lambda random, m, n: ([normal(random, m, n), normal(random, m, n)], {}, m * n, m),
    "scale": one(by=0.3),
    "shift": one(by=0.3),
    "relu": one(),
    "relu2": one(),
    "gelu": one(),
    "gelu_tanh": one(),
    "silu": one(),
    "elu": one(),
    "selu": one(),
    "softplus": one(),
    "sigmoid": one(),
    "softcap": one(cap=1.5),
    "clip": one(by=0.8),
    "xielu": lambda random, m, n: (
        [normal(random, m, n), normal(random, 1), normal(random, 1)],
        {"beta": 0.5, "eps": -1e-6},
        m * n,
        m,
    ),
    "clamped_glu": lambda random, m, n: (
        [normal(random, m, n), normal(random, m, n)],
        {"limit": 0.9, "alpha": 1.7},
        m * n,
        m,
    ),
    "mask": masked,
    "rotate": rotated(False, 0),
    "softmax": one(),
    "block_max": lambda random, m, n: ([normal(random, m, 3 * n - 1)], {"size": n}, m * (3 * n - 1), m),
    "softmax_sink": lambda random, m, n: ([normal(random, m, n), normal(random, 1, 1)], {}, m * n, m),
    "rms_norm": norm(1),
    "l2_norm": norm(0),
    "layer_norm": norm(2),
    "layer_norm_no_bias": norm(1),
    "layer_norm_plain": norm(0),
}
GRADIENTS |= gradients_scan.GRADIENTS
EXAMPLES |= gradients_scan.EXAMPLES
MORE = {  # further examples of one primitive
    "rotate": [rotated(True, 0), rotated(False, 3), rotated(True, 2), rotated(True, 3, last=True)],
    "routed": [route("BTAF,EFD->BTAD", 2)],
}  # fmt: skip
WEIGHTS = {"rms_norm": 1, "layer_norm": 2, "layer_norm_no_bias": 1, "xielu": 2, "softmax_sink": 1}  # how many come last
