"""The distribution of bound/measured, a line for each kind and machine."""

from . import MARKERS, Look


def draw(data, dark=False):
    """The figure of measured rows (schema lmcalc.measured/1): 5 to 95 % thin, 25 to 75 % thick, the median a mark."""
    rows = data["distribution"]
    look = Look(dark)
    figure, axes = look.figure(8, 1.6 + 0.17 * len(rows))
    axes = axes[0, 0]
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    for at, row in enumerate(rows):
        which = machines.index(row["machine"])
        colour, marker = look.colours[which % len(look.colours)], MARKERS[which % len(MARKERS)]
        axes.plot((row["q05"], row["q95"]), (at, at), color=colour, linewidth=1)
        axes.plot((row["q25"], row["q75"]), (at, at), color=colour, linewidth=3.5, solid_capstyle="butt")
        axes.plot(row["q50"], at, marker, color=colour, markersize=5.5, markeredgecolor=look.paper, markeredgewidth=0.7)
    axes.axvline(1, color=look.ink, linewidth=1.2)
    starts = [at for at, row in enumerate(rows) if at == 0 or rows[at - 1]["kind"] != row["kind"]]
    for start in starts[1:]:
        axes.axhline(start - 0.5, color=look.faint, linewidth=1)
    axes.set(xscale="log", ylim=(len(rows) - 0.4, -0.6), xlabel="bound / measured (5, 25, 50, 75, 95 %)")
    names = [f"{row['kind']}   {row['machine']}" if at in starts else row["machine"] for at, row in enumerate(rows)]
    axes.set_yticks(range(len(rows)), names, fontsize=7)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    return figure
