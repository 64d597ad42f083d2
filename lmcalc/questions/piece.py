"""The columns of a sweep, and how each is read off the costs of a model on a part of a grid."""

from functools import cached_property

import numpy

from ..lenses.cache import cache
from ..lenses.params import params, weight_bytes
from .report import Pass, bounds, by_kernel
from .vary import SIZES

# Columns: how each is read off a Piece, those of a phase off its Pass; and those of a machine --------------------

POINT = {
    **{name: lambda piece, name=name: getattr(piece.asked, name) for name in SIZES},
    "params_total": lambda piece: sum(params(piece.model).values()),
    "weights_bytes": lambda piece: weight_bytes(piece.model, piece.asked.weights),
    "cache_bytes": lambda piece: piece.held["bytes"],
    "state_bytes": lambda piece: piece.held["state_bytes"],
    "memory_needed": lambda piece: (
        weight_bytes(piece.model, piece.asked.weights) + piece.held["bytes"] + piece.held["state_bytes"]
    ),
}
PHASE = {
    "flops": lambda each: sum(each.flops[0].values()),
    "flops_contraction": lambda each: each.flops[0]["contraction"],
    "flops_normalization": lambda each: each.flops[0]["normalization"],
    "flops_elementwise": lambda each: each.flops[0]["elementwise"],
    "bytes": lambda each: sum(each.bytes.values()),
    "bytes_weights": lambda each: each.bytes["weights"],
    "bytes_activations": lambda each: each.bytes["activations"],
    "bytes_cache_read": lambda each: each.bytes["cache_read"],
    "bytes_cache_write": lambda each: each.bytes["cache_write"],
    "intensity": lambda each: sum(each.flops[0].values()) / sum(each.bytes.values()),
}
SIDES = ("compute", "memory", "vector")
TIMES = ("bound_s", "bound_by", "compute_s", "memory_s", "vector_s", "tokens_per_s", "roofline_s", "serial_s")
OF_MACHINE = ("hardware", "fits", *(f"{phase}_{name}" for phase in ("prefill", "decode") for name in TIMES))
COLUMNS = ("model", *POINT, *(f"{phase}_{name}" for phase in ("prefill", "decode") for name in PHASE), *OF_MACHINE)
# text, by number: what the codes in these columns stand for
LABELS = {"fits": (False, True, None), "prefill_bound_by": (*SIDES, None), "decode_bound_by": (*SIDES, None)}
# all that is computed without asking: not the sums over kernels, which take a while
USUAL = (
    "model", "hardware", "batch", "prompt", "past", "context", "params_total", "weights_bytes", "cache_bytes", "fits",
    *(f"{phase}_{name}" for phase in ("prefill", "decode") for name in (
        "flops", "flops_contraction", "flops_normalization", "flops_elementwise", "bytes", "intensity", "bound_s",
        "bound_by", "tokens_per_s")),
)  # fmt: skip
# the sizes that a column may depend on; decode and the cache know the prompt as the length of an encoder's input
DEPENDS = {"prefill": ("batch", "prompt", "past"), "decode": ("batch", "prompt", "context")}
DEPENDS |= dict.fromkeys(("cache_bytes", "state_bytes", "memory_needed", "fits"), ("batch", "prompt", "context"))
DEPENDS |= {name: (name,) for name in SIZES}


class Piece:
    """A model on a part of the grid; what several columns or machines need is computed once."""

    def __init__(self, model, asked):
        self.model, self.asked, self.known = model, asked, {}

    @cached_property
    def prefill(self):
        return Pass(self.model, self.asked, self.asked.prompt, self.asked.past)

    @cached_property
    def decode(self):
        if self.model.bidirectional:  # an encoder generates nothing
            return None
        return Pass(self.model, self.asked, 1, self.asked.context, encoded=True)

    @cached_property
    def held(self):
        return cache((self.decode or self.prefill).trace, self.asked.batch, self.asked.context, self.asked.storage())

    def column(self, name, machine=None):
        """The values of one column on this part of the grid; codes where it is text."""
        key = name, id(machine) if name in OF_MACHINE else None
        if key not in self.known:
            self.known[key] = self._computed(name, machine)
        return self.known[key]

    def _computed(self, name, machine):
        if name in POINT:
            return POINT[name](self)
        if name == "hardware":
            return 0
        if name == "fits":
            return 2 if machine.memory is None else (self.column("memory_needed") <= machine.memory) * numpy.int8(1)
        phase, _, rest = name.partition("_")
        each = getattr(self, phase)
        if each is None:
            return LABELS[name].index(None) if name in LABELS else numpy.nan
        if rest in PHASE:
            return PHASE[rest](each)
        if rest == "tokens_per_s":
            return self.asked.batch * each.tokens / self.column(f"{phase}_bound_s", machine)
        rates = machine.bandwidth, machine.matrix_peak(self.asked.activations)[0], machine.vector_peak()[0]
        times = by_kernel(each, *rates) if rest in ("roofline_s", "serial_s") else bounds(each, *rates, by=_code)
        found = {key: numpy.nan if value is None and key != "bound_by" else value for key, value in times.items()}
        if found.get("bound_by", 0) is None:
            found["bound_by"] = LABELS["decode_bound_by"].index(None)
        self.known.update({(f"{phase}_{key}", id(machine)): value for key, value in found.items()})
        return found[rest]


def _code(sides, bound):
    """Which side sets the bound, as its place in SIDES; of equal ones the first."""
    which = numpy.int8(0)
    for name in reversed(sides):
        which = numpy.where(sides[name] == bound, numpy.int8(SIDES.index(name)), which)
    return which
