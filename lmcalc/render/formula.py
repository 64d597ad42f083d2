"""A formula for people: the whole, its leading order where one was asked for, its parts, and what the letters are."""

import textwrap

UNITS = {"params": "parameters", "flops": "FLOPs", "bytes": "bytes moved", "intensity": "FLOPs a byte",
         "cache": "bytes of cache", "state": "bytes of state", "kept": "bytes kept for the backward pass"}  # fmt: skip


def draw(screen, data, latex=False, terms=False):
    """Draw a formula (schema lmcalc.formula/1), or the list of what there is (lmcalc.formula.list/1)."""
    if data["schema"] == "lmcalc.formula.list/1":
        return _list(screen, data)
    key = "latex" if latex else "expression"
    given = ", ".join(f"{letter} = {number:,}" for letter, number in data["with"].items())
    phase = f" of {data['phase']}" if data["phase"] else ""
    screen.print(
        f"[bold]{data['id']}[/bold]: {UNITS[data['of']]}{phase}" + (f", {given}" if given else ""), highlight=False
    )
    screen.print()
    if data["when"]:
        _line(screen, "", data["exact_latex" if latex else "exact"], 2)
        limits = any(sign in each for each in data["when"] for sign in ("->", ">>", "<<"))
        what = "leading order when" if limits else "under"
        screen.print(f"\n[bold]{what} {', then '.join(data['when'])}[/bold]", highlight=False)
    _line(screen, "", data[key], 2)
    for condition, left in zip(data["when"], data.get("left_out", [])):
        if left not in (None, "0"):
            screen.print(f"\n[bold]left out by {condition}[/bold]", highlight=False)
            _line(screen, "", left, 2)
    of = " (before limits)" if data["when"] and limits else ""
    rows = [("part", f"by part{of}")] + ([("term", f"term by term{of}")] if terms else [])
    for name, title in rows:
        if len(data[f"{name}s"]) > 1 or terms:
            screen.print(f"\n[bold]{title}[/bold]", highlight=False)
            _rows(screen, [(row[name], row[key]) for row in data[f"{name}s"]])
    if data["symbols"]:
        screen.print("\n[bold]where[/bold]")
        _rows(screen, [(letter, meaning) for letter, meaning in data["symbols"].items()])
    screen.print()
    for note in data["notes"]:
        _line(screen, "- ", note, 0)


def _list(screen, data):
    for name, key in (("quantities", "of"), ("variants", "variant")):
        screen.print(f"[bold]{name}[/bold]")
        _rows(screen, [(row[key], row["what"]) for row in data[name]])
        screen.print()
    screen.print("[bold]symbols of the workload[/bold]")
    _rows(screen, list(data["symbols"].items()))
    screen.print("\nAny MODEL has a formula, too. Derivations of the lecture: lmcalc formula --lecture")


def _rows(screen, rows):
    width = min(max((len(name) for name, _ in rows), default=0), screen.width // 2 - 4)
    for name, value in rows:
        if len(name) > width:
            screen.print(f"  {name}", markup=False, highlight=False, no_wrap=True)
            name = ""
        _line(screen, f"{name:<{width}}  ", value, 2)


def _line(screen, label, value, indent):
    """A label and what it says, wrapped behind the label."""
    room = indent + len(label)
    behind = room if room < screen.width // 2 else indent + 2
    if "\\" in value:  # LaTeX is for copying: one line
        screen.print(" " * indent + label + value, markup=False, highlight=False, soft_wrap=True)
        return
    kept = value.replace(", ", ",\0") if "(" in value and "*" in value else value  # not broken within Min(S, W)
    text = textwrap.fill(label + kept, screen.width, initial_indent=" " * indent, subsequent_indent=" " * behind,
                         break_long_words=False, break_on_hyphens=False, drop_whitespace=True)  # fmt: skip
    screen.print(text.replace("\0", " "), markup=False, highlight=False, no_wrap=True, crop=False, overflow="ignore")
