"""Block-sparse attention: an indexer scores all keys, and a query attends to the best blocks of them (MiniMax M3)."""

from ..patterns import Blocks
from . import NORMS, load
from .attention import Attention, softmax_attention
from .base import Component


class BlockSparseAttention(Attention):
    """Softmax attention in which each query of a key/value head sees the blocks of keys that an indexer chose for it.

    As the class in transformers 5.24 has it (minimax_m3_vl). Every query sees as many pairs as any other at its
    position, whichever blocks it chose, since its own is always one of them.
    """

    indexer: Component = None

    def forward(self, ops, p, x, bias=None):
        q, k, v = self.project(ops, p, x)
        with ops.fused("rotary_cache"):
            q, k, v = self.place(ops, p, q, k, v)
            k, v = self.remember(ops, k, v)
        mask, most = p.indexer(x), self.indexer.blocks.most_keys
        k, v = ops.some(k, most), ops.some(v, most)
        with ops.fused("core"):
            mixed = self.mix(ops, p, q, k, v, mask, bias)
        return self.out(ops, p, mixed)


class BlockIndexer(Component):
    """A query for each key/value head and one key, normed and turned; a block counts as its best key does.

    Keys of its own are cached. The `local` blocks that end with that of the query come first, then those of the largest
    scores. To choose costs nothing (see ops.choose).
    """

    d_model: int
    heads: int
    head_dim: int
    blocks: Blocks
    q_norm: Component
    k_norm: Component
    rotary: Component = None
    local: int = 1

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        return {"q": "D->Kj", "k": "D->j"}

    def axes(self):
        return {"D": self.d_model, "K": self.heads, "j": self.head_dim}

    def forward(self, ops, p, x):
        """The mask of the keys that each query attends to."""
        with ops.projections(x):
            q, k = ops.einsum("BTD,DKj->BTKj", x, p.q), ops.einsum("BTD,Dj->BTj", x, p.k)
        with ops.fused("rotary_cache"):
            q, k = p.q_norm(q), p.k_norm(k)
            if self.rotary is not None:
                q, k = p.rotary(q), p.rotary(k)
            k = ops.append("k", k)
        with ops.fused("core"):
            scores = ops.einsum("BTKj,BSj->BKTS", q, k, ops.causal(), name="scores")
            scores = ops.apply("mask", scores, allowed=scores.mask.data)
            return ops.best_blocks(scores, self.blocks, self.local)


def block_sparse(fields):
    """The block-sparse attention that a card describes."""
    head_dim = fields["index_head_dim"]
    blocks, local = Blocks(fields["index_block_size"], fields["index_topk_blocks"]), fields.get("index_local_blocks", 1)
    if isinstance(local, int) and isinstance(blocks.count, int) and local > blocks.count:
        fields.refuse("index_local_blocks", local, f"at most index_topk_blocks = {blocks.count}")
    for name in ("window", "attention_chunk", "sparse_pattern", "attention_gate"):
        if fields.get(name):
            fields.refuse(name, fields.get(name), "none with index_block_size")
    found = softmax_attention(fields, kind=BlockSparseAttention)
    if found.relative is not None:
        fields.refuse("positions", fields.get("positions"), "rotary or none with index_block_size")
    turned = found.rotary and found.rotary.size
    if isinstance(head_dim, int) and isinstance(turned, int) and head_dim < turned:
        fields.refuse("index_head_dim", head_dim, f"at least the {turned} entries that are turned")
    kind = load(NORMS[fields.get("norm", "rmsnorm")])
    norm = kind(head_dim, fields.get("norm_eps", 1e-5), "j")
    indexer = BlockIndexer(fields["d_model"], found.kv_heads, head_dim, blocks, norm, norm, found.rotary, local)
    return found.replace(indexer=indexer)
