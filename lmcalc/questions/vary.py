"""What a sweep varies: NAME=VALUES, where VALUES is a list a,b,c of values and ranges.

    batch=1,8,64          these
    n_layers=8:64:8       8, 16 ... 64: start:stop:step, both ends included (without a step: 1)
    context=1k:128k:log2  1024, 2048 ... 131072: start:stop:log2 doubles, both ends included (k = 1024)
    weights=bf16,fp8      words

NAME is a size (batch, prompt, past, context), an option of the workload (a dtype or a convention), hardware, or a field
of a model's card. The axes span a grid; its rows run over models, fields and options, machines, and sizes, in this
order, the last of them fastest.
"""

from ..errors import InputError, shown, unknown
from ..fields import FIELDS
from ..words import counted, number
from ..workload import LEAST, MOST, Workload

SIZES = tuple(LEAST)
OPTIONS = tuple(name for name in Workload._fields if name not in (*SIZES, "conv"))
MOST_VALUES = 10_000  # of an axis whose every value needs a model or a pass of its own


def parsed(texts):
    """{name: values} of NAME=VALUES texts. Values of a size are a range where they are evenly spaced, else a list.

    >>> parsed(["batch=1:4", "context=1k:8k:log2", "weights=bf16,fp8"])
    {'batch': range(1, 5), 'context': [1024, 2048, 4096, 8192], 'weights': ['bf16', 'fp8']}
    """
    found = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not values.strip():
            raise InputError(f"--vary {text}: allowed: NAME=VALUES, such as batch=1,8,64 or context=1k:128k:log2")
        if name in found:
            raise InputError(f"--vary {name} is given twice; allowed: one list, such as {name}=VALUES,VALUES")
        found[name] = checked(name, values)
    return found


def checked(name, values):
    """The values of one axis, from a text as above or a list, range or array of them; InputError says what is wrong."""
    fields = [field for field, (kind, *_) in FIELDS.items() if kind not in ("table", "list")]
    names = (*SIZES, *OPTIONS, "hardware", *fields)
    if name not in names:
        raise unknown("name to vary", name, names)
    if isinstance(values, str):
        found = _of_text(name, values)
    else:
        found = values if isinstance(values, range) else _listed(name, values)
    if not len(found):
        raise InputError(f"--vary {name}: no values; allowed: at least one")
    if name in SIZES:
        ends = (found[0], found[-1]) if isinstance(found, range) else found
        for each in ends:
            if isinstance(each, bool) or not isinstance(each, int) or not LEAST[name] <= each <= MOST:
                raise InputError(f"--vary {name}: {shown(each)}; allowed: integers from {LEAST[name]} to 2**53")
        return found
    if len(found) > MOST_VALUES:
        raise InputError(
            f"--vary {name}: {len(found):,} values; allowed: at most {MOST_VALUES:,} of anything but a size"
        )
    return list(found)


def _listed(name, values):
    try:
        if isinstance(values, bytes | dict | set):
            raise TypeError
        found = list(values.tolist() if hasattr(values, "tolist") else values)
    except TypeError:
        raise InputError(
            f"--vary {name}: {shown(values)}; allowed: a list of values, or a text such as 1:64:8"
        ) from None
    return _once(
        name, [int(each) if isinstance(each, float) and each.is_integer() and name in SIZES else each for each in found]
    )


def _of_text(name, text):
    words, found = text.split(","), []
    for word in map(str.strip, words):
        if not word:
            raise InputError(f"--vary {name}={text}: an empty value; allowed: values between the commas")
        if ":" in word and "d_model" not in word:  # a rule for d_ff has a colon too
            part = _range(name, word)
            if len(words) == 1:
                return part
            if len(part) > MOST_VALUES:
                raise InputError(f"--vary {name}: a range of {len(part):,} values within a list; allowed: it alone")
            found += part
        else:
            found.append(_value(word))
    return _once(name, found)


def _value(word):
    found = counted(word)
    return number(word) if found is None else found


def _once(name, values):
    seen = set()
    for each in values:
        if (type(each), shown(each)) in seen:
            raise InputError(f"--vary {name}: {shown(each)} is given twice")
        seen.add((type(each), shown(each)))
    return values


def _range(name, word):
    """start:stop, start:stop:step or start:stop:log2, both ends included."""
    parts = word.split(":")
    if len(parts) > 3 or not all(part.strip() for part in parts):
        raise InputError(f"--vary {name}={word}: allowed: start:stop, start:stop:step or start:stop:log2")
    doubles = parts[-1] == "log2" and len(parts) == 3
    ends = [counted(part) for part in (parts[:2] if doubles else parts)]
    for part, end in zip(parts, ends):
        if end is None:
            raise InputError(f"--vary {name}={word}: {part}; a range has integers, such as 8:64:8 or 1k:128k:log2")
    start, stop, step = ends[0], ends[1], 1 if doubles or len(parts) == 2 else ends[2]
    if start > stop:
        raise InputError(f"--vary {name}={word}: starts at {start}, above its end {stop}")
    if step < 1:
        raise InputError(f"--vary {name}={word}: a step of {step}; allowed: 1 or more")
    if doubles:
        if start < 1:
            raise InputError(
                f"--vary {name}={word}: {start} cannot be doubled; allowed: a start of 1 or more, or a list: 0,1,2,4"
            )
        found = []
        while start < stop:
            found.append(start)
            start *= 2
        return [*found, stop]
    if max(abs(start), stop) > MOST:
        raise InputError(f"--vary {name}={word}: allowed: integers up to 2**53")
    if (stop - start) % step == 0:
        return range(start, stop + 1, step)
    if (stop - start) // step > 10**6:
        last = stop - (stop - start) % step
        raise InputError(f"--vary {name}={word}: steps of {step} miss {stop}; allowed: {start}:{last}:{step}")
    return [*range(start, stop, step), stop]
