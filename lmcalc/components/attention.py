"""Softmax attention with a key/value cache: multi-head, multi-query, grouped-query."""

from ..numbers import exact_div
from ..patterns import Pattern, pattern
from . import ATTENTIONS, ENCODER_ATTENTIONS, NORMS, load
from .base import Component


class Attention(Component):
    """Softmax attention: K key/value heads, R query heads on each.

    MHA is R = 1 (Vaswani et al. 2017), MQA is K = 1 (Shazeer 2019), else GQA (Ainslie et al. 2023). K*R*H need not
    equal D. bias: "none", "qkv", "out" or "all". rotary, relative: what turns q and k, what changes scores. norm_last:
    q and k are normed after they are turned. clip, softcap: None, or the number. scale: of the scores, None for
    1/sqrt(H). sinks: a logit a head that only the softmax sees. window: keys that a query may attend to, itself
    included (Beltagy et al. 2020), or a pattern of patterns.py, None for all. causal: False in an encoder, which sees
    both sides and keeps no cache. values: how they differ from keys, see `Values`. gated: the output times
    sigmoid(x gate) (Qwen3-Next), or another gate_activation; gate_by_head: one for each head. gate_bias: None for as
    bias says, "none", or "head" for one a head. temperature: see `tempered`. leaves: the name under which later layers
    find these keys and values (see shared_kv.py). sub_norm: of what goes into `out` (Wang et al. 2022, Magneto:
    Sub-LN). reach: how many keys on either side a query of an encoder sees (ModernBERT), None for all.
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
    window: object = None
    causal: bool = True
    values: Component = None
    gated: bool = False
    temperature: tuple = None
    leaves: str = None
    gate_by_head: bool = False
    gate_activation: str = "sigmoid"
    gate_bias: str = None
    sub_norm: Component = None
    reach: int = None

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        u = self.value_axis
        found = {"q": "D->KRH", "k": "D->KH", "v": f"D->K{u}", "out": f"KR{u}->D"}
        if self.gated:
            found["gate"] = f"D->{self.gate_axes}"
        if self.bias in ("qkv", "all", "all_but_k"):
            names = ("q", "k", "v", "gate") if self.gate_bias is None else ("q", "k", "v")
            names = names if self.bias != "all_but_k" else [name for name in names if name != "k"]
            found |= {f"{name}_bias": found[name][3:] for name in names if name in found}
        if self.gated and self.gate_bias == "head":
            found["gate_bias"] = "KR"
        if self.bias in ("out", "all", "all_but_k"):
            found |= {"out_bias": "D"}
        if self.values is not None and self.values.of_keys:
            found = {name: spec for name, spec in found.items() if name not in ("v", "v_bias")}
        return found | ({"sink": "KR"} if self.sinks else {})

    @property
    def value_axis(self):
        """The axis of a value: H, or U where it has another size than a key."""
        return "H" if self.values is None or self.values.size is None else "U"

    @property
    def gate_axes(self):
        """The axes of the gate of a token."""
        return "KR" if self.gate_by_head else f"KR{self.value_axis}"

    def axes(self):
        found = {"D": self.d_model, "K": self.kv_heads, "R": self.group, "H": self.head_dim}
        return found if self.value_axis == "H" else found | {"U": self.values.size}

    def forward(self, ops, p, x, bias=None):
        """x (BTD) mixed over the tokens. bias: the table of relative biases of the stack, where it has one."""
        q, k, v = self.project(ops, p, x)
        gate = self.gate(ops, p, x) if self.gated else None
        with ops.fused("rotary_cache"):
            q, k, v = self.place(ops, p, q, k, v)
            k, v = self.remember(ops, k, v)
        with ops.fused("core"):  # scores stay on chip
            mixed = self.mix(ops, p, q, k, v, self.mask(ops), bias)
        if self.gated:
            with ops.fused("gate"):
                mixed = ops.multiply(mixed, ops.apply(self.gate_activation, gate))
        return self.out(ops, p, mixed)

    def mask(self, ops):
        """Which pairs of queries and keys there are, or None for all."""
        if self.causal:
            return ops.causal(self.window)
        return None if self.reach is None else ops.near(self.reach)

    def project(self, ops, p, x):
        """Queries, keys and values of x."""
        u = self.value_axis
        with ops.projections(x):
            q = ops.linear("BTD,DKRH->BTKRH", x, p.q, p.get("q_bias"))
            k = ops.linear("BTD,DKH->BTKH", x, p.k, p.get("k_bias"))
            if self.values is not None and self.values.of_keys:
                return q, k, k
            return q, k, ops.linear(f"BTD,DK{u}->BTK{u}", x, p.v, p.get("v_bias"))

    def gate(self, ops, p, x):
        """What the output is multiplied with, before its activation."""
        with ops.projections(x):
            return ops.linear(f"BTD,D{self.gate_axes}->BT{self.gate_axes}", x, p.gate, p.get("gate_bias"))

    def place(self, ops, p, q, k, v):
        """Queries, keys and values clipped, normed and turned to their positions."""
        if self.clip is not None:
            v = ops.apply("clip", v, by=self.clip)
        if self.values is not None:
            v = p.values(v)
        return tempered(ops, self.placed(ops, p, q, "q_norm"), self.temperature), self.placed(ops, p, k, "k_norm"), v

    def placed(self, ops, p, x, norm):
        """Queries or keys normed, clipped and turned."""
        normed = getattr(self, norm) is not None
        if normed and not self.norm_last:
            x = getattr(p, norm)(x)
        if self.clip is not None:
            x = ops.apply("clip", x, by=self.clip)
        if self.rotary is not None:
            x = p.rotary(x)
        return getattr(p, norm)(x) if normed and self.norm_last else x

    def remember(self, ops, k, v):
        """All keys and values that queries may attend to (BS...): the cache; in an encoder the new ones themselves."""
        if not self.causal:
            return ops.rename(k, "BSKH"), ops.rename(v, f"BSK{self.value_axis}")
        k, v = ops.append("k", k, self.window), ops.append("v", v, self.window)
        if self.leaves is not None:
            ops.left["keys and values", self.leaves] = k, v
        return k, v

    def out(self, ops, p, mixed):
        """Back to the residual stream."""
        if self.sub_norm is not None:
            mixed = p.sub_norm(mixed)
        return ops.linear(f"BTKR{self.value_axis},KR{self.value_axis}D->BTD", mixed, p.out, p.get("out_bias"))

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
        u = self.value_axis
        return ops.einsum(f"BKRT{keys},B{keys}K{u}->BTKR{u}", weights, v, name="mixed")


GROWTHS = {  # attention_growth on a card: how much queries grow, n is their position
    "log_next": lambda np, n, a, floor: 1 + a * np.log1p(np.floor((n + 1) / floor)),  # Llama 4
    "log": lambda np, n, a, floor: 1 + a * np.log1p(np.floor(n / floor)),  # Mistral Large 3
    "power": lambda np, n, a, floor: (1 + (n + 1) / floor) ** a,  # Beam
}


def tempered(ops, q, temperature):
    """Queries that grow with their position, so that scores over long contexts stay sharp. temperature: None, or
    (a, floor, how): a key of GROWTHS, and its numbers."""
    if temperature is None:
        return q
    growth, (by, floor, how) = None, temperature
    if ops.data is not None:
        query, _ = ops.data.positions(ops)
        growth = GROWTHS[how](ops.data.np, query, by, floor).reshape(-1, *[1] * (len(q.axes) - 2))
    return ops.apply("scale", q, by=growth)


class Values(Component):
    """How values differ from keys; each is optional.

    size: where not that of keys. of_keys: they are keys before these are turned (Gemma 4). norm: without a weight
    (Gemma 3n). scale: a factor before they are cached (MiMo-V2-Flash).
    """

    size: int = None
    of_keys: bool = False
    norm: Component = None
    scale: float = None

    def forward(self, ops, p, v):
        if self.norm is not None:
            v = p.norm(v)
        return v if self.scale is None else ops.scale(v, self.scale)


def attention(fields, causal=True):
    """The attention that a card describes; not causal in an encoder."""
    if fields.get("positions") == "disentangled":
        return load(("disentangled", "disentangled"))(fields, causal)
    for field, entry in ENCODER_ATTENTIONS.items():
        if fields.get(field):
            return load(entry)(fields, causal)
    for field, entry in ATTENTIONS.items():
        if fields.get(field):
            if not causal:
                fields.refuse(field, fields.get(field), "none in an encoder")
            return load(entry)(fields)
    return softmax_attention(fields, causal)


def softmax_attention(fields, causal=True, kind=Attention, **more):
    """Softmax attention as a card describes it, of this kind, with further fields of that kind."""
    heads, window = fields["n_heads"], pattern(fields)
    kv_heads = fields.get("n_kv_heads", heads)
    group = fields.divided("n_heads", heads, "n_kv_heads", kv_heads)
    head_dim = fields.get("head_dim") or fields.divided("d_model", fields["d_model"], "n_heads", heads)
    window, reach = (window, None) if causal else (None, _reach(fields, window))
    rotary, relative, how = None, None, fields.get("positions", "rotary")
    if how == "rotary":
        rotary = load(("rotary", "rotary"))(fields, head_dim)
    elif how not in ("none", "learned", "sinusoidal", "disentangled"):
        relative = load(("relative", "relative"))(fields, how, kv_heads, group, head_dim, causal)
    return kind(
        fields["d_model"], kv_heads, group, head_dim, fields.get("attention_bias", "none"), rotary, relative,
        *qk_norm(fields, kv_heads, group, head_dim), fields.get("qkv_clip"), fields.get("score_scale"),
        fields.get("attention_softcap"), fields.get("attention_sinks", False), window, causal, values(fields),
        fields.get("attention_gate", False), temperature(fields), leaves(fields), *gate(fields),
        sub_norm(fields, kv_heads, group, head_dim), reach, **more,
    )  # fmt: skip


def _reach(fields, window):
    """How many keys on either side a query of an encoder sees: of a window half, but for the query itself."""
    if window is None:
        return None
    if isinstance(window, Pattern):
        name = next(name for name in ("attention_chunk", "sparse_pattern") if fields.get(name) is not None)
        fields.refuse(name, fields.get(name), "none in an encoder, which sees both sides of a token")
    if isinstance(window, int) and window % 2 == 0:
        why = "an odd number in an encoder: the query itself, and as many keys before it as behind it"
        fields.refuse("window", window, why)
    return exact_div(window - 1, 2)


def values(fields):
    """How values differ from keys on a card, or None."""
    norm = load(("norms", "L2Norm"))(fields.get("norm_eps", 1e-5)) if fields.get("v_norm", False) else None
    found = Values(fields.get("v_head_dim"), fields.get("v_from_k", False), norm, fields.get("value_scale"))
    if found.of_keys and found.size is not None:
        fields.refuse("v_head_dim", found.size, "none with v_from_k = true: values are the keys")
    return None if found == Values() else found


def sub_norm(fields, kv_heads, group, head_dim):
    """The norm before the output projection on a card, or None."""
    if not fields.get("attention_sub_norm", False):
        return None
    size = fields.get("v_head_dim")
    axes, width = ("KRH", head_dim) if size is None else ("KRU", size)
    kind = load(NORMS[fields.get("norm", "rmsnorm")])
    return kind((kv_heads, group, width), fields.get("norm_eps", 1e-5), axes, 3)


def temperature(fields):
    """How queries grow on a card, see `tempered`, or None."""
    how = fields.get("attention_growth")
    by, floor = fields.get("attention_temperature"), fields.get("attention_temperature_floor")
    if (by is None) != (floor is None):
        given = "attention_temperature" if floor is None else "attention_temperature_floor"
        other = "attention_temperature_floor" if floor is None else "attention_temperature"
        fields.refuse(given, by if floor is None else floor, f"only together with {other}")
    if by is None and how is not None:
        fields.refuse("attention_growth", how, "none without attention_temperature")
    return None if by is None else (by, floor, how or "log_next")


def gate(fields):
    """(whether there is one gate a head, its activation, its bias) on a card."""
    names = ("attention_gate_by_head", "attention_gate_activation", "attention_gate_bias")
    by_head, activation, bias = (fields.get(name) for name in names)
    if not fields.get("attention_gate", False):
        for name, given in zip(names, (by_head, activation, bias)):
            if given:
                fields.refuse(name, given, "none without attention_gate")
    return by_head or False, activation or "sigmoid", bias


def leaves(fields):
    """The name of this kind of layer, if layers of another kind read its keys and values (see shared_kv.py)."""
    kinds = fields.get("kinds") or {}
    return fields.name if any(each.get("kv_from") == fields.name is not None for each in kinds.values()) else None


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
    if how in ("head", "head_last"):
        return kind(head_dim, eps, "H"), kind(head_dim, eps, "H"), how == "head_last"
    over = (1, 1) if how == "each_head" else (3, 2)
    return (
        kind((kv_heads, group, head_dim), eps, "KRH", over[0]), kind((kv_heads, head_dim), eps, "KH", over[1]), False,
    )  # fmt: skip
