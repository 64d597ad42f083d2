"""Shortcut-connected experts: a layer of two attentions and two feed-forwards, beside whose second half experts run."""

from . import norm
from .base import Component


class ShortcutBlock(Component):
    """Attention, feed-forward, attention, feed-forward; experts on the input of the first feed-forward join at the end.

    So that the exchange of tokens between machines overlaps with the other half (Cai et al. 2024, ScMoE; LongCat-Flash
    2025, sec. 2.2). A layer has two caches.
    """

    attention_0: Component
    ffn_0: Component
    experts: Component
    attention_1: Component
    ffn_1: Component
    attention_norm_0: Component
    ffn_norm_0: Component
    attention_norm_1: Component
    ffn_norm_1: Component

    def forward(self, ops, p, x, **shared):
        mixed = p.attention_0(p.attention_norm_0(x), **shared)
        with ops.fused("attention_residual_0"):
            x = ops.add(x, mixed)
            normed = p.ffn_norm_0(x)
        beside, fed = p.experts(normed), p.ffn_0(normed)
        with ops.fused("ffn_residual_0"):
            x = ops.add(x, fed)
            normed = p.attention_norm_1(x)
        mixed = p.attention_1(normed, **shared)
        with ops.fused("attention_residual_1"):
            x = ops.add(x, mixed)
            normed = p.ffn_norm_1(x)
        fed = p.ffn_1(normed)
        with ops.fused("ffn_residual_1"):
            return ops.add(ops.add(x, fed), beside)


def shortcut(fields, branches):
    """The block that a card describes: n_layers counts pairs of attention and feed-forward as one layer."""
    from .feed_forward import feed_forward

    if set(branches) != {"attention", "ffn"} or not fields.get("n_experts", 0):
        fields.refuse("block", "shortcut", "serial for a layer without attention or without experts")
    if fields.get("norm_placement", "pre") != "pre":
        fields.refuse("norm_placement", fields.get("norm_placement"), "pre with block = 'shortcut'")
    attention, experts, dense, width = branches["attention"], branches["ffn"], feed_forward(fields), fields["d_model"]
    return ShortcutBlock(attention, dense, experts, attention, dense, *[norm(fields, width) for _ in range(4)])
