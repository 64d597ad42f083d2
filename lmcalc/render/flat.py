"""Every answer as flat tables: what csv, markdown and html are written from.

A column's name carries its unit, in base units: `flops...` FLOP, `bytes...` and `..._bytes` bytes, `..._s` seconds,
`..._flop_per_s` FLOP/s, `..._bytes_per_s` bytes/s, `..._flop_per_byte` FLOP/byte, `params` parameters, `batch`
sequences,
`prompt`, `past`, `context` tokens. A table's first columns (those of KEYS) say what its row is about.

In csv an answer of one table is that table. One of several (report, compare) is a single long one: `table`, those of
KEYS that occur, `quantity` (the column's name) and `value`; an empty cell means that the key does not apply. Rows of a
sweep are the same in all formats; its columns are in questions/piece.py.
"""

from ..units import unit

KEYS = ("model", "hardware", "phase", "part", "what")
# columns whose names in JSON lack the unit
RENAMED = {
    "memory_needed": "memory_needed_bytes", "memory_available": "memory_available_bytes", "memory": "memory_bytes",
    "bandwidth": "bandwidth_bytes_per_s", "intensity": "intensity_flop_per_byte", "ridge": "ridge_flop_per_byte",
    "ridge_bf16": "ridge_bf16_flop_per_byte",
}  # fmt: skip
UNITS = {
    "bytes_per_s": "B/s",
    "flop_per_s": "FLOP/s",
    "flop_per_byte": "FLOP/B",
    "tokens_per_s": "tokens/s",
    "share": "%",
    "ratio": "",
}
PHASES = ("prefill", "decode")


class Table:
    """A name, columns, rows of plain values (None where there is none), and the columns to draw as bars."""

    def __init__(self, name, columns, rows, bars=()):
        self.name, self.columns, self.rows, self.bars = name, list(columns), rows, bars

    @classmethod
    def of(cls, name, rows, bars=()):
        """The table of rows that are dicts: a column for every key, in order of appearance."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        return cls(
            name, [RENAMED.get(key, key) for key in columns], [[row.get(key) for key in columns] for row in rows], bars
        )

    @property
    def title(self):
        """The name in words."""
        return self.name.replace("_", " ").replace("flops", "FLOPs").replace("params", "parameters")

    @property
    def keys(self):
        """How many of the first columns are keys."""
        return next((at for at, name in enumerate(self.columns) if name not in KEYS), len(self.columns))


def upright(table):
    """[(column, value)] of a table of one long row, which pages show downwards; None of any other."""
    return list(zip(table.columns, table.rows[0])) if len(table.rows) == 1 and len(table.columns) > 6 else None


def unit_of(column):
    """The unit of a column of a Table."""
    column = column.partition("[")[0]  # of a wide sweep
    return next((found for end, found in UNITS.items() if column.endswith(end)), unit(column))


def tables(view, data, what=None):
    """(title, notes, [Table]) of the plain data of a question; `view` names it."""
    title, notes, found = VIEWS.get(view, _any)(data, what)
    return title, notes, [table for table in found if table.rows]


def long(found):
    """Tables as one: `table`, keys, `quantity`, `value`."""
    used = [key for key in KEYS if any(key in table.columns[: table.keys] for table in found)]
    rows = []
    for table in found:
        keys = table.columns[: table.keys]
        for row in table.rows:
            about = dict(zip(keys, row))
            for name, value in zip(table.columns[table.keys :], row[table.keys :]):
                if value is not None:
                    rows.append([table.name, *[about.get(key) for key in used], name, value])
    return Table("long", ["table", *used, "quantity", "value"], rows)


# Views --------------------------------------------------------------------------------------------------------------


def _report(data, what=None):
    title, without = data["model"]["id"], [each["id"] for each in data["hardware"] if each["fits"] is False]
    return title + (f" does not fit {', '.join(without)}" if without else ""), data["notes"], _of_report(data)


def _of_report(data):
    """The tables of one report."""
    model = {"model": data["model"]["id"]}
    params, cache, asked = data["params"], data["cache"], data["workload"]
    phases = [phase for phase in PHASES if data[phase] is not None]
    held = {f"params_{name}": params[name] for name in ("total", "active", "buffers", "mtp")}
    held |= {"weights_bytes": data["weights"]["bytes"]}
    held |= {name if name == "state_bytes" else f"cache_{name}": value for name, value in cache.items()}
    yield Table.of("model", [model | held])
    sizes = {name: value for name, value in asked.items() if name != "dtypes"}
    yield Table.of("workload", [model | sizes | {f"dtype_{name}": value for name, value in asked["dtypes"].items()}])
    yield Table.of("totals", [model | {"phase": phase} | _totals(data[phase]) for phase in phases])
    machines = [
        {name: value for name, value in each.items() if name not in (*PHASES, "id")} for each in data["hardware"]
    ]
    machines = [model | {"hardware": each["id"]} | rest for each, rest in zip(data["hardware"], machines)]
    yield Table.of("machines", machines)
    yield Table.of(
        "rooflines",
        [
            model | {"hardware": each["id"], "phase": phase} | each[phase]
            for each in data["hardware"]
            for phase in phases
        ],
    )
    whole = params["total"]
    yield Table.of("params_by_part", [model | {"part": part, "params": count, "params_share": count / whole}
                                      for part, count in params["by_part"].items()], ["params_share"])  # fmt: skip
    rows = []
    for phase in phases:
        whole = data[phase]["flops"]["contraction"] or 1
        for part, count in data[phase]["flops"]["contraction_by_part"].items():
            of = model | {"phase": phase, "part": part}
            rows.append(of | {"flops_contraction": count, "flops_share": count / whole})
    yield Table.of("flops_by_part", rows, ["flops_share"])
    yield Table.of(
        "kernels",
        [
            model | {"phase": phase, "part": row["path"]} | _kernel(row)
            for phase in phases
            for row in data[phase]["by_part"]
        ],
    )


def _totals(phase):
    flops = {
        "flops" if name == "total" else f"flops_{name}": value
        for name, value in phase["flops"].items()
        if name != "contraction_by_part"
    }
    moved = {"bytes" if name == "total" else f"bytes_{name}": value for name, value in phase["bytes"].items()}
    return flops | moved | {"intensity": phase["intensity"]}


def _kernel(row):
    found = {name: row[name] for name in ("times", "flops", "bytes")}
    found |= {f"flops_{name}": value for name, value in row["flops_by_class"].items()}
    return found | {f"bytes_{name}": value for name, value in row["bytes_by_kind"].items()}


def _compare(data, what=None):
    from ..questions.compare import QUANTITIES

    reports, notes = data["reports"], {}
    first = [_at(reports[0], path) for path in QUANTITIES.values()]
    found = {"quantities": [], "ratios": [], "rooflines": [], "changes_by_part": [], "changes_by_feature": []}
    for report in reports:
        model = {"model": report["model"]["id"]}
        values = [_at(report, path) for path in QUANTITIES.values()]
        found["quantities"].append(model | dict(zip(QUANTITIES, values)))
        ratios = [None if not base or value is None else value / base for base, value in zip(first, values)]
        found["ratios"].append(model | {f"{name}_ratio": ratio for name, ratio in zip(QUANTITIES, ratios)})
        for each, base in zip(report["hardware"], reports[0]["hardware"]):
            for phase in PHASES:
                if each[phase] is not None:
                    ratio = (
                        {} if base[phase] is None else {"bound_ratio": each[phase]["bound_s"] / base[phase]["bound_s"]}
                    )
                    found["rooflines"].append(model | {"hardware": each["id"], "phase": phase} | each[phase] | ratio)
        notes |= {
            f"{model['model']}: {note}" if note in _own(reports, note) else note: None for note in report["notes"]
        }
    for kind, name in (("by_part", "part"), ("by_feature", "part")):
        rows = {}
        for each in data["differences"]:
            for step in each[kind].items() if kind == "by_part" else each[kind] or ():
                part, change = (
                    step
                    if kind == "by_part"
                    else (f"{step['feature']}: {step['from']} -> {step['to']}", step["change"])
                )
                rows.setdefault((each["model"], part), {"model": each["model"], name: part})[
                    f"{each['quantity']}_change"
                ] = change
        found[f"changes_{kind}"] = list(rows.values())
    title = " against ".join([", ".join(each["model"]["id"] for each in reports[1:]), reports[0]["model"]["id"]])
    return title, list(notes), [Table.of(name, rows) for name, rows in found.items()]


def _own(reports, note):
    return () if all(note in report["notes"] for report in reports) else (note,)


def _at(data, path):
    for key in path:
        data = None if data is None else data[key]
    return data


def _catalogue(rows, what):
    renamed = {"peak": "peak_{}_flop_per_s", "vector": "vector_{}_flop_per_s"}
    found = []
    for row in rows:
        flat = {}
        for name, value in row.items():
            if name in renamed:
                flat |= {renamed[name].format(dtype): rate for dtype, rate in value.items()}
            else:
                flat |= _flat({name: value})
        found.append(flat)
    table = Table.of("machines" if what == "hardware" else "models", found)
    if what == "hardware":  # peaks together, not where a machine first has one
        front = [name for name in table.columns if name.startswith(("peak_", "vector_"))]
        at = min((table.columns.index(name) for name in front), default=0)
        order = [*table.columns[:at], *sorted(front), *[name for name in table.columns[at:] if name not in front]]
        places = [table.columns.index(name) for name in order]
        table = Table(table.name, order, [[row[place] for place in places] for row in table.rows])
    return ("Machines" if what == "hardware" else "Models"), [], [table]


def _validate(data, what=None):
    return (
        f"{len(data['checks'])} checks, {data['failed']} failed",
        [],
        [Table.of("checks", [{"model": each["model"], **each} for each in data["checks"]])],
    )


def _show(data, what=None):
    whole = data["params"]["total"]
    model = {"model": data["model"]["id"], "params_total": whole, "params_active": data["params"]["active"]}
    kinds, parts, shares = [], [], []
    for stack in data["stacks"]:
        for kind in stack["kinds"]:
            on = {"stack": stack["name"], "kind": kind["name"]}
            kinds.append(on | _flat({name: kind[name] for name in ("layers", "params", "equations", "norms")}))
            for part in kind["parts"]:
                said = "; ".join([part["text"], *part["further"]])
                parts.append(on | {"part": part["name"], "is": said, "params": part["params"]})
    for part, count in data["params"]["by_part"].items():
        shares.append({"part": part, "params": count, "params_share": count / whole})
    choices = [{key: row[key] for key in ("what", "value", "same", "cards")} for row in data["choices"]]
    found = {
        "model": [model | {"d_model": data["model"]["d_model"]}],
        "layers": kinds,
        "parts": parts,
        "choices": choices,
    }
    found |= {name: [_flat(row) for row in data[name]] for name in ("ratios", "multiples", "relatives")}
    shares = Table.of("params_by_part", shares, ["params_share"])
    return model["model"], data["notes"], [shares, *(Table.of(name, rows) for name, rows in found.items())]


def _roofline(data, what=None):
    machines, ceilings, found = [], [], []
    for each in data["machines"]:
        on = {"hardware": each["id"]}
        machines.append(on | {name: value for name, value in each.items() if name not in ("id", "ceilings", "levels")})
        ceilings += [
            on | {"what": ", ".join(roof["dtypes"]), "unit": roof["unit"], "flop_per_s": roof["flop_per_s"]}
            for roof in each["ceilings"]
        ]
        found += [
            on | {"what": level["level"], "bytes_per_s": level["bytes_per_s"], "bytes": level["bytes"]}
            for level in each["levels"]
        ]
    renamed = {"kernel": "part", "class": "part"}
    rows = {
        name: [
            {renamed.get(key, key): value for key, value in row.items() if (name, key) != ("points", "class")}
            for row in data[name]
        ]
        for name in ("points", "turns", "classes")
    }
    rows |= {"machines": machines, "ceilings": ceilings, "levels": found}
    return "Roofline", data["notes"], [Table.of(name, each) for name, each in rows.items()]


def _sweep(columns, what=None):
    from .cells import python

    names = list(columns)
    rows = list(zip(*(python(*columns.coded(name), name in columns.whole) for name in names)))
    return f"Sweep of {', '.join(columns.asked.grid.axes['model'])}", columns.notes, [Table("sweep", names, rows)]


def _any(data, what=None):
    """Tables of data that has no view of its own: one for each list of rows, one for all single values."""
    if isinstance(data, list):
        return "", [], [Table.of("rows", [_flat(row) for row in data])]
    single = {}
    found = []
    for name, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            found.append(Table.of(name, [_flat(row) for row in value]))
        elif name not in ("schema", "notes"):
            single |= _flat({name: value})
    title = str(data.get("schema", "")).partition("/")[0].removeprefix("lmcalc.").capitalize()
    return title, data.get("notes", []), [Table.of("summary", [single] if single else []), *found]


def _flat(data, prefix=""):
    """Nested tables as one, names joined by _; lists of words as text."""
    found = {}
    for name, value in data.items():
        name = f"{prefix}_{name}" if prefix else str(name)
        if isinstance(value, dict):
            found |= _flat(value, name)
        elif isinstance(value, list):
            found[name] = "; ".join(map(str, value)) or None
        else:
            found[name] = value
    return found


VIEWS = {
    "report": _report,
    "show": _show,
    "compare": _compare,
    "catalogue": _catalogue,
    "validate": _validate,
    "sweep": _sweep,
    "roofline": _roofline,
}
