"""A grid of workloads at once: every cost as columns, a row for each point, computed on float64 arrays."""

from functools import cached_property

import numpy

from ..cards import load
from ..errors import InputError, unknown
from ..hardware import machine
from ..lenses.cache import cache
from ..lenses.params import params, weight_bytes
from ..workload import LEAST, MOST, workload
from .report import Pass, bounds, by_kernel

CHUNK = 2**15  # points at a time: arrays of this size stay in a core's cache
SIZES = ("batch", "prompt", "past", "context")

# Columns: how each is read off a Piece, those of a phase off its Pass; and those of a machine --------------------

POINT = {
    "model": lambda piece: piece.model.name,
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
TIMES = ("bound_s", "bound_by", "compute_s", "memory_s", "vector_s", "tokens_per_s", "roofline_s", "serial_s")
OF_MACHINE = ("hardware", "fits", *(f"{phase}_{name}" for phase in ("prefill", "decode") for name in TIMES))
COLUMNS = (*POINT, *(f"{phase}_{name}" for phase in ("prefill", "decode") for name in PHASE), *OF_MACHINE)
TEXT = ("model", "hardware", "fits", "prefill_bound_by", "decode_bound_by")  # not numbers
# all that is computed without asking: not the sums over kernels, which take a while
USUAL = (
    "model", "hardware", "batch", "prompt", "past", "context", "params_total", "weights_bytes", "cache_bytes", "fits",
    *(f"{phase}_{name}" for phase in ("prefill", "decode") for name in (
        "flops", "flops_contraction", "flops_normalization", "flops_elementwise", "bytes", "intensity", "bound_s",
        "bound_by", "tokens_per_s")),
)  # fmt: skip


class Columns(dict):
    """{column: array}, all of one length."""

    def to_frame(self):
        """The same as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self)


def sweep(model, hardware=(), batch=1, prompt=2048, past=0, context=2048, columns=None, set=None, **options):
    """What models cost at every point of a grid, as columns; a row is one model on one machine at one workload.

    model, hardware: a name, or several. batch, prompt, past, context: whole numbers, lists or arrays of them that
    broadcast against each other. columns: names out of COLUMNS (default: USUAL). set: {field: value} over the cards.
    options: as of `report`. Numbers are float64: exact up to 2**53, beyond that to 15 digits; NaN where a machine lacks
    the figure, or an encoder the phase. Raises InputError.

    >>> grid = sweep("llama-3.1-8b", batch=[[1], [8]], context=[1024, 4096], columns=["batch", "cache_bytes"])
    >>> grid["cache_bytes"].tolist()
    [134217728.0, 536870912.0, 1073741824.0, 4294967296.0]
    """
    models = [load(each, set) for each in (model if isinstance(model, list | tuple) else [model])]
    machines = [machine(each) for each in (hardware if isinstance(hardware, list | tuple) else [hardware])]
    columns = _chosen(columns, machines)
    sizes = {name: _size(name, value) for name, value in zip(SIZES, (batch, prompt, past, context))}
    asked = workload(**sizes, **options)
    shape = _shape(sizes)
    machines = machines or [None]
    found = {
        name: numpy.empty((len(models), len(machines), *shape), object if name in TEXT else float) for name in columns
    }
    for at, each in enumerate(models):
        for part in _parts(shape):
            piece = Piece(each, asked.of(each, options).replace(**{name: _cut(value, part) for name, value in sizes.items()}))
            for on, one in enumerate(machines):
                for name in columns:
                    found[name][(at, on, *part)] = piece.column(name, one)
    return Columns({name: values.reshape(-1) for name, values in found.items()})


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
        """The values of one column on this part of the grid."""
        key = name, machine.name if name in OF_MACHINE else None
        if key not in self.known:
            self.known[key] = self._computed(name, machine)
        return self.known[key]

    def _computed(self, name, machine):
        if name in POINT:
            return POINT[name](self)
        if name == "hardware":
            return machine.name
        if name == "fits":
            return None if machine.memory is None else self.column("memory_needed") <= machine.memory
        phase, _, rest = name.partition("_")
        each = getattr(self, phase)
        if each is None:
            return None if name in TEXT else numpy.nan
        if rest in PHASE:
            return PHASE[rest](each)
        if rest == "tokens_per_s":
            return self.asked.batch * each.tokens / self.column(f"{phase}_bound_s", machine)
        rates = machine.bandwidth, machine.matrix_peak(self.asked.activations)[0], machine.vector_peak()[0]
        times = (by_kernel if rest in ("roofline_s", "serial_s") else bounds)(each, *rates)
        self.known.update({(f"{phase}_{key}", machine.name): value for key, value in times.items()})
        return times[rest]


def _chosen(columns, machines):
    if columns is None:
        return [name for name in USUAL if machines or name not in OF_MACHINE]
    columns = [columns] if isinstance(columns, str) else list(columns)
    for name in columns:
        if name not in COLUMNS:
            raise unknown("column", name, COLUMNS)
        if name in OF_MACHINE and not machines:
            raise InputError(f"column {name} needs a machine: hardware=NAME")
    return columns


def _size(name, value):
    """One size as an int, or as the float64 array that cost code runs on: the door for lists and integer arrays."""
    if isinstance(value, list | tuple | range):
        try:
            value = numpy.array([value], dtype=object if _odd(value) else None)[0]
        except ValueError:
            raise InputError(f"{name}: the lists in it differ in length") from None
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "iu":
        if value.size and not LEAST[name] <= int(value.min()) <= int(value.max()) <= MOST:
            raise InputError(f"{name} holds values that are not whole numbers from {LEAST[name]} to 2**53")
        value = value.astype(float)
    return value


def _odd(value):
    """Whether a list holds what NumPy would turn into a number in silence."""
    if isinstance(value, list | tuple):
        return any(map(_odd, value))
    return isinstance(value, bool | str)


def _shape(sizes):
    shapes = {name: numpy.shape(value) for name, value in sizes.items()}
    try:
        return numpy.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise InputError(f"shapes do not broadcast against each other: {given}") from None


def _parts(shape):
    """Slices of the grid of about CHUNK points each, cut along its longest axis."""
    if not shape:
        return [()]
    axis = max(range(len(shape)), key=shape.__getitem__)
    others = 1
    for at, size in enumerate(shape):
        others *= size if at != axis else 1
    step = max(1, CHUNK // max(1, others))
    return [
        tuple(slice(at, at + step) if each == axis else slice(None) for each in range(len(shape)))
        for at in range(0, shape[axis], step)
    ]


def _cut(value, part):
    """The part of one size's array that belongs to a part of the grid; axes that it lacks or repeats stay."""
    if not isinstance(value, numpy.ndarray):
        return value
    own = part[len(part) - value.ndim :] if value.ndim else ()
    return value[tuple(cut if size > 1 else slice(None) for cut, size in zip(own, value.shape))]
