"""The cost report as tables that are read from the top: does it fit, totals, rooflines, parts, kernels, notes."""

from rich.markup import escape

from ..units import si
from .cells import asked, known
from .console import table


def draw(screen, data):
    """Draw a report (schema lmcalc.report/1)."""
    _headline(screen, data)
    phases = [phase for phase in ("prefill", "decode") if data[phase] is not None]
    for section in (_totals, _rooflines, _parts, _kernels):
        screen.print()
        section(screen, data, phases)
    screen.print("\n[bold]Notes[/bold]")
    for note in data["notes"]:
        screen.print(f"- {note}", markup=False)


def _headline(screen, data):
    model, params = data["model"], data["params"]
    active = "" if params["active"] == params["total"] else f", {params['active']:,} active"
    screen.print(f"[bold]{escape(model['id'])}[/bold]: {params['total']:,} parameters{active}")
    screen.print(asked(data["workload"], data["decode"] is not None))
    for each in sorted(data["hardware"], key=lambda each: each["fits"] is not False):
        needed, there, name = each["memory_needed"], each["memory_available"], escape(each["id"])
        if there is None:
            screen.print(f"{name}: needs {si(needed, 'B')}; its memory size is not known")
        elif each["fits"]:
            screen.print(f"[green]fits[/green] {name}: {si(needed, 'B')} of {si(there, 'B')} ({needed / there:.0%})")
        else:
            screen.print(f"[bold red]DOES NOT FIT[/bold red] {name}: needs {si(needed, 'B')}, has {si(there, 'B')} "
                         f"({needed / there:.3g} times)")  # fmt: skip


def _totals(screen, data, phases):
    def row(name, kind, key, unit="", of=None):
        cells = [name]
        for phase in phases:
            value = data[phase][kind][key]
            cells += [si(value, unit), "" if of is None else f"{value / data[phase][kind][of]:.1%}"]
        return cells

    rows = [row("*FLOPs*", "flops", "total")]
    rows += [row(f"  {name}", "flops", name, of="total") for name in ("contraction", "normalization", "elementwise")]
    rows += [row("*bytes moved*", "bytes", "total", "B")]
    rows += [row(f"  {name}", "bytes", name, "B", "total")
             for name in ("weights", "activations", "cache_read", "cache_write")]  # fmt: skip
    rows += [["*intensity, FLOP/B*", *[cell for phase in phases for cell in (_digits(data[phase]["intensity"]), "")]]]
    table(screen, ["<", *[cell for phase in phases for cell in (phase, "")]], rows)
    cache, dtypes = data["cache"], data["workload"]["dtypes"]
    held = f"held: weights {si(data['weights']['bytes'], 'B')} ({dtypes['weights']})"
    if cache["bytes"]:
        further = f"{cache['bytes_per_token']:,} B a further token"
        held += f"; cache {si(cache['bytes'], 'B')} ({dtypes['cache']}, {further})"
    if cache["state_bytes"]:
        held += f"; state {si(cache['state_bytes'], 'B')}"
    screen.print(held)


def _rooflines(screen, data, phases):
    rows = []
    for each in data["hardware"]:
        ridge = "" if each["ridge"] is None else f"ridge {_digits(each['ridge'])} FLOP/B"
        rows.append([f"*{each['id']}*", ridge])
        for phase in phases:
            row = each[phase]
            sides = {side: row[f"{side}_s"] for side in ("compute", "memory", "vector")}
            other = max((sides[side] or 0 for side in sides if side != row["bound_by"]), default=0)
            by = row["bound_by"] or "not known"
            by += f", {row['bound_s'] / other:.3g} times" if other and row["bound_by"] else ""
            times = [known(row[f"{name}_s"], "s") for name in ("bound", "roofline", "serial")]
            rows.append([f"  {phase}", by, *times, known(row["tokens_per_s"])])
    if rows:
        table(screen, ["<", "<bound by", "bound", "roofline", "serial", "tokens/s"], rows,
              "Rooflines: nothing beats bound; roofline and serial go kernel by kernel")  # fmt: skip
        if data["params"]["by_part"].get("moe_experts"):
            screen.print("bound and tokens/s: if all tokens chose the same experts; see the notes.")
    else:
        screen.print("No machine: add -H h100 for times (lmcalc hardware lists them).")


def _parts(screen, data, phases):
    params, total = data["params"]["by_part"], data["params"]["total"]
    flops = {phase: data[phase]["flops"]["contraction_by_part"] for phase in phases}
    rows = [[part, f"{count:,}", f"{count / total:.1%}"] for part, count in params.items() if count]
    table(screen, ["<parameters by part", "", "share"], rows)
    screen.print()
    parts = dict.fromkeys(part for phase in phases for part in flops[phase])
    whole = {phase: data[phase]["flops"]["contraction"] for phase in phases}
    rows = [[part, *[cell for phase in phases for cell in
                     (si(flops[phase].get(part, 0)), f"{flops[phase].get(part, 0) / whole[phase]:.1%}")]]
            for part in parts]  # fmt: skip
    table(screen, ["<contraction FLOPs by part", *[cell for phase in phases for cell in (phase, "share")]], rows)


def _kernels(screen, data, phases):
    rows = {}
    for at, phase in enumerate(phases):
        seen = {}
        for row in data[phase]["by_part"]:
            seen[row["path"]] = seen.get(row["path"], 0) + 1
            key = row["path"], seen[row["path"]]
            cells = rows.setdefault(key, [row["path"], str(row["times"]), *[""] * 3 * len(phases)])
            flops, moved = row["flops"] / data[phase]["flops"]["total"], row["bytes"] / data[phase]["bytes"]["total"]
            intensity = _digits(row["flops"] / row["bytes"]) if row["bytes"] else ""
            cells[2 + 3 * at : 5 + 3 * at] = f"{flops:.1%}", f"{moved:.1%}", intensity
    headings = ["<kernel", "times", *["FLOPs", "bytes", "FLOP/B"] * len(phases)]
    halves = " and ".join(f"{phase} ({side})" for phase, side in zip(phases, ("left", "right")))
    title = f"Kernels: shares of {halves if len(phases) > 1 else phases[0]}"
    table(screen, headings, list(rows.values()), title, space=1)


def _digits(number):
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.3g}"
