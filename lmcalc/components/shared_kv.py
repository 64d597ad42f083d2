"""Attention of a layer that reads the keys and values of an earlier one."""

from .attention import Attention, softmax_attention, tempered


class SharedAttention(Attention):
    """Queries over the cache of the last layer of the kind `source` before this one (Gemma 3n, Gemma 4).

    No key or value weights and no cache of its own: that layer's is read again (Brandon et al. 2024, sec. 3).
    """

    source: str = None

    def weights(self):
        found = Attention.weights(self)
        return {name: spec for name, spec in found.items() if name not in ("k", "v", "k_bias", "v_bias")}

    def project(self, ops, p, x):
        with ops.projections(x):
            return ops.linear("BTD,DKRH->BTKRH", x, p.q, p.get("q_bias")), None, None

    def place(self, ops, p, q, k, v):
        return tempered(ops, self.placed(ops, p, q, "q_norm"), self.temperature), k, v

    def remember(self, ops, k, v):
        return ops.left["keys and values", self.source]


def shared(fields):
    """The attention of a layer that shares, as a card describes it."""
    source, kinds = fields["kv_from"], fields.get("kinds") or {}
    if fields.name is None or source not in kinds or kinds[source].get("kv_from") is not None:
        owners = [name for name in kinds if kinds[name].get("kv_from") is None]
        why = "the kind of an earlier layer with keys of its own, in a kind of layer; such are: " + ", ".join(owners)
        fields.refuse("kv_from", source, why)
    for name in ("n_heads", "n_kv_heads", "head_dim", "v_head_dim", "window", "attention_chunk", "sparse_pattern"):
        own, theirs = fields.get(name), fields.of_kind(source).get(name)
        if name != "n_heads" and own is not theirs and own != theirs:
            fields.refuse(name, own, f"{theirs!r}, as the kind {source} has it that keys and values come from")
    for name in ("positions", "value_scale", "v_norm", "v_from_k"):
        fields.get(name)  # of keys and values that this layer does not make
    found = softmax_attention(fields, kind=SharedAttention, source=source)
    if found.relative is not None:
        fields.refuse("kv_from", source, "none with positions that change scores")
    values = found.values and found.values.replace(of_keys=False, norm=None, scale=None)
    return found.replace(k_norm=None, leaves=None, values=values)


def refuse_gaps(fields, every):
    """Refuse an order of layers in which one would read what no layer before it has left."""
    kinds = fields.get("kinds") or {}
    for at, name in enumerate(every):
        source = kinds[name].get("kv_from")
        if source is not None and source not in every[:at]:
            fields.refuse(f"kinds.{name}.kv_from", source, f"a kind that comes before layer {at}")
