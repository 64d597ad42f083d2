"""Multi-matrix factorized attention: many wide query heads from a low rank, one key/value head."""

from . import norm
from .attention import Attention, softmax_attention
from .base import Component


class FactorizedAttention(Attention):
    """Attention whose queries come from a normed latent of Q numbers (Hu et al. 2024, MFA; Step-3 2025, sec. 3).

    Step-3: 64 query heads of 256 from a latent of 2,048, on one key/value head.
    """

    q_latent: int = None
    latent_norm: Component = None

    def weights(self):
        return {"q_down": "D->Q"} | Attention.weights(self) | {"q": "Q->KRH"}

    def axes(self):
        return Attention.axes(self) | {"Q": self.q_latent}

    def project(self, ops, p, x):
        u = self.value_axis
        with ops.projections(x):
            latent = ops.einsum("BTD,DQ->BTQ", x, p.q_down)
            k = ops.linear("BTD,DKH->BTKH", x, p.k, p.get("k_bias"))
            v = ops.linear(f"BTD,DK{u}->BTK{u}", x, p.v, p.get("v_bias"))
        latent = p.latent_norm(latent)
        return ops.linear("BTQ,QKRH->BTKRH", latent, p.q, p.get("q_bias")), k, v


def factorized(fields):
    """The factorized attention that a card describes."""
    width = fields["q_latent_dim"]
    if fields.get("v_from_k", False):
        fields.refuse("v_from_k", True, "false with q_latent_dim")
    return softmax_attention(fields, kind=FactorizedAttention, q_latent=width, latent_norm=norm(fields, width, "Q"))
