"""Normalizations of the last axis."""

from .base import Component


class RMSNorm(Component):
    """x / rms(x) * weight, without mean and bias (Zhang and Sennrich 2019, eq. 4).

    axis: axes of the weight, `width` their size (a tuple for several); the mean goes over the last `over` axes of x.
    """

    width: int
    eps: float = 1e-5
    axis: str = "D"
    over: int = 1

    part, flop_class = "norms", "normalization"

    def weights(self):
        return {"weight": self.axis}

    def axes(self):
        return dict(zip(self.axis, self.width if isinstance(self.width, tuple) else (self.width,)))

    def forward(self, ops, p, x):
        return ops.norm("rms_norm", x, p.weight, over=self.over, eps=self.eps)


class RMSNormPlusOne(RMSNorm):
    """RMSNorm whose gain is 1 + weight, so that weights start at zero (Gemma)."""

    def forward(self, ops, p, x):
        with ops.fused("norm"):
            return ops.norm("rms_norm", x, ops.apply("shift", p.weight, by=1.0), over=self.over, eps=self.eps)


class RMSNormPlain(RMSNorm):
    """RMSNorm without a weight (nanochat)."""

    def weights(self):
        return {}

    def forward(self, ops, p, x):
        return ops.norm("l2_norm", x, over=self.over, eps=self.eps)


class LayerNorm(RMSNorm):
    """(x - mean) / std * weight + bias (Ba et al. 2016, eq. 4)."""

    def weights(self):
        return {"weight": self.axis, "bias": self.axis}

    def forward(self, ops, p, x):
        return ops.norm("layer_norm", x, p.weight, p.bias, over=self.over, eps=self.eps)


class LayerNormNoBias(RMSNorm):
    """LayerNorm that keeps the gain and drops the bias (Cohere, MPT)."""

    def forward(self, ops, p, x):
        return ops.norm("layer_norm_no_bias", x, p.weight, over=self.over, eps=self.eps)


class LayerNormPlain(RMSNorm):
    """LayerNorm without parameters (Groeneveld et al. 2024, OLMo, sec. 2.1)."""

    def weights(self):
        return {}

    def forward(self, ops, p, x):
        return ops.norm("layer_norm_plain", x, over=self.over, eps=self.eps)


class LayerNormPlusOne(LayerNorm):
    """LayerNorm whose gain is 1 + weight (Nemotron)."""

    def forward(self, ops, p, x):
        with ops.fused("norm"):
            return ops.norm("layer_norm", x, ops.apply("shift", p.weight, by=1.0), p.bias, over=self.over, eps=self.eps)


class Affine(LayerNorm):
    """x * weight + bias in place of a norm (Sun et al. 2020, MobileBERT, sec. 3.5: NoNorm)."""

    def forward(self, ops, p, x):
        with ops.fused("norm"):
            return ops.add(ops.multiply(x, p.weight), p.bias)


class L2Norm(Component):
    """x / rms(x) without a weight: queries and keys of Llama 4."""

    eps: float = 1e-5

    part, flop_class = "norms", "normalization"

    def forward(self, ops, p, x):
        return ops.norm("l2_norm", x, eps=self.eps)
