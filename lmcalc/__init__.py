"""lmcalc: what a language-model architecture costs, exactly."""

import sys

__version__ = "0.1.0"

# name: module that has it; loaded when first used, so that `import lmcalc` costs nothing
_NAMES = {
    "load": "cards",
    "models": "questions.catalogue",
    "hardware": "questions.catalogue",
    "report": "questions.report",
    "compare": "questions.compare",
    "sweep": "questions.sweep",
    "roofline": "questions.roofline",
    "validate": "questions.validate",
    "formula": "questions.formula",
    "add_variant": "questions.own",
    "schema": "schemas",
    "trace": "model",
    "build": "model",
    "InputError": "errors",
}
__all__ = [*_NAMES, "reference"]


class _Package(type(sys)):
    """This package. Where a file has a public name (hardware, trace), `lmcalc.hardware` stays the function."""

    def __setattr__(self, name, value):
        if name not in _NAMES or type(value) is not type(
            sys
        ):  # importing a file sets it as an attribute of its package
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name):
    from importlib import import_module

    if name in _NAMES:
        return getattr(import_module("." + _NAMES[name], __name__), name)
    if name == "reference":
        return import_module(".reference", __name__)
    raise AttributeError(f"module 'lmcalc' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
