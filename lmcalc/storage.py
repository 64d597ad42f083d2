"""Weights that are not all stored in one type: bytes by weight, where a file or its config says so."""

from fractions import Fraction

from .model import Run, Stack
from .record import Frozen


class Storage(Frozen):
    """How the weights of a model are stored.

    text: for a reader. rule: a function of a Model that gives {path: bytes of each of its layers}: a whole number, or
    the mean where layers that are traced as one differ. found: what it gave.
    """

    text: str
    rule: object
    found: dict

    def of(self, model):
        """The same for another model: one with changed fields."""
        return Storage(self.text, self.rule, self.rule(model))


def stored(model, text, rule):
    """The model, stored as a rule says."""
    return model.replace(storage=Storage(text, rule, rule(model)))


def means(model, size):
    """{path: mean bytes} from size(numbered path, part, axes spec, {axis: size}), bytes of a weight of one layer."""
    totals, counts = {}, {}
    for path, *weight in numbered_weights(model):
        totals[path] = totals.get(path, 0) + size(*weight)
        counts[path] = counts.get(path, 0) + 1
    return {path: whole(Fraction(totals[path]) / counts[path]) for path in totals}


def whole(number):
    """A Fraction as an int, if it is one."""
    return number.numerator if number.denominator == 1 else number


def numbered_weights(model, what="weights"):
    """(path as traced, path with the number of its layer, part, axes spec, {axis: size}) of all weights, or buffers."""

    def walk(label, numbered, component):
        size_of = component.axes()
        for name, spec in getattr(component, what)().items():
            yield label + name, numbered + name, component.part, spec, size_of
        for name, child in component.children().items():
            yield from walk(f"{label}{name}/", f"{numbered}{name}/", child)
        if isinstance(component, Stack):
            for number, (name, block) in enumerate(_layers(component.runs)):
                yield from walk(f"{label}{name}/", f"{numbered}layers/{number}/", block)

    yield from walk("", "", model)


def _layers(runs):
    for run in runs:
        for _ in range(run.count):
            for item in run.items:
                yield from _layers([item]) if isinstance(item, Run) else [item]


def matrix_sizes(spec, size_of):
    """(stacked, outputs, inputs) of a weight; inputs 0 where it is no matrix."""
    stacked, _, rest = spec.rpartition("|")
    inputs, arrow, outputs = rest.partition("->")
    if not arrow:
        inputs, outputs = "", rest
    found = []
    for axes in (stacked, outputs, inputs):
        product = 1
        for axis in axes:
            product *= size_of[axis]
        found.append(product)
    return found[0], found[1], found[2] if arrow else 0
