"""A model is data: embedding, runs of blocks, head. This file puts it together from the fields of a card."""

from . import components
from .components.base import Bound, Component
from .errors import InputError
from .fields import FIELDS
from .ops import Ops
from .record import Frozen
from .trace import Array


class Run(Frozen):
    """`count` times the items in order: (label, block) pairs, or further runs."""

    count: int
    items: tuple


class Model(Component):
    """A decoder-only language model.

    name, source, family: where it is from. fields: the architecture as a card has it. notes: what a reader must know.
    """

    name: str
    source: str
    family: str
    fields: dict
    notes: tuple
    embedding: Component
    positions: Component
    runs: tuple
    final_norm: Component
    head: Component

    def forward(self, ops, p, tokens, logits="last"):
        """Logits BTV of tokens BT; with logits="last" only the last position goes through the head."""
        x = p.embedding(tokens)
        if self.positions is not None:
            x = p.positions(x)
        x = _through(ops, self.runs, x)
        if self.final_norm is not None:
            x = p.final_norm(x)
        if logits == "last":
            x = ops.last(x)
        return p.head(x, p.embedding.table if self.head.tied else None)

    def declared(self):
        """[(path, component, times)] of every component of the model, for its weights."""
        found = []

        def walk(path, component, times):
            found.append((path, component, times))
            for name, child in component.children().items():
                walk(f"{path}/{name}" if path else name, child, times)

        def walk_runs(runs, times):
            for run in runs:
                for item in run.items:
                    if isinstance(item, Run):
                        walk_runs([item], times * run.count)
                    else:
                        walk(item[0], item[1], times * run.count)

        walk("", self, 1)
        walk_runs(self.runs, 1)
        return found


def _through(ops, runs, x):
    for run in runs:

        def body(x, run=run):
            for item in run.items:
                if isinstance(item, Run):
                    x = _through(ops, [item], x)
                else:
                    label, block = item
                    x = ops.layer(label, lambda name, block=block: Bound(ops, block, "", name), x)
            return x

        x = ops.repeat(run.count, body, x)
    return x


def trace(model, batch, new, past=0, logits="last", unroll=False, data=None, **options):
    """The forward pass of `new` tokens for each of `batch` sequences whose caches hold `past` tokens, as a Trace.

    batch, new, past: ints, SymPy symbols or float arrays. unroll: every layer by itself. options: see `ops.Ops`.

    >>> from lmcalc import load
    >>> len(trace(load("gpt2"), batch=1, new=16).ops)
    34
    """
    ops = Ops(batch, new, past, unroll, data, **options)
    tokens = Array("BT", (batch, new), "index", "int32", "tokens", data=None if data is None else data.tokens)
    out = model.forward(ops, Bound(ops, model, "", ""), tokens, logits)
    ops.trace.inputs, ops.trace.outputs = [tokens], [out]
    return ops.trace


class Fields:
    """The fields of a card while a model is built from them: remembers which were read, refuses what cannot be."""

    def __init__(self, fields, where, read=None):
        self._fields, self._where, self.read = fields, where, set() if read is None else read

    def kind(self, name, changes):
        """The fields of a kind of layer: these, with changes."""
        return Fields({**self._fields, **changes}, f"{self._where}: kinds.{name}", self.read)

    def __getitem__(self, name):
        self.read.add(name)
        if self._fields.get(name) is None:
            raise InputError(f"{self._where}: {name} is missing; it is needed: {FIELDS[name][1]}")
        return self._fields[name]

    def get(self, name, default=None):
        """The field, or what a model has that does not say."""
        self.read.add(name)
        found = self._fields.get(name)
        return default if found is None else found

    def refuse(self, name, given, allowed):
        """Raise the error for a value that cannot be."""
        raise InputError(f"{self._where}: {name} = {given!r}; allowed: {allowed}")

    def divided(self, name, number, by_name, by):
        """number / by, which has to be a whole number; sizes that are symbols are divided as such."""
        if isinstance(number, int) and isinstance(by, int):
            if number % by:
                self.refuse(name, number, f"a multiple of {by_name} = {by}")
            return number // by
        return number / by


def stacked(reader, count, make):
    """Runs of `count` layers as the fields `layers` and `kinds` describe them; make(fields) is one layer.

    Layers that repeat in a pattern become nested runs: ["5*local", "global"] over 62 layers is 10 times (5 local, 1
    global), then 2 local.
    """
    pattern = reader.get("layers")
    if pattern is None:
        if reader.get("kinds") is not None:
            reader.refuse("kinds", sorted(reader.get("kinds")), "only together with layers")
        return (Run(count, (("layers", make(reader)),)),)
    kinds, every = reader.get("kinds", {}), _expanded(reader, pattern)
    every = (every * (count // len(every) + 1))[:count]
    blocks = {name: make(reader.kind(name, kinds[name])) for name in dict.fromkeys(every)}
    period = next(p for p in range(1, count + 1) if every == (every[:p] * (count // p + 1))[:count])
    cycles, labels = count // period, {}

    def items(names):
        found, at = [], 0
        while at < len(names):
            length = next((i for i in range(at, len(names)) if names[i] != names[at]), len(names)) - at
            labels[names[at]] = labels.get(names[at], 0) + 1
            again = f".{labels[names[at]]}" if labels[names[at]] > 1 else ""
            item = (f"layers.{names[at]}{again}", blocks[names[at]])
            found.append(item if length == 1 else Run(length, (item,)))
            at += length
        return tuple(found)

    runs = (Run(cycles, items(every[:period])),)
    rest = every[cycles * period :]
    return (*runs, Run(1, items(rest))) if rest else runs


def _expanded(reader, pattern):
    """The names of a pattern, with "5*name" written out."""
    kinds, every = reader.get("kinds", {}), []
    for entry in pattern:
        text = entry if isinstance(entry, str) else ""
        times, _, name = text.rpartition("*")
        if name.strip() not in kinds or not (times == "" or times.strip().isdigit() and int(times)):
            reader.refuse("layers", entry, "names of kinds, or N*name; kinds are " + ", ".join(kinds))
        every += [name.strip()] * int(times or 1)
    if not every:
        reader.refuse("layers", pattern, "at least one name of [architecture.kinds]")
    return every


def build(fields, name="model", source="", family="", notes=(), where=None):
    """The Model that a card's fields describe.

    Raises InputError for fields that are missing, that contradict each other, or that no part of the model reads.
    """
    where = where or name
    reader = Fields(fields, where)
    d_model, vocab_size, positions = reader["d_model"], reader["vocab_size"], None
    tied = reader.get("tied", False)
    if reader.get("positions", "rotary") == "learned":
        from .components.positions import LearnedPositions

        positions = LearnedPositions(d_model, reader["max_positions"])
    reader.read |= {"max_positions", "dropout", "attention_dropout", "weight_decay"}  # known of any model
    from .components.embeddings import Head, TokenEmbedding

    embedding = TokenEmbedding(vocab_size, d_model, reader.get("embedding_scale"))
    runs = stacked(reader, reader["n_layers"], _block)
    model = Model(name, source, family, fields, tuple(notes), embedding, positions, runs,
                  components.norm(reader, d_model), Head(vocab_size, d_model, tied))  # fmt: skip
    for kind, changes in fields.get("kinds", {}).items():
        for each in changes:
            if each not in reader.read:
                raise InputError(f"{where}: kinds.{kind}.{each} = {changes[each]!r}: no part of this model has such a field")
    unread = sorted(set(fields) - reader.read)
    if unread:
        given = ", ".join(f"{each} = {fields[each]!r}" for each in unread)
        raise InputError(f"{where}: {given}: no part of this model has such a field")
    return model


def _block(reader):
    from .components.attention import attention
    from .components.feed_forward import feed_forward

    kind = components.load(components.BLOCKS[reader.get("block", "serial")])
    width = reader["d_model"]
    return kind(
        components.norm(reader, width), attention(reader), components.norm(reader, width), feed_forward(reader)
    )
