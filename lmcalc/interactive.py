"""A roofline as one HTML page that needs nothing else: hover for numbers, toggles for machines, models, phases and
levels."""

import json
import os

from .colours import COLOURS, DARK


def page(data):
    """The page of a roofline question (schema lmcalc.roofline/1)."""
    from .render.roofline import sentence, title

    held = {"data": data, "title": f"Roofline: {title(data)}", "sentences": [sentence(each) for each in data["turns"]],
            "colours": [COLOURS, DARK]}  # fmt: skip
    text = json.dumps(held, allow_nan=False).replace("<", "\\u003c")  # no tag can begin inside the script
    with open(os.path.join(os.path.dirname(__file__), "interactive.html"), encoding="utf-8") as file:
        return file.read().replace("@DATA@", text)
