"""Models or variants side by side: a row a quantity, a column a model, ratios to the first, and why they differ."""

from rich.markup import escape

from ..questions.compare import QUANTITIES
from ..units import si
from .console import table

UNITS = {"params": "", "flops": "FLOP", "bytes": "B", "s": "s"}


def draw(screen, data):
    """Draw a comparison (schema lmcalc.compare/1)."""
    reports = data["reports"]
    names = [report["model"]["id"] for report in reports]
    letters = [chr(ord("A") + at) if at < 26 else f"#{at + 1}" for at in range(len(names))]
    for letter, name in zip(letters, names):
        screen.print(f"[bold]{letter}[/bold]  {escape(name)}")
    screen.print()
    rows = list(_rows(reports))
    size = max(1, (screen.width - 34) // 17)  # models side by side
    for start in range(0, len(names), size):
        part = range(start, min(start + size, len(names)))
        headings = ["<", *[cell for at in part for cell in (letters[at], "ratio")]]
        table(screen, headings, [[label, *[cell for at in part for cell in cells[at]]] for label, cells in rows])
        screen.print()
    _why(screen, data, dict(zip(names, letters)))


def _rows(reports):
    for quantity, path in QUANTITIES.items():
        yield _row(quantity, [_at(report, path) for report in reports], UNITS[quantity.rpartition("_")[2]])
        if path[-2:] == ("flops", "total"):
            for name in ("contraction", "normalization", "elementwise"):
                yield _row(f"  {name}", [_at(report, (*path[:-1], name)) for report in reports], "FLOP")
    for at, machine in enumerate(reports[0]["hardware"]):
        for phase in ("prefill", "decode"):
            values = [_at(report["hardware"][at], (phase, "bound_s")) for report in reports]
            yield _row(f"{phase} bound, {machine['id']}", values, "s")


def _at(data, path):
    for key in path:
        data = None if data is None else data[key]
    return data


def _row(label, values, unit):
    cells = []
    for value in values:
        ratio = "" if value is None or not values[0] else f"{value / values[0]:.4g}"
        cells.append((si(value, unit) if value is not None else "none", ratio))
    return label, cells


def _why(screen, data, letter_of):
    rows = []
    for each in data["differences"]:
        for step in each["by_feature"] or ():
            change, unit = step["change"], UNITS[each["quantity"].rpartition("_")[2]]
            rows.append([letter_of[each["model"]], each["quantity"], ("+" if change > 0 else "") + si(change, unit),
                         f"{step['feature']}: {step['from']} -> {step['to']}"])  # fmt: skip
    if any(each["by_feature"] is None for each in data["differences"]):
        screen.print("Why they differ, field by field: add --why.")
    if rows:
        table(screen, ["<", "<difference to A", "", "<because of"], rows)
