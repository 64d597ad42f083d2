"""Models or variants side by side: their reports, and why they differ from the first."""

from ..arguments import for_each, several, table
from ..cards import load
from ..errors import InputError, shown
from ..fields import FIELDS
from .report import report

SCHEMA = "lmcalc.compare/1"
FEW = 6  # so many models have their differences attributed to features without asking
# what is compared: where it stands in a report
QUANTITIES = {
    "params": ("params", "total"),
    "weights_bytes": ("weights", "bytes"),
    "cache_bytes": ("cache", "bytes"),
    "state_bytes": ("cache", "state_bytes"),
    "prefill_flops": ("prefill", "flops", "total"),
    "prefill_bytes": ("prefill", "bytes", "total"),
    "decode_flops": ("decode", "flops", "total"),
    "decode_bytes": ("decode", "bytes", "total"),
}


def compare(models, variants=(), hardware=(), why=None, set=None, **options):
    """{schema, reports, differences}: several models, or variants of one, against the first.

    models: names (anything `load` takes). variants: for each a {field: value} over the first model. A difference names
    its quantity, gives it by part exactly, and by feature: the fields in which the two differ are changed one after the
    other in the order of `fields.FIELDS`, steps that no forward can run merged with the next, adding up to the whole.
    why: True or False, whether to do that (a report for each field; else by_feature is None); None for True of up to
    FEW models.

    >>> data = compare(["llama-3.1-8b"], [{"n_kv_heads": 1}])
    >>> [(each["from"], each["to"]) for each in data["differences"] if each["quantity"] == "cache_bytes"]
    [(268435456, 33554432)]
    """
    models, variants = several(models), [table("variant", each) for each in several(variants)]
    if variants and len(models) != 1:
        raise InputError(
            f"variants of one model can be compared, or several models; given: {len(models)} models and variants"
        )
    if len(models) + len(variants) < 2:
        raise InputError("one model to compare; allowed: several models, or one and its variants")
    if why is not None and not isinstance(why, bool):
        raise InputError(f"why = {shown(why)}; allowed: True, False or None")
    loaded = _loaded(models, variants, set)
    why = len(loaded) <= FEW if why is None else why
    reports = [report(each, hardware, **options).to_dict() for each in loaded]
    differences = []
    options.pop("set_hardware", None)  # why they differ is asked without machines
    for model, data in zip(loaded[1:], reports[1:]):
        steps = _steps(loaded[0], model, hardware=(), **options) if why else None
        for quantity, path in QUANTITIES.items():
            if _at(reports[0], path) is not None and _at(data, path) is not None:
                differences.append(_difference(quantity, path, model.name, reports[0], data, steps))
    return {"schema": SCHEMA, "reports": reports, "differences": differences}


def _loaded(models, variants, set):
    loaded = [load(model, changes) for model, changes in zip(models, for_each("set", set, len(models)))]
    for changes in variants:
        model = load(loaded[0], changes)
        name = f"{loaded[0].name} " + ",".join(f"{field}={value}" for field, value in changes.items())
        loaded.append(model.replace(name=name))
    return loaded


CONTEXTS = tuple(2**power for power in range(7, 18))


def curves(models, variants=(), set=None, **options):
    """{context, models: [{model, cache_bytes, flops_per_token}]}: what a plot draws against context.

    cache_bytes: cache and state of the batch; flops_per_token: of decode, None of an encoder.
    """
    from .sweep import sweep

    options = {name: value for name, value in options.items() if name != "context"}
    batch, found = options.get("batch", 1), []
    for model in _loaded(several(models), variants, set):
        columns = ["cache_bytes", "state_bytes"] + ([] if model.bidirectional else ["decode_flops"])
        grid = sweep(model, context=list(CONTEXTS), columns=columns, **options)
        held = [float(a + b) for a, b in zip(grid["cache_bytes"], grid["state_bytes"])]
        flops = None if model.bidirectional else [float(each) / batch for each in grid["decode_flops"]]
        found.append({"model": model.name, "cache_bytes": held, "flops_per_token": flops})
    return {"context": list(CONTEXTS), "models": found}


def _at(data, path):
    for key in path:
        if data is None:
            return None
        data = data[key]
    return data


def _difference(quantity, path, name, base, other, steps):
    start, end = _at(base, path), _at(other, path)
    before, after = _parts(base, path), _parts(other, path)
    by_part = {part: after.get(part, 0) - before.get(part, 0) for part in {**before, **after}}
    by_feature, reached = [], start
    for feature, old, new, data in steps or ():
        by_feature.append({"feature": feature, "from": old, "to": new, "change": _at(data, path) - reached})
        reached = _at(data, path)
    return {"model": name, "quantity": quantity, "from": start, "to": end,
            "by_part": {part: change for part, change in by_part.items() if change},
            "by_feature": None if steps is None else [each for each in by_feature if each["change"]]}  # fmt: skip


def _parts(data, path):
    """The parts that a quantity is the sum of."""
    if path[0] == "params":
        return data["params"]["by_part"]
    if path[-2:] == ("flops", "total"):
        flops = data[path[0]]["flops"]
        return flops["contraction_by_part"] | {name: flops[name] for name in ("normalization", "elementwise")}
    if path[-2:] == ("bytes", "total"):
        return {name: value for name, value in data[path[0]]["bytes"].items() if name != "total"}
    return {path[0]: _at(data, path)}


def _steps(base, other, **options):
    """[(feature, from, to, report)]: the way from one model's fields to the other's, one field at a time."""
    fields, found, waiting = dict(base.fields), [], []
    differing = [name for name in FIELDS if base.fields.get(name) != other.fields.get(name)]
    for name in differing:
        waiting.append(name)
        if name in other.fields:
            fields[name] = other.fields[name]
        else:
            fields.pop(name, None)
        last = name == differing[-1]
        try:
            model = other if last else load(base.replace(fields=fields, given=None), {"n_layers": fields["n_layers"]})
        except InputError:
            continue
        old = ", ".join(str(base.fields.get(each, "default")) for each in waiting)
        new = ", ".join(str(other.fields.get(each, "default")) for each in waiting)
        found.append((", ".join(waiting), old, new, report(model, **options).to_dict()))
        waiting = []
    return found
