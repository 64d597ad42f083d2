"""Which keys a query may attend to: all before it, a window (a size), or a pattern (an object of this file).

Everything that depends on it goes through the four functions at the end: pairs, stored tokens that still matter, tokens
that a cache keeps, and the mask. Counts are differences of `seen(n)`: allowed pairs among the first n positions.
"""

from .numbers import causal_pairs, exact_div, floor_div, maximum, minimum
from .record import Frozen


class Pattern(Frozen):
    """Common to all: every token stays in the cache, and a kernel reads all of them."""

    size: int

    most = None  # tokens that a cache keeps, None for all

    def held(self, past):
        """Stored tokens that the tokens after `past` can still see."""
        return past

    def seen(self, n):
        """Allowed pairs among the first n positions."""
        raise NotImplementedError

    def allowed(self, query, key):
        """Booleans, on top of key <= query."""
        raise NotImplementedError


class Chunk(Pattern):
    """Keys of the query's own chunk of `size` tokens (Llama 4: attention_chunk_size 8,192).

    The cache is a rolling buffer of a whole chunk, as transformers has it; a query reads what its chunk has so far.

    >>> Chunk(4).seen(10), Chunk(4).held(10)
    (23, 2)
    """

    @property
    def most(self):
        return self.size

    def held(self, past):
        return past - floor_div(past, self.size) * self.size

    def seen(self, n):
        whole = floor_div(n, self.size)
        return whole * _triangle(self.size) + _triangle(n - whole * self.size)

    def allowed(self, query, key):
        return query // self.size == key // self.size


class Strided(Pattern):
    """The last `size` keys, and of the earlier ones each `size`-th (Child et al. 2019, sec. 4.3, both heads merged).

    >>> Strided(3).seen(7)
    23
    """

    def seen(self, n):
        near = minimum(n, self.size)
        return _triangle(near) + (n - near) * self.size + _blocks_before(n, self.size)

    def allowed(self, query, key):
        return (query - key < self.size) | ((query - key) % self.size == 0)


class Fixed(Pattern):
    """Keys of the query's own block of `size`, and the last `summary` of each earlier one (Child et al. 2019, 4.3).

    >>> Fixed(3, 1).seen(7)
    18
    """

    summary: int = 1

    def seen(self, n):
        return Chunk(self.size).seen(n) + self.summary * _blocks_before(n, self.size)

    def allowed(self, query, key):
        return (query // self.size == key // self.size) | (key % self.size >= self.size - self.summary)


class Blocks(Pattern):
    """Keys of `count` blocks of `size`, the query's own among them: which others, is decided as the pass runs.

    The keys that a query sees do not depend on the choice: all before it while there are so few blocks, then those of
    count - 1 whole blocks and of its own up to itself.

    >>> Blocks(3, 2).seen(9)
    36
    """

    count: int = 1

    @property
    def most_keys(self):
        """Keys that a query may see."""
        return self.size * self.count

    def seen(self, n):
        left = maximum(n - (self.count - 1) * self.size, 0)  # positions from the one on that has as many blocks
        return _triangle(n) - self.size * _blocks_before(left, self.size)


def _triangle(n):
    return exact_div(n * (n + 1), 2)


def _blocks_before(n, size):
    """The sum of floor(i / size) over the first n positions i."""
    whole = floor_div(n, size)
    return exact_div(whole * (whole - 1), 2) * size + whole * (n - whole * size)


# What the rest of the program asks -------------------------------------------------------------------------------


def pairs(past, new, window=None):
    """Allowed (query, key) pairs of `new` queries that follow `past` tokens.

    >>> pairs(10, 3), pairs(10, 3, 4), pairs(10, 3, Chunk(4))
    (36, 12, 8)
    """
    if isinstance(window, Pattern):
        return window.seen(past + new) - window.seen(past)
    return causal_pairs(past, new, window)


def near_pairs(n, reach):
    """Allowed (query, key) pairs of an encoder of n tokens whose queries see `reach` keys on either side.

    >>> near_pairs(10, 2), near_pairs(2, 5)
    (44, 4)
    """
    most = minimum(reach, n - 1)
    return n + 2 * most * n - most * (most + 1)


def held(past, window=None):
    """Stored tokens that the tokens after `past` can still see.

    >>> held(10), held(10, 4), held(10, Chunk(4))
    (10, 3, 2)
    """
    if isinstance(window, Pattern):
        return window.held(past)
    return past if window is None else minimum(past, window - 1)


def most(window=None):
    """Tokens that a cache keeps, None for all."""
    return window.most if isinstance(window, Pattern) else window


def allowed(query, key, window=None):
    """Which of the keys (positions, a row) each query (positions, a column) may attend to."""
    before = key <= query
    if window is None:
        return before
    return before & (window.allowed(query, key) if isinstance(window, Pattern) else key > query - window)


def pattern(fields):
    """The window or pattern that a card describes, or None."""
    given = [name for name in ("window", "attention_chunk", "sparse_pattern") if fields.get(name) is not None]
    if len(given) > 1:
        fields.refuse(given[1], fields.get(given[1]), f"none with {given[0]} = {fields.get(given[0])}")
    if not given:
        return None
    size = fields[given[0]]
    if given[0] == "window":
        if isinstance(size, int) and size < 1:
            fields.refuse("window", size, "an integer of at least 1, the query itself included")
        return size
    if given[0] == "attention_chunk":
        return Chunk(size)
    stride = fields["sparse_stride"]
    if size == "strided":
        return Strided(stride)
    summary = fields.get("sparse_summary", 1)
    if isinstance(summary, int) and isinstance(stride, int) and summary > stride:
        fields.refuse("sparse_summary", summary, f"at most sparse_stride = {stride}")
    return Fixed(stride, summary)
