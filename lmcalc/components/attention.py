"""Softmax attention with a key/value cache: multi-head, multi-query, grouped-query."""

from . import NORMS, load
from .base import Component


class Attention(Component):
    """Softmax attention: K key/value heads, R query heads on each.

    MHA is R = 1 (Vaswani et al. 2017), MQA is K = 1 (Shazeer 2019), else GQA (Ainslie et al. 2023). K*R*H need not
    equal D. bias: "none", "qkv", "out" or "all". rotary, relative: what turns q and k, what changes scores. norm_last:
    q and k are normed after they are turned. clip, softcap: None, or the number. scale: of the scores, None for
    1/sqrt(H). sinks: a logit a head that only the softmax sees. window: keys that a query may attend to, itself
    included (Beltagy et al. 2020), None for all. causal: False in an encoder, which sees both sides and keeps no cache.
    """

    d_model: int
    kv_heads: int
    group: int
    head_dim: int
    bias: str = "none"
    rotary: Component = None
    relative: Component = None
    q_norm: Component = None
    k_norm: Component = None
    norm_last: bool = False
    clip: float = None
    scale: float = None
    softcap: float = None
    sinks: bool = False
    window: int = None
    causal: bool = True

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        found = {"q": "D->KRH", "k": "D->KH", "v": "D->KH", "out": "KRH->D"}
        if self.bias in ("qkv", "all"):
            found |= {"q_bias": "KRH", "k_bias": "KH", "v_bias": "KH"}
        if self.bias in ("out", "all"):
            found |= {"out_bias": "D"}
        return found | ({"sink": "KR"} if self.sinks else {})

    def axes(self):
        return {"D": self.d_model, "K": self.kv_heads, "R": self.group, "H": self.head_dim}

    def forward(self, ops, p, x, bias=None):
        """x (BTD) mixed over the tokens. bias: the table of relative biases of the stack, where it has one."""
        q, k, v = self.project(ops, p, x)
        with ops.fused("rotary_cache"):
            q, k, v = self.place(ops, p, q, k, v)
            k, v = self.remember(ops, k, v)
        with ops.fused("core"):  # scores stay on chip
            mixed = self.mix(ops, p, q, k, v, ops.causal(self.window) if self.causal else None, bias)
        return ops.linear("BTKRH,KRHD->BTD", mixed, p.out, p.get("out_bias"))

    def project(self, ops, p, x):
        """Queries, keys and values of x."""
        with ops.projections(x):
            q = ops.linear("BTD,DKRH->BTKRH", x, p.q, p.get("q_bias"))
            k = ops.linear("BTD,DKH->BTKH", x, p.k, p.get("k_bias"))
            v = ops.linear("BTD,DKH->BTKH", x, p.v, p.get("v_bias"))
        return q, k, v

    def place(self, ops, p, q, k, v):
        """Queries, keys and values clipped, normed and turned to their positions."""
        if self.clip is not None:
            q, k, v = (ops.apply("clip", each, by=self.clip) for each in (q, k, v))
        if self.q_norm is not None and not self.norm_last:
            q, k = p.q_norm(q), p.k_norm(k)
        if self.rotary is not None:
            q, k = p.rotary(q), p.rotary(k)
        if self.q_norm is not None and self.norm_last:
            q, k = p.q_norm(q), p.k_norm(k)
        return q, k, v

    def remember(self, ops, k, v):
        """All keys and values that queries may attend to (BS...): the cache; in an encoder the new ones themselves."""
        if not self.causal:
            return ops.rename(k, "BSKH"), ops.rename(v, "BSKH")
        return ops.append("k", k, self.window), ops.append("v", v, self.window)

    def mix(self, ops, p, q, k, v, mask, bias=None, keys="S"):
        """softmax(scores) v (Vaswani et al. 2017, eq. 1); `keys` is the axis of keys and values."""
        relative, content = self.relative, q
        if relative is not None:
            content = relative.content(ops, p.relative, q)
        scores = ops.einsum(f"BTKRH,B{keys}KH->BKRT{keys}", content, k, mask=mask, name="scores")
        if relative is not None and not relative.scaled:
            scores = p.relative(scores, q, self.window, bias)
        if self.scale != 1:
            scores = ops.scale(scores, self.head_dim**-0.5 if self.scale is None else self.scale)
        if relative is not None and relative.scaled:
            scores = p.relative(scores, q, self.window, bias)
        if self.softcap is not None:
            scores = ops.apply("softcap", scores, cap=self.softcap)
        weights = ops.softmax(scores, keys, p.get("sink"))
        return ops.einsum(f"BKRT{keys},B{keys}KH->BTKRH", weights, v, name="mixed")


def attention(fields, causal=True):
    """The attention that a card describes; not causal in an encoder."""
    heads, window = fields["n_heads"], fields.get("window")
    kv_heads = fields.get("n_kv_heads", heads)
    group = fields.divided("n_heads", heads, "n_kv_heads", kv_heads)
    head_dim = fields.get("head_dim") or fields.divided("d_model", fields["d_model"], "n_heads", heads)
    if window is not None and not causal:
        fields.refuse("window", window, "none in an encoder, which sees both sides of a token")
    if isinstance(window, int) and window < 1:
        fields.refuse("window", window, "an integer of at least 1, the query itself included")
    rotary, relative, how = None, None, fields.get("positions", "rotary")
    if how == "rotary":
        rotary = load(("rotary", "rotary"))(fields, head_dim)
    elif how not in ("none", "learned", "sinusoidal"):
        relative = load(("relative", "relative"))(fields, how, kv_heads, group, head_dim, causal)
    return Attention(
        fields["d_model"], kv_heads, group, head_dim, fields.get("attention_bias", "none"), rotary, relative,
        *qk_norm(fields, kv_heads, group, head_dim), fields.get("qkv_clip"), fields.get("score_scale"),
        fields.get("attention_softcap"), fields.get("attention_sinks", False), window, causal,
    )  # fmt: skip


def qk_norm(fields, kv_heads, group, head_dim):
    """(norm of queries, norm of keys, whether they come after the rotary turn), as a card describes them."""
    how = fields.get("qk_norm", "none")
    if how == "none":
        return None, None, False
    eps = fields.get("norm_eps", 1e-5)
    if how == "l2":
        both = load(("norms", "L2Norm"))(eps)
        return both, both, True
    kind = load(NORMS[fields.get("qk_norm_kind") or fields.get("norm", "rmsnorm")])
    if how == "head":
        return kind(head_dim, eps, "H"), kind(head_dim, eps, "H"), False
    over = (1, 1) if how == "each_head" else (3, 2)
    return (
        kind((kv_heads, group, head_dim), eps, "KRH", over[0]), kind((kv_heads, head_dim), eps, "KH", over[1]), False,
    )  # fmt: skip
