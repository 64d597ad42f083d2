"""How attention and feed-forward are put together in a layer, and where its norms are."""

from . import norm
from .base import Component

# norm_placement on a card: norms (before a branch, of its output, of the sum)
PLACEMENTS = {
    "pre": (True, False, False),  # Xiong et al. 2020
    "post": (False, False, True),  # Vaswani et al. 2017; GPT-1, BERT, OPT 350M
    "double": (True, True, False),  # sandwich (Ding et al. 2021); Gemma 2 and 3, Grok-1, GLM-4
    "output": (False, True, False),  # OLMo 2 and 3
}
BRANCHES = ("attention", "cross_attention", "ffn")


class SerialBlock(Component):
    """One branch after the other, each beside the residual stream x:

        x = sum_norm(x + scale * output_norm(branch(norm(x))))

    with those of the three norms that the placement has. What happens between two branches is one kernel.
    """

    attention: Component
    ffn: Component
    cross_attention: Component = None
    attention_norm: Component = None
    attention_output_norm: Component = None
    attention_sum_norm: Component = None
    cross_attention_norm: Component = None
    cross_attention_output_norm: Component = None
    cross_attention_sum_norm: Component = None
    ffn_norm: Component = None
    ffn_output_norm: Component = None
    ffn_sum_norm: Component = None
    residual_scale: float = None

    def forward(self, ops, p, x, source=None, **shared):
        """x (BTD) after the layer. source: what cross attention reads; shared: what layers share in their attention."""
        given = {"attention": shared, "cross_attention": {"source": source}, "ffn": {}}
        names = [name for name in BRANCHES if getattr(self, name) is not None]
        normed = self.normed(p, "attention_norm", x)
        for name, following in zip(names, [*names[1:], None]):
            out = getattr(p, name)(normed, **given[name])
            with ops.fused(f"{name}_residual"):
                out = self.normed(p, f"{name}_output_norm", out)
                x = ops.add(x, out if self.residual_scale is None else ops.scale(out, self.residual_scale))
                x = self.normed(p, f"{name}_sum_norm", x)
                if following is not None:
                    normed = self.normed(p, f"{following}_norm", x)
        return x

    def normed(self, p, name, x):
        """x through that norm, if the block has it."""
        return x if getattr(self, name) is None else getattr(p, name)(x)


class ParallelBlock(Component):
    """x + attention(norm(x)) + ffn(norm(x)): both branches read the same x.

    One norm for both (Wang and Komatsuzaki 2021, GPT-J; Falcon 7B, Cohere, PaLM), or one each (GPT-NeoX, Falcon 40B).
    """

    attention: Component
    ffn: Component
    attention_norm: Component
    ffn_norm: Component = None
    residual_scale: float = None

    def forward(self, ops, p, x, **shared):
        with ops.fused("norms"):
            normed = p.attention_norm(x)
            ffn_normed = normed if self.ffn_norm is None else p.ffn_norm(x)
        mixed, fed = p.attention(normed, **shared), p.ffn(ffn_normed)
        with ops.fused("residual"):
            both = ops.add(mixed, fed)
            return ops.add(x, both if self.residual_scale is None else ops.scale(both, self.residual_scale))


def serial(fields, attention, ffn, cross_attention=None):
    """The serial block that a card describes."""
    before, output, after = PLACEMENTS[placement(fields)]
    norms = {}
    for name, branch in zip(BRANCHES, (attention, cross_attention, ffn)):
        if branch is not None:
            kinds = {f"{name}_norm": before, f"{name}_output_norm": output, f"{name}_sum_norm": after}
            norms |= {each: norm(fields, fields["d_model"]) for each, there in kinds.items() if there}
    return SerialBlock(attention, ffn, cross_attention, residual_scale=fields.get("residual_scale"), **norms)


def parallel(fields, attention, ffn, cross_attention=None):
    """The parallel block that a card describes; refused where its branches cannot lie side by side."""
    block = fields["block"]
    if placement(fields) != "pre":
        why = f"pre with block = {block!r}: its branches share one sum, so norms can only lie before them"
        fields.refuse("norm_placement", placement(fields), why)
    if cross_attention is not None:
        fields.refuse("block", block, "serial, since cross attention reads what attention made")
    attention_norm = norm(fields, fields["d_model"])
    ffn_norm = norm(fields, fields["d_model"]) if block == "parallel_two_norms" else None
    return ParallelBlock(attention, ffn, attention_norm, ffn_norm, fields.get("residual_scale"))


def placement(fields):
    """Where a card has the norms of its blocks."""
    return fields.get("norm_placement", "pre")
