"""Sliding windows: n w d in place of n**2 d (p. 64), and layers of both kinds in turn (p. 65)."""

import sympy

from ..algebra import symbol
from ..asymptotics import Assumptions, decided
from ..model import build
from ..questions.report import report
from ..questions.symbolic import C, Subject, terms_of
from ..workload import workload
from .steps import B, Derivation, S, T, contractions, cost, empty, grows

b, n, d, w = sympy.symbols("b n d w", positive=True, integer=True)


def windows():
    """Scores of a prompt, keys of a decode, and the cache of an interleaved stack."""
    made = Derivation(
        "Scores and mixing of n tokens of an empty cache, causal; width d = N H, a window of w keys, itself included."
    )
    full, near = (_scores(word) for word in ("mha", "sliding_window"))
    made.step("full attention", full)
    made.step("with a window, w < n", near)
    made.reached("full: n -> oo", grows(full, n), b * n**2 * d, (b, n, d))
    made.reached("with a window: n -> oo", grows(near, n), b * n * w * d, (b, n, w, d))
    made.reached("one against the other: n -> oo", grows(near / full, n), w / n, (w, n))
    exact = near / full
    sizes = {n: 32768, w: 4096}
    step = cost("sliding_window", "flops", "decode", ("attention_scores",)) / cost(
        "mha", "flops", "decode", ("attention_scores",)
    )
    step = float(step.subs({S: 32768, symbol("W"): 4096}))
    made.good(
        f"n = 32,768, w = 4,096: a decode step at 32,768 keys does {step} of the scores: the lecture's 1/8, exactly"
    )
    made.misleads(
        f"a causal prompt of 32,768: {float(exact.subs(sizes)):.4f}, not 1/8: 2 w/n - (w/n)**2, since half of the full "
        "rectangle is masked already, and hardly anything of the band"
    )
    changes = ({}, {"window": 32768})
    model, without = (
        report("mistral-7b-v0.1", set=each, prompt=32768).to_dict()["prefill"]["flops"]["total"] for each in changes
    )
    made.misleads(
        f"of the whole Mistral 7B: {model / without:.2f} of the FLOPs of the same prompt without a window: "
        "projections and feed-forward stay"
    )
    interleaved(made)
    return made


def interleaved(made):
    """Every fourth layer full (Command A): what the stack holds."""
    W = symbol("W")
    held = made.step("p. 65, every 4th layer full: cache of 4 layers", _cache(["3*local", "full"], 4))
    all_full = _cache(["full"], 4)
    share = made.step("against full attention in all", held / all_full)
    made.reached("C -> oo", _limit(share), sympy.Rational(1, 4), (), "1/4")
    six = _cache(["5*local", "full"], 6)
    made.good(
        "Gemma 3's 5 in 6 local, a window of 1,024, at 131,072 tokens: "
        f"{float((six / _cache(['full'], 6)).subs({C: 131072, W: 1024})):.3f} of "
        "the cache; 1/6 is 0.167"
    )
    made.misleads(
        f"at 2,048 tokens it is {float((six / _cache(['full'], 6)).subs({C: 2048, W: 1024})):.3f}, and below the "
        "window nothing is saved"
    )


def _limit(share):
    W = symbol("W")
    return grows(decided(share, Assumptions([(C, W)])), C)


def _scores(word):
    """FLOPs of scores and mixing in the lecture's letters, for more tokens than the window has keys."""
    W, N, H = map(symbol, "WNH")
    found = empty(contractions(word) - cost(word, "flops", parts=("attention_proj",)))
    found = decided(found, Assumptions([(T, W)]))
    return sympy.expand(found.subs({B: b, T: n, W: w}, simultaneous=True)).subs(H, d / N)


def _cache(layers, count):
    """Bytes of the cache of a stack of these layers."""
    D, N, K, H, F, V, W = map(symbol, "DNKHFVW")
    kinds = {"local": {"window": W}, "full": {}}
    model = build(
        {
            "n_layers": count,
            "d_model": D,
            "n_heads": N,
            "n_kv_heads": K,
            "head_dim": H,
            "d_ff": F,
            "vocab_size": V,
            "layers": layers,
            "kinds": {name: kinds[name] for name in kinds if any(name in each for each in layers)},
        }
    )
    terms = terms_of(Subject("stack", model, {}, ("",), workload()), "cache")["cache"]
    return sympy.Add(*[each.value for each in terms])
