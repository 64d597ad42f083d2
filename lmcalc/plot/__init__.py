"""Figures from plain data, by matplotlib: PNG, SVG, PDF. Computes nothing. Imported only by what draws."""

import io

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..colours import COLOURS, DARK

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "*", "h", "<", ">")
LINES = ("-", (0, (6, 2)), (0, (5, 2, 1, 2)), (0, (2, 1.5)), (0, (8, 2, 1, 2, 1, 2)))
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "lmcalc", "pdf.fonttype": 42}


class Look:
    """Colours of a figure, light or dark."""

    def __init__(self, dark=False):
        self.colours = DARK if dark else COLOURS
        self.ink, self.paper = ("#E8E8E8", "#16181D") if dark else ("#1A1A1A", "#FFFFFF")
        self.faint = "#3A3F4A" if dark else "#DDDDDD"

    def figure(self, width=8.0, height=5.6, rows=1, columns=1, **options):
        """A figure, and its axes."""
        figure = Figure(figsize=(width, height), facecolor=self.paper, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False, **options)
        for each in axes.flat:
            each.set_facecolor(self.paper)
            each.grid(True, color=self.faint, linewidth=0.6)
            each.set_axisbelow(True)
            each.tick_params(colors=self.ink, which="both", labelsize=9)
            each.xaxis.label.set_color(self.ink)
            each.yaxis.label.set_color(self.ink)
            each.title.set_color(self.ink)
            for side in ("left", "bottom"):
                each.spines[side].set_color(self.ink)
            for side in ("right", "top"):
                each.spines[side].set_visible(False)
        return figure, axes

    def legend(self, figure, handles):
        """A legend below the axes, where it covers nothing."""
        return figure.legend(
            handles=handles,
            facecolor=self.paper,
            edgecolor=self.faint,
            labelcolor=self.ink,
            fontsize=8.5,
            loc="outside lower center",
            ncols=min(4, len(handles)),
        )


def drawn(figure, suffix):
    """The figure as the bytes of a file: png, svg or pdf. The same data gives the same bytes."""
    import matplotlib

    held = io.BytesIO()
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(held, format=suffix, dpi=160, metadata=dated)
    return held.getvalue()


def si_axis(axis, unit):
    """Powers of ten of an axis with SI prefixes."""
    from matplotlib.ticker import FuncFormatter

    from ..units import si

    def text(value, _):
        number, between, rest = si(value, unit).partition(" ")
        return (number.rstrip("0").rstrip(".") if "." in number else number) + between + rest if value > 0 else "0"

    axis.set_major_formatter(FuncFormatter(text))
