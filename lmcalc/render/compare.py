"""Models or variants side by side: a row a quantity, a column a model, ratios to the first, and why they differ."""

import textwrap

from rich.markup import escape

from ..questions.compare import QUANTITIES
from ..units import si
from .cells import asked, conventions
from .console import table

UNITS = {"params": "", "flops": "FLOP", "bytes": "B", "s": "s"}


def draw(screen, data):
    """Draw a comparison (schema lmcalc.compare/1)."""
    reports = data["reports"]
    names = [report["model"]["id"] for report in reports]
    letters = [chr(ord("A") + at) if at < 26 else f"#{at + 1}" for at in range(len(names))]
    for letter, name in zip(letters, names):
        screen.print(f"[bold]{letter}[/bold]  {escape(name)}", soft_wrap=True)
    for said in (lambda each: asked(each["workload"], each["decode"] is not None),
                 lambda each: conventions(each["workload"])):  # fmt: skip
        for line, whose in _whose(letters, map(said, reports)):
            screen.print(f"{line}{f' ({whose})' if whose else ''}", markup=False)
    screen.print()
    rows = list(_rows(reports))
    size = max(1, (screen.width - 34) // 19)  # models side by side
    for start in range(0, len(names), size):
        part = range(start, min(start + size, len(names)))
        headings = ["<", *[cell for at in part for cell in (letters[at], "ratio")]]
        table(screen, headings, [[label, *[cell for at in part for cell in cells[at]]] for label, cells in rows])
        screen.print()
    screen.print("ratio: to A. *: the least of its row, where they differ.", markup=False)
    _why(screen, data, dict(zip(names, letters)))
    screen.print("\n[bold]Notes[/bold]")
    for note, whose in _whose(letters, *(each["notes"] for each in reports)):
        screen.print(f"- {f'{whose}: ' if whose else ''}{note}", markup=False)


def _whose(letters, *texts):
    """[(text, the letters of those that it holds for, "" for all)]: one text or a list of them for each letter."""
    texts, found = (list(texts[0]) if len(texts) == 1 and len(letters) > 1 else texts), {}
    for letter, each in zip(letters, texts):
        for text in [each] if isinstance(each, str) else each:
            found.setdefault(text, []).append(letter)
    return [(text, "" if len(whose) == len(letters) else ", ".join(whose)) for text, whose in found.items()]


def _rows(reports):
    for quantity, path in QUANTITIES.items():
        yield _row(quantity, [_at(report, path) for report in reports], UNITS[quantity.rpartition("_")[2]])
        if path == ("params", "total") and any(_at(each, path) != each["params"]["active"] for each in reports):
            yield _row("  active", [each["params"]["active"] for each in reports], "")
        if path[-2:] == ("flops", "total"):
            for name in ("contraction", "normalization", "elementwise"):
                yield _row(f"  {name}", [_at(report, (*path[:-1], name)) for report in reports], "FLOP")
    for at, machine in enumerate(reports[0]["hardware"]):
        yield f"fits {machine['id']}", [(_fits(report["hardware"][at]), "") for report in reports]
        for phase in ("prefill", "decode"):
            values = [_at(report["hardware"][at], (phase, "bound_s")) for report in reports]
            yield _row(f"{phase} bound, {machine['id']}", values, "s")


def _fits(machine):
    if machine["fits"] is None:
        return "not known"
    share = machine["memory_needed"] / machine["memory_available"]
    return f"{share:.0%}" if machine["fits"] else f"NO, {share:.3g}x"


def _at(data, path):
    for key in path:
        data = None if data is None else data[key]
    return data


def _row(label, values, unit):
    known = [value for value in values if value is not None]
    least = min(known) if known and min(known) < max(known) else None
    cells = []
    for value in values:
        ratio = "" if value is None or not values[0] else f"{value / values[0]:.4g}"
        text = "none" if value is None else si(value, unit)
        cells.append((f"**{text}*" if value and value == least else text, ratio))
    return label, cells


# quantities of the table of reasons: (heading, heading below it)
REASONS = {
    "params": ("params", ""), "weights_bytes": ("weights", "B"), "cache_bytes": ("cache", "B"),
    "state_bytes": ("state", "B"), "prefill_flops": ("prefill", "FLOP"), "prefill_bytes": ("prefill", "B"),
    "decode_flops": ("decode", "FLOP"), "decode_bytes": ("decode", "B"),
}  # fmt: skip
FEATURE, CHANGE = 24, 9  # characters of a feature at least, and of a change
LONGEST = 96  # of a step that is written out


def _why(screen, data, letter_of):
    if any(each["by_feature"] is None for each in data["differences"]):
        screen.print("Why they differ, field by field: add --why.")
    for name, letter in list(letter_of.items())[1:]:
        steps, totals = {}, {}
        for each in data["differences"]:
            if each["model"] == name:
                totals[each["quantity"]] = each["to"] - each["from"]
                for step in each["by_feature"] or ():
                    steps.setdefault(_step(step), {})[each["quantity"]] = step["change"]
        if steps:
            screen.print()
            _reasons(screen, letter, steps, totals)


def _step(step):
    text = f"{step['feature']}: {step['from']} -> {step['to']}"
    return text if len(text) <= LONGEST else f"{step['feature']} (lmcalc show draws them)"


def _reasons(screen, letter, steps, totals):
    """What every changed field adds, a row a field."""
    found = [name for name in REASONS if any(name in changes for changes in steps.values())]
    left = []
    for name in ("weights_bytes", "prefill_bytes", "state_bytes", "decode_flops"):  # the first follows params
        if screen.width < FEATURE + 2 + CHANGE * len(found) and name in found:
            found.remove(name)
            left.append(name)
    room, rows = max(FEATURE, screen.width - 2 - CHANGE * len(found)), []
    for text, changes in {**steps, "in all": totals}.items():
        first, *more = textwrap.wrap(text, room, subsequent_indent="  ")
        rows.append([first, *(_change(changes.get(name)) for name in found)])
        rows += [[line] for line in more]
    rows[-1] = [f"*{cell}*" for cell in rows[-1]]
    below = ["  in this order", *(REASONS[name][1] for name in found)]
    table(screen, [f"<{letter} against A", *(REASONS[name][0] for name in found)],
          [[f"*{cell}*" for cell in below], *rows])  # fmt: skip
    if left:
        screen.print(f"Not shown in {screen.width} columns: {', '.join(left)} (-f json has all).", markup=False)


def _change(number):
    return "" if not number else ("+" if number > 0 else "") + si(number).strip()
