"""Mixtures of experts: a router, E feed-forwards of which a token uses A, and feed-forwards that all tokens use."""

from . import norm
from .base import Component
from .feed_forward import FeedForward, XieluFeedForward, feed_forward
from .router import router


class Experts(Component):
    """E copies of a feed-forward, stacked; each token goes through the A that an index names (Shazeer et al. 2017).

    choices: E, and those choices that are no experts. ffn: the one that each is a copy of: its own forward pass runs,
    with products that look up their matrix.
    """

    experts: int
    choices: int
    per_token: int
    ffn: FeedForward

    part, contraction_part = "moe_experts", ("moe_experts", "moe_experts")

    def weights(self):
        return {name: f"E|{spec}" for name, spec in self.ffn.weights().items()}

    def axes(self):
        return self.ffn.axes() | {"E": self.experts}

    def active(self):
        return {"E": self.per_token}

    def children(self):
        return {}  # the feed-forward is no further weights

    def forward(self, ops, p, x, index):
        """What the experts of each token make of it (BTAD). x: BTD, or BTAD with an input of its own for each."""
        return self.ffn.forward(_Routed(ops, index, self.choices), p, x)


class _Routed:
    """Operations whose products are with the experts that an index names."""

    def __init__(self, ops, index, choices):
        self._ops, self._index, self._choices = ops, index, choices

    def __getattr__(self, name):
        return getattr(self._ops, name)

    def linear(self, equation, x, weight, bias=None):
        a, b = equation.partition(",")[0], equation.partition(",")[2].partition("->")[0]
        given, made = a if x.axes == a else f"BTA{a[2:]}", f"BTA{b[len(a) - 2 :]}"
        return self._ops.routed_linear(f"{given},E{b}->{made}", x, weight, bias, self._index, self._choices)


class SharedExpert(Component):
    """A feed-forward that all tokens use (Dai et al. 2024, DeepSeekMoE, sec. 3.2).

    gated: times sigmoid(x gate), a number for each token (Qwen2-MoE).
    """

    ffn: FeedForward
    gated: bool = False

    part, contraction_part = "moe_shared", ("moe_shared", "moe_shared")

    def weights(self):
        return {"gate": "D->"} if self.gated else {}

    def axes(self):
        return {"D": self.ffn.d_model}

    def forward(self, ops, p, x):
        out = p.ffn(x)
        if not self.gated:
            return out
        gate = ops.einsum("BTD,D->BT", x, p.gate)
        with ops.fused("shared_gate"):
            return ops.multiply(out, ops.apply("sigmoid", gate))


class Latent(Component):
    """A projection into the width in which experts work, or out of it (Nemotron 3)."""

    inputs: int
    outputs: int
    spec: str

    part, contraction_part = "moe_experts", ("moe_experts", "moe_experts")

    def weights(self):
        return {"weight": self.spec}

    def axes(self):
        return dict(zip(self.spec.split("->"), (self.inputs, self.outputs)))

    def forward(self, ops, p, x):
        a, b = self.spec.split("->")
        return ops.einsum(f"BT{a},{a}{b}->BT{b}", x, p.weight)


class MixtureOfExperts(Component):
    """sum over the experts a of a token: weight_a expert_a(x), and the shared expert (Shazeer et al. 2017, eq. 1).

    scaled_input: expert_a(weight_a x) instead (Llama 4). latent_in, latent_out: around the experts. zero: some choices
    are no experts and give back what they get (LongCat-Flash 2025, sec. 2.1). bias: on the sum over experts (JetMoE).
    scale: None, or a factor on the sum of all (Cohere 2 MoE). latent_norm: of the sum over experts before it leaves
    their latent (Kimi K3).
    """

    router: Component
    experts: Experts
    shared: SharedExpert = None
    latent_in: Latent = None
    latent_out: Latent = None
    scaled_input: bool = False
    zero: bool = False
    bias: bool = False
    scale: float = None
    latent_norm: Component = None

    part = "moe_experts"

    def weights(self):
        return {"output_bias": "D"} if self.bias else {}

    def axes(self):
        return {"D": self.router.d_model}

    def forward(self, ops, p, x):
        index, weights = p.router(x)
        given = x if self.latent_in is None else ops.rename(p.latent_in(x), "BTD")
        out = p.experts(ops.einsum("BTD,BTA->BTAD", given, weights) if self.scaled_input else given, index)
        shared = None if self.shared is None else p.shared(x)
        with ops.fused("combine"):
            if self.zero:
                out = ops.identity_where(out, given, index, self.experts.experts)
            out = ops.sum(out if self.scaled_input else ops.multiply(out, weights), "A")
            if self.latent_out is None:
                return self.added(ops, p, out, shared)
            out = ops.rename(out, "BTC")
            out = out if self.latent_norm is None else p.latent_norm(out)
        out = p.latent_out(out)
        with ops.fused("combine"):
            return self.added(ops, p, out, shared)

    def added(self, ops, p, out, shared):
        """The sum over experts, and what all tokens get."""
        if self.bias:
            out = ops.add(out, p.output_bias)
        out = out if shared is None else ops.add(out, shared)
        return out if self.scale is None else ops.scale(out, self.scale)


def mixture(fields):
    """The mixture of experts that a card describes."""
    experts, used, d_model = fields["n_experts"], fields["experts_per_token"], fields["d_model"]
    zero, latent = fields.get("n_zero_experts"), fields.get("expert_latent")
    choices = experts if zero is None else experts + zero
    ffn = feed_forward(fields, fields["expert_d_ff"], "moe_experts", "expert_bias", latent)
    if isinstance(ffn, XieluFeedForward):
        fields.refuse("ffn", "xielu", "another in a mixture of experts: its numbers belong to no expert")
    if zero is not None and ffn.bias:
        fields.refuse("expert_bias", True, "false with n_zero_experts")
    if zero is not None and latent is not None:
        fields.refuse("expert_latent", latent, "none with n_zero_experts, which give back what they get")
    around = (None, None) if latent is None else (Latent(d_model, latent, "D->C"), Latent(latent, d_model, "C->D"))
    return MixtureOfExperts(
        router(fields, choices), Experts(experts, choices, used, ffn), _shared(fields), *around,
        fields.get("expert_input_scaled", False), zero is not None, fields.get("expert_output_bias", False),
        fields.get("experts_scale"), _latent_norm(fields, latent),
    )  # fmt: skip


def _latent_norm(fields, latent):
    if not fields.get("expert_latent_norm", False):
        return None
    if latent is None:
        fields.refuse("expert_latent_norm", True, "false without expert_latent")
    return norm(fields, latent, "C")


def _shared(fields):
    count, width, gated = fields.get("n_shared_experts"), fields.get("shared_d_ff"), fields.get("shared_gate", False)
    if count is not None and width is not None:
        fields.refuse("shared_d_ff", width, "none with n_shared_experts, which gives it from expert_d_ff")
    if count is None and width is None:
        if gated:
            fields.refuse("shared_gate", True, "false, since there is no shared expert")
        return None
    width = fields["expert_d_ff"] * count if width is None else width
    return SharedExpert(feed_forward(fields, width, "moe_shared"), gated)
