"""The recurrent block of Griffin: a convolution and a gated linear recurrence, one number a channel."""

from .base import Component


class GatedRecurrence(Component):
    """RG-LRU behind a short convolution, beside a gate (De et al. 2024, sec. 2.3, 2.4; RecurrentGemma).

        a = exp(-8 softplus(param) r),   h = a h + sqrt(1 - a^2) (i x),   out(h gelu(gate))

    r and i are sigmoids of x, through H x U numbers for each of N heads. The first token of a sequence is not scaled.
    bias: "none", "in", "out" or "all".
    """

    d_model: int
    heads: int
    head_dim: int
    kernel: int = 4
    bias: str = "all"
    conv_bias: bool = True
    activation: str = "gelu_tanh"

    part, contraction_part = "mixer", ("mixer_proj", "mixer_core")

    def weights(self):
        found = {
            "x": "D->NH", "gate": "D->NU", "conv": "J->NH", "input_gate": "N|H->U", "input_gate_bias": "NU",
            "decay_gate": "N|H->U", "decay_gate_bias": "NU", "param": "NU", "out": "NU->D",
        }  # fmt: skip
        if self.conv_bias:
            found["conv_bias"] = "NH"
        if self.bias in ("in", "all"):
            found |= {"x_bias": "NH", "gate_bias": "NU"}
        return found | ({"out_bias": "D"} if self.bias in ("out", "all") else {})

    def axes(self):
        return {"D": self.d_model, "N": self.heads, "H": self.head_dim, "U": self.head_dim, "J": self.kernel}

    def forward(self, ops, p, x):
        with ops.projections(x):
            gate = ops.linear("BTD,DNU->BTNU", x, p.gate, p.get("gate_bias"))
            x = ops.linear("BTD,DNH->BTNH", x, p.x, p.get("x_bias"))
        x = ops.convolve("conv_state", x, p.conv, p.get("conv_bias"))
        chosen, kept = (
            ops.add(ops.einsum("BTNH,NHU->BTNU", x, getattr(p, name), part="mixer_core"), getattr(p, f"{name}_bias"))
            for name in ("input_gate", "decay_gate")
        )
        with ops.fused("recurrence"):
            x = ops.multiply(ops.rename(x, "BTNU"), ops.apply("sigmoid", chosen))
            rate = ops.scale(ops.apply("softplus", p.param), -8.0)
            decay = ops.multiply(ops.apply("sigmoid", kept), rate)  # in logarithms
            x = ops.multiply(x, ops.apply("begin", ops.apply("rest_root", decay), first=self.first(ops)))
            decay = ops.apply("exp", decay)
            start = ops.hold("state", "NU", (self.heads, self.head_dim))
            (y,), (end,) = ops.scan("tokens", [x, decay], [start], lambda *given: self.step(ops, *given))
            ops.write("state", end)
            y = ops.multiply(y, ops.apply(self.activation, gate))
        return ops.linear("BTNU,NUD->BTD", y, p.out, p.get("out_bias"))

    def first(self, ops):
        """Which tokens are the first of their sequence, booleans that broadcast against BTNU."""
        if ops.data is not None:
            return ops.data.np.arange(ops.past, ops.past + ops.new)[:, None, None] == 0

    def step(self, ops, slices, carried):
        """One token."""
        (x, decay), (state,) = slices, carried
        state = ops.add(ops.multiply(state, decay), x)
        return [state], [state]


def rg_lru(fields, causal=True):
    """The recurrent block that a card describes."""
    return GatedRecurrence(fields["d_model"], fields["n_mixer_heads"], fields["mixer_head_dim"],
                           fields.get("conv_kernel", 4), fields.get("mixer_bias", "all"),
                           fields.get("conv_bias", True), fields.get("mixer_activation", "gelu_tanh"))  # fmt: skip
