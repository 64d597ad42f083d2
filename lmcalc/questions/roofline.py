"""Where models lie under the roofs of machines, what bounds them, and where that turns.

A roof (Williams, Waterman and Patterson 2009) is what a machine can do at an arithmetic intensity: the smaller of a
peak in FLOP/s and of intensity times a bandwidth. The bounds are those of `report`; nothing is computed a second way
here.
"""

import math
from fractions import Fraction

from ..arguments import for_each
from ..cards import load
from ..errors import InputError, shown
from ..workload import LEAST, workload
from .report import Pass, _total, bounds, on, sides
from .report import _notes as report_notes

SCHEMA = "lmcalc.roofline/1"
FAR = 2**40  # tokens; beyond this nobody asks
POINTS = ("phase", "kernel")


def roofline(models, hardware, points="phase", set=None, set_hardware=None, **options):
    """{schema, workload, machines, points, turns, classes, notes} of models on machines.

    models, hardware: names, or lists of them. points: one a "phase", or one a "kernel" (what runs without going through
    memory). options: as of `report`. FLOPs, bytes, seconds, FLOP/s. Raises InputError.

    >>> data = roofline("llama-3.1-8b", "h100", context=0)
    >>> [(each["phase"], each["batch"]) for each in data["turns"]]
    [('prefill', 1), ('decode', 298)]
    """
    models = models if isinstance(models, list | tuple) else [models]
    models = [load(each, changes) for each, changes in zip(models, for_each("set", set, len(models)))]
    machines = on(hardware, set_hardware)
    if not machines:
        raise InputError("a roofline needs a machine: -H h100 (lmcalc hardware lists them)")
    if not models:
        raise InputError("no model for a roofline; allowed: at least one")
    if not isinstance(points, str) or points not in POINTS:
        raise InputError(f"points = {shown(points)}; allowed: {', '.join(POINTS)}")
    asked = workload(**options)
    for name in LEAST:
        if not isinstance(getattr(asked, name), int):
            raise InputError(f"{name} is an array; allowed: an integer (a sweep takes arrays)")
    data = {"schema": SCHEMA, "workload": {**_sizes(asked), "dtypes": asked.dtypes()}}
    data["machines"] = [_machine(each, asked) for each in machines]
    data |= {"points": [], "turns": [], "classes": [], "notes": _notes(machines, asked)}
    for model in models:
        here, phases = asked.of(model, options), _phases(model)
        for note in report_notes(model, here):
            note = note if len(models) == 1 else f"{model.name}: {note}"
            data["notes"] += [note] if note not in data["notes"] else []
        passes = [at(here) for _, at in phases]
        for one in machines:
            rates = _rates(one, here)
            for (name, at), each in zip(phases, passes):
                where = {"model": model.name, "hardware": one.name, "phase": name}
                kernels = [{**where, **row} for row in _kernels(each, rates)]
                data["points"] += kernels if points == "kernel" else [{**where, **_phase(each, rates, kernels)}]
                data["turns"].append({**where, **_turns(name, at, here, rates)})
                data["classes"] += [{**where, **row} for row in _classes(kernels)]
    return data


def _sizes(asked):
    return {name: getattr(asked, name) for name in
            ("batch", "prompt", "past", "context", "mask", "logits", "traffic", "experts", "mla")}  # fmt: skip


def _phases(model):
    """[(name, function from a workload to the Pass)] of a model."""
    found = [("prefill", lambda asked: Pass(model, asked, asked.prompt, asked.past))]
    if not model.bidirectional:
        found.append(("decode", lambda asked: Pass(model, asked, 1, asked.context, encoded=True)))
    return found


def _rates(one, asked):
    return one.bandwidth, one.matrix_peak(asked.activations)[0], one.vector_peak()[0]


# Machines --------------------------------------------------------------------------------------------------------


def _machine(one, asked):
    """The roofs of a machine: peaks of each dtype, bandwidth of each level, and where they meet."""
    peak, at = one.matrix_peak(asked.activations)
    vector, vector_at = one.vector_peak()
    ceilings = [*_ceilings("matrix", one.peak), *_ceilings("vector", one.vector)]
    return {
        "id": one.name,
        "peak_flop_per_s": peak,
        "peak_dtype": at,
        "vector_flop_per_s": vector,
        "vector_dtype": vector_at,
        "bandwidth": one.bandwidth,
        "ridge": None if peak is None else peak / one.bandwidth,
        "ceilings": ceilings,
        "levels": levels(one),
    }


def _ceilings(unit, peaks):
    """[{unit, dtypes, flop_per_s}], dtypes of one rate together, the highest first."""
    rates = sorted(set(peaks.values()), reverse=True)
    return [{"unit": unit, "dtypes": [dtype for dtype in peaks if peaks[dtype] == rate], "flop_per_s": rate}
            for rate in rates]  # fmt: skip


def levels(one):
    """[{level, bytes_per_s, bytes}] from the chip outwards: cache where its bandwidth is public, memory, links."""
    memory, links, found = one.card.get("memory", {}), one.card.get("links", {}), []
    if memory.get("last_level_cache_GBps") is not None:
        size = memory.get("last_level_cache_MB")
        found.append({"level": "last-level cache", "bytes_per_s": memory["last_level_cache_GBps"] * 1e9,
                      "bytes": None if size is None else round(size * 2**20)})  # fmt: skip
    found.append({"level": "device memory", "bytes_per_s": one.bandwidth, "bytes": one.memory})
    for name in ("scale_up", "scale_out"):
        rate = links.get(f"{name}_GBps_per_direction")
        if rate is not None:
            found.append({"level": f"{name.replace('_', '-')} link", "bytes_per_s": rate * 1e9, "bytes": None})
    return found


# Points ----------------------------------------------------------------------------------------------------------


def _kernels(each, rates):
    """A row for each kernel: what it does and moves, the time of each side, the larger one, and which that is."""
    for path, times, classes, moved in each.costs:
        if not classes:
            continue
        flops, size = _total(classes), _total(moved)
        contractions, other, memory = sides(classes, moved, *rates)
        compute = (contractions or 0) + (other or 0)
        bound = max(compute, memory)
        yield {
            "kernel": path,
            "times": times[0],
            **_place(flops, size, bound),
            "contraction_s": contractions,
            "other_s": other,
            "memory_s": memory,
            "bound_s": bound,
            "bound_by": _side(classes, contractions, other, compute, memory),
            "ridge_distance": compute / memory if memory else None,
            "class": next((name for name in classes if classes[name]), "movement"),
        }


def _side(classes, contractions, other, compute, memory):
    if contractions is None and classes["contraction"]:
        return None  # nobody knows
    if memory > compute:
        return "memory"
    return "compute" if (contractions or 0) >= (other or 0) else "vector"


def _place(flops, size, seconds):
    """Where a point lies: at its intensity, and at the FLOP/s that it reaches in that time."""
    return {
        "flops": flops,
        "bytes": size,
        "intensity": flops / size if size else None,
        "reached_flop_per_s": flops / seconds,
    }


def _phase(each, rates, kernels):
    """The row of a phase: kernel after kernel, and the bound that no run beats."""
    found = bounds(each, *rates)
    roofline = sum(row["bound_s"] for row in kernels)
    compute = max(found["compute_s"] or 0, found["vector_s"] or 0)
    return {
        "kernel": None,
        "times": 1,
        **_place(sum(row["flops"] for row in kernels), sum(row["bytes"] for row in kernels), roofline),
        "contraction_s": found["compute_s"],
        "other_s": found["vector_s"],
        "memory_s": found["memory_s"],
        "bound_s": found["bound_s"],
        "roofline_s": roofline,
        "bound_by": found["bound_by"],
        "ridge_distance": compute / found["memory_s"],
    }


def _classes(kernels):
    """FLOP share against time share. A kernel counts whole as what it has first of contraction, normalization,
    elementwise.

    So Ivanov et al. 2020 (Data Movement Is All You Need, table 1) sort operators; theirs go through memory one by one,
    which is traffic="unfused".
    """
    flops, seconds = sum(row["flops"] for row in kernels), sum(row["bound_s"] for row in kernels)
    for name in ("contraction", "normalization", "elementwise", "movement"):
        rows = [row for row in kernels if row["class"] == name]
        if rows:
            yield {
                "class": name,
                "flops": sum(row["flops"] for row in rows),
                "flops_share": sum(row["flops"] for row in rows) / flops,
                "seconds": sum(row["bound_s"] for row in rows),
                "time_share": sum(row["bound_s"] for row in rows) / seconds,
            }


# Where the bound turns -------------------------------------------------------------------------------------------


class Polynomial:
    """A cost as a polynomial in the batch, which no component ever does more with than multiply: exact coefficients.

    >>> b = Polynomial((0, 1))
    >>> 3 * b + 4 + b * b
    Polynomial((4, 3, 1))
    """

    __slots__ = ("coefficients",)

    def __init__(self, coefficients):
        self.coefficients = tuple(coefficients)

    def __add__(self, other):
        a, b = self.coefficients, other.coefficients if isinstance(other, Polynomial) else (other,)
        size = max(len(a), len(b))
        padded = [(*each, *[0] * (size - len(each))) for each in (a, b)]
        return Polynomial(map(sum, zip(*padded)))

    def __mul__(self, other):
        b = other.coefficients if isinstance(other, Polynomial) else (other,)
        found = [0] * (len(self.coefficients) + len(b) - 1)
        for i, x in enumerate(self.coefficients):
            for j, y in enumerate(b):
                found[i + j] += x * y
        return Polynomial(found)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self):
        return f"Polynomial({self.coefficients})"


def in_batch(at, asked):
    """((constant, per sequence) of contraction FLOPs, of other FLOPs, of bytes) that no run can do without, exact."""
    each = at(asked.replace(batch=Polynomial((0, 1))))
    if len(each.ways) > 1:  # the smaller of two costs: a line if three points of it are on one, since it is concave
        one, two, far = (_costs(at(asked.replace(batch=batch))) for batch in (1, 2, FAR))
        found = [(2 * a - b, b - a) for a, b in zip(one, two)]
        straight = [c == m + n * FAR for (m, n), c in zip(found, far)]
    else:
        found = [cost.coefficients if isinstance(cost, Polynomial) else (cost,) for cost in _costs(each)]
        straight = [not any(coefficients[2:]) for coefficients in found]
    if not all(straight):
        raise AssertionError(f"a cost is not linear in the batch: {found}")
    return tuple((*coefficients, 0)[:2] for coefficients in found)


def _costs(each):
    """(contraction FLOPs, other FLOPs, bytes) that no run of a phase can do without."""
    classes = each.bound_classes
    return classes["contraction"], classes["normalization"] + classes["elementwise"], _total(each.bound_bytes)


def _turns(phase, at, asked, rates):
    """Where a phase stops to be bound by memory: from which batch on, and how far in prompt or context.

    batch: the least at this prompt or context, to what ("compute" or "vector"); None where no batch does. For prefill
    `prompt`: from where on it holds at the asked batch. For decode `batch_without_context`: the least onto an empty
    cache; `context`: up to where it holds at the asked batch; `context_limit`: beyond it no batch helps (None: no such
    end); `context_from`: where only long contexts allow it, from where on. FAR stands for no end in sight. known:
    whether the machine's matrix peak is public.
    """
    batch, to = _least(in_batch(at, asked), rates)
    found = {
        "asked_batch": asked.batch,
        "asked_tokens": asked.prompt if phase == "prefill" else asked.context,
        "known": rates[1] is not None,
        "batch": batch,
        "to": to,
    }
    if not found["known"]:  # without a matrix peak nobody knows
        return found | {"batch": None, "to": None}
    if phase == "prefill":
        return found | {
            "prompt": _first(lambda prompt: _turned(in_batch(at, asked.replace(prompt=prompt)), rates, asked.batch))
        }

    def helps(context):
        return _least(in_batch(at, asked.replace(context=context)), rates)[0] is not None

    def holds(context):
        return _turned(in_batch(at, asked.replace(context=context)), rates, asked.batch)

    first = _least(in_batch(at, asked.replace(context=0)), rates)[0]
    found |= {"batch_without_context": first, "context": None, "context_limit": None, "context_from": None}
    if first is None:
        return found | {"context_from": _first(helps, least=0)}
    return found | {"context": _last(holds), "context_limit": None if helps(FAR) else _last(helps)}


def _turned(costs, rates, batch):
    """Whether compute or vector work takes as long as memory traffic, or longer, at that batch."""
    return _least(costs, rates, batch)[0] == batch


def _least(costs, rates, least=1):
    """(the least batch from `least` on at which memory does not bound, by what it is bound there): (None, None) if
    none.

    Costs a + c B and m + n B at rates p and w: (a + c B) / p >= (m + n B) / w, solved for B in exact fractions; at
    equality a report says compute, and not vector.
    """
    *work, (m, n) = costs
    bandwidth, found = Fraction(rates[0]), []
    for (a, c), rate, name in zip(work, rates[1:], ("compute", "vector")):
        if rate is None:
            continue
        ahead = (a * bandwidth - m * Fraction(rate)) + least * (slope := c * bandwidth - n * Fraction(rate))
        if ahead > 0 or (ahead == 0 and name == "compute"):
            found.append((least, name))
        elif slope > 0:
            more = -ahead / slope
            steps = math.ceil(more) if name == "compute" else math.floor(more) + 1
            found.append((least + steps, name))
    return min(found, default=(None, None))


def _first(holds, least=1):
    """The least integer from which on it holds, by doubling and bisection; None if not even far out."""
    if holds(least):
        return least
    low, high = least, max(2 * least, 1)
    while not holds(high):
        low, high = high, 2 * high
        if high > FAR:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _last(holds):
    """The largest integer up to which it holds, None if it does not hold at 0; FAR stands for no end."""
    if not holds(0):
        return None
    end = _first(lambda size: not holds(size))
    return FAR if end is None else end - 1


def _notes(machines, asked):
    found = [
        "A point lies at FLOPs / bytes under the traffic convention, and at the FLOP/s of its kernels in turn.",
        "bound_by of a phase is that of the bound which no run beats; of a kernel its larger side.",
        "Peaks are dense.",
    ]
    for one in machines:
        peak, at = one.matrix_peak(asked.activations)
        if peak is None:
            found.append(
                f"{one.name}: no public peak for {asked.activations} or wider: contractions take no time here."
            )
        elif at != asked.activations:
            found.append(f"{one.name} lists no peak for {asked.activations}: contractions run at its {at} peak.")
        if one.vector_peak()[0] is None:
            found.append(f"{one.name}: no public vector peak: work other than contractions takes no time here.")
    return found
