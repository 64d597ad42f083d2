"""Per-layer embeddings: a narrow embedding of the token for each layer, beside the model's (Gemma 3n, Gemma 4)."""

from . import norm
from .base import Component
from .blocks import SerialBlock
from .feed_forward import KINDS


class PerLayerEmbedding(Component):
    """The embeddings of all L layers (BTLe): (norm(x W / sqrt(D)) + row sqrt(e)) / sqrt(2).

    x: the token's own embedding. rows: the table's; a token beyond them has row 0. It is meant to be kept in slower
    memory: a token reads L e numbers of it.
    """

    d_model: int
    layers: int
    rows: int
    width: int
    norm: Component

    part, contraction_part = "per_layer_embedding", ("per_layer_embedding", "per_layer_embedding")

    def weights(self):
        return {"table": "V|Le", "project": "D->Le"}

    def axes(self):
        return {"V": self.rows, "D": self.d_model, "L": self.layers, "e": self.width}

    def forward(self, ops, p, tokens, x):
        made = ops.einsum("BTD,DLe->BTLe", x, p.project)
        with ops.fused("per_layer"):
            made = p.norm(ops.scale(made, self.d_model**-0.5))
            rows = ops.scale(ops.gather(p.table, ops.within(tokens, self.rows)), self.width**0.5)
            return ops.scale(ops.add(made, rows), 0.5**0.5)


class PerLayerInput(Component):
    """norm(project(activation(gate(x)) * embedding of the layer)): what a layer makes of it."""

    d_model: int
    width: int
    activation: str
    norm: Component

    part, contraction_part = "per_layer_embedding", ("per_layer_embedding", "per_layer_embedding")

    def weights(self):
        return {"gate": "D->e", "project": "e->D"}

    def axes(self):
        return {"D": self.d_model, "e": self.width}

    def forward(self, ops, p, x, per_layer):
        gate = ops.einsum("BTD,De->BTe", x, p.gate)
        with ops.fused("activation"):
            hidden = ops.apply(self.activation, gate)
            hidden = ops.multiply(hidden, ops.at(per_layer, "L", ops.number))
        return p.norm(ops.einsum("BTe,eD->BTD", hidden, p.project))


class PerLayerBlock(SerialBlock):
    """A serial block, then x + what the layer makes of its own embedding, then a factor on all of it (Gemma 4)."""

    per_layer: Component = None
    layer_scale: bool = False

    def buffers(self):
        return {"layer_scale": ""} if self.layer_scale else {}

    def forward(self, ops, p, x, per_layer=None, **shared):
        x = SerialBlock.forward(self, ops, p, x, **shared)
        made = None if self.per_layer is None else p.per_layer(x, per_layer)
        with ops.fused("per_layer_residual"):
            x = x if made is None else ops.add(x, made)
            return ops.multiply(x, p.layer_scale) if self.layer_scale else x


def per_layer_embedding(fields):
    """The embeddings of all layers that a card describes."""
    width = fields["per_layer_dim"]
    rows = fields.get("per_layer_vocab", fields["vocab_size"])
    return PerLayerEmbedding(fields["d_model"], fields["n_layers"], rows, width, norm(fields, width, "e"))


def per_layer_input(fields):
    """What a layer makes of its own embedding, as a card describes it."""
    kind = fields.get("ffn", "swiglu")
    activation, _ = KINDS.get(kind, (None, None))
    if activation not in ("gelu", "gelu_tanh", "silu", "relu"):
        fields.refuse("ffn", kind, "one whose activation a per-layer embedding can use: gelu, gelu_tanh, silu or relu")
    width = fields["d_model"]
    return PerLayerInput(width, fields["per_layer_dim"], activation, norm(fields, width))


def per_layer_block(fields, block):
    """The block with what comes behind it."""
    made = per_layer_input(fields) if fields.get("per_layer_dim") else None
    return PerLayerBlock(**block.__dict__, per_layer=made, layer_scale=fields.get("layer_scale", False))
