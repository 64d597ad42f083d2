"""A norm whose output goes through a gate that it makes itself (A.X K2)."""

from .base import Component


class GatedNorm(Component):
    """y sigmoid(up(silu(down(y)))) with y = norm(x): a gate of low rank Y on each entry."""

    d_model: int
    rank: int
    norm: Component

    part, contraction_part = "norms", ("norms", "norms")

    def weights(self):
        return {"down": "D->Y", "up": "Y->O"}

    def axes(self):
        return {"D": self.d_model, "Y": self.rank, "O": self.d_model}

    def forward(self, ops, p, x):
        with ops.fused("gated_norm"):
            y = p.norm(x)
            low = ops.apply("silu", ops.einsum("BTD,DY->BTY", y, p.down))
            gate = ops.rename(ops.einsum("BTY,YO->BTO", low, p.up), "BTD")
            return ops.multiply(y, ops.apply("sigmoid", gate))


def gated(fields, norms):
    """The norms of a block, {name: norm}, with the gates that a card gives them."""
    rank, ffn = fields.get("norm_gate_rank"), fields.get("ffn_norm_gate", False)
    if rank is None:
        if ffn:
            fields.refuse("ffn_norm_gate", ffn, "false without norm_gate_rank")
        return norms
    names = {"attention_norm", "mixer_norm"} | ({"ffn_norm"} if ffn else set())
    return {
        name: GatedNorm(fields["d_model"], rank, norm) if name in names else norm for name, norm in norms.items()
    }  # fmt: skip
