"""What Python callers pass: one thing or several, and tables of fields."""

import os

from .errors import InputError, shown
from .record import Frozen


def several(given):
    """A list of what was given: none for None, one thing (a name, a path, a config, a model), or several.

    >>> several("h100"), several(("a100", "h100")), several(None), several(5)
    (['h100'], ['a100', 'h100'], [], [5])
    """
    if given is None:
        return []
    if isinstance(given, str | bytes | os.PathLike | dict | Frozen):
        return [given]
    try:
        return list(given)
    except TypeError:  # no list: one thing, right or wrong
        return [given]


def table(name, given):
    """{field: value} as it was given; empty for None."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InputError(f"{name} = {shown(given)}; allowed: a dict of fields and values")
    return given


def for_each(name, given, count):
    """[{field: value}] for each of `count` models: of one table for all of them, or of a list with one for each."""
    if isinstance(given, list) and len(given) != count:
        raise InputError(f"{name}: a list of {len(given)}; allowed: a dict, or one for each of {count} models")
    return [table(name, each) for each in (given if isinstance(given, list) else [given] * count)]
