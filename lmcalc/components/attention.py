"""Softmax attention with a key/value cache: multi-head, multi-query, grouped-query."""

import math

from .base import Component


class Attention(Component):
    """Causal softmax attention: K key/value heads, R query heads on each.

    MHA is R = 1 (Vaswani et al. 2017), MQA is K = 1 (Shazeer 2019), else GQA (Ainslie et al. 2023). K*R*H need not
    equal D. bias: "none", "qkv" or "all".
    """

    d_model: int
    kv_heads: int
    group: int
    head_dim: int
    bias: str = "none"
    rotary: Component = None

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        found = {"q": "D->KRH", "k": "D->KH", "v": "D->KH", "out": "KRH->D"}
        if self.bias != "none":
            found |= {"q_bias": "KRH", "k_bias": "KH", "v_bias": "KH"}
        if self.bias == "all":
            found |= {"out_bias": "D"}
        return found

    def axes(self):
        return {"D": self.d_model, "K": self.kv_heads, "R": self.group, "H": self.head_dim}

    def forward(self, ops, p, x):
        with ops.projections():
            q = ops.linear("BTD,DKRH->BTKRH", x, p.q, p.get("q_bias"))
            k = ops.linear("BTD,DKH->BTKH", x, p.k, p.get("k_bias"))
            v = ops.linear("BTD,DKH->BTKH", x, p.v, p.get("v_bias"))
        with ops.fused("rotary_cache"):
            if self.rotary is not None:
                q, k = p.rotary(q), p.rotary(k)
            k, v = ops.append("k", k), ops.append("v", v)
        with ops.fused("core"):  # scores stay on chip
            scores = ops.einsum("BTKRH,BSKH->BKRTS", q, k, mask=ops.causal(), name="scores")
            weights = ops.softmax(ops.scale(scores, 1 / math.sqrt(self.head_dim)), "S")
            mixed = ops.einsum("BKRTS,BSKH->BTKRH", weights, v, name="mixed")
        return ops.linear("BTKRH,KRHD->BTD", mixed, p.out, p.get("out_bias"))


def attention(fields):
    """The attention that a card describes."""
    from .positions import rotary

    heads = fields["n_heads"]
    kv_heads = fields.get("n_kv_heads", heads)
    group = fields.divided("n_heads", heads, "n_kv_heads", kv_heads)
    head_dim = fields.get("head_dim") or fields.divided("d_model", fields["d_model"], "n_heads", heads)
    return Attention(
        fields["d_model"], kv_heads, group, head_dim, fields.get("attention_bias", "none"), rotary(fields, head_dim)
    )
