"""Parameters, read off a model's declarations (a decode trace does not see everything that a model has)."""

from ..numbers import Sum, ceil_div, monomial, times
from ..units import DTYPES, STORED


def tensors(model, what="weights", mtp=False):
    """Every weight of the model as (path, part, axes spec, sizes, multiplicity); tied weights are declared once.

    what: "weights" or "buffers". mtp: of its prediction modules.
    """
    for path, component, multiplicity in model.declared(mtp):
        specs = getattr(component, what)()
        if not specs:
            continue
        size_of = component.axes()
        for name, spec in specs.items():
            yield f"{path}/{name}" if path else name, component.part, spec, size_of, multiplicity


def matrix(spec, size_of):
    """(stacked, input, output) sizes of a weight from its axes spec, each as a term.

    >>> matrix("E|D->F", {"E": 8, "D": 16, "F": 32})
    ((8, ()), (16, ()), (32, ()))
    """
    stacked, _, rest = spec.rpartition("|")
    inputs, _, outputs = rest.partition("->")
    return tuple(monomial(*[size_of[axis] for axis in axes]) for axes in (stacked, inputs, outputs))


def params(model):
    """{part: parameters}, exact; `total` is their sum."""
    parts = {}
    for _, part, spec, size_of, multiplicity in tensors(model):
        term = monomial(*[size_of[axis] for axis in spec if axis not in "->|"], multiplicity)
        parts.setdefault(part, Sum()).add(term)
    return {part: total.value() for part, total in parts.items()}


def active(model):
    """The parameters that one token uses: all but those of the experts that it does not choose."""
    total = Sum()
    for _, component, multiplicity in model.declared():
        size_of = component.axes() | component.active()
        for spec in component.weights().values():
            total.add(monomial(*[size_of[axis] for axis in spec if axis not in "->|"], multiplicity))
    return total.value()


def buffers(model):
    """Elements of all buffers, which are no parameters."""
    return _elements(tensors(model, "buffers"))


def mtp(model):
    """Elements of the prediction modules' own weights, the buffers of their routers included."""
    return _elements(tensors(model, mtp=True)) + _elements(tensors(model, "buffers", mtp=True))


def _elements(found):
    total = Sum()
    for _, _, spec, size_of, multiplicity in found:
        total.add(monomial(*[size_of[axis] for axis in spec if axis not in "->|"], multiplicity))
    return total.value()


def weight_bytes(model, dtype):
    """Bytes of all weights stored in one dtype; blocks of a block format run along the inputs of each matrix.

    "stored": each as the model's checkpoint stores it (see storage.py).
    """
    total = Sum()
    if dtype == STORED:
        for path, *_, multiplicity in tensors(model):
            total.add((model.storage.found[path] * multiplicity, ()))
        return total.value()
    size, values = DTYPES[dtype]
    for _, _, spec, size_of, multiplicity in tensors(model):
        total.add(stored(spec, size_of, size, values, multiplicity))
    return total.value()


def stored(spec, size_of, size, values, *factors):
    """Bytes of one weight, as a term: `size` bytes for each block of `values` values."""
    stacked, inputs, outputs = matrix(spec, size_of)
    if values != 1:
        coefficient, atoms = inputs
        whole = coefficient
        for atom in atoms:
            whole = whole * atom
        inputs = monomial(ceil_div(whole, values))
    return times((stacked[0] * inputs[0] * outputs[0], stacked[1] + inputs[1] + outputs[1]), size, *factors)
