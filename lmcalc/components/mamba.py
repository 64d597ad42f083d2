"""Mamba: a selective state space, whose decay and input depend on the token (Gu and Dao 2023)."""

from .base import Component
from .norms import L2Norm, RMSNorm


class Mamba(Component):
    """The block of Mamba (Gu and Dao 2023, fig. 3 and alg. 2), for each channel a state of X numbers.

        h = exp(dt A) h + dt B x,   y = C h + skip x,   out(y silu(gate))

    dt, B and C come from x; dt through Y numbers. N heads have their own B, C and dt (Zamba); N is 1 elsewhere. bias:
    "none", "in", "out" or "all". dt_norm, b_norm, c_norm: norms of what x gives (Jamba; without weights: Falcon Mamba).
    The state is one kernel from its first token to its last: it goes through memory once, as alg. 2 has it.
    """

    d_model: int
    heads: int
    head_dim: int
    state_dim: int
    dt_rank: int
    kernel: int = 4
    bias: str = "none"
    conv_bias: bool = True
    activation: str = "silu"
    dt_norm: Component = None
    b_norm: Component = None
    c_norm: Component = None

    part, contraction_part = "mixer", ("mixer_proj", "mixer_core")

    def weights(self):
        found = {
            "x": "D->NH", "gate": "D->NH", "conv": "J->NH", "dt_down": "N|H->Y", "b": "N|H->X", "c": "N|H->X",
            "dt_up": "N|Y->H", "dt_bias": "NH", "a_log": "NHX", "skip": "NH", "out": "NH->D",
        }  # fmt: skip
        if self.conv_bias:
            found["conv_bias"] = "NH"
        if self.bias in ("in", "all"):
            found |= {"x_bias": "NH", "gate_bias": "NH"}
        return found | ({"out_bias": "D"} if self.bias in ("out", "all") else {})

    def axes(self):
        return {"D": self.d_model, "N": self.heads, "H": self.head_dim, "X": self.state_dim, "Y": self.dt_rank,
                "J": self.kernel}  # fmt: skip

    def forward(self, ops, p, x):
        with ops.fused("in"):  # one matrix
            gate = ops.linear("BTD,DNH->BTNH", x, p.gate, p.get("gate_bias"))
            x = ops.linear("BTD,DNH->BTNH", x, p.x, p.get("x_bias"))
        with ops.fused("conv"):
            x = ops.apply(self.activation, ops.convolve("conv_state", x, p.conv, p.get("conv_bias")))
        dt, b, c = self.selected(ops, p, x)
        with ops.fused("scan"):
            dt = ops.apply("softplus", ops.add(dt, p.dt_bias))
            a = ops.scale(ops.apply("exp", p.a_log), -1.0)
            start = ops.hold("state", "NHX", (self.heads, self.head_dim, self.state_dim))
            (y,), (end,) = ops.scan(
                "tokens", [dt, ops.multiply(x, dt), b, c], [start], lambda *given: step(ops, a, *given)
            )
            ops.write("state", end)
            y = ops.add(y, ops.multiply(x, p.skip))
            y = ops.multiply(y, ops.apply(self.activation, gate))
        return ops.linear("BTNH,NHD->BTD", y, p.out, p.get("out_bias"))

    def selected(self, ops, p, x):
        """dt (before its bias), B and C of x."""
        with ops.fused("select"):  # one matrix
            dt = ops.einsum("BTNH,NHY->BTNY", x, p.dt_down)
            b, c = ops.einsum("BTNH,NHX->BTNX", x, p.b), ops.einsum("BTNH,NHX->BTNX", x, p.c)
        if self.dt_norm is not None:
            with ops.fused("select_norms"):
                dt, b, c = p.dt_norm(dt), p.b_norm(b), p.c_norm(c)
        return ops.einsum("BTNY,NYH->BTNH", dt, p.dt_up, part="mixer_core"), b, c


def step(ops, a, slices, carried):
    """One token: `x` is what it adds, times dt."""
    (dt, x, b, c), (state,) = slices, carried
    decay = ops.apply("exp", ops.einsum("BNH,NHX->BNHX", dt, a))
    state = ops.add(ops.multiply(state, decay), ops.einsum("BNH,BNX->BNHX", x, b))
    return [ops.einsum("BNHX,BNX->BNH", state, c)], [state]


def mamba(fields, causal=True):
    """The Mamba layer that a card describes."""
    width, heads = fields["d_inner"], fields.get("n_mixer_heads", 1)
    state_dim, rank, kind = fields["state_dim"], fields["dt_rank"], fields.get("mixer_norm", "none")
    eps, norms = fields.get("mixer_norm_eps", fields.get("norm_eps", 1e-5)), {}
    if kind == "selected":
        norms = {
            "dt_norm": RMSNorm(rank, eps, "Y"),
            "b_norm": RMSNorm(state_dim, eps, "X"),
            "c_norm": RMSNorm(state_dim, eps, "X"),
        }
    elif kind == "selected_plain":
        norms = dict.fromkeys(("dt_norm", "b_norm", "c_norm"), L2Norm(eps))
    elif kind != "none":
        fields.refuse("mixer_norm", kind, "none, selected or selected_plain, of what Mamba selects")
    return Mamba(fields["d_model"], heads, fields.divided("d_inner", width, "n_mixer_heads", heads), state_dim, rank,
                 fields.get("conv_kernel", 4), fields.get("mixer_bias", "none"), fields.get("conv_bias", True),
                 fields.get("mixer_activation", "silu"), **norms)  # fmt: skip
