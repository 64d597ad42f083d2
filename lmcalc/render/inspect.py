"""A checkpoint's headers as tables: what it holds, by type and by part, and where it differs from its model."""

from ..units import si
from .console import table

MOST = 50  # differences that a screen shows


def draw(screen, data):
    """Draw an inspection (schema lmcalc.inspect/1)."""
    params, stored = data["params"], data["bytes"]
    bits = data["bits_per_weight"]
    screen.print(f"{data['path']}: {params['total']:,} parameters", markup=False, style="bold")
    files = f"{data['files']:,} {data['kind']} file{'s' * (data['files'] != 1)}"
    size = f"{stored['total']:,} bytes ({si(stored['total'], 'B')}, {stored['total'] / 2**30:.4g} GiB)"
    screen.print(
        f"{data['tensors']:,} tensors in {files}, {size}" + ("" if bits is None else f", {bits:.4g} bits a weight")
    )
    apart = [f"{params['mtp']:,} parameters of prediction modules" * bool(params["mtp"]),
             f"{params['buffers']:,} elements of buffers" * bool(params["buffers"]),
             f"{params['duplicated']:,} parameters stored twice" * bool(params["duplicated"]),
             f"{si(stored['scales'], 'B')} of scales and zero points" * bool(stored["scales"]),
             f"{data['elements_stored']:,} elements stored" * bool(stored["scales"])]  # fmt: skip
    if any(apart):
        screen.print("besides: " + "; ".join(filter(None, apart)))
    for what in ("by_dtype", "by_part"):
        rows = [
            [
                row["name"],
                f"{row['tensors']:,}",
                f"{row['params']:,}",
                si(row["bytes"], "B"),
                _digits(row["bits_per_weight"]),
            ]
            for row in data[what]
        ]
        screen.print()
        table(screen, [f"<{what.replace('_', ' ')}", "tensors", "parameters", "bytes", "bits"], rows)
    for row in data["duplicates"][:MOST]:
        screen.print(f"stored twice: {row['tensor']} repeats {row['of']} ({si(row['bytes'], 'B')})", markup=False)
    screen.print()
    _differences(screen, data)
    for note in data["notes"]:
        screen.print(f"- {note}", markup=False)


def _digits(number):
    return "" if number is None else f"{number:.4g}"


def _differences(screen, data):
    against, found = data["against"], data["differences"]
    if against is None and not found:
        return
    whom = "what it says itself" if against is None else f"{against['name']} ({against['family']})"
    if not found:
        screen.print(f"every tensor is as {whom} needs it", markup=False, style="green")
        return
    screen.print(f"{len(found):,} differences from {whom}:", markup=False, style="bold red")
    for row in found[:MOST]:
        screen.print(f"  {row['tensor']}: {row['problem']}", markup=False)
    if len(found) > MOST:
        screen.print(f"  ... and {len(found) - MOST:,} more (-f json lists all)")
