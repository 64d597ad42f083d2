"""A grid at once: every cost as columns, a row for each point, computed on float64 arrays a part of the grid at a time."""

from collections.abc import Mapping
from functools import cached_property

import numpy

from .. import __version__
from ..errors import InputError, unknown
from ..lenses.cache import cache
from ..lenses.params import params, weight_bytes
from ..units import unit
from ..workload import MOST
from .engines import engine
from .grid import Grid
from .report import CONVENTIONS, Pass, _notes, bounds, by_kernel
from .vary import SIZES

SCHEMA = "lmcalc.sweep/1"
MOST_HELD, MOST_ROWS, MOST_WRITTEN = 2**30, 2**32, 10**10  # values and rows in memory, rows in a file
MOST_WIDE = 1000  # values side by side

# Columns: how each is read off a Piece, those of a phase off its Pass; and those of a machine --------------------

POINT = {
    **{name: lambda piece, name=name: getattr(piece.asked, name) for name in SIZES},
    "params_total": lambda piece: sum(params(piece.model).values()),
    "weights_bytes": lambda piece: weight_bytes(piece.model, piece.asked.weights),
    "cache_bytes": lambda piece: piece.held["bytes"],
    "state_bytes": lambda piece: piece.held["state_bytes"],
    "memory_needed": lambda piece: (
        weight_bytes(piece.model, piece.asked.weights) + piece.held["bytes"] + piece.held["state_bytes"]
    ),
}
PHASE = {
    "flops": lambda each: sum(each.flops[0].values()),
    "flops_contraction": lambda each: each.flops[0]["contraction"],
    "flops_normalization": lambda each: each.flops[0]["normalization"],
    "flops_elementwise": lambda each: each.flops[0]["elementwise"],
    "bytes": lambda each: sum(each.bytes.values()),
    "bytes_weights": lambda each: each.bytes["weights"],
    "bytes_activations": lambda each: each.bytes["activations"],
    "bytes_cache_read": lambda each: each.bytes["cache_read"],
    "bytes_cache_write": lambda each: each.bytes["cache_write"],
    "intensity": lambda each: sum(each.flops[0].values()) / sum(each.bytes.values()),
}
SIDES = ("compute", "memory", "vector")
TIMES = ("bound_s", "bound_by", "compute_s", "memory_s", "vector_s", "tokens_per_s", "roofline_s", "serial_s")
OF_MACHINE = ("hardware", "fits", *(f"{phase}_{name}" for phase in ("prefill", "decode") for name in TIMES))
COLUMNS = ("model", *POINT, *(f"{phase}_{name}" for phase in ("prefill", "decode") for name in PHASE), *OF_MACHINE)
# text, by number: what the codes in these columns stand for
LABELS = {"fits": (False, True, None), "prefill_bound_by": (*SIDES, None), "decode_bound_by": (*SIDES, None)}
# all that is computed without asking: not the sums over kernels, which take a while
USUAL = (
    "model", "hardware", "batch", "prompt", "past", "context", "params_total", "weights_bytes", "cache_bytes", "fits",
    *(f"{phase}_{name}" for phase in ("prefill", "decode") for name in (
        "flops", "flops_contraction", "flops_normalization", "flops_elementwise", "bytes", "intensity", "bound_s",
        "bound_by", "tokens_per_s")),
)  # fmt: skip
# the sizes that a column may depend on; decode and the cache know the prompt as the length of an encoder's input
DEPENDS = {"prefill": ("batch", "prompt", "past"), "decode": ("batch", "prompt", "context")}
DEPENDS |= {name: ("batch", "prompt", "context") for name in ("cache_bytes", "state_bytes", "memory_needed", "fits")}
DEPENDS |= {name: (name,) for name in SIZES}


def sweep(model, hardware=(), columns=None, set=None, set_hardware=None, vary=None, engine="numpy", scheduler=None, **options):
    """What models cost at every point of a grid, as columns; a row is one model on one machine at one workload.

    model, hardware: a name, or several. vary: {name: values} of sizes, dtypes, conventions or fields of the cards, each a
    list, a range or a text such as "1k:128k:log2" (see questions/vary.py); they span a grid. columns: names out of COLUMNS
    and of what is varied (default: USUAL). set: {field: value} over the cards. engine: numpy, or dask on the cluster at
    `scheduler`. options: as of `report`; batch, prompt, past and context may also be lists or arrays that broadcast against
    each other. Numbers are float64: exact up to 2**53, beyond that to 15 digits; NaN where a machine lacks the figure, or an
    encoder the phase. Raises InputError.

    >>> grid = sweep("llama-3.1-8b", batch=[[1], [8]], context=[1024, 4096], columns=["batch", "cache_bytes"])
    >>> grid["cache_bytes"].tolist()
    [134217728.0, 536870912.0, 1073741824.0, 4294967296.0]
    >>> sweep("llama-3.1-8b", vary={"n_kv_heads": [1, 8], "context": "1k:2k"}, columns="cache_bytes")["cache_bytes"].sum()
    232054063104.0
    """
    models = model if isinstance(model, list | tuple) else [model]
    return Sweep(models, hardware, columns, set, set_hardware, vary, engine, scheduler, options).held()


class Sweep:
    """A sweep that was asked for and checked, and not begun."""

    def __init__(self, models, hardware=(), columns=None, set=None, set_hardware=None, vary=None, engine_name="numpy",
                 scheduler=None, options=None):  # fmt: skip
        self.grid = Grid(models, hardware, set, set_hardware, vary, **(options or {}))
        self.engine = engine(engine_name, scheduler)
        self.columns = _chosen(columns, self.grid)
        self.labels = {**LABELS, "model": self.grid.axes["model"], "hardware": self.grid.axes.get("hardware")}
        self.labels |= {name: values for name, values in self.grid.fields.items() if not all(map(_is_number, values))}
        self.labels = {name: values for name, values in self.labels.items() if name in self.columns}
        self.whole = {name for name in self.columns if name not in self.labels and self._whole(name)}
        self.rounded = frozenset()

    @property
    def points(self):
        """How many rows."""
        return len(self.grid)

    def _whole(self, name):
        if name in self.grid.fields:
            return all(isinstance(value, int) for value in self.grid.fields[name])
        return not name.endswith(("_s", "_intensity"))

    def blocks(self, ordered=True):
        """(where, shape, {column: number, array or code}) of part after part; `where` indexes the whole grid.

        ordered: in the order of rows. Otherwise all machines of a part come together, which shares work between them.
        """
        grid, parts = self.grid, list(self.grid.parts(self.engine.chunk))
        machines = list(enumerate(grid.machines or [None]))
        if ordered:
            order = [([one], part) for one in machines for part in parts]
        else:
            order = [(machines, part) for part in parts]
        for index in numpy.ndindex(*grid.cells):
            model, asked = grid.cell(index)
            values = dict(zip(grid.fields, grid.chosen(index))) | {"model": model.name}
            at = dict(zip((*grid.fields, "model"), (*index[1:], index[0])))
            last = piece = None
            for some, part in order:
                if part is not last:
                    last, piece = part, Piece(model, asked.replace(**self.engine.sizes(grid.cut(part))))
                wanted = [(name, one) for _, one in some for name in self.columns]
                found = self.engine.values([self._value(piece, name, one, values, at) for name, one in wanted])
                for (on, _), start in zip(some, range(0, len(found), len(self.columns))):
                    block = dict(zip(self.columns, found[start:]))
                    if "hardware" in block:
                        block["hardware"] = on
                    self.rounded |= {name for name in self.whole - self.rounded if numpy.max(block[name]) > MOST}
                    yield (*index, on, *part), tuple(cut.stop - cut.start for cut in part), block

    def _value(self, piece, name, machine, values, at):
        if name in at:
            return at[name] if name in self.labels else values[name]
        return piece.column(name, machine)

    def held(self):
        """All of it in memory, as Columns."""
        shapes = {name: self._extent(name) for name in self.columns}
        count = sum(_product(shape) for shape in shapes.values())
        if count > MOST_HELD or self.points > MOST_ROWS:
            raise InputError(f"{self.grid.said()} does not fit in memory; allowed: {MOST_ROWS:,} rows, and {MOST_HELD:,} values that differ "
                             f"(here {count:,}); ask for parts of a range one after the other or for fewer columns, or write it to a "
                             "file, which takes it in chunks: lmcalc sweep ... -o FILE.parquet (or .csv, .jsonl)")  # fmt: skip
        found = {name: numpy.empty(shape, numpy.int8 if name in LABELS else float) for name, shape in shapes.items()}
        for where, _, block in self.blocks(ordered=False):
            for name, value in block.items():
                array = found[name]
                array[tuple(cut if size > 1 else slice(None) for cut, size in zip(where, array.shape))] = value
        return Columns(found, self)

    def _extent(self, name):
        """The shape that holds a column without repeating it where it does not depend on an axis."""
        grid = self.grid
        machines = len(grid.machines) if name in OF_MACHINE and grid.machines else 1
        if name in grid.fields or name == "model":
            which = ["model", *grid.fields].index(name)
            return tuple(size if at == which else 1 for at, size in enumerate(grid.shape))
        depends = DEPENDS.get(name) or DEPENDS.get(name.partition("_")[0], ())
        shapes = [getattr(grid.sizes[size], "shape", ()) for size in depends]
        points = numpy.broadcast_shapes(*shapes)
        return (*grid.cells, machines, *([1] * (len(grid.points) - len(points))), *points)

    @property
    def notes(self):
        """Conventions, and what has to be said about the numbers."""
        found, grid = dict.fromkeys(CONVENTIONS), self.grid
        largest = {name: int(value if isinstance(value, int) else value.max()) for name, value in grid.sizes.items() if not _empty(value)}
        for index, _ in zip(numpy.ndindex(*grid.cells), range(1000)):
            model, asked = grid.cell(index)
            for note in (*model.notes, *_notes(model, asked.replace(**largest))):
                found[note if len(grid.models) == 1 or note not in model.notes else f"{model.name}: {note}"] = None
        if self.rounded:
            names = ", ".join(name for name in self.columns if name in self.rounded)
            found[f"Beyond 2**53 = {MOST:,} numbers are rounded to float64 (15 digits): some of {names}."] = None
        return list(found)

    def head(self):
        """What a JSON file of a sweep says before its rows."""
        return {
            "schema": SCHEMA, "version": __version__, "points": self.points, "models": list(self.grid.axes["model"]),
            "hardware": [each.name for each in self.grid.machines], "axes": {name: _axis(values) for name, values in self.grid.axes.items()},
            "workload": {name: getattr(self.grid.asked, name) for name in ("mask", "logits", "traffic", "experts", "mla", "fuse_projections")
                         if name not in self.grid.fields} | {"dtypes": {name: value for name, value in self.grid.asked.dtypes().items() if name not in self.grid.fields}},
            "columns": {name: unit(name) for name in self.columns},
        }  # fmt: skip


class Columns(Mapping):
    """{column: array}, all of one length. A column is held without repetition, and spread over its rows when it is asked for."""

    def __init__(self, held, asked, beside=None):
        self._held, self._flat, self.asked, self.grid, self.beside = held, {}, asked, asked.grid, beside
        at = None if beside is None else self.grid.place(beside)
        self.shape = tuple(1 if each == at else size for each, size in enumerate(self.grid.shape))
        self.points, self.columns = _product(self.shape), list(held)
        plain = {name: name.partition("[")[0] for name in held}
        self.labels = {name: asked.labels[each] for name, each in plain.items() if each in asked.labels}
        self.whole = {name for name, each in plain.items() if each in asked.whole}

    def __getitem__(self, name):
        if name not in self._flat:
            values, labels = self.coded(name)
            self._flat[name] = values if labels is None else numpy.array([*labels, None], object)[:-1][values.astype(int)]
        return self._flat[name]

    def __iter__(self):
        return iter(self._held)

    def __len__(self):
        return len(self._held)

    def __repr__(self):
        return f"Columns({self.points:,} rows of {', '.join(self)})"

    def coded(self, name):
        """(values, None) of a column, or (codes, what they stand for) of one of text."""
        return numpy.broadcast_to(self._held[name], self.shape).reshape(-1), self.labels.get(name)

    @property
    def notes(self):
        """Conventions, and what has to be said about the numbers."""
        return self.asked.notes

    def head(self):
        """What a JSON file says before the rows."""
        head = self.asked.head() | {"points": self.points, "columns": {name: unit(name.partition("[")[0]) for name in self}}
        return head if self.beside is None else head | {"wide": self.beside}

    def blocks(self):
        """(None, shape, {column: array}) of part after part, as of a Sweep."""
        columns = {name: self.coded(name)[0] for name in self}
        for at in range(0, self.points, 2**16):
            block = {name: values[at : at + 2**16] for name, values in columns.items()}
            yield None, (min(2**16, self.points - at),), block

    def to_frame(self):
        """The same as a pandas DataFrame; text is categorical."""
        import pandas

        found = {}
        for name in self:
            values, labels = self.coded(name)
            if labels is None or labels is LABELS["fits"]:
                found[name] = self[name]
            else:
                known = list(dict.fromkeys(label for label in labels if label is not None))
                codes = numpy.array([-1 if label is None else known.index(label) for label in labels])
                found[name] = pandas.Categorical.from_codes(codes[values.astype(int)], known)
        return pandas.DataFrame(found)

    def wide(self, name):
        """One row for all the values of an axis, side by side: a column `cost[axis=value]` for each cost that depends on it."""
        axes = self.grid.axes
        if name not in axes or len(axes[name]) < 2:
            varied = [each for each, values in axes.items() if len(values) > 1]
            raise InputError(f"--wide {name}; allowed: an axis of several values" + (f": {', '.join(varied)}" if varied else ", and there is none"))
        if len(axes[name]) > MOST_WIDE:
            raise InputError(f"--wide {name}: {len(axes[name]):,} values; allowed: at most {MOST_WIDE:,} side by side")
        at, found = self.grid.place(name), {}
        for column, held in self._held.items():
            if held.shape[at] == 1:
                found[column] = held
            elif column != name:
                for which, value in enumerate(axes[name]):
                    found[f"{column}[{name}={value}]"] = held.take([which], axis=at)
        return Columns(found, self.asked, name)


class Piece:
    """A model on a part of the grid; what several columns or machines need is computed once."""

    def __init__(self, model, asked):
        self.model, self.asked, self.known = model, asked, {}

    @cached_property
    def prefill(self):
        return Pass(self.model, self.asked, self.asked.prompt, self.asked.past)

    @cached_property
    def decode(self):
        if self.model.bidirectional:  # an encoder generates nothing
            return None
        return Pass(self.model, self.asked, 1, self.asked.context, encoded=True)

    @cached_property
    def held(self):
        return cache((self.decode or self.prefill).trace, self.asked.batch, self.asked.context, self.asked.storage())

    def column(self, name, machine=None):
        """The values of one column on this part of the grid; codes where it is text."""
        key = name, id(machine) if name in OF_MACHINE else None
        if key not in self.known:
            self.known[key] = self._computed(name, machine)
        return self.known[key]

    def _computed(self, name, machine):
        if name in POINT:
            return POINT[name](self)
        if name == "hardware":
            return 0
        if name == "fits":
            return 2 if machine.memory is None else (self.column("memory_needed") <= machine.memory) * numpy.int8(1)
        phase, _, rest = name.partition("_")
        each = getattr(self, phase)
        if each is None:
            return LABELS[name].index(None) if name in LABELS else numpy.nan
        if rest in PHASE:
            return PHASE[rest](each)
        if rest == "tokens_per_s":
            return self.asked.batch * each.tokens / self.column(f"{phase}_bound_s", machine)
        rates = machine.bandwidth, machine.matrix_peak(self.asked.activations)[0], machine.vector_peak()[0]
        times = by_kernel(each, *rates) if rest in ("roofline_s", "serial_s") else bounds(each, *rates, by=_code)
        found = {key: numpy.nan if value is None and key != "bound_by" else value for key, value in times.items()}
        if found.get("bound_by", 0) is None:
            found["bound_by"] = LABELS["decode_bound_by"].index(None)
        self.known.update({(f"{phase}_{key}", id(machine)): value for key, value in found.items()})
        return found[rest]


def _code(sides, bound):
    """Which side sets the bound, as its place in SIDES; of equal ones the first."""
    which = numpy.int8(0)
    for name in reversed(sides):
        which = numpy.where(sides[name] == bound, numpy.int8(SIDES.index(name)), which)
    return which


def _chosen(columns, grid):
    own = [name for name in grid.fields if name not in COLUMNS]
    if columns is None:
        at = USUAL.index("params_total")
        return [name for name in (*USUAL[:at], *own, *USUAL[at:]) if grid.machines or name not in OF_MACHINE]
    columns = [columns] if isinstance(columns, str) else list(columns)
    known = (*COLUMNS, *own)
    for name in columns:
        if name not in known:
            raise unknown("column", name, known)
        if name in OF_MACHINE and not grid.machines:
            raise InputError(f"column {name} needs a machine: hardware=NAME")
    if len({*columns}) < len(columns):
        raise InputError(f"column {next(name for name in columns if columns.count(name) > 1)} is given twice")
    if not columns:
        raise InputError("no columns; allowed: at least one")
    return columns


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _axis(values):
    """An axis as JSON says it: its values, or the ends of many."""
    return list(values) if len(values) <= 1000 else {"first": values[0], "last": values[-1], "count": len(values)}


def _empty(value):
    return not isinstance(value, int) and value.size == 0


def _product(sizes):
    count = 1
    for each in sizes:
        count *= each
    return count
