"""Projections in groups of channels: each group of outputs sees its own group of inputs (SqueezeBERT)."""

from .attention import Attention, softmax_attention
from .feed_forward import FeedForward


def grouped(ops, x, weight, bias, axes, sizes):
    """x times a matrix for each group of its last axis, as an array of these last axes; the groups lie side by side."""
    (groups, inputs, _), (g, i, o), lead = weight.sizes, weight.axes, x.sizes[:2]
    with ops.fused(weight.path.rpartition("/")[2]):
        parts = ops.reshape(x, f"BT{g}{i}", (*lead, groups, inputs))
        out = ops.einsum(f"BT{g}{i},{g}{i}{o}->BT{g}{o}", parts, weight)
        out = ops.reshape(out, f"BT{axes}", (*lead, *sizes))
        return out if bias is None else ops.add(out, bias)


class GroupedAttention(Attention):
    """Attention whose queries, keys and values are made in groups: grouped convolutions of one token (Iandola et al.
    2020, sec. 3.2). inputs, outputs, key_outputs: what is in a group of x, of queries, and of keys or values."""

    groups: int = 1
    inputs: int = None
    outputs: int = None
    key_outputs: int = None

    def weights(self):
        return Attention.weights(self) | {"q": "G|i->o", "k": "G|i->u", "v": "G|i->u"}

    def axes(self):
        sizes = {"G": self.groups, "i": self.inputs, "o": self.outputs, "u": self.key_outputs}
        return Attention.axes(self) | sizes

    def project(self, ops, p, x):
        heads, size = (self.kv_heads, self.group), self.head_dim
        with ops.projections(x):
            q = grouped(ops, x, p.q, p.get("q_bias"), "KRH", (*heads, size))
            k, v = (grouped(ops, x, getattr(p, name), p.get(f"{name}_bias"), "KH", (heads[0], size)) for name in "kv")
        return q, k, v


class GroupedFeedForward(FeedForward):
    """down(activation(up(x))), both matrices in groups. inputs, hidden: what is in a group of x, and of d_ff."""

    groups: int = 1
    inputs: int = None
    hidden: int = None

    def weights(self):
        return FeedForward.weights(self) | {"up": "G|i->f", "down": "G|f->i"}

    def axes(self):
        return FeedForward.axes(self) | {"G": self.groups, "i": self.inputs, "f": self.hidden}

    def forward(self, ops, p, x):
        with ops.projections(x):
            up = grouped(ops, x, p.up, p.get("up_bias"), "F", (self.d_ff,))
        return grouped(ops, self.activated(ops, p, up), p.down, p.get("down_bias"), "D", (self.d_model,))


def attention(fields, causal=True):
    """The grouped attention that a card describes."""
    groups = fields["projection_groups"]
    made = softmax_attention(fields, causal, GroupedAttention, groups=groups)
    keys = fields.divided("n_kv_heads * head_dim", made.kv_heads * made.head_dim, "projection_groups", groups)
    if made.gated or made.values is not None:
        fields.refuse("projection_groups", groups, "none with gates, or values of another make than keys")
    return made.replace(inputs=_inputs(fields), outputs=keys * made.group, key_outputs=keys)


def _inputs(fields):
    return fields.divided("d_model", fields["d_model"], "projection_groups", fields["projection_groups"])


def feed_forward(fields):
    """The grouped feed-forward that a card describes."""
    from .feed_forward import KINDS

    groups, name = fields["projection_groups"], fields.get("ffn", "swiglu")
    activation, gated = KINDS[name]
    if gated or name == "xielu" or fields.get("ffn_sub_norm", False):
        fields.refuse("projection_groups", groups, "none with a feed-forward that has a gate, weights or a norm inside")
    hidden = fields.divided("d_ff", fields["d_ff"], "projection_groups", groups)
    d_model, d_ff, bias = fields["d_model"], fields["d_ff"], fields.get("ffn_bias", False)
    return GroupedFeedForward(d_model, d_ff, activation, bias, groups=groups, inputs=_inputs(fields), hidden=hidden)
