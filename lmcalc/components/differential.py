"""Differential attention: the difference of two attention maps over the same values."""

import math

from .attention import Attention, softmax_attention


class DifferentialAttention(Attention):
    """(softmax(q1 k1) - lambda softmax(q2 k2)) v, values twice as wide for half the heads (Ye et al. 2024, eq. 1 to 3).

    lambda = exp(lq1 lk1) - exp(lq2 lk2) + start, start = 0.8 - 0.6 exp(-0.3 layer); the result is normed over 2H
    without a weight and multiplied by 1 - start. As DiffLlama computes it: the first half of the heads are q1, k1
    (axis G), and a value is a head of the first half of values beside one of the second (axis P). eps: of that norm.
    """

    eps: float = 1e-5

    def weights(self):
        found = {"q": "D->GKRH", "k": "D->GKH", "v": "D->PKH", "out": "KRPH->D"}
        found |= dict.fromkeys(("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"), "H")
        if self.bias in ("qkv", "all"):
            found |= {f"{name}_bias": found[name][3:] for name in "qkv"}
        return found | ({"out_bias": "D"} if self.bias in ("out", "all") else {})

    def axes(self):
        return {"D": self.d_model, "G": 2, "P": 2, "K": self.kv_heads, "R": self.group, "H": self.head_dim}

    def project(self, ops, p, x):
        with ops.projections(x):
            q = ops.linear("BTD,DGKRH->BTGKRH", x, p.q, p.get("q_bias"))
            k = ops.linear("BTD,DGKH->BTGKH", x, p.k, p.get("k_bias"))
            return q, k, ops.linear("BTD,DPKH->BTPKH", x, p.v, p.get("v_bias"))

    def mix(self, ops, p, q, k, v, mask, bias=None):
        start = 0.8 - 0.6 * math.exp(-0.3 * ops.number)
        scores = ops.einsum("BTGKRH,BSGKH->BGKRTS", q, k, mask, name="scores")
        weights = ops.softmax(ops.scale(scores, self.head_dim**-0.5 if self.scale is None else self.scale), "S")
        mixed = ops.einsum("BGKRTS,BSPKH->BTGKRPH", weights, v, name="mixed")
        first, second = ops.at(mixed, "G", 0), ops.at(mixed, "G", 1)
        mixed = ops.subtract(first, ops.multiply(second, self.share(ops, p, start)))
        return ops.scale(ops.norm("l2_norm", mixed, over=2, eps=self.eps), 1 - start)

    def share(self, ops, p, start):
        """lambda: how much of the second map is taken away."""
        one, two = (
            ops.apply("exp", ops.sum(ops.multiply(getattr(p, f"lambda_q{i}"), getattr(p, f"lambda_k{i}")), "H"))
            for i in (1, 2)
        )
        return ops.apply("shift", ops.subtract(one, two), by=start)

    def out(self, ops, p, mixed):
        return ops.linear("BTKRPH,KRPHD->BTD", mixed, p.out, p.get("out_bias"))


def differential(fields):
    """The differential attention that a card describes."""
    heads = fields["n_heads"]
    kv_heads = fields.get("n_kv_heads", heads)
    fields.divided("n_heads", heads, "n_kv_heads", kv_heads)
    for name, without in (("attention_softcap", None), ("attention_sinks", False), ("attention_gate", False),
                          ("attention_sub_norm", False), ("v_head_dim", None), ("v_from_k", False)):  # fmt: skip
        if fields.get(name, without) != without:
            fields.refuse(name, fields.get(name), f"{without or 'none'} with differential attention")
    found = softmax_attention(fields, kind=DifferentialAttention, eps=fields.get("norm_eps", 1e-5))
    if found.relative is not None or found.q_norm is not None:
        name = "positions" if found.relative is not None else "qk_norm"
        fields.refuse(
            name, fields.get(name), "rotary, none or another that changes no score; no norm of queries and keys"
        )
    return found.replace(kv_heads=fields.divided("n_kv_heads", kv_heads, "the 2 maps of differential attention", 2))
