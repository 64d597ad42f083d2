"""Rotary positions: angles on queries and keys."""

from .base import Component


class Rotary(Component):
    """Queries and keys turned by angles that grow with their position (Su et al. 2021, eq. 34).

    size: how many entries of a head are turned, the first ones. interleaved: pairs are neighbours (GPT-J) instead of
    halves (GPT-NeoX). scaling: None, or a table that rescales the frequencies (see rope_scaling.py). backward: angles
    are negative (nanochat), which is another place for the same entries: weights made for one do not fit the other.
    last: the last entries of a head are turned (DeepSeek V4).
    """

    size: int
    base: float = 10000.0
    interleaved: bool = False
    scaling: dict = None
    backward: bool = False
    last: bool = False

    def frequencies(self, np, length):
        """(angle per position of each pair, factor on cos and sin) in a call that ends at `length` tokens."""
        frequencies = self.base ** -(np.arange(0, self.size, 2, dtype=np.float64) / self.size)
        if self.scaling is None:
            return frequencies, 1.0
        from .rope_scaling import SCALINGS

        return SCALINGS[self.scaling["kind"]].apply(np, self, frequencies, self.scaling, length)

    def values(self, ops, axes):
        """cos and sin for the new tokens, shaped to broadcast against `axes` (T first of those they have)."""
        np = ops.data.np
        frequencies, factor = self.frequencies(np, ops.past + ops.new)
        axis, positions = self.positions(ops)
        angles = positions.astype(np.float64)[:, None] * frequencies
        shape = [1] * (len(axes) - 1) + [self.size // 2]
        shape[axes.index(axis)] = len(positions)
        way = -factor if self.backward else factor
        return (np.cos(angles) * factor).reshape(shape), (np.sin(angles) * way).reshape(shape)

    def positions(self, ops):
        """(axis, position of each of its places)."""
        return "T", ops.data.np.arange(ops.past, ops.past + ops.new)

    def forward(self, ops, p, x):
        return ops.rotate(x, self)


def rotary(fields, head_dim):
    """The rotary positions that a card describes."""
    size, field = fields.get("rotary_dim"), "rotary_dim"
    if size is None:
        size, field = head_dim, "head_dim"
    elif isinstance(size, int) and isinstance(head_dim, int) and size > head_dim:
        fields.refuse("rotary_dim", size, f"at most head_dim = {head_dim}")
    if isinstance(size, int) and size % 2:
        fields.refuse(field, size, "an even number, since rotary positions turn pairs")
    scaling = fields.get("rope_scaling")
    if scaling is not None:
        from .rope_scaling import checked

        scaling = checked(fields, scaling, size)
    interleaved = fields.get("rope_layout", "half") == "interleaved"
    return Rotary(size, fields.get("rope_base", 10000.0), interleaved, scaling, fields.get("rope_backward", False))
