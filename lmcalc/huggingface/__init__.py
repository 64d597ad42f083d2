"""Hugging Face's config.json to a Model: one short function for each `model_type` (families/).

Every key of a config is read, known not to matter (IRRELEVANT), or named in the model's notes. A key that a config
leaves out means the default of its class in transformers, which defaults.json records (tests/record_defaults.py); where
transformers has no class (families.OUTSIDE), it is refused if it is needed.
"""

import functools
import json
import os

from ..errors import InputError, closest, shown
from ..model import build
from .config import Config
from .irrelevant import IRRELEVANT

MOST = 2**25  # bytes of a config or index


def load(source, changes=None):
    """The Model that a config describes: a dict, the path of a .json file, or a folder that holds config.json.

    changes: {field: value} over the fields that were read from it.

    >>> model = load({"model_type": "llama", "num_hidden_layers": 2, "rotary_color": "red"})
    >>> model.fields["d_model"], model.notes[0]
    (4096, 'config keys not read: rotary_color.')
    """
    from ..cards import check

    data, where, name = source, "config", ""
    if not isinstance(source, dict):
        where = os.path.join(source, "config.json") if os.path.isdir(source) else os.fspath(source)
        data, name = read(where), _name(where)
    fields, family, notes, assumed = _translated(data, where)
    for field, value in (changes or {}).items():
        fields[field] = check(field, value, "set")
    notes = (*notes, *assumed)
    return _finished(build(fields, name or family, where if name else "", family, notes, where), data, where)


def built(config, folder, has_head):
    """The Model of a checkpoint folder; has_head: whether it holds a head of its own.

    T5's files decide that themselves: version 1.1 has one, and transformers 5 writes files that lost it.
    """
    where = os.path.join(folder, "config.json")
    fields, family, notes = translate(config, where)
    if family in ("t5", "mt5", "umt5") and not has_head:
        fields["tied"] = True
    return _finished(build(fields, _name(where), where, family, notes, where), config, where)


def _finished(model, data, where):
    """The model with the parts beside it, if there are any, and stored as its config's quantization_config says."""
    from .nested import text_part

    part = text_part(data, where)
    model = model.replace(beside=part.beside) if part.beside else model
    if not any("quantization" in str(key) for key in part.data):
        return model
    from ..storage import stored
    from .names import NAMES
    from .quantization import described, scheme

    found, notes = scheme(part.data, where)
    if found is not None and model.family not in NAMES:
        unknown = f"quantization_config: names of tensors are not known for model_type {model.family!r}, and so "
        found, notes = None, [unknown + "which of them are packed: weights are as --weights says."]
    model = model.replace(notes=(*model.notes, *notes))
    return model if found is None else stored(model, described(found), found)


def translate(data, where="config"):
    """(fields, family, notes) of a config in config.json's form."""
    return _translated(data, where)[:3]


def _translated(data, where):
    """The same, and notes on what the config leaves to its class."""
    from ..cards import check
    from .families import ALIASES, FAMILIES, NESTED, OUTSIDE, published_defaults
    from .families import family as of
    from .nested import text_part

    if not isinstance(data, dict):
        raise InputError(f"{where}: a {type(data).__name__}; allowed: an object with the key model_type")
    part = text_part(data, where)
    data, family, where, notes = part.data, part.model_type, part.where, list(part.notes)
    family = ALIASES.get(family, family) if isinstance(family, str) else family
    known = FAMILIES | OUTSIDE
    if not isinstance(family, str) or family not in known:
        raise _unknown_family(family, where, [*known, *NESTED])
    config = Config(data, _defaults()[family] if family in FAMILIES else published_defaults(family), where)
    config.skip("quantization_config", "quantization", "expert_dtype")  # see quantization.py
    if config.given("auto_map"):
        notes.append("auto_map asks for code of its own: none was run, model_type says what the model is.")
    config = config.without_null("rope_parameters")  # each class puts its own where it is null
    fields = {field: value for field, value in of(family)(config).items() if value is not None}
    for field, value in fields.items():
        check(field, value, where)
    notes += config.notes
    unread = [key for key in config.unread() if key not in IRRELEVANT]
    if unread:
        notes.append("config keys not read: " + ", ".join(map(str, unread)) + ".")
    return fields, family, tuple(notes), _assumed(config)


def _assumed(config):
    """Notes on sizes that a config leaves out."""
    sizes = ", ".join(f"{key} {value}" for key, value in config.assumed.items())
    return (f"not in the config, and so as its class has it: {sizes}.",) if sizes else ()


def _unknown_family(family, where, known):
    if family is None:
        return InputError(f"{where}: the key 'model_type' is missing; allowed: " + ", ".join(sorted(known)))
    near = closest(shown(family), known) or sorted(known)
    return InputError(f"{where}: model_type = {shown(family)} is not known; closest: " + ", ".join(near))


def read(path):
    """A JSON file that holds one object. Raises InputError if it cannot be read."""
    from ..headers.safetensors import parsed
    from ..headers.source import File

    with File(path) as file:
        if file.size > MOST:
            raise InputError(f"{path}: {file.size:,} bytes; allowed: a config of up to {MOST:,}")
        text = file.read(0, file.size)
    return parsed(text, path)


def _name(path):
    stem, file = os.path.splitext(os.path.basename(path))[0], os.path.dirname(os.path.abspath(path))
    return os.path.basename(file) if stem == "config" else stem


@functools.cache
def _defaults():
    with open(os.path.join(os.path.dirname(__file__), "defaults.json"), encoding="utf-8") as file:
        return json.load(file)
