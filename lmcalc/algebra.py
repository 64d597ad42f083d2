"""Formulas for people: sums of products collected and factored, and printed in the order in which one reads them.

Only what makes formulas imports this file, since it imports SymPy.
"""

import math
from functools import reduce

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

# letters in reading order: layers, workload, sizes; others follow by name
ORDER = {
    name: at
    for at, name in enumerate("L L_enc B T P S C M W D N K R G H Z U C_q C_kv X J Y Q D_in F F_s E A V".split())
}


def symbol(name):
    """A size: a positive integer.

    >>> symbol("D").is_positive
    True
    """
    return sympy.Symbol(name, positive=True, integer=True)


# Collecting ------------------------------------------------------------------------------------------------------


def collected(terms, workload):
    """The sum of products, those with the same workload factor (in `workload` symbols) added, then factored.

    >>> B, T, D, F = map(symbol, "BTDF")
    >>> text(collected([2 * B * T * D * F, 4 * B * T * D * F, B * T * D], {B, T}))
    'B*T*D*(6*F + 1)'
    """
    found = {}
    for term in terms:
        for each in sympy.Add.make_args(sympy.sympify(term)):
            size, work = sympy.S.One, sympy.S.One
            for factor in sympy.Mul.make_args(each):
                if factor.free_symbols & workload:
                    number, factor = _factored(factor).as_coeff_Mul()
                    size, work = size * number, work * factor
                else:
                    size *= factor
            found.setdefault(work, []).append(size)
    products = []
    for work, sizes in found.items():
        size = shortest(sympy.Add(*sizes))
        if size != 0:
            products.append(_times(size, work))
    return nested(products)


_FACTORED = {}
MOST_FLOORS = 2  # each is one more variable of a polynomial, and to factor takes time that grows fast with those


def _factored(factor):
    found = _FACTORED.get(factor)
    if found is None:
        found = factor
        if factor.is_Add:
            each = [nested(sympy.expand(factor).args), factor]
            if len(factor.atoms(sympy.floor)) <= MOST_FLOORS:
                each.insert(0, sympy.factor(factor))
            found = min(each, key=lambda one: len(str(one)))
        _FACTORED[factor] = found
    return found


def shortest(expression):
    """A polynomial in its shortest form that is found: factored, or nested by common factors."""
    expression = sympy.expand(expression)
    if not expression.is_Add:
        return expression
    found = [nested(expression.args)]
    if len(expression.args) <= 40 and not expression.has(sympy.floor, sympy.ceiling):
        factored = sympy.factor(expression)
        if factored.is_Mul:
            found.append(_times(*[nested(each.args) if each.is_Add else each for each in factored.args]))
    return min(found, key=lambda each: len(str(each)))


def nested(terms):
    """The sum of products with common factors taken out, again and again; sums in the products stay as they are."""
    terms = [each for term in terms for each in sympy.Add.make_args(term) if each != 0]
    if len(terms) < 2:
        return terms[0] if terms else sympy.S.Zero
    split = [_powers(term) for term in terms]
    number = reduce(_gcd, [abs(each[0]) for each in split])
    bases = dict.fromkeys(base for _, powers in split for base in powers)
    common = {base: min(powers.get(base, 0) for _, powers in split) for base in bases}
    outside = [base**power for base, power in common.items() if power]
    rest = [(n / number, {base: power - common[base] for base, power in powers.items() if power != common[base]}
             | {base: -power for base, power in common.items() if power and base not in powers})
            for n, powers in split]  # fmt: skip
    count = {base: sum(powers.get(base, 0) > 0 for _, powers in rest) for base in bases}
    best = max(bases, key=lambda base: (count[base], -_place(base)))
    whole = [_times(sympy.Mul(n, *[base**power for base, power in powers.items()])) for n, powers in rest]
    if count[best] >= 2 and len(terms) > 2:
        group = [term for term, (_, powers) in zip(whole, rest) if powers.get(best, 0) > 0]
        others = [term for term, (_, powers) in zip(whole, rest) if powers.get(best, 0) <= 0]
        inside = sympy.Add(*[each for part in (group, others) for each in [nested(part)] if part])
    else:
        inside = sympy.Add(*whole)
    return _times(sympy.Mul(number, *outside), inside)


def _gcd(a, b):
    return sympy.Rational(math.gcd(a.p, b.p), math.gcd(a.q, b.q))


def _powers(term):
    """(number, {base: integer power}) of a product."""
    number, powers = sympy.S.One, {}
    for factor in sympy.Mul.make_args(term):
        if factor.is_Rational:
            number *= factor
            continue
        base, power = factor.as_base_exp()
        if not power.is_Integer:
            base, power = factor, sympy.S.One
        powers[base] = powers.get(base, 0) + int(power)
    return number, powers


def _times(*factors):
    """Their product; a number before a sum is not multiplied out."""
    parts = [part for each in factors for part in sympy.Mul.make_args(each)]
    number = sympy.Mul(*[part for part in parts if part.is_Rational])
    others = [part for part in parts if not part.is_Rational]
    if number != 1 and len(others) == 1 and others[0].is_Add:
        return sympy.Mul(number, others[0], evaluate=False)
    return sympy.Mul(number, *others)


# Printing --------------------------------------------------------------------------------------------------------


def text(expression):
    """The expression in SymPy's syntax, factors and summands in reading order.

    >>> text(symbol("N") * symbol("D") * 2 + 1 - symbol("T"))
    '2*D*N - T + 1'
    """
    return StrPrinter({"order": "none"}).doprint(arranged(expression))


def latex(expression):
    """The same as LaTeX.

    >>> latex(symbol("N") * symbol("D") / symbol("K"))
    '\\\\frac{D N}{K}'
    """
    return LatexPrinter({"order": "none"}).doprint(arranged(expression))


def arranged(expression):
    """The same expression, its products and sums in reading order, not evaluated."""
    expression = sympy.sympify(expression)
    if expression.is_Atom:
        return expression
    if expression.is_Mul:
        number, others = sympy.S.One, []
        for factor in expression.args:
            if factor.is_Rational:
                number *= factor
            else:
                others.append(arranged(factor))
        others.sort(key=_rank)
        return sympy.Mul(*([] if number == 1 else [number]), *others, evaluate=False)
    if expression.is_Add:
        terms = sorted((arranged(each) for each in expression.args), key=_summand)
        first = next((each for each in terms if not each.could_extract_minus_sign()), terms[0])
        return sympy.Add(first, *[each for each in terms if each is not first], evaluate=False)
    if expression.is_Pow:
        return sympy.Pow(arranged(expression.base), arranged(expression.exp), evaluate=False)
    return expression.func(*[arranged(each) for each in expression.args], evaluate=False)


def _rank(factor):
    """Where a factor stands in its product."""
    base = factor.base if factor.is_Pow else factor
    return (0 if base.is_Symbol else 2 if base.is_Add else 1, _place(base), str(factor))


def _place(base):
    return min((ORDER.get(each.name, len(ORDER)) for each in base.free_symbols), default=len(ORDER) + 1)


def _summand(term):
    """Where a summand stands in its sum: products of more factors first, numbers last."""
    factors = [each for each in sympy.Mul.make_args(term) if not each.is_Rational]
    size = sum(abs(each.exp) if each.is_Pow and each.exp.is_Integer else 1 for each in factors)
    return (-size, term.could_extract_minus_sign(), [_rank(each) for each in factors], str(term))
