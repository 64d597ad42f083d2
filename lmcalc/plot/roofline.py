"""The roofline plot: roofs of machines, and the phases or kernels of models under them."""

from matplotlib.lines import Line2D

from ..render.roofline import title
from ..units import si
from . import LINES, MARKERS, Look, si_axis
from .labels import place


def draw(data, dark=False):
    """The figure of a roofline question (schema lmcalc.roofline/1).

    Colour and line are the machine, the shape is the model, filled is prefill and hollow decode.
    """
    look = Look(dark)
    figure, axes = look.figure()
    axes = axes[0, 0]
    points = [each for each in data["points"] if each["intensity"]]
    models = list(dict.fromkeys(each["model"] for each in points))
    machines = data["machines"]
    (left, right), (bottom, top) = extent(points, machines)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top),
             xlabel="arithmetic intensity, FLOP/B", ylabel="FLOP/s", title=title(data))  # fmt: skip
    axes.title.set_fontsize(10)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    si_axis(axes.yaxis, "")
    labels, lines = [], []
    for at, machine in enumerate(machines):
        colour, line = look.colours[at % len(look.colours)], LINES[at % len(LINES)]
        for roof in roofs(machine, len(machines) == 1):
            found = segments(roof, left, right)
            for segment in found:
                axes.plot(*zip(*segment), color=colour, linestyle=line, linewidth=1.5 if roof["main"] else 0.8,
                          alpha=1 if roof["main"] else 0.75, zorder=2)  # fmt: skip
                lines.append(segment)
            labels.append((along(found[-1]), roof["label"], colour, not roof.get("slope")))
    for each in points:
        at = next(at for at, machine in enumerate(machines) if machine["id"] == each["hardware"])
        colour = look.colours[at % len(look.colours)]
        axes.plot(
            each["intensity"],
            each["reached_flop_per_s"],
            MARKERS[models.index(each["model"]) % len(MARKERS)],
            color=colour,
            markerfacecolor=colour if each["phase"] == "prefill" else look.paper,
            markersize=7.5,
            markeredgewidth=1.5,
            zorder=4,
        )
    inks = {machine["id"]: look.colours[at % len(look.colours)] for at, machine in enumerate(machines)}
    several = len(machines) > 1
    labels += [([where], text, inks.get(machine, look.ink) if several else look.ink, False)
               for where, text, machine in named(points, models)]  # fmt: skip
    look.legend(figure, _legend(look, data, models, points))
    figure.boxes = place(axes, labels, look, lines, size=8 if len(labels) < 24 else 6.5)
    return figure


def extent(points, machines):
    """((left, right), (bottom, top)) that shows every point, and every machine's ridge."""
    ridges = [each["ridge"] for each in machines if each["ridge"] is not None]
    xs = [each["intensity"] for each in points] + ridges
    ys = [each["reached_flop_per_s"] for each in points]
    ys += [roof["flop_per_s"] for each in machines for roof in roofs(each, len(machines) == 1) if roof["flop_per_s"]]
    return (min(xs) / 4, max(xs) * 12), (min(ys) / 3, max(ys) * 3)


def roofs(machine, every):
    """[{label, flop_per_s, bytes_per_s, main}]: ceilings (of `every` dtype, or those in use) and slopes of memory
    levels."""
    used = ("matrix", machine["peak_flop_per_s"]), ("vector", machine["vector_flop_per_s"])
    found, low = [], machine["bandwidth"]
    for each in machine["ceilings"]:
        main = each["unit"] == "matrix" and each["flop_per_s"] == machine["peak_flop_per_s"]
        if every or (each["unit"], each["flop_per_s"]) in used:
            unit = " vector" if each["unit"] == "vector" else ""
            text = ", ".join(each["dtypes"]) if every else machine["id"]
            text = f"{text}{unit} {si(each['flop_per_s'], 'FLOP/s')}"
            found.append({"label": text, "flop_per_s": each["flop_per_s"], "bytes_per_s": low, "main": main})
    highest = max([each["flop_per_s"] for each in found], default=None)
    for each in machine["levels"]:
        if "link" not in each["level"] and (every or each["level"] == "device memory"):
            text = f"{each['level'] if every else machine['id']} {si(each['bytes_per_s'], 'B/s')}"
            found.append({"label": text, "flop_per_s": highest, "bytes_per_s": each["bytes_per_s"], "slope": True,
                          "main": each["level"] == "device memory"})  # fmt: skip
    return found


def segments(roof, left, right):
    """The line of a ceiling from the slope of memory on, or the slope of a level up to the highest ceiling drawn."""
    speed, rate = roof["bytes_per_s"], roof["flop_per_s"]
    ridge = right if rate is None else min(max(rate / speed, left), right)
    if roof.get("slope"):
        return [((left, left * speed), (ridge, ridge * speed))]
    return [((ridge, rate), (right, rate))]


def along(segment):
    """Places for a label along a line, from its far end."""
    (x0, y0), (x1, y1) = segment
    return [
        (x1 * (x0 / x1) ** part, y1 * (y0 / y1) ** part)
        for part in (0.25, 0.35, 0.15, 0.45, 0.55, 0.65, 0.1, 0.75, 0.85, 0.95, 1.1, 0.05)
    ]


def named(points, models):
    """[((x, y), text, machine)]: a label a point; those that lie on each other (within 4 %) share one.

    machine: whose points they are, None of several.
    """
    found = []
    for each in points:
        name = each["kernel"].removeprefix("layers/") if each["kernel"] else each["phase"]
        if len(models) > 1:
            name = f"{each['model']} {name}"
        for group in found:
            (x, y), names, machines = group
            if abs(each["intensity"] / x - 1) < 0.04 and abs(each["reached_flop_per_s"] / y - 1) < 0.04:
                names.append(name)
                machines.add(each["hardware"])
                break
        else:
            found.append(((each["intensity"], each["reached_flop_per_s"]), [name], {each["hardware"]}))
    return [(at, _short(list(dict.fromkeys(names))), machines.pop() if len(machines) == 1 else None)
            for at, names, machines in found]  # fmt: skip


def _short(names):
    """Several names as one label: what they share is said once."""
    if len(names) == 1:
        return names[0]
    heads = {name.rpartition("/")[0] for name in names}
    if len(heads) == 1:
        head = heads.pop()
        names = (
            [f"{head}/{names[0].rpartition('/')[2]}", *[name.rpartition("/")[2] for name in names[1:]]]
            if head
            else names
        )
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def _legend(look, data, models, points):
    handles = []
    for at, machine in enumerate(data["machines"]):
        handles.append(
            Line2D(
                [],
                [],
                color=look.colours[at % len(look.colours)],
                linestyle=LINES[at % len(LINES)],
                label=machine["id"],
            )
        )
    for at, model in enumerate(models):
        handles.append(Line2D([], [], color=look.ink, marker=MARKERS[at % len(MARKERS)], linestyle="", label=model))
    for phase in dict.fromkeys(each["phase"] for each in points):
        face = look.ink if phase == "prefill" else look.paper
        handles.append(Line2D([], [], color=look.ink, marker="o", markerfacecolor=face, linestyle="",
                              label=f"{phase} ({'filled' if phase == 'prefill' else 'hollow'})"))  # fmt: skip
    return handles
