"""Keys attended, S, in place of the past, P: a formula as its reader expects it.

At decode S = P + 1, and what a window or a chunk makes cases of becomes one formula of Min(S, window), by proof of the
cases, not by pattern: SymPy knows no rule for it.
"""

from functools import cache

import sympy

from .symbolic import P, S, T


@cache
def plain(expression, phase):
    """The same with keys attended, S, in place of the past, P."""
    expression = sympy.sympify(expression)
    if not expression.has(P):
        return expression
    if phase == "decode":
        return _merged(expression).xreplace({P: S - 1})
    return expression.xreplace({P: S - T})


def _merged(expression):
    """At decode, sizes that a window or chunk makes cases of, as one formula."""
    if expression.is_Atom or not expression.has(sympy.Min, sympy.floor):
        return expression
    cases = [each for each in expression.atoms(sympy.Min, sympy.floor) if each.has(P)]
    sizes = set().union(*[each.free_symbols for each in cases])
    if cases and expression.free_symbols <= sizes | {P}:
        found = (_at_window if all(isinstance(each, sympy.Min) for each in cases) else _at_chunk)(expression, cases)
        if found is not None:
            return found
    return expression.func(*[_merged(each) for each in expression.args])


def _at_chunk(expression, floors):
    """Of floor(P / size) = f alone, if floor((P + 1) / size) may be taken as f where it is f + 1, too."""
    if len(floors) != 2 or any(type(each) is not sympy.floor for each in floors):
        return None
    inner = {floor.args[0]: floor for floor in floors}
    size = next((P / argument for argument in inner if not (argument / P).has(P)), None)
    if size is None:
        return None
    after = next((floor for argument, floor in inner.items() if sympy.expand(argument - (P + 1) / size) == 0), None)
    whole = sympy.Dummy("f", integer=True, nonnegative=True)
    before = inner[P / size]
    if after is None or after is before:
        return None
    same = sympy.expand(expression.xreplace({before: whole, after: whole}))
    next_one = sympy.expand(expression.xreplace({before: whole, after: whole + 1}))
    if sympy.expand((same - next_one).xreplace({P: size * (whole + 1) - 1})) != 0:
        return None
    return same.xreplace({whole: before}).xreplace({P: S - 1})


def _at_window(expression, mins):
    """A formula of Min(S, w). Below, for S = P + 1 <= w, every Min(P + a, c) is its first argument, above its second.

    If what is found above is what is found below with w for S, then both are the one below with Min(S, w) for S.
    """
    below, above, ends = {}, {}, []
    for one in mins:
        if len(one.args) != 2:
            return None
        grows, stays = sorted(one.args, key=lambda each: not each.has(P))
        below[one], above[one] = grows, stays
        ends.append(sympy.expand(stays - (grows - P) + 1))
    least = min(
        ends, key=lambda end: max(sympy.expand(end - other) if (end - other).is_Integer else 9 for other in ends)
    )
    if any(sympy.expand(end - least) not in (0, 1) for end in ends):
        return None
    low = sympy.expand(expression.xreplace(below).xreplace({P: S - 1}))
    high = sympy.expand(expression.xreplace(above).xreplace({P: S - 1}))
    if sympy.expand(low.xreplace({S: least}) - high) != 0:
        return None
    return sympy.factor(low).xreplace({S: sympy.Min(S, least)})
