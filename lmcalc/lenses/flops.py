"""FLOPs of a trace, by class and by part."""

from ..numbers import Sum
from ..primitives import CONTRACTION


def of_op(op, masked="causal"):
    """The FLOPs of one operation over all its repetitions, as terms."""
    points = op.masked if masked == "causal" and op.masked is not None else op.points
    repeats, atoms = op.times
    primitive, found = op.primitive, []
    if primitive.per_element:
        found.append((points[0] * primitive.per_element * repeats, points[1] + atoms))
    if primitive.per_row:
        found.append((op.rows[0] * primitive.per_row * repeats, op.rows[1] + atoms))
    return found


def flops(trace, masked="causal", without=()):
    """({class: FLOPs}, {part: contraction FLOPs}).

    masked: "causal" counts only the (query, key) pairs that masks allow, "full" the rectangles. without: parts
    left out.
    """
    classes, parts = {"contraction": Sum(), "normalization": Sum(), "elementwise": Sum()}, {}
    for op in trace.ops:
        if op.part in without:
            continue
        for term in of_op(op, masked):
            classes[op.cls].add(term)
            if op.cls == CONTRACTION:
                if op.part not in parts:
                    parts[op.part] = Sum()
                parts[op.part].add(term)
    return {name: total.value() for name, total in classes.items()}, {
        part: total.value() for part, total in parts.items()
    }


def backward_flops(trace, masked="causal"):
    """{class: FLOPs} of the gradients of all operands, each operation by its primitive's rule.

    The gradient of an operand that was broadcast is summed, which costs its points once more. Values used several
    times have their gradients added; that is not counted here.
    """
    classes = {"contraction": Sum(), "normalization": Sum(), "elementwise": Sum()}
    for op in trace.ops:
        per_element, per_row = op.primitive.backward
        points = op.masked if masked == "causal" and op.masked is not None else op.points
        repeats, atoms = op.times
        if op.cls in classes:
            classes[op.cls].add((points[0] * (per_element + op.broadcast) * repeats, points[1] + atoms))
            if per_row:
                classes[op.cls].add((op.rows[0] * per_row * repeats, op.rows[1] + atoms))
    return {name: total.value() for name, total in classes.items()}
