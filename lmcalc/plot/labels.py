"""Labels that do not cover each other: each is tried around its place, nearest first, and put where it covers least."""

import math

from matplotlib.patheffects import withStroke

DISTANCES = (7, 12, 20, 30, 42, 56, 72, 92, 116, 144)  # points, from what is labelled
DIRECTIONS = 16


def place(axes, labels, look, lines=(), size=8.5):
    """Write labels into axes; returns their boxes (left, bottom, right, top) in pixels.

    labels: [(places, text, colour, flat)], places a list of (x, y) that it may stand at, the best first (one for a
    point). flat: only above or below. lines: pairs of (x, y) that had better not be covered. All in the coordinates of
    the data, and the limits of the axes stand.
    """
    figure = axes.figure
    figure.draw_without_rendering()
    renderer, scale = figure.canvas.get_renderer(), figure.dpi / 72
    inside = _box(axes.get_window_extent(renderer))
    points = [tuple(axes.transData.transform(places[0])) for places, *_ in labels if len(places) == 1]
    crossed = [tuple(at) for line in lines for at in axes.transData.transform(_dense(axes, line))]
    placed = []
    # labels of lines have the least choice, then points in a crowd
    order = sorted(range(len(labels)), key=lambda at: (not labels[at][3], -_crowd(axes, labels[at], points)))
    for at in order:
        places, text, colour, flat = labels[at]
        drawn = axes.annotate(text, places[0], fontsize=size, color=colour, annotation_clip=False, zorder=3,
                              path_effects=[withStroke(linewidth=2.5, foreground=look.paper)])  # fmt: skip
        box = _box(drawn.get_window_extent(renderer))
        width, height = box[2] - box[0], box[3] - box[1]
        _, far, anchor, box = min(
            _tries(axes, places, width, height, scale, flat),
            key=lambda tried: _cost(tried, placed, points, crossed, inside, scale),
        )
        drawn.set_position(axes.transData.inverted().transform(box[:2]))
        drawn.set_verticalalignment("bottom")
        placed.append(box)
        if far > 20 and len(places) == 1:
            end = min(max(anchor[0], box[0]), box[2]), min(max(anchor[1], box[1]), box[3])
            a, b = axes.transData.inverted().transform([anchor, end])
            axes.plot((a[0], b[0]), (a[1], b[1]), color=look.ink, linewidth=0.5, alpha=0.6, zorder=1)
    return placed


def _box(extent):
    return extent.x0, extent.y0, extent.x1, extent.y1


def _dense(axes, line):
    """Points on a line, close together as they appear."""
    (x0, y0), (x1, y1) = axes.transData.transform(line)
    steps = range(41)
    return axes.transData.inverted().transform([(x0 + (x1 - x0) * i / 40, y0 + (y1 - y0) * i / 40) for i in steps])


def _crowd(axes, label, points):
    x, y = axes.transData.transform(label[0][0])
    return sum(abs(a - x) < 90 and abs(b - y) < 40 for a, b in points)


def _tries(axes, places, width, height, scale, flat):
    """(order, distance, anchor, box) of every place around every anchor."""
    for rank, anchor in enumerate(places):
        x, y = axes.transData.transform(anchor)
        for distance in DISTANCES if len(places) == 1 else (3, 15):
            far = distance * scale
            for turn in (4, 12) if flat else range(DIRECTIONS):
                angle = 2 * math.pi * turn / DIRECTIONS
                cos, sin = math.cos(angle), math.sin(angle)
                left = x + far * cos - width * (1 - cos) / 2
                bottom = y + far * sin - height * (1 - sin) / 2
                yield rank, distance, (x, y), (left, bottom, left + width, bottom + height)


def _cost(tried, placed, points, crossed, inside, scale):
    rank, distance, _, box = tried
    a, b, c, d = box
    margin = 2 * scale
    if a < inside[0] or b < inside[1] or c > inside[2] or d > inside[3]:
        return 1e9 + distance
    over = 0.0
    for e, f, g, h in placed:
        wide, high = min(c, g) - max(a, e) + margin, min(d, h) - max(b, f) + margin
        if wide > 0 and high > 0:
            over += wide * high
    hidden = sum(a - 5 * scale < x < c + 5 * scale and b - 5 * scale < y < d + 5 * scale for x, y in points)
    covered = sum(a < x < c and b < y < d for x, y in crossed)
    return 1e4 * (over > 0) + 10 * over + 2e4 * hidden + 6 * covered + distance + 4 * rank
