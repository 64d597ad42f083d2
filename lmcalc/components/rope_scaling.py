"""Rotary frequencies rescaled for longer contexts, each kind as transformers 5.24 computes it (modeling_rope_utils.py).

`rope_scaling` on a card is a table: `kind`, and the keys of that kind. Below f are the frequencies of the pairs, r is
the number of entries that are turned, L the context before it was extended.
"""

import math

from ..fields import MOST
from ..record import Frozen


class Scaling(Frozen):
    """One kind. keys: {name: (needed, kind of value)}. apply(np, rotary, f, table, length): (f, factor on cos, sin)."""

    keys: dict
    apply: object


def linear(np, rotary, f, table, length):
    """Positions divided by `factor` (Chen et al. 2023, Position Interpolation, eq. 4)."""
    return f / table["factor"], 1.0


def dynamic(np, rotary, f, table, length):
    """A larger base in calls that end beyond L tokens ("dynamic NTK"); cached keys keep the turn of their own call."""
    r, factor, most = rotary.size, table["factor"], table["original_max_positions"]
    stretch = factor * max(length, most) / most - (factor - 1)
    base = rotary.base * stretch ** (r / (r - 2))
    return base ** -(np.arange(0, r, 2, dtype=np.float64) / r), 1.0


def llama3(np, rotary, f, table, length):
    """Wavelengths beyond L / low stretched by `factor`, those below L / high kept, between them a ramp (Llama 3.1)."""
    turns = table["original_max_positions"] * f / (2 * math.pi)
    low, high = table["low_freq_factor"], table["high_freq_factor"]
    keep = np.clip((turns - low) / (high - low), 0, 1) if low < high else np.where(turns > high, 1.0, 0.0)
    return f * (keep + (1 - keep) / table["factor"]), 1.0


def yarn(np, rotary, f, table, length):
    """Pairs with few turns over L stretched by `factor`, those with many kept, between them a ramp (Peng et al. 2023).

    cos and sin grow by 0.1 ln(factor) + 1 (YaRN, eq. 22), or as `mscale` and `mscale_all_dim` say (DeepSeek V2).
    """
    r, factor = rotary.size, table["factor"]

    def pair(turns):  # the pair that turns so often over L tokens
        return r * math.log(table["original_max_positions"] / (turns * 2 * math.pi)) / (2 * math.log(rotary.base))

    low, high = pair(table.get("beta_fast", 32)), pair(table.get("beta_slow", 1))
    if table.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, r - 1)
    high += 0.001 if low == high else 0
    ramp = np.clip((np.arange(r // 2) - low) / (high - low), 0, 1)
    return f / factor * ramp + f * (1 - ramp), _yarn_factor(factor, table)


def _yarn_factor(factor, table):
    def grown(by):
        return 0.1 * by * math.log(factor) + 1.0 if factor > 1 else 1.0

    if "attention_factor" in table:
        return table["attention_factor"]
    if table.get("mscale") and table.get("mscale_all_dim"):
        return grown(table["mscale"]) / grown(table["mscale_all_dim"])
    return grown(1)


def longrope(np, rotary, f, table, length):
    """Each frequency divided by its own factor: the long ones in calls that end beyond L tokens (Ding et al. 2024)."""
    most, factor = table["original_max_positions"], table["factor"]
    if "attention_factor" in table:
        growth = table["attention_factor"]
    else:
        growth = math.sqrt(1 + math.log(factor) / math.log(most)) if factor > 1 else 1.0
    return f / np.array(table["long_factor" if length > most else "short_factor"]), growth


def longrope_mscale(np, rotary, f, table, length):
    """Each frequency divided by its short factor; cos and sin grow by one number within L tokens, by another beyond.

    Phi-3.5-MoE as transformers 5.24 computes it, which takes the short factors for long contexts, too.
    """
    growth = table["long_mscale" if length > table["original_max_positions"] else "short_mscale"]
    return f / np.array(table["short_factor"]), growth


def proportional(np, rotary, f, table, length):
    """Of the pairs of a whole head only the first turn, `turned` entries (Gemma 4)."""
    return np.where(np.arange(rotary.size // 2) < table["turned"] // 2, f, 0.0) / table.get("factor", 1.0), 1.0


_FACTOR = {"factor": (True, "number")}
_LENGTH = {"original_max_positions": (True, "number")}
SCALINGS = {
    "linear": Scaling(_FACTOR, linear),
    "dynamic": Scaling(_FACTOR | _LENGTH, dynamic),
    "llama3": Scaling(
        _FACTOR | _LENGTH | {"low_freq_factor": (True, "number"), "high_freq_factor": (True, "number")}, llama3
    ),
    "yarn": Scaling(
        _FACTOR
        | _LENGTH
        | dict.fromkeys(("beta_fast", "beta_slow", "mscale", "mscale_all_dim", "attention_factor"), (False, "number"))
        | {"truncate": (False, "bool")},
        yarn,
    ),
    "longrope": Scaling(
        _FACTOR
        | _LENGTH
        | {"attention_factor": (False, "number"), "long_factor": (True, "list"), "short_factor": (True, "list")},
        longrope,
    ),
    "longrope_mscale": Scaling(
        _LENGTH
        | {"short_mscale": (True, "number"), "long_mscale": (True, "number")}
        | {"short_factor": (True, "list"), "long_factor": (False, "list")},
        longrope_mscale,
    ),
    "proportional": Scaling({"turned": (True, "number"), "factor": (False, "number")}, proportional),
}


def checked(fields, table, size):
    """The table of a card, `max_positions` filled in where it matters, if it has the keys of its kind and no others."""
    kind = table.get("kind")
    if kind not in SCALINGS:
        fields.refuse("rope_scaling.kind", kind, "one of " + ", ".join(SCALINGS))
    keys, table = SCALINGS[kind].keys, dict(table)
    most = fields.get("max_positions")
    if "original_max_positions" in keys and kind == "dynamic":
        table.setdefault("original_max_positions", most)
    if kind == "longrope" and most is not None and _number(table.get("original_max_positions")):
        table.setdefault("factor", most / table["original_max_positions"])
    for name in table:
        if name not in keys and name != "kind":
            fields.refuse(f"rope_scaling.{name}", table[name], f"only kind, {', '.join(keys)} with kind {kind}")
    for name, (needed, what) in keys.items():
        if needed or name in table:
            _check(fields, name, table.get(name), what, size)
    if kind == "dynamic" and size == 2:
        fields.refuse("rope_scaling.kind", kind, "any other, since this one needs more than one pair that is turned")
    if kind == "llama3" and table["low_freq_factor"] > table["high_freq_factor"]:
        fields.refuse("rope_scaling.low_freq_factor", table["low_freq_factor"], "at most high_freq_factor")
    return table


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= MOST


def _check(fields, name, value, what, size):
    if what == "number" and not _number(value):
        fields.refuse(f"rope_scaling.{name}", value, "a number above 0, of up to 2**40")
    if what == "bool" and not isinstance(value, bool):
        fields.refuse(f"rope_scaling.{name}", value, "true or false")
    if what == "list":
        pairs = size // 2 if isinstance(size, int) else None
        good = isinstance(value, (list, tuple)) and all(map(_number, value)) and pairs in (None, len(value))
        if not good:
            fields.refuse(f"rope_scaling.{name}", value, f"{pairs} numbers above 0, one for each pair that is turned")
