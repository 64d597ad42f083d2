"""A gated feed-forward with factors on its gate and on its output (Falcon-H1)."""

from .feed_forward import GatedFeedForward


class ScaledFeedForward(GatedFeedForward):
    """out down(activation(in gate(x)) * up(x)): multipliers of muP (Falcon-H1 2025, sec. 3)."""

    gate_scale: float = 1.0
    out_scale: float = 1.0

    def forward(self, ops, p, x):
        with ops.fused("out_scale"):
            return ops.scale(GatedFeedForward.forward(self, ops, p, x), self.out_scale)

    def gated(self, ops, gate, up):
        return GatedFeedForward.gated(self, ops, ops.scale(gate, self.gate_scale), up)


def scaled(fields, plain):
    """That feed-forward with the factors that a card gives."""
    given = fields["ffn_scales"]
    if len(given) != 2 or not all(isinstance(each, int | float) and each > 0 for each in given):
        fields.refuse("ffn_scales", given, "2 numbers above 0")
    if type(plain) is not GatedFeedForward:
        fields.refuse("ffn_scales", given, f"none with ffn = {fields.get('ffn')!r}, which has no plain gate")
    return ScaledFeedForward(**plain.__dict__, gate_scale=given[0], out_scale=given[1])
