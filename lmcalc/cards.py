"""Model cards: TOML files in model_cards/, or a user's own, read and checked."""

import math
import os
import re

from . import catalogue
from .arguments import table
from .errors import InputError, closest, shown
from .fields import FIELDS, MOST, MOST_LAYERS, rule
from .model import Model, build

TOP = {
    "name": str, "family": str, "aliases": list, "organization": str, "released": str, "context_length": int,
    "notes": list, "architecture": dict, "source": dict, "published": dict, "training": dict, "unpublished": str,
}  # fmt: skip


def load(model, changes=None):
    """The Model that a name, path or dict stands for.

    model: a card's name or alias, a path to a card (.toml), to a Hugging Face config.json or a folder that holds one,
    to a .gguf file or a folder that holds one, a hub id (org/name, org/name:FILE.gguf), or a dict in the form of a
    config.json. A Model is returned as it is. changes: {field: value} over the card's own fields. Raises InputError for
    what is not known or not a model.

    >>> load("llama-3.1-8b").fields["n_kv_heads"]
    8
    """
    changes = table("set", changes)
    if isinstance(model, Model):
        return _changed(model, changes) if changes else model
    if _is_config(model):
        from . import huggingface

        return huggingface.load(model, changes)
    if isinstance(model, str) and "/" in model and not os.path.exists(model):
        from . import hub

        if hub.is_id(model):
            try:
                return hub.load(model, changes)
            except hub.Unread:
                return _card_of(model, changes)
    if isinstance(model, str | os.PathLike) and _holds_gguf(os.fspath(model)):
        from .headers import gguf_models

        return gguf_models.load(model, changes)
    return built(read(model), changes)


def _card_of(model, changes):
    """The Model of the card that has a hub id among its names, where the hub gave nothing; else what it said."""
    where = catalogue.folder("model_cards")
    name = catalogue.aliases(where).get(model.lower())
    if name is None:
        raise
    found = load(name, changes)
    return found.replace(notes=(*found.notes, f"{model} was not read from the hub: this is the card {name}."))


def _holds_gguf(path):
    """Whether a path is that of a .gguf file, or of a folder with one in it."""
    from .headers import names

    return path.endswith(".gguf") or (os.path.isdir(path) and any(name.endswith(".gguf") for name in names(path)))


def _is_config(model):
    if isinstance(model, str | os.PathLike):
        text = os.fspath(model)
        return text.endswith(".json") or os.path.isfile(os.path.join(text, "config.json"))
    return isinstance(model, dict)


def built(card, changes=None):
    """The Model of a card that was read. A card that only says what is not public has none, and is refused."""
    if "architecture" not in card:
        raise InputError(f"{card['name']}: no architecture to count: {card['unpublished']}")
    fields, where = dict(card["architecture"]), card["where"]
    for name, value in (changes or {}).items():
        fields[name] = check(name, value, "set")
    where = where if not changes else f"{card['name']} with changed fields"
    return build(fields, card["name"], source=card.get("source", {}).get("config", ""),
                 family=card.get("family", ""), notes=tuple(card.get("notes", ())), where=where)  # fmt: skip


def _changed(model, changes):
    fields = dict(model.fields if model.given is None else model.given)
    for name, value in changes.items():
        fields[name] = check(name, value, "set")
    built = build(fields, model.name, model.source, model.family, model.notes, f"{model.name} with changed fields")
    built = built.replace(beside=model.beside)
    return built if model.storage is None else built.replace(storage=model.storage.of(built))


def read(model):
    """A card as a dict, checked; `where` is the file it came from."""
    if not isinstance(model, str | os.PathLike):
        raise InputError(f"model {shown(model)} is a {type(model).__name__}; allowed: a name or a path")
    text = os.fspath(model)
    if text.endswith(".toml") and not os.path.isfile(text):
        raise InputError(f"{text}: no such file")
    try:
        path = text if text.endswith(".toml") else catalogue.find("model", text, catalogue.folder("model_cards"))
    except InputError:
        if not os.path.exists(text):
            raise
        there = "a folder without config.json" if os.path.isdir(text) else "a file of another kind"
        raise InputError(f"{text}: {there}; allowed: a card (.toml), a config (.json), a .gguf file, or a folder that "
                         "holds config.json") from None  # fmt: skip
    return checked(catalogue.read(path), path)


def checked(card, where):
    """The card, if each of its fields is known and of its kind; else InputError names the file, key and value."""
    for key, value in card.items():
        if key not in TOP:
            raise InputError(f"{where}: unknown key {key!r}; allowed: " + ", ".join(TOP))
        if not isinstance(value, TOP[key]) or isinstance(value, bool):
            raise InputError(f"{where}: {key} = {shown(value)}; allowed: {_TYPES[TOP[key]]}")
        catalogue.check_texts(value, f"{where}: {key}")
    if card.get("context_length", 1) < 1:
        raise InputError(f"{where}: context_length = {card['context_length']}; allowed: an integer of at least 1")
    if not isinstance(card.get("source", {}).get("config", ""), str):
        raise InputError(f"{where}: source.config = {card['source']['config']!r}; allowed: text")
    for key in ("name",) if "unpublished" in card else ("name", "architecture"):
        if key not in card:
            raise InputError(f"{where}: the key {key!r} is missing")
    if "unpublished" in card:
        if "architecture" in card:
            raise InputError(f"{where}: unpublished and architecture; allowed: one of the two")
        return {**card, "where": where}
    fields = {key: check(key, value, f"{where}: architecture") for key, value in card["architecture"].items()}
    return {**card, "architecture": fields, "where": where}


def check(name, value, where):
    """The value of a field, if the field is known and the value of its kind (see fields.FIELDS)."""
    if not isinstance(name, str) or name not in FIELDS:
        name = name if isinstance(name, str) else shown(name)
        near = closest(name, FIELDS)
        hint = "closest: " + ", ".join(near) if near else "allowed: " + ", ".join(FIELDS)
        raise InputError(f"{where}.{name} = {shown(value)}: unknown field; {hint}")
    kind = FIELDS[name][0]
    if not is_kind(value, kind):
        raise InputError(f"{where}.{name} = {shown(value)}; allowed: {allowed(kind)}")
    if name == "kinds":
        for kind_name, changes in value.items():
            if not re.fullmatch(r"[\w.+-]+", kind_name):
                raise InputError(f"{where}.kinds.{kind_name!r}; allowed: names of letters, digits, _ . + and -")
            if not isinstance(changes, dict):
                raise InputError(f"{where}.kinds.{kind_name} = {shown(changes)}; allowed: a table of fields")
            for each, changed in changes.items():
                if each in ("kinds", "layers", "n_layers", "d_model", "encoder"):
                    raise InputError(f"{where}.kinds.{kind_name}.{each}: not a field of one layer")
                check(each, changed, f"{where}.kinds.{kind_name}")
    if name == "encoder":
        for each, changed in value.items():
            if each in ("stack", "encoder", "n_layers", "n_encoder_layers"):
                raise InputError(f"{where}.encoder.{each}: not a field of an encoder beside a decoder")
            check(each, changed, f"{where}.encoder")
    return value


_TYPES = {str: "text", int: "an integer", list: "a list of texts", dict: "a table"}


def is_kind(value, kind):
    """Whether a value is of a kind of fields.FIELDS."""
    return _KINDS[kind if isinstance(kind, str) else "word"](value, kind)


def allowed(kind):
    """What a kind of fields.FIELDS allows, in words."""
    return "one of " + ", ".join(kind) if isinstance(kind, tuple) else _ALLOWED[kind]


def _whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _finite(value):
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and (abs(value) <= MOST**8 if isinstance(value, int) else math.isfinite(value))


_KINDS = {
    "size": lambda value, _: _whole(value) and 1 <= value <= MOST,
    "size_rule": lambda value, _: _KINDS["size"](value, _) or (isinstance(value, str) and rule(value) is not None),
    "layers": lambda value, _: _whole(value) and 1 <= value <= MOST_LAYERS,
    "count": lambda value, _: _whole(value) and 0 <= value <= MOST,
    "number": lambda value, _: _finite(value),
    "positive": lambda value, _: _finite(value) and value > 0,
    "ratio": lambda value, _: _finite(value) and 0 < value <= MOST,  # of sizes
    "bool": lambda value, _: isinstance(value, bool),
    "text": lambda value, _: isinstance(value, str),
    "table": lambda value, _: isinstance(value, dict),
    "list": lambda value, _: isinstance(value, list),
    "word": lambda value, kind: isinstance(value, str) and value in kind,
}
_ALLOWED = {
    "size": "an integer from 1 to 2**40",
    "size_rule": "an integer from 1 to 2**40, or a multiple of d_model such as 8/3*d_model or 8/3*d_model:256",
    "layers": f"an integer from 1 to {MOST_LAYERS:,}",
    "count": "an integer from 0 to 2**40",
    "number": "a finite number",
    "positive": "a finite number above 0",
    "ratio": "a number above 0, of up to 2**40",
    "bool": "true or false",
    "text": "text",
    "table": "a table",
    "list": "a list",
}
