"""The text part of a multimodal config: where it lies, which model_type it is, and what lies beside it.

One rule holds for all: the text part is the object under a key of TEXT_KEYS, and its own model_type says what it is.
families.NESTED has the model_type of those that leave it out, whose text keys may lie among the others, too. Where
keys that are missing mean something else than in the text model's own class, nested.json records it
(tests/record_nested.py).
"""

import functools
import json
import os

from ..errors import InputError, shown
from ..record import Frozen
from .families import ALIASES, FAMILIES, NESTED, OUTSIDE, TIED
from .irrelevant import IRRELEVANT, OTHER_PARTS, OTHER_PREFIXES

TEXT_KEYS = ("text_config", "language_config", "llm_config", "thinker_config")
PART_ENDINGS = ("_config", "_processor", "_layer", "_lora", "visual")  # of keys that hold other parts
SIZE_KEYS = ("hidden_size", "num_hidden_layers", "n_embd", "d_model")
WITHIN = {"ernie4_5_vl_moe_text": ("experts of images",)}  # what a text model's own class has for other parts
OF_ALL = ("quantization_config", "quantization", "dtype", "torch_dtype")  # said outside of the text for all parts


class Part(Frozen):
    """data: the keys of the text part, model_type: what it is. where: for errors. beside: the other parts, by name.

    notes: what a reader must know.
    """

    data: dict
    model_type: object
    where: str
    beside: tuple = ()
    notes: tuple = ()


def text_part(data, where):
    """The Part of a config.json's object; of one that is a text model's that is all of it."""
    family = data.get("model_type")
    if not isinstance(family, str) or (family in {*FAMILIES, *OUTSIDE, *ALIASES} and family not in NESTED):
        return Part(data, family, where)
    path, text, others, outer = (), data, {}, {}
    while (key := next((key for key in TEXT_KEYS if text.get(key) is not None), None)) is not None and len(path) < 3:
        inside = text[key]
        if not isinstance(inside, dict):
            raise InputError(f"{where}: {': '.join((*path, key))} = {shown(inside)}; allowed: an object")
        outer |= {name: value for name, value in text.items() if name not in TEXT_KEYS}
        others |= dict.fromkeys(name for name in text if _is_part(name, text))
        path, text = (*path, key), inside
    if not path and family not in NESTED:
        return Part(data, family, where)
    if path:
        own = _defaults().get(family, {})
        return _nested(family, path, own["text"] | text if own.get("always") else text, outer, others, where)
    return _flat(family, data, where)


def _nested(family, path, text, outer, others, where):
    inside = text.get("model_type")
    if inside is None or inside == family or (isinstance(inside, str) and inside in NESTED):
        inside = NESTED.get(family)
    if inside == "deepseek_v2" and text.get("use_mla") is False:  # DeepSeek-VL2 and OCR: its experts without the rest
        inside = "deepseek_ocr2_text"
    where = f"{where}: {': '.join(path)}"
    if inside is None:
        raise InputError(f"{where}: the key 'model_type' is missing; allowed: that of a text model ({family!r} is not "
                         "known, and so not what its text part is)")  # fmt: skip
    others |= dict.fromkeys(WITHIN.get(inside if isinstance(inside, str) else None, ()))
    unread = [key for key, value in outer.items() if not _known(key, value, text) and key not in others]
    tied = _tied(family, outer.get("tie_word_embeddings"), text.get("tie_word_embeddings"))
    data = {key: outer[key] for key in OF_ALL if key in outer} | text
    if tied is not None:
        data["tie_word_embeddings"] = tied
    return Part(data, inside, where, tuple(sorted(others, key=str)) or (family,), _notes(family, others, unread))


def _flat(family, data, where):
    others = dict.fromkeys((*(key for key in data if _is_part(key, data)), *WITHIN.get(NESTED[family], ())))
    text = {key: value for key, value in data.items() if key not in others and not _of_other_parts(key)}
    said, tied = any(key in data for key in SIZE_KEYS), data.get("tie_word_embeddings")
    if not said:  # nothing of the text
        text = _defaults().get(family, {}).get("text", {}) | text
    tied = _tied(family, tied, tied if said else None)
    text = {key: value for key, value in text.items() if key != "tie_word_embeddings"}
    text |= {} if tied is None else {"tie_word_embeddings": tied}
    return Part(text, NESTED[family], where, tuple(sorted(others, key=str)) or (family,), _notes(family, others, ()))


def _notes(family, others, unread):
    named = ", ".join(sorted(map(str, others))) or f"the other parts of {family}"
    notes = [f"text part only; not counted: {named}, and what joins them to the text."]
    if unread:
        notes.append("config keys not read: " + ", ".join(sorted(map(str, unread))) + ".")
    return tuple(notes)


def _is_part(key, data):
    """Whether a key holds the config of another part than the text's."""
    return isinstance(data[key], dict) and key not in (*TEXT_KEYS, *OF_ALL) and str(key).endswith(PART_ENDINGS)


def _known(key, value, text):
    """Whether nothing is lost of a key outside of the text part."""
    return (
        key in (*IRRELEVANT, *OF_ALL, "tie_word_embeddings")
        or _of_other_parts(key)
        or (key in text and text[key] == value)
    )


def _of_other_parts(key):
    return key in OTHER_PARTS or str(key).startswith(OTHER_PREFIXES)


def _tied(family, outside, inside):
    """Whether embedding and head share a table, as the config says it outside of its text part and inside; or None.

    transformers 5 goes by what stands outside, but for the types in TIED; older files may say it only inside.
    """
    how = TIED.get(family, "outside")
    if how == "never":
        return False
    if how == "inside" or not isinstance(outside, bool):
        return inside
    if how == "either":  # what is not said inside is the text model's own default
        return True if outside else inside
    return outside


@functools.cache
def _defaults():
    with open(os.path.join(os.path.dirname(__file__), "nested.json"), encoding="utf-8") as file:
        return json.load(file)
