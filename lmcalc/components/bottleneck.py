"""Layers that work in a narrower width than the residual stream has (MobileBERT)."""

from . import norm
from .attention import Attention, softmax_attention
from .base import Component
from .blocks import placement
from .embeddings import Projection
from .feed_forward import feed_forward


class Entry(Component):
    """norm(project(x)): from the residual stream to the width inside a layer."""

    project: Component
    norm: Component

    def forward(self, ops, p, x):
        x = p.project(x)
        with ops.fused("entry_norm"):
            return p.norm(ops.rename(x, "BTD"))


class Change(Projection):
    """A matrix between the widths inside and outside of a layer."""

    part, contraction_part = "ffn", ("ffn", "ffn")


class BottleneckAttention(Attention):
    """Attention in the narrow width, but for values, which are made from the residual stream itself."""

    outside: int = None

    def weights(self):
        return Attention.weights(self) | {"v": "X->KH"}

    def axes(self):
        return Attention.axes(self) | {"X": self.outside}

    def forward(self, ops, p, x, wide):
        """x (BTD, narrow) asks and is asked; `wide` (BTD) gives the values."""
        with ops.projections(x):
            q = ops.linear("BTD,DKRH->BTKRH", x, p.q, p.get("q_bias"))
            k = ops.linear("BTD,DKH->BTKH", x, p.k, p.get("k_bias"))
        v = ops.linear("BTX,XKH->BTKH", ops.rename(wide, "BTX"), p.v, p.get("v_bias"))
        with ops.fused("rotary_cache"):
            q, k, v = self.place(ops, p, q, k, v)
            k, v = self.remember(ops, k, v)
        with ops.fused("core"):
            mixed = self.mix(ops, p, q, k, v, self.mask(ops))
        return self.out(ops, p, mixed)


class BottleneckBlock(Component):
    """norm(x + leave(y)), y being what attention and several feed-forwards make of entry(x), each norm(y + branch(y))
    (Sun et al. 2020, sec. 3: bottlenecks and stacked feed-forwards).

    entry: of the residual stream inside; query_entry: of queries and keys. ffns: how many there are.
    """

    entry: Component
    query_entry: Component
    attention: Component
    attention_sum_norm: Component
    ffns: int
    ffn: Component
    ffn_sum_norm: Component
    leave: Component
    output_norm: Component

    def children(self):
        found = Component.children(self)
        for number in range(self.ffns - 1):
            found |= {f"ffn_{number}": self.ffn, f"ffn_{number}_sum_norm": self.ffn_sum_norm}
        return found

    def forward(self, ops, p, x):
        y = p.entry(x)
        mixed = p.attention(p.query_entry(x), x)
        with ops.fused("attention_residual"):
            y = p.attention_sum_norm(ops.add(y, mixed))
        for name in [*(f"ffn_{number}" for number in range(self.ffns - 1)), "ffn"]:
            fed = p.at(name, self.ffn)(y)
            with ops.fused(f"{name}_residual"):
                y = p.at(f"{name}_sum_norm", self.ffn_sum_norm)(ops.add(y, fed))
        out = ops.rename(p.leave(y), "BTD")
        with ops.fused("output_residual"):
            return p.output_norm(ops.add(x, out))


def attention(fields, causal=True):
    """The attention inside a bottleneck that a card describes."""
    width, outside = fields["bottleneck_dim"], fields["d_model"]
    if fields.get("block") != "bottleneck":
        fields.refuse("bottleneck_dim", width, "none without block = 'bottleneck'")
    made = softmax_attention(fields, causal, BottleneckAttention, outside=outside)
    if made.gated or made.values is not None or made.relative is not None:
        why = "none with gates, values of another make than keys, or relative positions"
        fields.refuse("bottleneck_dim", width, why)
    return made.replace(d_model=width)


def bottleneck(fields, branches):
    """The layer with a narrow inside that a card describes."""
    width, outside = fields["bottleneck_dim"], fields["d_model"]
    if set(branches) != {"attention", "ffn"}:
        fields.refuse("block", "bottleneck", f"serial for a layer of {' and '.join(branches)}")
    if placement(fields) != "post":
        fields.refuse("norm_placement", placement(fields), "post with block = 'bottleneck'")
    entry = Entry(Change(outside, width, "D->C", True), norm(fields, width))
    inside = norm(fields, width)
    return BottleneckBlock(entry, entry, branches["attention"], inside, fields.get("ffns_per_layer", 1),
                           feed_forward(fields, d_model=width), inside, Change(width, outside, "D->C", True),
                           norm(fields, outside))  # fmt: skip
