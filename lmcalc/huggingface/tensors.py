"""Where each weight of a model lies in a checkpoint: the tables of names.py, spelled out for one model, and held against a file."""

import math
import re

from ..errors import InputError
from ..record import Frozen
from .names import CONSTANTS, CONV1D, COPIES, ENDINGS, LEFT_OVER, PREFIXES, table


class Place(Frozen):
    """Where one weight lies. names: of the tensors (several: one for each head); shape: of each of them; pick: the array of
    ours from theirs."""

    names: tuple
    shape: tuple
    pick: object


def places(model, weights):
    """{path: Place} for each of `weights`, {path: (axes spec, sizes)} as reference.weights gives them."""
    rows, found = _rows(model), {}
    for path, (spec, size_of) in weights.items():
        stem, ending = _stem(path)
        layer = re.search(r"layers/(\d+)/", stem)
        key = re.sub(r"layers/\d+/", "layers/{}/", stem)
        if key not in rows:
            raise InputError(f"{model.family}: no tensor is known for the weight {path}")
        module, split, parts = rows[key]
        name = module.format(layer.group(1)) if layer else module
        name = name.removeprefix("=") if name.startswith("=") else name + ending
        group = [_sized(weights, path, stem, key, each) for each in parts]
        found[path] = _place(name, split, group, parts.index(key) if parts else 0, spec, size_of, model.family in CONV1D)
    return found


def _rows(model):
    """{path: (module, how tensors are split, the paths that share it)}: the model's table with "q|k|v" taken apart."""
    rows = {}
    for key, module in table(model).items():
        module, _, split = module.partition(":")
        head, _, last = key.rpartition("/")
        parts = [f"{head}/{each}" for each in last.split("|")] if "|" in last else []
        for each in parts or [key]:
            rows[each] = module, split or ("blocks" if parts else ""), parts
    return rows


def _stem(path):
    """("layers/0/attention/q", ".bias") of the path of a weight."""
    head, _, last = path.rpartition("/")
    if last in ("weight", "bias"):
        return (path, "") if path == "head/bias" and False else (head, "." + last)
    return (path[: -len("_bias")], ".bias") if last.endswith("_bias") else (path, ".weight")


def _sized(weights, path, stem, key, other):
    """(spec, sizes) of another weight in the same tensor."""
    return weights[path.replace(stem.rpartition("/")[2], other.rpartition("/")[2])]
