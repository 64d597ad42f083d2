"""RWKV-5 (Eagle): RWKV's time mix with heads, whose state is a matrix (Peng et al. 2024)."""

from .base import Component
from .norms import LayerNorm
from .rwkv import shifted


class MatrixTimeMix(Component):
    """Time mix of N heads with a state of H x U numbers each (Peng et al. 2024, sec. 3, Eagle; RWKV 5.2).

        y = r (state + first * k v^T);  state = decay * state + k v^T,   out(norm(y) silu(gate))

    decay = exp(-exp(w)), a number for each channel of a key; the norm goes over a head. Token by token, as the
    published kernel has it.
    """

    d_model: int
    heads: int
    head_dim: int
    norm: Component

    part, contraction_part = "mixer", ("mixer_proj", "mixer_core")

    def weights(self):
        return {"mix_k": "D", "mix_v": "D", "mix_r": "D", "mix_gate": "D", "k": "D->NH", "v": "D->NU", "r": "D->NH",
                "gate": "D->NU", "decay": "NH", "first": "NH", "out": "NU->D"}  # fmt: skip

    def axes(self):
        return {"D": self.d_model, "N": self.heads, "H": self.head_dim, "U": self.head_dim}

    def forward(self, ops, p, x):
        k, v, r, gate = shifted(ops, p, x, ("k", "v", "r", "gate"))
        k, r = ops.einsum("BTD,DNH->BTNH", k, p.k), ops.einsum("BTD,DNH->BTNH", r, p.r)
        v, gate = ops.einsum("BTD,DNU->BTNU", v, p.v), ops.einsum("BTD,DNU->BTNU", gate, p.gate)
        with ops.fused("wkv"):
            fade, first = ops.apply("exp", ops.scale(ops.apply("exp", p.decay), -1.0)), p.first
            start = ops.hold("state", "NHU", (self.heads, self.head_dim, self.head_dim))
            (y,), (end,) = ops.scan("tokens", [k, v, r], [start], lambda *given: step(ops, fade, first, *given))
            ops.write("state", end)
        with ops.fused("gated_norm"):
            y = ops.multiply(p.norm(y), ops.apply("silu", gate))
        return ops.einsum("BTNU,NUD->BTD", y, p.out)


def step(ops, fade, first, slices, carried):
    """One token: it is read with the weight `first`, and joins the state without."""
    (k, v, r), (state,) = slices, carried
    new = ops.einsum("BNH,BNU->BNHU", k, v)
    seen = ops.add(ops.multiply(new, first), state)
    return [ops.einsum("BNH,BNHU->BNU", r, seen, name="read")], [ops.add(ops.multiply(state, fade), new)]


def eagle(fields, causal=True):
    """The time mix that a card describes."""
    heads, head_dim = fields["n_mixer_heads"], fields["mixer_head_dim"]
    norm = LayerNorm((heads, head_dim), fields.get("mixer_norm_eps", fields.get("norm_eps", 1e-5)), "NU")
    return MatrixTimeMix(fields["d_model"], heads, head_dim, norm)
