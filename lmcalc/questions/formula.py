"""What a cost is as a formula: of a model in its workload, or of one variant in all its sizes.

Everything is read off the trace of the forward pass on symbols. Workload symbols: at prefill `T` new tokens and `S` keys
attended, that is past + prompt; at decode `S` = context + 1 keys, the new token's included; `C` = context tokens in the
cache; `M` source tokens (= prompt) of an encoder-decoder at decode; `B` sequences.
"""

import itertools
from functools import cache as cache_of_calls
from types import SimpleNamespace

import sympy

from ..algebra import collected, latex, nested, symbol, text
from ..asymptotics import Condition, under
from ..cards import load
from ..errors import InputError, closest, unknown
from ..lenses.activations import kept_by
from ..lenses.cache import cache
from ..lenses.flops import of_op
from ..lenses.params import tensors
from ..lenses.traffic import CATEGORIES, ESTIMATED
from ..model import trace
from ..numbers import monomial, value
from ..record import Frozen
from ..units import STORED
from ..workload import workload
from .report import Pass
from .variants import WORKLOAD, every, generic, known

SCHEMA = "lmcalc.formula/1"
QUANTITIES = {
    "params": "parameters",
    "flops": "FLOPs",
    "bytes": "bytes moved",
    "intensity": "FLOPs a byte moved",
    "cache": "bytes of the cache",
    "state": "bytes of state that does not grow",
    "kept": "bytes kept for the backward pass",
}
PHASED = ("flops", "bytes", "intensity")
PHASES = ("prefill", "decode")
B, T, S, C, M = map(symbol, "BTSCM")
P = sympy.Symbol("P", nonnegative=True, integer=True)  # past; formulas show S in its place


class Subject(Frozen):
    """What the formula is of: a model, or the part of a tiny one that a variant is. letters: {letter: meaning}."""

    name: str
    model: object
    letters: dict
    where: tuple
    asked: object

    def has(self, path):
        """Is a path of the trace inside?"""
        return any(not place or path == place or path.startswith(f"{place}/") for place in self.where)


class Term(Frozen):
    """One summand: the part that it belongs to, its path in the model, and its value."""

    part: str
    path: str
    value: object


def formula(what, of="flops", phase=None, values=None, when=(), set=None, **options):
    """The formula of a quantity of a model or variant, as plain data (schema lmcalc.formula/1).

    what: anything `load` takes, or a word of variants.py. of: one of QUANTITIES. values: {letter: positive number}.
    when: conditions as text (see asymptotics.py). set, options: as for `report`, but no sizes of a workload.

    >>> formula("swiglu", of="params")["expression"]
    '3*D*F'
    >>> formula("llama-3.1-8b", of="cache")["expression"]
    '131072*B*C'
    """
    if of not in QUANTITIES:
        raise unknown("quantity", of, QUANTITIES)
    if phase is not None and phase not in PHASES:
        raise unknown("phase", phase, PHASES)
    subject = subject_of(what, set, options)
    phase = _phase(subject, of, phase)
    terms = terms_of(subject, of, phase)
    _refuse_none(subject, of, phase, terms)
    chosen = {symbol(letter): _number(letter, number) for letter, number in (values or {}).items()}
    terms = {name: [each.replace(value=_plain(each.value, phase)) for each in found] for name, found in terms.items()}
    there = _symbols(terms)
    for each in chosen:
        if each.name not in there:
            raise InputError(f"--with {each}: {unknown('symbol', each.name, there)}")
    terms = {name: [each.replace(value=each.value.xreplace(chosen)) for each in found] for name, found in terms.items()}
    there = _symbols(terms)
    conditions = [Condition(part, there) for given in when for part in given.split(",")]
    return _data(subject, of, phase, terms, chosen, conditions, there)


def subject_of(what, set=None, options=None):
    """The Subject of a model or variant word, with the conventions of a report."""
    asked = workload(**(options or {}))
    row = known(what) if isinstance(what, str) else None
    if row is not None:
        model, letters, where = generic(what, set)
        return Subject(row[0], model, letters, where if isinstance(where, tuple) else (where,), asked)
    try:
        model = load(what, set)
    except InputError as error:
        near = closest(what, every()) if isinstance(what, str) else []
        if near and str(error).startswith("unknown"):
            raise InputError(f"{error}; closest variants: {', '.join(near)} (lmcalc formula --list)") from None
        raise
    return Subject(model.name, model, {}, ("",), asked.of(model, options or {}))


def _phase(subject, of, phase):
    if of in PHASED or of == "kept":
        phase = phase or "prefill"
    if phase == "decode" and subject.model.bidirectional:
        raise InputError(f"{subject.name} is an encoder and has no decode; allowed: --phase prefill")
    if phase == "decode" and of == "kept":
        raise InputError("--of kept: a decode has no backward pass; allowed: --phase prefill")
    return phase


def _number(letter, number):
    """A positive number as an exact one."""
    real = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not real or not 0 < number < float("inf"):
        raise InputError(f"--with {letter}={number}: allowed: a positive number")
    return sympy.Rational(str(number))


def _symbols(terms):
    """{name: symbol} of everything in the terms, workload first."""
    found = {each.name: each for terms in terms.values() for term in terms for each in term.value.free_symbols}
    order = [*WORKLOAD, *sorted(found)]
    return {name: found[name] for name in dict.fromkeys(order) if name in found}


# Terms, read off trace and declarations --------------------------------------------------------------------------


def terms_of(subject, of, phase=None):
    """{name: [Term]}: of an intensity FLOPs and bytes, else the quantity alone."""
    if of == "intensity":
        return {name: terms_of(subject, name, phase)[name] for name in ("flops", "bytes")}
    return {of: [each for each in _TERMS[of](subject, phase) if each.value != 0]}


def run(subject, phase):
    """The pass of a phase, on symbols."""
    asked, model = subject.asked.replace(batch=B, prompt=T), subject.model
    if phase == "decode":
        return Pass(model, asked.replace(prompt=M), 1, P, encoded=True)
    return Pass(model, asked, T, 0 if model.bidirectional else P)


def _flops(subject, phase):
    for op in run(subject, phase).trace.ops:
        if subject.has(op.path):
            for term in of_op(op, subject.asked.mask):
                yield Term(op.part if op.cls == "contraction" else op.cls, op.path, value(term))


def _bytes(subject, phase):
    for path, _, _, terms in run(subject, phase).kernels:
        if subject.has(path):
            for at, term in terms:
                yield Term(CATEGORIES[0 if at == ESTIMATED else at], path, value(term))


def _params(subject, phase):
    for path, part, spec, size_of, times in tensors(subject.model):
        if subject.has(path):
            yield Term(part, path, sympy.sympify(value(monomial(*[size_of[axis] for axis in spec if axis not in "->|"], times))))


def _held(subject, key):
    if subject.model.bidirectional:
        return
    done = run(subject, "decode")
    for path, state in done.trace.states.items():
        if subject.has(path):
            found = cache(SimpleNamespace(states={path: state}), B, C, subject.asked.storage())
            yield Term(path.replace("/attention/", "/").replace("/mixer/", "/"), path, sympy.sympify(found[key]))


def _kept(subject, phase):
    """Training: nothing was cached before, and all positions go through the head."""
    done = trace(subject.model, B, T, 0, "all", mla=subject.asked.mla, fuse_projections=subject.asked.fuse_projections)
    for op, term in kept_by(done, subject.asked.storage()):
        if subject.has(op.path):
            yield Term("/".join(op.path.split("/")[:-1][:2]) or op.path, op.path, value(term))


_TERMS = {
    "flops": _flops,
    "bytes": _bytes,
    "params": _params,
    "cache": lambda subject, phase: _held(subject, "bytes"),
    "state": lambda subject, phase: _held(subject, "state_bytes"),
    "kept": _kept,
}


def _refuse_none(subject, of, phase, terms):
    """InputError where the quantity is nothing here, saying which there are."""
    if all(terms.values()):
        return
    there = []
    for each in ("params", "flops", "bytes", "cache", "state", "kept"):
        phases = ("prefill",) if each == "kept" else (phase or "prefill",)
        if each != of and terms_of(subject, each, *phases)[each]:
            there.append(each)
    if {"flops", "bytes"} <= {*there}:
        there.insert(there.index("bytes") + 1, "intensity")
    hint = ""
    if of in ("bytes", "intensity") and "flops" in there and subject.asked.traffic != "unfused":
        hint = f"; under --traffic {subject.asked.traffic} it is part of a kernel around it: see --traffic unfused"
    raise InputError(f"{subject.name} has no {of}; it has {', '.join(there)}{hint}")


# Simplest symbols ------------------------------------------------------------------------------------------------


@cache_of_calls
def _plain(expression, phase):
    """The same with keys attended, S, in place of the past, P."""
    expression = sympy.sympify(expression)
    if not expression.has(P):
        return expression
    if phase == "decode":
        return _merged(expression).xreplace({P: S - 1})
    return expression.xreplace({P: S - T})


def _merged(expression):
    """At decode, sizes that a window or chunk makes cases of, as one formula."""
    if expression.is_Atom or not expression.has(sympy.Min, sympy.floor):
        return expression
    cases = [each for each in expression.atoms(sympy.Min, sympy.floor) if each.has(P)]
    sizes = set().union(*[each.free_symbols for each in cases])
    if cases and expression.free_symbols <= sizes | {P}:
        found = (_at_window if all(isinstance(each, sympy.Min) for each in cases) else _at_chunk)(expression, cases)
        if found is not None:
            return found
    return expression.func(*[_merged(each) for each in expression.args])


def _at_chunk(expression, floors):
    """Of floor(P / size) = f and floor((P + 1) / size), where both cases agree: the second is f, or f + 1 for P = size (f + 1) - 1."""
    inner = {floor.args[0]: floor for floor in floors}
    size = next((P / argument for argument in inner if (argument / P).is_constant() or not (argument / P).has(P)), None)
    if len(floors) != 2 or size is None or any(type(each) is not sympy.floor for each in floors):
        return None
    after = next((floor for argument, floor in inner.items() if sympy.expand(argument - (P + 1) / size) == 0), None)
    whole = sympy.Dummy("f", integer=True, nonnegative=True)
    before = inner[P / size]
    if after is None or after is before:
        return None
    same = sympy.expand(expression.xreplace({before: whole, after: whole}))
    next_one = sympy.expand(expression.xreplace({before: whole, after: whole + 1}))
    if sympy.expand((same - next_one).xreplace({P: size * (whole + 1) - 1})) != 0:
        return None
    return same.xreplace({whole: before}).xreplace({P: S - 1})


def _at_window(expression, mins):
    """A formula of Min(S, w). Below, for S = P + 1 <= w, every Min(P + a, c) is its first argument, above its second.

    If what is found above is what is found below with w for S, then both are the one below with Min(S, w) for S.
    """
    below, above, ends = {}, {}, []
    for one in mins:
        if len(one.args) != 2:
            return None
        grows, stays = sorted(one.args, key=lambda each: not each.has(P))
        below[one], above[one] = grows, stays
        ends.append(sympy.expand(stays - (grows - P) + 1))
    least = min(ends, key=lambda end: max(sympy.expand(end - other) if (end - other).is_Integer else 9 for other in ends))
    if any(sympy.expand(end - least) not in (0, 1) for end in ends):
        return None
    low = sympy.expand(expression.xreplace(below).xreplace({P: S - 1}))
    high = sympy.expand(expression.xreplace(above).xreplace({P: S - 1}))
    if sympy.expand(low.xreplace({S: least}) - high) != 0:
        return None
    return sympy.factor(low).xreplace({S: sympy.Min(S, least)})


# Plain data ------------------------------------------------------------------------------------------------------


def _data(subject, of, phase, terms, chosen, conditions, there):
    work = {each for each in there.values() if each.name in WORKLOAD}
    whole = _total(of, terms, work)
    data = {
        "schema": SCHEMA,
        "id": subject.name,
        "of": of,
        "phase": phase,
        **_shown(whole),
        "symbols": {name: WORKLOAD.get(name) or subject.letters.get(name, "") for name in there},
        "with": {each.name: _jsonable(number) for each, number in chosen.items()},
        "when": [each.text.strip() for each in conditions],
    }
    if conditions:
        data |= {"exact": data["expression"], "exact_latex": data["latex"]}
        total, terms, left = _under(conditions, of, terms, work)
        data |= {**_shown(total), "left_out": [None if each is None else text(collected([each], work)) for each in left]}
    data["parts"] = [{"part": name, **_shown(each)} for name, each in _grouped(terms, work, "part")]
    data["terms"] = [{"term": name, **_shown(each)} for name, each in _grouped(terms, work, "path")]
    data["notes"] = notes(subject, of, phase, whole)
    return data


def _total(of, terms, work):
    found = [collected([each.value for each in group], work) for group in terms.values()]
    return found[0] if len(found) == 1 else ratio(*found)


def _under(conditions, of, terms, work):
    """(the formula under the conditions, its terms under those before the first limit, what each limit left out)."""
    at = next((at for at, each in enumerate(conditions) if each.kind == "grows"), len(conditions))
    assumed = [each for each in conditions[at:] if each.kind == "larger"]
    terms = {name: [each.replace(value=under(each.value, [*conditions[:at], *assumed])[0]) for each in group]
             for name, group in terms.items()}  # fmt: skip
    total = _total(of, terms, work)
    if at == len(conditions):
        return total, terms, [None] * at
    found, left = under(total, conditions[at:], [each for each in conditions[:at] if each.kind == "larger"])
    above, below = sympy.fraction(sympy.together(found))
    if below.is_Number or below.is_Mul and not any(each.is_Add for each in below.args):
        found = collected([found], work)
    else:
        found = ratio(collected([above], work), collected([below], work))
    return found, terms, [None] * at + left


def _grouped(terms, work, by):
    """[(name, formula)] of each part or path; of an intensity the parts are its two sides."""
    found = []
    for name, group in terms.items():
        groups = {}
        for each in group:
            key = getattr(each, by) if len(terms) == 1 else name if by == "part" else f"{name}: {each.path}"
            groups.setdefault(key, []).append(each.value)
        found += [(key, collected(values, work)) for key, values in groups.items()]
    return found


def ratio(above, below):
    """above / below, without the factors that both have."""
    number, powers = zip(*[_factors(each) for each in (above, below)])
    quotient = number[0] / number[1]
    for factor in set(powers[0]) & set(powers[1]):
        both = min(powers[0][factor], powers[1][factor])
        for each in powers:
            each[factor] -= both
    top, bottom = (sympy.Mul(*[factor**power for factor, power in each.items()]) for each in powers)
    return quotient * top / bottom


def _factors(expression):
    number, powers = sympy.S.One, {}
    for factor in sympy.Mul.make_args(expression):
        if factor.is_Rational:
            number *= factor
        else:
            base, power = factor.as_base_exp()
            powers[base] = powers.get(base, 0) + power
    return number, powers


def _shown(expression):
    return {"expression": _printed(text, expression), "latex": _printed(latex, expression)}


@cache_of_calls
def _printed(printer, expression):
    return printer(expression)


def _jsonable(number):
    return int(number) if number.is_Integer else float(number)


def notes(subject, of, phase, total):
    """The conventions that the formula stands on."""
    asked, found = subject.asked, []
    if of in ("flops", "intensity"):
        found.append(f"FLOPs: 2 per multiply-add, other work by a table of operations per element. Mask: {asked.mask}.")
    if of in ("bytes", "intensity"):
        found.append(f"Traffic convention: {asked.traffic}.")
    if of in PHASED and phase == "prefill" and not subject.model.bidirectional:
        found.append(f"S = past + prompt, T = prompt (an empty cache: --when 'T = S'). Logits: {asked.logits} position{'s' if asked.logits == 'all' else ''}.")  # fmt: skip
    if of in PHASED and phase == "decode":
        found.append("One new token for each sequence: S = context + 1, itself included.")
    if of in ("cache", "state"):
        found.append("C = context. What a cache without waste holds.")
    if of == "kept":
        found.append(f"Training: an empty cache, logits of all positions, activations in {asked.activations}.")
    if of in ("bytes", "intensity", "cache", "state"):
        weights = asked.weights if asked.weights != STORED else f"as the checkpoint says ({subject.model.storage.text})"
        found.append(f"Stored as: weights {weights}, activations {asked.activations}, cache {asked.cache}, state {asked.state}.")  # fmt: skip
    if of in ("bytes", "intensity") and total.has(sympy.floor) and any(each.get("n_experts") for each in _layers(subject)):
        found.append("floor(x + 1/2) is a whole number nearest to an expectation: experts that some token chooses (an estimate).")  # fmt: skip
    return found


def _layers(subject):
    return itertools.chain([subject.model.fields], subject.model.fields.get("kinds", {}).values())


def listed():
    """What `lmcalc formula --list` prints: quantities, variants and symbols, as plain data."""
    return {
        "schema": "lmcalc.formula.list/1",
        "quantities": [{"of": name, "what": what} for name, what in QUANTITIES.items()],
        "variants": [{"variant": word, "what": what} for word, (what, _, _) in every().items()],
        "symbols": WORKLOAD,
    }
