"""Transformer blocks that several layers share (Zamba), each with its own low-rank changes (Zamba2)."""

from . import norm
from .attention import Attention, softmax_attention
from .base import Component
from .feed_forward import KINDS, GatedFeedForward


class WideAttention(Attention):
    """Attention over two inputs side by side, C = 2D numbers a token, with an output of D."""

    width: int = None

    def weights(self):
        return {"q": "C->KRH", "k": "C->KH", "v": "C->KH", "out": "KRH->D"}

    def axes(self):
        return Attention.axes(self) | {"C": self.width}

    def forward(self, ops, p, x, adapter=None):
        """x: BTC. adapter: what the layer adds to queries, keys and values, or None."""
        with ops.projections(x):
            found = [ops.einsum(f"BTC,C{axes}->BT{axes}", x, getattr(p, name)) for name, axes in QKV]
        if adapter is not None:
            found = [ops.add(each, adapter(x, name=name, axes=axes)) for each, (name, axes) in zip(found, QKV)]
        with ops.fused("rotary_cache"):
            q, k, v = self.place(ops, p, *found)
            k, v = self.remember(ops, k, v)
        with ops.fused("core"):
            mixed = self.mix(ops, p, q, k, v, ops.causal(self.window))
        return self.out(ops, p, mixed)


QKV = (("q", "KRH"), ("k", "KH"), ("v", "KH"))


class SharedFeedForward(GatedFeedForward):
    """A gated feed-forward, to whose gate and up a layer may add its own."""

    def forward(self, ops, p, x, adapter=None):
        with ops.projections(x):
            found = [ops.einsum("BTD,DF->BTF", x, getattr(p, name)) for name in ("gate", "up")]
        if adapter is not None:
            found = [ops.add(each, adapter(x, name=name, axes="F")) for each, name in zip(found, ("gate", "up"))]
        with ops.fused("activation"):
            hidden = self.gated(ops, *found)
        return ops.einsum("BTF,FD->BTD", hidden, p.down)


class SharedBlock(Component):
    """ffn(norm(attention(norm([x; embedding])))), without residuals."""

    attention: Component
    ffn: Component
    attention_norm: Component
    ffn_norm: Component

    def forward(self, ops, p, x, embedded, attention_adapter, ffn_adapter):
        both = ops.rename(ops.join(x, embedded), "BTC")
        mixed = p.attention(p.attention_norm(both), attention_adapter)
        return p.ffn(p.ffn_norm(mixed), ffn_adapter)


class SharedBlocks(Component):
    """The blocks that layers share: their weights are there once, whichever layers use them."""

    blocks: tuple

    def children(self):
        return {str(number): block for number, block in enumerate(self.blocks)}

    def bound(self, p):
        """[the block, to be called in a layer]; its weights belong to no layer."""
        found = [p.at(name, block) for name, block in self.children().items()]
        for block in found:
            touch(block, block._component)
        return found


def touch(p, component):
    """Has an array made of each weight of a component, whether it will be read or not."""
    for name in component.weights():
        getattr(p, name)
    for name, child in component.children().items():
        touch(getattr(p, name), child)


class Adapter(Component):
    """Low-rank changes of projections (Hu et al. 2021, LoRA): up(down(x)), one `down` for all or one each.

    specs: {name of a projection: its output axes}. size_of: sizes of all axes.
    """

    inputs: str
    rank: int
    specs: tuple
    size_of: dict
    heading: str
    apart: bool

    @property
    def part(self):
        return self.heading

    @property
    def contraction_part(self):
        return ("attention_proj", "attention_scores") if self.heading == "attention" else (self.heading, self.heading)

    def weights(self):
        downs = [f"{name}_down" for name, _ in self.specs] if self.apart else ["down"]
        return dict.fromkeys(downs, f"{self.inputs}->r") | {f"{name}_up": f"r->{axes}" for name, axes in self.specs}

    def axes(self):
        return self.size_of | {"r": self.rank}

    def forward(self, ops, p, x, name, axes):
        down = getattr(p, f"{name}_down" if self.apart else "down")
        low = ops.einsum(f"BT{self.inputs},{self.inputs}r->BTr", x, down)
        return ops.einsum(f"BTr,r{axes}->BT{axes}", low, getattr(p, f"{name}_up"))


class HybridBlock(Component):
    """x + mixer(norm(x + project(block([x; embedding])))): a shared block, then the mixer (Glorioso et al. 2024).

    number: which of the shared blocks. ffn_adapter, attention_adapter: what the layer adds in it (Zamba2).
    """

    d_model: int
    number: int
    mixer: Component
    mixer_norm: Component
    ffn_adapter: Component = None
    attention_adapter: Component = None

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        return {"project": "D->O"}

    def axes(self):
        return {"D": self.d_model, "O": self.d_model}

    def forward(self, ops, p, x, memory, embedded):
        attention_adapter = None if self.attention_adapter is None else p.attention_adapter
        ffn_adapter = None if self.ffn_adapter is None else p.ffn_adapter
        made = memory[self.number](x, embedded, attention_adapter, ffn_adapter)
        made = ops.rename(ops.einsum("BTD,DO->BTO", made, p.project), "BTD")
        with ops.fused("mixer_norm"):
            normed = p.mixer_norm(ops.add(x, made))
        out = p.mixer(normed)
        with ops.fused("mixer_residual"):
            return ops.add(x, out)


def shared_blocks(fields):
    """The blocks that a card describes."""
    count, width = fields["shared_blocks"], fields["d_model"]
    attention = softmax_attention(fields, kind=WideAttention, width=2 * width)
    if attention.relative is not None or attention.q_norm is not None or attention.bias != "none" or attention.gated:
        fields.refuse("shared_blocks", count, "none with biases, norms or gates in attention, or positions on scores")
    activation, gated = KINDS[fields.get("shared_ffn", "swiglu")]
    if not gated:
        fields.refuse("shared_ffn", fields.get("shared_ffn"), "one with a gate")
    feed_forward = SharedFeedForward(width, fields["d_ff"], activation)
    block = SharedBlock(attention, feed_forward, norm(fields, 2 * width, "C"), norm(fields, width))
    return SharedBlocks((block,) * count)


def hybrid(fields, branches):
    """The layer that a card describes, around a shared block."""
    number, count, width, rank = (
        fields["shared_block"],
        fields["shared_blocks"],
        fields["d_model"],
        fields.get("adapter_rank"),
    )
    if set(branches) != {"mixer"}:
        fields.refuse("block", "hybrid", 'serial in a layer without a mixer; it has ffn = "none"')
    if number >= count:
        fields.refuse("shared_block", number, f"less than shared_blocks = {count}")
    if rank is None:
        if fields.get("attention_adapter", False):
            fields.refuse("attention_adapter", True, "false without adapter_rank")
        return HybridBlock(width, number, branches["mixer"], norm(fields, width))
    heads, head_dim = fields["n_heads"], fields["head_dim"]
    kv_heads = fields.get("n_kv_heads", heads)
    sizes = {
        "C": 2 * width,
        "K": kv_heads,
        "R": fields.divided("n_heads", heads, "n_kv_heads", kv_heads),
        "H": head_dim,
    }
    attention = Adapter("C", rank, QKV, sizes, "attention", True) if fields.get("attention_adapter", False) else None
    ffn = Adapter("D", rank, (("gate", "F"), ("up", "F")), {"D": width, "F": fields["d_ff"]}, "ffn", False)
    return HybridBlock(width, number, branches["mixer"], norm(fields, width), ffn, attention)
