"""The pages of CS336 lecture 3 (spring 2026) that state a cost, derived: from the trace to the lecture's form.

A file a topic, a function a derivation; `lmcalc formula --lecture` lists them. Each gives the exact expression off the
trace, the substitutions and limits that are taken, the form that SymPy reaches and the lecture's, monomial by monomial,
with the constants that the lecture leaves out, and numbers: where the form is good, and where it misleads.
"""

from importlib import import_module

from ..errors import unknown

# name: (pages, file, title)
DERIVATIONS = {
    "flop-shares": ("15-16", "shares", "Normalisation and elementwise work against contractions"),
    "ffn": ("22-23, 37-39", "feed_forward", "Parameters of the feed-forward, 8/3, and T5's 64"),
    "parallel": ("28", "parallel", "Parallel blocks and fused projections"),
    "positions": ("30", "positions", "What positions cost"),
    "rope": ("31-35", "rotary", "Rotary inner products see i - j only"),
    "ratios": ("42-44", "ratios", "Heads against the width, and the aspect ratio"),
    "vocabulary": ("47", "vocabulary", "What a vocabulary costs"),
    "stability": ("54-56", "stability", "z-loss, QK norm and soft cap"),
    "intensity": ("58", "intensity", "Arithmetic intensity of full attention"),
    "decode": ("60", "intensity", "Arithmetic intensity of decoding"),
    "mqa": ("61", "intensity", "Arithmetic intensity of decoding with one key/value head"),
    "kv-cache": ("62", "kv_cache", "The cache of GQA and of MLA"),
    "windows": ("64-65", "windows", "Sliding windows, and interleaving them with full attention"),
}


def derivation(name):
    """One derivation as plain data (schema lmcalc.lecture/1).

    >>> [each["same"] for each in derivation("decode")["reached"]]
    [True]
    """
    if name not in DERIVATIONS:
        raise unknown("derivation", name, DERIVATIONS)
    pages, file, title = DERIVATIONS[name]
    made = getattr(import_module(f".{file}", __name__), name.replace("-", "_"))()
    return {"schema": "lmcalc.lecture/1", "name": name, "pages": pages, "title": title, **made.data()}


def ask(name=None):
    """One derivation, or the list of all."""
    if name is not None:
        return derivation(name)
    rows = [{"name": name, "pages": pages, "title": title} for name, (pages, _, title) in DERIVATIONS.items()]
    return {"schema": "lmcalc.lecture.list/1", "derivations": rows}
