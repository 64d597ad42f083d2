"""Columns of arrays as values and as text: whole numbers without a point, unknown ones empty."""

from ..units import si

EXACT = 2**53  # whole numbers beyond are floats, and are written as such


def python(values, labels, whole=False):
    """An array as a list of Python values: int, float, bool, text, None. labels: what codes stand for."""
    import numpy

    if labels is not None:
        return [labels[code] for code in values.astype(int).tolist()]
    if whole and values.size and abs(values).max() <= EXACT:  # false where one is NaN
        return values.astype(numpy.int64).tolist()
    return [_value(each, whole) for each in values.tolist()]


def _value(value, whole):
    if value != value:
        return None
    return int(value) if whole and abs(value) <= EXACT else value


def words(values, labels, whole=False, none="", quote=None):
    """An array as texts, a number as one: as Python prints them, which reads back the same. none: what is not known."""
    import numpy

    single = not numpy.shape(values)
    values = numpy.reshape(values, -1)
    if labels is not None:
        names = [word(label, none, quote) for label in labels]
        return names[values[0]] if single else [names[code] for code in values.tolist()]
    if single:
        return word(_value(float(values[0]), whole), none, quote)
    if whole and values.size and abs(values).max() <= EXACT:
        return list(map(str, values.astype(numpy.int64).tolist()))
    if not whole and numpy.isfinite(values).all():
        return list(map(repr, values.tolist()))
    return [word(_value(each, whole), none, quote) for each in values.tolist()]


def word(value, none="", quote=None):
    """One value as text."""
    if value is None:
        return none
    if isinstance(value, bool):
        return "true" if value else "false"
    return (quote(value) if quote else value) if isinstance(value, str) else repr(value)


def asked(workload, decode=True):
    """A workload in words."""
    onto = f" onto {workload['past']:,}" if workload["past"] else ""
    further = f"; decode 1 token onto {workload['context']:,}" if decode else ""
    return f"batch {workload['batch']:,}; prefill {workload['prompt']:,} tokens{onto}{further}"


def conventions(workload):
    """The dtypes and conventions of a workload in words."""
    dtypes = ", ".join(f"{name} {dtype}" for name, dtype in workload["dtypes"].items())
    chosen = ("mask", "logits", "traffic", "experts", "mla")
    return dtypes + "; " + ", ".join(f"{name} {workload[name]}" for name in chosen)


def known(value, unit=""):
    """A number with an SI prefix, or that it is not known."""
    return "not known" if value is None else si(value, unit)
