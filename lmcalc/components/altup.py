"""AltUp: several residual streams, of which a layer computes one and predicts the others (Gemma 3n)."""

from . import norm
from .base import Component


class AltUp(Component):
    """predict and correct of alternating updates (Baykal et al. 2023, alg. 1; Gemma 3n).

    Streams are BTnD, the first one is computed: y is what the layer makes of its prediction. Of the modalities
    m(x) = tanh(norm(x) / D router), n numbers a token,

        predicted_j = stream_j + sum_i (m(stream_0) predict)_ji stream_i
        corrected_j = predicted_j + (y - predicted_0) (1 + (m(y) correct)_j)
    """

    d_model: int
    streams: int
    router_norm: Component

    part, contraction_part = "altup", ("altup", "altup")

    def weights(self):
        return {"router": "D->n", "predict": "n->ml", "correct": "n->m"}

    def axes(self):
        return {"D": self.d_model} | dict.fromkeys("nml", self.streams)

    def forward(self, ops, p, streams, *made):
        """The predicted streams; or of those, their first one and y: the corrected ones."""
        return self.corrected(ops, p, streams, *made) if made else self.predicted(ops, p, streams)

    def predicted(self, ops, p, streams):
        """The streams before the layer."""
        with ops.fused("predict"):
            share = ops.einsum("BTn,nml->BTml", self.modalities(ops, p, ops.at(streams, "n", 0)), p.predict)
            moved = ops.einsum("BTml,BTlD->BTmD", share, ops.rename(streams, "BTlD"))
            return ops.add(ops.rename(moved, "BTnD"), streams)

    def corrected(self, ops, p, predicted, first, y):
        """The streams after the layer made y of the first one."""
        share = ops.apply("shift", ops.einsum("BTn,nm->BTm", self.modalities(ops, p, y), p.correct), by=1.0)
        moved = ops.einsum("BTD,BTm->BTmD", ops.subtract(y, first), share)
        return ops.add(ops.rename(moved, "BTnD"), predicted)

    def modalities(self, ops, p, x):
        x = ops.scale(p.router_norm(x), 1 / self.d_model)
        return ops.apply("tanh", ops.einsum("BTD,Dn->BTn", x, p.router))


class Laurel(Component):
    """x + norm(right(left(x))): a residual that is learned, at low rank (Menghani et al. 2024, LAuReL, sec. 2)."""

    d_model: int
    rank: int
    norm: Component

    part, contraction_part = "laurel", ("laurel", "laurel")

    def weights(self):
        return {"left": "D->r", "right": "r->D"}

    def axes(self):
        return {"D": self.d_model, "r": self.rank}

    def forward(self, ops, p, x):
        low = ops.einsum("BTD,Dr->BTr", x, p.left)
        out = ops.einsum("BTr,rD->BTD", low, p.right)
        with ops.fused("laurel_residual"):
            return ops.add(x, p.norm(out))


class Widen(Component):
    """Streams BTnD of embeddings BTD: these, and projections of them at the same root mean square."""

    d_model: int
    streams: int
    eps: float = 1e-5

    part, contraction_part = "altup", ("altup", "altup")

    def weights(self):
        return {"project": "m|D->O"}

    def axes(self):
        return {"m": self.streams - 1, "D": self.d_model, "O": self.d_model}

    def forward(self, ops, p, x):
        others = ops.einsum("BTD,mDO->BTmO", x, p.project)
        with ops.fused("streams"):
            others = ops.alike(others, ops.reduce("rms", x), self.eps)
            return ops.rename(ops.lead(x, others), "BTnD")


class Narrow(Widen):
    """The mean of the streams, all but the first projected, at the root mean square of the first."""

    def forward(self, ops, p, x):
        first, rest = ops.at(x, "n", 0), ops.rest(x, "n", "m")
        others = ops.einsum("BTmD,mDO->BTmO", rest, p.project)
        with ops.fused("streams"):
            others = ops.alike(others, ops.reduce("rms", first), self.eps)
            whole = ops.rename(ops.lead(first, others), "BTnD")
            return ops.scale(ops.sum(whole, "n"), 1 / self.streams)


class AltUpBlock(Component):
    """A layer of Gemma 3n: AltUp around attention beside LAuReL, a feed-forward, and the layer's own embedding.

    Norms before and after each branch. corrected_scale: a weight on the corrected first stream, before the layer's
    embedding meets it and the result is added to the other streams.
    """

    d_model: int
    altup: AltUp
    laurel: Laurel
    attention: Component
    ffn: Component
    attention_norm: Component
    attention_output_norm: Component
    ffn_norm: Component
    ffn_output_norm: Component
    per_layer: Component
    corrected_scale: bool = True

    part = "altup"

    def weights(self):
        return {"corrected_scale": "D"} if self.corrected_scale else {}

    def axes(self):
        return {"D": self.d_model}

    def forward(self, ops, p, streams, per_layer, **shared):
        """streams (BTnD) after the layer. per_layer: embeddings of all layers (BTLe)."""
        predicted = p.altup(streams)
        first = ops.at(predicted, "n", 0)
        normed = p.attention_norm(first)
        laurel, mixed = p.laurel(normed), p.attention(normed, **shared)
        with ops.fused("attention_residual"):
            both = ops.add(ops.add(first, p.attention_output_norm(mixed)), laurel)
            x = ops.scale(both, 0.5**0.5)
            normed = p.ffn_norm(x)
        fed = p.ffn(normed)
        with ops.fused("correct"):
            y = ops.add(x, p.ffn_output_norm(fed))
            streams = p.altup(predicted, first, y)
            x = ops.at(streams, "n", 0)
            if self.corrected_scale:
                x = ops.multiply(x, p.corrected_scale)
        x = p.per_layer(x, per_layer)
        with ops.fused("per_layer_residual"):
            rest = ops.rename(ops.add(ops.rest(streams, "n", "m"), x), "BTmD")
            return ops.rename(ops.lead(ops.at(streams, "n", 0), rest), "BTnD")


def ends(fields):
    """What makes streams of the embedding, and a hidden state of the streams."""
    width, streams = fields["d_model"], fields["altup_streams"]
    return {"widen": Widen(width, streams), "narrow": Narrow(width, streams)}


def altup(fields, branches):
    """The block of Gemma 3n that a card describes."""
    if set(branches) != {"attention", "ffn"}:
        fields.refuse("block", "altup", f"serial for a layer of {' and '.join(branches)}")
    if fields.of_all.get("block") != "altup":
        fields.refuse("block", "altup", "in all layers of a model, or in none")
    from .per_layer_embedding import per_layer_input

    width = fields["d_model"]
    norms = [norm(fields, width) for _ in range(6)]
    return AltUpBlock(
        width, AltUp(width, fields["altup_streams"], norms[0]), Laurel(width, fields["laurel_rank"], norms[1]),
        branches["attention"], branches["ffn"], *norms[2:], per_layer_input(fields), fields.get("altup_scale", True),
    )  # fmt: skip
