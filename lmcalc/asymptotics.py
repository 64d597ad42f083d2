"""Leading orders: what is left of a formula when one size is much larger than another, by SymPy.

A condition is text. `S >> D` (or `D << S`): S grows and everything else stays. `B -> oo`: the same. `S > W`: an
assumption that decides Min, Max and powers. `T = S`, `H = D/N`: a substitution. Conditions are taken in their order.

Min and Max are decided first, since SymPy takes no limits through them. floor(x) and ceiling(x) of an x that grows are
x - t and x + t with 0 <= t < 1: where t is in the leading order there is no limit, and that is said.
"""

import ast
import math
import re

import sympy

from .algebra import text as shown_in_order
from .errors import InputError, unknown

GROWTH = sympy.Dummy("growth", positive=True)
MOST_SUMMANDS, MOST_BITS = 10, 1000  # of an expression in a condition, written out, and of a number in it


class Condition:
    """One condition: kind ("grows", "larger", "equal"), the symbol it is about, and what stands on its other side."""

    def __init__(self, text, known):
        self.text = text
        found = re.fullmatch(r"\s*(.+?)\s*(>>|<<|->|>=|<=|>|<|==|=)\s*(.+?)\s*", text)
        if found is None:
            raise InputError(f"--when {text!r}: allowed: 'S >> D', 'B -> oo', 'S > W' or 'T = S'")
        left, sign, right = found.groups()
        if sign in ("<<", "<", "<="):
            left, sign, right = right, sign.replace("<", ">"), left
        self.about = name(left, known, text)
        if sign == "->":
            if right.lower() not in ("oo", "inf", "infinity"):
                raise InputError(f"--when {text!r}: sizes are positive integers; allowed: {left} -> oo")
            self.kind, self.other, self.symbols = "grows", None, {self.about}
        else:
            self.kind = {">>": "grows", "=": "equal", "==": "equal"}.get(sign, "larger")
            self.other = parsed(right, known, text)
            self.symbols = {self.about, *self.other.free_symbols}  # as given: `other` may be replaced
            if self.kind != "equal" and self.about in self.other.free_symbols:
                raise InputError(f"--when {text!r}: {left} is on both sides")


def name(text, known, where):
    """The symbol of that name; InputError says which there are."""
    if text not in known:
        raise InputError(f"--when {where!r}: {unknown('symbol', text, known)}")
    return known[text]


def parsed(text, known, where):
    """An expression of + - * / ** over symbols and numbers."""

    def walk(node):
        if isinstance(node, ast.BinOp) and type(node.op) in (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow):
            a, b = walk(node.left), walk(node.right)
            if isinstance(node.op, ast.Pow) and not (b.is_Integer and abs(b) <= 9):
                raise InputError(f"--when {where!r}: allowed as a power: an integer from -9 to 9")
            if (isinstance(node.op, ast.Div) and b == 0) or (isinstance(node.op, ast.Pow) and a == 0 and b < 0):
                raise InputError(f"--when {where!r}: division by 0")
            if _summands(node.op, a, b) > MOST_SUMMANDS:
                raise InputError(f"--when {where!r}: allowed: up to {MOST_SUMMANDS} summands, written out")
            if isinstance(node.op, ast.Pow) and a.is_Rational and _bits(a) * abs(b) > MOST_BITS:
                raise InputError(f"--when {where!r}: allowed: numbers of up to {MOST_BITS:,} bits")
            return {
                ast.Add: a + b,
                ast.Sub: a - b,
                ast.Mult: a * b,
                ast.Div: a / b if b != 0 else a,
                ast.Pow: a**b if b.is_Integer else a,
            }[type(node.op)]
        if isinstance(node, ast.Name):
            return name(node.id, known, where)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and abs(node.value) < 2**MOST_BITS:
            return sympy.Rational(str(node.value))
        raise InputError(f"--when {where!r}: allowed: symbols, numbers, + - * / **")

    try:
        return walk(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"--when {where!r}: {text!r} is no expression of symbols and numbers") from None


def _summands(op, a, b):
    """At most how many summands `a op b` has, written out."""
    left, right = (len(sympy.Add.make_args(sympy.expand(each))) for each in (a, b))
    if isinstance(op, ast.Pow):
        return math.comb(left + abs(int(b)) - 1, left - 1)
    return left + right if isinstance(op, (ast.Add, ast.Sub)) else left * right


def _bits(number):
    return number.p.bit_length() + number.q.bit_length()


class Assumptions:
    """Which sizes are larger than others: [(larger, smaller)]."""

    def __init__(self, pairs=()):
        self.pairs = list(pairs)

    def add(self, larger, smaller, where=""):
        """One more; InputError where it says the contrary of those before."""
        if self.sign(smaller - larger) is True:
            raise InputError(f"--when {where!r} contradicts what was assumed before")
        self.pairs.append((larger, smaller))

    def sign(self, difference):
        """True where it is at least 0, False where it is at most 0, None where nobody knows."""
        for larger, smaller in self.pairs:
            more = sympy.Dummy(f"{larger} above", nonnegative=True)
            difference = difference.subs(larger, smaller + more)
        difference = sympy.together(sympy.expand(difference)) if difference.free_symbols else difference
        if difference.is_nonnegative or sympy.expand(difference).is_nonnegative:
            return True
        if difference.is_nonpositive or sympy.expand(difference).is_nonpositive:
            return False
        if difference.has(GROWTH):
            top = split(sympy.expand(difference))[0]
            if top is not None and top.is_positive:
                return True
            if top is not None and top.is_negative:
                return False
        return None


def decided(expression, assumed, growing=False):
    """The expression with Min, Max, floor, ceiling and powers decided, as far as the assumptions say."""
    if expression.is_Atom:
        return expression
    whole = expression.func(*[decided(each, assumed, growing) for each in expression.args])
    if isinstance(whole, (sympy.Min, sympy.Max)):
        return _extreme(whole, assumed)
    if not whole.has(GROWTH) or not growing:
        return whole
    if isinstance(whole, sympy.floor):
        return whole.args[0] - sympy.Dummy("rounding", nonnegative=True)
    if isinstance(whole, sympy.ceiling):
        return whole.args[0] + sympy.Dummy("rounding", nonnegative=True)
    if whole.is_Pow and whole.exp.has(GROWTH):
        base = whole.base
        if assumed.sign(base) and assumed.sign(1 - base) and base != 1:
            return sympy.S.Zero  # a share of what is missed, to a power that grows
        raise InputError(
            f"({shown(base)})**(...) grows or shrinks as nobody knows: say which is larger of {_names(base)}, "
            "with one more --when"
        )
    return whole


def shown(expression):
    """The expression as a user knows it."""
    return shown_in_order(expression.subs(GROWTH, 1))


def _names(expression):
    return " and ".join(sorted(each.name for each in expression.free_symbols if each != GROWTH))


def _extreme(whole, assumed):
    """Min or Max of those arguments that may be the one."""
    least, kept = isinstance(whole, sympy.Min), list(whole.args)
    for a in whole.args:
        for b in whole.args:
            if a is not b and a in kept and b in kept:
                larger = assumed.sign(a - b)
                if larger is not None:
                    kept.remove(a if larger is least else b)
    found = whole.func(*kept)
    if len(kept) > 1 and found.has(GROWTH):
        raise InputError(
            f"{shown(found)} has no leading order by itself: say which is larger of {_names(found)}, "
            "with one more --when such as 'S > W'"
        )
    return found


def split(expression):
    """(leading terms in GROWTH, which is set to 1, and the rest) of an expanded sum; Nones where it has no powers."""
    by_power = {}
    for term in sympy.Add.make_args(expression):
        factor, power = term.as_coeff_exponent(GROWTH)
        if factor.has(GROWTH) or not power.is_Rational:
            return None, None
        by_power.setdefault(power, []).append(factor)
    for power in sorted(by_power, reverse=True):
        top = sympy.Add(*by_power[power])
        if sympy.simplify(top) != 0:
            return top, sympy.Add(*[each for other, terms in by_power.items() if other != power for each in terms])
    return sympy.S.Zero, sympy.S.Zero


def leading(expression, scaled, assumed=None):
    """(leading order, what it leaves out) when the sizes in `scaled` are replaced as it says, and GROWTH goes to oo.

    >>> from lmcalc.algebra import symbol
    >>> S, D, W = map(symbol, "SDW")
    >>> leading(4 * S * D + D**2 + sympy.Min(S, W), {S: S * GROWTH})
    (4*D*S, D**2 + W)
    """
    assumed = assumed or Assumptions()
    grown = decided(sympy.sympify(expression).subs(scaled, simultaneous=True), assumed, growing=True)
    numerator, denominator = sympy.fraction(sympy.together(grown)) if _is_ratio(grown) else (grown, sympy.S.One)
    top, rest = split(sympy.expand(numerator))
    below, other = split(sympy.expand(denominator))
    if top is None or below is None:
        raise InputError("no leading order is found: it does not grow as a power")
    if any(each.name == "rounding" for part in (top, below) for each in part.free_symbols):
        raise InputError("there is no limit: the leading order swings with the rounding of a size")
    names = {each: 0 for each in rest.free_symbols | other.free_symbols if each.name == "rounding"}
    return sympy.cancel(top / below) if below != 1 else top, rest.subs(names) if other == 0 else None


def _is_ratio(expression):
    """Has it a sum below a fraction bar?"""
    return any(
        each.is_Pow and each.exp.is_negative and each.base.is_Add for each in sympy.preorder_traversal(expression)
    )


def under(expression, conditions, before=()):
    """(the expression under the conditions in their order, [what each left out, or None]).

    conditions: of class Condition. Those that grow give a leading order, one after the other. before: assumptions.
    """
    assumed, left = Assumptions(), []
    for each in [*before, *conditions]:  # all assumptions first: they hold for every limit
        if each.kind == "larger" or (each.kind == "grows" and each.other is not None):
            assumed.add(each.about, each.other, each.text)
    expression = decided(sympy.sympify(expression), assumed)
    for each in conditions:
        if each.kind == "equal":
            expression, rest = decided(expression.subs(each.about, each.other), assumed), None
        elif each.kind == "grows" and each.about in expression.free_symbols:
            expression, rest = leading(expression, {each.about: each.about * GROWTH}, assumed)
        else:
            rest = None
        left.append(rest)
    return expression, left
