"""A derivation of the lecture, from the trace to its form; or the list of all."""

from .formula import _line


def draw(screen, data):
    """Draw a derivation (schema lmcalc.lecture/1) or the list (lmcalc.lecture.list/1)."""
    if "derivations" in data:
        for row in data["derivations"]:
            _line(screen, f"{row['name']:<12} p. {row['pages']:<14}", row["title"], 0)
        screen.print("\nlmcalc formula --lecture NAME runs one")
        return
    screen.print(f"[bold]{data['title']}[/bold] (p. {data['pages']})", highlight=False)
    _line(screen, "", data["about"], 0)
    for step in data["steps"]:
        screen.print()
        _line(screen, "", step["what"], 0)
        _line(screen, "", step["expression"], 4)
    for form in data["reached"]:
        screen.print()
        _line(screen, "", f"[{'same monomials' if form['same'] else 'DIFFERENT'}] {form['what']}", 0)
        _line(screen, "  found    ", form["found"], 2)
        _line(screen, "  lecture  ", form["lecture"], 2)
        if form["leaves_out"]:
            _line(screen, "  constants", " " + "; ".join(form["leaves_out"]), 2)
    for good, title in ((True, "Where it serves"), (False, "Where it misleads")):
        rows = [each["text"] for each in data["examples"] if each["good"] is good]
        if rows:
            screen.print(f"\n[bold]{title}[/bold]")
            for row in rows:
                _line(screen, "- ", row, 0)
