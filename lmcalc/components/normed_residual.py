"""A block whose residual stream is what its norms make."""

from . import norm
from .blocks import BRANCHES, SerialBlock


class NormedResidualBlock(SerialBlock):
    """For one branch after the other, x = norm(x), x = a x + b branch(x) (MiniMax-01 2025, sec. 2; DeepNorm's factors).

    factors: (a, b) of each branch.
    """

    factors: tuple = ((1.0, 1.0), (1.0, 1.0))

    def forward(self, ops, p, x, **shared):
        names = [name for name in BRANCHES if getattr(self, name) is not None]
        x = self.normed(p, f"{names[0]}_norm", x)
        for name, (a, b), following in zip(names, self.factors, [*names[1:], None]):
            out = getattr(p, name)(x, **(shared if name == "attention" else {}))
            with ops.fused(f"{name}_residual"):
                x = ops.add(ops.scale(x, a), ops.scale(out, b))
                if following is not None:
                    x = self.normed(p, f"{following}_norm", x)
        return x


def normed_residual(fields, branches):
    """The block that a card describes."""
    given = fields.get("residual_factors", [1.0] * (2 * len(branches)))
    if len(given) != 2 * len(branches) or not all(isinstance(each, int | float) and each > 0 for each in given):
        fields.refuse(
            "residual_factors", given, f"{2 * len(branches)} numbers above 0: of residual and branch, in turn"
        )
    if fields.get("norm_placement", "pre") != "pre":
        fields.refuse("norm_placement", fields.get("norm_placement"), "pre with block = 'normed_residual'")
    if "cross_attention" in branches:
        fields.refuse("block", "normed_residual", "serial in a decoder that attends to an encoder")
    norms = {f"{name}_norm": norm(fields, fields["d_model"]) for name in branches}
    return NormedResidualBlock(**branches, **norms, factors=tuple(zip(given[::2], given[1::2])))
