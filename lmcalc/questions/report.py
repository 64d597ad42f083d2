"""The main question: what does a model cost, and how fast can a machine be at it?"""

import sys
from functools import cached_property

from ..arguments import several, table
from ..cards import load
from ..errors import InputError, shown, unknown
from ..fields import tables
from ..hardware import PEAKS, PLAUSIBLE, disproportion, machine, plausible
from ..lenses.cache import cache
from ..lenses.flops import flops, of_op
from ..lenses.params import active, buffers, mtp, params, weight_bytes
from ..lenses.traffic import CATEGORIES, ESTIMATED, traffic
from ..model import trace
from ..numbers import Sum, minimum
from ..units import STORED
from ..workload import workload

SCHEMA = "lmcalc.report/1"
PARTS = ("token_embedding", "position_embedding", "attention", "ffn", "moe_router", "moe_experts", "moe_shared",
         "mixer", "norms", "lm_head")  # fmt: skip
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
    asked = workload(**options).of(model, options)
    machines = on(hardware, set_hardware)
    passes = {
        "prefill": Pass(model, asked, asked.prompt, asked.past),
        "decode": None if model.bidirectional else Pass(model, asked, 1, asked.context, encoded=True),
    }
    by_part = params(model)
    weights = {"bytes": weight_bytes(model, asked.weights)}
    held = cache((passes["decode"] or passes["prefill"]).trace, asked.batch, asked.context, asked.storage())
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
        "params": {"total": sum(by_part.values()), "active": active(model), "buffers": buffers(model),
                   "mtp": mtp(model),
                   "by_part": {**dict.fromkeys(PARTS, 0), **by_part}},
        "weights": weights,
        "cache": held,
        "prefill": passes["prefill"].data(),
        "decode": None if passes["decode"] is None else passes["decode"].data(),
        "hardware": rows,
        "notes": notes,
    })  # fmt: skip


class Pass:
    """One phase: its trace, and its costs, each read off when first asked for (a sweep asks for few)."""

    def __init__(self, model, asked, new, past, encoded=False):
        self.asked, self.tokens = asked, new
        self.storage = asked.storage() | ({"by_path": model.storage.found} if asked.weights == STORED else {})
        rectangle = asked.mask == "full" and not encoded  # at decode `full` is as `causal`
        given = {"source": asked.prompt, "encoded": encoded, "phase": "decode" if encoded else "prefill",
                 "rectangle": rectangle, "fuse_projections": asked.fuse_projections}  # fmt: skip
        self._traced = lambda mla: trace(model, asked.batch, new, past, asked.logits, mla=mla, **given)
        self.trace, self._latent = self._traced(asked.mla), _with(model, "kv_latent_dim")
        # a run may do without experts where tokens may choose some that compute nothing
        self._idle = ("moe_experts",) if _with(model, "n_zero_experts") else ()

    @cached_property
    def flops(self):
        """({class: FLOPs}, {part: contraction FLOPs}) under the chosen mask."""
        return flops(self.trace, self.asked.mask)

    @cached_property
    def ways(self):
        """A trace of each way to compute the same: no run is bound by the costlier one."""
        return [self._traced(mla) for mla in ("expanded", "absorbed")] if self._latent else [self.trace]

    @cached_property
    def bound_classes(self):
        """{class: FLOPs} that no run can do without."""
        if self.asked.mask == "causal" and not self._latent and not self._idle:
            return self.flops[0]
        return _least([flops(each, "causal", self._idle)[0] for each in self.ways])

    @cached_property
    def kernels(self):
        """[(path, times, operations, terms)] under the chosen traffic convention."""
        asked = self.asked
        return traffic(self.trace, self.storage, asked.traffic, asked.experts, asked.expert_skew)

    @cached_property
    def bytes(self):
        """{category: bytes} under the chosen traffic convention."""
        return _by_category(self.kernels)

    @cached_property
    def estimated(self):
        """How much of `bytes` is an estimate: experts that are expected to be read. None where nothing is."""
        total, found = Sum(), False
        for _, _, _, terms in self.kernels:
            for at, term in terms:
                if at == ESTIMATED:
                    total.add(term)
                    found = True
        return total.value() if found else None

    @cached_property
    def bound_bytes(self):
        """{category: bytes} that no run can do without."""
        if self.asked.traffic == "ideal" and not self._latent:
            return self.bytes
        return _least([_by_category(traffic(each, self.storage, "ideal")) for each in self.ways])

    def data(self):
        """The phase's part of the report."""
        classes, parts = self.flops
        total = _total(classes)
        moved = _total(self.bytes)
        return {
            "flops": {"total": total, **classes, "contraction_by_part": parts},
            "bytes": {"total": moved, **self.bytes} | ({} if self.estimated is None else {"estimated": self.estimated}),
            "intensity": total / moved,
            "by_part": [] if _is_array(moved) else [self._row(*kernel) for kernel in self.costs if kernel[2]],
        }

    def _row(self, path, times, classes, moved):
        return {"path": path, "times": times[0], "flops": sum(classes.values()), "bytes": sum(moved.values()),
                "flops_by_class": classes, "bytes_by_kind": moved}  # fmt: skip

    @cached_property
    def costs(self):
        """[(path, times, {class: FLOPs}, {category: bytes})] of each kernel; both empty if it does nothing."""
        return [(path, times, *(self.kernel(ops, terms) if _works(path, times, ops, terms) else ({}, {})))
                for path, times, ops, terms in self.kernels]  # fmt: skip

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
            totals[0 if at == ESTIMATED else at].add(term)
    return {name: total.value() for name, total in zip(CATEGORIES, totals)}


def _least(found):
    """The smallest of each part."""
    least = dict(found[0])
    for other in found[1:]:
        for name, each in other.items():
            least[name] = minimum(least[name], each)
    return least


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
    if peak is None:
        notes.append(
            f"{machine.name}: no public peak for {asked.activations} or wider: the bounds leave contractions out."
        )
    elif at != asked.activations:
        notes.append(f"{machine.name} lists no peak for {asked.activations}: contractions run at its {at} peak.")
    if vector is None:
        notes.append(f"{machine.name}: no public vector peak: the bounds leave work other than contractions out.")
    elif vector_at != "fp32":
        notes.append(
            f"{machine.name} lists no fp32 vector peak: work other than contractions runs at its {vector_at} peak."
        )
    for dtype, rate in machine.peak.items():  # only figures that --set-hardware replaced
        dense = machine.card["peak"].get(dtype)
        if dense is not None and abs(rate / (2e12 * dense) - 1) < 1e-3:
            notes.append(
                f"{machine.name}: peak.{dtype} is twice the dense peak, as datasheets print it with sparsity: bounds "
                "with it count zeros."
            )
    if machine.memory is None:
        notes.append(f"{machine.name}: its memory size is not given, so nothing is said about fitting.")
    return {
        "id": machine.name,
        "ridge": None if peak is None else peak / machine.bandwidth,
        "fits": None if machine.memory is None else needed <= machine.memory,
        "memory_needed": needed,
        "memory_available": machine.memory,
        **{name: each and _times(each, machine.bandwidth, peak, vector) for name, each in passes.items()},
    }


def _times(each, *rates):
    """One phase on one machine."""
    found = bounds(each, *rates) | by_kernel(each, *rates)
    return found | {"tokens_per_s": each.asked.batch * each.tokens / found["bound_s"]}


def bounds(each, bandwidth, peak, vector, by=None):
    """Seconds that nothing beats, and which side sets them; see INTERFACE for the definitions. by: how to say which.

    Where a peak is not public (None) its side is None: the others still bound the time, but without the matrix peak
    nobody knows which side it is.
    """
    classes = each.bound_classes
    sides = {
        "compute": None if peak is None else classes["contraction"] / peak,
        "memory": _total(each.bound_bytes) / bandwidth,
        "vector": None if vector is None else (classes["normalization"] + classes["elementwise"]) / vector,
    }
    known = {name: seconds for name, seconds in sides.items() if seconds is not None}
    bound = known["memory"]
    for seconds in known.values():
        bound = _larger(bound, seconds)
    return {
        "bound_s": bound,
        "bound_by": None if peak is None else (by or _names)(known, bound),
        **{f"{name}_s": seconds for name, seconds in sides.items()},
    }


def by_kernel(each, bandwidth, peak, vector):
    """Seconds of running kernel by kernel, the larger side of each or both; None where a peak is not public."""
    if peak is None or vector is None:
        return {"roofline_s": None, "serial_s": None}
    roofline = serial = 0
    for _, _, classes, moved in each.costs:
        if classes:
            contractions, other, memory = sides(classes, moved, bandwidth, peak, vector)
            compute = contractions + other
            roofline, serial = roofline + _larger(compute, memory), serial + compute + memory
    return {"roofline_s": roofline, "serial_s": serial}


def sides(classes, moved, bandwidth, peak, vector):
    """Seconds of one kernel's contractions, of its other work and of its traffic; None where a peak is not public."""
    other = classes["normalization"] + classes["elementwise"]
    return (None if peak is None else classes["contraction"] / peak, None if vector is None else other / vector,
            _total(moved) / bandwidth)  # fmt: skip


def _names(sides, bound):
    if not _is_array(bound):
        return next(name for name, seconds in sides.items() if seconds == bound)
    import numpy

    which = 0
    for at, seconds in enumerate(sides.values()):
        which = numpy.where(seconds == bound, at, which)
    return numpy.array(list(sides), dtype=object)[which]


def _notes(model, asked):
    """What this workload makes worth saying."""
    found = [
        f"Traffic convention: {asked.traffic}. Mask: {asked.mask}. Logits: {asked.logits} position"
        f"{'s' if asked.logits == 'all' else ''} of the prompt.",
        f"Stored as: weights {_weights(model, asked)}, activations {asked.activations}, cache {asked.cache}.",
    ]
    found += _of_experts(model, asked)
    found += _of_attention(model, asked)
    if model.mtp:
        found.append("Modules of multi-token prediction are not run, and their weights are in params.mtp alone.")
    longest = model.fields.get("max_positions")
    lengths = {"past + prompt": asked.past + asked.prompt, "context + 1": asked.context + 1}
    if model.bidirectional:
        lengths = {"prompt": asked.prompt}
        found.append("An encoder: all positions go through the head, nothing is cached, and there is no decode.")
    if model.encoder is not None:
        found.append("The encoder reads as many tokens as the prompt has; decode reads what it made from the cache.")
    for name, length in lengths.items():
        if longest is not None and not _is_array(length) and length > longest:
            found.append(f"{name} = {length:,} is beyond the {longest:,} positions that the model was made for.")
    return found


LATENT = {
    "best": "prefill expands keys and values of all heads, decode absorbs their matrices and attends to the latents",
    "expanded": "keys and values of all heads are made from the latents, at decode of the whole context again",
    "absorbed": "matrices of keys and values are absorbed, and queries attend to the latents",
}


def _with(model, field):
    """Does some layer of the model have this field?"""
    return any(each.get(field) for each in tables(model.fields))


def _of_attention(model, asked):
    """Which of several ways latent attention takes, and what choosing keys does not cost."""
    every, found = tables(model.fields), []
    if _with(model, "kv_latent_dim"):
        found.append(f"Latent attention, {asked.mla}: {LATENT[asked.mla]}.")
    topk = max((each.get("index_topk") or 0 for each in every), default=0)
    if topk:
        what = "entries" if _with(model, "compression") else "keys"
        text = (
            f"The indexer scores all {what}; attention counts the {topk:,} that it chooses, under mask=full all of "
            "them. To choose costs nothing."
        )
        latent = _with(model, "kv_latent_dim")
        found.append(f"{text} Expanded keys and values are those of all tokens." if latent else text)
    if _with(model, "index_block_size"):
        found.append(
            "The indexer scores all keys; attention counts those of the blocks that it chooses, under mask=full all "
            "keys. To choose costs nothing."
        )
    if _with(model, "compression"):
        found.append(
            "An entry is made when its window of tokens is complete, so that tokens are not alike: decode counts the "
            "one token behind `context`. cache.bytes is exact, bytes_per_token the mean of a whole window."
        )
    return found


def _weights(model, asked):
    return asked.weights if asked.weights != STORED else f"as the checkpoint says ({model.storage.text})"


EXPERTS = {
    "min": "as if all tokens chose the same",
    "max": "as if tokens chose different ones as far as they go",
    "all": "all",
    "expected": "an estimate, E (1 - (1 - k/E)^tokens) in each layer: tokens choose k of E independently",
}


def _of_experts(model, asked):
    """What has to be said about mixtures of experts."""
    if not _with(model, "n_experts"):
        return []
    how = "min" if asked.traffic == "ideal" else asked.experts
    text = f"Experts whose weights are read: {how} ({EXPERTS[how]}"
    if how == "expected":
        text += ", all alike" if not asked.expert_skew else f", the i-th most popular as i^-{asked.expert_skew:g}"
    found = [f"{text})."]
    found.append(
        "bound_s and tokens_per_s hold for the fewest experts that are possible (all tokens choose the same), "
        f"roofline_s and serial_s for {how}."
    )
    if how == "expected":
        found.append("bytes.estimated is the part of bytes.total (and of bytes.weights) that is this estimate.")
    if _with(model, "n_zero_experts"):
        found.append(
            "FLOPs and active parameters count each choice of a token as an expert with weights: an upper limit. "
            "bound_s counts none."
        )
    return found


def on(hardware, changes=None):
    """The machines that were named, with some figures replaced; without a machine there is nothing to replace."""
    machines, changes = [machine(each) for each in several(hardware)], table("set_hardware", changes)
    if changes and not machines:
        raise InputError(f"set-hardware {', '.join(map(str, changes))}: no machine was named; allowed: -H NAME with it")
    return [changed(each, changes) for each in machines] if changes else machines


def changed(machine, changes):
    """A machine with some figures replaced: bandwidth (bytes/s), memory (bytes), peak.DTYPE, vector.DTYPE (FLOP/s)."""
    peak, vector, others = dict(machine.peak), dict(machine.vector), {}
    for name, value in changes.items():
        if not isinstance(name, str):
            raise InputError(f"set-hardware {shown(name)}: allowed: bandwidth, memory, peak.DTYPE, vector.DTYPE")
        figures, _, dtype = name.partition(".")
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= sys.float_info.max:
            raise InputError(f"set-hardware {name} = {shown(value)}; allowed: a number above 0, in base units")
        kind = "peak" if figures == "vector" else figures
        if kind in PLAUSIBLE and (kind == "peak") == bool(dtype):
            plausible(f"set-hardware {name}", value, kind)
        if dtype and kind == "peak" and dtype not in PEAKS:
            raise unknown(f"dtype in set-hardware {name}:", dtype, PEAKS)
        if figures in ("peak", "vector") and dtype:
            (peak if figures == "peak" else vector)[dtype] = float(value)
        elif name in ("bandwidth", "memory"):
            others[name] = value
        else:
            raise InputError(f"set-hardware {name}: allowed: bandwidth, memory, peak.DTYPE, vector.DTYPE")
    bandwidth = others.get("bandwidth", machine.bandwidth)
    found = disproportion({"peak": peak, "vector": vector}, bandwidth)
    if found:
        rate, name = found
        raise InputError(
            f"set-hardware {', '.join(changes)}: {name} = {rate:.6g} FLOP/s with bandwidth = {bandwidth:.6g} bytes/s: "
            f"{rate / bandwidth:.3g} FLOP a byte; allowed: 1 to 10,000"
        )
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
    return {
        name: value if numpy.size(value) == length and length > 1 else [value] * length for name, value in row.items()
    }
