"""A sweep as a table: what varies, then costs as far as the screen goes."""

from ..units import si, unit
from .cells import python, word
from .console import table

# costs that are shown unless --columns says which, the most telling first
SHOWN = (
    "decode_bound_s", "decode_bound_by", "fits", "decode_tokens_per_s", "prefill_bound_s", "prefill_bound_by",
    "cache_bytes",
    "decode_flops", "decode_bytes", "prefill_flops", "prefill_bytes", "weights_bytes", "params_total",
)  # fmt: skip
MOST_NAMED = 6  # columns that are not shown


def draw(screen, data, chosen=False):
    """Draw Columns of a sweep. chosen: all columns were asked for; what is too wide goes on below."""
    axes = data.asked.grid.axes
    cells = {name: _cells(data, name) for name in data}
    same = {
        name: texts[0]
        for name, texts in cells.items()
        if len({*texts}) == 1 and (name in axes or name in ("batch", "prompt", "past", "context"))
    }
    varied = [name for name in axes if name in cells and name not in same]
    costs = [name for name in cells if name not in varied and name not in same]
    if not chosen:
        costs.sort(key=lambda name: (len({*cells[name]}) == 1 < len(cells[name]), _rank(name)))
    if same:
        screen.print(", ".join(f"{name} {text}" for name, text in same.items()), markup=False)
    quantities = {name.partition("[")[0] for name in costs}
    wide = len(quantities) == 1 and all("[" in name for name in costs)
    if wide:
        screen.print(f"{quantities.pop()} by {costs[0].partition('[')[2].partition('=')[0]}:", markup=False)
    heading = {name: name.rpartition("=")[2].rstrip("]") if wide else name for name in cells}
    shown, rest = _fitting(screen, varied, costs, cells, heading)
    while True:
        screen.print()
        names = [*varied, *shown]
        marks = ["<" if _is_text(data, name) else "" for name in names]
        table(
            screen,
            [mark + heading[name] for mark, name in zip(marks, names)],
            list(zip(*(cells[name] for name in names))),
        )
        if not rest or (not chosen and not wide):
            break
        shown, rest = _fitting(screen, varied, rest, cells, heading)
    if rest and not wide:
        screen.print(
            f"\nNot shown for want of room: {', '.join(rest[:MOST_NAMED])}"
            + (f" and {len(rest) - MOST_NAMED} more" if len(rest) > MOST_NAMED else "")
            + " (--columns chooses; -f csv or -o FILE.csv has all).",
            markup=False,
        )
    screen.print("\n[bold]Notes[/bold]")
    for note in data.notes:
        screen.print(f"- {note}", markup=False)


def _rank(name):
    plain = name.partition("[")[0]
    return SHOWN.index(plain) if plain in SHOWN else len(SHOWN)


def _fitting(screen, varied, costs, cells, heading):
    """(costs that fit beside what varies, the others); at least one."""
    room = screen.width - sum(_width(name, cells, heading) for name in varied)
    for at, name in enumerate(costs):
        room -= _width(name, cells, heading)
        if room < 0 and at:
            return costs[:at], costs[at:]
    return costs, []


def _width(name, cells, heading):
    return max(map(len, (heading[name], *cells[name]))) + 2


def _is_text(data, name):
    return data.coded(name)[1] is not None


def _cells(data, name):
    values = python(*data.coded(name), name.partition("[")[0] in data.asked.whole)
    plain = name.partition("[")[0]
    kind = unit(plain)
    return [_cell(value, kind, plain in data.asked.grid.fields) for value in values]


def _cell(value, kind, field):
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, str):
        return value
    if kind in ("sequences", "tokens") or field:
        return f"{value:,}" if isinstance(value, int) else word(value)
    return si(value, "" if kind in ("FLOP/B", "tokens/s") else kind)
