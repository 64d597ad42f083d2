"""Positions that change attention scores: a bias, or vectors for the distance between query and key.

`scaled`: whether the change comes after the scores were scaled. `content` is what queries are before they meet keys.
"""

import math

from .base import Component


class Relative(Component):
    """Common to all: queries meet keys as they are."""

    scaled = True

    def content(self, ops, p, q):
        """The queries of the product with the keys themselves."""
        return q


class Alibi(Relative):
    """scores + slope of the head * position of the key (Press et al. 2022, sec. 3); the query's own changes no softmax.

    The table of biases costs nothing, adding it one operation a score. kind: how slopes come about where the number of
    heads is not a power of two, see `slopes`.
    """

    kv_heads: int
    group: int
    head_dim: int
    kind: str = "bloom"
    most: float = 8.0

    def forward(self, ops, p, scores, q, window, bias):
        table = None
        if ops.data is not None:
            np, (_, key) = ops.data.np, ops.data.positions(ops, window)
            table = np.array(slopes(self.kv_heads * self.group, self.kind, self.most))
            if self.kind == "falcon":  # adds before it scales, in bfloat16
                table = _bfloat16(np, table) / math.sqrt(self.head_dim)
            table = table.reshape(self.kv_heads, self.group, 1, 1) * key
        return ops.apply("shift", scores, by=table)


def slopes(heads, kind="bloom", most=8.0):
    """Slopes of the heads: 2**(-8/n), 2**(-16/n), ... for a power of two n (Press et al. 2022, sec. 3).

    Else BLOOM takes the next smaller power, and the missing ones from the odd places of twice as many; MPT the next
    larger power, even places first, and the last exponent is -`most`.

    >>> slopes(2), slopes(3), slopes(3, "mpt")
    ([0.0625, 0.00390625], [0.0625, 0.00390625, 0.25], [0.0625, 0.00390625, 0.25])
    """
    power = 1 << (heads.bit_length() - 1)
    if kind == "mpt":
        power = power if power == heads else 2 * power
        every = [2 ** (-i * most / power) for i in range(1, power + 1)]
        return every if power == heads else (every[1::2] + every[::2])[:heads]
    found = [2 ** (-i * 8 / power) for i in range(1, power + 1)]
    return found + [2 ** (-i * 4 / power) for i in range(1, 2 * (heads - power), 2)]


def _bfloat16(np, x):
    """Rounded to 8 bits of mantissa, to even."""
    bits = np.array(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


class PositionBias(Component):
    """The table of T5's relative biases: one for each bucket of distances and head, shared by all layers of a stack."""

    buckets: int
    kv_heads: int
    group: int

    part = "position_embedding"

    def weights(self):
        return {"table": "J|KR"}

    def axes(self):
        return {"J": self.buckets, "K": self.kv_heads, "R": self.group}

    def forward(self, ops, p):
        return p.table


class BucketedBias(Relative):
    """scores + bias of the bucket of the distance (Raffel et al. 2020, sec. 2.1): exact near, logarithmic far.

    Each layer looks its biases up again, inside its attention kernel; `bias` is the table of its stack.
    """

    buckets: int = 32
    max_distance: int = 128
    causal: bool = True

    def forward(self, ops, p, scores, q, window, bias):
        index = None
        if ops.data is not None:
            query, key = ops.data.positions(ops, window)
            index = self.bucket(ops.data.np, key - query)
        return ops.add(scores, ops.lookup(bias, "TS", (ops.new, ops.span(window)[1]), index))

    def bucket(self, np, relative):
        """The bucket of each key position minus query position."""
        n, first = self.buckets, 0
        if self.causal:
            distance = np.maximum(-relative, 0)
        else:
            n //= 2
            first, distance = np.where(relative > 0, n, 0), np.abs(relative)
        exact = n // 2
        ratio = np.log(np.maximum(distance, 1).astype(np.float32) / exact) / math.log(self.max_distance / exact)
        far = np.minimum(exact + (ratio * (n - exact)).astype(int), n - 1)
        return first + np.where(distance < exact, distance, far)


class OwnBucketedBias(BucketedBias):
    """The same from a table that each layer has of its own (Chung et al. 2023, UMT5)."""

    kv_heads: int = 1
    group: int = 1

    part = "position_embedding"

    def weights(self):
        return {"table": "J|KR"}

    def axes(self):
        return {"J": self.buckets, "K": self.kv_heads, "R": self.group}

    def forward(self, ops, p, scores, q, window, bias):
        return BucketedBias.forward(self, ops, p, scores, q, window, p.table)


class RelativeVectors(Relative):
    """scores + q a, a being the learned vector of the clipped distance, one for all heads (Shaw et al. 2018, eq. 4)."""

    head_dim: int
    max_distance: int

    part, scaled = "position_embedding", False

    def weights(self):
        return {"table": "J|H"}

    def axes(self):
        return {"J": 2 * self.max_distance + 1, "H": self.head_dim}

    def forward(self, ops, p, scores, q, window, bias):
        index = None
        if ops.data is not None:
            query, key = ops.data.positions(ops, window)
            index = ops.data.np.clip(key - query, -self.max_distance, self.max_distance) + self.max_distance
        vectors = ops.lookup(p.table, "TS", (ops.new, ops.span(window)[1]), index)
        return ops.add(scores, ops.einsum("BTKRH,TSH->BKRTS", q, vectors, mask=scores.mask, name="relative"))


class RelativeXL(Relative):
    """(q + u) k + (q + v) r, r being projected sinusoids of the distance (Dai et al. 2019, sec. 3.3; Gopher).

    The products of queries with all distances lie along the axis of keys, where `relative_shift` then puts them.
    """

    d_model: int
    kv_heads: int
    group: int
    head_dim: int

    part, scaled = "attention", False

    def weights(self):
        return {"r": "D->KH", "u": "KRH", "v": "KRH"}

    def axes(self):
        return {"D": self.d_model, "K": self.kv_heads, "R": self.group, "H": self.head_dim}

    def content(self, ops, p, q):
        return ops.add(q, p.u)

    def forward(self, ops, p, scores, q, window, bias):
        from .positions import sinusoids

        keys, table, index = ops.span(window)[1], None, None
        if ops.data is not None:
            np, (query, key) = ops.data.np, ops.data.positions(ops, window)
            table, index = sinusoids(np, np.arange(keys), self.d_model), np.maximum(query - key, 0)
        vectors = ops.einsum("SD,DKH->SKH", ops.table("SD", (keys, self.d_model), table), p.r)
        along = ops.einsum("BTKRH,SKH->BKRTS", ops.add(q, p.v), vectors, mask=scores.mask, name="relative")
        return ops.add(scores, ops.apply("relative_shift", along, index=index))


def buckets(fields, causal=True):
    """The relative bias that a card describes, as each layer uses it."""
    number, most = fields["position_buckets"], fields.get("position_max_distance", 128)
    if isinstance(number, int) and (number < 2 if causal else number < 4 or number % 2):
        fields.refuse("position_buckets", number, "at least 2" if causal else "an even number of at least 4")
    exact = None if not isinstance(number, int) else number // 2 if causal else number // 4
    if exact is not None and isinstance(most, int) and most <= exact:
        fields.refuse("position_max_distance", most, f"more than {exact}, the distances with a bucket of their own")
    return BucketedBias(number, most, causal)


def relative(fields, how, kv_heads, group, head_dim, causal=True):
    """What changes attention scores by position, as a card describes it."""
    if how in ("alibi", "relative_xl") and not causal:
        words = ("none", "learned", "sinusoidal", "rotary", "relative_bias", "relative_shaw")
        fields.refuse("positions", how, "in an encoder " + ", ".join(words))
    if how == "alibi":
        kind = fields.get("alibi_slopes", "bloom")
        return Alibi(kv_heads, group, head_dim, kind, fields.get("alibi_bias_max", 8.0) if kind == "mpt" else 8.0)
    if how == "relative_bias":
        found = buckets(fields, causal)
        own = fields.get("own_position_bias", False)
        return OwnBucketedBias(**found.__dict__, kv_heads=kv_heads, group=group) if own else found
    if how == "relative_shaw":
        return RelativeVectors(head_dim, fields["position_max_distance"])
    return RelativeXL(fields["d_model"], kv_heads, group, head_dim)
