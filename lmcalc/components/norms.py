"""Normalizations of the last axis."""

from .base import Component


class RMSNorm(Component):
    """x / rms(x) * weight, without mean and bias (Zhang and Sennrich 2019, eq. 4)."""

    width: int
    eps: float = 1e-5
    axis: str = "D"

    part, flop_class = "norms", "normalization"

    def weights(self):
        return {"weight": self.axis}

    def axes(self):
        return {self.axis: self.width}

    def forward(self, ops, p, x):
        return ops.norm("rms_norm", x, p.weight, eps=self.eps)


class RMSNormPlusOne(RMSNorm):
    """RMSNorm whose gain is 1 + weight, so that weights start at zero (Gemma)."""

    def forward(self, ops, p, x):
        with ops.fused("norm"):
            return ops.norm("rms_norm", x, ops.apply("shift", p.weight, by=1.0), eps=self.eps)


class LayerNorm(RMSNorm):
    """(x - mean) / std * weight + bias (Ba et al. 2016, eq. 4)."""

    def weights(self):
        return {"weight": self.axis, "bias": self.axis}

    def forward(self, ops, p, x):
        return ops.norm("layer_norm", x, p.weight, p.bias, eps=self.eps)
