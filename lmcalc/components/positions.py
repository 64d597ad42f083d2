"""How positions enter: rotary angles on queries and keys, or a learned table."""

import math

from .base import Component


class Rotary(Component):
    """Queries and keys turned by angles that grow with their position (Su et al. 2021, eq. 34).

    size: how many entries of a head are turned. interleaved: pairs are neighbours (GPT-J) instead of halves (NeoX).
    scaling: None or a table; kind "llama3" stretches the low frequencies (Llama 3.1).
    """

    size: int
    base: float = 10000.0
    interleaved: bool = False
    scaling: dict = None

    def frequencies(self, np):
        """Angle per position of each pair: (size / 2,)."""
        frequencies = self.base ** -(np.arange(0, self.size, 2, dtype=np.float64) / self.size)
        if self.scaling is not None:
            frequencies = SCALINGS[self.scaling["kind"]](np, frequencies, self.scaling)
        return frequencies

    def values(self, ops, axes):
        """cos and sin for the new tokens, shaped to broadcast against `axes` (T first of those they have)."""
        np = ops.data.np
        positions = np.arange(ops.past, ops.past + ops.new, dtype=np.float64)
        angles = positions[:, None] * self.frequencies(np)
        shape = [1] * (len(axes) - 1) + [self.size // 2]
        shape[axes.index("T")] = ops.new
        return np.cos(angles).reshape(shape), np.sin(angles).reshape(shape)

    def forward(self, ops, p, x):
        return ops.rotate(x, self)


def _llama3(np, frequencies, scaling):
    """Wavelengths beyond the original context are stretched by `factor`, short ones kept, between them a ramp."""
    turns = scaling["original_max_positions"] * frequencies / (2 * math.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    keep = np.clip((turns - low) / (high - low), 0, 1)
    return frequencies * (keep + (1 - keep) / scaling["factor"])


SCALINGS = {"llama3": _llama3}
SCALING_FIELDS = {"llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_positions")}


class LearnedPositions(Component):
    """A learned vector for each position, added to the embeddings (Gehring et al. 2017; GPT-2)."""

    d_model: int
    max_positions: int

    part = "position_embedding"

    def weights(self):
        return {"table": "J|D"}

    def axes(self):
        return {"J": self.max_positions, "D": self.d_model}

    def forward(self, ops, p, x):
        return ops.add(x, ops.rows(p.table, "T", ops.past, ops.new))


def rotary(fields, head_dim):
    """The rotary positions that a card describes, or None."""
    if fields.get("positions", "rotary") != "rotary":
        return None
    size = head_dim
    if isinstance(size, int) and size % 2:
        fields.refuse("head_dim", size, "an even number, since rotary positions turn pairs")
    return Rotary(size, fields.get("rope_base", 10000.0), False, _scaling(fields))


def _scaling(fields):
    table = fields.get("rope_scaling")
    if table is None:
        return None
    kind = table.get("kind")
    if kind not in SCALINGS:
        fields.refuse("rope_scaling.kind", kind, "one of " + ", ".join(SCALINGS))
    needed = SCALING_FIELDS[kind]
    for name in {**dict.fromkeys(needed), **table}:
        value = table.get(name)
        if name == "kind":
            continue
        if name not in needed:
            fields.refuse(f"rope_scaling.{name}", value, "only kind, " + ", ".join(needed))
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            fields.refuse(f"rope_scaling.{name}", value, "a number above 0")
    return dict(table)
