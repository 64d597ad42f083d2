"""The screen that tables are drawn on: colours on a terminal, plain text in a pipe or file."""

import io
import os
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text


def screen(to_file=False):
    """A console of the terminal's width (80 columns in a pipe or file)."""
    plain = to_file or not sys.stdout.isatty()
    environ = {name: text for name, text in os.environ.items() if name not in SIZES or _size(text)}
    return Console(no_color=True if plain or "--no-color" in sys.argv else None, highlight=False, soft_wrap=False,
                   force_terminal=False if plain else None, width=None if not plain else _columns(),
                   file=io.StringIO() if plain else None, _environ=environ)  # fmt: skip


SIZES = ("COLUMNS", "LINES")


def _columns():
    columns = _size(os.environ.get("COLUMNS", ""))
    return columns if 40 <= columns <= 1000 else 80


def _size(text):
    """The number that a text is, 0 for another text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0


def table(screen, columns, rows, title=None, space=2):
    """Print rows of text under headings; a heading with < in front is text (left), the rest numbers (right).

    Each column is one cell of many lines, which rich lays out ten times faster than a cell a value. Where the screen is
    too narrow the first column is cut, since it holds names. A cell may be bold: written as *text*, one star each side.
    """
    if title:
        screen.print(title, style="bold", markup=False, no_wrap=True)
    made = Table(box=None, pad_edge=False, padding=(0, space, 0, 0), header_style="bold")
    cells = [[_plain(row[at]) if at < len(row) else "" for row in rows] for at in range(len(columns))]
    for at, heading in enumerate(columns):
        made.add_column(
            Text(heading.removeprefix("<")), justify="left" if heading[:1] == "<" else "right", no_wrap=True
        )
        width = max(map(len, (heading.removeprefix("<"), *cells[at])))
        made.columns[at].width = width
    room = screen.width - sum(column.width + space for column in made.columns[1:]) - space
    made.columns[0].width = max(min(made.columns[0].width, room), 8)
    texts = []
    for at, lines in enumerate(cells):
        text = Text("\n".join(lines))
        start = 0
        for row, line in zip(rows, lines):
            if at < len(row) and row[at][:1] == "*":
                text.stylize("bold", start, start + len(line))
            start += len(line) + 1
        texts.append(text)
    made.add_row(*texts)
    screen.print(made)


def _plain(cell):
    return cell[1:-1] if cell[:1] == "*" and len(cell) > 1 else cell
