"""A roofline question on the screen: a plot of plain characters, points, where bounds turn, classes of work, roofs."""

import math

from ..units import si
from .console import table

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SLOPES, FLATS = "/;!", "-=~"  # of the first machine, the second, all others


def draw(screen, data, plot=False):
    """Draw a roofline (schema lmcalc.roofline/1); plot: with a plot of characters first."""
    marks = _marks(data["points"])
    screen.print(title(data), markup=False)
    screen.print()
    if plot:
        for line in picture(data, marks, screen.width):
            screen.print(line, markup=False, no_wrap=True)
        screen.print()
    for section in (_points, _turns, _classes, _roofs):
        section(screen, data, marks)
        screen.print()
    screen.print("[bold]Notes[/bold]")
    for note in data["notes"]:
        screen.print(f"- {note}", markup=False)


def title(data):
    """What was asked, in a line."""
    asked = data["workload"]
    onto = f" onto {asked['past']:,}" if asked["past"] else ""
    dtypes = {name: asked["dtypes"][name] for name in ("weights", "activations", "cache")}
    same = len({*dtypes.values()}) == 1
    stored = dtypes["weights"] if same else ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
    about = [names[0] for names in _named(data) if len(names) == 1]
    return "; ".join([*about, f"batch {asked['batch']:,}", f"prefill {asked['prompt']:,} tokens{onto}",
                      f"decode onto {asked['context']:,}", stored, f"traffic {asked['traffic']}"])  # fmt: skip


def _named(data):
    """The models, and the machines, by name."""
    return [list(dict.fromkeys(each[what] for each in data["points"])) for what in ("model", "hardware")]


def _marks(points):
    """A letter for each point that can be drawn; those beyond 52 get a dot."""
    letters = iter(LETTERS)
    return [next(letters, ".") if each["intensity"] else " " for each in points]


def _points(screen, data, marks):
    rows, above = [], None
    for mark, each in zip(marks, data["points"]):
        where = f"{each['model']} on {each['hardware']}"
        if where != above:
            rows.append([f"*{where}*"])
            above = where
        name = f"{each['phase']} {each['kernel'] or ''}".strip()
        rows.append(
            [
                f"{mark} {name}",
                str(each["times"]),
                _digits(each["intensity"]),
                si(each["reached_flop_per_s"]),
                si(each["bound_s"], "s"),
                each["bound_by"] or "not known",
                _digits(each["ridge_distance"]),
            ]
        )
    table(screen, ["<point", "times", "FLOP/B", "FLOP/s", "bound", "<by", "to memory"], rows,
          "Points, and what bounds them (to memory: compute side over memory side)", space=1)  # fmt: skip


def _turns(screen, data, marks):
    screen.print("[bold]Where the bound turns[/bold]")
    for each in data["turns"]:
        screen.print(f"- {sentence(each)}", markup=False)


def sentence(turn):
    """One turn in words."""
    phase, model, on = turn["phase"], turn["model"], turn["hardware"]
    at, asked = f"{turn['asked_tokens']:,}", f"batch {turn['asked_batch']:,}"
    if not turn["known"]:
        return f"{phase} of {model} on {on}: not known, since its peak is not public"
    if phase == "prefill":
        found = f"prefill of {model} on {on} is memory bound at prompt {at} at any batch"
        if turn["batch"] is not None:
            found = f"prefill of {model} turns {turn['to']} bound at batch {turn['batch']:,} on {on} at prompt {at}"
        if turn["prompt"] is not None:
            found += f"; at {asked} from prompt {turn['prompt']:,} on"
        return found
    if turn["batch"] is not None:
        found = f"decode of {model} turns {turn['to']} bound at batch {turn['batch']:,} on {on} at context {at}"
    else:
        found = f"decode of {model} is memory bound on {on} at context {at} at any batch"
    if turn["context_limit"] is not None:
        found += ", and never" if turn["batch"] is not None else ", as everywhere"
        found += f" beyond context {turn['context_limit']:,}"
    if turn["context_from"] is not None:
        found += f"; only from context {turn['context_from']:,} on can it be another"
    elif turn["batch"] is None and turn["batch_without_context"] is not None:
        found += f"; onto an empty cache it turns at batch {turn['batch_without_context']:,}"
    return found


def _classes(screen, data, marks):
    rows = {}
    for each in data["classes"]:
        key = f"{each['model']} on {each['hardware']}", each["phase"]
        rows.setdefault(key, {})[each["class"]] = f"{each['flops_share']:.2%}/{each['time_share']:.1%}"
    names, lines = ("contraction", "normalization", "elementwise", "movement"), []
    for (where, phase), shares in rows.items():
        if [f"*{where}*"] not in lines:
            lines.append([f"*{where}*"])
        lines.append([f"  {phase}", *(shares.get(name, "") for name in names)])
    table(screen, ["<", *names], lines, "FLOPs are not time: kernels by class, share of FLOPs / share of time", space=1)


def _roofs(screen, data, marks):
    screen.print("[bold]Roofs[/bold]")
    for each in data["machines"]:
        peaks = [
            f"{', '.join(roof['dtypes'])} {si(roof['flop_per_s'])}{' vector' * (roof['unit'] == 'vector')}"
            for roof in each["ceilings"]
        ]
        levels = [f"{level['level']} {si(level['bytes_per_s'], 'B/s')}" for level in each["levels"]]
        ridge = "not known" if each["ridge"] is None else f"{each['ridge']:.4g} FLOP/B"
        screen.print(
            f"{each['id']}: FLOP/s {'; '.join(peaks) or 'not public'}. {'; '.join(levels)}. Ridge {ridge}.",
            markup=False,
        )


def _digits(number):
    if number is None:
        return ""
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.3g}"


def _power(number):
    """A power of ten, short."""
    digits, _, unit = si(number).partition(" ")
    return f"{float(digits):g} {unit}"


# A plot of characters --------------------------------------------------------------------------------------------


def picture(data, marks, width, height=20):
    """Lines of text: roofs of the machines (log-log), and a letter for each point; + where several lie."""
    points = [(mark, each) for mark, each in zip(marks, data["points"]) if each["intensity"]]
    machines = [each for each in data["machines"] if each["peak_flop_per_s"] is not None]
    xs = [each["intensity"] for _, each in points] + [each["ridge"] for each in machines]
    ys = [each["reached_flop_per_s"] for _, each in points] + [each["peak_flop_per_s"] for each in machines]
    if not points:
        return []
    left, right = math.log10(min(xs)) - 0.3, math.log10(max(xs)) + 0.5
    bottom, top = math.log10(min(ys)) - 0.2, math.log10(max(ys)) + 0.2
    columns = width - 9
    cells = [[" "] * columns for _ in range(height)]

    def column(x):
        return round((math.log10(x) - left) / (right - left) * (columns - 1))

    def row(y):
        return height - 1 - round((math.log10(y) - bottom) / (top - bottom) * (height - 1))

    for at, machine in reversed(list(enumerate(data["machines"]))):
        slope, flat = SLOPES[min(at, 2)], FLATS[min(at, 2)]
        for across in range(columns):
            x = 10 ** (left + (right - left) * across / (columns - 1))
            y = min(machine["bandwidth"] * x, machine["peak_flop_per_s"] or math.inf)
            if 0 <= row(y) < height:
                cells[row(y)][across] = flat if y == machine["peak_flop_per_s"] else slope
    taken = {}
    for mark, each in points:
        place = row(each["reached_flop_per_s"]), column(each["intensity"])
        taken.setdefault(place, []).append(mark)
    for (down, across), letters in taken.items():
        cells[down][across] = letters[0] if len(letters) == 1 else "+"
    lines, decades = [], {row(10.0**power): power for power in range(math.ceil(bottom), math.floor(top) + 1)}
    for down, line in enumerate(cells):
        label = _power(10.0 ** decades[down]) if down in decades else ""
        lines.append(f"{label:>7} |{''.join(line)}".rstrip())
    ticks = [" "] * columns
    for power in range(math.ceil(left), math.floor(right) + 1):
        text = f"{10.0**power:g}"
        start = min(column(10.0**power), columns - len(text))
        ticks[start : start + len(text)] = text
    lines.append("        +" + "-" * columns)
    lines.append("         " + "".join(ticks).rstrip())
    lines.append("FLOP/s over FLOP/B")
    for at, each in enumerate(data["machines"]):
        known = each["peak_flop_per_s"] is not None
        peak = f"{si(each['peak_flop_per_s'], 'FLOP/s')} {each['peak_dtype']}" if known else "peak not known"
        lines.append(f"{SLOPES[min(at, 2)]}{FLATS[min(at, 2)]} {each['id']}: {peak}, {si(each['bandwidth'], 'B/s')}")
    several = [", ".join(letters) for letters in taken.values() if len(letters) > 1]
    if several:
        lines.append("+ is " + "; ".join(several) + ".")
    return lines
