"""A GGUF file's own metadata to a Model: its keys are translated to those of a config.json, which families/ reads.

gguf_architectures.py says how, gguf_names.py which tensor holds which weight.
"""

import re
from fractions import Fraction

from ..errors import InputError, closest
from ..storage import numbered_weights, stored
from .gguf_architectures import ARCHITECTURES, IRRELEVANT
from .gguf_keys import ABSENT, Keys
from .gguf_names import table


def load(path, changes=None):
    """The Model of a GGUF file's metadata, stored as its tensors are."""
    from . import read

    return model(read(path), changes)


def model(header, changes=None):
    """The same of a Header."""
    from ..cards import check
    from ..huggingface import translate
    from ..model import build

    config, notes = _config(header)
    fields, family, more = translate(config, header.path)
    for field, value in (changes or {}).items():
        fields[field] = check(field, value, "set")
    name = header.metadata.get("general.name")
    name = name if isinstance(name, str) and name.isprintable() and 0 < len(name) <= 100 else header.path
    made = build(_fields(fields, family), name, header.path, family, (*notes, *more), header.path)
    kinds = {}
    for tensor in header.tensors.values():
        kinds[tensor.dtype] = kinds.get(tensor.dtype, 0) + tensor.size
    text = ", ".join(f"{dtype} {size:,} bytes" for dtype, size in sorted(kinds.items(), key=lambda item: -item[1]))
    original = made
    if changes:
        original = build(_fields(translate(config, header.path)[0], family), name, header.path, family, (), header.path)
    return stored(made, text, Bits(_bits(header, original)))


def places(model, wanted, tensors):
    """{path: Place} of the weights that are tensors of a file. wanted: {path: (axes spec, {axis: size})}.

    ggml fills up a shape with ones at its outer end, so these say nothing.
    """
    from ..huggingface import tensors as huggingface

    names = table(model.family, tensors)
    absent = {row for row, name in names.items() if name is None}
    wanted = {path: each for path, each in wanted.items() if re.sub(r"layers/\d+/", "layers/{}/", path) not in absent}
    names = {row: name for row, name in names.items() if name is not None}
    found = huggingface.places(model, wanted, names=names)
    return {path: place.replace(shape=plain(place.shape)) for path, place in found.items()}


def plain(shape):
    """A shape without ones at its outer end."""
    at = next((at for at, size in enumerate(shape[:-1]) if size != 1), len(shape) - 1)
    return tuple(shape[max(at, 0) :])


class Bits:
    """A rule of storage: bits of a value by path, for the model of a file and for changed copies of it."""

    def __init__(self, found):
        self.found = found

    def __call__(self, model):
        from ..lenses.params import tensors

        sizes, usual = {}, Fraction(16)
        for path, _, spec, size_of, _ in tensors(model):
            elements = 1
            for axis in spec:
                if axis not in "->|":
                    elements *= size_of[axis]
            size = self.found.get(path, usual) * elements / 8
            sizes[path] = size.numerator if size.denominator == 1 else size
        return sizes


def _bits(header, model):
    """{path: mean bits of a value} of the weights that the file holds."""
    weights = {path: (traced, spec, size_of) for traced, path, _, spec, size_of in numbered_weights(model)}
    found, totals = places(model, {path: each[1:] for path, each in weights.items()}, header.tensors), {}
    for path, place in found.items():
        for name in place.names:
            tensor = header.tensors.get(name)
            if tensor is not None and tensor.elements:
                sums = totals.setdefault(weights[path][0], [0, 0])
                sums[0] += Fraction(tensor.size * 8, tensor.elements)
                sums[1] += 1
    return {path: total / count for path, (total, count) in totals.items()}


def _config(header):
    """(an object in config.json's form, notes) of a header's metadata."""
    metadata, where = header.metadata, header.path
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in ARCHITECTURES:
        near = closest(architecture, ARCHITECTURES) or sorted(ARCHITECTURES)
        raise InputError(
            f"{where}: general.architecture = {str(architecture)[:80]!r} is not known; closest: " + ", ".join(near)
        )
    model_type, keys, more = ARCHITECTURES[architecture]
    g = Keys(header, architecture)
    config = {"model_type": model_type, "num_hidden_layers": g.layers, "tie_word_embeddings": not g.holds("output")}
    for key, name in keys.items():
        needed = key in NEEDED and not (key == "feed_forward_length" and "expert_feed_forward_length" in keys)
        value = g.one(key, needed)
        if name is not None and (value is not None or name in ABSENT):
            config[name] = ABSENT[name] if value is None else value
    if "attention.head_count_kv" in keys:
        config.setdefault("num_key_value_heads", config.get("num_attention_heads"))
    config["vocab_size"] = g.shape("token_embd", 0, config.get("vocab_size"))
    if "rms_norm_eps" in config:  # both keys: only one is of its norms, and costs are the same
        config.pop("layer_norm_eps", None)
    if keys.get("attention.key_length") == "head_dim":
        _head(g, config)
    if more is not None:
        more(g, config)
    return config, _notes(g, keys, header, config["model_type"])


NEEDED = ("embedding_length", "attention.head_count", "feed_forward_length")


def _head(g, config):
    """The size of a head, and of its part that is turned."""
    if "head_dim" not in config:
        config["head_dim"] = g.size("embedding_length") // g.size("attention.head_count") or None
    turned = g.count("rope.dimension_count")
    if turned and turned != config["head_dim"]:
        config["rotary_dim"] = turned


def _notes(g, keys, header, model_type):
    """What was not read, and what a file cannot tell."""
    prefix, unread, notes = g.architecture + ".", [], []
    for key in g.metadata:
        short = key.removeprefix(prefix)
        mine = short != key and (short in keys or short in g.read)
        if not mine and not short.startswith(tuple(IRRELEVANT)):
            unread.append(key)
    if unread:
        notes.append(f"metadata keys not read: {', '.join(sorted(unread))}.")
    if f"{prefix}rope.scaling.type" in g.metadata or "rope_freqs.weight" in header.tensors:
        notes.append("Rescaled rotary frequencies are not read: they change no cost.")
    return [*notes, *filter(None, [UNTOLD.get(model_type)])]


ENCODERS = ("bert", "nomic_bert", "modernbert")
# What files of a kind leave out, and costs depend on
CHUNKS = "A GGUF file does not say in which chunks a scan goes: in those of the class in transformers."
UNTOLD = {
    **dict.fromkeys(("mamba2", "falcon_h1", "granitemoehybrid", "nemotron_h"), CHUNKS),
    "llama4_text": "A GGUF file does not say in which chunks Llama 4 attends: in those of the published models.",
    **dict.fromkeys(ENCODERS, "The file has no head for masked words: one that is the embedding is counted in FLOPs."),
}


def _fields(fields, family):
    """The fields of a model as such files hold it: an encoder without its head for masked words."""
    if family in ENCODERS:
        fields = {key: value for key, value in fields.items() if not key.startswith("head_") or key == "head_dim"}
    return fields
