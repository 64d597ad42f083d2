"""Feed-forward layers. d_ff is the width after the gate."""

from .base import Component

# name on a card: (elementwise primitive, gated)
KINDS = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gelu_tanh": ("gelu_tanh", False),
    "silu": ("silu", False),
    "reglu": ("relu", True),
    "geglu": ("gelu", True),
    "geglu_tanh": ("gelu_tanh", True),
    "swiglu": ("silu", True),
}


class FeedForward(Component):
    """down(activation(up(x))): two matrices (Vaswani et al. 2017, sec. 3.3)."""

    d_model: int
    d_ff: int
    activation: str = "relu"
    bias: bool = False

    part, contraction_part = "ffn", ("ffn", "ffn")

    def weights(self):
        biases = {"up_bias": "F", "down_bias": "D"} if self.bias else {}
        return {"up": "D->F", "down": "F->D"} | biases

    def axes(self):
        return {"D": self.d_model, "F": self.d_ff}

    def forward(self, ops, p, x):
        hidden = ops.apply(self.activation, ops.linear("BTD,DF->BTF", x, p.up, p.get("up_bias")))
        return ops.linear("BTF,FD->BTD", hidden, p.down, p.get("down_bias"))


class GatedFeedForward(FeedForward):
    """down(activation(gate(x)) * up(x)): three matrices (Shazeer 2020, eq. 5, 6)."""

    def weights(self):
        biases = {"gate_bias": "F", "up_bias": "F", "down_bias": "D"} if self.bias else {}
        return {"gate": "D->F", "up": "D->F", "down": "F->D"} | biases

    def forward(self, ops, p, x):
        with ops.projections():
            gate = ops.linear("BTD,DF->BTF", x, p.gate, p.get("gate_bias"))
            up = ops.linear("BTD,DF->BTF", x, p.up, p.get("up_bias"))
        with ops.fused("activation"):
            hidden = ops.multiply(ops.apply(self.activation, gate), up)
        return ops.linear("BTF,FD->BTD", hidden, p.down, p.get("down_bias"))


def feed_forward(fields):
    """The feed-forward that a card describes."""
    activation, gated = KINDS[fields.get("ffn", "swiglu")]
    kind = GatedFeedForward if gated else FeedForward
    return kind(fields["d_model"], fields["d_ff"], activation, fields.get("ffn_bias", False))
