"""Gated short convolution: a mixer that sees a few tokens and no more."""

from .base import Component


class ShortConv(Component):
    """out(C conv(B x)): a depthwise convolution between two gates, all three from the input (LFM2 2025, sec. 2).

    bias: "none", "in", "out" or "all".
    """

    d_model: int
    kernel: int = 3
    bias: str = "none"
    conv_bias: bool = False

    part, contraction_part = "mixer", ("mixer_proj", "mixer_core")

    def weights(self):
        found = {"b": "D->I", "c": "D->I", "x": "D->I", "conv": "J->I", "out": "I->D"}
        if self.conv_bias:
            found["conv_bias"] = "I"
        if self.bias in ("in", "all"):
            found |= {"b_bias": "I", "c_bias": "I", "x_bias": "I"}
        return found | ({"out_bias": "D"} if self.bias in ("out", "all") else {})

    def axes(self):
        return {"D": self.d_model, "I": self.d_model, "J": self.kernel}

    def forward(self, ops, p, x):
        with ops.fused("in"):  # one matrix
            b, c, x = (ops.linear("BTD,DI->BTI", x, getattr(p, name), p.get(f"{name}_bias")) for name in "bcx")
        with ops.fused("conv"):
            y = ops.convolve("conv_state", ops.multiply(b, x), p.conv, p.get("conv_bias"))
            y = ops.multiply(c, y)
        return ops.linear("BTI,ID->BTD", y, p.out, p.get("out_bias"))


def short_conv(fields, causal=True):
    """The short convolution that a card describes."""
    return ShortConv(fields["d_model"], fields.get("conv_kernel", 3), fields.get("mixer_bias", "none"),
                     fields.get("conv_bias", False))  # fmt: skip
