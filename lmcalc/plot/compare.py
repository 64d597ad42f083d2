"""Models side by side: parameters by part, cache against context, FLOPs a token against context."""

from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, PercentFormatter

from ..units import si
from . import LINES, MARKERS, Look, si_axis

HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "---", "++")


def draw(data, curves, dark=False):
    """The figure of a comparison (schema lmcalc.compare/1) and its curves (see questions.compare.curves)."""
    look = Look(dark)
    figure, axes = look.figure(10, 3.6 + 0.22 * len(data["reports"]), 1, 3, width_ratios=(1.5, 1, 1))
    parts, lines, tokens = axes[0]
    _parts(parts, look, data["reports"])
    handles = []
    for at, model in enumerate(curves["models"]):
        style = {
            "color": look.colours[at % len(look.colours)],
            "linestyle": LINES[at % len(LINES)],
            "marker": MARKERS[at % len(MARKERS)],
            "markersize": 4,
            "markevery": (at % 3, 3),
            "linewidth": 1.3,
        }
        lines.plot(curves["context"], model["cache_bytes"], **style)
        if model["flops_per_token"] is not None:
            tokens.plot(curves["context"], model["flops_per_token"], **style)
        handles.append(Line2D([], [], label=model["model"], **style | {"markevery": None}))
    for each, unit, title in ((lines, "B", "cache and state"), (tokens, "FLOP", "FLOPs a token at decode")):
        each.set(xscale="log", yscale="log", xlabel="context, tokens")
        each.set_xscale("log", base=2)
        each.set_xticks(curves["context"][::2])
        each.xaxis.set_major_formatter(lambda value, _: f"{value / 1024:g}k" if value >= 1024 else f"{value:g}")
        low, high = each.get_ylim()
        if high < 20 * low:  # few powers of ten to label
            each.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        si_axis(each.yaxis, unit)
        each.yaxis.set_minor_formatter(lambda *_: "")
        each.set_title(title, fontsize=10, color=look.ink)
    look.legend(figure, handles)
    return figure


def _parts(axes, look, reports):
    names = [
        part for part in reports[0]["params"]["by_part"] if any(each["params"]["by_part"].get(part) for each in reports)
    ]
    for each in reports:
        names += [part for part, count in each["params"]["by_part"].items() if count and part not in names]
    totals, starts = [each["params"]["total"] for each in reports], [0] * len(reports)
    shares = max(totals) > 10 * min(totals)  # the smallest would be a line
    for at, part in enumerate(names):
        sizes = [
            each["params"]["by_part"].get(part, 0) / (total if shares else 1) for each, total in zip(reports, totals)
        ]
        axes.barh(range(len(reports)), sizes, left=starts, height=0.7, color=look.colours[at % len(look.colours)],
                  hatch=HATCHES[at % len(HATCHES)], edgecolor=look.paper, linewidth=0.5, label=part)  # fmt: skip
        starts = [start + size for start, size in zip(starts, sizes)]
    for at, (end, total) in enumerate(zip(starts, totals)):
        axes.annotate(" " + si(total).strip(), (end, at), va="center", fontsize=8, color=look.ink)
    axes.set_yticks(range(len(reports)), [each["model"]["id"] for each in reports])
    axes.set(ylim=(len(reports) - 0.4, -0.6), xlim=(0, 1.15 * max(starts)))
    axes.set_title("parameters by part" + ", share" * shares, fontsize=10, color=look.ink)
    axes.grid(False, axis="y")
    if shares:
        axes.xaxis.set_major_formatter(PercentFormatter(1))
    else:
        si_axis(axes.xaxis, "")
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, facecolor=look.paper,
                edgecolor=look.faint, labelcolor=look.ink)  # fmt: skip
