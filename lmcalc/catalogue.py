"""Folders of TOML files, one thing a file, found by file name or alias: model cards and machines."""

import functools
import os
import re

from .errors import InputError, unknown

_ALIASES = re.compile(r"^aliases\s*=\s*\[([^\]]*)\]", re.M)
MOST_BYTES, MOST_DOTS = 2**18, 200  # of a file, of a line
MOST_TEXT = 5_000  # characters of a name or note
_HERE = os.path.dirname(os.path.abspath(__file__))


def folder(name):
    """The data folder inside the package (a wheel), else the one beside it (a checkout)."""
    inside = os.path.join(_HERE, name)
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(_HERE), name)


def names(where):
    """Every name in a catalogue folder, sorted."""
    return sorted(file[:-5] for file in os.listdir(where) if file.endswith(".toml"))


def aliases(where):
    """{alias: name} of a catalogue folder, lower case; read once, and again when files come or go."""
    return _aliases(where, os.stat(where).st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _aliases(where, changed):
    found = {}
    for name in names(where):
        with open(os.path.join(where, name + ".toml"), encoding="utf-8") as file:
            match = _ALIASES.search(file.read())
        if match:
            for alias in re.findall(r'"([^"]+)"', match.group(1)):
                found[alias.lower()] = name
    return found


def find(what, name, where):
    """The path of the entry called `name`. Raises InputError with the closest names if there is none."""
    if re.fullmatch(r"[\w.+-]+", name):
        path = os.path.join(where, name.lower() + ".toml")
        if os.path.isfile(path):
            return path
    other = aliases(where)
    if name.lower() in other:
        return os.path.join(where, other[name.lower()] + ".toml")
    raise unknown(what, name, {*names(where), *other})


def check_texts(value, where):
    """Refuse, of a name or a list of notes, what is no text, and what a terminal would take for commands."""
    for each in value if isinstance(value, list) else [value]:
        text = each.replace("\n", "") if isinstance(value, list) and isinstance(each, str) else each
        if isinstance(value, list) and not isinstance(each, str):
            raise InputError(f"{where} holds {each!r}; allowed: texts")
        if isinstance(text, str) and not (text.strip() and text.isprintable() and len(text) <= MOST_TEXT):
            raise InputError(f"{where} = {each!r}; allowed: 1 to {MOST_TEXT:,} characters that can be printed")


def read(path):
    """A TOML file as a dict. Raises InputError if it cannot be read."""
    import tomllib

    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise InputError(f"{path}: allowed: a file of up to {MOST_BYTES:,} bytes")
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.count(b".") > MOST_DOTS:  # a.b.c = 1 takes time with the square of its dots
            raise InputError(f"{path}: line {number} has {line.count(b'.'):,} dots; allowed: up to {MOST_DOTS}")
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # of its syntax, its bytes, an integer of thousands of digits
        raise InputError(f"{path}: not valid TOML: {error}") from None
