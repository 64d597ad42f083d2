"""The forward pass of a model on real weights: what a checkpoint answers, without torch.

    ref = lmcalc.reference.open(folder)              # config.json and *.safetensors
    logits, cache = ref(input_ids)                   # (B, T) ints -> (B, T, V)
    logits, cache = ref(next_ids, cache)             # any number of further tokens

It is the same forward that costs are read off, so it is exact and slow: meant for small models.
"""

import os

import numpy

from .compute import Data, random_weights
from .errors import InputError
from .model import Run, Stack, trace
from .record import Frozen


class Cache(Frozen):
    """What a call leaves for the next: states of the layers by path, tokens seen, tokens of the encoder's source."""

    model: object
    states: dict
    past: int
    batch: int
    source: int = None


class Reference:
    """A model with weights, to be called on token ids.

    weights: {path: array}, or a function of (path, axes, sizes). dtype: what it computes in.
    """

    def __init__(self, model, weights, dtype="float64"):
        self.model, self.dtype = model, _dtype(dtype)
        self._given, self._weights = weights, {}

    def __call__(self, input_ids, cache=None, encoder_input_ids=None):
        """(logits (B, T, V), cache) of tokens (B, T) behind those that the cache has seen; an encoder has none.

        encoder_input_ids (B, M): what the encoder of an encoder-decoder reads, in the first call.
        """
        model = self.model
        self._accept(cache, encoder_input_ids)
        tokens, source = self._tokens("input_ids", input_ids, model.fields["vocab_size"]), None
        (batch, new), before = tokens.shape, cache or Cache(model, {}, 0, len(tokens))
        self._same("the cache", before.batch, batch)
        options = {"phase": "decode" if cache is not None and new == 1 else "prefill"}
        if model.encoder is not None:
            options |= {"source": before.source, "encoded": cache is not None}
        if encoder_input_ids is not None:
            source = self._tokens("encoder_input_ids", encoder_input_ids, model.source_vocab)
            self._same("encoder_input_ids", len(source), batch)
            options["source"] = source.shape[1]
        total, longest = before.past + new, model.fields.get("max_positions")
        if model.fields.get("positions") == "learned" and total > longest:
            raise InputError(f"{total} tokens are beyond the {longest} positions of {model.name}'s table")
        data = _Data(self._weight, tokens, before.states, source=source)
        data.dtype = self.dtype
        logits = trace(model, batch, new, before.past, "all", data=data, **options).outputs[0].data
        if model.bidirectional:
            return logits, None
        return logits, Cache(model, data.kept, total, batch, options.get("source"))

    def _accept(self, cache, encoder_input_ids):
        """Refuse arguments that do not go with this kind of model."""
        name, encoder = self.model.name, self.model.encoder
        if cache is not None and (not isinstance(cache, Cache) or cache.model != self.model):
            raise InputError(
                f"cache is {type(cache).__name__}; allowed: what an earlier call of this reference returned"
            )
        if encoder is None and encoder_input_ids is not None:
            raise InputError(f"{name} has no encoder; allowed: no encoder_input_ids")
        if encoder is not None and (cache is None) == (encoder_input_ids is None):
            raise InputError(
                f"{name} has an encoder; allowed: encoder_input_ids in the first call, the cache in later ones"
            )

    def _same(self, what, given, batch):
        if given != batch:
            raise InputError(f"input_ids has {batch} sequences, {what} {given}; allowed: the same")

    def _tokens(self, name, ids, vocab_size):
        """Token ids as an array of ints, if they are some."""
        try:
            ids = numpy.asarray(ids)
        except ValueError:
            raise InputError(
                f"{name} has rows of different lengths; allowed: sequences as long as each other"
            ) from None
        if ids.ndim != 2 or not ids.size or ids.dtype.kind not in "iu":
            raise InputError(
                f"{name} has shape {ids.shape} and type {ids.dtype}; allowed: (sequences, tokens) of integers"
            )
        if ids.min() < 0 or ids.max() >= vocab_size:
            wrong = ids[(ids < 0) | (ids >= vocab_size)][0]
            raise InputError(f"{name} holds {wrong}; allowed: token ids from 0 to {vocab_size - 1}")
        return ids.astype(numpy.int64)

    def _weight(self, path, axes, sizes):
        found = self._weights.get(path)
        if found is None:
            found = self._given(path, axes, sizes) if callable(self._given) else self._given.get(path)
            if found is None:
                raise InputError(f"{self.model.name}: the weight {path} is missing")
            found = self._weights[path] = numpy.asarray(found, self.dtype, order="C")
        return found


class _Data(Data):
    """Every result in the reference's own type: tables and the error function come as float64."""

    def compute(self, primitive, arrays, attributes):
        result, counted = super().compute(primitive, arrays, attributes)
        return (result.astype(self.dtype, copy=False) if result.dtype.kind == "f" else result), counted


def open(folder, dtype="float64"):
    """The reference of a checkpoint folder: config.json and *.safetensors under Hugging Face names.

    Raises InputError for a folder that lacks them, and for tensors that are missing, unused or of another shape: it
    names each.
    """
    from .huggingface import built, read
    from .huggingface.checkpoint import Checkpoint
    from .huggingface.tensors import matched, places

    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"folder {folder!r} is a {type(folder).__name__}; allowed: the path of a folder")
    folder = os.fspath(folder)
    if not os.path.isdir(folder):
        raise InputError(f"{folder}: no such folder; allowed: one that holds config.json and *.safetensors")
    config = read(os.path.join(folder, "config.json"))
    file = Checkpoint(folder)
    model = built(config, folder, "lm_head.weight" in file.shapes)
    found = places(model, weights(model), file.shapes)
    names = matched(found, file, folder, model)
    return Reference(
        model, lambda path, axes, sizes: found[path].take(numpy, lambda name: file.read(names[name])), dtype
    )


def of(model, weights=random_weights, dtype="float64"):
    """The reference of any Model with given weights, {path: array}, or random ones.

    >>> from lmcalc import build
    >>> small = {"n_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 24, "vocab_size": 32}
    >>> logits, cache = of(build(small))([[1, 2, 3]])
    >>> logits.shape, of(build(small))([[4]], cache)[0].shape
    ((1, 3, 32), (1, 1, 32))
    """
    return Reference(model, weights, dtype)


def weights(model):
    """{path: (axes spec, {axis: size})} of every weight, each layer by its number: what a checkpoint has to hold."""
    found = {}

    def walk(path, component):
        for name, spec in (component.weights() | component.buffers()).items():
            found[f"{path}{name}"] = spec, component.axes()
        for name, child in component.children().items():
            walk(f"{path}{name}/", child)
        if isinstance(component, Stack):
            for number, block in enumerate(blocks(component)):
                walk(f"{path}layers/{number}/", block)

    walk("", model)
    return found


def blocks(stack):
    """The blocks of a stack, one after the other."""
    return list(_layers(stack.runs))


def _layers(runs):
    for run in runs:
        for _ in range(run.count):
            for item in run.items:
                yield from _layers([item]) if isinstance(item, Run) else [item[1]]


def _dtype(name):
    try:
        found = numpy.dtype(name)
    except (TypeError, ValueError):
        found = None
    if found not in (numpy.float32, numpy.float64):
        raise InputError(f"dtype = {name!r}; allowed: float32, float64")
    return found
