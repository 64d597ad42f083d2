"""The main question: what does a model cost, and how fast can a machine be at it?"""

from ..cards import load
from ..errors import InputError
from ..hardware import machine
from ..lenses.cache import cache
from ..lenses.flops import flops, of_op
from ..lenses.params import params, weight_bytes
from ..lenses.traffic import CATEGORIES, traffic
from ..model import trace
from ..numbers import Sum
from ..primitives import CONTRACTION
from ..workload import workload

SCHEMA = "lmcalc.report/1"
PARTS = ("token_embedding", "position_embedding", "attention", "ffn", "moe_router", "moe_experts", "moe_shared", "mixer",
         "norms", "lm_head")  # fmt: skip
CONVENTIONS = (
    "FLOPs: 2 per multiply-add; norms, softmax and elementwise work by a table of operations per element, apart.",
    "1 GB = 1e9 bytes, 1 GiB = 2**30 bytes. Peaks are dense. Token ids move as 4 bytes each.",
)


class Report:
    """The answer: plain data, in `to_dict()` exactly as the JSON has it."""

    def __init__(self, data):
        self._data = data

    def to_dict(self):
        """The report as nested dicts and lists of ints, floats and text (schema lmcalc.report/1)."""
        return self._data

    def to_frame(self):
        """One row a machine (or one row, without machines; one row a point, for a sweep), as a pandas DataFrame."""
        import pandas

        flat = _flat({key: value for key, value in self._data.items() if key not in ("hardware", "notes")})
        rows = [{**flat, **_flat({"hardware": each})} for each in self._data["hardware"]] or [flat]
        return pandas.concat([pandas.DataFrame(_columns(row)) for row in rows], ignore_index=True)

    def __repr__(self):
        model, total = self._data["model"]["id"], self._data["params"]["total"]
        return f"Report({model}, {total:,} parameters)"


def report(model, hardware=(), set=None, set_hardware=None, **options):
    """What a model costs at prefill and decode, and on each machine the time that nothing beats.

    model: anything `load` takes. hardware: names of machines, or one name. set: {field: value} over the model's card.
    options: batch, prompt, past, context (tokens; ints, or float64 arrays to sweep), weights, activations, cache, state
    (dtypes), mask, logits, traffic, experts, mla (conventions), fuse_projections. FLOPs, bytes and seconds; exact ints
    except times. Raises InputError.

    >>> report("llama-3.1-8b", hardware="h100", context=8192).to_dict()["cache"]["bytes_per_token"]
    131072
    """
    model = load(model, set)
    asked = workload(**options)
    machines = [machine(each) for each in ([hardware] if isinstance(hardware, str) else hardware)]
    if set_hardware:
        machines = [changed(each, set_hardware) for each in machines]
    passes = {
        "prefill": _pass(model, asked, asked.prompt, asked.past),
        "decode": _pass(model, asked, 1, asked.context),
    }
    by_part = params(model)
    weights = {"bytes": weight_bytes(model, asked.weights)}
    held = cache(passes["decode"].trace, asked.batch, asked.context, asked.dtypes())
    notes = [*model.notes, *CONVENTIONS, *_notes(model, asked)]
    rows = [
        _on(each, passes, asked, weights["bytes"] + held["bytes"] + held["state_bytes"], notes) for each in machines
    ]
    from .. import __version__

    return Report({
        "schema": SCHEMA,
        "version": __version__,
        "model": {"id": model.name, "name": model.name, "source": model.source, "family": model.family},
        "workload": {name: getattr(asked, name) for name in
                     ("batch", "prompt", "past", "context", "mask", "logits", "traffic", "experts", "mla")}
        | {"fuse_projections": asked.fuse_projections, "dtypes": asked.dtypes()},
        "params": {"total": sum(by_part.values()), "active": sum(by_part.values()), "buffers": 0, "mtp": 0,
                   "by_part": {**dict.fromkeys(PARTS, 0), **by_part}},
        "weights": weights,
        "cache": held,
        "prefill": passes["prefill"].data(),
        "decode": passes["decode"].data(),
        "hardware": rows,
        "notes": notes,
    })  # fmt: skip


class _pass:
    """One phase: its trace, and its costs by kernel."""

    def __init__(self, model, asked, new, past):
        self.asked, self.tokens = asked, new
        self.trace = trace(model, asked.batch, new, past, asked.logits, fuse_projections=asked.fuse_projections)
        self.classes, self.parts = flops(self.trace, asked.mask)
        self.bound_classes = self.classes if asked.mask == "causal" else flops(self.trace, "causal")[0]
        self.kernels = traffic(self.trace, asked.dtypes(), asked.traffic)
        self.bytes = _by_category(self.kernels)
        self.bound_bytes = (
            self.bytes if asked.traffic == "ideal" else _by_category(traffic(self.trace, asked.dtypes(), "ideal"))
        )

    def data(self):
        total = _total(self.classes)
        moved = _total(self.bytes)
        return {
            "flops": {"total": total, **self.classes, "contraction_by_part": self.parts},
            "bytes": {"total": moved, **self.bytes},
            "intensity": total / moved,
            "by_part": [] if _is_array(moved) else [self._row(*kernel) for kernel in self.kernels if _works(*kernel)],
        }

    def _row(self, path, times, ops, terms):
        classes, moved = self.kernel(ops, terms)
        return {"path": path, "times": times[0], "flops": sum(classes.values()), "bytes": sum(moved.values()),
                "flops_by_class": classes, "bytes_by_kind": moved}  # fmt: skip

    def kernel(self, ops, terms):
        """({class: FLOPs}, {category: bytes}) of one kernel."""
        classes = {"contraction": Sum(), "normalization": Sum(), "elementwise": Sum()}
        for op in ops:
            for term in of_op(op, self.asked.mask):
                classes[op.cls].add(term)
        return {name: total.value() for name, total in classes.items()}, _by_category([(None, None, None, terms)])


def _works(path, times, ops, terms):
    return bool(terms) or any(of_op(op) for op in ops)


def _by_category(kernels):
    totals = [Sum() for _ in CATEGORIES]
    for _, _, _, terms in kernels:
        for at, term in terms:
            totals[at].add(term)
    return {name: total.value() for name, total in zip(CATEGORIES, totals)}


def _total(parts):
    total = 0
    for value in parts.values():
        total = total + value
    return total


def _is_array(value):
    return not isinstance(value, (int, float))


def _larger(a, b):
    if _is_array(a) or _is_array(b):
        import numpy

        return numpy.maximum(a, b)
    return max(a, b)


def _on(machine, passes, asked, needed, notes):
    """One machine's row of the report."""
    peak, at = machine.matrix_peak(asked.activations)
    vector, vector_at = machine.vector_peak()
    if at != asked.activations:
        notes.append(f"{machine.name} lists no peak for {asked.activations}: contractions run at its {at} peak.")
    if vector_at != "fp32":
        notes.append(f"{machine.name} lists no fp32 vector peak: work other than contractions runs at its {vector_at} peak.")
    return {
        "id": machine.name,
        "ridge": peak / machine.bandwidth,
        "fits": needed <= machine.memory,
        "memory_needed": needed,
        "memory_available": machine.memory,
        **{name: _bounds(each, machine.bandwidth, peak, vector) for name, each in passes.items()},
    }


def _bounds(each, bandwidth, peak, vector):
    """Seconds that nothing beats, and those of running kernel by kernel; see INTERFACE for the definitions."""
    classes = each.bound_classes
    sides = {
        "compute": classes["contraction"] / peak,
        "memory": _total(each.bound_bytes) / bandwidth,
        "vector": (classes["normalization"] + classes["elementwise"]) / vector,
    }
    bound = _larger(_larger(sides["compute"], sides["memory"]), sides["vector"])
    roofline = serial = 0
    for _, _, ops, terms in each.kernels:
        classes, moved = each.kernel(ops, terms)
        compute = classes["contraction"] / peak + (classes["normalization"] + classes["elementwise"]) / vector
        memory = _total(moved) / bandwidth
        roofline, serial = roofline + _larger(compute, memory), serial + compute + memory
    return {
        "bound_s": bound,
        "bound_by": _names(sides, bound),
        **{f"{name}_s": seconds for name, seconds in sides.items()},
        "roofline_s": roofline,
        "serial_s": serial,
        "tokens_per_s": each.asked.batch * each.tokens / bound,
    }


def _names(sides, bound):
    if not _is_array(bound):
        return next(name for name, seconds in sides.items() if seconds == bound)
    import numpy

    return numpy.select([sides["compute"] == bound, sides["memory"] == bound], ["compute", "memory"], "vector")


def _notes(model, asked):
    """What this workload makes worth saying."""
    found = [
        f"Traffic convention: {asked.traffic}. Mask: {asked.mask}. Logits: {asked.logits} position"
        f"{'s' if asked.logits == 'all' else ''} of the prompt.",
        f"Stored as: weights {asked.weights}, activations {asked.activations}, cache {asked.cache}.",
    ]
    longest = model.fields.get("max_positions")
    for name, length in (("past + prompt", asked.past + asked.prompt), ("context + 1", asked.context + 1)):
        if longest is not None and not _is_array(length) and length > longest:
            found.append(f"{name} = {length:,} is beyond the {longest:,} positions that the model was made for.")
    return found


def changed(machine, changes):
    """A machine with some figures replaced: bandwidth (bytes/s), memory (bytes), peak.DTYPE, vector.DTYPE (FLOP/s)."""
    peak, vector, others = dict(machine.peak), dict(machine.vector), {}
    for name, value in changes.items():
        table, _, dtype = name.partition(".")
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < float("inf"):
            raise InputError(f"set-hardware {name} = {value!r}; allowed: a number above 0, in base units")
        if table in ("peak", "vector") and dtype:
            (peak if table == "peak" else vector)[dtype] = float(value)
        elif name in ("bandwidth", "memory"):
            others[name] = value
        else:
            raise InputError(f"set-hardware {name}: allowed: bandwidth, memory, peak.DTYPE, vector.DTYPE")
    return machine.replace(name=f"{machine.name} (changed)", peak=peak, vector=vector, **others)


def _flat(data, prefix=""):
    rows = {}
    for key, value in data.items():
        name = f"{prefix}_{key}" if prefix else key
        if isinstance(value, dict):
            rows |= _flat(value, name)
        elif not isinstance(value, list):
            rows[name] = value
    return rows


def _columns(row):
    import numpy

    length = max((numpy.size(value) for value in row.values()), default=1)
    return {name: value if numpy.size(value) == length and length > 1 else [value] * length for name, value in row.items()}
