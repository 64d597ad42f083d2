"""Machines: one TOML file each, with dense peaks and their source. Read into base units: FLOP/s, bytes, bytes/s."""

import math
import os

from .. import catalogue
from ..errors import InputError, shown, unknown
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
KINDS = {"aliases": list, "notes": list, **dict.fromkeys(("name", "vendor", "title", "kind", "grade", "source"), str)}


MEMORY = ("marketed_GB", "usable_GiB", "kind", "bandwidth_GBps", "last_level_cache_MB", "last_level_cache_GBps",
          "sram_per_core_KB", "cores")  # fmt: skip
DENSE = "allowed: dense peaks alone, as [peak] DTYPE = TFLOP/s; what datasheets print with sparsity is twice as high"
# what a machine can have, in base units, and under which names a figure in another unit may have been meant
PLAUSIBLE = {
    "peak": (1e9, 1e18, "FLOP/s", {"FLOP/s": 1, "MFLOP/s": 1e6, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}),
    "bandwidth": (1e9, 1e17, "bytes/s", {"bytes/s": 1, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}),
    "memory": (1e8, 1e13, "bytes", {"bytes": 1, "MB": 1e6, "GB": 1e9, "TB": 1e12}),
}
USUAL = {"peak": 1e13, "bandwidth": 1e10, "memory": 1e9}  # the least that most machines have


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
        raise InputError(f"hardware {shown(name)} is a {type(name).__name__}; allowed: a name or a path to a .toml")
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
        if key == "sparse":
            raise InputError(f"{where}: sparse = {card[key]!r}; {DENSE}")
        if key not in TOP:
            raise InputError(f"{where}: {unknown('key', key, TOP)}")
        if key in KINDS:
            if not isinstance(card[key], KINDS[key]):
                raise InputError(
                    f"{where}: {key} = {card[key]!r}; allowed: {'a list' if KINDS[key] is list else 'text'}"
                )
            catalogue.check_texts([card[key]] if key == "source" else card[key], f"{where}: {key}")
    peaks = {}
    for table in ("peak", "vector"):
        peaks[table] = {}
        for dtype, tera in _table(card, table, where).items():
            if dtype.split("_")[0] == "sparse" or dtype.endswith("_sparse"):
                raise InputError(f"{where}: {table}.{dtype} = {tera!r}; {DENSE}")
            if dtype not in PEAKS:
                raise InputError(f"{where}: {table}.{dtype} = {tera!r}; allowed: " + ", ".join(PEAKS))
            peaks[table][dtype] = _scaled(tera, "e12", f"{where}: {table}.{dtype}")
            plausible(f"{where}: {table}.{dtype}", peaks[table][dtype], "peak", "e12")
    memory = _table(card, "memory", where)
    for key in memory:
        if key not in MEMORY:
            raise InputError(f"{where}: memory.{key} = {memory[key]!r}: unknown key; allowed: {', '.join(MEMORY)}")
        if key != "kind":
            _scaled(memory[key], "", f"{where}: memory.{key}")
    if "usable_GiB" in memory:
        usable = int(_scaled(memory["usable_GiB"], "", f"{where}: memory.usable_GiB") * 2**30)
    elif "marketed_GB" in memory:
        usable = int(_scaled(memory["marketed_GB"], "e9", f"{where}: memory.marketed_GB"))
    else:
        usable = None  # a CPU: as much as is plugged in
    bandwidth = _scaled(memory.get("bandwidth_GBps"), "e9", f"{where}: memory.bandwidth_GBps")
    plausible(f"{where}: memory.bandwidth_GBps", bandwidth, "bandwidth", "e9")
    if usable is not None:
        key = "usable_GiB" if "usable_GiB" in memory else "marketed_GB"
        plausible(f"{where}: memory.{key}", usable, "memory", 2**30 if key == "usable_GiB" else "e9")
        if key == "usable_GiB" and "marketed_GB" in memory:
            _scaled(memory["marketed_GB"], "e9", f"{where}: memory.marketed_GB")
    if memory.get("usable_GiB", 0) > memory.get("marketed_GB", math.inf):
        given, marketed = memory["usable_GiB"], memory["marketed_GB"]
        raise InputError(
            f"{where}: memory.usable_GiB = {given!r} of marketed_GB = {marketed!r}; allowed: what a program can use, "
            f"in GiB (2**30 bytes): {given!r} GB are {given * 1e9 / 2**30:.4g} GiB"
        )
    _in_proportion(peaks, bandwidth, where)
    if os.path.dirname(os.path.abspath(where)) != FOLDER:
        _not_sparse(card, peaks["peak"], where)
    name = card.get("name", os.path.basename(where)[:-5])
    return Machine(name, peaks["peak"], peaks["vector"], usable, bandwidth, card)


def plausible(where, value, kind, unit=1):
    """Refuse a figure (in base units; written in multiples of `unit`) that no machine has: its unit was mistaken."""
    least, most, base, units = PLAUSIBLE[kind]
    value = float(min(value, 1e300))
    if least <= value <= most:
        return
    factor = float(f"1{unit}") if isinstance(unit, str) else unit
    given = value / factor
    name = {1: base, 2**30: "GiB"}.get(factor) or next(each for each, size in units.items() if size == factor)
    text = f"{where} = {given:.6g} {name}; allowed: {name} from {least / factor:.3g} to {most / factor:.3g}"
    others = [(each, given * size) for each, size in units.items() if each != name]
    meant = next(((each, size) for each, size in others if USUAL[kind] <= size <= most), None)
    if meant:
        text += f"; {given:.6g} looks like {meant[0]}, which is {meant[1] / factor:.6g} {name}"
    raise InputError(text)


def _in_proportion(peaks, bandwidth, where):
    """Refuse units that do not go together: see `disproportion`."""
    found = disproportion(peaks, bandwidth)
    if found:
        rate, name = found
        raise InputError(
            f"{where}: memory.bandwidth_GBps = {bandwidth / 1e9:.6g} with {name} = {rate / 1e12:.6g}: "
            f"{rate / bandwidth:.3g} FLOP a byte; allowed: 1 to 10,000, with bandwidth in GB/s (1e9 bytes/s) and "
            "peaks in TFLOP/s (1e12 FLOP/s)"
        )


def disproportion(peaks, bandwidth):
    """(rate, table.dtype) of the highest peak if it is no 1 to 10,000 FLOP a byte, as those of machines are, or None.

    peaks: {table: {dtype: FLOP/s}}.
    """
    known = [(rate, f"{table}.{dtype}") for table, rates in peaks.items() for dtype, rate in rates.items()]
    rate, name = max(known, default=(None, None))
    return (rate, name) if known and not 1 <= rate / bandwidth <= 10_000 else None


def _not_sparse(card, peak, where):
    """Refuse peaks that are twice those of the catalogue's machine of the same name: they count zeros."""
    names = {*catalogue.names(FOLDER), *catalogue.aliases(FOLDER)}
    for name in (card.get("name"), os.path.basename(where)[:-5]):
        if isinstance(name, str) and name.lower() in names:
            known = machine(name.lower()).peak
            for dtype, rate in peak.items():
                if dtype in known and abs(rate / (2 * known[dtype]) - 1) < 1e-3:
                    there = f"{known[dtype] / 1e12:.6g} TFLOP/s of {machine(name.lower()).name}"
                    given = f"{where}: peak.{dtype} = {rate / 1e12:.6g}"
                    raise InputError(f"{given} is twice the {there}: a peak with sparsity; {DENSE}")


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
