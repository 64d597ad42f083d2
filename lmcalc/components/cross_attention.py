"""Attention of a decoder to an encoder's output, whose keys and values are computed once."""

from .attention import Attention, attention


class CrossAttention(Attention):
    """Queries of x, keys and values of the source: encoder-decoder attention (Vaswani et al. 2017, sec. 3.2.3).

    source: what the encoder made (BMD) when it just ran; None later, when keys and values lie in the cache.
    source_width: the width of that, where the encoder has one of its own (T5Gemma).
    """

    source_width: int = None

    def weights(self):
        found = Attention.weights(self)
        if self.source_width is None:
            return found
        return found | {"k": "X->KH", "v": "X->KH"}

    def axes(self):
        return Attention.axes(self) | ({} if self.source_width is None else {"X": self.source_width})

    def forward(self, ops, p, x, source=None):
        with ops.projections(x):
            q = ops.linear("BTD,DKRH->BTKRH", x, p.q, p.get("q_bias"))
        k, v = self.recalled(ops) if source is None else self.kept(ops, p, source)
        with ops.fused("core"):
            mixed = self.mix(ops, p, q, k, v, None, keys="M")
        return self.out(ops, p, mixed)

    def kept(self, ops, p, source):
        """Keys and values of the source, written to the cache."""
        axis = "D" if self.source_width is None else "X"
        if self.source_width is not None:
            source = ops.rename(source, "BMX")
        with ops.projections(source):
            k = ops.linear(f"BM{axis},{axis}KH->BMKH", source, p.k, p.get("k_bias"))
            v = ops.linear(f"BM{axis},{axis}KH->BMKH", source, p.v, p.get("v_bias"))
        with ops.fused("cross_cache"):
            return ops.keep("k", k), ops.keep("v", v)

    def recalled(self, ops):
        """Keys and values from the cache."""
        return [ops.recall(name, "BMKH", (self.kv_heads, self.head_dim)) for name in "kv"]


def cross_attention(fields):
    """The cross attention that a card describes: its self attention's shape, without positions."""
    for name in ("v_head_dim", "v_from_k", "v_norm", "value_scale", "attention_gate", "attention_temperature"):
        if fields.get(name):
            fields.refuse(name, fields.get(name), "none in an encoder-decoder")
    if fields.get("qk_norm", "none") != "none" or fields.get("qkv_clip") is not None:
        name = "qkv_clip" if fields.get("qk_norm", "none") == "none" else "qk_norm"
        fields.refuse(name, fields.get(name), "none in an encoder-decoder, whose cross attention has none")
    own = attention(fields.kind("cross", {"positions": "none", "window": None}), causal=False)
    return CrossAttention(**own.__dict__, source_width=(fields.of_all.get("encoder") or {}).get("d_model"))
