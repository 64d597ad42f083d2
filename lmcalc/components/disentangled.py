"""Disentangled attention: what a token is and where it is meet in products of their own (DeBERTa)."""

from ..numbers import minimum
from . import norm
from .attention import Attention, softmax_attention
from .base import Component

TERMS = ("content_to_position", "position_to_content")
# keys of the table `disentangled` on a card: what they are without being given, and what else they may be
TABLE = {
    "rows": ("all", ("all", "sequence")),  # vectors that are projected: all, or of distances in this sequence (v1)
    "shared": (False, (True, False)),  # by the projections of queries and keys (v3), or by others
    "normed": (False, (True, False)),  # a norm of the vectors (v2 and v3)
    "key_bias": (True, (True, False)),  # a bias in the projection to keys, where it is another (v2)
}


class DistanceVectors(Component):
    """A learned vector for each distance from -span to span - 1, shared by all layers (He et al. 2020, sec. 3.1).

    rows: "all", or those of the distances in a sequence of this length ("sequence").
    """

    d_model: int
    span: int
    rows: str = "all"
    norm: Component = None

    part = "position_embedding"

    def weights(self):
        return {"table": "J|D"}

    def axes(self):
        return {"J": 2 * self.span, "D": self.d_model}

    def forward(self, ops, p):
        table = p.table
        if self.rows == "sequence":
            most = minimum(self.span, ops.new)
            table = ops.rows(table, "J", self.span - most, 2 * most)
        return table if self.norm is None else p.norm(table)


class DisentangledAttention(Attention):
    """softmax((q k + q k' + k q') / sqrt(H (1 + terms))) v: keys k' and queries q' are projected from the vector of the
    distance between query and key (He et al. 2020, eq. 4), as many rows of them as there are distances.

    terms: which of the two products with positions there are. span: distances from which on all are one. buckets: None,
    or the number of buckets, exact near and logarithmic up to `span` (DeBERTa v2). rows, shared, key_bias: see TABLE.
    """

    span: int = None
    buckets: int = None
    terms: tuple = TERMS
    rows: str = "all"
    shared: bool = False
    key_bias: bool = True

    def weights(self):
        own = {}
        if not self.shared and TERMS[0] in self.terms:
            own |= {"position_k": "D->KH"} | ({"position_k_bias": "KH"} if self.key_bias else {})
        if not self.shared and TERMS[1] in self.terms:
            own |= {"position_q": "D->KRH", "position_q_bias": "KRH"}
        return Attention.weights(self) | own

    def forward(self, ops, p, x, bias):
        """x (BTD) mixed over the tokens. bias: the vectors of the distances (JD)."""
        q, k, v = self.project(ops, p, x)
        k, v = self.remember(ops, k, v)
        found = self.projected(ops, p, bias)
        with ops.fused("core"):
            mixed = self.mix(ops, p, q, k, v, self.mask(ops), found)
        return self.out(ops, p, mixed)

    def projected(self, ops, p, table):
        """Keys and queries of the distances, {term: array}."""
        names, found = ("k", "q") if self.shared else ("position_k", "position_q"), {}
        with ops.projections(table):
            for term, name, axes in zip(TERMS, names, ("KH", "KRH")):
                if term in self.terms:
                    weight, bias = getattr(p, name), p.get(f"{name}_bias")
                    found[term] = ops.linear(f"JD,D{axes}->J{axes}", table, weight, bias)
        return found

    def reached(self, ops):
        """How many distances to one side have a vector of their own in this pass."""
        if self.rows == "sequence":
            return minimum(self.span, ops.new)
        return self.span if self.buckets is None else self.buckets

    def mix(self, ops, p, q, k, v, mask, bias=None, keys="S"):
        scores = ops.einsum("BTKRH,BSKH->BKRTS", q, k, mask=mask, name="scores")
        index = self.index(ops)
        if TERMS[0] in bias:
            met = ops.einsum("BTKRH,JKH->BKRTJ", q, bias[TERMS[0]], name=TERMS[0])
            scores = ops.add(scores, ops.by_distance(met, scores, index))
        if TERMS[1] in bias:
            met = ops.einsum("BSKH,JKRH->BKRSJ", k, bias[TERMS[1]], name=TERMS[1])
            scores = ops.add(scores, ops.by_distance(met, scores, index, turned=True))
        scale = (self.head_dim * (1 + len(self.terms))) ** -0.5
        weights = ops.softmax(ops.scale(scores, scale), "S", p.get("sink"))
        return ops.einsum("BKRTS,BSKH->BTKRH", weights, v, name="mixed")

    def index(self, ops):
        """The row of the distance of each query (T) from each key (S), or None in a run on sizes."""
        if ops.data is None:
            return None
        np, (query, key), most = ops.data.np, ops.data.positions(ops), self.reached(ops)
        distance = query - key
        if self.buckets is not None:
            distance = logarithmic(np, distance, self.buckets, self.span)
        return np.clip(distance + most, 0, 2 * most - 1)


def logarithmic(np, distance, buckets, most):
    """Distances below half the buckets as they are, farther ones by their logarithm; `most` is the last bucket.

    >>> import numpy
    >>> logarithmic(numpy, numpy.array([3, 4, 8, 20, -63]), 8, 64)
    array([ 3,  4,  5,  6, -7])
    """
    half, far = buckets // 2, np.abs(distance)
    ratio = np.log(np.maximum(far, 1) / np.float32(half)) / np.log(np.float32((most - 1) / half))
    logged = np.ceil(ratio.astype(np.float32) * (half - 1)).astype(int) + half
    return np.where(far <= half, distance, logged * np.sign(distance))


def disentangled(fields, causal=True):
    """The disentangled attention that a card describes."""
    if causal:
        fields.refuse("positions", "disentangled", "another in a decoder, which sees one side of a token")
    for name, without in (("qk_norm", "none"), ("score_scale", None), ("attention_softcap", None), ("v_head_dim", None),
                          ("attention_gate", False), ("window", None), ("qkv_clip", None)):  # fmt: skip
        if fields.get(name, without) != without:
            fields.refuse(name, fields.get(name), f"{without or 'none'} with positions = 'disentangled'")
    table = checked(fields)
    return softmax_attention(
        fields, causal, DisentangledAttention, span=fields["position_max_distance"],
        buckets=fields.get("position_buckets"), terms=tuple(table["terms"]),
        **{name: table[name] for name in ("rows", "shared", "key_bias")},
    )  # fmt: skip


def distance_vectors(fields):
    """The vectors of distances that a card describes."""
    table, buckets, span = checked(fields), fields.get("position_buckets"), fields["position_max_distance"]
    if buckets is not None and table["rows"] == "sequence":
        fields.refuse("disentangled.rows", "sequence", "all with position_buckets")
    if isinstance(buckets, int) and (buckets < 4 or (isinstance(span, int) and span - 1 <= buckets // 2)):
        fields.refuse("position_buckets", buckets, "at least 4, and below twice position_max_distance - 1")
    width, most = fields["d_model"], span if buckets is None else buckets
    return DistanceVectors(width, most, table["rows"], norm(fields, width) if table["normed"] else None)


def checked(fields):
    """The table `disentangled` of a card, with what it leaves out."""
    given = fields.get("disentangled", {})
    terms = given.get("terms", list(TERMS))
    if not isinstance(terms, list) or not terms or any(each not in TERMS for each in terms):
        fields.refuse("disentangled.terms", terms, "one or both of " + ", ".join(TERMS))
    found = {"terms": [each for each in TERMS if each in terms]}
    for name, value in given.items():
        if name != "terms" and (name not in TABLE or value not in TABLE[name][1]):
            allowed = ", ".join(map(str, TABLE[name][1])) if name in TABLE else "only terms, " + ", ".join(TABLE)
            fields.refuse(f"disentangled.{name}", value, allowed)
    return found | {name: given.get(name, usual) for name, (usual, _) in TABLE.items()}
