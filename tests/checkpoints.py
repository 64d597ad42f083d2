"""Checkpoint files for tests: headers as given, with data that nobody reads (a hole in the file)."""

import json
import math
import struct

from lmcalc.headers.gguf import SCALARS, TYPES
from lmcalc.units import BITS

CODES = {name: (code, values, size) for code, (name, values, size) in TYPES.items()}


def safetensors(path, tensors, metadata=None):
    """A file of {name: (dtype, shape)}."""
    table, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape) in tensors.items():
        size = math.prod(shape) * BITS[dtype] // 8
        table[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    return raw(path, table, at)


def raw(path, table, size):
    """A file of a header as given (an object, or its bytes), and `size` bytes of data."""
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + size)
    return path


def table(path):
    """{name: (dtype, shape)} of a safetensors file."""
    data = path.read_bytes()
    rows = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return {name: (row["dtype"], row["shape"]) for name, row in rows.items() if name != "__metadata__"}


def gguf(path, metadata, tensors, order="<", version=3, alignment=32, **counts):
    """A GGUF file of {key: (kind, value)} and {name: (type, shape, outermost first)}; counts: lies about how many."""

    def text(value):
        return struct.pack(order + "Q", len(value.encode())) + value.encode()

    def value(kind, given):
        if isinstance(kind, tuple):  # an array
            inside = b"".join(value(kind[0], each) for each in given)
            return struct.pack(order + "IQ", kind[0], len(given)) + inside
        return text(given) if kind == 8 else struct.pack(order + SCALARS[kind], given)

    head = b"GGUF" + struct.pack(
        order + "IQQ", version, counts.get("n_tensors", len(tensors)), counts.get("n_values", len(metadata))
    )
    for key, (kind, given) in metadata.items():
        head += text(key) + struct.pack(order + "I", 9 if isinstance(kind, tuple) else kind) + value(kind, given)
    at = 0
    for name, (dtype, shape) in tensors.items():
        code, values, size = CODES[dtype]
        head += text(name) + struct.pack(order + "I", len(shape)) + struct.pack(f"{order}{len(shape)}Q", *shape[::-1])
        head += struct.pack(order + "IQ", code, at)
        at += -(-(math.prod(shape) // values * size) // alignment) * alignment
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(-(-len(head) // alignment) * alignment + at)
    return path


def kinds(**metadata):
    """{key: (kind, value)} of a GGUF file from {key: value}; __ stands for a dot."""
    found = {}
    for key, value in metadata.items():
        kind = (
            8 if isinstance(value, str) else 6 if isinstance(value, float) else (8,) if isinstance(value, list) else 4
        )
        found[key.replace("__", ".")] = kind, value
    return found
