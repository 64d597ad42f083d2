"""Filters of the catalogues: an expression over the fields of a row, read as Python's and evaluated by hand.

Nothing but the node types below is ever looked at, so nothing is called, looked up or imported.
"""

import ast
import operator
import warnings

from .errors import InputError, closest, shown

MOST = 1000  # characters
ALLOWED = "comparisons, in, and, or, not, + - * / // %, ( ), numbers, 'text', [lists], True, False, None and fields"
COMPARED = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
COMPUTED = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def chosen(rows, text):
    """The rows for which the expression holds.

    What compares a field that a row does not know, other than with ==, is false for it, and so is a division by zero. A
    table within a row is written with dots (peak.bf16). Raises InputError for anything that is not allowed.

    >>> [row["n"] for row in chosen([{"n": 3, "kind": "a"}, {"n": 4, "kind": None}], "n * 2 > 6 or kind in ['a', 'b']")]
    [3, 4]
    """
    tree = _parsed(text)
    flat = [_flat(row) for row in rows]
    known = sorted({name for row in flat for name in row})
    found = []
    _value(tree, {}, known, text)  # what is not allowed is refused before any row is looked at
    for row, names in zip(rows, flat):
        value = _value(tree, names, known, text)
        if value is not None and not isinstance(value, bool):
            raise InputError(f"--where {text!r}: {value!r} is neither true nor false; allowed: such as d_model > 4096")
        if value:
            found.append(row)
    return found


def _parsed(text):
    if not isinstance(text, str):
        raise InputError(f"--where {shown(text)} is a {type(text).__name__}; allowed: text")
    if len(text) > MOST:
        raise InputError(f"--where: an expression of {len(text)} characters; allowed: at most {MOST}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"--where {text!r}: not an expression; allowed: {ALLOWED}") from None


def _flat(row):
    found = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= {f"{name}.{each}": inside for each, inside in value.items()}
        else:
            found[name] = value
    return found


def _value(node, row, known, text):
    def of(inner):
        return _value(inner, row, known, text)

    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return node.value
        case ast.List() | ast.Tuple():
            return [of(each) for each in node.elts]
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(), attr=name):
            name = name if isinstance(node, ast.Name) else f"{node.value.id}.{name}"
            if name not in known:
                near = closest(name, known)
                hint = "closest: " + ", ".join(near) if near else "allowed: " + ", ".join(known)
                raise InputError(f"--where {text!r}: unknown field {name!r}; {hint}")
            return row.get(name)
        case ast.BoolOp(op=ast.And()):
            values = [of(each) for each in node.values]  # all of them, so that each is checked
            return all(values)
        case ast.BoolOp(op=ast.Or()):
            values = [of(each) for each in node.values]
            return any(values)
        case ast.UnaryOp(op=ast.Not()):
            return not of(node.operand)
        case ast.UnaryOp(op=ast.USub()):
            return _applied(operator.sub, 0, of(node.operand), node, text)
        case ast.BinOp() if type(node.op) in COMPUTED:
            return _applied(COMPUTED[type(node.op)], of(node.left), of(node.right), node, text)
        case ast.Compare() if all(type(op) in COMPARED for op in node.ops):
            values = [of(each) for each in (node.left, *node.comparators)]
            every = [_compared(op, a, b, node, text) for op, a, b in zip(node.ops, values, values[1:])]
            return all(every)
    raise InputError(f"--where {text!r}: {ast.unparse(node)} is not allowed; allowed: {ALLOWED}")


def _applied(function, a, b, node, text):
    if a is None or b is None:
        return None
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in (a, b)):
        raise InputError(f"--where {text!r}: {ast.unparse(node)} reckons with {a!r} and {b!r}; allowed: numbers")
    try:
        return function(a, b)
    except ArithmeticError:
        return None


def _compared(op, a, b, node, text):
    if isinstance(op, ast.In | ast.NotIn):
        unknown = b is None
    else:
        unknown = None in (a, b) and not isinstance(op, ast.Eq | ast.NotEq)
    if unknown:
        return False
    try:
        return COMPARED[type(op)](a, b)
    except TypeError:
        given = f"{ast.unparse(node)} compares {a!r} with {b!r}"
        raise InputError(f"--where {text!r}: {given}; allowed: two numbers, or two texts") from None
