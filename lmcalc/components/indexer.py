"""Top-k sparse attention: a small indexer scores all keys, and a query attends to the best of them."""

from ..trace import Mask
from .base import Component
from .norms import LayerNorm


class Indexer(Component):
    """The lightning indexer (DeepSeek-AI 2025, DeepSeek-V3.2, sec. 2.1): sum over heads of weight * relu(q k).

    Keys of its own (one head) are cached. It scores every key that a query may see; attention itself then costs
    min(seen, topk) pairs a query. To choose costs nothing (see ops.choose). factor: 1/sqrt(heads * head_dim), which the
    published code multiplies into the weights. The first entries of a head are turned.
    """

    d_model: int
    q_latent: int
    heads: int
    head_dim: int
    topk: int
    k_norm: Component
    rotary: Component = None

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        return {"q": "Q->ij", "k": "D->j", "weigh": "D->i"}

    def axes(self):
        return {"D": self.d_model, "Q": self.q_latent, "i": self.heads, "j": self.head_dim}

    def forward(self, ops, p, x, latent):
        """The mask of the keys that each query attends to. latent: what queries are made from (BTQ)."""
        with ops.projections(latent):
            q = ops.einsum("BTQ,Qij->BTij", latent, p.q)
        with ops.projections(x):
            k, weights = ops.einsum("BTD,Dj->BTj", x, p.k), ops.einsum("BTD,Di->BTi", x, p.weigh)
        with ops.fused("rotary_cache"):
            k = p.k_norm(k)
            if self.rotary is not None:
                q, k = p.rotary(q), p.rotary(k)
            k = ops.append("k", k)
        with ops.fused("core"):
            scores = ops.apply("relu", ops.einsum("BTij,BSj->BiTS", q, k, ops.causal(), name="scores"))
            weights = ops.scale(weights, (self.heads * self.head_dim) ** -0.5)
            scores = ops.einsum("BiTS,BTi->BTS", scores, weights, name="weighted")
            mask = ops.best(ops.apply("mask", scores, allowed=scores.mask.data), self.topk)
        ops.left["index"] = mask
        return mask


class SharedIndex(Component):
    """The keys that the last layer with an indexer chose (GLM 5.2)."""

    topk: int

    def forward(self, ops, p, x, latent) -> Mask:
        return ops.left["index"]


def indexer(fields, q_latent, rotary):
    """The indexer that a card describes, or None."""
    topk, shared = fields.get("index_topk"), fields.get("index_shared", False)
    if topk is None:
        if shared:
            fields.refuse("index_shared", True, "false without index_topk")
        return None
    if shared and fields.name is None:
        fields.refuse("index_shared", True, "only in layers behind one with an indexer")
    if shared:
        return SharedIndex(topk)
    if q_latent is None:
        fields.refuse("index_topk", topk, "none without q_latent_dim, which the indexer's queries are made from")
    for name in ("window", "attention_chunk", "sparse_pattern"):
        if fields.get(name) is not None:
            fields.refuse(name, fields.get(name), "none with index_topk, which chooses among all keys")
    head_dim = fields["index_head_dim"]
    if rotary is not None and isinstance(head_dim, int) and isinstance(rotary.size, int) and head_dim < rotary.size:
        fields.refuse("index_head_dim", head_dim, f"at least rope_head_dim = {rotary.size}, which are turned")
    layout = fields.get("index_rope_layout")
    if rotary is not None and layout is not None:
        rotary = rotary.replace(interleaved=layout == "interleaved")
    if rotary is not None and fields.get("index_rope_last", False):
        rotary = rotary.replace(last=True)
    eps = fields.get("index_norm_eps") or fields.get("latent_norm_eps", fields.get("norm_eps", 1e-5))
    norm = LayerNorm(head_dim, eps, "j")
    return Indexer(fields["d_model"], q_latent, fields["index_heads"], head_dim, topk, norm, rotary)


def refuse_gaps(fields, every):
    """Refuse an order of layers in which one would use what no layer before it has chosen."""
    for name in dict.fromkeys(every):
        layer = fields.kind(name, fields.get("kinds")[name])
        if layer.get("index_topk") is not None and not layer.get("index_shared", False):
            return
        if layer.get("index_shared", False):
            fields.refuse(f"kinds.{name}.index_shared", True, "only in layers behind one with an indexer")
