"""A model as a drawing in text, its parameters by part, and its ratios and choices beside the catalogue's."""

import textwrap

from rich.markup import escape

from ..units import si
from .console import table


def draw(screen, data):
    """Draw a model (schema lmcalc.show/1)."""
    _heading(screen, data)
    _stacks(screen, data)
    screen.print()
    _parts(screen, data)
    screen.print()
    _ratios(screen, data)
    screen.print()
    _choices(screen, data)
    _relatives(screen, data)
    if data["notes"]:
        screen.print("\n[bold]Notes[/bold]")
        for note in data["notes"]:
            _item(screen, note)


def _heading(screen, data):
    params = data["params"]
    used = "" if params["active"] == params["total"] else f", {params['active']:,} active"
    text = f"{params['total']:,} parameters{used}; D = {data['model']['d_model']:,}"
    screen.print(f"[bold]{escape(data['model']['id'])}[/bold]: {text}\n")


# The drawing: plain lines, cut to the screen ------------------------------------------------------------------------

WIDE = 16  # of the column of names


def _stacks(screen, data):
    width = min(screen.width, 100)
    lines = []
    for at, stack in enumerate(data["stacks"]):
        encodes = len(data["stacks"]) > 1 and at == 0
        apart = data["stacks"][0]["before"][:1] and data["stacks"][0]["before"][0]["name"] == "embedding"
        again = at > 0 and not apart
        table = {**data["embedding"], "text": "the same table", "params": 0} if again else data["embedding"]
        lines.append("source tokens" if encodes else "tokens")
        lines += [] if encodes and apart else _part(table, "", width)
        for part in stack["before"]:
            lines += _part(part, "", width)
        lines += _layers(stack, width)
        for part in stack["behind"]:
            lines += _part(part, "", width)
        lines += (
            [f"  |  to the cross attention of all {data['stacks'][1]['n_layers']} layers below", ""] if encodes else []
        )
    lines += [*_part(data["head"], "", width), "logits"]
    for line in lines:
        screen.print(line, markup=False, highlight=False, no_wrap=True, crop=True)


def _layers(stack, width):
    lines = []
    if stack["strip"]:
        lines += _wrapped(f"{stack['n_layers']} layers", stack["order"], "  |  ", width)
        strip = stack["strip"]
        lines += [f"  |  {strip[at : at + width - 5]}" for at in range(0, len(strip), width - 5)]
    seen = {}
    for kind in stack["kinds"]:
        if stack["strip"]:
            name, times = f"{kind['letter']}: {kind['name']}", f"{kind['layers']} of {stack['n_layers']} layers"
        else:
            name, times = f"{stack['n_layers']} {stack['name']} layers", "all alike"
        left = f"  +-- {name}, {times} "
        right = f" {si(kind['params'])} each" if kind["layers"] > 1 else f" {si(kind['params'])}"
        lines.append(left + "-" * max(width - len(left) - len(right), 3) + right)
        if not (kind["equations"], kind["norms"]) == seen.get("equations", (None,))[0]:
            norms = f"   norm: {', '.join(kind['norms'])}" if kind["norms"] else ""
            for number, equation in enumerate(kind["equations"]):
                lines.append(f"  |   {equation}{norms if number == 0 else ''}"[:width])
            seen["equations"] = ((kind["equations"], kind["norms"]), kind["name"])
        for part in kind["parts"]:
            same = seen.get(part["name"])
            if same is not None and same[0] == part:
                lines += _wrapped(part["name"], f"as in {same[1]}", "  |     ", width)
            else:
                lines += _part(part, "  |     ", width)
                seen[part["name"]] = (part, kind["name"])
    return [*lines, "  +" + "-" * (width - 3)]


def _part(part, lead, width):
    """A part in a line, what more there is to say under it, and its parameters at the right."""
    name = part["name"].replace("_", " ") if not lead else part["name"]
    right = f" {si(part['params'])}" if part["params"] else ""
    lines = _wrapped(name, part["text"], lead or "  |  ", width - len(right) - (len(right) > 0))
    lines[0] = f"{lines[0]:{width - len(right)}}{right}"
    if part["further"]:
        lines += _wrapped("", "; ".join(part["further"]), lead or "  |  ", width)
    return lines


def _wrapped(name, text, lead, width):
    start = f"{lead}{name:{WIDE}}" if len(name) < WIDE else f"{lead}{name} "
    return textwrap.wrap(text, width, initial_indent=start, subsequent_indent=lead + " " * WIDE,
                         break_on_hyphens=False) or [start]  # fmt: skip


# Tables ----------------------------------------------------------------------------------------------------------


def _parts(screen, data):
    total = data["params"]["total"]
    rows = [[part, f"{count:,}", f"{count / total:.1%}"] for part, count in data["params"]["by_part"].items() if count]
    table(screen, ["<parameters by part", "", "share"], rows)


def _ratios(screen, data):
    screen.print(f"[bold]Ratios[/bold], and where {data['cards']} cards lie: 10 % below low, 10 % above high")
    rows = []
    for row in data["ratios"]:
        cells = [row["what"], f"*{_number(row['value'])}*"]
        if row["cards"]:
            cells += [_number(row[name]) for name in ("low", "median", "high")] + [f"{row['below']:.0%}"]
        rows.append(cells + [""] * (6 - len(cells)) + [row["verdict"]])
    table(screen, ["<", "here", "low", "median", "high", "below", "<"], rows, space=1)
    for row in data["ratios"]:
        text = f"{row['what']}: usual {row['rule']}."
        if row["cards"]:
            near = ", ".join(f"{name} {_number(value)}" for name, value in row["near"])
            ends = ", ".join(f"{name} {_number(value)}" for name, value in (row["least"], row["most"]))
            text += f" Near: {near}; ends: {ends}."
        _item(screen, text)
    rows = []
    for row in data["multiples"]:
        of = row["multiple_of"]
        size = f"{row['size'] // of:,} x {of}" if of else "no multiple of 8"
        rows.append(
            [
                row["what"],
                f"{row['size']:,}",
                size,
                *[f"{row['shares'].get(each, 0):.0%}" for each in ("128", "64", "8")],
            ]
        )
    table(screen, ["<tiles of matrix units", "size", "is", "cards: of 128", "of 64", "of 8"], rows)


def _choices(screen, data):
    screen.print("[bold]Choices[/bold], and how many cards made the same")
    rows = []
    for row in data["choices"]:
        others = [f"{word} {number}" for word, number in list(row["counts"].items())[:3] if word != row["value"]]
        same = f"as {row['same']} of {row['cards']} cards" if row["same"] else f"as none of {row['cards']} cards"
        rows.append([row["what"], f"{row['value']}, {same}; others: {', '.join(others)}"])
    room = min(screen.width, 100) - 20
    for what, text in rows:
        lines = textwrap.wrap(text, room, break_on_hyphens=False)
        for at, line in enumerate(lines):
            screen.print(f"{what if at == 0 else '':20}{line}", markup=False, no_wrap=True)


def _relatives(screen, data):
    screen.print("\n[bold]Nearest relatives[/bold]")
    for each in data["relatives"]:
        differs = "; ".join(each["differs"]) or "the same choices, other sizes"
        _item(screen, f"{each['name']}: {differs}")


def _item(screen, text):
    wide = min(screen.width, 100)
    for line in textwrap.wrap(text, wide, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False):
        screen.print(line, markup=False, no_wrap=True)


def _number(value):
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:.3g}"
