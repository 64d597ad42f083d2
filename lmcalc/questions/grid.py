"""The points of a sweep: cells of (model, fields, options), in each of them machines and an array of sizes.

Nothing here is as large as the grid but what `blocks` gives, and that is a part of it at a time.
"""

import itertools

import numpy

from ..arguments import for_each, several, table
from ..cards import load
from ..errors import InputError, shown
from ..workload import LEAST, MOST, workload
from . import vary as varying
from .report import on
from .vary import OPTIONS, SIZES

MOST_CELLS = 100_000


class Ramp:
    """Evenly spaced sizes along one axis of the grid, made into floats a part at a time."""

    def __init__(self, values, axis, ndim):
        self.values, self.axis = values, axis
        self.shape = tuple(len(values) if at == axis else 1 for at in range(ndim))
        self.ndim, self.size = ndim, len(values)

    def max(self):
        return self.values[-1]

    def cut(self, part):
        kept = self.values[part[self.axis]]
        shape = [len(kept) if size > 1 else 1 for size in self.shape]
        return numpy.arange(kept.start, kept.stop, kept.step, dtype=float).reshape(shape)


class Grid:
    """What is swept: `axes` is {name: values} of the named ones in the order of rows, `shape` that of the whole grid,
    with further axes where sizes were given as arrays that broadcast against each other."""

    def __init__(self, models, hardware=(), set=None, set_hardware=None, vary=None, **options):
        vary = {name: varying.checked(name, values) for name, values in table("vary", vary).items()}
        models = several(models)
        set = for_each("set", set, len(models))
        given = {"hardware": hardware, **options, **(set[0] if set else {})}
        for name in vary:
            if name in given and (name != "hardware" or hardware not in ((), [], None)):
                raise InputError(f"{name} is varied and given as well ({given[name]!r}); allowed: one of the two")
        first = {name: values[0] for name, values in vary.items() if name not in (*SIZES, *OPTIONS, "hardware")}
        self.models = [_loaded(each, changes, first) for each, changes in zip(models, set)]
        if not self.models:
            raise InputError("no model to sweep; allowed: at least one")
        machines = vary.get("hardware", hardware)
        self.machines = on(machines, set_hardware)
        self.options = {name: value for name, value in options.items() if name not in SIZES}
        self.fields = {name: values for name, values in vary.items() if name not in (*SIZES, "hardware")}
        self._place({name: values for name, values in vary.items() if name in SIZES}, options)
        self.axes = {"model": [each.name for each in self.models], **self.fields}
        if self.machines:
            self.axes["hardware"] = [each.name for each in self.machines]
        self.axes |= {name: values for name, values in vary.items() if name in SIZES}
        self.cells = (len(self.models), *map(len, self.fields.values()))
        self.shape = (*self.cells, max(1, len(self.machines)), *self.points)
        self._check()

    def _place(self, varied, options):
        """Sizes as ints, or arrays that broadcast to `points`: varied ones along axes of their own, then the rest."""
        held = {name: size(name, options[name]) for name in SIZES if name in options}
        self.asked = workload(**held, **self.options)
        shared = _shape({name: getattr(self.asked, name) for name in SIZES})
        ndim = len(varied) + len(shared)
        self.sizes = {name: getattr(self.asked, name) for name in SIZES}
        for at, (name, values) in enumerate(varied.items()):
            if len(values) == 1:
                self.sizes[name] = values[0]  # an int: exact
            elif isinstance(values, range):
                self.sizes[name] = Ramp(values, at, ndim)
            else:
                self.sizes[name] = numpy.array(values, float).reshape([-1 if each == at else 1 for each in range(ndim)])
        self.points = (*map(len, varied.values()), *shared)
        if product(self.points) == 1:
            self.sizes = {
                name: value if isinstance(value, int) else int(value.reshape(-1)[0])
                for name, value in self.sizes.items()
            }

    def _check(self):
        """Every cell can be built: said before any work is done."""
        count = product(self.cells)
        if count > MOST_CELLS:
            raise InputError(f"{count:,} combinations of models, fields and options; allowed: at most {MOST_CELLS:,}")
        for index in numpy.ndindex(*self.cells):
            self.cell(index)

    def __len__(self):
        return product(self.shape)

    def said(self):
        """The grid in words: how many points, and of what."""
        parts = [f"{name} {len(values):,}" for name, values in self.axes.items() if len(values) > 1]
        return f"a grid of {len(self):,} points" + (f" ({' x '.join(parts)})" if parts else "")

    def place(self, name):
        """Which axis of `shape` the named one is."""
        names = ["model", *self.fields, "hardware"]
        return (
            names.index(name)
            if name in names
            else len(names) + [each for each in self.axes if each in SIZES].index(name)
        )

    def cell(self, index):
        """(model, workload without its sizes) of one cell."""
        model, chosen = self.models[index[0]], dict(zip(self.fields, self.chosen(index)))
        options = {name: value for name, value in chosen.items() if name in OPTIONS}
        fields = {name: value for name, value in chosen.items() if name not in OPTIONS}
        try:
            asked = workload(**self.options, **options) if options else self.asked
            model = load(model, fields) if fields else model
        except InputError as error:
            raise _within(error, chosen, model.name) from None
        return model, asked.of(model, {**self.options, **options})

    def chosen(self, index):
        """The value of each varied field and option in one cell."""
        return [values[at] for values, at in zip(self.fields.values(), index[1:])]

    def parts(self, most):
        """Slices of `points`, of at most about `most` points each, one after the other in the order of rows."""
        return parts(self.points, most)

    def cut(self, part):
        """{size: int or array} of one part."""
        return {name: _cut(value, part) for name, value in self.sizes.items()}


def _loaded(model, changes, first):
    """The model with the first of what is varied: without it some changes make no model, as experts and no choice."""
    if not first:
        return load(model, changes)
    try:
        return load(model, {**changes, **first})
    except InputError as error:
        load(model)  # what is no model at all is said without a combination
        raise _within(error, first, getattr(model, "name", model)) from None


def _within(error, chosen, name):
    words = {field: value if isinstance(value, str) else shown(value) for field, value in chosen.items()}
    which = ", ".join(f"{field}={word}" for field, word in words.items())
    return InputError(f"{error}; in the combination {which} of {name}")


def parts(shape, most):
    """Slices of a grid, of at most `most` points each where an axis allows, in order and without gaps.

    >>> [[(cut.start, cut.stop) for cut in part] for part in parts((2, 5), 3)]
    [[(0, 1), (0, 3)], [(0, 1), (3, 5)], [(1, 2), (0, 3)], [(1, 2), (3, 5)]]
    """
    if not shape:
        return [()]
    inner = product(shape[1:])
    step = max(1, min(shape[0], most // max(1, inner)))
    first = [slice(at, min(at + step, shape[0])) for at in range(0, shape[0], step)]
    rest = parts(shape[1:], most) if step == 1 else [tuple(slice(0, each) for each in shape[1:])]
    return [(one, *others) for one, others in itertools.product(first, rest)]


def _cut(value, part):
    """The part of one size's array that belongs to a part of the grid; axes that it lacks or repeats stay."""
    if isinstance(value, Ramp):
        return value.cut(part)
    if not isinstance(value, numpy.ndarray):
        return value
    own = part[len(part) - value.ndim :] if value.ndim else ()
    return value[tuple(cut if size > 1 else slice(None) for cut, size in zip(own, value.shape))]


def product(sizes):
    """The product of sizes as an int of any size."""
    count = 1
    for each in sizes:
        count *= each
    return count


def size(name, value):
    """One size as an int, or as the float64 array that cost code runs on: the door for lists and integer arrays."""
    if isinstance(value, list | tuple | range):
        try:
            value = numpy.array([value], dtype=object if _odd(value) else None)[0]
        except ValueError:
            raise InputError(f"{name}: the lists in it differ in length") from None
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "iu":
        if value.size and not LEAST[name] <= int(value.min()) <= int(value.max()) <= MOST:
            raise InputError(f"{name} holds values that are not whole numbers from {LEAST[name]} to 2**53")
        value = value.astype(float)
    return value


def _odd(value):
    """Whether a list holds what NumPy would turn into a number in silence."""
    if isinstance(value, list | tuple):
        return any(map(_odd, value))
    return isinstance(value, bool | str)


def _shape(sizes):
    shapes = {name: numpy.shape(value) for name, value in sizes.items()}
    try:
        return numpy.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise InputError(f"shapes do not broadcast against each other: {given}") from None
