"""Mixture of attention heads: experts that make queries and outputs, on keys and values that all of them share."""

from .attention import Attention, softmax_attention
from .base import Component
from .router import Router, chosen_of


class HeadExperts(Component):
    """E projections to K query heads and back; a token uses A of them (Zhang et al. 2022; Shen et al. 2024, JetMoE)."""

    d_model: int
    experts: int
    per_token: int
    kv_heads: int
    head_dim: int

    part, contraction_part = "moe_experts", ("moe_experts", "moe_experts")

    def weights(self):
        return {"q": "E|D->KH", "out": "E|KH->D", "output_bias": "D"}

    def axes(self):
        return {"E": self.experts, "D": self.d_model, "K": self.kv_heads, "H": self.head_dim}

    def active(self):
        return {"E": self.per_token}

    def forward(self, ops, p, x, index, gates=None):
        """Queries (BTAKH) of x (BTD); with gates (BTA) the way back: x (BTAKH) projected and summed over experts."""
        if gates is None:
            return ops.routed("BTD,EDKH->BTAKH", x, p.q, index, self.experts)
        out = ops.routed("BTAKH,EKHD->BTAD", x, p.out, index, self.experts)
        with ops.fused("combine"):
            return ops.add(ops.sum(ops.multiply(out, gates), "A"), p.output_bias)


class ExpertAttention(Attention):
    """Attention whose query heads are those of the A experts of a token, on K key/value heads."""

    router: Component = None
    experts: Component = None

    def weights(self):
        return {"k": "D->KH", "v": "D->KH"}

    def forward(self, ops, p, x, bias=None):
        index, gates = p.router(x)
        q = p.experts(x, index)
        with ops.projections(x):
            k, v = ops.einsum("BTD,DKH->BTKH", x, p.k), ops.einsum("BTD,DKH->BTKH", x, p.v)
        with ops.fused("rotary_cache"):
            q, k, v = self.place(ops, p, q, k, v)
            k, v = self.remember(ops, k, v)
        with ops.fused("core"):
            scores = ops.einsum("BTAKH,BSKH->BKATS", q, k, mask=ops.causal(self.window), name="scores")
            scores = ops.scale(scores, self.head_dim**-0.5 if self.scale is None else self.scale)
            mixed = ops.einsum("BKATS,BSKH->BTAKH", ops.softmax(scores, "S"), v, name="mixed")
        return p.experts(mixed, index, gates)


def expert_attention(fields):
    """The mixture of attention heads that a card describes."""
    experts = fields["attention_experts"]
    used = chosen_of(fields, experts)
    for name, without in (
        ("attention_softcap", None),
        ("attention_sinks", False),
        ("attention_gate", False),
        ("attention_sub_norm", False),
        ("qk_norm", "none"),
        ("v_head_dim", None),
        ("v_from_k", False),
        ("attention_bias", "none"),
    ):
        if fields.get(name, without) != without:
            fields.refuse(name, fields.get(name), f"{without or 'none'} with attention_experts")
    found = softmax_attention(fields, kind=ExpertAttention)
    if found.relative is not None:
        fields.refuse("positions", fields.get("positions"), "rotary, none or another that changes no score")
    if isinstance(used, int) and found.group != used:
        fields.refuse("n_heads", fields["n_heads"], f"experts_per_token * n_kv_heads = {used * found.kv_heads}")
    return found.replace(
        router=Router(found.d_model, experts, used, "topk_softmax"),
        experts=HeadExperts(found.d_model, experts, used, found.kv_heads, found.head_dim),
    )
