"""A sweep written as it is computed, a part of the grid at a time: csv, JSON, JSON lines, Parquet.

Ctrl-C ends it after the part at hand: the file then holds whole rows of what is done, and is valid.
"""

import json
import os
import signal
import sys
import threading
from itertools import repeat

import numpy

from ..errors import InputError
from ..questions.held import check_wide
from ..questions.piece import LABELS
from ..questions.sweep import MOST_WRITTEN
from ..questions.vary import SIZES
from . import rendered
from .cells import word, words
from .outlet import Outlet, say

MOST_SHOWN = {"table": 10_000, "html": 10_000, "markdown": 100_000}  # rows
ROW_GROUP = 2**20  # rows of a row group of Parquet


def answer(asked, form, path=None, wide=None, given=False, plotted=False):
    """A Sweep in a format: (text, status), the text None where it is written already.

    given: columns were chosen. plotted: there is a picture, beside which a table that is too long may be missing.
    """
    if form == "parquet" and path is None:
        raise InputError("Parquet is not for a terminal; allowed: -o FILE.parquet")
    _written(asked)
    if wide is not None:
        check_wide(asked.grid, wide)
    if form in MOST_SHOWN:
        if asked.points > MOST_SHOWN[form] and plotted and path is None:
            say(f"lmcalc: note: {asked.points:,} rows, not shown; -o FILE.csv writes them")
            return None, 0
        if asked.points > MOST_SHOWN[form]:
            raise InputError(
                f"{asked.grid.said()} as {form}; allowed: at most {MOST_SHOWN[form]:,} rows; give shorter ranges, or "
                "write it to a file, which takes it in chunks: -o FILE.parquet (or .csv, .jsonl)"
            )
        columns = asked.held() if wide is None else asked.held().wide(wide)
        more = {"chosen": given} if form == "table" else {}
        return rendered(form, columns, "sweep", to_file=path is not None, **more), 0
    source = asked if wide is None else asked.held().wide(wide)
    with progress_bar(source.points if path is not None else 0) as progress:
        done, complete = streamed(source, form, path, progress)
    notes = [each for each in asked.notes if each.startswith("Beyond")] if path is not None or form != "json" else []
    for note in notes:
        say(f"lmcalc: note: {note}")
    if not complete:
        where = f"{path or 'the output'}, which is whole as far as it goes"
        say(f"lmcalc: interrupted: {done:,} of {source.points:,} rows are in {where}")
    return None, 0 if complete else 130


def _written(asked):
    """Refuse what no file holds."""
    if asked.points > MOST_WRITTEN:
        raise InputError(
            f"{asked.grid.said()}; allowed: at most {MOST_WRITTEN:,}, to a file (-o FILE.parquet, .csv or .jsonl); "
            "give a part of a range at a time: --vary context=1:1000 into one file, context=1001:2000 into the next"
        )


def streamed(asked, form, path=None, progress=None):
    """Write a Sweep; returns (rows written, whether that is all). progress: called with the rows done so far."""
    _written(asked)
    writer = WRITERS[form](asked)
    done = 0
    with Outlet(path) as outlet, _Interrupts() as interrupts:
        writer.start(outlet)
        for _, shape, block in asked.blocks():
            count = int(numpy.prod(shape))
            writer.write(outlet, block, shape, count)
            done += count
            if progress is not None:
                progress(done)
            if interrupts.came:
                break
        complete = done == asked.points
        writer.end(outlet, complete)
    return done, complete


class _Interrupts:
    """While it is entered, Ctrl-C is noted in `came`; a second one ends the program as ever."""

    came = False

    def __enter__(self):
        self.own = threading.current_thread() is threading.main_thread()
        if self.own:
            self.before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_):
        self.came = True
        signal.signal(signal.SIGINT, self.before)

    def __exit__(self, *_):
        if self.own:
            signal.signal(signal.SIGINT, self.before)


class Csv:
    """A line a row; numbers as Python prints them, empty where there is none."""

    none, quote = "", None

    def __init__(self, asked):
        from .text import field

        self.asked, self.quote = asked, field

    def start(self, outlet):
        outlet.write(",".join(self.asked.columns) + "\n")

    def write(self, outlet, block, shape, count):
        outlet.write("\n".join(map(",".join, zip(*self.columns(block, shape, count)))) + "\n")

    def end(self, outlet, complete):
        pass

    def columns(self, block, shape, count):
        """The columns of a block as iterables of text; what does not differ is made once."""
        for name, value in block.items():
            found = words(value, self.asked.labels.get(name), name in self.asked.whole, self.none, self.quote)
            if isinstance(found, str):
                yield repeat(found, count)
            else:
                yield found if len(found) == count else _spread(found, numpy.shape(value), shape)


def _spread(texts, own, shape):
    array = numpy.empty(len(texts), object)
    array[:] = texts
    return numpy.broadcast_to(array.reshape(own), shape).reshape(-1).tolist()


class Lines(Csv):
    """A JSON object a line (JSON lines), null where there is nothing."""

    none, between = "null", "\n"

    def __init__(self, asked):
        self.asked, self.quote = asked, json.dumps
        self.row = "{" + ", ".join(f"{json.dumps(name).replace('%', '%%')}: %s" for name in asked.columns) + "}"

    def start(self, outlet):
        pass

    def write(self, outlet, block, shape, count):
        outlet.write(self.between.join(map(self.row.__mod__, zip(*self.columns(block, shape, count)))) + "\n")


class Json(Lines):
    """One object: what was asked, `rows`, whether they are complete, and notes (schema lmcalc.sweep/1)."""

    between = ",\n"
    first = True

    def start(self, outlet):
        outlet.write(json.dumps(self.asked.head(), indent=2, allow_nan=False)[:-2] + ',\n  "rows": [\n')

    def write(self, outlet, block, shape, count):
        outlet.write("" if self.first else ",\n")
        self.first = False
        outlet.write(self.between.join(map(self.row.__mod__, zip(*self.columns(block, shape, count)))))

    def end(self, outlet, complete):
        rest = json.dumps({"complete": complete, "notes": self.asked.notes}, indent=2)
        outlet.write(("" if self.first else "\n") + "  ],\n" + rest[2:] + "\n")


class Parquet:
    """Columns of int64 (sizes, whole fields), double (costs), bool, dictionary of string; null where there is none."""

    def __init__(self, asked):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise InputError("Parquet needs pyarrow: pip install 'lmcalc[parquet]'; or write .csv or .jsonl") from None
        self.asked, self.arrow, self.parts, self.rows = asked, pyarrow, [], 0
        self.kinds = {name: self._kind(name) for name in asked.columns}
        about = {b"lmcalc": json.dumps(asked.head()).encode()}
        self.schema = pyarrow.schema([(name, kind) for name, kind in self.kinds.items()], metadata=about)

    def _kind(self, name):
        if self.asked.labels.get(name) is LABELS["fits"]:
            return self.arrow.bool_()
        if name in self.asked.labels:
            return self.arrow.dictionary(self.arrow.int32(), self.arrow.string())
        whole = name in self.asked.whole and (name in SIZES or name in self.asked.grid.fields)
        return self.arrow.int64() if whole else self.arrow.float64()

    def start(self, outlet):
        self.writer = self.arrow.parquet.ParquetWriter(outlet.file, self.schema, compression="zstd")

    def write(self, outlet, block, shape, count):
        self.parts.append([self._column(name, value, shape) for name, value in block.items()])
        self.rows += count
        if self.rows >= ROW_GROUP:
            self._flush()

    def _column(self, name, value, shape):
        flat = numpy.broadcast_to(value, shape).reshape(-1)
        labels, kind = self.asked.labels.get(name), self.kinds[name]
        if labels is None:
            return self.arrow.array(
                flat.astype(numpy.int64) if kind == self.arrow.int64() else flat.astype(float), kind, from_pandas=True
            )
        missing = numpy.isin(flat, [at for at, label in enumerate(labels) if label is None])
        if kind == self.arrow.bool_():
            return self.arrow.array(flat == labels.index(True), kind, mask=missing)
        names = self.arrow.array([word(label, "") for label in labels])
        return self.arrow.DictionaryArray.from_arrays(self.arrow.array(flat.astype(numpy.int32), mask=missing), names)

    def _flush(self):
        if self.parts:
            columns = [self.arrow.chunked_array(each) for each in zip(*self.parts)]
            table = self.arrow.Table.from_arrays(columns, schema=self.schema)
            self.writer.write_table(table.unify_dictionaries(), row_group_size=ROW_GROUP)
        self.parts, self.rows = [], 0

    def end(self, outlet, complete):
        self._flush()
        about = {"complete": complete, "notes": self.asked.notes}
        self.writer.add_key_value_metadata({"lmcalc.end": json.dumps(about)})
        self.writer.close()


WRITERS = {"csv": Csv, "json": Json, "jsonl": Lines, "parquet": Parquet}


def progress_bar(total):
    """A context that gives a function of the rows done; it moves a bar on standard error where that is a terminal."""
    if not total or not sys.stderr.isatty():
        from contextlib import nullcontext

        return nullcontext()
    return _Bar(total)


class _Bar:
    def __init__(self, total):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        console = Console(file=sys.stderr, no_color=bool(os.environ.get("NO_COLOR")))
        columns = BarColumn(), MofNCompleteColumn(), "rows", TimeRemainingColumn()
        self.bar = Progress(*columns, console=console, transient=True)
        self.task = self.bar.add_task("", total=total)

    def __enter__(self):
        self.bar.start()
        return lambda done: self.bar.update(self.task, completed=done)

    def __exit__(self, *_):
        self.bar.stop()
