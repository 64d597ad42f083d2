"""Mamba-2: a state space with one decay a head, in chunks of matrix products or token by token (Dao and Gu 2024)."""

from . import load
from .base import Component
from .norms import RMSNorm


class Mamba2(Component):
    """State space duality (Dao and Gu 2024, sec. 6 and listing 1), for each head a state of H x X numbers.

        h = exp(dt A) h + dt x B^T,   y = h C + skip x,   out(norm(y silu(gate)))

    N = K R heads of H; R heads of a group share B and C, which listing 1 (and this) spreads over them. bias: "none",
    "in", "out" or "all". norm: of the gated output, or of the output before its gate (gate_last), over the heads of a
    group. limit: least and largest time step, or None; as in the published kernels a single decode step has none.
    scales: None, or factors on gate, x, B, C, dt; in_scale: on the input (Falcon-H1, sec. 3).
    """

    d_model: int
    groups: int
    group: int
    head_dim: int
    state_dim: int
    kernel: int = 4
    chunk: int = 256
    bias: str = "none"
    conv_bias: bool = True
    activation: str = "silu"
    norm: Component = None
    gate_last: bool = False
    limit: tuple = None
    scales: tuple = None
    in_scale: float = None

    part, contraction_part = "mixer", ("mixer_proj", "mixer_core")

    def weights(self):
        found = {
            "gate": "D->KRH", "x": "D->KRH", "b": "D->KX", "c": "D->KX", "dt": "D->KR",
            "conv_x": "J->KRH", "conv_b": "J->KX", "conv_c": "J->KX",
            "dt_bias": "KR", "a_log": "KR", "skip": "KR", "out": "KRH->D",
        }  # fmt: skip
        if self.conv_bias:
            found |= {"conv_x_bias": "KRH", "conv_b_bias": "KX", "conv_c_bias": "KX"}
        if self.bias in ("in", "all"):
            found |= {"gate_bias": "KRH", "x_bias": "KRH", "b_bias": "KX", "c_bias": "KX", "in_dt_bias": "KR"}
        return found | ({"out_bias": "D"} if self.bias in ("out", "all") else {})

    def axes(self):
        return {"D": self.d_model, "K": self.groups, "R": self.group, "H": self.head_dim, "X": self.state_dim,
                "J": self.kernel}  # fmt: skip

    def forward(self, ops, p, x):
        gate, x, b, c, dt = self.project(ops, p, x)
        with ops.fused("conv"):
            x, b, c = (
                ops.apply(self.activation, ops.convolve(f"{name}_state", each, getattr(p, name), p.get(f"{name}_bias")))
                for name, each in (("conv_x", x), ("conv_b", b), ("conv_c", c))
            )
        with ops.fused("scan"):
            y = self.mixed(ops, p, x, b, c, dt)
        with ops.fused("gated_norm"):
            gate = ops.apply(self.activation, gate)
            if self.norm is not None and self.gate_last:
                y = p.norm(y)
            y = ops.multiply(y, gate)
            if self.norm is not None and not self.gate_last:
                y = p.norm(y)
        return ops.linear("BTKRH,KRHD->BTD", y, p.out, p.get("out_bias"))

    def project(self, ops, p, x):
        """Gate, x, B, C and dt of the input: one matrix."""
        with ops.fused("in"):
            if self.in_scale is not None:
                x = ops.scale(x, self.in_scale)
            found = [
                ops.linear(f"BTD,D{axes}->BT{axes}", x, getattr(p, name), p.get(bias))
                for name, axes, bias in (
                    ("gate", "KRH", "gate_bias"), ("x", "KRH", "x_bias"), ("b", "KX", "b_bias"), ("c", "KX", "c_bias"),
                    ("dt", "KR", "in_dt_bias"),
                )
            ]  # fmt: skip
            return found if self.scales is None else [ops.scale(*each) for each in zip(found, self.scales)]

    def mixed(self, ops, p, x, b, c, dt):
        """The state space on x."""
        dt = ops.apply("softplus", ops.add(dt, p.dt_bias))
        if self.limit is not None and not ops.recurrent:
            dt = ops.apply("clamp", dt, low=self.limit[0], high=self.limit[1])
        a = ops.multiply(dt, ops.scale(ops.apply("exp", p.a_log), -1.0))  # log decay of each token
        start = ops.hold("state", "KRHX", (self.groups, self.group, self.head_dim, self.state_dim))
        body, chunk = (self.step, None) if ops.recurrent else (self.of_chunk, self.chunk)
        (y,), (end,) = ops.scan(
            "tokens", [ops.multiply(x, dt), a, b, c], [start], lambda *given: body(ops, *given), chunk
        )
        ops.write("state", end)
        return ops.add(y, ops.multiply(x, p.skip))

    def step(self, ops, slices, carried):
        """One token."""
        (x, a, b, c), (state,) = slices, carried
        state = ops.add(ops.multiply(state, ops.apply("exp", a)), ops.einsum("BKRH,BKX->BKRHX", x, b))
        return [ops.einsum("BKRHX,BKX->BKRH", state, c)], [state]

    def of_chunk(self, ops, slices, carried):
        """A chunk of Q tokens: each sees those of the chunk by pairs, all before by the state (listing 1)."""
        (x, a, b, c), (state,) = slices, carried
        b, c = (ops.spread(each, "R", self.group, behind="K") for each in (b, c))
        total = ops.apply("accumulate", a)  # log decay from before the chunk up to each token
        pairs = ops.einsum("BQKRX,BSKRX->BKRQS", c, ops.rename(b, "BSKRX"), name="pairs")
        pairs = ops.multiply(pairs, ops.pair_decay(total, "BKRQS"))
        y = ops.einsum("BKRQS,BSKRH->BQKRH", pairs, ops.rename(x, "BSKRH"), name="inside")
        before = ops.einsum("BQKRX,BKRHX->BQKRH", c, state, name="before")
        y = ops.add(y, ops.multiply(before, ops.apply("exp", total)))
        left = ops.multiply(b, ops.apply_by_row("decay_to_end", total))
        added = ops.einsum("BQKRX,BQKRH->BKRHX", left, x, name="added")
        decay = ops.apply("exp", ops.at(total, "Q", -1))
        return [y], [ops.add(ops.multiply(state, decay), added)]


class AttentionAndMamba2(Component):
    """Attention and Mamba-2 side by side on the same input, each scaled, and summed (Falcon-H1 2025, sec. 2)."""

    attention: Component
    mamba2: Component
    attention_in_scale: float = None
    attention_out_scale: float = None
    out_scale: float = None

    def forward(self, ops, p, x):
        mixed = p.mamba2(x)
        seen = p.attention(_scaled(ops, x, self.attention_in_scale))
        with ops.fused("sum"):
            return ops.add(_scaled(ops, mixed, self.out_scale), _scaled(ops, seen, self.attention_out_scale))


def _scaled(ops, x, by):
    return x if by is None else ops.scale(x, by)


def mamba2(fields, causal=True):
    """The Mamba-2 layer that a card describes."""
    heads, groups, head_dim = fields["n_mixer_heads"], fields.get("n_mixer_groups", 1), fields["mixer_head_dim"]
    group = fields.divided("n_mixer_heads", heads, "n_mixer_groups", groups)
    kind, norm = fields.get("mixer_norm", "gated"), None
    if kind in ("gated", "before_gate"):
        eps = fields.get("mixer_norm_eps", fields.get("norm_eps", 1e-5))
        norm = RMSNorm((groups, group, head_dim), eps, "KRH", 2)
    elif kind != "none":
        fields.refuse("mixer_norm", kind, "none, gated or before_gate, of the output of Mamba-2")
    limit, scales = numbers(fields, "time_step_limit", 2), numbers(fields, "mixer_scales", 5)
    return Mamba2(fields["d_model"], groups, group, head_dim, fields["state_dim"], fields.get("conv_kernel", 4),
                  fields.get("chunk_size", 256), fields.get("mixer_bias", "none"), fields.get("conv_bias", True),
                  fields.get("mixer_activation", "silu"), norm, kind == "before_gate", limit, scales,
                  fields.get("mixer_in_scale"))  # fmt: skip


def numbers(fields, name, count):
    """A field that is a list of so many numbers, as a tuple, or None."""
    found = fields.get(name)
    if found is not None and (len(found) != count or not all(isinstance(each, (int, float)) for each in found)):
        fields.refuse(name, found, f"a list of {count} numbers")
    return found if found is None else tuple(found)


def attention_and_mamba2(fields, causal=True):
    """Both, as a card describes them."""
    attention = load(("attention", "attention"))(fields, causal)
    scales = [fields.get(name) for name in ("attention_in_scale", "attention_out_scale", "mixer_out_scale")]
    return AttentionAndMamba2(attention, mamba2(fields), *scales)
