"""Where each weight of a model lies in a checkpoint: the tables of names.py spelled out, and held against a file."""

import math
import re

from ..errors import InputError
from ..record import Frozen
from .names import ALIASES, CONSTANTS, CONV1D, COPIES, ENDINGS, LEFT_OVER, PREFIXES, table

MOST = 2**20  # tensors of a checkpoint: the largest published ones have 200,000


class Place(Frozen):
    """Where a weight lies: in tensors of these names and of this shape each.

    spread: there is a tensor for each head or expert, and they are stacked; joined: each is part of one. split: where
    other weights share the tensor, (its axis, sizes into which that is parted, index of ours). sizes: of our axes, in
    the order in which they lie there; order: where among those each of our axes is.
    """

    names: tuple
    shape: tuple
    sizes: tuple
    order: tuple
    split: tuple = None
    spread: bool = False
    joined: bool = False

    def take(self, numpy, read):
        """Our array; read(name) is a tensor."""
        found = [read(name) for name in self.names]
        x = numpy.stack(found) if self.spread else numpy.concatenate(found) if self.joined else found[0]
        if self.split is not None:
            axis, before, index = self.split
            axis += self.spread
            x = x.reshape(*x.shape[:axis], *before, *x.shape[axis + 1 :])[(slice(None),) * axis + index]
        return x.reshape(self.sizes).transpose(self.order)


def places(model, weights, file=(), names=None):
    """{path: Place} of weights, {path: (axes spec, {axis: size})}. file: the names of the tensors, where there is one:
    transformers holds some in another form at run time than in files, and both are read. names: a table like those of
    names/, for files with names of their own.
    """
    rows, conv = _rows(names or table(model, file)), model.family in CONV1D and names is None
    found, count = {}, 0
    for path in weights:
        found[path] = _place(path, *_found(rows, path, model), weights, conv)
        count += len(found[path].names)
        if count > MOST:
            raise InputError(f"{model.name}: more than {MOST:,} tensors; allowed: up to so many")
    return found


def _rows(names):
    """{path: (module, how it lies, paths that share it)}: a table with "q|k|v" taken apart."""
    rows = {}
    for key, module in names.items():
        head, _, last = key.rpartition("/")
        parts = [f"{head}/{each}" for each in last.split("|")] if "|" in last else []
        module, _, layout = module.partition(":")
        for each in parts or [key]:
            rows[each] = module, layout, parts
    return rows


def _found(rows, path, model):
    """(name of the tensor, how it lies, paths of all weights in it)."""
    layer = re.search(r"(?<=layers/)\d+", path)
    whole = path if layer is None else path.replace(f"layers/{layer[0]}/", "layers/{}/", 1)
    whole = whole if not _own(rows, path) else path
    key, ending = whole, ".weight"
    if whole not in rows:
        head, _, last = whole.rpartition("/")
        key, ending = (head, f".{last}") if last in ("weight", "bias") else (whole.removesuffix("_bias"), ".bias")
    if key not in rows:
        raise InputError(f"model_type {model.family!r} has no name for the weight {path}")
    module, layout, parts = rows[key]
    name = module[1:] if module.startswith("=") else module + ending
    number = "" if layer is None else layer[0]
    suffix = whole.removeprefix(key) if ending == ".bias" else ""
    split, axes = _layout(layout)
    return name.format(number), split, "" if suffix else axes, [part.format(number) + suffix for part in parts]


def _own(rows, path):
    """Whether a weight of a layer, or the module that it belongs to, has a row of its own."""
    return any(each in rows for each in (path, path.rpartition("/")[0], path.removesuffix("_bias")))


def _layout(text):
    """(how parts share the tensor, how its axes lie) of what stands behind a colon; both may be empty."""
    split, _, axes = text.rpartition(",") if "," in text else (text, "", "") if text in SPLITS else ("", "", text)
    return split, axes


def _place(path, name, word, layout, shared, weights, conv):
    spec, size_of = weights[path]
    stacked, inputs, outputs = _axes(spec)
    ours, spread, names = stacked + inputs + outputs, "", _parts(name)
    if "*" in name:  # a tensor for each expert of a matrix, or each head of a norm
        spread = stacked or outputs[:-1]
        stacked, outputs = "", outputs if stacked else outputs[-1:]
        count = math.prod(size_of[axis] for axis in spread)
        if count > MOST:
            raise InputError(f"{path}: {count:,} tensors, one for each; allowed: up to {MOST:,}")
        names = [name.replace("*", str(each)) for each in range(count)]
    groups = _groups(layout, stacked, inputs, outputs, conv)
    shape, split = [math.prod(size_of[axis] for axis in group if axis != "1") for group in groups], None
    if shared:
        axis = next(at for at, group in enumerate(groups) if set(group) & set(outputs))
        parts = [[sizes[each] for each in _axes(spec)[2]] for spec, sizes in map(weights.get, shared)]
        split = axis, *SPLITS[word](parts, shared.index(path))
        shape[axis] = math.prod(split[1])
    joined = len(names) > 1 and not spread
    if joined:
        shape[0] //= len(names)
    lies = [axis for group in (spread, *groups) for axis in group if axis != "1"]
    return Place(tuple(names), tuple(shape), tuple(size_of[axis] for axis in lies),
                 tuple(lies.index(axis) for axis in ours), split, bool(spread), joined)  # fmt: skip


def _parts(name):
    """The names of the tensors of which a weight is made: one, or one for each letter in brackets."""
    letters = re.search(r"\[(\w+)\]", name)
    return [name] if letters is None else [name.replace(letters[0], each) for each in letters[1]]


def _groups(layout, stacked, inputs, outputs, conv):
    """The axes of a tensor, each as those of our axes that are merged in it, in order."""
    if layout == "apart":
        return list(outputs)
    if layout in ROWS:
        return [outputs[:-1], outputs[-1:]]
    found = [*stacked, *((inputs, outputs) if conv else (outputs, inputs))]
    if layout:
        sides = {"@": stacked, "<": inputs, ">": outputs, "1": "1", "^": outputs[:1], "_": outputs[1:]}
        merged = [several or one for several, one in re.findall(r"\((.+?)\)|(.)", layout)]
        found = ["".join(sides[each] for each in group) for group in merged]
    return [group for group in found if group]


def _blocks(parts, at):
    """One after the other: (sizes that part their axis, index of this one)."""
    sizes = [math.prod(each) for each in parts]
    return (sum(sizes),), (slice(sum(sizes[:at]), sum(sizes[: at + 1])),)


def _in_groups(parts, at):
    """The same within each group, a group being one place of all axes but the last ones that not all of them have."""
    count = min(map(len, parts)) - 1
    (total,), (index,) = _blocks([each[count:] for each in parts], at)
    return (*parts[0][:count], total), (slice(None),) * count + (index,)


def _in_turn(parts, at):
    """Entry by entry, in turn."""
    return (math.prod(parts[0]), len(parts)), (slice(None), at)


def _in_quarters(parts, at):
    """One after the other within each of four parts: CodeGen's, which lay on four devices."""
    (total,), (index,) = _blocks([[math.prod(each) // 4] for each in parts], at)
    return (4, total), (slice(None), index)


ROWS = ("rows", "last")
SPLITS = {"": _blocks, "groups": _in_groups, "turns": _in_turn, "quarters": _in_quarters}


def _axes(spec):
    """(stacked, input, output) axes of a weight; one without an arrow has outputs only."""
    stacked, _, rest = spec.rpartition("|")
    inputs, arrow, outputs = rest.partition("->")
    return (stacked, inputs, outputs) if arrow else (stacked, "", inputs)


def modules(model):
    """A function from the path of a weight (layers by number) to the module that holds it, of experts the first."""
    rows = _rows(table(model))

    def module(path):
        name = _found(rows, path, model)[0]
        return name.removesuffix(".weight").removesuffix(".bias").replace("*", "0")

    return module


def matched(found, file, where, model=None):
    """{name that the tables use: name in the file}, if the file holds the tensors that are needed and no more.

    found: {path: Place}. file: has `shapes`, {name: shape}, and `read`. model: None, or the one whose prediction
    modules the file may hold, too. Raises InputError that names every difference.
    """
    names, differences, others = compared(found, file.shapes, model is not None and bool(model.beside))
    other = beside(found, model)
    others = [name for name in others if not other(name) and not predicts(name, model)]
    problems = [f"{name}: {problem}" for name, problem in differences]
    if not problems:
        problems = [problem for name in others if (problem := _other(name, found, names, file))]
    else:
        problems += [f"{name}: not used by the model" for name in others if not _known(name, file.shapes)]
    if problems:
        raise InputError(f"{where}: {len(problems)} tensors do not fit the model:", problems)
    return names


def compared(found, shapes, multimodal=False):
    """({name that the tables use: name in the file}, [(tensor, what is wrong)], [tensors that hold no weight]).

    found: {path: Place}. shapes: {name in the file: shape, or None where it is not known}. multimodal: whether the file
    holds other parts, too, and something may stand before the names of the text part.
    """
    wanted = {name: place.shape for place in found.values() for name in place.names}
    names, problems, others = {}, [], []
    for name, shape in shapes.items():
        now = _today(name, wanted)
        now = _today(of_text(name), wanted) if multimodal and now not in wanted else now
        if now not in wanted:
            others.append(name)
        elif now in names:
            problems.append((name, f"the same as {names[now]}"))
        else:
            names[now] = name
            if shape is not None and tuple(shape) != wanted[now]:
                problems.append((name, f"shape {list(shape)}; needed: {list(wanted[now])}"))
    problems += [(name, f"missing; needed: shape {list(shape)}") for name, shape in wanted.items() if name not in names]
    return names, problems, others


def _today(name, wanted):
    """A tensor's name without the liberties that published files take."""
    for old, new in ENDINGS.items():
        name = name[: -len(old)] + new if name.endswith(old) else name
    if name in wanted:
        return name
    others = [prefix + name for prefix in PREFIXES] + [re.sub(*rule, name) for rule in ALIASES]
    return next((other for other in others if other in wanted), name)


def of_text(name):
    """The name of a tensor of the text part of a multimodal model, without what stands before it."""
    return re.sub(r"^((thinker|model|language_model|text_model|language|llm)\.)+", "", name)


def beside(found, model):
    """A function that says of a tensor's name whether it is of another part of a multimodal model than its text part.

    found: {path: Place} of the text part. Where the model is none, nothing is.
    """
    if model is None or not model.beside:
        return lambda name: False
    own = {of_text(name).split(".")[0] for place in found.values() for name in place.names} | {"lm_head"}
    return lambda name: of_text(name).split(".")[0] not in own or ".vision_moe." in name


def predicts(name, model):
    """Whether a tensor is of a module of multi-token prediction, if the model has any: mtp.N, or behind all layers."""
    if model is None or not model.mtp:
        return False
    layer = re.match(r"(?:layers|(mtp))\.(\d+)\.", of_text(name))
    return layer is not None and (layer[1] is not None or int(layer[2]) >= model.fields["n_layers"])


def idle(name, shapes):
    """Whether a tensor is of an expert that has no output: LongCat's, which compute nothing."""
    expert = re.fullmatch(r"(.*\.experts\.\d+\.)(gate|up)_proj\.weight", name)
    return expert is not None and f"{expert[1]}down_proj.weight" not in shapes


def _known(name, shapes):
    patterns = (*LEFT_OVER, *CONSTANTS)
    return name in COPIES or idle(name, shapes) or any(re.fullmatch(pattern, name) for pattern in patterns)


def _other(name, found, names, file):
    """What is wrong with a tensor that holds no weight, or None."""
    if any(re.fullmatch(pattern, name) for pattern in LEFT_OVER) or idle(name, file.shapes):
        return None
    value = next((value for pattern, value in CONSTANTS.items() if re.fullmatch(pattern, name)), None)
    if value is not None:
        given = file.read(name).reshape(-1)
        good = given.size == 1 and abs(given[0] - value) <= 0.01 * abs(value)
        return None if good else f"{name} = {given.tolist()}; the model has {value}"
    place = found.get(COPIES.get(name) or COPIES.get(of_text(name)))
    if place is None or name in place.names:
        return f"{name}: not used by the model"
    original = names[place.names[0]]
    if file.shapes[name] != file.shapes[original] or (file.read(name) != file.read(original)).any():
        return f"{name}: differs from {original}, of which it is a copy where the two are tied"
    return None
