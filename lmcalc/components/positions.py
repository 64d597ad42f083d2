"""Positions of a whole stack: vectors added to the embeddings, or a bias on attention scores that its layers share.

What turns or biases within a layer is in rotary.py and relative.py.
"""

from .base import Component


class LearnedPositions(Component):
    """A learned vector for each position, added to the embeddings (Gehring et al. 2017; GPT-2).

    offset: rows of the table before that of the first position (OPT: 2).
    """

    d_model: int
    max_positions: int
    offset: int = 0

    part = "position_embedding"

    def weights(self):
        return {"table": "J|D"}

    def axes(self):
        return {"J": self.max_positions + self.offset, "D": self.d_model}

    def forward(self, ops, p, x):
        return ops.add(x, ops.rows(p.table, "T", ops.past + self.offset, ops.new))


class SinusoidalPositions(Component):
    """Sines and cosines of the position, added to the embeddings (Vaswani et al. 2017, sec. 3.5); the table is free."""

    def forward(self, ops, p, x):
        table = None
        if ops.data is not None:
            table = sinusoids(ops.data.np, ops.data.np.arange(ops.past, ops.past + ops.new), x.size("D"))
        return ops.apply("shift", x, by=table)


def sinusoids(np, positions, width):
    """sin(pos / 10000**(2i / width)) and its cosine in turns: (positions, width)."""
    places = np.arange(width)
    angles = positions[:, None] / 10000.0 ** ((places - places % 2) / width)
    return np.where(places % 2 == 0, np.sin(angles), np.cos(angles))


OF_STACK = {"learned", "sinusoidal", "relative_bias"}  # words of `positions` that concern a stack, not one layer


def stack_positions(fields, causal=True):
    """{name: component} of the positions that a stack has as a whole, as a card describes them."""
    how = fields.get("positions", "rotary")
    shared = {"position_buckets", "n_heads", "n_kv_heads"} if how == "relative_bias" else set()
    for kind, changes in (fields.get("kinds") or {}).items():
        if changes.get("positions", how) in OF_STACK - {how}:
            words = ", ".join(sorted(OF_STACK))
            fields.refuse(f"kinds.{kind}.positions", changes["positions"], f"not {words}, which belong to a stack")
        for name in sorted(shared & set(changes)):
            if changes[name] != fields.get(name):
                fields.refuse(f"kinds.{kind}.{name}", changes[name], "the same in all layers, which share one bias")
    if how == "learned":
        table = LearnedPositions(fields["d_model"], fields["max_positions"], fields.get("position_offset", 0))
        return {"positions": table}
    if how == "sinusoidal":
        return {"positions": SinusoidalPositions()}
    if how == "relative_bias":
        from .relative import PositionBias, buckets

        heads = fields["n_heads"]
        kv_heads = fields.get("n_kv_heads", heads)
        group = fields.divided("n_heads", heads, "n_kv_heads", kv_heads)
        return {"position_bias": PositionBias(buckets(fields, causal).buckets, kv_heads, group)}
    return {}
