"""Flat tables as csv and as Markdown."""

from .cells import word
from .flat import Table, long, upright


def csv(title, notes, tables):
    """One table, or several as a long one; notes are rows of the long one, and comments nowhere."""
    if len(tables) == 1:
        return _csv(tables[0])
    if notes:
        tables = [*tables, Table("notes", ["note"], [[note] for note in notes])]
    return _csv(long(tables))


def _csv(table):
    return "".join(",".join(map(field, row)) + "\n" for row in (table.columns, *table.rows))


def field(value):
    """One value as a field of csv (RFC 4180): quoted where it has to be."""
    text = word(value) if not isinstance(value, list | dict) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def markdown(title, notes, tables):
    """A heading and a table of exact numbers for each, and the notes as a list."""
    parts = [f"# {title}"] if title else []
    for table in tables:
        pairs = upright(table)
        if pairs:
            table = Table(table.name, ["what", "value"], pairs)
        heading = [f"## {table.title[:1].upper()}{table.title[1:]}"] if len(tables) > 1 else []
        right = [
            all(_is_number(row[at]) for row in table.rows if row[at] is not None) for at in range(len(table.columns))
        ]
        lines = [_line(table.columns), _line("---:" if each else "---" for each in right)]
        parts += [*heading, "\n".join([*lines, *(_line(map(_short, row)) for row in table.rows)])]
    if notes:
        parts += ["## Notes", "\n".join(f"- {note}" for note in notes)]
    return "\n\n".join(parts) + "\n"


def _line(cells):
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(value):
    """A cell; a formula as code, since its stars and backslashes would be markup."""
    text = str(value).replace("|", "\\|").replace("\n", " ")
    return f"`{text}`" if any(mark in text for mark in "*\\`") and "|" not in text and "`" not in text else text


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value):
    return (
        f"{value:.6g}"
        if isinstance(value, float)
        else word(value)
        if not isinstance(value, list | dict)
        else str(value)
    )
