"""Latent attention: keys and values are made from one latent a token, and only that is cached."""

import math

from ..patterns import pattern
from . import NORMS, load
from .attention import gate, temperature, tempered
from .base import Component


class LatentAttention(Component):
    """Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, sec. 2.1): N heads made from a latent of C numbers.

    A key is H numbers from the latent and Z turned ones that all heads share; a value is U numbers. The cache holds
    latent (normed) and turned key: C + Z a token. There are two ways from there, with the same result:

    expanded: keys and values of all heads are made from the latents of all S tokens, at decode of the whole context.
    absorbed: queries go through `k_up` to the latents, which are keys and values themselves; `v_up` comes last
    (appendix C: k_up is absorbed into the queries, v_up into the output).

    q_latent: queries come from Q numbers, too, or None. bias: on the way down ("qkv"), of the output ("out"), or both
    ("all"). q_scale, kv_scale: factors on the normed latents (LongCat). rotary: None where positions do not enter (Kimi
    Linear). indexer: what chooses the keys (see indexer.py). temperature: how queries grow (see attention.py). gated:
    the output times an activation of x gate, of each entry or of each head (Ling 3). q_both: queries, and the gate, are
    made from the normed latent and the latent itself, P = 2Q numbers (A.X K2). k_rope_norm: a norm of the turned key
    before it is turned (dots3). sinks: a logit a head that only the softmax sees (Hy4).
    """

    d_model: int
    heads: int
    nope_dim: int
    rope_dim: int
    v_dim: int
    kv_latent: int
    kv_norm: Component
    q_latent: int = None
    q_norm: Component = None
    rotary: Component = None
    bias: str = "none"
    scale: float = None
    q_scale: float = None
    kv_scale: float = None
    window: object = None
    indexer: Component = None
    temperature: tuple = None
    gated: bool = False
    gate_by_head: bool = False
    gate_activation: str = "sigmoid"
    q_both: bool = False
    k_rope_norm: Component = None
    sinks: bool = False

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        q = "D" if self.q_latent is None else "P" if self.q_both else "Q"
        found = {} if self.q_latent is None else {"q_down": "D->Q"}
        found |= {"q": f"{q}->NH", "q_rope": f"{q}->NZ", "kv_down": "D->C", "k_rope": "D->Z", "k_up": "C->NH",
                  "v_up": "C->NU", "out": "NU->D"}  # fmt: skip
        if self.gated:
            found["gate"] = f"{'P' if self.q_both else 'D'}->{self.gate_axes}"
        if self.sinks:
            found["sink"] = "N"
        if self.bias in ("qkv", "all"):
            found |= {f"{name}_bias": found[name][3:] for name in ("q_down", "kv_down", "k_rope") if name in found}
        return found | ({"out_bias": "D"} if self.bias in ("out", "all") else {})

    @property
    def gate_axes(self):
        """The axes of the gate of a token."""
        return "N" if self.gate_by_head else "NU"

    def axes(self):
        return {"D": self.d_model, "N": self.heads, "H": self.nope_dim, "Z": self.rope_dim, "U": self.v_dim,
                "C": self.kv_latent, "Q": self.q_latent, "P": 2 * self.q_latent if self.q_both else None}  # fmt: skip

    def forward(self, ops, p, x, **_):
        with ops.projections(x):
            given = x if self.q_latent is None else ops.linear("BTD,DQ->BTQ", x, p.q_down, p.get("q_down_bias"))
            with ops.fused("kv_down"):  # one matrix
                latent = ops.linear("BTD,DC->BTC", x, p.kv_down, p.get("kv_down_bias"))
                turned = ops.linear("BTD,DZ->BTZ", x, p.k_rope, p.get("k_rope_bias"))
        source = given  # what queries are made from; the indexer reads the normed latent alone
        if self.q_norm is not None:
            with ops.fused("q_norm"):
                normed = scaled(ops, p.q_norm(given), self.q_scale)
                source = ops.rename(ops.join(normed, given), "BTP") if self.q_both else normed
                given = normed
        with ops.projections(source), ops.fused("q_up"):  # one matrix
            axis = source.axes[-1]
            q = ops.einsum(f"BT{axis},{axis}NH->BTNH", source, p.q)
            q_turned = ops.einsum(f"BT{axis},{axis}NZ->BTNZ", source, p.q_rope)
        gate = self.gate(ops, p, source if self.q_both else x) if self.gated else None
        with ops.fused("rotary_cache"):
            latent = scaled(ops, p.kv_norm(latent), self.kv_scale)
            turned = turned if self.k_rope_norm is None else p.k_rope_norm(turned)
            if self.rotary is not None:
                q_turned, turned = p.rotary(q_turned), p.rotary(turned)
            q, q_turned = (tempered(ops, each, self.temperature) for each in (q, q_turned))
            latent, turned = ops.append("latent", latent, self.window), ops.append("rope", turned, self.window)
        mask = ops.causal(self.window) if self.indexer is None else p.indexer(x, given)
        way = self.absorbed if absorbs(ops) else self.expanded
        mixed = way(ops, p, q, q_turned, latent, turned, mask)
        if self.gated:
            with ops.fused("gate"):
                mixed = ops.multiply(mixed, ops.apply(self.gate_activation, gate))
        return ops.linear("BTNU,NUD->BTD", mixed, p.out, p.get("out_bias"))

    def gate(self, ops, p, x):
        """What the output is multiplied with, before its activation."""
        axis, gate = x.axes[-1], self.gate_axes
        with ops.projections(x):
            return ops.einsum(f"BT{axis},{axis}{gate}->BT{gate}", x, p.gate)

    def expanded(self, ops, p, q, q_turned, latent, turned, mask):
        """Softmax attention over the keys and values of all heads."""
        with ops.fused("kv_up"):  # one matrix
            k = ops.einsum("BSC,CNH->BSNH", latent, p.k_up)
            v = ops.einsum("BSC,CNU->BSNU", latent, p.v_up)
        with ops.fused("core"):
            q = ops.rename(ops.join(q, q_turned), "BTNX")
            k = ops.rename(ops.join(k, ops.spread(turned, "N", self.heads, behind="S")), "BSNX")
            scores = ops.scale(ops.einsum("BTNX,BSNX->BNTS", q, k, mask, name="scores"), self.factor)
            return ops.einsum("BNTS,BSNU->BTNU", ops.softmax(scores, "S", p.get("sink")), v, name="mixed")

    def absorbed(self, ops, p, q, q_turned, latent, turned, mask):
        """Softmax attention over the latents: one key/value head of C + Z numbers for all N query heads."""
        q = ops.einsum("BTNH,CNH->BTNC", q, p.k_up)
        if self.indexer is not None:
            latent, turned = (ops.some(each, self.indexer.topk) for each in (latent, turned))
        with ops.fused("core"):
            q = ops.rename(ops.join(q, q_turned), "BTNX")
            k = ops.rename(ops.join(latent, turned), "BSX")
            scores = ops.scale(ops.einsum("BTNX,BSX->BNTS", q, k, mask, name="scores"), self.factor)
            weights = ops.softmax(scores, "S", p.get("sink"))
            mixed = ops.einsum("BNTS,BSC->BTNC", weights, latent, name="mixed")
        return ops.einsum("BTNC,CNU->BTNU", mixed, p.v_up)

    @property
    def factor(self):
        """The factor on scores, 1/sqrt(H + Z) where not given."""
        return (self.nope_dim + self.rope_dim) ** -0.5 if self.scale is None else self.scale


def scaled(ops, x, by):
    """x times a number, if there is one."""
    return x if by is None else ops.scale(x, by)


def absorbs(ops):
    """Does this pass absorb? "best" expands a prompt, whose keys are made once, and absorbs at decode."""
    way = ops.options.get("mla", "best")
    return way == "absorbed" or (way == "best" and ops.recurrent)


def latent(fields):
    """The latent attention that a card describes."""
    d_model, heads, q_latent = fields["d_model"], fields["n_heads"], fields.get("q_latent_dim")
    nope, rope, kv_latent = fields["nope_head_dim"], fields["rope_head_dim"], fields["kv_latent_dim"]
    kv_heads, how = fields.get("n_kv_heads", heads), fields.get("positions", "rotary")
    if kv_heads is not heads and kv_heads != heads:
        fields.refuse("n_kv_heads", kv_heads, f"n_heads = {heads}, or none, since all heads are made from one latent")
    if how not in ("rotary", "none"):
        fields.refuse("positions", how, "rotary or none with latent attention")
    kind, eps = load(NORMS[fields.get("norm", "rmsnorm")]), fields.get("latent_norm_eps", fields.get("norm_eps", 1e-5))
    if q_latent is None and fields.get("q_latent_scale") is not None:
        fields.refuse("q_latent_scale", fields.get("q_latent_scale"), "none without q_latent_dim")
    both = fields.get("q_latent_both", False)
    if both and q_latent is None:
        fields.refuse("q_latent_both", both, "false without q_latent_dim")
    rotary = load(("rotary", "rotary"))(fields, rope) if how == "rotary" else None
    by_head, activation, bias = gate(fields)
    if bias is not None and bias != "none":
        fields.refuse("attention_gate_bias", bias, "none with latent attention")
    if rotary is not None and rotary.size is not rope and rotary.size != rope:
        fields.refuse("rotary_dim", rotary.size, f"none, or rope_head_dim = {rope}, with latent attention")
    return LatentAttention(
        d_model, heads, nope, rope, fields["v_head_dim"], kv_latent, kind(kv_latent, eps, "C"), q_latent,
        None if q_latent is None else kind(q_latent, eps, "Q"), rotary, fields.get("attention_bias", "none"),
        score_scale(fields, rotary, nope + rope), fields.get("q_latent_scale"), fields.get("kv_latent_scale"),
        pattern(fields), load(("indexer", "indexer"))(fields, q_latent, rotary), temperature(fields),
        fields.get("attention_gate", False), by_head, activation, both,
        kind(rope, eps, "Z") if fields.get("k_rope_norm", False) else None, fields.get("attention_sinks", False),
    )  # fmt: skip


def score_scale(fields, rotary, size):
    """The factor on scores: None for 1/sqrt(size); under yarn (0.1 mscale_all_dim ln(factor) + 1)**2 times that.

    Source: DeepSeek-V3, inference/model.py, `MLA.softmax_scale`.
    """
    given, scaling = fields.get("score_scale"), (rotary and rotary.scaling) or {}
    if given is not None or not scaling.get("mscale_all_dim") or scaling["factor"] <= 1:
        return given
    return (0.1 * scaling["mscale_all_dim"] * math.log(scaling["factor"]) + 1) ** 2 * size**-0.5
