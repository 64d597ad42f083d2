"""Multi-token prediction: modules that each predict one token further, in training or to draft."""

from . import norm
from .base import Component


class TokenPrediction(Component):
    """norm(block(project([norm(x); norm(embedding of the next token)]))) (DeepSeek-AI 2024, DeepSeek-V3, eq. 21 to 23).

    Its embedding and head are the main model's. It is declared for its weights, and not part of the main forward pass.
    """

    d_model: int
    embedding_norm: Component
    hidden_norm: Component
    block: Component
    final_norm: Component

    part = "mtp"

    def weights(self):
        return {"project": "ID->D"}  # I: the two halves

    def axes(self):
        return {"I": 2, "D": self.d_model}


def token_prediction(fields, block):
    """The module that a card describes, around a block like that of its last layer."""
    width = fields["d_model"]
    norms = [norm(fields, width) for _ in range(3)]
    return TokenPrediction(width, norms[0], norms[1], block, norms[2])
