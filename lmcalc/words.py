"""Words of a command line as values."""

from .errors import InputError


def whole(name, text):
    """An integer; k stands for 1024, _ and , may group digits.

    >>> whole("--prompt", "2k")
    2048
    """
    found = counted(text)
    if found is None:
        raise InputError(f"{name} {text}: allowed: an integer, such as 2048 or 2k")
    return found


def counted(text):
    """The integer that a word stands for, or None."""
    plain = text.strip().replace(",", "").replace("_", "")
    factor = 1024 if plain[-1:] in ("k", "K") else 1
    digits = plain[:-1] if factor > 1 else plain
    if len(digits) > 100 or not (digits.isascii() and digits.removeprefix("-").isdigit()):
        return None
    return int(digits) * factor


def short(count):
    """An integer in few characters, as `counted` reads it.

    >>> short(131072), short(1500)
    ('128k', '1,500')
    """
    return f"{count // 1024:,}k" if count and count % 1024 == 0 else f"{count:,}"


def number(text):
    """The value of a word: int, float, bool, or the word itself."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
