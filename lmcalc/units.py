"""Data types, and numbers for people. Inside lmcalc everything is FLOP, byte, second, element."""

from .errors import unknown

# Storage of a dtype: (bytes of a block, values in a block). Blocks run along the last axis of what they tile, for a
# matrix along its input axis. mxfp4: 32 fp4 values and one 8-bit scale (OCP Microscaling Formats v1.0, sec. 5.2);
# nvfp4: 16 fp4 values and one fp8 scale (the scale per tensor is not counted); q8_0, q4_0: llama.cpp block formats.
DTYPES = {
    "fp64": (8, 1),
    "fp32": (4, 1),
    "tf32": (4, 1),  # computed in 19 bits, stored in 32
    "bf16": (2, 1),
    "fp16": (2, 1),
    "fp8": (1, 1),
    "int8": (1, 1),
    "int4": (1, 2),
    "fp4": (1, 2),
    "mxfp8": (33, 32),
    "mxfp6": (25, 32),
    "mxfp4": (17, 32),
    "nvfp4": (9, 16),
    "q8_0": (34, 32),
    "q4_0": (18, 32),
    "int32": (4, 1),
    "int64": (8, 1),
    "bool": (1, 1),
}

STORED = "stored"  # as a dtype of weights: each as its checkpoint stores it

# Bits of a value in a checkpoint, by safetensors' names (github.com/huggingface/safetensors, Dtype)
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "I32": 32, "U32": 32, "I64": 64, "U64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}  # fmt: skip

ALIASES = {
    "float64": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "f32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "float8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}

VALUES = tuple(name for name in DTYPES if name not in ("int32", "int64", "bool"))  # what a weight or cache may be


def dtype(name, what="dtype"):
    """The canonical name of a dtype for values.

    >>> dtype("bfloat16")
    'bf16'
    """
    canonical = ALIASES.get(name, name) if isinstance(name, str) else name
    if not isinstance(canonical, str) or canonical not in VALUES:
        raise unknown(what, name, VALUES)
    return canonical


def si(number, unit=""):
    """A number with an SI prefix (k = 1000), three significant digits.

    >>> si(8_030_261_248), si(405.85e9, "B"), si(0.00123, "s"), si(0)
    ('8.03 G', '406 GB', '1.23 ms', '0 ')
    """
    if number == 0:
        return f"0 {unit}"
    size = abs(number)
    factor, prefix = next((each for each in _PREFIXES if size >= each[0] * 0.9995), _PREFIXES[-1])
    scaled = number / factor
    digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
    return f"{scaled:.{digits}f} {prefix}{unit}"


_PREFIXES = [
    (1e24, "Y"), (1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""),
    (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"),
]  # fmt: skip


# unit of a column by the end of its name; the first that fits
COLUMN_UNITS = {
    "tokens_per_s": "tokens/s", "_s": "s", "intensity": "FLOP/B", "ridge": "FLOP/B", "bytes_per_token": "B/token",
    "bytes_per_token_first": "B/token", "memory_needed": "B", "memory_available": "B", "memory": "B",
    "bandwidth": "B/s", "batch": "sequences", "prompt": "tokens", "past": "tokens", "context": "tokens",
}  # fmt: skip


def unit(name):
    """The unit of a column of numbers, "" where it has none: flops are FLOP, bytes are B, what ends in _s are seconds.

    >>> unit("decode_bound_s"), unit("prefill_bytes_cache_read"), unit("params_total")
    ('s', 'B', '')
    """
    for end, found in COLUMN_UNITS.items():
        if name.endswith(end):
            return found
    return "FLOP" if "flops" in name else "B" if "bytes" in name else ""
