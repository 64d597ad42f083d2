"""Where each weight of a model lies in a checkpoint: the tables of names.py spelled out, and held against a file."""

import math
import re

from ..errors import InputError
from ..record import Frozen
from .names import CONSTANTS, CONV1D, COPIES, ENDINGS, LEFT_OVER, PREFIXES, table


class Place(Frozen):
    """Where a weight lies: in tensors of these names (several: one for each head) and of this shape each.

    rows: which of their output rows, as (shape that splits them, index), or None. outputs, inputs: sizes of our axes.
    conv: matrices lie as (inputs, outputs), not (outputs, inputs).
    """

    names: tuple
    shape: tuple
    outputs: tuple
    inputs: tuple = ()
    rows: tuple = None
    conv: bool = False

    def take(self, numpy, read):
        """Our array, inputs first; read(name) is a tensor."""
        if len(self.names) > 1:
            return numpy.stack([read(name) for name in self.names]).reshape(self.outputs)
        x = read(self.names[0])
        x = x.T if self.conv else x
        if self.rows is not None:
            before, rows = self.rows
            x = x.reshape(*before, *x.shape[1:])[rows]
        x = x.reshape(self.outputs + self.inputs)
        count = len(self.outputs)
        return x.transpose(*range(count, count + len(self.inputs)), *range(count))


def places(model, weights):
    """{path: Place} of weights, {path: (axes spec, {axis: size})}."""
    rows, conv = _rows(table(model)), model.family in CONV1D
    return {path: _place(path, *_found(rows, path, model), weights, conv) for path in weights}


def _rows(names):
    """{path: (module, how it is split, paths that share it)}: a table with "q|k|v" taken apart."""
    rows = {}
    for key, module in names.items():
        head, _, last = key.rpartition("/")
        parts = [f"{head}/{each}" for each in last.split("|")] if "|" in last else []
        module, _, split = module.partition(":")
        for each in parts or [key]:
            rows[each] = module, split or ("blocks" if parts else None), parts
    return rows


def _found(rows, path, model):
    """(name of the tensor, how it is split, paths of all weights in it)."""
    layer = re.search(r"(?<=layers/)\d+", path)
    whole = path if layer is None else path.replace(f"layers/{layer[0]}/", "layers/{}/", 1)
    key, ending = whole, ".weight"
    if whole not in rows:
        head, _, last = whole.rpartition("/")
        key, ending = (head, f".{last}") if last in ("weight", "bias") else (whole.removesuffix("_bias"), ".bias")
    if key not in rows:
        raise InputError(f"model_type {model.family!r} has no name for the weight {path}")
    module, split, parts = rows[key]
    name = module[1:] if module.startswith("=") else module + ending
    number = "" if layer is None else layer[0]
    suffix = whole.removeprefix(key) if ending == ".bias" else ""
    return name.format(number), split, [part.format(number) + suffix for part in parts]


def _place(path, name, split, shared, weights, conv):
    stacked, inputs, outputs = _sizes(*weights[path])
    if split == "heads":
        return Place((name,), (math.prod(outputs[:-1]), outputs[-1]), outputs)
    if "*" in name:
        heads = math.prod(outputs[:-1])
        return Place(tuple(name.replace("*", str(head)) for head in range(heads)), outputs[-1:], outputs)
    rows, total = None, math.prod(outputs)
    if shared:
        parts = [_sizes(*weights[each])[2] for each in shared]
        total, at = sum(map(math.prod, parts)), shared.index(path)
        if split == "groups":  # for each key/value head its query heads, its key, its value
            kv_heads, group, head_dim = parts[0]
            before = kv_heads, group + 2, head_dim
            rows = before, (slice(None), (slice(group), slice(group, group + 1), slice(group + 1, None))[at])
        else:
            start = sum(map(math.prod, parts[:at]))
            rows = (total,), (slice(start, start + math.prod(parts[at])),)
    shape = (*stacked, total) if not inputs else (math.prod(inputs), total) if conv else (total, math.prod(inputs))
    return Place((name,), shape, stacked + outputs, inputs, rows, conv and bool(inputs))


def _sizes(spec, size_of):
    """(stacked, input, output) sizes of a weight; one without an arrow has outputs only."""
    stacked, _, rest = spec.rpartition("|")
    inputs, arrow, outputs = rest.partition("->")
    if not arrow:
        inputs, outputs = "", inputs
    return tuple(tuple(size_of[axis] for axis in axes) for axes in (stacked, inputs, outputs))


def matched(found, file, where):
    """{name that the tables use: name in the file}, if the file holds the tensors that are needed and no more.

    found: {path: Place}. file: has `shapes`, {name: shape}, and `read`. Raises InputError that names every difference.
    """
    wanted = {name: place.shape for place in found.values() for name in place.names}
    names, problems, others = {}, [], []
    for name, shape in file.shapes.items():
        now = _today(name, wanted)
        if now not in wanted:
            others.append(name)
        elif now in names:
            problems.append(f"{name}: the same as {names[now]}")
        else:
            names[now] = name
            if tuple(shape) != wanted[now]:
                problems.append(f"{name}: shape {list(shape)}; needed: {list(wanted[now])}")
    problems += [f"{name}: missing; needed: shape {list(shape)}" for name, shape in wanted.items() if name not in names]
    if not problems:
        problems = [problem for name in others if (problem := _other(name, found, names, file))]
    else:
        problems += [f"{name}: not used by the model" for name in others if not _known(name)]
    if problems:
        raise InputError(f"{where}: {len(problems)} tensors do not fit the model:\n  " + "\n  ".join(problems))
    return names


def _today(name, wanted):
    """A tensor's name without the liberties that published files take."""
    for old, new in ENDINGS.items():
        name = name[: -len(old)] + new if name.endswith(old) else name
    if name in wanted:
        return name
    return next((prefix + name for prefix in PREFIXES if prefix + name in wanted), name)


def _known(name):
    patterns = (*LEFT_OVER, *CONSTANTS)
    return name in COPIES or any(re.fullmatch(pattern, name) for pattern in patterns)


def _other(name, found, names, file):
    """What is wrong with a tensor that holds no weight, or None."""
    if any(re.fullmatch(pattern, name) for pattern in LEFT_OVER):
        return None
    value = next((value for pattern, value in CONSTANTS.items() if re.fullmatch(pattern, name)), None)
    if value is not None:
        given = file.read(name).reshape(-1)
        good = given.size == 1 and abs(given[0] - value) <= 0.01 * abs(value)
        return None if good else f"{name} = {given.tolist()}; the model has {value}"
    place = found.get(COPIES.get(name))
    if place is None or name in place.names:
        return f"{name}: not used by the model"
    original = names[place.names[0]]
    if file.shapes[name] != file.shapes[original] or (file.read(name) != file.read(original)).any():
        return f"{name}: differs from {original}, of which it is a copy where the two are tied"
    return None
