"""Compressed keys: one entry for each window of tokens, and an indexer that chooses among them (DeepSeek V4)."""

import math

from .base import Component
from .rotary import Rotary


class Compressor(Component):
    """Of each complete window of J tokens an entry: norm(sum over its tokens of softmax(gate + position) * kv).

    Softmax goes over the tokens, channel by channel (DeepSeek-AI 2026, DeepSeek-V4, sec. 2.3.2, eq. 20 to 23). The
    entry is turned as the first token of its window. Entries are cached, and the tokens of the window that is not
    complete. before: each entry sees the window before its own, too, through weights of its own (sec. 2.3.1, eq. 9 to
    12), so that it is made of 2 J tokens; of the last window that half is cached.
    """

    d_model: int
    head_dim: int
    size: int
    norm: Component
    rotary: Component
    before: bool = False

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        names = ("kv_before", "kv", "gate_before", "gate") if self.before else ("kv", "gate")
        positions = ("position_before", "position") if self.before else ("position",)
        return dict.fromkeys(names, "D->H") | dict.fromkeys(positions, "J|H")

    def axes(self):
        return {"D": self.d_model, "H": self.head_dim, "J": self.size}

    def forward(self, ops, p, x):
        """All entries (BSH) after the tokens x (BTD)."""
        with ops.projections(x), ops.fused("compress_down"):  # kv and gate are one matrix each
            made = {
                name: ops.einsum("BTD,DH->BTH", x, getattr(p, name))
                for name, spec in self.weights().items()
                if spec == "D->H"
            }
        with ops.fused("compress"):
            kv, gate = self.windows(ops, p, made, "")
            if self.before:
                kv_before, gate_before = self.windows(ops, p, made, "_before")
                kv_before = ops.window_before("kv_last", kv_before, 0.0)
                gate_before = ops.window_before("gate_last", gate_before, -math.inf)
                kv, gate = self.joined(ops, kv_before, kv), self.joined(ops, gate_before, gate)
            else:
                kv, gate = ops.order(kv, "BtHJ"), ops.order(gate, "BtHJ")
            mixed = ops.sum(ops.multiply(kv, ops.softmax(gate, "J")), "J")
            return ops.entries("entries", p.rotary(p.norm(mixed)), self.size)

    def windows(self, ops, p, made, of):
        """kv and gate of new windows (BtJH), the gate with its bias by position."""
        kv, gate = (ops.windows(f"{name}{of}_waiting", made[name + of], self.size) for name in ("kv", "gate"))
        return kv, ops.add(gate, getattr(p, f"position{of}"))

    def joined(self, ops, before, own):
        """The tokens of both windows, along the last axis."""
        return ops.join(ops.order(before, "BtHJ"), ops.order(own, "BtHJ"))


class WindowRotary(Rotary):
    """Entries turned as the first token of their window."""

    window: int = 1

    def positions(self, ops):
        before, now = ops.complete(self.window)
        return "t", ops.data.np.arange(before, now) * self.window


class EntryIndexer(Component):
    """The lightning indexer on compressed keys (DeepSeek-AI 2026, DeepSeek-V4, sec. 2.3.1, eq. 13 to 17).

    As in indexer.py, sum over heads of weight * relu(q k), but the keys are entries of a compressor of its own, and a
    query attends to at most `topk` of the entries that it sees.
    """

    d_model: int
    q_latent: int
    heads: int
    head_dim: int
    topk: int
    compressor: Component
    rotary: Component

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        return {"q": "Q->iH", "weigh": "D->i"}

    def axes(self):
        return {"D": self.d_model, "Q": self.q_latent, "i": self.heads, "H": self.head_dim}

    def forward(self, ops, p, x, latent):
        """The mask of the entries that each query attends to. latent: what queries are made from (BTQ)."""
        size = self.compressor.size
        with ops.projections(latent):
            q = ops.einsum("BTQ,QiH->BTiH", latent, p.q)
        with ops.projections(x):
            weights = ops.einsum("BTD,Di->BTi", x, p.weigh)
        with ops.fused("rotary"):
            q = p.rotary(q)
        k = p.compressor(x)
        with ops.fused("core"):
            scores = ops.einsum("BTiH,BSH->BiTS", q, k, ops.sees_entries(size), name="scores")
            weights = ops.scale(weights, (self.heads * self.head_dim) ** -0.5)
            scores = ops.einsum("BiTS,BTi->BTS", ops.apply("relu", scores), weights, name="weighted")
            return ops.best_entries(ops.apply("mask", scores, allowed=scores.mask.data), self.topk, size)
