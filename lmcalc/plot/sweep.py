"""A sweep as a picture: lines against one axis of the grid, or heat maps over two."""

import itertools

import numpy
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from ..errors import InputError
from ..units import si, unit
from ..words import short
from ..workload import DTYPES
from . import LINES, MARKERS, Look, si_axis

MOST_LINES, MOST_PANELS, MOST_VALUES = 12, 6, 2**20
LONG = 4  # values of an axis that is worth a side of a map
USUAL = ("decode_bound_s", "prefill_bound_s", "decode_flops", "cache_bytes", "prefill_flops", "params_total")
BOUNDS = ("_bound_s", "_tokens_per_s")  # columns that change where the bound changes sides
WRITTEN = 12  # columns of cells that have room for their numbers


def needed(asked, chosen):
    """(columns of a Sweep to draw, a panel each; these and all that the picture needs beside them).

    chosen: whether they were asked for; else of the usual ones up to two that differ along the grid.
    """
    if all(len(values) < 2 for values in asked.grid.axes.values()):
        raise InputError("--plot: a grid of one point; allowed: --vary with several values")
    if asked.points > MOST_VALUES:
        raise InputError(f"--plot: {asked.grid.said()}; allowed: up to {MOST_VALUES:,} points, by wider steps")
    known = [name for name in asked.columns if name not in asked.grid.axes and name not in asked.labels]
    if not chosen:
        known = [name for name in USUAL if name in known and asked.depends(name)][:2]
    if not known:
        raise InputError("--plot: no column to draw; allowed: --columns with costs, such as decode_bound_s")
    if len(known) > MOST_PANELS:
        raise InputError(f"--plot: {len(known)} columns; allowed: up to {MOST_PANELS}, by --columns")
    marks = [f"{name.partition('_')[0]}_bound_by" for name in known if name.endswith(BOUNDS)] + ["fits"]
    return known, list(dict.fromkeys([*known, *(marks if asked.grid.machines else ())]))


def draw(data, names, chosen=False, dark=False):
    """The figure of Columns of a sweep; names, chosen: as of `needed`, whose columns data has."""
    axes = {name: values for name, values in data.grid.axes.items() if len(values) > 1}
    numbers = [name for name, values in axes.items() if all(_is_number(value) for value in values)]
    sides = sorted((name for name in numbers if len(axes[name]) >= LONG), key=lambda name: -len(axes[name]))[:2]
    lines_over = max(numbers or axes, key=lambda name: len(axes[name]))
    maps = _others(axes, sides) if len(sides) == 2 else []
    lines = _others(axes, [lines_over])
    names = [name for name in names if {*sides} <= data.asked.depends(name)] or names if maps and not chosen else names
    if maps and len(maps) * len(names) <= MOST_PANELS:
        return _maps(Grid(data, axes), names, sorted(sides, key=lambda name: name != "context"), maps, Look(dark))
    if len(lines) <= MOST_LINES:
        return _lines(Grid(data, axes), names, lines_over, lines, Look(dark))
    raise InputError(
        f"--plot: {len(lines)} lines against {lines_over}"
        + (f", or {len(maps) * len(names)} maps over {' and '.join(sides)}" if maps else "")
        + f"; allowed: up to {MOST_LINES} lines or {MOST_PANELS} maps; vary fewer values, or draw fewer --columns"
    )


class Grid:
    """Columns of a sweep by their axes."""

    def __init__(self, data, axes):
        self.data, self.axes, self.grid = data, axes, data.grid

    def values(self, name, at, sides):
        """A column along Sides, at one place of the other axes: {axis: index}; codes where it is text."""
        along = {side.name for side in sides}
        array = self.data.coded(name)[0].reshape(self.grid.shape)
        index = [0] * array.ndim
        for axis in self.axes:
            index[self.grid.place(axis)] = slice(None) if axis in along else at[axis]
        found = array[tuple(index)]
        order = sorted((side.name for side in sides), key=self.grid.place)
        found = numpy.asarray(found, float).transpose([order.index(side.name) for side in sides])
        return found[numpy.ix_(*(side.order for side in sides))]

    def is_at(self, name, label, at, sides):
        """Where a column of text has one of its values, or None if the column is not there."""
        if name not in self.data:
            return None
        return self.values(name, at, sides) == self.data.labels[name].index(label)

    def words(self, at):
        """A place in words, such as "h100-sxm, batch 8"."""
        return ", ".join(_said(axis, self.axes[axis][index]) for axis, index in at.items())

    def same(self):
        """What does not vary, in words."""
        known = {name: values[0] for name, values in self.grid.axes.items() if len(values) == 1}
        sizes = {name: value for name, value in self.grid.sizes.items() if isinstance(value, int)}
        asked, dtypes = self.grid.asked, [name for name in DTYPES[:3] if name not in self.grid.fields]
        return "\n".join([
            ", ".join(_said(name, value) for name, value in (known | sizes).items() if value or name != "past"),
            ", ".join(f"{name} {getattr(asked, name) or 'as stored'}" for name in dtypes),
        ]).strip()  # fmt: skip


def _others(axes, sides):
    """All places of the axes that are no sides: [{axis: index}]."""
    rest = [name for name in axes if name not in sides]
    return [dict(zip(rest, each)) for each in itertools.product(*(range(len(axes[name])) for name in rest))]


def _said(axis, value):
    return str(value) if axis in ("model", "hardware") else f"{axis} {_tick(value)}"


def _tick(value):
    return short(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _title(name):
    kind = unit(name)
    if kind == "tokens/s":
        return name.replace("_tokens_per_s", " tokens/s")
    return name.removesuffix(f"_{kind}" if kind in ("s", "bytes") else "").replace("_", " ") + (
        f", {kind}" if kind else ""
    )


# Lines -----------------------------------------------------------------------------------------------------------


def _lines(grid, names, over, places, look):
    figure, panels = look.figure(5.2 * len(names) + 0.6, 4.6, 1, len(names))
    place = Side(over, grid.axes[over])
    told = set()
    for axes, name in zip(panels[0], names):
        for at, where in enumerate(places):
            style = {"color": look.colours[at % len(look.colours)], "linestyle": LINES[at % len(LINES)]}
            told |= _line(axes, grid, name, place, where, style, MARKERS[at % len(MARKERS)], look)
        _scaled(axes.yaxis, grid.data, name)
        axes.set_ylabel(_title(name), fontsize=9)
        place.put(axes.xaxis)
    handles = [
        Line2D([], [], label=grid.words(where), color=look.colours[at % len(look.colours)],
               linestyle=LINES[at % len(LINES)], marker=MARKERS[at % len(MARKERS)], markersize=4)
        for at, where in enumerate(places) if where
    ]  # fmt: skip
    handles += [Line2D([], [], label=label, color=look.ink, **style) for label, style in TOLD.items() if label in told]
    _headed(figure, grid, look, handles)
    return figure


TOLD = {
    "filled: compute bound": {"linestyle": "", "marker": "o", "markersize": 4.5},
    "faint: does not fit": {"alpha": 0.3},
}


def _line(axes, grid, name, place, where, style, marker, look):
    """One line of a panel; returns the legends that it needs."""
    values, told = grid.values(name, where, [place]), set()
    fits = grid.is_at("fits", False, where, [place])
    inside = numpy.ones(len(values), bool) if fits is None else ~fits
    axes.plot(place.at, values, linewidth=1.2, alpha=0.3, **style)
    axes.plot(place.at, numpy.where(inside, values, numpy.nan), linewidth=1.6, **style)
    if not inside.all():
        told.add("faint: does not fit")
    if len(values) <= 40:
        compute = _compute(grid, name, where, [place])
        filled = numpy.ones(len(values), bool) if compute is None else compute
        if not filled.all():
            told.add("filled: compute bound")
        for mask, face in ((filled, style["color"]), (~filled, look.paper)):
            axes.plot(place.at[mask], values[mask], linestyle="", marker=marker, markersize=4.5,
                      markerfacecolor=face, markeredgecolor=style["color"], alpha=0.9)  # fmt: skip
    return told


def _scaled(axis, data, name):
    """A logarithmic axis where the values ask for one."""
    least, most = _ends(data.coded(name)[0])
    if least > 0 and most > 20 * least:
        axis.axes.set_yscale("log")
        axis.set_minor_formatter(NullFormatter())
    si_axis(axis, unit(name) if unit(name) != "FLOP/B" else "")


def _ends(values):
    values = numpy.asarray(values, float)
    values = values[numpy.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else (1.0, 1.0)


# Maps ------------------------------------------------------------------------------------------------------------


def _maps(grid, names, sides, places, look):
    panels = [(name, where) for name in names for where in places]
    columns = min(3, len(places)) if len(places) > 1 else min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, all_axes = look.figure(4.9 * columns + 0.4, 4.1 * rows + 0.7, rows, columns)
    across, up = (Side(name, grid.axes[name]) for name in sides)
    told = set()
    for axes, (name, where) in itertools.zip_longest(all_axes.flat, panels, fillvalue=(None, None)):
        if name is None:
            axes.set_visible(False)
            continue
        told |= _map(figure, axes, grid, name, where, across, up, look)
        axes.set_title(", ".join(filter(None, (_title(name), grid.words(where)))), fontsize=9.5, color=look.ink)
        across.put(axes.xaxis)
        up.put(axes.yaxis)
        axes.grid(False)
    handles = [Line2D([], [], label=f"border of: {label}", color=BORDER, linewidth=2, linestyle=style)
               for label, style in BORDERS.items() if label in told]  # fmt: skip
    _headed(figure, grid, look, handles)
    return figure


BORDERS = {"compute bound": "-", "does not fit": (0, (3, 1.5))}
BORDER = "#D55E00"
LABEL = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1.5}


def _map(figure, axes, grid, name, where, across, up, look):
    """One map; returns the legends of the borders in it."""
    sides = [up, across]
    values, told = grid.values(name, where, sides), set()
    least, most = _ends(grid.data.coded(name)[0])
    wide = least > 0 and most > 20 * least
    norm = LogNorm(least, most) if wide else Normalize(least, most)
    mesh = axes.pcolormesh(across.edges, up.edges, values, norm=norm, cmap="cividis", rasterized=True)
    bar = figure.colorbar(mesh, ax=axes, pad=0.02)
    si_axis(bar.ax.yaxis, unit(name) if unit(name) != "FLOP/B" else "")
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.ax.tick_params(colors=look.ink, labelsize=8)
    bar.outline.set_visible(False)
    written = len(across.at) <= WRITTEN and len(up.at) <= WRITTEN
    if written:
        for row, column in numpy.ndindex(*values.shape):
            if numpy.isfinite(values[row, column]):
                text = si(values[row, column]).strip().replace(" ", "")
                dark = norm(values[row, column]) < 0.55
                axes.text(across.at[column], up.at[row], text, ha="center", va="center", fontsize=6.5,
                          color="white" if dark else "black")  # fmt: skip
    for label, mask in (("compute bound", _compute(grid, name, where, sides)),
                        ("does not fit", grid.is_at("fits", False, where, sides))):  # fmt: skip
        border = [] if mask is None else _border(mask, across.edges, up.edges)
        if border:
            told.add(label)
            axes.add_collection(LineCollection(border, colors=BORDER, linewidths=2, linestyles=[BORDERS[label]]))
            if not written:
                rows, columns = numpy.nonzero(mask)
                middle = across.at[columns].mean(), up.at[rows].mean()
                axes.text(*middle, label, ha="center", va="center", fontsize=8, color="black", bbox=LABEL)
    return told


def _compute(grid, name, where, sides):
    """Where the bound that a column follows is that of computing, or None if it follows none."""
    return grid.is_at(f"{name.partition('_')[0]}_bound_by", "compute", where, sides) if name.endswith(BOUNDS) else None


def _border(mask, x, y):
    """The edges between cells where a mask holds and cells where it does not."""
    found = []
    for row, column in zip(*numpy.nonzero(mask[:, 1:] != mask[:, :-1])):
        found.append([(x[column + 1], y[row]), (x[column + 1], y[row + 1])])
    for row, column in zip(*numpy.nonzero(mask[1:] != mask[:-1])):
        found.append([(x[column], y[row + 1]), (x[column + 1], y[row + 1])])
    return found


class Side:
    """An axis of the grid as a side of a picture: places, by powers of two where it spans many."""

    def __init__(self, name, values):
        at = numpy.arange(len(values), dtype=float)
        if all(_is_number(value) for value in values):
            at = numpy.asarray(values, float)
            at = numpy.log2(at) if at.min() > 0 and at.max() >= 16 * at.min() else at
        self.name, self.order = name, at.argsort()
        self.at, self.values = at[self.order], [values[each] for each in self.order]
        middles = (self.at[1:] + self.at[:-1]) / 2
        self.edges = numpy.concatenate([[2 * self.at[0] - middles[0]], middles, [2 * self.at[-1] - middles[-1]]])

    def put(self, axis):
        """Tick a picture's axis with some of the values."""
        chosen = self._ticked()
        axis.set_major_locator(FixedLocator([self.at[each] for each in chosen]))
        texts = {float(self.at[each]): _tick(self.values[each]) for each in chosen}
        axis.set_major_formatter(FuncFormatter(lambda value, _: texts.get(float(value), "")))
        axis.set_minor_locator(FixedLocator([]))
        axis.set_label_text(self.name.replace("_", " "), fontsize=9)

    def _ticked(self):
        """Which values to write: of many, every so many of the powers of two among them, or of all."""
        doubling = [at for at, value in enumerate(self.values) if isinstance(value, int) and value & (value - 1) == 0]
        known = doubling if len(self.at) > 12 and len(doubling) > 3 else range(len(self.at))
        return [*known][:: -(-len(known) // 12)]


def _headed(figure, grid, look, handles):
    if handles:
        look.legend(figure, handles)
    figure.suptitle(grid.same(), fontsize=9.5, color=look.ink)
