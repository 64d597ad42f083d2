"""Token embedding and the head that turns the last hidden state into logits."""

from .base import Component


class TokenEmbedding(Component):
    """A row of the table for each token; `scale` multiplies it (Gemma: sqrt(d_model))."""

    vocab_size: int
    d_model: int
    scale: float = None

    part = "token_embedding"

    def weights(self):
        return {"table": "V|D"}

    def axes(self):
        return {"V": self.vocab_size, "D": self.d_model}

    def forward(self, ops, p, tokens):
        with ops.fused("embedding"):
            x = ops.gather(p.table, tokens)
            return x if self.scale is None else ops.scale(x, self.scale)


class Head(Component):
    """Logits of every token of the vocabulary: by a matrix of its own, or by the embedding table (Press and Wolf 2017)."""

    vocab_size: int
    d_model: int
    tied: bool = False

    part, contraction_part = "lm_head", ("lm_head", "lm_head")

    def weights(self):
        return {} if self.tied else {"weight": "D->V"}

    def axes(self):
        return {"V": self.vocab_size, "D": self.d_model}

    def forward(self, ops, p, x, table):
        if self.tied:
            return ops.einsum("BTD,VD->BTV", x, table)
        return ops.einsum("BTD,DV->BTV", x, p.weight)
