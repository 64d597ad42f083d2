"""How attention and feed-forward are put together in a layer."""

from .base import Component


class PreNormBlock(Component):
    """x + attention(norm(x)), then x + ffn(norm(x)): norms inside the residual branch (Xiong et al. 2020)."""

    attention_norm: Component
    attention: Component
    ffn_norm: Component
    ffn: Component

    def forward(self, ops, p, x):
        mixed = p.attention(p.attention_norm(x))
        with ops.fused("residual_norm"):
            x = ops.add(x, mixed)
            normed = p.ffn_norm(x)
        return ops.add(x, p.ffn(normed))
