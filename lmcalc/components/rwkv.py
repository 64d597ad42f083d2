"""RWKV-4: a recurrence that averages values with weights exp(key), and its channel mix (Peng et al. 2023)."""

from .base import Component


def shifted(ops, p, x, names):
    """Each token mixed with the one before, x mu + x_before (1 - mu), for each name (Peng et al. 2023, eq. 11)."""
    with ops.fused("shift"):
        before = ops.previous("shift", x)
        apart = ops.subtract(x, before)
        return [ops.add(ops.multiply(apart, getattr(p, f"mix_{name}")), before) for name in names]


class TimeMix(Component):
    """Time mix (Peng et al. 2023, sec. 3.1, eq. 14 to 16): for each channel a sum, a weight, their logarithmic scale.

    wkv = (sum of exp(k_i - (t - 1 - i) w) v_i over i < t, and exp(u + k_t) v_t) / (the same without v)
    out(sigmoid(r) wkv)
    """

    d_model: int
    width: int

    part, contraction_part = "mixer", ("mixer_proj", "mixer_core")

    def weights(self):
        return {"mix_k": "D", "mix_v": "D", "mix_r": "D", "k": "D->I", "v": "D->I", "r": "D->I", "decay": "I",
                "first": "I", "out": "I->D"}  # fmt: skip

    def axes(self):
        return {"D": self.d_model, "I": self.width}

    def forward(self, ops, p, x):
        mixed = shifted(ops, p, x, "kvr")
        k, v, r = (ops.einsum("BTD,DI->BTI", each, getattr(p, name)) for name, each in zip("kvr", mixed))
        with ops.fused("wkv"):
            fade, first = ops.scale(ops.apply("exp", p.decay), -1.0), p.first
            start = [ops.hold(name, "I", (self.width,)) for name in ("sum", "weight", "scale")]
            (y,), end = ops.scan("tokens", [k, v], start, lambda *given: step(ops, fade, first, *given))
            for name, each in zip(("sum", "weight", "scale"), end):
                ops.write(name, each)
            y = ops.multiply(ops.apply("sigmoid", r), y)
        return ops.einsum("BTI,ID->BTD", y, p.out)


def step(ops, fade, first, slices, carried):
    """One token; sum and weight are meant times exp(scale), which keeps them within range (appendix D)."""
    (k, v), (total, weight, scale) = slices, carried

    def joined(old, new):
        """Sum and weight with v added at logarithmic weight `new`, and their scale."""
        top = ops.maximum(old, new)
        a, b = (ops.apply("exp", ops.subtract(each, top)) for each in (old, new))
        return ops.add(ops.multiply(total, a), ops.multiply(v, b)), ops.add(ops.multiply(weight, a), b), top

    above, below, _ = joined(scale, ops.add(k, first))
    return [ops.divide(above, below)], list(joined(ops.add(scale, fade), k))


class ChannelMix(Component):
    """Channel mix (Peng et al. 2023, sec. 3.1, eq. 17): sigmoid(r) times two matrices with a squared ReLU."""

    d_model: int
    d_ff: int

    part, contraction_part = "ffn", ("ffn", "ffn")

    def weights(self):
        return {"mix_k": "D", "mix_r": "D", "k": "D->F", "v": "F->D", "r": "D->I"}

    def axes(self):
        return {"D": self.d_model, "F": self.d_ff, "I": self.d_model}

    def forward(self, ops, p, x):
        k, r = shifted(ops, p, x, "kr")
        k = ops.apply("relu2", ops.einsum("BTD,DF->BTF", k, p.k))
        v, r = ops.einsum("BTF,FD->BTD", k, p.v), ops.einsum("BTD,DI->BTI", r, p.r)
        with ops.fused("gate"):
            return ops.multiply(ops.apply("sigmoid", ops.rename(r, "BTD")), v)


def rwkv(fields, causal=True):
    """The time mix that a card describes."""
    return TimeMix(fields["d_model"], fields.get("mixer_width", fields["d_model"]))


def channel_mix(fields):
    """The channel mix that a card describes."""
    return ChannelMix(fields["d_model"], fields["d_ff"])
