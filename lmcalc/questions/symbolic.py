"""The terms that a cost is the sum of, on symbols, read off the trace of a model or of the part that a variant is.

Workload symbols: B sequences; at prefill T new tokens, P = past; at decode P = context; C = context tokens in the
cache; M source tokens (= prompt) of an encoder-decoder at decode. A formula shows keys attended, S, in place of P.
"""

from types import SimpleNamespace

import sympy

from ..algebra import symbol
from ..cards import load
from ..errors import InputError, closest
from ..lenses.activations import kept_by
from ..lenses.cache import cache
from ..lenses.flops import of_op
from ..lenses.params import tensors
from ..lenses.traffic import CATEGORIES, ESTIMATED
from ..model import trace
from ..numbers import monomial, value
from ..record import Frozen
from ..workload import workload
from .report import Pass
from .variants import every, generic, known

B, T, S, C, M = map(symbol, "BTSCM")
P = sympy.Symbol("P", nonnegative=True, integer=True)


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


def subject_of(what, set=None, options=None):
    """The Subject of a model or variant word, with the conventions of a report."""
    asked = workload(**(options or {}))
    row = known(what) if isinstance(what, str) else None
    if row is not None:
        model, letters, where = generic(what, set)
        if asked.expert_skew and {"E", "A"} & {*letters}:
            raise InputError(
                f"expert_skew = {asked.expert_skew} of {row[0]}: a skew needs numbers of experts; allowed: 0, or with "
                "--set n_experts=8 --set experts_per_token=2"
            )
        return Subject(row[0], model, letters, where if isinstance(where, tuple) else (where,), asked)
    try:
        model = load(what, set)
    except InputError as error:
        near = closest(what, every()) if isinstance(what, str) else []
        if near and str(error).startswith("unknown"):
            raise InputError(f"{error}; closest variants: {', '.join(near)} (lmcalc formula --list)") from None
        raise
    return Subject(model.name, model, {}, ("",), asked.of(model, options or {}))


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
            yield Term(
                part,
                path,
                sympy.sympify(value(monomial(*[size_of[axis] for axis in spec if axis not in "->|"], times))),
            )


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
