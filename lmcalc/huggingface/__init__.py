"""Hugging Face's config.json to a Model: one short function for each `model_type` (families.py).

Every key of a config is read, known not to matter (IRRELEVANT), or named in the model's notes. A key that a config
leaves out means the default of its class in transformers, which defaults.json records (tests/record_defaults.py).
"""

import functools
import json
import os

from ..errors import InputError, closest
from ..model import build
from .config import Config
from .irrelevant import IRRELEVANT


def load(source, changes=None):
    """The Model that a config describes: a dict, the path of a .json file, or a folder that holds config.json.

    changes: {field: value} over the fields that were read from it.

    >>> model = load({"model_type": "llama", "num_hidden_layers": 2, "rotary_color": "red"})
    >>> model.fields["d_model"], model.notes
    (4096, ('config keys not read: rotary_color.',))
    """
    from ..cards import check

    data, where, name = source, "config", ""
    if not isinstance(source, dict):
        where = os.path.join(source, "config.json") if os.path.isdir(source) else os.fspath(source)
        data, name = read(where), _name(where)
    fields, family, notes = translate(data, where)
    for field, value in (changes or {}).items():
        fields[field] = check(field, value, "set")
    return build(fields, name or family, where if name else "", family, notes, where)


def built(config, folder, has_head):
    """The Model of a checkpoint folder; has_head: whether it holds a head of its own.

    T5's files decide that themselves: version 1.1 has one, and transformers 5 writes files that lost it.
    """
    where = os.path.join(folder, "config.json")
    fields, family, notes = translate(config, where)
    if family in ("t5", "mt5") and not has_head:
        fields["tied"] = True
    return build(fields, _name(where), where, family, notes, where)


def translate(data, where="config"):
    """(fields, family, notes) of a config in config.json's form."""
    from ..cards import check
    from .families import FAMILIES, NESTED

    if not isinstance(data, dict):
        raise InputError(f"{where}: a {type(data).__name__}; allowed: an object with the key model_type")
    notes = []
    family = data.get("model_type")
    if isinstance(family, str) and family in NESTED:
        data, family, where, notes = _nested(data, family, where)
    if not isinstance(family, str) or family not in FAMILIES:
        raise _unknown_family(family, where, FAMILIES)
    config = Config(data, _defaults()[family], where)
    fields = {field: value for field, value in FAMILIES[family](config).items() if value is not None}
    for field, value in fields.items():
        check(field, value, where)
    unread = [key for key in config.unread() if key not in IRRELEVANT]
    if unread:
        notes.append("config keys not read: " + ", ".join(map(str, unread)) + ".")
    return fields, family, tuple(notes)


def _nested(data, family, where):
    """The text part of a multimodal config; the other parts are named in the notes."""
    from .families import NESTED

    text = data.get("text_config", {})
    if not isinstance(text, dict):
        raise InputError(f"{where}: text_config = {text!r}; allowed: an object")
    others = sorted(
        key for key in data if str(key).endswith("_config") and key not in ("text_config", "quantization_config")
    )
    notes = [f"text part only; not counted: {', '.join(others)}."] if others else []
    outside = {key: data[key] for key in ("tie_word_embeddings", "quantization_config") if key in data}
    inside = text.get("model_type", NESTED[family])
    unread = sorted(
        set(data) - IRRELEVANT - set(others) - set(outside) - {"text_config", "mm_tokens_per_image"}, key=str
    )
    if unread:
        notes.append("config keys not read: " + ", ".join(map(str, unread)) + ".")
    return {**outside, **text}, inside, f"{where}: text_config", notes


def _unknown_family(family, where, known):
    if family is None:
        return InputError(f"{where}: the key 'model_type' is missing; allowed: " + ", ".join(sorted(known)))
    near = closest(family, known) or sorted(known)
    return InputError(f"{where}: model_type = {family!r} is not known; closest: " + ", ".join(near))


def read(path):
    """A JSON file that holds one object. Raises InputError if it cannot be read."""

    def pairs(items):
        found = {}
        for key, value in items:
            if key in found:
                raise ValueError(f"the key {key!r} occurs twice")
            found[key] = value
        return found

    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file, object_pairs_hook=pairs)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: holds a {type(data).__name__}; allowed: an object")
    return data


def _name(path):
    stem, file = os.path.splitext(os.path.basename(path))[0], os.path.dirname(os.path.abspath(path))
    return os.path.basename(file) if stem == "config" else stem


@functools.cache
def _defaults():
    with open(os.path.join(os.path.dirname(__file__), "defaults.json"), encoding="utf-8") as file:
        return json.load(file)
