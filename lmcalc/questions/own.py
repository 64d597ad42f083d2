"""Variants from outside the package: a component under a word that cards, commands and questions then know.

    lmcalc.add_variant("ffn", "narrow_gate", make, sizes={"d_ff": None, "gate_dim": ("Y", "width of the gate", 7)})
    lmcalc.compare("llama-3.1-8b", [{"ffn": "narrow_gate", "gate_dim": 256}])

It holds in this process. A script that ends in `lmcalc.cli.main()` is the command line with that variant in it.
"""

import re

from ..arguments import table
from ..components import BLOCKS, FFNS, MIXERS, NORMS
from ..errors import InputError, shown, unknown
from ..fields import FIELDS
from . import variants

# field of a card: (the table of its components, fields of a tiny model that has one, where in that model it is)
SLOTS = {
    "norm": (NORMS, variants.PLAIN, "final_norm"),
    "ffn": (FFNS, {**variants.BASE, **variants.HEADS, "positions": "none"}, variants.FEED_FORWARD),
    "mixer": (MIXERS, variants.ALONE, variants.MIXER),
    "block": (BLOCKS, variants.LLAMA, "layers"),
}
MOST_SMALL = 1000  # of a size in a shrunken copy
MOST_LETTERS = 64  # of a word
ADDED, SIZES = {}, set()  # {word: field} and the sizes of their own, of variants that were added


def add_variant(field, word, make, sizes=None, what="a variant from outside"):
    """Let `word` be a value of a card's `field`, and make(...) the component that it stands for.

    field: "norm", "ffn", "mixer" or "block". make: a class or function, called as those of components/__init__.py: for
    a norm with (width, epsilon, axes of its weight); a feed-forward with the fields of its layer; a mixer with these
    and whether the stack is causal; a block with these and its branches {name: component}. fields["d_ff"] is a field
    that has to be there, fields.get("window") one that may. sizes: what of these are sizes, {field: None} for one that
    cards have, {field: (letter in formulas, what it is, its size in a shrunken copy)} for one of its own. what: a line
    for `lmcalc formula --list`. A word that was added may be added again, and is then replaced.

    Raises InputError for a word, field or letter that stands for something else.
    """
    if not isinstance(field, str) or field not in SLOTS:
        raise unknown("field to add a variant to", field, SLOTS)
    made_by, around, where = SLOTS[field]
    _check_word(field, word)
    if not callable(make):
        raise InputError(f"make = {shown(make)}; allowed: a class or function that makes the component")
    if not isinstance(what, str):
        raise InputError(f"what = {shown(what)}; allowed: a line of text")
    sizes = table("sizes", sizes)
    letters = {letter: name for name, (letter, _) in variants.SIZES.items() if name in around or name in sizes}
    for name, row in sizes.items():
        _check_size(name, row, letters)
        if row is not None:
            letters[row[0]] = name
    for name, row in sizes.items():
        if row is not None:
            letter, meaning, small = row
            FIELDS[name], variants.SIZES[name] = ("size", meaning, small), (letter, meaning)
            SIZES.add(name)
    kind, meaning, small = FIELDS[field]
    if word not in kind:
        FIELDS[field] = ((*kind, word), meaning, small)
    made_by[word], ADDED[word] = _checked(field, word, make), field
    variants.VARIANTS[word] = (what, {**around, field: word, **dict.fromkeys(sizes)}, where)


def _checked(field, word, make):
    """`make`, whose result is refused where it is no component, or has weights of axes whose size it does not say."""

    def made(*arguments):
        found = make(*arguments)
        if not all(callable(getattr(found, name, None)) for name in ("weights", "axes", "forward", "children")):
            raise InputError(
                f"{field} = {word!r}: made {shown(found)}; allowed: a Component (lmcalc/components/base.py)"
            )
        weights, axes = found.weights(), found.axes()
        if not isinstance(weights, dict) or not isinstance(axes, dict):
            raise InputError(
                f"{field} = {word!r}: weights() or axes() is no dict; allowed: {{name: axes}}, {{axis: size}}"
            )
        for name, spec in weights.items():
            unsized = [axis for axis in spec if axis not in "->|" and axis not in axes]
            if unsized:
                known = ", ".join(map(str, axes)) or "none"
                raise InputError(f"{field} = {word!r}: weight {name} = {spec!r} has {unsized[0]}; axes() has {known}")
        return found

    return made


def _check_word(field, word):
    if not isinstance(word, str) or not re.fullmatch(rf"[a-z][a-z0-9_]{{,{MOST_LETTERS - 1}}}", word):
        raise InputError(
            f"word = {shown(word)}; allowed: small letters, digits and _, a letter first, {MOST_LETTERS} in all"
        )
    taken = word in FIELDS[field][0] or word in variants.every() or word in variants.ALIASES
    if taken and ADDED.get(word) != field:
        raise InputError(f"word = {word!r} stands for something else; allowed: one that is not in use")


def _check_size(name, row, letters):
    """InputError unless the row is None for a size of cards, or describes one of its own."""
    if row is None:
        if name not in variants.SIZES:
            raise unknown("size", name, variants.SIZES)
        return
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or (
        name in FIELDS and name not in SIZES
    ):  # fmt: skip
        raise InputError(f"sizes: {shown(name)} with a row; allowed: a name that no field has, or None for its row")
    if not isinstance(row, tuple | list) or len(row) != 3 or not isinstance(row[1], str) or not _is_small(row[2]):
        raise InputError(f"sizes: {name} = {shown(row)}; allowed: None, or (letter, what it is, size when shrunk)")
    letter = row[0]
    if not isinstance(letter, str) or not re.fullmatch(r"[A-Z][A-Za-z0-9_]*", letter):
        raise InputError(f"sizes: {name}: letter {shown(letter)}; allowed: a capital letter, as in Y or C_q")
    if letter in variants.WORKLOAD or letters.get(letter, name) != name:
        meaning = variants.WORKLOAD.get(letter) or variants.SIZES.get(letters[letter], ("", letters[letter]))[1]
        raise InputError(f"sizes: {name}: {letter} is {meaning} already; allowed: another letter")


def _is_small(number):
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= MOST_SMALL
