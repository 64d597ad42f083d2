"""What a cost is as a formula: of a model in its workload, or of one variant in all its sizes.

Everything is read off the trace of the forward pass on symbols. Workload symbols: at prefill `T` new tokens and `S`
keys attended, that is past + prompt; at decode `S` = context + 1 keys, the new one included; `C` = context tokens in
the cache; `M` source tokens (= prompt) of an encoder-decoder at decode; `B` sequences.
"""

from functools import cache

import sympy

from ..algebra import collected, latex, symbol, text
from ..arguments import several, table
from ..asymptotics import Assumptions, Condition, under
from ..errors import InputError, shown, unknown
from ..fields import tables
from ..units import STORED
from .keys import plain
from .symbolic import S, T, subject_of, terms_of
from .variants import WORKLOAD, check_numbers, every

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
MOST_DIGITS = 100  # of a number for a symbol
PHASED = ("flops", "bytes", "intensity")
PHASES = ("prefill", "decode")


def formula(what, of="flops", phase=None, values=None, when=(), set=None, **options):
    """The formula of a quantity of a model or variant, as plain data (schema lmcalc.formula/1).

    what: anything `load` takes, or a word of variants.py. of: one of QUANTITIES. values: {letter: positive number}.
    when: conditions as text (see asymptotics.py). set, options: as for `report`, but no sizes of a workload.

    >>> formula("swiglu", of="params")["expression"]
    '3*D*F'
    >>> formula("llama-3.1-8b", of="cache")["expression"]
    '131072*B*C'
    """
    if not isinstance(of, str) or of not in QUANTITIES:
        raise unknown("quantity", of, QUANTITIES)
    if phase is not None and (not isinstance(phase, str) or phase not in PHASES):
        raise unknown("phase", phase, PHASES)
    subject = subject_of(what, set, options)
    phase = _phase(subject, of, phase)
    terms = terms_of(subject, of, phase)
    _refuse_none(subject, of, phase, terms)
    chosen = {symbol(_text(letter)): _number(letter, number) for letter, number in table("values", values).items()}
    terms = {name: [each.replace(value=plain(each.value, phase)) for each in found] for name, found in terms.items()}
    there = _symbols(terms)
    for each in chosen:
        if each.name not in there:
            raise InputError(f"--with {each}: {unknown('symbol', each.name, there)}{_filled(subject)}")
    if subject.letters:
        check_numbers(what, {each.name: int(value) for each, value in chosen.items() if value.is_Integer}, set)
    terms = {name: [each.replace(value=each.value.xreplace(chosen)) for each in found] for name, found in terms.items()}
    there = _symbols(terms)
    texts = [part.strip() for given in several(when) for part in _text(given, "--when").split(",")]
    try:
        conditions = [Condition(each, there) for each in texts]
    except InputError as error:
        raise InputError(f"{error}{_filled(subject) if 'unknown symbol' in str(error) else ''}") from None
    conditions.sort(key=lambda each: each.kind != "equal")  # what is put in holds for all others
    _refuse_more_tokens_than_keys(conditions, there, chosen)
    place = _follow(conditions)
    _refuse_contradictions(conditions, place)
    if phase == "prefill" and not subject.model.bidirectional:
        _refuse_fewer_keys_than_tokens(conditions, place, chosen)
    return _data(subject, of, phase, terms, chosen, conditions, there)


def _text(given, option="--with"):
    if not isinstance(given, str):
        raise InputError(f"{option} {shown(given)} is a {type(given).__name__}; allowed: text")
    return given


def _phase(subject, of, phase):
    if of in PHASED or of == "kept":
        phase = phase or "prefill"
    if phase == "decode" and subject.model.bidirectional:
        raise InputError(f"{subject.name} is an encoder and has no decode; allowed: --phase prefill")
    if phase == "decode" and of == "kept":
        raise InputError("--of kept: a decode has no backward pass; allowed: --phase prefill")
    return phase


def _filled(subject):
    """What to add to the error for a symbol that a formula does not have."""
    return "" if subject.letters else " (a model's sizes are filled in; lmcalc formula decoder keeps them as symbols)"


def _refuse_more_tokens_than_keys(conditions, there, chosen):
    """S is T and more: InputError where T grows and S stays."""
    for at, each in enumerate(conditions):
        equal = any(one.kind == "equal" and one.about.name in ("S", "T") for one in conditions[:at])
        if each.kind == "grows" and each.about.name == "T" and ("S" in there or S in chosen) and not equal:
            raise InputError(f"--when {each.text!r}: no limit, since S is at least T and stays; allowed: "
                             "--when 'T = S' with it (an empty cache)")  # fmt: skip


def _follow(conditions):
    """A condition on a symbol that an earlier one replaced is on what stands in its place: T = S, T -> oo.

    Returns {symbol: what it was replaced by}.
    """
    place = {}
    for each in conditions:
        about = each.about.xreplace(place)
        if not about.is_Symbol:
            raise InputError(f"--when {each.text!r}: {each.about} was replaced by {about} before; allowed: "
                             "conditions on what is left")  # fmt: skip
        each.about = about
        if each.other is not None:
            each.other = each.other.xreplace(place)
        if each.kind == "equal" and each.other != about:
            if about in each.other.free_symbols:
                raise InputError(f"--when {each.text!r}: {about} is on both sides")
            if each.other.is_nonpositive:
                raise InputError(f"--when {each.text!r}: {each.other} is no size; allowed: sizes above 0")
            place = {name: found.xreplace({about: each.other}) for name, found in place.items()} | {about: each.other}
    return place


def _refuse_contradictions(conditions, place):
    """InputError where what was said to be larger is smaller, or no larger, for what stands in its place."""
    for each in conditions:
        if each.other is not None and each.kind != "equal":
            more = sympy.expand((each.about - each.other).xreplace(place))
            if more.is_negative or (more == 0 and each.kind == "grows"):
                raise InputError(f"--when {each.text!r} contradicts what was substituted")


def _refuse_fewer_keys_than_tokens(conditions, place, chosen):
    """At prefill S is past + prompt, and T the prompt: InputError where numbers or conditions say that S is less."""
    past = sympy.expand((S - T).xreplace(chosen).xreplace(place))
    assumed = Assumptions([(each.about, each.other) for each in conditions if each.kind == "larger"])
    if past.is_negative or (past != 0 and assumed.sign(past) is False):
        given = [f"--with {each}={value}" for each, value in chosen.items() if each in (S, T)]
        given += [f"--when {each.text!r}" for each in conditions if {S, T} & {each.about, *each.symbols}]
        raise InputError(f"{' '.join(given)}: S is past + prompt and T the prompt; allowed: S of at least T")


def _number(letter, number):
    """A positive number as an exact one."""
    real = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not real or not 0 < number < 10**MOST_DIGITS:
        given = number if isinstance(number, str) else shown(number)
        raise InputError(f"--with {letter}={given}: allowed: a positive number")
    return sympy.Rational(str(number))


def _symbols(terms):
    """{name: symbol} of everything in the terms, workload first."""
    found = {each.name: each for terms in terms.values() for term in terms for each in term.value.free_symbols}
    order = [*WORKLOAD, *sorted(found)]
    return {name: found[name] for name in dict.fromkeys(order) if name in found}


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
    raise InputError(f"{subject.name} has no {of}; it has {', '.join(there) or 'nothing to count'}{hint}")


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
        "when": [each.text for each in conditions],
    }
    if conditions:
        data |= {"exact": data["expression"], "exact_latex": data["latex"]}
        total, terms, left = _under(conditions, of, terms, work)
        data |= {
            **_shown(total),
            "left_out": [None if each is None else text(collected([each], work)) for each in left],
        }
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
    terms = {
        name: [each.replace(value=under(each.value, [*conditions[:at], *assumed])[0]) for each in group]
        for name, group in terms.items()
    }
    total = _total(of, terms, work)
    if at == len(conditions):
        return total, terms, [None] * at
    found, left = under(total, conditions[at:], [each for each in conditions[:at] if each.kind == "larger"])
    above, below = sympy.fraction(sympy.together(found))
    if below.is_Number or (below.is_Mul and not any(each.is_Add for each in below.args)):
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


@cache
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
        found.append(
            f"S = past + prompt, T = prompt (an empty cache: --when 'T = S'). Logits: {asked.logits} "
            f"position{'s' if asked.logits == 'all' else ''}."
        )
    if of in PHASED and phase == "decode":
        found.append("One new token for each sequence: S = context + 1, itself included.")
    if of in ("cache", "state"):
        found.append("C = context. What a cache without waste holds.")
    if of == "kept":
        found.append(f"Training: an empty cache, logits of all positions, activations in {asked.activations}.")
    if of in ("bytes", "intensity", "cache", "state"):
        weights = asked.weights if asked.weights != STORED else f"as the checkpoint says ({subject.model.storage.text})"
        found.append(
            f"Stored as: weights {weights}, activations {asked.activations}, cache {asked.cache}, state {asked.state}."
        )
    if (
        of in ("bytes", "intensity")
        and total.has(sympy.floor)
        and any(each.get("n_experts") for each in tables(subject.model.fields))
    ):
        found.append(
            "floor(x + 1/2) is a whole number nearest to an expectation: experts that some token chooses (an estimate)."
        )
    return found


def listed():
    """What `lmcalc formula --list` prints: quantities, variants and symbols, as plain data."""
    return {
        "schema": "lmcalc.formula.list/1",
        "quantities": [{"of": name, "what": what} for name, what in QUANTITIES.items()],
        "variants": [{"variant": word, "what": what} for word, (what, _, _) in every().items()],
        "symbols": WORKLOAD,
    }
