"""Published figures beside ours: a line a check, then what does not agree and why, then what is not covered."""

import textwrap

MARKS = {"equal": "=", "agrees": "ok", "explained": "why", "differs": "MISS"}

COUNTED = {"equal": "formulas equal", "agrees": "figures agree", "explained": "explained", "differs": "unexplained"}


def draw(screen, data):
    """Draw the checks (schema lmcalc.published/1)."""
    for source in data["sources"]:
        checks = [each for each in data["checks"] if each["source"] == source["id"]]
        if not checks:
            continue
        screen.print(f"[bold]{source['title']}[/bold]", no_wrap=True)
        for each in checks:
            style = "bold red" if each["verdict"] == "differs" else None
            screen.print(_line(each, screen.width), markup=False, no_wrap=True, style=style)
        screen.print()
    _reasons(screen, data)
    screen.print("[bold]Not covered[/bold]")
    for each in data["not_covered"]:
        _item(screen, f"{each['what']}: {each['why']}.")
    counts = [f"{sum(each['verdict'] == name for each in data['checks'])} {word}" for name, word in COUNTED.items()]
    screen.print(f"\n{len(data['checks'])} checks: {', '.join(counts)}")


def _line(each, width):
    right = each["theirs"] if "theirs" in each else f"{_printed(each)} | {_number(each['ours'])}"
    left = f"{MARKS[each['verdict']]:>4} {each['what']}"
    room = width - len(left) - 2
    if len(right) > room:
        if "theirs" in each:
            right = right[: max(room - 2, 0)] + ".." if room > 10 else ""
        else:
            left = left[: width - len(right) - 4] + ".."
    return left + " " * (width - len(left) - len(right)) + right


def _reasons(screen, data):
    screen.print("[bold]What does not agree as it stands, and why[/bold]")
    titles = {each["id"]: each["title"].partition(",")[0].partition(":")[0] for each in data["sources"]}
    for each in data["checks"]:
        if each["verdict"] in ("explained", "differs"):
            said = f"{_printed(each)} printed, {_number(each['ours'])} here: " if "printed" in each else ""
            _item(screen, f"{titles[each['source']]}: {each['what']}: {said}{each['why']}.")
    screen.print()


def _item(screen, text):
    wide = min(screen.width, 100)
    for line in textwrap.wrap(text, wide, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False):
        screen.print(line, markup=False, no_wrap=True)


def _printed(each):
    text = each["printed_as"]
    return f"{int(text):,}" if text.isdigit() else text


def _number(value):
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.6g}" if abs(value) < 1e7 else f"{value:.4g}"
