"""Attention residuals: what a branch reads is a weighted sum of the residual streams of all blocks of layers (Kimi K3).

Layers come in blocks of `residual_block_size`. The stream that goes from layer to layer is what its block has added so
far; what the blocks before left, and the embedding, stay as they are.
"""

from . import norm
from .base import Component
from .blocks import BRANCHES


class Mix(Component):
    """sum_i a_i v_i of n streams v, a = softmax of query . (v_i / rms(v_i) * norm) (Kimi Team 2026, Kimi K3, sec. 2.2).

    Streams are BTnD: those of the blocks before, and that of this one. Weights of norm and query are one product.
    """

    d_model: int
    norm: Component

    part, contraction_part = "attention_residual", ("attention_residual", "attention_residual")

    def weights(self):
        return {"query": "D->"}

    def axes(self):
        return {"D": self.d_model}

    def forward(self, ops, p, streams):
        normed = ops.norm("l2_norm", streams, eps=self.norm.eps)
        scores = ops.sum(ops.multiply(normed, ops.multiply(p.norm.weight, p.query)), "D")
        return ops.einsum("BTn,BTnD->BTD", ops.softmax(scores, "n"), streams, name="mixed")


class ResidualBlock(Component):
    """A layer between streams: before each branch a `Mix` of all of them; what the branch makes joins the last one.

    opens: the layer is the first of a block. Then the stream that comes in stays as it is, and a new one begins. The
    first of all has no mix before its first branch, since there is but one stream.
    """

    attention_mix: Mix = None
    attention_norm: Component = None
    attention: Component = None
    mixer_mix: Mix = None
    mixer_norm: Component = None
    mixer: Component = None
    ffn_mix: Mix = None
    ffn_norm: Component = None
    ffn: Component = None
    opens: bool = False

    def forward(self, ops, p, streams, **shared):
        """(streams of blocks before (BTnD) or None, that of this block (BTD)) after the layer."""
        done, x = streams
        for at, name in enumerate(name for name in BRANCHES if getattr(self, name, None) is not None):
            with ops.fused(f"{name}_mix"):
                alone = getattr(self, f"{name}_mix") is None
                mixed = x if alone else getattr(p, f"{name}_mix")(ops.stream_behind(done, x))
                mixed = getattr(p, f"{name}_norm")(mixed)
            out = getattr(p, name)(mixed, **(shared if name == "attention" else {}))
            if self.opens and at == 0:
                done, x = (ops.stream(x) if done is None else ops.stream_behind(done, x)), out
                continue
            with ops.fused(f"{name}_residual"):
                x = ops.add(x, out)
        return done, x


class Widen(Component):
    """The embedding as the first stream; none is before it."""

    def forward(self, ops, p, x):
        return None, x


class Narrow(Mix):
    """A `Mix` of all streams behind the last layer."""

    def forward(self, ops, p, streams):
        done, x = streams
        with ops.fused("narrow"):
            return Mix.forward(self, ops, p, ops.stream_behind(done, x))


def attention_residual(fields, branches):
    """The block that a card describes."""
    if "cross_attention" in branches:
        fields.refuse("block", "attention_residual", "serial in a decoder that attends to an encoder")
    if fields.of_all.get("block") != "attention_residual":
        fields.refuse("block", "attention_residual", "in all layers of a model, or in none")
    if fields.get("norm_placement", "pre") != "pre":
        fields.refuse("norm_placement", fields.get("norm_placement"), "pre with block = 'attention_residual'")
    parts = {f"{name}_norm": norm(fields, fields["d_model"]) for name in branches}
    alone = [name for name in BRANCHES if name in branches][: bool(fields.get("residual_first", False))]
    parts |= {f"{name}_mix": mix(fields) for name in branches if name not in alone}
    return ResidualBlock(**branches, **parts, opens=fields.get("residual_opens", False))


def mix(fields, kind=Mix):
    """What mixes streams; its norm has no bias, whatever the kind of the others."""
    from .norms import RMSNorm

    return kind(fields["d_model"], RMSNorm(fields["d_model"], fields.get("norm_eps", 1e-5)))


def ends(fields):
    """What makes the first stream of the embedding, and a hidden state of all streams."""
    return {"widen": Widen(), "narrow": mix(fields, Narrow)}


def placed(fields, kinds, every):
    """({kind: changes}, kind of each layer), where the first layer of a block, and the block it is in, make a kind."""
    size, found, names = fields["residual_block_size"], {}, []
    for layer, name in enumerate(every):
        block, within = divmod(layer, size)
        name_here = f"{name}.block{block}" + (".first" if not within else "")
        found[name_here] = kinds[name] | {"residual_opens": not within, "residual_first": not layer}
        names.append(name_here)
    return found, names
