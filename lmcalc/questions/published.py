"""What others published, beside what lmcalc computes: formulas symbol by symbol, figures to their digits.

The data are in lmcalc/published/, a file a source. A check says what `ours` is, as an expression over the quantities of
QUANTITIES, of a model that may have symbols for sizes; and either `theirs`, a formula, or `printed`, a figure.

A formula must be equal to ours, or differ by exactly the terms that the file explains. `order` instead asks that ours
has the terms of theirs up to constants, and none that grows faster. A figure agrees to half its last digit, or to the
tolerance that the file gives. One that does not needs a reason, `why`, and what lmcalc finds instead, `finds`.
"""

import os

from .. import catalogue
from ..cards import built, load, read
from ..errors import InputError
from ..fields import FIELDS
from ..hardware import machine
from ..lenses.activations import kept
from ..lenses.cache import cache
from ..lenses.flops import flops, of_op
from ..lenses.params import active, params, weight_bytes
from ..lenses.traffic import traffic
from ..model import build, trace
from ..numbers import Sum, _like

SCHEMA = "lmcalc.published/1"
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "published")
KEYS = ("what", "where", "model", "set", "symbols", "batch", "tokens", "mask", "machine", "ours", "theirs", "order",
        "assume", "printed", "unit", "tolerance", "differs", "why", "finds")  # fmt: skip


def published(sources=None):
    """{schema, sources: [{id, title, source}], checks: [...], not_covered: [...], failed}.

    A check: {source, what, where, printed or theirs, ours, verdict, why}. verdict: equal, agrees, explained (it does
    not agree, and the file says why), or differs (nobody knows why: these are counted as failed). sources: names of
    files.

    >>> [each["verdict"] for each in published(["llama-params"])["checks"]]
    ['agrees', 'agrees', 'agrees', 'agrees', 'agrees', 'agrees']
    """
    found = {"schema": SCHEMA, "sources": [], "checks": [], "not_covered": []}
    for name in sources or catalogue.names(FOLDER):
        source = catalogue.read(os.path.join(FOLDER, f"{name}.toml"))
        found["sources"].append({"id": name, "title": source["title"], "source": source["source"]})
        for row in source.get("check", ()):
            found["checks"].append({"source": name, **check(row, source, name)})
        found["not_covered"] += [{"source": name, **each} for each in source.get("not_covered", ())]
    return found | {"failed": sum(each["verdict"] == "differs" for each in found["checks"])}


def check(row, source, name):
    """One check: what was published, what we find, and whether the two agree."""
    unknown = sorted(set(row) - set(KEYS))
    if unknown:
        raise InputError(
            f"published/{name}.toml: {row.get('what')}: unknown key {unknown[0]!r}; allowed: {', '.join(KEYS)}"
        )
    row = {**source.get("default", {}), **row}
    about = {"what": row["what"], "where": row.get("where", "")}
    quantities = Quantities(row, source.get("models", {}))
    return about | (_figure if "printed" in row else _order if "order" in row else _formula)(row, quantities)


def _formula(row, quantities):
    """Ours minus theirs has to be zero, or the terms that are explained."""
    import sympy

    ours, theirs = quantities.value(row["ours"]), quantities.value(row["theirs"])
    terms = [(each["term"], quantities.value(each["term"]), each["why"]) for each in row.get("differs", ())]
    rest = sympy.simplify(sympy.expand(ours - theirs - sum(term for _, term, _ in terms)))
    verdict = "differs" if rest != 0 else "explained" if terms else "equal"
    why = "; ".join(f"ours has {_signed(text)}: {reason}" for text, _, reason in terms)
    if rest != 0:
        why = f"{why}; " * bool(why) + f"ours - theirs has {rest} besides"
    return {
        "theirs": row["theirs"],
        "ours": str(sympy.factor_terms(sympy.expand(ours))),
        "verdict": verdict,
        "why": why,
    }


def _signed(text):
    return f"{text[1:]} less" if text.startswith("-") else f"{text} more"


def _order(row, quantities):
    """Every monomial of theirs is in ours, and each of ours is at most one of theirs, up to a constant."""
    import sympy

    ours = sympy.Poly(sympy.expand(quantities.value(row["ours"])), *quantities.symbols.values())
    theirs = [sympy.Poly(quantities.value(each), *ours.gens).monoms()[0] for each in row["order"]]
    steps = []
    for each in row.get("assume", ()):
        small, large = (sympy.Poly(quantities.value(side), *ours.gens).monoms()[0] for side in each.split("<="))
        steps.append([b - a for a, b in zip(small, large)])
    beyond = [each for each in ours.monoms() if not any(_at_most(each, most, steps) for most in theirs)]
    missing = [each for each in theirs if each not in ours.monoms()]
    verdict = "differs" if beyond or missing else "equal"
    texts = [f"ours has {_monomial(each, ours)}" for each in beyond] + [
        f"ours lacks {_monomial(each, ours)}" for each in missing
    ]
    return {
        "theirs": f"O({' + '.join(row['order'])})",
        "ours": str(ours.as_expr()),
        "verdict": verdict,
        "why": "; ".join(texts),
    }


def _monomial(powers, poly):
    text = "*".join(f"{gen}**{power}" if power > 1 else str(gen) for gen, power in zip(poly.gens, powers) if power)
    return text or "a constant"


def _at_most(powers, most, steps):
    """Is one monomial at most another? Sizes are at least 1, and so is each quotient whose powers are in steps."""
    from itertools import product

    spare = [b - a for a, b in zip(powers, most)]
    for counts in product(range(4), repeat=len(steps)):
        left = [s - sum(c * step[at] for c, step in zip(counts, steps)) for at, s in enumerate(spare)]
        if min(left) >= 0:
            return True
    return False


def _figure(row, quantities):
    """Ours against a printed figure, to half its last digit or a stated share of it."""
    text = row["printed"]
    ours = float(quantities.value(row["ours"])) / row.get("unit", 1)
    allowed = max(half_digit(text), row.get("tolerance", 0) * abs(float(text))) * (1 + 1e-9)
    agrees, why = abs(ours - float(text)) <= allowed, row.get("why", "")
    if agrees == bool(why):  # a reason for what agrees, or none for what does not
        verdict = "differs"
        why = f"agrees, though the file says why it does not: {why}" if agrees else "beyond its tolerance"
    else:
        verdict = "agrees" if agrees else "explained"
    if verdict == "explained" and abs(ours - row["finds"]) > 0.005 * abs(row["finds"]):
        verdict, why = "differs", f"not the {row['finds']} that the file explains: {why}"
    return {
        "printed": float(text),
        "printed_as": text,
        "ours": ours,
        "allowed": allowed,
        "verdict": verdict,
        "why": why,
    }


def half_digit(text):
    """Half a unit of the last digit of a printed figure.

    >>> half_digit("1.03"), half_digit("3640"), half_digit("3.14e23")
    (0.005, 0.5, 5e+20)
    """
    mantissa, _, exponent = text.lower().partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


# Ours --------------------------------------------------------------------------------------------------------------


class Quantities:
    """What lmcalc says of one model and workload: where the names of an expression are looked up, when asked for."""

    def __init__(self, row, models):
        import sympy

        self.row = row
        self.symbols = {
            each: sympy.Symbol(each, positive=True, integer=True) for each in row.get("symbols", "").split()
        }
        self.model = self._model(row.get("model"), models)
        self._traces = {}

    def value(self, text):
        """The value of an expression over quantities and the symbols of the row."""
        from sympy.parsing.sympy_parser import parse_expr

        return parse_expr(text, local_dict=_Names(self, self.symbols))

    def _model(self, given, models):
        if given is None:
            return None
        fields = models.get(given)
        if fields is None:
            return load(built(read(given)), self.row.get("set"))
        fields = {**fields, **self.row.get("set", {})}
        return build({key: self._sized(key, value) for key, value in fields.items()}, given)

    def _sized(self, name, value):
        """A size that is a symbol, or an expression of some."""
        sized = isinstance(value, str) and FIELDS[name][0] in ("size", "layers", "count", "size_rule")
        return self.value(value) if sized else value

    def size(self, name, default):
        """A size of the workload: a number, or an expression over the symbols."""
        value = self.row.get(name, default)
        return self.value(value) if isinstance(value, str) else value

    def trace(self, decode=False):
        """The trace of a prefill with all logits, or of one token onto a cache."""
        if decode not in self._traces:
            batch, tokens = self.size("batch", 1), self.size("tokens", 1)
            run = (
                {"new": 1, "past": tokens, "encoded": True, "phase": "decode"} if decode else {"new": tokens, "past": 0}
            )
            if self.row.get("mask") == "full" and not decode:
                run["rectangle"] = True
            self._traces[decode] = trace(self.model, batch, logits="all", **run)
        return self._traces[decode]

    @property
    def flops(self):
        """({class: FLOPs}, {part: contraction FLOPs}) of that prefill."""
        return flops(self.trace(), self.row.get("mask", "causal"))


class _Names(dict):
    """Names of an expression: symbols and constants, then quantities; an unknown one is refused."""

    def __init__(self, quantities, known):
        super().__init__(known)
        self._quantities = quantities

    def __contains__(self, name):
        return super().__contains__(name) or _quantity(name) is not None

    def __getitem__(self, name):
        if super().__contains__(name):
            return super().__getitem__(name)
        import sympy

        if _quantity(name) is None:
            raise KeyError(name)
        function, further = _quantity(name)
        value = function(self._quantities, *further)
        return sympy.Integer(value) if _like(value) == "int" else sympy.sympify(value)

    def get(self, name, default=None):
        return self[name] if name in self else default


def _quantity(name):
    """(function, further arguments) of a quantity's name, or None."""
    if name in QUANTITIES:
        return QUANTITIES[name], ()
    start, _, end = name.partition("_")
    return (FAMILIES[start], (end,)) if start in FAMILIES and end else None


def _kept_layer(q):
    """Bytes that a layer keeps for its backward pass: the difference that one more makes."""
    one, two = (trace(_layers(q.model, n), q.size("batch", 1), q.size("tokens", 1), logits="all") for n in (1, 2))
    return kept(two, {"activations": "bf16"}) - kept(one, {"activations": "bf16"})


def _layers(model, count):
    return build({**model.fields, "n_layers": count}, model.name)


def _moved(q, decode):
    """Elements that the attention of a layer reads and writes, every operation by itself."""
    total = Sum()
    dtypes = dict.fromkeys(("weights", "activations", "cache", "state"), "fp8")
    for path, _, _, terms in traffic(q.trace(decode), dtypes, "unfused"):
        if "/attention/" in path:
            for _, term in terms:
                total.add(term)
    return total.value()


def _cache(q, what, dtype="bf16"):
    tokens = q.size("tokens", 1)
    return cache(q.trace(decode=True), q.size("batch", 1), tokens, {"cache": dtype, "state": "fp32"})[what]


def _work(q, name):
    """FLOPs of all operations of one primitive."""
    total = Sum()
    for op in q.trace().ops:
        if op.primitive.name == name:
            for term in of_op(op, q.row.get("mask", "causal")):
                total.add(term)
    return total.value()


def _machine(q):
    return machine(q.row["machine"])


QUANTITIES = {  # name: of what lmcalc says
    "params": lambda q: sum(params(q.model).values()),
    "active": lambda q: active(q.model),
    "weight_bytes": lambda q: weight_bytes(q.model, "bf16"),
    "contraction": lambda q: q.flops[0]["contraction"],
    "normalization": lambda q: q.flops[0]["normalization"],
    "elementwise": lambda q: q.flops[0]["elementwise"],
    "cache_bytes": lambda q: _cache(q, "bytes"),
    "cache_per_token": lambda q: _cache(q, "bytes_per_token_first"),
    "cache_elements": lambda q: _cache(q, "bytes_per_token_first", "fp8"),
    "kept_layer": _kept_layer,
    "moved": lambda q: _moved(q, False),
    "moved_decode": lambda q: _moved(q, True),
    "bandwidth": lambda q: _machine(q).bandwidth,
    "memory": lambda q: _machine(q).memory,
    "vector": lambda q: _machine(q).vector_peak()[0],
}
FAMILIES = {  # the part of a name before _: a function of what is behind it
    "params": lambda q, part: params(q.model).get(part, 0),
    "flops": lambda q, part: q.flops[1].get(part, 0),
    "work": _work,
    "peak": lambda q, dtype: _machine(q).peak[dtype],
}
