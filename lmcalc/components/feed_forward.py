"""Feed-forward layers. d_ff is the width after the gate."""

from . import norm
from .base import Component

# name on a card: (elementwise primitive, gated); LiGLU gates with the product itself
KINDS = {
    "relu": ("relu", False),
    "relu2": ("relu2", False),
    "gelu": ("gelu", False),
    "gelu_tanh": ("gelu_tanh", False),
    "silu": ("silu", False),
    "elu": ("elu", False),
    "selu": ("selu", False),
    "xielu": ("xielu", False),
    "glu": ("sigmoid", True),
    "reglu": ("relu", True),
    "relu2glu": ("relu2", True),
    "geglu": ("gelu", True),
    "geglu_tanh": ("gelu_tanh", True),
    "swiglu": ("silu", True),
    "liglu": (None, True),
    "swiglu_clamped": ("clamped_glu", True),
    "swiglu_limited": ("limited_glu", True),
    "swiglu_capped": ("silu", True),
    "situ": ("situ", True),
}


class FeedForward(Component):
    """down(activation(up(x))): two matrices (Vaswani et al. 2017, sec. 3.3).

    sub_norm: of what goes into `down` (Wang et al. 2022, Magneto: Sub-LN; BitNet). down_bias: a bias there alone.
    """

    d_model: int
    d_ff: int
    activation: str = "relu"
    bias: bool = False
    part: str = "ffn"
    sub_norm: Component = None
    down_bias: bool = False

    @property
    def contraction_part(self):
        return self.part, self.part

    def weights(self):
        return {"up": "D->F", "down": "F->D"} | self.biases("up")

    def biases(self, *before):
        """Biases of the matrices before the activation and of the last, or of the last alone."""
        found = {f"{name}_bias": "F" for name in before} if self.bias else {}
        return found | ({"down_bias": "D"} if self.bias or self.down_bias else {})

    def axes(self):
        return {"D": self.d_model, "F": self.d_ff}

    def forward(self, ops, p, x):
        with ops.projections(x):
            up = ops.linear("BTD,DF->BTF", x, p.up, p.get("up_bias"))
        return self.out(ops, p, self.activated(ops, p, up))

    def activated(self, ops, p, up):
        """What comes out of the activation."""
        return ops.apply(self.activation, up)

    def out(self, ops, p, hidden):
        """Back to the residual stream."""
        if self.sub_norm is not None:
            hidden = p.sub_norm(hidden)
        return ops.linear("BTF,FD->BTD", hidden, p.down, p.get("down_bias"))


class XieluFeedForward(FeedForward):
    """xIELU between two matrices, with two learned numbers (Huang and Schlag 2024; Apertus 2025, sec. 2.1).

    positive = softplus(alpha_p), negative = beta + softplus(alpha_n); beta 0.5 and eps -1e-6 as in the published code.
    """

    beta: float = 0.5
    eps: float = -1e-6

    def weights(self):
        return FeedForward.weights(self) | {"alpha_p": "O", "alpha_n": "O"}

    def axes(self):
        return FeedForward.axes(self) | {"O": 1}

    def activated(self, ops, p, up):
        with ops.fused("activation"):
            positive = ops.apply("softplus", p.alpha_p)
            negative = ops.apply("shift", ops.apply("softplus", p.alpha_n), by=self.beta)
            return ops.apply("xielu", up, positive, negative, beta=self.beta, eps=self.eps)


class GatedFeedForward(FeedForward):
    """down(activation(gate(x)) * up(x)): three matrices (Dauphin et al. 2016; Shazeer 2020, eq. 5, 6)."""

    def weights(self):
        return {"gate": "D->F", "up": "D->F", "down": "F->D"} | self.biases("gate", "up")

    def forward(self, ops, p, x):
        with ops.projections(x):
            gate = ops.linear("BTD,DF->BTF", x, p.gate, p.get("gate_bias"))
            up = ops.linear("BTD,DF->BTF", x, p.up, p.get("up_bias"))
        with ops.fused("activation"):
            hidden = self.gated(ops, gate, up)
        return self.out(ops, p, hidden)

    def gated(self, ops, gate, up):
        """What comes out of gate and activation."""
        return ops.multiply(gate if self.activation is None else ops.apply(self.activation, gate), up)


class ClampedFeedForward(GatedFeedForward):
    """down(g sigmoid(alpha g) (u + 1)), gate g at most `limit` and up u within +-limit.

    Source: gpt-oss, https://github.com/openai/gpt-oss, gpt_oss/torch/model.py, `swiglu`: alpha 1.702, limit 7.
    """

    alpha: float = 1.702
    limit: float = 7.0

    def gated(self, ops, gate, up):
        return ops.apply(self.activation, gate, up, limit=self.limit, alpha=self.alpha)


class LimitedFeedForward(GatedFeedForward):
    """down(silu(g) u), gate g at most `limit` and up u within +-limit (DeepSeek V4)."""

    limit: float = 10.0

    def gated(self, ops, gate, up):
        return ops.apply(self.activation, gate, up, limit=self.limit)


class SituFeedForward(GatedFeedForward):
    """down(beta tanh(g / beta) sigmoid(g) u), u likewise within +-up_beta where that is given (Kimi K3: SiTU)."""

    beta: float = 1.0
    up_beta: float = None

    def gated(self, ops, gate, up):
        gate = ops.multiply(ops.apply("softcap", gate, cap=self.beta), ops.apply("sigmoid", gate))
        return ops.multiply(gate, up if self.up_beta is None else ops.apply("softcap", up, cap=self.up_beta))


class CappedFeedForward(GatedFeedForward):
    """down(clip(silu(g)) clip(u)): both within +-limit, the gate behind its activation (Step 3.5)."""

    limit: float = 7.0

    def gated(self, ops, gate, up):
        gate = ops.apply("clip", ops.apply(self.activation, gate), by=self.limit)
        return ops.multiply(gate, ops.apply("clip", up, by=self.limit))


SPECIAL = {"xielu": XieluFeedForward, "swiglu_clamped": ClampedFeedForward, "swiglu_limited": LimitedFeedForward,
           "swiglu_capped": CappedFeedForward, "situ": SituFeedForward}  # fmt: skip
NUMBERS = {"limit": "ffn_limit", "beta": "situ_beta", "up_beta": "situ_up_beta"}  # of special ones: their fields


def feed_forward(fields, d_ff=None, part="ffn", bias="ffn_bias", d_model=None):
    """The feed-forward that a card describes, or an expert of other widths. bias: the field that says if it has any."""
    name = (part == "moe_experts" and fields.get("expert_ffn")) or fields.get("ffn", "swiglu")
    activation, gated = KINDS[name]
    kind = SPECIAL.get(name) or (GatedFeedForward if gated else FeedForward)
    own = [name for name in NUMBERS if name in kind._fields and kind is not XieluFeedForward]
    given = {name: fields[NUMBERS[name]] for name in own if fields.get(NUMBERS[name]) is not None}
    if part == "moe_experts" and "limit" in own and fields.get("expert_ffn_limit") is not None:
        given["limit"] = fields["expert_ffn_limit"]
    d_ff = fields["d_ff"] if d_ff is None else d_ff
    if part == "ffn" and fields.get("ffn_sub_norm", False):
        given["sub_norm"] = norm(fields, d_ff, "F")
    if part == "ffn" and fields.get("ffn_down_bias", False):
        given["down_bias"] = True
    made = kind(d_model or fields["d_model"], d_ff, activation, fields.get(bias, False), part, **given)
    if part != "ffn":
        return made
    if fields.get("ffn_scales") is not None:
        from .scaled_ffn import scaled

        return scaled(fields, made)
    if fields.get("ffn_sparsity") is None:
        return made
    from .activation_sparsity import sparse

    return sparse(fields, made)
