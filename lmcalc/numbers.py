"""Arithmetic that runs alike on ints, SymPy expressions and float arrays.

Cost code uses `+ - *` and the helpers below, and never compares sizes. A cost is a sum of terms; a term is an exact
int coefficient times factors that are not ints ("atoms": symbols, or arrays of a sweep). On int workloads there are
no atoms, and everything stays exact. In a sweep, terms with the same atoms collapse before any array is touched,
so that a million points cost a handful of array operations.
"""

import sys


def _like(value):
    """'int', 'array' or 'symbol'. Looks in sys.modules, and imports nothing to test for a type."""
    if isinstance(value, int):
        return "int"
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic, float)):
        return "array"
    return "array" if hasattr(value, "__array_ufunc__") or isinstance(value, float) else "symbol"


def monomial(*sizes):
    """The product of sizes as (int coefficient, tuple of atoms).

    >>> monomial(2, 3, 5)
    (30, ())
    """
    coefficient, atoms = 1, ()
    for size in sizes:
        if type(size) is int:
            coefficient *= size
        else:
            atoms += (size,)
    return coefficient, atoms


def times(term, *sizes):
    """A term multiplied by further sizes."""
    coefficient, atoms = monomial(*sizes)
    return term[0] * coefficient, term[1] + atoms


class Sum:
    """A sum of terms, collected by their atoms; exact in its coefficients.

    >>> total = Sum()
    >>> total.add((6, ())); total.add((10**20, ()))
    >>> total.value()
    100000000000000000006
    """

    __slots__ = ("terms",)

    def __init__(self, terms=()):
        self.terms = {}
        for term in terms:
            self.add(term)

    def add(self, term, factor=1):
        """Add `factor` (an int) times a term."""
        coefficient, atoms = term
        key = tuple(sorted(map(id, atoms))) if atoms else ()
        held = self.terms.get(key)
        self.terms[key] = (coefficient * factor if held is None else held[0] + coefficient * factor, atoms)

    def update(self, other):
        """Add another Sum."""
        for term in other.terms.values():
            self.add(term)
        return self

    def value(self):
        """The sum as one number: int, float array or SymPy expression; to the nearest whole one if it has fractions."""
        total, fraction, whole = 0, 0, True
        for coefficient, atoms in self.terms.values():
            if coefficient:
                whole = whole and type(coefficient) is int
                if atoms:
                    total = total + value((coefficient, atoms))
                else:
                    fraction = coefficient
        if whole:
            return total + fraction
        if type(total) is int:
            return (2 * fraction.numerator + fraction.denominator) // (2 * fraction.denominator)
        return nearest(total + (float(fraction) if _like(total) == "array" else fraction))


def value(term):
    """A term as one number."""
    coefficient, atoms = term
    if not atoms:
        return coefficient
    product = atoms[0]
    for atom in atoms[1:]:
        product = product * atom
    if coefficient == 1:
        return product
    # NumPy would turn an int beyond 64 bits into an object array
    return (float(coefficient) if _like(product) == "array" else coefficient) * product


def minimum(a, b):
    """The smaller of two sizes.

    >>> minimum(3, 5)
    3
    """
    kinds = _like(a), _like(b)
    if kinds == ("int", "int"):
        return min(a, b)
    if "symbol" in kinds:
        import sympy

        return sympy.Min(a, b)
    import numpy

    return numpy.minimum(a, b)


def maximum(a, b):
    """The larger of two sizes."""
    kinds = _like(a), _like(b)
    if kinds == ("int", "int"):
        return max(a, b)
    if "symbol" in kinds:
        import sympy

        return sympy.Max(a, b)
    import numpy

    return numpy.maximum(a, b)


def exact_div(a, b):
    """a / b where b (an int) is known to divide a.

    >>> exact_div(12, 4)
    3
    """
    kind = _like(a)
    if kind == "int":
        quotient, rest = divmod(a, b)
        if rest:
            raise ArithmeticError(f"{b} does not divide {a}")
        return quotient
    if kind == "array":
        return a / b
    import sympy

    return a / sympy.Integer(b)


def ceil_div(a, b):
    """a / b rounded up.

    >>> ceil_div(33, 32)
    2
    """
    if b == 1:
        return a
    kinds = _like(a), _like(b)
    if kinds == ("int", "int"):
        return -(-a // b)
    if "symbol" in kinds:
        import sympy

        return sympy.ceiling(sympy.sympify(a) / b)
    import numpy

    return numpy.ceil(a / b)


def floor_div(a, b):
    """a / b rounded down.

    >>> floor_div(33, 32)
    1
    """
    kinds = _like(a), _like(b)
    if kinds == ("int", "int"):
        return a // b
    if "symbol" in kinds:
        import sympy

        return sympy.floor(sympy.sympify(a) / b)
    import numpy

    return numpy.floor(a / b)


def seen(n, window=None):
    """(query, key) pairs among the first n positions when each query sees itself and up to window - 1 before it.

    >>> seen(4), seen(4, window=2)
    (10, 7)
    """
    m = n if window is None else minimum(n, window)
    triangle = exact_div(m * (m + 1), 2)
    return triangle if window is None else triangle + (n - m) * window


def causal_pairs(past, new, window=None):
    """Allowed (query, key) pairs of `new` queries that follow `past` tokens.

    >>> causal_pairs(0, 4), causal_pairs(10, 1), causal_pairs(10, 1, window=4)
    (10, 11, 4)
    """
    if window is None:
        return new * past + exact_div(new * (new + 1), 2)
    return seen(past + new, window) - seen(past, window)


def touched(each, experts, used, choices, tokens, skew=0):
    """The bytes of the experts that `tokens` tokens are expected to choose, at `each` bytes an expert: a whole number.

    A token chooses expert i with probability p_i, tokens do so independently: sum over experts of 1 - (1 - p_i)^tokens.
    p_i = used / choices where all are alike; with a skew s it goes as i^-s (Zipf's law), scaled so that the p_i of all
    choices add up to `used`, none above 1. The weights belong to the first `experts` of the choices.

    >>> touched(1000, experts=8, used=2, choices=8, tokens=3)
    4625
    """
    if skew:
        miss = [1 - p for p in _popularity(choices, used, skew)[:experts]]
        missed = sum([p**tokens for p in miss])
        return nearest(each * (experts - missed))
    kinds = {_like(size) for size in (each, experts, used, choices, tokens)}
    if kinds == {"int"}:
        whole = each * experts
        if tokens * used > 128 * choices:  # less than e^-128 of the experts are missed
            return whole
        hit, every = choices**tokens - (choices - used) ** tokens, choices**tokens
        return (2 * whole * hit + every) // (2 * every)
    if "symbol" in kinds:
        import sympy

        used = sympy.sympify(used)
    return nearest(each * experts * (1 - (1 - used / choices) ** tokens))


def nearest(x):
    """A float, array of floats or symbolic number to the nearest whole one, halves upwards."""
    if isinstance(x, float):
        return int((x + 0.5) // 1)
    if _like(x) == "array":
        import numpy

        return numpy.floor(x + 0.5)
    import sympy

    return sympy.floor(x + sympy.Rational(1, 2))


_POPULARITY = {}


def _popularity(choices, used, skew):
    """How likely a token is to choose each of the choices, the most popular first."""
    if not (isinstance(choices, int) and isinstance(used, int)):
        raise TypeError("a skew needs numbers of experts that are ints")
    found = _POPULARITY.get((choices, used, skew))
    if found is None:
        share = [rank**-skew for rank in range(1, choices + 1)]
        certain, rest = 0, sum(share)
        while used - certain and (used - certain) * share[certain] >= rest:  # no expert is chosen twice by a token
            rest -= share[certain]
            certain += 1
        scale = (used - certain) / rest if rest > 0 else 0.0
        found = [1.0] * certain + [each * scale for each in share[certain:]]
        found = _POPULARITY[choices, used, skew] = found
    return found
