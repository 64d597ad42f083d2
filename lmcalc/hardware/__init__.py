"""Machines: one TOML file each, with dense peaks and their source. Read into base units: FLOP/s, bytes, bytes/s."""

import math
import os

from .. import catalogue
from ..errors import InputError, unknown
from ..record import Frozen

FOLDER = os.path.dirname(os.path.abspath(__file__))
PEAKS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")
# where a machine lists no matrix peak for a dtype, contractions run at the next of these that it lists
WIDER = {
    "fp4": ("fp8", "bf16"), "mxfp4": ("fp4", "fp8", "bf16"), "nvfp4": ("fp4", "fp8", "bf16"), "int4": ("int8", "bf16"),
    "mxfp6": ("fp8", "bf16"), "mxfp8": ("fp8", "bf16"), "fp8": ("bf16",), "int8": ("bf16",), "q8_0": ("int8", "bf16"),
    "q4_0": ("int8", "bf16"), "bf16": ("fp16", "tf32"), "fp16": ("bf16", "tf32"), "tf32": ("fp32",), "fp32": ("fp64",),
}  # fmt: skip
TOP = ("name", "aliases", "vendor", "title", "kind", "grade", "source", "notes", "peak", "vector", "memory", "links",
       "power")  # fmt: skip


class Machine(Frozen):
    """One machine: `peak` and `vector` are {dtype: FLOP/s} of matrix and vector units, dense, `memory` usable bytes,
    `bandwidth` bytes/s.

    Figures that are not public are missing from `peak` and `vector`, or None for `memory`; bandwidth is always known.
    `card` is its file as read, with what else is known of it and where from.
    """

    name: str
    peak: dict
    vector: dict
    memory: int
    bandwidth: float
    card: dict

    def matrix_peak(self, dtype):
        """(FLOP/s for contractions on this dtype, the dtype whose peak that is); falls back to the next wider listed.

        (None, None) where neither matrix nor vector units have a figure for it or a wider one.
        """
        tried, waiting = [], [dtype]
        while waiting:
            each = waiting.pop(0)
            tried.append(each)
            for peaks in (self.peak, self.vector):
                if each in peaks:
                    return peaks[each], each
            waiting += [wider for wider in WIDER.get(each, ()) if wider not in tried]
        return None, None

    def vector_peak(self):
        """(FLOP/s of the vector units, dtype) for all that is not a contraction: at fp32; (None, None) if unknown."""
        for dtype in ("fp32", "bf16", "fp16", "fp64"):
            if dtype in self.vector:
                return self.vector[dtype], dtype
        return None, None


def machine(name):
    """The Machine of that name, alias, or path to a TOML file.

    >>> machine("h100").bandwidth
    3350000000000.0
    """
    if isinstance(name, Machine):
        return name
    if not isinstance(name, str):
        raise InputError(f"hardware {name!r} is a {type(name).__name__}; allowed: a name or a path to a .toml file")
    if name.endswith(".toml") and not os.path.isfile(name):
        raise InputError(f"{name}: no such file")
    path = name if name.endswith(".toml") else catalogue.find("hardware", name, FOLDER)
    return checked(catalogue.read(path), path)


def machines():
    """Every machine of the catalogue."""
    return [machine(name) for name in catalogue.names(FOLDER)]


def checked(card, where):
    """A machine's file as a Machine; InputError names the file, key and value of what cannot be."""
    for key in card:
        if key not in TOP:
            raise InputError(f"{where}: {unknown('key', key, TOP)}")
    peaks = {}
    for table in ("peak", "vector"):
        peaks[table] = {}
        for dtype, tera in _table(card, table, where).items():
            if dtype not in PEAKS:
                raise InputError(f"{where}: {table}.{dtype} = {tera!r}; allowed: " + ", ".join(PEAKS))
            peaks[table][dtype] = _scaled(tera, "e12", f"{where}: {table}.{dtype}")
    memory = _table(card, "memory", where)
    if "usable_GiB" in memory:
        usable = int(_scaled(memory["usable_GiB"], "", f"{where}: memory.usable_GiB") * 2**30)
    elif "marketed_GB" in memory:
        usable = int(_scaled(memory["marketed_GB"], "e9", f"{where}: memory.marketed_GB"))
    else:
        usable = None  # a CPU: as much as is plugged in
    bandwidth = _scaled(memory.get("bandwidth_GBps"), "e9", f"{where}: memory.bandwidth_GBps")
    name = card.get("name", os.path.basename(where)[:-5])
    return Machine(name, peaks["peak"], peaks["vector"], usable, bandwidth, card)


def _table(card, key, where):
    if key not in card:
        raise InputError(f"{where}: [{key}] is missing; it may be empty where no figure is public")
    table = card[key]
    if not isinstance(table, dict):
        raise InputError(f"{where}: {key} = {table!r}; allowed: a table")
    return table


def _scaled(number, exponent, where):
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number < math.inf:
        raise InputError(f"{where} = {number!r}; allowed: a number above 0")
    return float(f"{number!r}{exponent}") if "e" not in repr(number) else number * float("1" + exponent)
