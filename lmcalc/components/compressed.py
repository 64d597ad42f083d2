"""Attention to the last tokens and to compressed entries for all before them (DeepSeek V4)."""

from ..patterns import pattern
from .base import Component
from .compressor import Compressor, EntryIndexer, WindowRotary
from .norms import L2Norm, RMSNorm
from .rotary import rotary


class CompressedAttention(Component):
    """Softmax attention of all heads to one array of H numbers a token, key and value at once (DeepSeek-V4, sec. 2.3).

    Queries come from a latent of Q numbers and are normed, head by head, without a weight. Keys are those of a window,
    and behind them, with a compressor, an entry for each complete window of J tokens: all of them
    (heavily compressed), or those that an indexer chose (compressed sparse). Since values are turned as keys, the
    output is turned back by the position of its query. A logit a head takes part in the softmax only. Heads come in g
    groups, each of which goes down to C numbers before `out` mixes them.
    """

    d_model: int
    groups: int
    group: int
    head_dim: int
    q_latent: int
    out_latent: int
    q_norm: Component
    head_norm: Component
    kv_norm: Component
    rotary: Component
    rotary_back: Component
    window: object = None
    compressor: Component = None
    indexer: Component = None

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        return {"q_down": "D->Q", "q": "Q->gRH", "kv": "D->H", "sink": "gR", "out_down": "g|RH->C", "out": "gC->D"}

    def axes(self):
        return {"D": self.d_model, "g": self.groups, "R": self.group, "H": self.head_dim, "Q": self.q_latent,
                "C": self.out_latent}  # fmt: skip

    def forward(self, ops, p, x, **_):
        with ops.projections(x):
            latent, kv = ops.einsum("BTD,DQ->BTQ", x, p.q_down), ops.einsum("BTD,DH->BTH", x, p.kv)
        latent = p.q_norm(latent)
        with ops.projections(latent):
            q = ops.einsum("BTQ,QgRH->BTgRH", latent, p.q)
        with ops.fused("rotary_cache"):
            q, kv = p.rotary(p.head_norm(q)), p.rotary(p.kv_norm(kv))
            keys = ops.append("kv", kv, self.window)
        mask = ops.causal(self.window)
        if self.compressor is not None:
            keys, mask = self.beside(ops, p, x, latent, keys, mask)
        with ops.fused("core"):
            scores = ops.einsum("BTgRH,BSH->BgRTS", q, keys, mask, name="scores")
            weights = ops.softmax(ops.scale(scores, self.head_dim**-0.5), "S", p.sink)
            mixed = p.rotary_back(ops.einsum("BgRTS,BSH->BTgRH", weights, keys, name="mixed"))
        low = ops.einsum("BTgRH,gRHC->BTgC", mixed, p.out_down)
        return ops.einsum("BTgC,gCD->BTD", low, p.out)

    def beside(self, ops, p, x, latent, keys, mask):
        """Keys and mask with those entries behind them that a query may attend to."""
        entries = p.compressor(x)
        if self.indexer is None:
            return ops.with_entries(keys, entries), ops.both(mask, ops.sees_entries(self.compressor.size))
        chosen = p.indexer(x, latent)
        return ops.with_entries(keys, ops.some(entries, self.indexer.topk)), ops.both(mask, chosen)


def compressed(fields):
    """The attention to compressed entries that a card describes."""
    heads, groups, head_dim = fields["n_heads"], fields["out_groups"], fields["head_dim"]
    group, latent = fields.divided("n_heads", heads, "out_groups", groups), fields["q_latent_dim"]
    kv_heads = fields.get("n_kv_heads", heads)
    if isinstance(kv_heads, int) and kv_heads != 1:
        fields.refuse("n_kv_heads", kv_heads, "1 with out_groups: all heads share one key")
    if fields.get("positions", "rotary") != "rotary":
        fields.refuse("positions", fields.get("positions"), "rotary with out_groups")
    eps, turn = fields.get("norm_eps", 1e-5), rotary(fields, head_dim).replace(last=True)
    size, topk = fields.get("compression"), fields.get("index_topk")
    if size is None:
        for name in ("index_topk", "compression_overlap"):
            if fields.get(name):
                fields.refuse(name, fields.get(name), "none without compression")
    return CompressedAttention(
        fields["d_model"], groups, group, head_dim, latent, fields["out_latent_dim"], RMSNorm(latent, eps, "Q"),
        L2Norm(eps), RMSNorm(head_dim, eps, "H"), turn, turn.replace(backward=not turn.backward), pattern(fields),
        None if size is None else compressor(fields, head_dim, turn, size),
        None if topk is None else indexer(fields, latent, turn, size, topk),
    )  # fmt: skip


def compressor(fields, head_dim, turn, size):
    """The compressor that a card describes, to entries of so many numbers."""
    norm = RMSNorm(head_dim, fields.get("norm_eps", 1e-5), "H")
    turn = WindowRotary(turn.size, turn.base, turn.interleaved, turn.scaling, turn.backward, turn.last, size)
    return Compressor(fields["d_model"], head_dim, size, norm, turn, fields.get("compression_overlap", False))


def indexer(fields, latent, turn, size, topk):
    """The indexer among entries that a card describes."""
    head_dim = fields["index_head_dim"]
    if isinstance(head_dim, int) and isinstance(turn.size, int) and head_dim < turn.size:
        fields.refuse("index_head_dim", head_dim, f"at least the {turn.size} that are turned")
    return EntryIndexer(fields["d_model"], latent, fields["index_heads"], head_dim, topk,
                        compressor(fields, head_dim, turn, size), turn)  # fmt: skip
