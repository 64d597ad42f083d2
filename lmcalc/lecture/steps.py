"""What a derivation is made of, and the costs that it starts from: sums over traces on symbols."""

import sympy

from ..algebra import latex, shortest, text
from ..asymptotics import GROWTH, leading
from ..questions.keys import plain
from ..questions.symbolic import B, S, T, subject_of, terms_of

CONTRACTIONS = ("attention_proj", "attention_scores", "ffn", "lm_head")


class Derivation:
    """Steps in order. Sizes in its forms are the lecture's letters."""

    def __init__(self, about):
        self.about, self.steps, self.forms, self.examples = about, [], [], []

    def step(self, what, expression):
        """An expression on the way, exact or under what the text says; returns it."""
        shown = _short(expression)
        self.steps.append({"what": what, "expression": text(shown), "latex": latex(shown)})
        return expression

    def reached(self, what, found, lecture, symbols, form=None):
        """The lecture's form against what was found: the same monomials in `symbols`? Their constants are listed."""
        ours, theirs = monomials(found, symbols), monomials(lecture, symbols)
        left_out = [
            f"{text(each)}: {text(sympy.nsimplify(number / theirs.get(each, 1)))}"
            for each, number in ours.items()
            if number != theirs.get(each)
        ]
        self.forms.append(
            {
                "what": what,
                "found": text(sympy.expand(found)),
                "lecture": form or text(lecture),
                "same": set(ours) == set(theirs),
                "leaves_out": left_out,
            }
        )

    def good(self, text):
        """A number where the form serves."""
        self.examples.append({"good": True, "text": text})

    def misleads(self, text):
        """A number where it does not."""
        self.examples.append({"good": False, "text": text})

    def data(self):
        return {"about": self.about, "steps": self.steps, "reached": self.forms, "examples": self.examples}


def _short(expression):
    expression = sympy.sympify(expression)
    if expression.has(sympy.Function) or isinstance(expression, sympy.MatrixBase):
        return expression
    above, below = sympy.fraction(sympy.together(expression))
    return shortest(above) / shortest(below)


def monomials(expression, symbols):
    """{monomial in `symbols`: its constant} of a sum."""
    found = {}
    for term in sympy.Add.make_args(sympy.expand(expression)):
        number, monomial = term.as_independent(*symbols)
        found[monomial] = found.get(monomial, 0) + number
    return {each: sympy.simplify(number) for each, number in found.items() if number != 0}


def grows(expression, *sizes, **scaled):
    """The leading order when these sizes grow, and nothing else does."""
    return leading(expression, {size: size * GROWTH for size in sizes})[0]


def cost(word, of, phase="prefill", parts=None, **options):
    """A quantity of a variant off its trace: the sum of its terms, or of those of some parts. Keys S, new tokens T."""
    subject = subject_of(word, None, options)
    terms = terms_of(subject, of, phase)[of]
    return sympy.Add(*[plain(each.value, phase) for each in terms if parts is None or each.part in parts])


def contractions(word, phase="prefill", **options):
    """FLOPs of its matrix products."""
    return cost(word, "flops", phase, CONTRACTIONS, **options)


def elements(word, phase="prefill", parts=None, **options):
    """Elements moved: bytes over the 2 bytes of bf16."""
    return cost(word, "bytes", phase, parts, **options) / 2


def empty(expression):
    """Of an empty cache: keys are the new tokens."""
    return expression.subs(S, T)


def letters(names):
    """The lecture's letters as sizes."""
    return sympy.symbols(names, positive=True)


def at(expression, **values):
    """An expression as a float: values by name of symbol."""
    found = expression.subs({each: values[each.name] for each in expression.free_symbols})
    return float(found)


__all__ = [
    "B",
    "Derivation",
    "S",
    "T",
    "at",
    "contractions",
    "cost",
    "elements",
    "empty",
    "grows",
    "letters",
    "monomials",
    "plain",
    "sympy",
]
