"""Rotary inner products depend on i - j only; those of added positions have cross terms (p. 31-35).

The reference kernels themselves run here, on SymPy's symbols: `primitives.rotate` and `positions.sinusoids`.
"""

import math

import numpy
import sympy
from sympy.simplify.fu import TR10i as of_sums  # products of sines and cosines as those of sums of angles

from ..components.positions import sinusoids
from ..primitives import PRIMITIVES
from .steps import Derivation


class Symbolic:
    """What stands in for NumPy where entries are symbols: its functions, with SymPy's sine and cosine."""

    sin, cos = (numpy.vectorize(each, otypes=[object]) for each in (sympy.sin, sympy.cos))

    def __getattr__(self, name):
        return getattr(numpy, name)

    @staticmethod
    def arange(size):
        return numpy.array([sympy.Integer(each) for each in range(size)], dtype=object)


def turned(np, vector, position, angles):
    """A query or key turned to its position, by the reference kernel."""
    return PRIMITIVES["rotate"].kernel(
        np, vector, np.cos(position * angles), np.sin(position * angles), len(vector), False
    )


def rope():
    """Shift both positions and nothing changes; with added positions it does."""
    i, j, s = sympy.symbols("i j s", integer=True)
    angles = numpy.array(sympy.symbols("theta_1 theta_2", positive=True), dtype=object)
    q, k = (numpy.array(sympy.symbols(f"{name}1:5"), dtype=object) for name in "qk")
    made = Derivation(
        "A head of four entries, so two pairs, each turned by its own angle a position: the kernel that the reference "
        "forward runs, on symbols."
    )
    inner = sympy.expand((turned(Symbolic(), q, i, angles) * turned(Symbolic(), k, j, angles)).sum())
    made.step("q at i times k at j, off the kernel", inner)
    summed = made.step("with the sums of angles", sympy.collect(of_sums(inner), q.tolist()))
    shifted = of_sums(inner.subs({i: i + s, j: j + s}, simultaneous=True))
    moved = sympy.expand(shifted - summed)
    lag = sympy.Symbol("t", integer=True)  # i - j
    by_lag = sympy.expand(of_sums(inner.subs(i, j + lag)))
    made.step("with i - j = t", by_lag)
    made.reached("its dependence on j alone, at i - j = t", sympy.diff(by_lag, j), sympy.S.Zero, (j,), "0")
    made.reached("change when both positions move by s", moved, sympy.S.Zero, (s,), "0: g(x, y, i - j)")
    x, y, a, c = sympy.symbols("x y p_i p_j")
    scaled = additive(i, j, x, y, a, c)
    made.reached(
        "added positions, by factors: token x or p_i times token y or p_j",
        scaled,
        x * y + x * c + a * y + a * c,
        (x, y, a, c),
        "v_x.v_y + v_x.PE_j + PE_i.v_y + PE_i.PE_j",
    )
    added = additive(i, j)
    change = sympy.expand(of_sums(added.subs({i: i + s, j: j + s}, simultaneous=True)) - of_sums(added))
    made.step("what sinusoids change when both positions move by s (two entries)", change)
    made.step(
        "of which the product of the positions alone",
        sympy.simplify(change.subs(dict.fromkeys(sympy.symbols("x1 x2 y1 y2"), 0))),
    )
    made.good(
        "64 entries, 1,000 pairs moved by up to 10,000 places: rotary scores change by less than "
        f"{10.0 ** math.ceil(math.log10(numerically('rotary'))):.0e}, which is rounding"
    )
    made.misleads(f"of the same vectors with sinusoids added they change by up to {numerically('added'):.2f}")
    made.misleads(
        "the score depends on i - j and on both contents; and rounding in bf16, or rescaled frequencies that "
        "depend on the "
        "length, break it slightly"
    )
    return made


def additive(i, j, x=1, y=1, a=1, c=1):
    """(x token + a row i) . (y token + c row j) of width 2, rows off the reference's own table of sines and cosines."""
    tokens = [numpy.array(sympy.symbols(f"{name}1:3"), dtype=object) for name in "xy"]
    rows = sinusoids(Symbolic(), numpy.array([i, j], dtype=object), 2)
    return sympy.expand(((x * tokens[0] + a * rows[0]) * (y * tokens[1] + c * rows[1])).sum())


def numerically(way, size=64, pairs=1000):
    """The largest change of an inner product, |q| |k| = 1, when both positions move."""
    random = numpy.random.default_rng(0)
    q, k = (each / numpy.linalg.norm(each, axis=-1, keepdims=True) for each in random.normal(size=(2, pairs, size)))
    i, j, shift = random.integers(0, 10000, size=(3, pairs))
    angles = 10000.0 ** -(numpy.arange(0, size, 2) / size)

    def score(i, j):
        if way == "added":
            return ((q + sinusoids(numpy, i, size)) * (k + sinusoids(numpy, j, size))).sum(-1)
        a, b = (
            numpy.stack(
                [
                    PRIMITIVES["rotate"].kernel(numpy, v, numpy.cos(p * angles), numpy.sin(p * angles), size, False)
                    for v, p in zip(vectors, places)
                ]
            )
            for vectors, places in ((q, i), (k, j))
        )
        return (a * b).sum(-1)

    return float(numpy.abs(score(i + shift, j + shift) - score(i, j)).max())
