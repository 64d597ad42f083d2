"""Architecture variants, one idea a file. The tables say which word on a card means which component.

Components are loaded when a model needs them: `make("norm", fields, ...)`.
"""

from importlib import import_module

# what a card calls it: (file, class or function)
NORMS = {
    "rmsnorm": ("norms", "RMSNorm"),
    "rmsnorm_plus_one": ("norms", "RMSNormPlusOne"),
    "layernorm": ("norms", "LayerNorm"),
    "layernorm_no_bias": ("norms", "LayerNormNoBias"),
    "layernorm_plain": ("norms", "LayerNormPlain"),
    "layernorm_plus_one": ("norms", "LayerNormPlusOne"),
}
BLOCKS = {
    "serial": ("blocks", "serial"),
    "parallel": ("blocks", "parallel"),
    "parallel_two_norms": ("blocks", "parallel"),
}


def load(entry):
    """The class or function of a table entry."""
    file, name = entry
    return getattr(import_module("." + file, __name__), name)


def norm(fields, width, axis="D"):
    """The norm that a card describes, over `width` entries of `axis`."""
    kind = load(NORMS[fields.get("norm", "rmsnorm")])
    return kind(width, fields.get("norm_eps", 1e-5), axis)
