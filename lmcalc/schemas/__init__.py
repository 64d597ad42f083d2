"""The JSON schemas (draft 2020-12) of what commands print with -f json: a file for each."""

import os

from ..errors import unknown

FOLDER = os.path.dirname(os.path.abspath(__file__))


def schema(name):
    """The schema of a command's JSON, as a dict.

    >>> schema("report")["properties"]["schema"]
    {'const': 'lmcalc.report/1'}
    """
    import json

    known = [each[:-5] for each in os.listdir(FOLDER) if each.endswith(".json")]
    if not isinstance(name, str) or name not in known:
        raise unknown("schema", name, known)
    with open(os.path.join(FOLDER, f"{name}.json"), encoding="utf-8") as file:
        return json.load(file)
