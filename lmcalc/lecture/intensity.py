"""Arithmetic intensity of attention: of a whole sequence (p. 58), token by token (p. 60), with one head of keys (61).

Shazeer 2019, "Fast Transformer Decoding", sec. 2.4.1, 3.2, has the same three. Intensities here are FLOPs an element.
"""

import sympy

from ..algebra import symbol
from .steps import B, Derivation, S, T, at, contractions, elements, empty, grows, letters

b, n, d, h, k, m, r, q = letters("b n d h k m r q")
D, N, H = map(symbol, "DNH")


def named(expression, heads=d / k, size=k):
    """In the lecture's letters: b sequences, n tokens, width d, heads of size k, h k = d."""
    return sympy.expand(expression.subs({B: b, T: n, D: d, N: heads, H: size}, simultaneous=True))


def intensity():
    """p. 58: (1/k + 1/(b n))^-1."""
    made = Derivation(
        "Multi-head attention over a whole sequence, every intermediate in memory, no mask: b sequences of n tokens, "
        "width d = h k, heads of size k. The notes say themselves that it is no equality."
    )
    flops = named(empty(contractions("mha", mask="full")))
    moved = named(empty(elements("mha", mask="full", traffic="unfused")))
    made.step("FLOPs of its products, off the trace", flops)
    made.step("elements moved, off the trace (unfused)", moved)
    exact = made.step("intensity, FLOPs an element", flops / moved)
    limit = grows(exact.subs({n: d, b: m / d}, simultaneous=True), d)
    made.step("n = d, b n = m free, d -> oo", limit)
    form = 1 / k + 1 / m
    made.reached("its inverse, in k and b n = m", 1 / limit, form, (k, m), "1/k + 1/(b*n)")
    here = {"b": 8, "n": 8192, "d": 8192, "k": 128}
    near = at(limit, k=128, m=8 * 8192)
    made.good(
        f"b = 8, n = d = 8192, k = 128: {at(exact, **here):.1f} exactly, {near:.1f} in the limit; "
        f"the lecture's form without its constants says {at(1 / form, k=128, m=8 * 8192):.0f}"
    )
    short = {**here, "n": 512}
    kept = named(empty(elements("mha", mask="full")))
    made.misleads(
        f"n = 512, d = 8192: {at(exact, **short):.0f} exactly, {at(limit, k=128, m=8 * 512):.1f} in the limit: "
        "the form has the scores of n = d; of n < d there are d/n times fewer a FLOP of the projections"
    )
    made.misleads(
        f"a kernel that keeps scores on chip (fused) has no 1/k: {at(flops / kept, **here):,.0f} at b = 8, n = d = 8192"
    )
    return made


def decode():
    """p. 60: (n/d + 1/b)^-1."""
    made = Derivation(
        "Multi-head attention that makes n tokens one by one, each reading all weights and the keys and values "
        "before it."
    )
    flops, moved = (_summed(each("mha", "decode"), N=d / k) for each in (contractions, elements))
    made.step("FLOPs of n steps, summed off the trace of one", flops)
    made.step("elements moved in n steps (scores on chip)", moved)
    exact = flops / moved
    limit = made.step("n = r d with r free, d -> oo", grows(exact.subs(n, r * d), d))
    both = made.step("r = q/b, b -> oo: n/d and 1/b small together", grows(limit.subs(r, q / b), b))
    found = sympy.expand(1 / both).subs(q, b * n / d)
    made.reached("its inverse", found, n / d + 1 / b, (n, d, b))
    for what, here in (
        (made.good, {"b": 64, "n": 128, "d": 8192, "k": 128}),
        (made.misleads, {"b": 64, "n": 32768, "d": 4096, "k": 128}),
    ):
        near = at(1 / found, **{name: here[name] for name in "bnd"})
        rest = (
            "" if what == made.good else ": beyond n = d the FLOPs of the scores, which the form drops, are most of all"
        )
        what(
            f"b = {here['b']}, n = {here['n']:,}, d = {here['d']:,}: {at(exact, **here):.2f} exactly, {near:.2f} "
            f"with the constants{rest}"
        )
    return made


def mqa():
    """p. 61: (1/d + n/(d h) + 1/b)^-1."""
    made = Derivation("The same with one head of keys and values for all h heads of queries, of size k = d/h.")
    flops, moved = (_summed(each("mqa", "decode"), N=h, H=d / h) for each in (contractions, elements))
    made.step("FLOPs of n steps", flops)
    made.step("elements moved in n steps", moved)
    exact = flops / moved
    beta, nu = letters("beta nu")
    scaled = exact.subs({b: beta * d, n: nu * h}, simultaneous=True)
    limit = made.step("b = beta d, n = nu h: the three terms alike; d -> oo", grows(scaled, d))
    limit = made.step("h -> oo", grows(limit, h))
    found = sympy.expand(1 / limit).subs({beta: b / d, nu: n / h}, simultaneous=True)
    made.reached("its inverse", found, 1 / d + n / (d * h) + 1 / b, (n, d, h, b))
    here = {"b": 256, "n": 512, "d": 8192, "h": 64}
    made.good(
        f"b = 256, n = 512, d = 8,192, h = 64: {at(exact, **here):.1f} exactly, {at(1 / found, **here):.1f} with "
        "the constants"
    )
    few = {"b": 1, "n": 512, "d": 8192, "h": 64}
    multi = _summed(contractions("mha", "decode"), N=h, H=d / h) / _summed(elements("mha", "decode"), N=h, H=d / h)
    made.misleads(
        f"b = 1: {at(exact, **few):.2f}, with a key/value head for each query head {at(multi, **few):.2f}: "
        "1/b rules, and fewer heads of keys do not touch it"
    )
    return made


def _summed(step, N, H=k):
    """The cost of n decode steps: of one with S keys, summed over S from 1 to n."""
    each = step.subs({B: b, D: d, symbol("N"): N, symbol("H"): H}, simultaneous=True)
    keys = sympy.Symbol("s", positive=True, integer=True)
    return sympy.expand(sympy.summation(sympy.expand(each.subs(S, keys)), (keys, 1, n)))
