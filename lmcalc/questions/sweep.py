"""A grid at once: every cost as columns, a row for each point, computed a part of the grid at a time."""

import copy

import numpy

from .. import __version__
from ..arguments import several
from ..errors import InputError, unknown
from ..units import unit
from ..workload import CHOICES, DTYPES, MOST
from .engines import engine
from .grid import Grid, product
from .held import Columns
from .piece import COLUMNS, DEPENDS, LABELS, OF_MACHINE, USUAL, Piece
from .report import CONVENTIONS, _notes
from .vary import SIZES

SCHEMA = "lmcalc.sweep/1"
MOST_HELD, MOST_ROWS, MOST_WRITTEN = 2**30, 2**32, 10**10  # values and rows in memory, rows in a file


def sweep(
    model, hardware=(), columns=None, set=None, set_hardware=None, vary=None, engine="numpy", scheduler=None, **options
):
    """What models cost at every point of a grid, as columns; a row is one model on one machine at one workload.

    model, hardware: a name, or several. vary: {name: values} of sizes, dtypes, conventions or fields of the cards, each
    a list, a range or a text such as "1k:128k:log2" (see questions/vary.py); they span a grid. columns: names out of
    COLUMNS (questions/piece.py) and of what is varied (default: USUAL). set: {field: value} over the cards. engine:
    numpy, or dask on the cluster at `scheduler`. options: as of `report`; batch, prompt, past and context may also be
    lists or arrays that broadcast against each other. Numbers are float64: exact up to 2**53, beyond that to 15 digits;
    NaN where a machine lacks the figure, or an encoder the phase. Raises InputError.

    >>> grid = sweep("llama-3.1-8b", batch=[[1], [8]], context=[1024, 4096], columns=["batch", "cache_bytes"])
    >>> grid["cache_bytes"].tolist()
    [134217728.0, 536870912.0, 1073741824.0, 4294967296.0]
    >>> heads = sweep("llama-3.1-8b", vary={"n_kv_heads": [1, 8], "context": "1k:4k:log2"}, columns="cache_bytes")
    >>> heads["cache_bytes"].tolist()
    [16777216.0, 33554432.0, 67108864.0, 134217728.0, 268435456.0, 536870912.0]
    """
    models = model if isinstance(model, list | tuple) else [model]
    return Sweep(models, hardware, columns, set, set_hardware, vary, engine, scheduler, options).held()


class Sweep:
    """A sweep that was asked for and checked, and not begun."""

    def __init__(self, models, hardware=(), columns=None, set=None, set_hardware=None, vary=None, engine_name="numpy",
                 scheduler=None, options=None):  # fmt: skip
        self.grid = Grid(models, hardware, set, set_hardware, vary, **(options or {}))
        self.engine = engine(engine_name, scheduler)
        self._choose(_chosen(columns, self.grid))

    def of(self, columns):
        """The same grid with other columns."""
        other = copy.copy(self)
        other._choose(_chosen(columns, self.grid))
        return other

    def _choose(self, columns):
        self.columns = columns
        self.labels = {**LABELS, "model": self.grid.axes["model"], "hardware": self.grid.axes.get("hardware")}
        self.labels |= {name: values for name, values in self.grid.fields.items() if not all(map(_is_number, values))}
        self.labels = {name: values for name, values in self.labels.items() if name in self.columns}
        self.whole = {name for name in self.columns if name not in self.labels and self._whole(name)}
        self.rounded = frozenset()

    @property
    def points(self):
        """How many rows."""
        return len(self.grid)

    def depends(self, name):
        """The axes of the grid along which a column may change."""
        extent = self._extent(name)
        return {axis for axis in self.grid.axes if extent[self.grid.place(axis)] > 1}

    def _whole(self, name):
        if name in self.grid.fields:
            return all(isinstance(value, int) for value in self.grid.fields[name])
        return not name.endswith(("_s", "_intensity"))

    def blocks(self, ordered=True):
        """(where, shape, {column: number, array or code}) of part after part; `where` indexes the whole grid.

        ordered: in the order of rows. Otherwise all machines of a part come together, which shares work.
        """
        try:
            yield from self._blocks(ordered)
        finally:
            self.engine.close()

    def _blocks(self, ordered):
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
        count = sum(product(shape) for shape in shapes.values())
        if count > MOST_HELD or self.points > MOST_ROWS:
            raise InputError(
                f"{self.grid.said()} does not fit in memory; allowed: {MOST_ROWS:,} rows, and {MOST_HELD:,} values "
                f"(here {count:,}); ask for parts of a range one after the other or for fewer columns, or write it to "
                "a file, which takes it in chunks: lmcalc sweep ... -o FILE.parquet (or .csv, .jsonl)"
            )
        kinds = {**dict.fromkeys(self.labels, numpy.int32), **dict.fromkeys(LABELS, numpy.int8)}  # codes of text
        found = {name: numpy.empty(shape, kinds.get(name, float)) for name, shape in shapes.items()}
        for where, _, block in self.blocks(ordered=False):
            for name, value in block.items():
                array = found[name]
                array[tuple(cut if size > 1 else slice(None) for cut, size in zip(where, array.shape))] = value
        return Columns(found, self)

    def _extent(self, name):
        """The shape that holds a column without repeating it where it does not depend on an axis."""
        grid = self.grid
        if name in ("model", "hardware", *grid.fields):
            at = grid.place(name)
            return tuple(size if each == at else 1 for each, size in enumerate(grid.shape))
        cells = [1] * len(grid.cells) if name in SIZES else grid.cells
        machines = len(grid.machines) if name in OF_MACHINE else 1
        depends = DEPENDS.get(name) or DEPENDS.get(name.partition("_")[0], ())
        points = numpy.broadcast_shapes(*(getattr(grid.sizes[size], "shape", ()) for size in depends))
        return (*cells, machines, *([1] * (len(grid.points) - len(points))), *points)

    @property
    def notes(self):
        """Conventions, and what has to be said about the numbers."""
        found, grid = dict.fromkeys(CONVENTIONS), self.grid
        largest = {
            name: int(value if isinstance(value, int) else value.max())
            for name, value in grid.sizes.items()
            if not _empty(value)
        }
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
        grid = self.grid
        same = [name for name in (*CHOICES, "fuse_projections") if name not in grid.fields]
        dtypes = {name: getattr(grid.asked, name) for name in DTYPES if name not in grid.fields}
        sizes = {name: value for name, value in grid.sizes.items() if isinstance(value, int)}
        return {
            "schema": SCHEMA,
            "version": __version__,
            "points": self.points,
            "models": list(grid.axes["model"]),
            "hardware": [each.name for each in grid.machines],
            "axes": {name: _axis(values) for name, values in grid.axes.items()},
            "workload": sizes | {name: getattr(grid.asked, name) for name in same} | {"dtypes": dtypes},
            "columns": {name: unit(name) for name in self.columns},
        }


def _chosen(columns, grid):
    own = [name for name in grid.fields if name not in COLUMNS]
    if columns is None:
        at = USUAL.index("params_total")
        return [name for name in (*USUAL[:at], *own, *USUAL[at:]) if grid.machines or name not in OF_MACHINE]
    columns = several(columns)
    known = (*COLUMNS, *own)
    for name in columns:
        if not isinstance(name, str) or name not in known:
            raise unknown("column", name, known)
        if name in OF_MACHINE and not grid.machines:
            raise InputError(f"column {name} needs a machine: -H NAME (hardware=NAME)")
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
