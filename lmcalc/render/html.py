"""Flat tables as one page that needs nothing else: no network, no scripts; light and dark as the reader's system is."""

from html import escape

from .. import __version__
from ..units import si
from .cells import word
from .flat import KEYS, unit_of, upright

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --line: #d6dbe1; --page: #ffffff;
        --shade: #f4f6f8; --bar: #9ec5f0; --bad: #b42318; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9aa5b1; --line: #39424d; --page: #14181d;
          --shade: #1d232a; --bar: #2f5c8f; --bad: #ff8a7a; }
}
body { margin: 2rem auto; max-width: 76rem; padding: 0 1.25rem; background: var(--page); color: var(--ink);
       font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { background: var(--shade); font-weight: 600; font-size: .85rem; vertical-align: bottom; }
th small { display: block; color: var(--soft); font-weight: 400; }
tbody tr:last-child td { border-bottom: 0; }
tbody tr:hover td { background-color: var(--shade); }
.beside { display: inline-block; vertical-align: top; margin-right: 2rem; max-width: 100%; }
.text { text-align: left; }
.long { white-space: normal; min-width: 16rem; }
.bar { background: linear-gradient(var(--bar) 0 0) no-repeat left center / var(--part) 65%; min-width: 7rem; }
.no { color: var(--bad); font-weight: 600; }
.none { color: var(--soft); }
ul { padding-left: 1.2rem; } li { margin: .2rem 0; }
footer { margin: 2.5rem 0 1rem; color: var(--soft); font-size: .85rem; }
@media print { body { margin: 0; max-width: none; } .wide { overflow: visible; } }
"""


def page(title, notes, tables):
    """The page as text. Numbers are shown short; the exact one appears where the pointer rests."""
    parts = [f"<h1>{escape(title or 'lmcalc')}</h1>"]
    for table in tables:
        kind = " class=beside" if upright(table) else ""
        parts.append(f"<section{kind}>\n<h2>{escape(_upper(table.title))}</h2>\n{_of(table)}\n</section>")
    if notes:
        parts.append("<h2>Notes</h2>\n<ul>" + "".join(f"<li>{escape(note)}</li>\n" for note in notes) + "</ul>")
    body = "\n".join(parts)
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(title or 'lmcalc')}</title>\n"
            f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n<footer>lmcalc {__version__}. 1 GB = 1e9 bytes; "
            "exact numbers appear where the pointer rests.</footer>\n</body>\n</html>\n")  # fmt: skip


def _upper(text):
    return text[:1].upper() + text[1:]


def _of(table):
    pairs = upright(table)
    if pairs is None:
        return _table(*_common(table), table.bars)
    rows = "".join(
        f"<tr><td class=text>{escape(name)}</td>{_cell(name, value, False, False)}</tr>\n" for name, value in pairs
    )
    return f'<div class="wide"><table>\n<tbody>\n{rows}</tbody>\n</table></div>'


def _common(table):
    """Columns and rows, without a key that is the same in all of several columns' rows: the title says it."""
    same = table.columns[:1] == ["model"] and len({row[0] for row in table.rows}) == 1 and len(table.columns) > 2
    return (table.columns[1:], [row[1:] for row in table.rows]) if same else (table.columns, table.rows)


def _table(columns, rows, bars):
    text = [name in KEYS or any(isinstance(row[at], str) for row in rows) for at, name in enumerate(columns)]
    head = "".join(_heading(name, each) for name, each in zip(columns, text))
    body = "".join(
        "<tr>" + "".join(map(_cell, columns, row, text, (name in bars for name in columns))) + "</tr>\n" for row in rows
    )
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>'


def _heading(name, text):
    unit = unit_of(name)
    below = f"<small>{escape(unit)}</small>" if unit and not text else ""
    return f"<th{' class=text' if text else ''}>{escape(name)}{below}</th>"


def _cell(name, value, text, bar):
    if value is None or value != value:
        return f'<td class="none{" text" if text else ""}">\u2013</td>'
    if bar:
        return f'<td class="bar" style="--part: {value:.1%}" title="{value!r}">{value:.1%}</td>'
    if isinstance(value, bool) or not isinstance(value, int | float):
        shown = word(value) if isinstance(value, str | bool) else str(value)
        kind = " long" if len(shown) > 60 else " no" if value is False and name in ("fits", "ok") else ""
        return f'<td class="text{kind}">{escape(shown)}</td>'
    shown = _shown(value, unit_of(name))
    exact = f"{value:,}" if isinstance(value, int) else repr(value)
    return f"<td{f' title={chr(34)}{exact}{chr(34)}' if exact != shown else ''}>{escape(shown)}</td>"


def _shown(value, unit):
    if isinstance(value, int) and (unit in ("", "sequences", "tokens") or abs(value) < 1000):
        return f"{value:,}"
    if unit in ("", "FLOP/B", "sequences", "tokens"):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return si(value, unit)
