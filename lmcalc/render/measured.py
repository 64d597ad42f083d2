"""Measured kernels against bounds: quantiles by kind and machine, and the rows that beat their bound."""

from .console import table


def draw(screen, data):
    """Draw measured rows (schema lmcalc.measured/1)."""
    rows = []
    for each in data["distribution"]:
        if [f"*{each['kind']}*"] not in rows:
            rows.append([f"*{each['kind']}*"])
        rows.append(
            [
                f"  {each['machine']}",
                str(each["rows"]),
                *[f"{each[name]:.2g}" for name in ("q05", "q25", "q50", "q75", "q95", "largest")],
                str(each["above"]),
            ]
        )
    table(screen, ["<", "rows", "5%", "25%", "50%", "75%", "95%", "most", "above 1"], rows,
          "bound / measured: at 1 a kernel is as fast as nothing beats", space=1)  # fmt: skip
    screen.print()
    counts = {}
    for each in data["above"]:
        counts[each["cause"]] = counts.get(each["cause"], 0) + 1
    for cause, count in counts.items():
        screen.print(f"{count} above 1: {cause or 'no known cause'}", markup=False)
    for each in data["above"]:
        if each["cause"] is None and each["fits_llc"] == "no":
            screen.print(
                f"FASTER THAN ITS BOUND: {each['file']}, line {each['line']}: {each['kind']} on {each['machine']}: "
                f"{each['seconds']:.4g} s measured, {each['bound_s']:.4g} s bound, by {each['bound_by']}",
                markup=False,
                style="bold red",
            )
    for each in data["skipped"]:
        screen.print(f"left out: {each['rows']} rows, {each['what']}", markup=False)
