"""Lightning attention: linear attention in blocks, with a fixed decay a head."""

from .base import Component
from .norms import RMSNorm


class Lightning(Component):
    """Lightning attention (Qin et al. 2024, alg. 1; MiniMax-01 2025, sec. 2.2), a state of H x U numbers a head.

        h = exp(-s) h + k v^T,   y = q h,   out(sigmoid(gate) norm(y))

    with silu on queries, keys and values. The slope s of a head is fixed, as in ALiBi, and smaller in later layers.
    """

    d_model: int
    heads: int
    head_dim: int
    n_layers: int
    norm: Component
    chunk: int = 256
    activation: str = "silu"

    part, contraction_part = "mixer", ("mixer_proj", "mixer_core")

    def weights(self):
        return {"q": "D->NH", "k": "D->NH", "v": "D->NU", "gate": "D->NU", "out": "NU->D"}

    def axes(self):
        return {"D": self.d_model, "N": self.heads, "H": self.head_dim, "U": self.head_dim}

    def forward(self, ops, p, x):
        with ops.projections(x):
            q, k = ops.einsum("BTD,DNH->BTNH", x, p.q), ops.einsum("BTD,DNH->BTNH", x, p.k)
            v, gate = ops.einsum("BTD,DNU->BTNU", x, p.v), ops.einsum("BTD,DNU->BTNU", x, p.gate)
        with ops.fused("core"):
            q, k, v = (ops.apply(self.activation, each) for each in (q, k, v))
            start = ops.hold("state", "NHU", (self.heads, self.head_dim, self.head_dim))
            body, chunk = (self.step, None) if ops.recurrent else (self.of_chunk, self.chunk)
            (y,), (end,) = ops.scan(
                "tokens", [q, k, v, self.decays(ops)], [start], lambda *given: body(ops, *given), chunk
            )
            ops.write("state", end)
        with ops.fused("gated_norm"):
            y = ops.multiply(p.norm(y), ops.apply("sigmoid", gate))
        return ops.einsum("BTNU,NUD->BTD", y, p.out)

    def decays(self, ops):
        """The log decay of each token and head, a table: the slopes of ALiBi, scaled by the layer's place."""
        values = None
        if ops.data is not None:
            np = ops.data.np
            factor = 1 - ops.layer_number / (self.n_layers - 1 + 1e-5) + 1e-5
            slopes = 2.0 ** (-8 / self.heads * np.arange(1, self.heads + 1)) * factor
            values = np.broadcast_to(-slopes, (ops.new, self.heads))
        return ops.table("TN", (ops.new, self.heads), values)

    def step(self, ops, slices, carried):
        """One token."""
        (q, k, v, decay), (state,) = slices, carried
        decay = self.table(ops, decay, lambda np, decay: np.exp(decay))
        state = ops.add(ops.multiply(state, decay), ops.einsum("BNH,BNU->BNHU", k, v))
        return [ops.einsum("BNHU,BNH->BNU", state, q)], [state]

    def of_chunk(self, ops, slices, carried):
        """A block of Q tokens: each sees those of the block by pairs, all before by the state."""
        from ..primitives import PRIMITIVES

        (q, k, v, decay), (state,) = slices, carried
        total = self.table(ops, decay, lambda np, decay: np.add.accumulate(decay))
        grown = self.table(ops, total, lambda np, total: np.exp(total))
        left = self.table(ops, total, lambda np, total: np.exp(total[-1:] - total))
        decay = self.table(ops, total, lambda np, total: np.exp(total[-1]), "N")
        between = self.table(ops, total, lambda np, total: PRIMITIVES["pair_decay"].kernel(np, total[None])[0], "NQS")
        pairs = ops.multiply(ops.einsum("BQNH,BSNH->BNQS", q, ops.rename(k, "BSNH"), name="pairs"), between)
        y = ops.add(ops.einsum("BQNH,BNHU->BQNU", ops.multiply(q, grown), state, name="before"),
                    ops.einsum("BNQS,BSNU->BQNU", pairs, ops.rename(v, "BSNU"), name="inside"))  # fmt: skip
        added = ops.einsum("BQNH,BQNU->BNHU", ops.multiply(k, left), v, name="added")
        return [y], [ops.add(ops.multiply(state, decay), added)]

    def table(self, ops, x, values, axes=None):
        """A table that is made from another."""
        axes = axes or x.axes
        sizes = tuple(self.heads if axis == "N" else self.chunk for axis in axes)
        return ops.table(axes, sizes, None if ops.data is None else values(ops.data.np, x.data))


def lightning(fields, causal=True):
    """The lightning attention that a card describes."""
    heads, head_dim = fields["n_mixer_heads"], fields["mixer_head_dim"]
    norm = RMSNorm((heads, head_dim), fields.get("mixer_norm_eps", fields.get("norm_eps", 1e-5)), "NU", 2)
    return Lightning(fields["d_model"], heads, head_dim, fields["n_layers"], norm, fields.get("chunk_size", 256),
                     fields.get("mixer_activation", "silu"))  # fmt: skip
