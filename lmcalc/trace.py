"""What a forward pass did: arrays with named axes, and the list of operations on them."""

from .numbers import monomial


class Array:
    """A value with named axes. `sizes` are ints, SymPy expressions or float arrays; `data` is set in a numeric run.

    role: weight, activation, cache, state or index. dtype: whose storage type it has (weights, activations, cache,
    state: set by the workload) or a type by name. `base` holds the storage of a view; `parts` are what reading it
    reads (a cache: stored rows and fresh rows). `mask`: only these (query, key) pairs of its points matter. `blocks`:
    the places of the axes that a block format tiles. `times`: in how many copies it is there (of each layer one), None
    for as many as the operation that reads it.
    """

    __slots__ = (
        "axes",
        "base",
        "blocks",
        "data",
        "dtype",
        "group",
        "mask",
        "parts",
        "path",
        "role",
        "sizes",
        "times",
        "whole",
    )

    def __init__(self, axes, sizes, role, dtype, path="", mask=None, group=None, base=None, parts=None, blocks=None,
                 data=None):  # fmt: skip
        self.axes, self.sizes, self.role, self.dtype, self.path = axes, sizes, role, dtype, path
        self.mask, self.group, self.parts, self.data = mask, group, parts, data
        self.base, self.whole = self if base is None else base, None
        self.blocks = ((len(axes) - 1,) if axes else ()) if blocks is None else blocks
        self.times = None

    def size(self, axis):
        """The size of one axis."""
        return self.sizes[self.axes.index(axis)]

    def elements(self):
        """The number of its elements, as a term."""
        return monomial(*self.sizes)

    def __repr__(self):
        inside = " ".join(f"{axis}={size}" for axis, size in zip(self.axes, self.sizes))
        return f"Array({inside}, {self.role})"


class Mask:
    """Which keys a query may see. `pairs`: how many (query, key) pairs are allowed; `data`: T x S booleans.

    index: None, or the array that names the keys, where they are chosen as the pass runs; `data` is then B x 1 x T x S.
    """

    __slots__ = ("data", "index", "pairs")

    def __init__(self, pairs, data=None, index=None):
        self.pairs, self.data, self.index = pairs, data, index


class Group:
    """Operations that pass intermediates on chip: one kernel. `times`: how often it runs."""

    __slots__ = ("name", "path", "times")

    def __init__(self, path, name, times):
        self.path, self.name, self.times = path, name, times


class State:
    """What a layer keeps from one call to the next.

    sizes: of what one token of one sequence adds (kind "cache"), or of the whole for one sequence (kind "state").
    window: most tokens held, or None. dtype: whose storage type it has. source: where it holds the tokens of an encoder
    and not those of the context, how many these are. rows: where a token is not a row, how many rows (see compress.py).
    """

    __slots__ = ("dtype", "kind", "path", "rows", "sizes", "source", "times", "window")

    def __init__(self, path, kind, dtype, sizes, window, times, source=None, rows=None):
        self.path, self.kind, self.dtype, self.sizes = path, kind, dtype, sizes
        self.window, self.times, self.source, self.rows = window, times, source, rows


class Routing:
    """Which rows of a stack of `experts` weights are read: those that any token chose, out of `choices`.

    index: what each token chose (axes BTA). choices: more than `experts` where some have no weights.
    """

    __slots__ = ("choices", "experts", "index")

    def __init__(self, experts, choices, index):
        self.experts, self.choices, self.index = experts, choices, index

    @property
    def used(self):
        """Experts that one token chooses."""
        return self.index.sizes[-1]

    @property
    def tokens(self):
        """Tokens that choose."""
        return self.index.sizes[0] * self.index.sizes[1]


class Op:
    """One operation.

    points: the elements (for a contraction the multiply-adds) as a term; masked: the same where only allowed pairs
    count (under `mask`); rows: rows reduced. `reads` and `writes` are arrays, `touched` the rows read of the first
    where that is not all of it. In a numeric run `counted` is what the machine counted.
    """

    __slots__ = (
        "broadcast",
        "cls",
        "counted",
        "equation",
        "group",
        "mask",
        "masked",
        "part",
        "path",
        "points",
        "primitive",
        "reads",
        "rows",
        "times",
        "touched",
        "writes",
    )

    def __repr__(self):
        return f"Op({self.path}: {self.primitive.name} {self.equation})"


class Trace:
    """The operations of one forward pass in order, its states, and the arrays that it returns."""

    __slots__ = ("batch", "inputs", "new", "ops", "outputs", "past", "states")

    def __init__(self, batch, new, past):
        self.ops, self.states, self.inputs, self.outputs = [], {}, [], []
        self.batch, self.new, self.past = batch, new, past

    def kernels(self):
        """[(path, times, operations)]: fusion groups, and each remaining operation by itself, in order."""
        found = {}
        for op in self.ops:
            key = op.group or op
            if key in found:
                found[key].append(op)
            else:
                found[key] = [op]
        return [
            (f"{key.path}/{key.name}" if type(key) is Group else key.path, key.times, ops) for key, ops in found.items()
        ]
