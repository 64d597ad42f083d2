"""How attention and feed-forward are put together in a layer, and where its norms are."""

from . import load, norm
from .base import Component

# norm_placement on a card: norms (before a branch, of its output, of the sum)
PLACEMENTS = {
    "pre": (True, False, False),  # Xiong et al. 2020
    "post": (False, False, True),  # Vaswani et al. 2017; GPT-1, BERT, OPT 350M
    "double": (True, True, False),  # sandwich (Ding et al. 2021); Gemma 2 and 3, Grok-1, GLM-4
    "output": (False, True, False),  # OLMo 2 and 3
}
BRANCHES = ("attention", "mixer", "cross_attention", "ffn")  # a layer has one of the first two, or none


class SerialBlock(Component):
    """One branch after the other, each beside the residual stream x:

        x = sum_norm(x + scale * output_norm(branch(norm(x))))

    with those of the three norms that the placement has. What happens between two branches is one kernel. by_depth: the
    n-th sum is sqrt((n - 1) / n) x + sqrt(1 / n) of the branch, the embedding being the first of all that is summed.
    """

    attention: Component = None
    ffn: Component = None
    cross_attention: Component = None
    mixer: Component = None
    attention_norm: Component = None
    attention_output_norm: Component = None
    attention_sum_norm: Component = None
    mixer_norm: Component = None
    mixer_output_norm: Component = None
    mixer_sum_norm: Component = None
    cross_attention_norm: Component = None
    cross_attention_output_norm: Component = None
    cross_attention_sum_norm: Component = None
    ffn_norm: Component = None
    ffn_output_norm: Component = None
    ffn_sum_norm: Component = None
    residual_scale: float = None
    by_depth: bool = False

    def forward(self, ops, p, x, source=None, **shared):
        """x (BTD) after the layer. source: what cross attention reads; shared: what layers share in their attention."""
        given = {"attention": shared, "cross_attention": {"source": source}}
        names = [name for name in BRANCHES if getattr(self, name) is not None]
        normed = self.normed(p, f"{names[0]}_norm", x)
        for at, (name, following) in enumerate(zip(names, [*names[1:], None])):
            out = getattr(p, name)(normed, **given.get(name, {}))
            with ops.fused(f"{name}_residual"):
                out = self.normed(p, f"{name}_output_norm", out)
                x = self.normed(p, f"{name}_sum_norm", self.sum(ops, x, out, at))
                if following is not None:
                    normed = self.normed(p, f"{following}_norm", x)
        return x

    def sum(self, ops, x, out, at):
        """x and the output of the branch that is number `at` of the layer."""
        if self.by_depth:
            old = new = None
            if ops.data is not None:
                count = 2 + at + ops.layer_number * sum(getattr(self, name) is not None for name in BRANCHES)
                old, new = ((count - 1) / count) ** 0.5, count**-0.5
            return ops.add(ops.scale(x, old), ops.scale(out, new))
        return ops.add(x, out if self.residual_scale is None else ops.scale(out, self.residual_scale))

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


def serial(fields, branches):
    """The serial block that a card describes, of these branches by their names."""
    before, output, after = PLACEMENTS[placement(fields)]
    norms = {}
    for name in branches:
        kinds = {f"{name}_norm": before, f"{name}_sum_norm": after}
        norms |= {each: norm(fields, fields["d_model"]) for each, there in kinds.items() if there}
        if output:
            norms[f"{name}_output_norm"] = norm(fields, fields["d_model"], eps=fields.get("output_norm_eps"))
    if not fields.get("attention_norm", True):
        if not before or "attention" not in branches:
            fields.refuse("attention_norm", False, "true where no norm lies before attention")
        del norms["attention_norm"]
    if fields.get("ffn_output_norm", False):
        if output or "ffn" not in branches:
            fields.refuse("ffn_output_norm", True, "false where each branch has such a norm, or without a feed-forward")
        norms["ffn_output_norm"] = norm(fields, fields["d_model"])
    if fields.get("experts_beside_ffn", False) and fields.get("n_experts"):
        norms.pop("ffn_norm", None)  # both have their own
    if fields.get("norm_gate_rank") is not None or fields.get("ffn_norm_gate", False):
        norms = load(("gated_norm", "gated"))(fields, norms)
    scale, by_depth = fields.get("residual_scale"), fields.get("residual_by_depth", False)
    if by_depth and scale is not None:
        fields.refuse("residual_scale", scale, "none with residual_by_depth = true")
    block = SerialBlock(**branches, residual_scale=scale, by_depth=by_depth, **norms)
    if fields.get("per_layer_dim") is None and not fields.get("layer_scale", False):
        return block
    return load(("per_layer_embedding", "per_layer_block"))(fields, block)


def parallel(fields, branches):
    """The parallel block that a card describes; refused where its branches cannot lie side by side."""
    block = fields["block"]
    if placement(fields) != "pre":
        why = f"pre with block = {block!r}: its branches share one sum, so norms can only lie before them"
        fields.refuse("norm_placement", placement(fields), why)
    if "cross_attention" in branches:
        fields.refuse("block", block, "serial, since cross attention reads what attention made")
    if set(branches) != {"attention", "ffn"}:
        fields.refuse("block", block, f"serial for a layer of {' and '.join(branches)}")
    attention_norm = norm(fields, fields["d_model"])
    ffn_norm = norm(fields, fields["d_model"]) if block == "parallel_two_norms" else None
    return ParallelBlock(**branches, attention_norm=attention_norm, ffn_norm=ffn_norm,
                         residual_scale=fields.get("residual_scale"))  # fmt: skip


def placement(fields):
    """Where a card has the norms of its blocks."""
    return fields.get("norm_placement", "pre")
