"""Gated delta rule: a state that overwrites what a key held before, with a decay a head or a channel."""

from .base import Component
from .norms import RMSNorm


class GatedDelta(Component):
    """Gated DeltaNet (Yang et al. 2024, eq. 10 and sec. 3.3; as Qwen3-Next has it), a state of H x U numbers a head.

        h = exp(g) h;  h = h + k (beta (v - h k))^T;  y = h q,   out(norm(y) silu(gate))

    K query and key heads, R value heads on each; queries and keys have length 1, queries a factor 1/sqrt(H).
    beta_scale: None, or 2, so that a key may turn its value around (Grazzi et al. 2024; OLMo hybrid).
    """

    d_model: int
    groups: int
    group: int
    head_dim: int
    value_dim: int
    norm: Component
    kernel: int = 4
    chunk: int = 64
    activation: str = "silu"
    beta_scale: float = None

    part, contraction_part, gate = "mixer", ("mixer_proj", "mixer_core"), "silu"

    def weights(self):
        return {
            "q": "D->KH", "k": "D->KH", "v": "D->KRU", "conv_q": "J->KH", "conv_k": "J->KH", "conv_v": "J->KRU",
            "beta": "D->KR", "a_log": "KR", "out": "KRU->D", **self.gates(),
        }  # fmt: skip

    def gates(self):
        """Weights of the decay and of the output gate."""
        return {"decay": "D->KR", "dt_bias": "KR", "gate": "D->KRU"}

    def axes(self):
        return {"D": self.d_model, "K": self.groups, "R": self.group, "H": self.head_dim, "U": self.value_dim,
                "J": self.kernel}  # fmt: skip

    def forward(self, ops, p, x):
        with ops.projections(x):
            q, k = ops.einsum("BTD,DKH->BTKH", x, p.q), ops.einsum("BTD,DKH->BTKH", x, p.k)
            v, beta = ops.einsum("BTD,DKRU->BTKRU", x, p.v), ops.einsum("BTD,DKR->BTKR", x, p.beta)
            decay, gate = self.gated(ops, p, x)
        with ops.fused("conv"):
            q, k, v = (
                ops.apply(self.activation, ops.convolve(f"{name}_state", each, getattr(p, name)))
                for name, each in (("conv_q", q), ("conv_k", k), ("conv_v", v))
            )
        with ops.fused("delta"):
            y = self.mixed(ops, p, q, k, v, beta, decay)
        with ops.fused("gated_norm"):
            y = ops.multiply(p.norm(y), ops.apply(type(self).gate, gate))
        return ops.einsum("BTKRU,KRUD->BTD", y, p.out)

    def gated(self, ops, p, x):
        """Decay (before its bias) and output gate of x."""
        return ops.einsum("BTD,DKR->BTKR", x, p.decay), ops.einsum("BTD,DKRU->BTKRU", x, p.gate)

    def mixed(self, ops, p, q, k, v, beta, decay):
        """The delta rule on queries, keys and values."""
        eps = 1e-6 / self.head_dim
        q = ops.scale(ops.norm("l2_norm", q, eps=eps), 1 / self.head_dim)
        k = ops.scale(ops.norm("l2_norm", k, eps=eps), self.head_dim**-0.5)
        beta = ops.apply("sigmoid", beta)
        if self.beta_scale is not None:
            beta = ops.scale(beta, self.beta_scale)
        decay = self.decays(ops, p, decay)
        start = ops.hold("state", "KRHU", (self.groups, self.group, self.head_dim, self.value_dim))
        body, chunk = (self.step, None) if ops.recurrent else (self.of_chunk, self.chunk)
        (y,), (end,) = ops.scan("tokens", [q, k, v, decay, beta], [start], lambda *given: body(ops, *given), chunk)
        ops.write("state", end)
        return y

    def decays(self, ops, p, decay):
        """The log decay of each token, g."""
        decay = ops.apply("softplus", ops.add(decay, p.dt_bias))
        return ops.multiply(decay, ops.scale(ops.apply("exp", p.a_log), -1.0))

    def step(self, ops, slices, carried):
        """One token."""
        (q, k, v, decay, beta), (state,) = slices, carried
        state = ops.multiply(state, ops.apply("exp", decay))
        held = ops.einsum("BKRHU,BKH->BKRU", state, k, name="held")
        written = ops.multiply(ops.subtract(v, held), beta)
        state = ops.add(state, ops.einsum("BKH,BKRU->BKRHU", k, written))
        return [ops.einsum("BKRHU,BKH->BKRU", state, q, name="read")], [state]

    def of_chunk(self, ops, slices, carried):
        """A chunk of Q tokens (sec. 3.3): what they write depends on one another by a triangular system."""
        (q, k, v, decay, beta), (state,) = slices, carried
        q, k = (ops.spread(each, "R", self.group, behind="K") for each in (q, k))
        total = ops.apply("accumulate", decay)  # log decay from before the chunk up to each token
        grown = ops.apply("exp", total)
        strong = ops.multiply(k, beta)
        system, inside = self.pairs(ops, strong, k, total, "system"), self.pairs(ops, q, k, total, "inside")
        new = ops.solve(system, ops.einsum("BQKRU,BQKR->BKRQU", v, beta))
        held = ops.solve(system, ops.einsum(f"BQKRH,{grown.axes}->BKRQH", strong, grown))
        new = ops.subtract(new, ops.einsum("BKRQH,BKRHU->BKRQU", held, state, name="held"))
        y = ops.add(ops.einsum("BQKRH,BKRHU->BQKRU", ops.multiply(q, grown), state, name="before"),
                    ops.einsum("BKRQS,BKRSU->BQKRU", inside, ops.rename(new, "BKRSU"), name="mixed"))  # fmt: skip
        left = ops.multiply(k, ops.apply_by_row("decay_to_end", total))
        added = ops.einsum("BQKRH,BKRQU->BKRHU", left, new, name="added")
        return [y], [ops.add(ops.multiply(state, ops.at(grown, "Q", -1)), added)]

    def pairs(self, ops, q, k, total, name):
        """q k^T of the pairs of a chunk, with what decays between them; 0 where the key comes later."""
        pairs = ops.einsum("BQKRH,BSKRH->BKRQS", q, ops.rename(k, "BSKRH"), name=name)
        return ops.multiply(pairs, ops.pair_decay(total, "BKRQS"))


class KimiDelta(GatedDelta):
    """Kimi delta attention (Kimi Team 2025, sec. 3): each channel of a key has a decay; gates go through Y numbers.

    gate_rank: Y, or None for gates of one matrix each (Ling 3). full_output: the output gate is one matrix, the decay
    is not (Kimi K3). decay_floor: None, or the least log decay g of a token, which then is decay_floor sigmoid(exp(A)
    (x decay + dt_bias)).

    Pairs of a chunk are a product of queries that grow and keys that shrink away from its middle, so that neither
    leaves what floating point holds.
    """

    gate_rank: int = None
    decay_floor: float = None
    full_output: bool = False

    gate = "sigmoid"

    def gates(self):
        if self.gate_rank is None:
            return {"decay": "D->KRH", "dt_bias": "KRH", "gate": "D->KRU"}
        found = {"decay_down": "D->Y", "decay_up": "Y->KRH", "dt_bias": "KRH"}
        return found | ({"gate": "D->KRU"} if self.full_output else {"gate_down": "D->Y", "gate_up": "Y->KRU"})

    def axes(self):
        return GatedDelta.axes(self) | {"Y": self.gate_rank}

    def gated(self, ops, p, x):
        if self.gate_rank is None:
            return ops.einsum("BTD,DKRH->BTKRH", x, p.decay), ops.einsum("BTD,DKRU->BTKRU", x, p.gate)
        decay = ops.einsum("BTY,YKRH->BTKRH", ops.einsum("BTD,DY->BTY", x, p.decay_down), p.decay_up)
        if self.full_output:
            return decay, ops.einsum("BTD,DKRU->BTKRU", x, p.gate)
        return decay, ops.einsum("BTY,YKRU->BTKRU", ops.einsum("BTD,DY->BTY", x, p.gate_down), p.gate_up)

    def decays(self, ops, p, decay):
        if self.decay_floor is None:
            return GatedDelta.decays(self, ops, p, decay)
        decay = ops.multiply(ops.add(decay, p.dt_bias), ops.apply("exp", p.a_log))
        return ops.scale(ops.apply("sigmoid", decay), self.decay_floor)

    def pairs(self, ops, q, k, total, name):
        grown = ops.apply("exp", ops.subtract(total, ops.at(total, "Q", self.chunk // 2)))
        q, k = ops.multiply(q, grown), ops.rename(ops.divide(k, grown), "BSKRH")
        return ops.apply("earlier", ops.einsum("BQKRH,BSKRH->BKRQS", q, k, name=name))


def gated_delta(fields, causal=True, kind=GatedDelta, **more):
    """The gated delta rule that a card describes."""
    heads, head_dim = fields["n_mixer_heads"], fields["mixer_head_dim"]
    groups, value_dim = fields.get("n_mixer_groups", heads), fields.get("mixer_value_dim", head_dim)
    norm = RMSNorm(value_dim, fields.get("mixer_norm_eps", fields.get("norm_eps", 1e-5)), "U")
    return kind(fields["d_model"], groups, fields.divided("n_mixer_heads", heads, "n_mixer_groups", groups), head_dim,
                value_dim, norm, fields.get("conv_kernel", 4), fields.get("chunk_size", 64),
                fields.get("mixer_activation", "silu"), fields.get("beta_scale"), **more)  # fmt: skip


def kimi_delta(fields, causal=True):
    """The Kimi delta attention that a card describes."""
    rank, floor = fields.get("gate_rank", fields["mixer_head_dim"]), fields.get("decay_floor")
    if floor is not None and floor >= 0:
        fields.refuse("decay_floor", floor, "a number below 0, the logarithm of a decay")
    if fields.get("gates_full_rank", False):
        if fields.get("gate_rank") is not None:
            fields.refuse("gate_rank", rank, "none with gates_full_rank = true")
        rank = None
    full = fields.get("output_gate_full_rank", False)
    return gated_delta(fields, kind=KimiDelta, gate_rank=rank, decay_floor=floor, full_output=full)
