"""The primitive operations: for each its class, its cost, what its backward pass keeps and costs, and its NumPy kernel.

Costs are counted by one rule: every arithmetic or transcendental operation, comparison, maximum or select on floats is
one FLOP, a reduction costs its input size; casts, views, integer and boolean work and the making of rotary tables cost
nothing. `per_element` is counted for each point of the operation (for a contraction: each multiply-add), `per_row` for
each row that is reduced. `backward` is the same pair for the gradients of all operands, given what `keeps` names:
"inputs" (activations read), "output", or nothing; a value that can be had from them is computed again and counted.
The gradient kernels are written out in tests/gradients.py.

A kernel is called as kernel(np, *arrays, **attributes), with whatever stands in for NumPy; operands arrive
broadcastable. The test of this table runs every kernel on arrays that count what NumPy really does (see counting.py).
"""

import math
from itertools import pairwise

CONTRACTION, NORMALIZATION, ELEMENTWISE, MOVEMENT = "contraction", "normalization", "elementwise", "movement"
CLASSES = (CONTRACTION, NORMALIZATION, ELEMENTWISE, MOVEMENT)
PRIMITIVES = {}


class Primitive:
    """One row of the table."""

    __slots__ = ("backward", "cls", "keeps", "kernel", "name", "per_element", "per_row")

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


@primitive(CONTRACTION, per_element=2, keeps="inputs", backward=(4, 0))
def routed(np, x, weight, index, equation):
    """x times those matrices of a stack that an index names: the rows of each expert together, one expert at a time."""
    index, experts = np.asarray(index), weight.shape[0]
    if "A" not in equation.partition(",")[0]:
        x = np.broadcast_to(np.expand_dims(x, 2), (*index.shape, *x.shape[2:]))
    inner = math.prod(x.shape[3:])
    rows, matrices = np.reshape(x, (-1, inner)), np.reshape(weight, (experts, inner, -1))
    which = np.minimum(np.reshape(index, -1), experts - 1)
    order = np.argsort(which, kind="stable")
    ends, rows = np.searchsorted(which[order], np.arange(experts + 1)), np.take(rows, order, axis=0)
    found = [rows[a:b] @ matrices[at] for at, (a, b) in enumerate(pairwise(ends)) if b > a]
    result = np.take(np.concatenate(found), np.argsort(order), axis=0)
    return np.reshape(result, (*index.shape, *weight.shape[x.ndim - 2 :]))


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


@primitive(ELEMENTWISE, per_element=8, keeps="inputs", backward=(20, 0))
def limited_glu(np, gate, up, limit):
    """silu(gate) up, gate clamped above at limit and up to +-limit (DeepSeek V4)."""
    gate, up = np.minimum(gate, limit), np.maximum(np.minimum(up, limit), -limit)
    return gate / (np.exp(-gate) + 1) * up


@primitive(ELEMENTWISE, per_element=3, keeps="output", backward=(7, 0))
def sqrt_softplus(np, x):
    """sqrt(log(1 + exp(x))) (router scores of DeepSeek V4)."""
    return np.sqrt(np.log1p(np.exp(x)))


@primitive(ELEMENTWISE, per_element=3, keeps="output", backward=(4, 0))
def softcap(np, x, cap):
    """cap * tanh(x / cap) (Gemma 2, sec. 2)."""
    return np.tanh(x * (1 / cap)) * cap


@primitive(ELEMENTWISE, per_element=2, keeps="output", backward=(3, 0))
def clip(np, x, by):
    """x between -by and by (clip_qkv of MPT, OLMo and DBRX)."""
    return np.minimum(np.maximum(x, -by), by)


@primitive(ELEMENTWISE, per_element=2, keeps="output", backward=(3, 0))
def clamp(np, x, low, high):
    """x between low and high."""
    return np.minimum(np.maximum(x, low), high)


@primitive(ELEMENTWISE, per_element=1, keeps="output", backward=(1, 0))
def exp(np, x):
    return np.exp(x)


@primitive(ELEMENTWISE, per_element=1, keeps="inputs", backward=(4, 0))
def divide(np, a, b):
    return a / b


@primitive(ELEMENTWISE, per_element=1, keeps="inputs", backward=(3, 0))
def maximum(np, a, b):
    return np.maximum(a, b)


@primitive(ELEMENTWISE, per_element=1, keeps="output", backward=(3, 0))
def tanh(np, x):
    return np.tanh(x)


@primitive(ELEMENTWISE, per_element=1)
def mask(np, x, allowed):
    """Minus infinity where a pair is not allowed."""
    return np.where(allowed, x, -math.inf)


@primitive(ELEMENTWISE, per_element=3, backward=(3, 0))
def rotate(np, x, cos, sin, size, interleaved, last=False):
    """Rotary positions on `size` entries of the last axis, the first or last: 4 products, 2 sums a pair (RoFormer)."""
    start = x.shape[-1] - size if last else 0
    turned = x[..., start : start + size]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned[..., : size // 2], turned[..., size // 2 :]
    pair = a * cos - b * sin, b * cos + a * sin
    turned = np.stack(pair, axis=-1).reshape(turned.shape) if interleaved else np.concatenate(pair, axis=-1)
    if size == x.shape[-1]:
        return turned
    return np.concatenate((x[..., :start], turned) if last else (turned, x[..., size:]), axis=-1)


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
    over = axis if isinstance(axis, tuple) else (axis,)
    return np.sum(x, axis=axis, keepdims=True) / math.prod(x.shape[each] for each in over)


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


@primitive(NORMALIZATION, per_element=2, per_row=2, keeps="inputs", backward=(3, 4))
def rms(np, x, axis=(-1,)):
    """sqrt(mean(x**2))."""
    return np.sqrt(np.sum(x * x, axis=axis) / math.prod(x.shape[each] for each in axis))


@primitive(NORMALIZATION, per_element=3, per_row=4, keeps="inputs", backward=(7, 8))
def alike(np, x, target, eps):
    """x at the root mean square of `target`, its own mean square taken to be eps at least (Gemma 3n)."""
    return x * (target / np.sqrt(np.maximum(_mean(np, x * x, -1), eps)))


@primitive(NORMALIZATION, per_element=6, per_row=4, keeps="inputs", backward=(10, 7))
def sparse_relu(np, x, deviations, axis=-1):
    """max(x - mean - deviations * standard deviation, 0) (Gemma 3n)."""
    x = x - _mean(np, x, axis)
    return np.maximum(x - np.sqrt(_mean(np, x * x, axis)) * deviations, 0)


@primitive(NORMALIZATION, per_element=2, keeps="inputs", backward=(6, 0))
def share(np, x):
    """x / sum(x)."""
    return x / np.sum(x, axis=-1, keepdims=True)


@primitive(NORMALIZATION, per_element=2, per_row=1, keeps="inputs", backward=(6, 1))
def share_eps(np, x, eps):
    """x / (sum(x) + eps)."""
    return x / (np.sum(x, axis=-1, keepdims=True) + eps)


@primitive(NORMALIZATION, per_element=1, keeps="inputs", backward=(3, 0))
def block_max(np, x, size):
    """The largest of each `size` entries of the last axis, and of those that are left over."""
    whole = x.shape[-1] // size * size
    found = [np.max(np.reshape(x[..., :whole], (*x.shape[:-1], whole // size, size)), axis=-1)]
    if whole < x.shape[-1]:
        found.append(np.max(x[..., whole:], axis=-1, keepdims=True))
    return np.concatenate(found, axis=-1)


# Routing: what decides which experts a token gets passes no gradient -----------------------------------------------


@primitive(ELEMENTWISE, per_element=1)
def sum_(np, x, axis):
    return np.sum(x, axis=axis)


@primitive(ELEMENTWISE, per_element=2)
def limit_groups_max(np, x, groups, count):
    """Minus infinity outside the best groups, by the largest entry of each (DeepSeek V2, sec. 2.2.2)."""
    return _limited(np, x, np.max(np.reshape(x, (*x.shape[:-1], groups, -1)), axis=-1), count)


@primitive(ELEMENTWISE, per_element=1, per_row=2)
def limit_groups_top2(np, x, groups, count):
    """Minus infinity outside the best groups, by the two largest entries of each (DeepSeek V3, sec. 2.1.2)."""
    grouped = np.reshape(x, (*x.shape[:-1], groups, -1))
    best = np.take_along_axis(grouped, np.argsort(grouped, axis=-1)[..., -2:], axis=-1)
    return _limited(np, x, np.sum(best, axis=-1), count)


def _limited(np, x, scores, count):
    best = np.asarray(np.argsort(scores, axis=-1))[..., -count:, None]
    group = np.arange(x.shape[-1]) // (x.shape[-1] // scores.shape[-1])
    return np.where((group == best).any(axis=-2), x, -math.inf)


@primitive(ELEMENTWISE, per_element=7)
def near_best(np, x, jitter):
    """Minus infinity where x is 2 jitter max(|x|, largest) below the largest, or more (SparseMixer-v2)."""
    highest = np.max(x, axis=-1, keepdims=True)
    return np.where(highest - x > np.maximum(np.absolute(x), highest) * (2 * jitter), -math.inf, x)


@primitive(ELEMENTWISE, per_element=1)
def exclude(np, x, index):
    """Minus infinity where the index points."""
    return np.where(np.arange(x.shape[-1]) == np.asarray(index), -math.inf, x)


@primitive(ELEMENTWISE, per_element=1, keeps="index", backward=(1, 0))
def keep_first(np, x, index, capacity):
    """0 where `capacity` earlier places of a sequence have the same index (axes B, then one or more)."""
    index = np.asarray(index)
    flat = np.reshape(index, (len(index), -1))
    rank = np.sum(np.tril(flat[:, :, None] == flat[:, None, :]), axis=-1)
    return np.where(np.reshape(rank <= capacity, index.shape), x, 0)


@primitive(ELEMENTWISE, per_element=1, keeps="index", backward=(2, 0))
def identity_where(np, out, x, index, experts):
    """x where the index is of no expert with weights, else out."""
    return np.where(np.asarray(index) >= experts, x, out)


# Movement: nothing is computed, but bytes may move ---------------------------------------------------------------


@primitive(MOVEMENT)
def choose(np, x, count):
    """The places of the largest entries of the last axis, the largest first."""
    return np.argsort(x, axis=-1, kind="stable")[..., ::-1][
        ..., :count
    ]  # of equals the last: a longer cache changes nothing


@primitive(MOVEMENT)
def choose_blocks(np, x, count, own, local):
    """The places of the largest entries of the last axis; the `local` that end at `own`, a column, come first."""
    place, x = np.arange(x.shape[-1]), x.copy()
    x[..., (place <= own) & (place > own - local)] = math.inf
    return np.argsort(x, axis=-1, kind="stable")[..., ::-1][..., :count]


@primitive(MOVEMENT, keeps="index")
def chosen(np, x, index):
    """The entries of the last axis that the index names."""
    return np.take_along_axis(x, index, axis=-1)


@primitive(MOVEMENT)
def join(np, a, b):
    """One behind the other along the last axis."""
    return np.concatenate((a, b), axis=-1)


@primitive(MOVEMENT)
def lead(np, x, rest):
    """x before the places of the last axis but one."""
    return np.concatenate((x[..., None, :], rest), axis=-2)


@primitive(MOVEMENT)
def behind_all(np, rest, x):
    """x behind the places of the last axis but one."""
    return np.concatenate((rest, x[..., None, :]), axis=-2)


@primitive(MOVEMENT)
def within(np, index, limit):
    """An index with 0 where it is beyond the rows of a table."""
    return np.where(index < limit, index, 0)


@primitive(MOVEMENT, keeps="index")
def gather(np, table, index):
    """Rows of a table by index: reads what it touches."""
    return np.take(table, index, axis=0)


@primitive(MOVEMENT)
def named(np, table, index, experts):
    """Rows of a table of experts by token id; a run on random weights has numbers there that are none."""
    return np.take(table, index, axis=0).astype(int) % experts


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
def neighbours(np, x):
    """Along the last axis: the entries of the next token, those of a token, those of the one before it."""
    whole = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    return np.concatenate((whole[:, 2:], x, whole[:, :-2]), axis=-1)


@primitive(MOVEMENT)
def by_distance(np, x, index, turned):
    """The product with the vector of the distance, for each query (a row of index) and key; turned: x is of keys."""
    index = np.transpose(index) if turned else index
    found = np.take_along_axis(x, np.broadcast_to(index, (*x.shape[:-2], *index.shape)), axis=-1)
    return np.swapaxes(found, -1, -2) if turned else found


@primitive(MOVEMENT)
def cast(np, x):
    """Another storage type; the reference computes in one type throughout."""
    return x


@primitive(MOVEMENT)
def append(np, old, new):
    """New rows behind those that the cache holds, along the axis of keys."""
    return new if old is None else np.concatenate((old, new), axis=1)


# Within a chunk of a recurrence: the second axis holds its tokens, and c is the sum of log decays up to each ----------


@primitive(ELEMENTWISE, per_element=1, backward=(1, 0))
def accumulate(np, x):
    """Sums of all tokens up to each."""
    return np.add.accumulate(x, axis=1)


@primitive(ELEMENTWISE, per_element=3, keeps="output", backward=(3, 1))
def pair_decay(np, c):
    """exp(c_i - c_j), by how much j has decayed at i; 0 where j comes after i. Pairs are the last axes."""
    c = np.moveaxis(c, 1, -1)
    return np.exp(np.where(lower(np, c.shape[-1]), c[..., :, None] - c[..., None, :], -math.inf))


@primitive(ELEMENTWISE, per_element=2, keeps="output", backward=(3, 1))
def decay_to_end(np, c):
    """exp(c_end - c): by how much each token has decayed at the end of its chunk."""
    return np.exp(c[:, -1:] - c)


@primitive(ELEMENTWISE, per_element=1, backward=(1, 0))
def earlier(np, x):
    """x where the last axis is not after the one before it, else 0."""
    return np.where(lower(np, x.shape[-1]), x, 0.0)


@primitive(ELEMENTWISE, per_element=1, keeps="inputs", backward=(4, 2))
def solve(np, a, b):
    """x in (1 + what is below the diagonal of a) x = b, row after row: 1 for each entry of a and column of b."""
    x = b[..., :0, :]
    for i in range(a.shape[-1]):
        row = b[..., i : i + 1, :] - np.matmul(a[..., i : i + 1, :i], x)
        x = np.concatenate((x, row), axis=-2)
    return x


def lower(np, size):
    """Booleans, size x size: the second place is not after the first."""
    places = np.arange(size)
    return places[:, None] >= places


# Gates of a recurrence -------------------------------------------------------------------------------------------


@primitive(ELEMENTWISE, per_element=4, keeps="inputs", backward=(7, 0))
def rest_root(np, x):
    """sqrt(1 - exp(x)**2): what keeps the variance when a state decays by exp(x) (De et al. 2024, eq. 4)."""
    return np.sqrt(1 - np.exp(x * 2))


@primitive(ELEMENTWISE, per_element=1, backward=(1, 0))
def begin(np, x, first):
    """1 at the first token of a sequence, else x."""
    return np.where(first, 1.0, x)


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


@primitive(MOVEMENT)
def windows(np, held, x, count, size):
    """`count` windows of `size` tokens, the first of them."""
    whole = np.concatenate((held, x), axis=1)
    return np.reshape(whole[:, : count * size], (x.shape[0], count, size, *x.shape[2:]))


@primitive(MOVEMENT)
def behind(np, held, x, count):
    """What comes behind the first `count` tokens."""
    return np.concatenate((held, x), axis=1)[:, count:]


@primitive(MOVEMENT)
def delay(np, held, x):
    """For each token the one before it."""
    return np.concatenate((held, x), axis=1)[:, : x.shape[1]]


@primitive(MOVEMENT)
def spread(np, x, at, shape):
    """x for each place of a new axis: a view."""
    return np.broadcast_to(np.expand_dims(x, at), shape)
