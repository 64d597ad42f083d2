"""Gradients and examples of the primitives of recurrences: further rows for the tables of gradients.py."""

import numpy

from lmcalc.primitives import PRIMITIVES, lower


def clamp(np, g, x, output, low, high):
    return (np.where(np.logical_and(output > low, output < high), g, 0.0),)


def exp(np, g, x, output):
    return (g * output,)


def divide(np, g, a, b, output):
    first = g / b
    return first, -(first * a / b)


def maximum(np, g, a, b, output):
    first = a > b
    return np.where(first, g, 0.0), np.where(first, 0.0, g)


def accumulate(np, g, x, output):
    return (np.add.accumulate(g[:, ::-1], axis=1)[:, ::-1],)


def pair_decay(np, g, c, output):
    h = g * output
    return (np.moveaxis(np.sum(h, axis=-1) - np.sum(h, axis=-2), -1, 1),)


def decay_to_end(np, g, c, output):
    h = g * output
    away = -h
    return (np.concatenate((away[:, :-1], away[:, -1:] + np.sum(h, axis=1, keepdims=True)), axis=1),)


def earlier(np, g, x, output):
    return (np.where(lower(np, g.shape[-1]), g, 0.0),)


def solve(np, g, a, b, output):
    kernel = PRIMITIVES["solve"].kernel
    x = kernel(np, a, b)
    back = np.swapaxes(a, -1, -2)[..., ::-1, ::-1]
    db = kernel(np, back, g[..., ::-1, :])[..., ::-1, :]
    below = numpy.tril(numpy.ones(a.shape[-2:], dtype=bool), -1)
    return -np.where(below, np.einsum("zqh,zsh->zqs", db, x), 0.0), db


def rest_root(np, g, x, output):
    e = np.exp(x * 2)
    return (-(g * e / np.sqrt(1 - e)),)


def begin(np, g, x, output, first):
    return (np.where(first, 0.0, g),)


GRADIENTS = {
    "clamp": clamp, "exp": exp, "divide": divide, "maximum": maximum, "accumulate": accumulate,
    "pair_decay": pair_decay, "decay_to_end": decay_to_end, "earlier": earlier, "solve": solve, "rest_root": rest_root,
    "begin": begin,
}  # fmt: skip


def normal(random, *shape):
    """Random numbers away from 0 and from one another."""
    x = random.standard_normal(shape)
    return x + 0.05 * (1 - 2 * (x < 0))


def pair(random, m, n):
    return [normal(random, m, n), normal(random, m, n)], {}, m * n, m


EXAMPLES = {
    "clamp": lambda random, m, n: ([normal(random, m, n)], {"low": -0.3, "high": 0.8}, m * n, m),
    "exp": lambda random, m, n: ([normal(random, m, n)], {}, m * n, m),
    "divide": pair,
    "maximum": pair,
    "accumulate": lambda random, m, n: ([normal(random, m, n, 3)], {}, m * n * 3, m * 3),
    "pair_decay": lambda random, m, n: ([normal(random, m, n, 2)], {}, m * n * n * 2, m * n * 2),
    "decay_to_end": lambda random, m, n: ([normal(random, m, n, 2)], {}, m * n * 2, m * 2),
    "earlier": lambda random, m, n: ([normal(random, m, n, n)], {}, m * n * n, m),
    "solve": lambda random, m, n: (
        [normal(random, m, n, n) / 3, normal(random, m, n, 3)],
        {},
        m * n * n * 3,
        m * n * n,
    ),
    "rest_root": lambda random, m, n: ([-numpy.abs(normal(random, m, n))], {}, m * n, m),
    "begin": lambda random, m, n: ([normal(random, m, n)], {"first": numpy.arange(m)[:, None] == 0}, m * n, m),
}
