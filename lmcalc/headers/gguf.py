"""Headers of GGUF files: metadata, then the table of tensors (ggml's docs/gguf.md). Long arrays are skipped, not kept.

The `gguf` package maps a file, makes an object of every token of the vocabulary, and trusts the counts that it finds;
this reader keeps to the header, and holds each count against the bytes that are left.
"""

import os
import re
import struct
from itertools import pairwise

from ..errors import InputError
from ..record import Frozen
from . import Header, Tensor
from .source import File

MOST = 2**26  # bytes of header: vocabularies of 262,144 tokens have 20 million
MOST_NAME, MOST_VALUES, MOST_TENSORS, MOST_TEXTS = 1024, 2**16, 2**18, 2**21
KEPT, MOST_KEPT = 1024, 2**16  # entries of arrays that are kept: of one, and of all; others only say how many they have
SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
FIRST_BLOCK, LARGEST_BLOCK = 2**17, 2**21  # bytes that are read at once: each time twice as many

# code: (name, values in a block, bytes of a block), from ggml.h and ggml-common.h; codes 4 and 5 (Q4_2, Q4_3) were
# removed before GGUF, 31-33 and 36-38 are Q4_0 and IQ4_NL in another order, which old files have
TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 31: ("Q4_0_4_4", 32, 18), 32: ("Q4_0_4_8", 32, 18),
    33: ("Q4_0_8_8", 32, 18), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 36: ("IQ4_NL_4_4", 32, 18),
    37: ("IQ4_NL_4_8", 32, 18), 38: ("IQ4_NL_8_8", 32, 18), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}  # fmt: skip
BLOCKS = {name: (values, size) for name, values, size in TYPES.values()}
# kinds of metadata values: struct's letter, except 8 (text) and 9 (array)
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, ARRAY = 8, 9


class Skipped(Frozen):
    """An array too long to keep: how many entries it has."""

    count: int


def chosen(names, where):
    """The one model among the names of files, by its first part; None if none ends in .gguf. Refused: several.

    What turns pictures into tokens for a model (mmproj) is none of its own.
    """
    found = [name for name in names if name.endswith(".gguf") and not os.path.basename(name).startswith("mmproj")]
    first = [name for name in found if not SPLIT.search(name) or "-00001-of-" in name]
    if len(first) > 1 or (found and not first):
        raise InputError(f"{where}: holds {', '.join(sorted(first or found))}; allowed: one model in .gguf files")
    return first[0] if first else None


def read(path, source=File):
    """The Header of a GGUF file, or of all files of a split one, whichever of them is named. source(name) opens one."""
    parts = [path]
    split = SPLIT.search(path)
    if split is not None and int(split[2]) > 1:
        parts = [f"{path[: split.start()]}-{number:05d}-of-{split[2]}.gguf" for number in range(1, int(split[2]) + 1)]
    tensors, files, metadata = {}, {}, {}
    for number, part in enumerate(parts):
        with source(part) as file:
            found, values = header(file)
        there = values.get("split.count", 1), values.get("split.no", 0)
        if there != (len(parts), number) and (len(parts) > 1 or there[0] != 1):
            raise InputError(
                f"{part}: says it is part {there[1]} of {there[0]}; "
                f"its name says {number} of {len(parts)}, counted from 0"
            )
        files[part] = file.size
        metadata = values | metadata
        for tensor in found:
            if tensor.name in tensors:
                raise InputError(f"{part}: the tensor {tensor.name} is in {tensors[tensor.name].file} as well")
            tensors[tensor.name] = tensor
    expected = metadata.get("split.tensors.count", len(tensors))
    if expected != len(tensors):
        raise InputError(f"{path}: split.tensors.count = {expected}; there are {len(tensors)} tensors")
    return Header(path=path, kind="gguf", tensors=tensors, files=files, metadata=metadata)


def header(source):
    """([Tensor], metadata) of one file."""
    at = Cursor(source)
    if at.take(4) != b"GGUF":
        raise InputError(f"{source.name}: no GGUF file: it does not start with GGUF")
    version = at.number("I")
    if version & 0xFFFF == 0 and version:  # written on a machine of the other byte order
        at.order = ">"
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in (2, 3):
        raise InputError(f"{source.name}: GGUF version {version}; allowed: 2, 3")
    n_tensors, n_values = at.number("Q"), at.number("Q")
    at.fits(n_tensors, 24, MOST_TENSORS, "tensors")
    at.fits(n_values, 13, MOST_VALUES, "metadata values")
    metadata = {}
    for _ in range(n_values):
        key = at.text(MOST_NAME)
        if key in metadata:
            raise InputError(f"{source.name}: the key {key!r} occurs twice")
        metadata[key] = at.value(at.number("I"))
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 0 < alignment <= 2**20 or alignment & (alignment - 1):
        raise InputError(f"{source.name}: general.alignment = {alignment!r}; allowed: a power of two up to 2**20")
    rows = [_row(at) for _ in range(n_tensors)]
    start = -(-at.at // alignment) * alignment
    return _held(source, rows, start, alignment), metadata


def _row(at):
    name = at.text(MOST_NAME)
    if not name or not name.isprintable():
        raise InputError(f"{at.source.name}: a tensor is called {name[:40]!r}; allowed: printable characters")
    axes = at.number("I")
    if axes > 4:
        raise InputError(f"{at.source.name}: {name}: {axes} axes; allowed: up to 4")
    shape = tuple(at.number("Q") for _ in range(axes))
    return name, shape[::-1], at.number("I"), at.number("Q")


def _held(source, rows, start, alignment):
    """[Tensor], each within the file and none over another."""
    found, ranges, names = [], [], set()
    room = max(source.size - start, 0)
    for name, shape, code, offset in rows:
        where = f"{source.name}: {name}"
        if name in names:
            raise InputError(f"{where}: occurs twice")
        names.add(name)
        if code not in TYPES:
            raise InputError(
                f"{where}: type {code}; allowed: " + ", ".join(f"{each} ({TYPES[each][0]})" for each in TYPES)
            )
        dtype, values, size = TYPES[code]
        tensor = Tensor(name, dtype, shape, 0, source.name)
        if (shape[-1] if shape else 1) % values:
            raise InputError(f"{where}: rows of {shape[-1]} values; {dtype} needs a multiple of {values}")
        tensor = tensor._replace(size=tensor.elements // values * size)
        if offset % alignment or offset + tensor.size > room:
            raise InputError(
                f"{where}: {dtype} of shape {list(shape)} at byte {offset:,} does not lie within the "
                f"{room:,} bytes of data, on a multiple of {alignment}: the file is cut off or its header lies"
            )
        found.append(tensor)
        ranges.append((offset, offset + tensor.size, name))
    ranges.sort()
    for (_, stop, one), (begin, _, other) in pairwise(ranges):
        if begin < stop:
            raise InputError(f"{source.name}: the tensors {one} and {other} overlap")
    return found


class Cursor:
    """A place in the header; bytes are fetched in blocks as it moves on."""

    def __init__(self, source):
        self.source, self.at, self.order = source, 0, "<"
        self._data, self._start, self._block, self._kept = b"", 0, FIRST_BLOCK, 0

    def take(self, count):
        """The next so many bytes."""
        at = self.at - self._start
        if at + count > len(self._data):
            if self.at + count > min(self.source.size, MOST):
                self._beyond(self.at + count)
            stop = min(self.at + max(count, self._block), self.source.size)
            self._block = min(2 * self._block, LARGEST_BLOCK)
            self._data, self._start, at = self.source.read(self.at, stop - self.at), self.at, 0
        self.at += count
        return self._data[at : at + count]

    def _beyond(self, needed):
        if needed > self.source.size:
            raise InputError(
                f"{self.source.name}: ends after {self.source.size:,} bytes, within its header: it is cut off"
            )
        raise InputError(f"{self.source.name}: a header of more than {MOST:,} bytes")

    def number(self, letter):
        """The next number, by struct's letter."""
        form = struct.Struct(self.order + letter)
        return form.unpack(self.take(form.size))[0]

    def fits(self, count, least, most, what):
        """Refuse a count of things, of at least so many bytes each, that is too large or has too few bytes left."""
        if count > most:
            raise InputError(f"{self.source.name}: {count:,} {what}; allowed: up to {most:,}")
        if count * least > self.source.size - self.at:
            raise InputError(
                f"{self.source.name}: {count:,} {what} do not fit the "
                f"{self.source.size - self.at:,} bytes that are left"
            )

    def text(self, most=None):
        """The next text."""
        length = self.number("Q")
        if most is not None and length > most:
            raise InputError(f"{self.source.name}: a name of {length:,} bytes; allowed: up to {most}")
        self.fits(length, 1, MOST, "characters")
        return self.take(length).decode("utf-8", "replace")

    def skip(self, count):
        """Move on by so many bytes."""
        if self.at + count > min(self.source.size, MOST):
            self._beyond(self.at + count)
        self.at += count

    def value(self, kind):
        """The next metadata value of a kind. Arrays in arrays, which nobody writes, are refused."""
        if kind in SCALARS:
            return self.number(SCALARS[kind])
        if kind == TEXT:
            return self.text()
        if kind != ARRAY:
            raise InputError(f"{self.source.name}: a metadata value of kind {kind}; allowed: 0 to 12")
        inside, count = self.number("I"), self.number("Q")
        if inside in SCALARS:
            size = struct.calcsize("<" + SCALARS[inside])
            self.fits(count, size, MOST, "entries")
            if self._keeps(count):
                return list(struct.unpack(f"{self.order}{count}{SCALARS[inside]}", self.take(count * size)))
            self.skip(count * size)
            return Skipped(count)
        if inside != TEXT:
            raise InputError(f"{self.source.name}: an array of kind {inside}; allowed: numbers and texts")
        self.fits(count, 8, MOST_TEXTS, "texts")
        if self._keeps(count):
            return [self.text() for _ in range(count)]
        self._skip_texts(count)
        return Skipped(count)

    def _keeps(self, count):
        """Whether so many entries are worth their memory."""
        self._kept += count if count <= KEPT else 0
        return count <= KEPT and self._kept <= MOST_KEPT

    def _skip_texts(self, count):
        """The same as text() so often, without making them: vocabularies are long."""
        unpack, room = struct.Struct(self.order + "Q").unpack_from, min(self.source.size, MOST)
        while count:
            self.take(8)
            self.at -= 8
            data, at = self._data, self.at - self._start
            last = len(data) - 8
            while count and at <= last:
                at += 8 + unpack(data, at)[0]
                count -= 1
            self.at = self._start + at
            if self.at > room:
                self._beyond(self.at)
