"""A model is data: embedding, runs of blocks, head. This file puts it together from the fields of a card."""

import re

from . import components
from .components.base import Bound, Component
from .errors import InputError, unknown
from .fields import FIELDS, MOST_LAYERS, resolved
from .ops import Ops
from .record import Frozen
from .trace import Array


class Run(Frozen):
    """`count` times the items in order: (label, block) pairs, or further runs."""

    count: int
    items: tuple


class Stack(Component):
    """Layers, and what lies before and behind them: positions, token types and a norm; a final norm.

    position_bias: a relative bias on attention scores that all layers share (T5). per_layer: embeddings of the layers'
    own; widen, narrow: from one residual stream to several and back (both Gemma 3n). memory: blocks that layers share
    (Zamba2, ALBERT). norm_first: the embedding norm lies before the positions. project_in: from the width in which
    all that is summed to that of the layers.
    """

    runs: tuple
    positions: Component = None
    token_types: Component = None
    more_token_types: Component = None
    embedding_norm: Component = None
    position_bias: Component = None
    per_layer: Component = None
    widen: Component = None
    narrow: Component = None
    memory: Component = None
    final_norm: Component = None
    norm_first: bool = False
    project_in: Component = None

    def forward(self, ops, p, tokens, embed, source=None):
        """The last hidden state BTD of tokens BT; embed(tokens) looks them up, `source` is for cross attention."""
        x, ops.left["tokens"] = embed(tokens), tokens
        with ops.fused("embedding_sum"):
            for name in self.before:
                if getattr(self, name) is not None:
                    x = getattr(p, name)(x)
        if self.project_in is not None:
            x = p.project_in(x)
        shared = {} if self.position_bias is None else {"bias": p.position_bias()}
        if source is not None:
            shared["source"] = source
        if self.per_layer is not None:
            shared["per_layer"] = p.per_layer(tokens, x)
        if self.memory is not None:
            shared |= {"memory": self.memory.bound(p.memory), "embedded": x}
        x = _through(ops, p, self.runs, x if self.widen is None else p.widen(x), shared)
        if self.narrow is not None:
            x = p.narrow(x)
        return x if self.final_norm is None else p.final_norm(x)

    @property
    def before(self):
        """What lies between the embedding and the layers, in order."""
        names = ("positions", "token_types", "more_token_types")
        return ("embedding_norm", *names) if self.norm_first else (*names, "embedding_norm")


class Model(Stack):
    """A language model: a token embedding, a stack, a head, and for some an encoder before it, which may have an
    embedding of its own.

    name, source, family: where it is from. fields: the architecture as a card has it. notes: what a reader must know.
    mtp: (number, module) pairs of multi-token prediction, which have weights and no part in the forward pass.
    storage: how its weights are stored, where a checkpoint says so (storage.Storage), or None. beside: parts of a
    multimodal model that are not in it, by the names that its config has for them. given: fields before rules such as
    d_ff = "8/3*d_model" became sizes, for who changes some of them.
    """

    name: str
    source: str
    family: str
    fields: dict
    notes: tuple
    embedding: Component
    head: Component
    encoder: Component = None
    source_embedding: Component = None
    mtp: tuple = ()
    storage: object = None
    beside: tuple = ()
    given: dict = None

    def forward(self, ops, p, tokens, logits="last", source=None):
        """Logits BTV of tokens BT; with logits="last" only the last position goes through the head.

        An encoder reads the tokens `source`; where that is None, cross attention finds what it needs in the cache.
        An encoder-only model sends all positions through the head.
        """
        embed = p.embedding if self.source_embedding is None else p.source_embedding
        memory = None if source is None else ops.encode(lambda: p.encoder(source, embed))
        x = Stack.forward(self, ops, p, tokens, p.embedding, memory)
        if logits == "last" and not self.bidirectional:
            x = ops.last(x)
        return p.head(x, p.embedding.table if self.head.tied else None)

    @property
    def source_vocab(self):
        """How many tokens the encoder of an encoder-decoder knows."""
        return (self.source_embedding or self.embedding).vocab_size

    @property
    def bidirectional(self):
        """An encoder alone: every token sees every other, nothing is kept, nothing is generated."""
        return self.fields.get("stack") == "encoder"

    def declared(self, mtp=False):
        """[(path, component, times)] of every component of the model, for its weights; or of its prediction modules."""
        found = []

        def walk(path, component, times):
            found.append((path, component, times))
            for name, child in component.children().items():
                walk(f"{path}/{name}" if path else name, child, times)
            if isinstance(component, Stack):
                walk_runs(f"{path}/" if path else "", component.runs, times)

        def walk_runs(path, runs, times):
            for run in runs:
                for item in run.items:
                    if isinstance(item, Run):
                        walk_runs(path, [item], times * run.count)
                    else:
                        walk(path + item[0], item[1], times * run.count)

        for count, module in self.mtp if mtp else ((1, self),):
            walk("mtp" if mtp else "", module, count)
        return found


def _through(ops, p, runs, x, shared):
    for run in runs:

        def body(x, run=run):
            for item in run.items:
                if isinstance(item, Run):
                    x = _through(ops, p, [item], x, shared)
                else:
                    label, block = item
                    x = ops.layer(label, lambda name, x, block=block: p.at(name, block)(x, **shared), x)
            return x

        x = ops.repeat(run.count, body, x)
    return x


def trace(model, batch, new, past=0, logits="last", unroll=False, data=None, source=None, encoded=False, loss=None,
          **options):  # fmt: skip
    """The forward pass of `new` tokens for each of `batch` sequences whose caches hold `past` tokens, as a Trace.

    batch, new, past: ints, SymPy symbols or float arrays. unroll: every layer by itself. options: see `ops.Ops`.
    source: tokens that the encoder of an encoder-decoder reads (default: as many as `new`). encoded: it ran before, and
    what cross attention needs of it is in the cache. loss: None, or "cross_entropy" or "z_loss": all positions go
    through the head, and the output is the mean loss over the batch (see components/loss.py), not the logits.

    >>> from lmcalc import load
    >>> len(trace(load("gpt2"), batch=1, new=16).ops)
    30
    >>> trace(load("gpt2"), batch=1, new=16, loss="z_loss").outputs
    [Array(, activation)]
    """
    if model.bidirectional and not (isinstance(past, int) and past == 0):
        raise InputError(f"{model.name}: past = {past}; allowed: 0, since an encoder keeps nothing")
    encoder = model.encoder is not None
    ops = Ops(batch, new, past, unroll, data, source=new if encoder and source is None else source, **options)

    def ids(name, length):
        held = None if data is None else getattr(data, name)
        return Array("BT", (batch, length), "index", "int32", name, data=held)

    inputs = [ids("tokens", new)]
    if encoder and not encoded:
        inputs.append(ids("source", ops.source))
    out = model.forward(ops, Bound(ops, model, "", ""), inputs[0], logits if loss is None else "all", *inputs[1:])
    if loss is not None:
        from .components.loss import LOSSES

        if loss not in LOSSES:
            raise unknown("loss", loss, LOSSES)
        inputs.append(ids("targets", new))
        out = Bound(ops, LOSSES[loss], "", "loss")(out, inputs[-1])
    ops.trace.inputs, ops.trace.outputs = inputs, [out]
    return ops.trace


class Fields:
    """The fields of a card while a model is built from them: remembers which were read, refuses what cannot be.

    read, of_layers: the names of all that were read, and of those that a kind of layer read.
    """

    def __init__(self, fields, where, read=None, name=None, whole=None):
        self._fields, self._where, self.read = fields, where, set() if read is None else read
        self.name, self._whole = name, whole or self  # of a kind of layer its name, and all fields
        self.of_layers = set() if whole is None else whole.of_layers

    def kind(self, name, changes):
        """The fields of a kind of layer: these, with changes."""
        return Fields({**self._fields, **changes}, f"{self._where}: kinds.{name}", self.of_layers, name, self._whole)

    def side(self, changes):
        """The fields of a stack with changes of its own, or these."""
        return self if changes is None else Fields({**self._fields, **changes}, f"{self._where}: encoder")

    def refuse_unread(self, names, what):
        """Raise the error for fields of this stack, and of its kinds of layers, that nothing read."""
        for kind, changes in (self._fields.get("kinds") or {}).items() if "kinds" in names else ():
            for each in changes:
                if each not in self.of_layers:
                    given = f"kinds.{kind}.{each} = {changes[each]!r}"
                    raise InputError(f"{self._where}: {given}: no layer of this model has such a field")
        unread = sorted(set(names) - self.read - self.of_layers)
        if unread:
            given = ", ".join(f"{each} = {self._fields[each]!r}" for each in unread)
            raise InputError(f"{self._where}: {given}: no part of this {what} has such a field")

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

    @property
    def of_all(self):
        """The fields of the whole model, where these are of one kind of layer."""
        return self._whole

    def of_kind(self, name):
        """The fields of another kind of layer than this one."""
        return self._whole.kind(name, self._whole.get("kinds")[name])

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
    global), then 2 local. Where all of them do not, the longest stretches do that repeat themselves.
    """
    pattern, blockwise = reader.get("layers"), reader.get("block") == "attention_residual"
    if pattern is None:
        if reader.get("kinds") is not None:
            reader.refuse("kinds", sorted(reader.get("kinds")), "only together with layers")
        if not blockwise:
            return (Run(count, (("layers", make(reader)),)),)
    kinds, every = ({"all": {}}, ["all"]) if pattern is None else (reader.get("kinds", {}), _expanded(reader, pattern))
    every = (every * (count // len(every) + 1))[:count]
    for field, file in (("kv_from", "shared_kv"), ("index_shared", "indexer")):
        if any(each.get(field) for each in kinds.values()):
            components.load((file, "refuse_gaps"))(reader, every)
    if blockwise:
        kinds, every = components.load(("attention_residual", "placed"))(reader, kinds, every)
    blocks = {name: make(reader.kind(name, changes)) for name, changes in kinds.items()}  # those without a layer, too
    period, labels = shortest_period(every), {}

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

    cycles = count // period
    if cycles == 1:
        return tuple([Run(times, items(names)) for times, names in stretches(every)])
    runs = (Run(cycles, items(every[:period])),)
    rest = every[cycles * period :]
    return (*runs, Run(1, items(rest))) if rest else runs


def stretches(items, longest=16):
    """[(how often, items)] that a list is made of: of patterns that repeat three times or more, the one that goes far.

    >>> stretches(list("abbcdcdcd"))
    [(1, ['a', 'b', 'b']), (3, ['c', 'd'])]
    """
    found, at = [], 0
    while at < len(items):
        best = 1, 1
        for period in range(2, min(longest, (len(items) - at) // 2) + 1):
            times, end = 1, at + period
            while items[end : end + period] == items[at : at + period]:
                times, end = times + 1, end + period
            if times > 2 and end - at > best[0] * best[1] and len(set(items[at : at + period])) > 1:
                best = times, period
        times, period = best
        if times == 1 and found and found[-1][0] == 1:
            found[-1][1].append(items[at])
        else:
            found.append((times, items[at : at + period]))
        at += times * period
    return found


def shortest_period(items):
    """After how many items a list repeats itself; its last repetition may be cut off. In linear time.

    >>> shortest_period("aabaabaa"), shortest_period("abc")
    (3, 3)
    """
    borders, border = [0], 0  # of each start of the list: the longest shorter start that is also its end
    for item in items[1:]:
        while border and item != items[border]:
            border = borders[border - 1]
        border += item == items[border]
        borders.append(border)
    return len(items) - border


def _expanded(reader, pattern):
    """The names of a pattern, with "5*name" written out."""
    kinds, every = reader.get("kinds", {}), []
    for entry in pattern:
        text = entry if isinstance(entry, str) else ""
        times, star, name = text.rpartition("*")
        number = int(times) if re.fullmatch(r"\s*[0-9]{1,6}\s*", times) else 0 if star else 1
        if name.strip() not in kinds or not 1 <= number <= MOST_LAYERS:
            reader.refuse("layers", entry, f"names of kinds, or N*name with N from 1 to {MOST_LAYERS:,}; kinds are "
                          + ", ".join(kinds))  # fmt: skip
        every += [name.strip()] * number
    if not every:
        reader.refuse("layers", pattern, "at least one name of [architecture.kinds]")
    return every


def build(fields, name="model", source="", family="", notes=(), where=None):
    """The Model that a card's fields describe.

    Raises InputError for fields that are missing, that contradict each other, or that no part of the model reads.
    """
    where, given = where or name, fields
    fields = resolved(fields, where)
    reader = Fields(fields, where)
    kind = reader.get("stack", "decoder")
    reader.read |= {"max_positions", "dropout", "attention_dropout", "weight_decay"}  # known of any model
    from .components import embeddings

    encoder, own = (None, None) if kind != "encoder_decoder" else _encoder(reader, reader.get("encoder"))
    body = _stack(reader, reader["n_layers"], causal=kind != "encoder", crossed=encoder is not None)
    model = Model(name=name, source=source, family=family, fields=fields, notes=tuple(notes), given=given,
                  encoder=encoder, embedding=embeddings.embedding(reader), head=embeddings.head(reader),
                  source_embedding=own, mtp=_mtp(reader, body["runs"]), **body)  # fmt: skip
    reader.refuse_unread(fields, "model")
    return model


def _encoder(reader, changes):
    """(the encoder of an encoder-decoder, its own embedding or None). changes: fields in which it differs, or None."""
    from .components import embeddings

    side, own = reader.side(changes), None
    encoder = Stack(**_stack(side, reader["n_encoder_layers"], causal=False))
    if changes is not None:
        if {"vocab_size", "d_model"} & set(changes):
            own = embeddings.embedding(side)
        side.refuse_unread(changes, "encoder")
        reader.read |= side.read - set(changes)
        reader.of_layers |= side.of_layers - set(changes)
    return encoder, own


def _stack(reader, count, causal=True, crossed=False):
    """What a stack of `count` layers is made of. crossed: its layers attend to an encoder, too."""
    from .components import embeddings
    from .components.positions import stack_positions

    width, parts = reader["d_model"], stack_positions(reader, causal) | embeddings.token_types(reader)
    parts["project_in"] = embeddings.projection_of_sum(reader)
    if reader.get("per_layer_dim") is not None:
        from .components.per_layer_embedding import per_layer_embedding

        parts["per_layer"] = per_layer_embedding(reader)
    block = reader.get("block", "serial")
    if block in components.STREAMS:
        for kind, changes in (reader.get("kinds") or {}).items():
            if changes.get("block", block) != block:
                reader.refuse(f"kinds.{kind}.block", changes["block"], f"{block}, as in all layers of such a model")
        parts |= components.load(components.STREAMS[block])(reader)
    if reader.get("shared_blocks") is not None:
        from .components.shared_block import shared_blocks

        parts["memory"] = shared_blocks(reader)
    if reader.get("embedding_norm", False):
        kind = reader.get("embedding_norm_kind")
        parts["embedding_norm"] = components.norm(reader, *embeddings.sum_width(reader), kind=kind)
        parts["norm_first"] = reader.get("embedding_norm_first", False)
    if reader.get("final_norm", reader.get("norm_placement", "pre") != "post"):
        parts["final_norm"] = components.norm(reader, width, kind=reader.get("final_norm_kind"))

    def make(fields):
        return _block(fields, causal, crossed)

    if reader.get("layer_groups") is not None:
        from .components.shared_layers import shared_layers

        parts["memory"], groups = shared_layers(reader, count, make)
        return {"runs": tuple(Run(times, (("layers", layer),)) for times, layer in groups), **parts}
    return {"runs": stacked(reader, count, make), **parts}


def _mtp(reader, runs):
    """Prediction modules: each has a layer like the last of the model."""
    count = reader.get("n_mtp_layers")
    if count is None:
        return ()
    if reader.get("block") == "hyper_connections":  # a layer as the fields of all layers say, whatever the last one is
        from .components.hyper_connections import token_prediction

        return ((count, token_prediction(reader, _block(reader, causal=True, crossed=False))),)
    from .components.mtp import token_prediction

    last = runs[-1]
    while isinstance(last, Run):
        last = last.items[-1]
    return ((count, token_prediction(reader, last[1])),)


def _block(reader, causal, crossed):
    block, mixer, branches = reader.get("block", "serial"), reader.get("mixer", "attention"), {}
    if mixer != "none":
        slot = "attention" if mixer == "attention" else "mixer"
        if slot == "mixer" and not causal:
            reader.refuse("mixer", mixer, "attention in an encoder, which sees both sides of a token")
        branches[slot] = components.load(components.MIXERS[mixer])(reader, causal)
    if crossed:
        from .components.cross_attention import cross_attention

        branches["cross_attention"] = cross_attention(reader)
    if reader.get("ffn") != "none":
        branches["ffn"] = _feed_forward(reader)
    if not branches:
        reader.refuse("ffn", "none", 'a feed-forward in a layer with mixer = "none", which would do nothing')
    if reader.get("per_layer_dim") is not None and block not in ("serial", "altup"):
        reader.refuse("per_layer_dim", reader.get("per_layer_dim"), f"none with block = {block!r}, which takes none")
    if reader.get("shared_blocks") is not None and block != "hybrid" and (block != "serial" or "attention" in branches):
        given = f"none with block = {block!r} and mixer = {mixer!r}: layers that share "
        given += "blocks are hybrid, or have no attention"
        reader.refuse("shared_blocks", reader.get("shared_blocks"), given)
    return components.load(components.BLOCKS[block])(reader, branches)


def _feed_forward(reader):
    """Plain, of a form of its own, or a mixture of experts in layers that have some."""
    experts, form = reader.get("n_experts", 0), components.FFNS.get(reader.get("ffn"))
    dense = isinstance(experts, int) and experts == 0
    if form is not None:
        if not dense:
            reader.refuse("n_experts", experts, f"0 with ffn = {reader['ffn']!r}, of which no expert can be made")
        make = components.load(form)
    elif dense and reader.get("projection_groups") is not None:
        from .components.grouped import feed_forward as make
    elif dense:
        from .components.feed_forward import feed_forward as make
    elif reader.get("experts_beside_ffn", False):
        from .components.dense_and_experts import dense_and_experts as make
    else:
        from .components.moe import mixture as make
    return make(reader)
