"""Positions of a whole stack: vectors added to the embeddings, or a bias on attention scores that its layers share.

What turns or biases within a layer is in rotary.py and relative.py.
"""

from .base import Component
from .embeddings import sum_width


class LearnedPositions(Component):
    """A learned vector for each position, added to the embeddings (Gehring et al. 2017; GPT-2).

    offset: rows of the table before that of the first position (OPT: 2).
    """

    d_model: int
    max_positions: int
    offset: int = 0
    axis: str = "D"

    part = "position_embedding"

    def weights(self):
        return {"table": f"J|{self.axis}"}

    def axes(self):
        return {"J": self.max_positions + self.offset, self.axis: self.d_model}

    def forward(self, ops, p, x):
        return ops.add(x, ops.rows(p.table, "T", ops.past + self.offset, ops.new))


class SinusoidalPositions(Component):
    """Sines and cosines of the position, added to the embeddings (Vaswani et al. 2017, sec. 3.5); the table is free.

    form: see `sinusoids`. offset: the number of the first position (XGLM: 2).
    """

    form: str = "turns"
    offset: int = 0

    def forward(self, ops, p, x):
        table = None
        if ops.data is not None:
            np, first = ops.data.np, ops.past + self.offset
            table = sinusoids(np, np.arange(first, first + ops.new), x.sizes[-1], self.form)
        return ops.apply("shift", x, by=table)


def sinusoids(np, positions, width, form="turns"):
    """sin(pos / 10000**(2i / width)) and its cosine: (positions, width).

    form: "turns": each sine before its cosine; "halves": all sines, then all cosines (CTRL, Marian); "tensor2tensor":
    the same with frequencies that end at 1/10000, and a zero at the end of an odd width (XGLM, M2M-100).
    """
    if form == "tensor2tensor":
        angles = positions[:, None] / 10000.0 ** (np.arange(width // 2) / (width // 2 - 1))
        return np.concatenate([np.sin(angles), np.cos(angles), np.zeros((len(positions), width % 2))], axis=1)
    places = np.arange(width)
    angles = positions[:, None] / 10000.0 ** ((places - places % 2) / width)
    found = np.where(places % 2 == 0, np.sin(angles), np.cos(angles))
    return found if form == "turns" else np.concatenate([found[:, ::2], found[:, 1::2]], axis=1)


OF_STACK = {"learned", "sinusoidal", "relative_bias", "disentangled"}  # words that concern a stack, not one layer


def stack_positions(fields, causal=True):
    """{name: component} of the positions that a stack has as a whole, as a card describes them."""
    how = fields.get("positions", "rotary")
    shared = {"own_position_bias", "position_buckets", "n_heads", "n_kv_heads"} if how == "relative_bias" else set()
    for kind, changes in (fields.get("kinds") or {}).items():
        if changes.get("positions", how) in OF_STACK - {how}:
            words = ", ".join(sorted(OF_STACK))
            fields.refuse(f"kinds.{kind}.positions", changes["positions"], f"not {words}, which belong to a stack")
        for name in sorted(shared & set(changes)):
            if changes[name] != fields.get(name):
                fields.refuse(f"kinds.{kind}.{name}", changes[name], "the same in all layers, which share one bias")
    found, too = {}, fields.get("position_table", False)
    if too and how in ("learned", "sinusoidal"):
        fields.refuse("position_table", too, f"false with positions = {how!r}")
    if how == "learned" or too:
        width, axis = sum_width(fields)
        found["positions"] = LearnedPositions(width, fields["max_positions"], fields.get("position_offset", 0), axis)
    if how == "sinusoidal":
        form = fields.get("sinusoid_form", "turns")
        if form == "tensor2tensor" and isinstance(fields["d_model"], int) and fields["d_model"] < 4:
            fields.refuse("d_model", fields["d_model"], "at least 4 with sinusoid_form = 'tensor2tensor'")
        return {"positions": SinusoidalPositions(form, fields.get("position_offset", 0))}
    if how == "disentangled":
        from .disentangled import distance_vectors

        found["position_bias"] = distance_vectors(fields)
    if how == "relative_bias" and not fields.get("own_position_bias", False):
        from .relative import PositionBias, buckets

        heads = fields["n_heads"]
        kv_heads = fields.get("n_kv_heads", heads)
        group = fields.divided("n_heads", heads, "n_kv_heads", kv_heads)
        found["position_bias"] = PositionBias(buckets(fields, causal).buckets, kv_heads, group)
    return found
