"""The answer of a sweep in memory: columns, each held once however often it is repeated along the grid."""

from collections.abc import Mapping

import numpy

from ..errors import InputError, shown
from ..units import unit
from .grid import product
from .piece import LABELS

MOST_WIDE = 1000  # values side by side


class Columns(Mapping):
    """{column: array}, all of one length. A column is held without repetition, and spread out when asked for."""

    def __init__(self, held, asked, beside=None):
        self._held, self._flat, self.asked, self.grid, self.beside = held, {}, asked, asked.grid, beside
        at = None if beside is None else self.grid.place(beside)
        self.shape = tuple(1 if each == at else size for each, size in enumerate(self.grid.shape))
        self.points, self.columns = product(self.shape), list(held)
        plain = {name: name.partition("[")[0] for name in held}
        self.labels = {name: asked.labels[each] for name, each in plain.items() if each in asked.labels}
        self.whole = {name for name, each in plain.items() if each in asked.whole}

    def __getitem__(self, name):
        if name not in self._flat:
            values, labels = self.coded(name)
            if labels is not None:
                names = numpy.empty(len(labels), object)
                names[:] = labels
                values = names[values.astype(int)]
            self._flat[name] = values
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
        head = self.asked.head() | {
            "points": self.points,
            "columns": {name: unit(name.partition("[")[0]) for name in self},
        }
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
        """All values of an axis side by side in a row: a column `cost[axis=value]` for each cost that depends on it."""
        check_wide(self.grid, name)
        axes = self.grid.axes
        at, found = self.grid.place(name), {}
        for column, held in self._held.items():
            if held.shape[at] == 1:
                found[column] = held
            elif column != name:
                for which, value in enumerate(axes[name]):
                    found[f"{column}[{name}={value}]"] = held.take([which], axis=at)
        return Columns(found, self.asked, name)


def check_wide(grid, name):
    """InputError unless the values of that axis of a grid fit side by side: said before any work is done."""
    axes = grid.axes
    if not isinstance(name, str) or name not in axes or len(axes[name]) < 2:
        varied = [each for each, values in axes.items() if len(values) > 1]
        raise InputError(
            f"--wide {name if isinstance(name, str) else shown(name)}; allowed: an axis of several values"
            + (f": {', '.join(varied)}" if varied else ", and there is none")
        )
    if len(axes[name]) > MOST_WIDE:
        raise InputError(f"--wide {name}: {len(axes[name]):,} values; allowed: at most {MOST_WIDE:,} side by side")
