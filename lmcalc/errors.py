"""The one exception that a user sees: a message that says what was given, what is allowed, and where."""


class InputError(ValueError):
    """Bad input: a wrong name, file, field or workload. The command line prints it and exits with status 2.

    A message is one line, or one and a list below it. What was given may be long, or a terminal's commands: a line
    keeps its ends, and control characters become `?`.
    """

    def __init__(self, text, below=()):
        super().__init__("\n  ".join(map(_shown, (text, *below))))


def _shown(line, most=2000):
    if len(line) > most:
        line = f"{line[: most // 2]} ... ({len(line) - most:,} characters) ... {line[-most // 2 :]}"
    return line if line.isprintable() else "".join(each if each.isprintable() else "?" for each in line)


def shown(value):
    """A value as it was given, for a message; also what Python does not write out: too many digits, too deep."""
    try:
        return repr(value)
    except (ValueError, RecursionError):
        return "an integer of thousands of digits" if isinstance(value, int) else f"a {type(value).__name__}"


def closest(name, known, most=5):
    """The known names nearest to `name`, best first.

    >>> closest("llama-3.1-8", ["llama-3.1-8b", "gpt2", "llama-3.1-70b"], most=2)
    ['llama-3.1-8b', 'llama-3.1-70b']
    """
    import difflib

    folded = {}
    for each in known:
        folded.setdefault(str(each).lower(), each)
    text = name if isinstance(name, str) else shown(name)
    near = difflib.get_close_matches(text.lower()[:200], folded, n=most, cutoff=0.4)
    return [folded[each] for each in near]


def unknown(what, name, known):
    """The error for a name that is not among the known ones; it lists the closest, or all if these are few or none."""
    known = sorted(known, key=str)
    near = closest(name, known)
    few = len(known) <= 12 or (not near and len(known) <= 100)
    text = f"unknown {what} {shown(name)}"
    if few or near:
        text += ("; allowed: " if few else "; closest: ") + ", ".join(map(str, known if few else near))
    else:
        text += f"; allowed: {len(known):,} names, such as " + ", ".join(map(str, known[:: len(known) // 3][:3]))
    return InputError(text)
