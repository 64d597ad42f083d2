"""Headers of safetensors files: 8 bytes of length, JSON, the tensors (github.com/huggingface/safetensors, "Format").

The package of that name opens local files only and reads no header by ranges; what it refuses is refused here, too.
"""

import json

from ..errors import InputError
from ..units import BITS
from . import Header, Tensor

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
MOST = 2**24  # bytes of JSON; a header of 100,000 tensors has 13 million, the format allows 100 million
MOST_INDEX = 2**25
MOST_FILES = 10_000
MOST_NAME, MOST_AXES = 1024, 16


def read(path, source, names=None, config=None):
    """The Header of a checkpoint; source(name) opens one of its files. names: of these, or None: as its index says."""
    index = None
    if names is None:
        with source(INDEX) as file:
            index = listed(file)
        names = sorted(set(index.values()))
    tensors, files, metadata = {}, {}, {}
    for name in names:
        with source(name) as file:
            found, more = header(file)
        files[name] = file.size
        metadata |= more
        for tensor in found:
            if tensor.name in tensors:
                raise InputError(f"{file.name}: the tensor {tensor.name} is in {tensors[tensor.name].file} as well")
            tensors[tensor.name] = tensor._replace(file=name)
    return Header(
        path=path, kind="safetensors", tensors=tensors, files=files, metadata=metadata, config=config, index=index
    )


def listed(source):
    """{tensor: file} of an index. A file must lie beside the index: paths are refused."""
    if source.size > MOST_INDEX:
        raise InputError(f"{source.name}: {source.size:,} bytes; allowed: an index of up to {MOST_INDEX:,}")
    data = parsed(source.read(0, source.size), source.name)
    table = data.get("weight_map")
    if not isinstance(table, dict) or not table or not all(isinstance(name, str) for name in table.values()):
        raise InputError(f"{source.name}: weight_map = {str(table)[:80]}; allowed: an object from tensors to files")
    names = set(table.values())
    for name in sorted(names):
        if not name.endswith(".safetensors") or "/" in name or "\\" in name or not name.isprintable():
            raise InputError(
                f"{source.name}: weight_map names {name[:200]!r}; allowed: names of .safetensors files beside it"
            )
    if len(names) > MOST_FILES:
        raise InputError(f"{source.name}: {len(names):,} files; allowed: up to {MOST_FILES:,}")
    return table


def header(source):
    """([Tensor], metadata) of one file."""
    if source.size < 8:
        raise InputError(f"{source.name}: {source.size} bytes are no safetensors file: it is cut off")
    length = int.from_bytes(source.read(0, 8), "little")
    if length > MOST:
        raise InputError(
            f"{source.name}: a header of {length:,} bytes; allowed: up to {MOST:,} (is it a safetensors file?)"
        )
    room = source.size - 8 - length
    if room < 0:
        raise InputError(f"{source.name}: ends after {source.size:,} bytes, within its header: it is cut off")
    table = parsed(source.read(8, length), source.name)
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise InputError(f"{source.name}: __metadata__ is no object of texts")
    found, ranges = [], []
    for name, row in table.items():
        tensor, start = _tensor(name, row, room, source.name)
        found.append(tensor)
        ranges.append((start, start + tensor.size, name))
    ranges.sort()
    reached = 0
    for start, stop, name in ranges:
        if start != reached:
            how = (
                "overlaps the tensor before it"
                if start < reached
                else f"leaves bytes {reached:,} to {start:,} to no tensor"
            )
            raise InputError(f"{source.name}: the tensor {name} starts at byte {start:,} and {how}")
        reached = stop
    if reached != room:
        raise InputError(f"{source.name}: {room:,} bytes of data, {reached:,} of them belong to tensors")
    return found, metadata


def _tensor(name, row, room, where):
    """(Tensor, its first byte)."""
    if len(name) > MOST_NAME or not name.isprintable():
        raise InputError(
            f"{where}: a tensor is called {name[:40]!r}...; allowed: up to {MOST_NAME} printable characters"
        )
    row = row if isinstance(row, dict) else {}
    dtype, shape, offsets = row.get("dtype"), row.get("shape"), row.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise InputError(f"{where}: {name}: dtype = {str(dtype)[:40]!r}; allowed: {', '.join(BITS)}")
    if not _sizes(shape) or len(shape) > MOST_AXES:
        raise InputError(f"{where}: {name}: shape = {str(shape)[:80]}; allowed: up to {MOST_AXES} sizes of at least 0")
    if not _sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise InputError(
            f"{where}: {name}: data_offsets = {str(offsets)[:80]}; allowed: first byte and byte behind the last"
        )
    start, stop = offsets
    if stop > room:
        raise InputError(
            f"{where}: {name}: data_offsets = [{start}, {stop}] lie beyond the {room:,} bytes of data: "
            "the file is cut off or its header lies"
        )
    made = Tensor(name, dtype, tuple(shape), stop - start, where)
    if made.elements * BITS[dtype] != 8 * made.size:
        raise InputError(
            f"{where}: {name}: {dtype} of shape {shape} has no {made.size:,} bytes, which its data_offsets give"
        )
    return made, start


def _sizes(value):
    return isinstance(value, list) and all(type(each) is int and 0 <= each < 2**63 for each in value)


def parsed(text, where):
    """The JSON object in some bytes. A key that occurs twice is refused: readers differ in which one they take."""

    def pairs(items):
        found = dict(items)
        if len(found) != len(items):
            seen = set()
            twice = next(key for key, _ in items if key in seen or seen.add(key))
            raise ValueError(f"the key {twice[:200]!r} occurs twice")
        return found

    try:
        data = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{where}: holds a {type(data).__name__}; allowed: an object")
    return data
