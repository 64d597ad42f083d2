"""z-loss (p. 54), QK norm (p. 55) and soft cap (p. 56): what they compute, and what they cost."""

import numpy
import sympy

from ..algebra import symbol
from ..primitives import PRIMITIVES
from ..questions.symbolic import subject_of, terms_of
from .steps import B, Derivation, T, at, contractions, cost, empty, grows, plain
from .vocabulary import loss_flops


def stability():
    """Values off the reference kernels, FLOPs and bytes off the trace with each and without it."""
    H, N, K = map(symbol, "HNK")
    made = Derivation(
        "All three keep what goes into a softmax small. Costs are those with the trick less those without."
    )
    z = made.step("z-loss: FLOPs", loss_flops("z_loss") - loss_flops("cross_entropy"))
    made.reached("z-loss, a token", z, B * T, (B, T), "nothing of V: log Z is there anyway")
    norm = made.step("QK norm: FLOPs of a layer", cost("qk_norm", "flops"))
    made.step("QK norm: parameters", cost("qk_norm", "params"))
    made.step("QK norm: elements moved, fused", _moved("qk_norm") - _moved("gqa"))
    made.step(
        "QK norm: elements moved, unfused", _moved("qk_norm", traffic="unfused") - _moved("gqa", traffic="unfused")
    )
    made.reached("QK norm, H -> oo", grows(norm, H), B * T * N * H + B * T * K * H, (B, T, N, K, H), "b*n*d")
    cap = made.step("soft cap on scores: FLOPs of a layer", empty(cost("attention_softcap", "flops")))
    made.step("soft cap on scores: elements moved, fused", empty(_moved("attention_softcap") - _moved("gqa")))
    made.step(
        "soft cap on scores: elements moved, unfused",
        empty(_moved("attention_softcap", traffic="unfused") - _moved("gqa", traffic="unfused")),
    )
    made.reached("soft cap, T -> oo", grows(cap, T), B * N * T**2, (B, N, T), "b*h*n**2")
    made.step("soft cap on logits: FLOPs", cost("logit_softcap", "flops", logits="all"))
    products = empty(contractions("gqa"))
    sizes = {"B": 1, "D": 4096, "N": 32, "K": 8, "H": 128, "T": 8192}
    capped = PRIMITIVES["softcap"].kernel(numpy, numpy.array([300.0, 3.0]), 30.0)
    made.good(f"cap 30: 300 becomes {capped[0]:.4f}, and 3 stays {capped[1]:.3f}")
    scores = numpy.array([0.0, 0.0, 20.0])
    made.good(
        f"softmax(0, 0, 20) gives {PRIMITIVES['softmax'].kernel(numpy, scores)[2]:.9f} to the last: with q and k "
        "of rms 1, scores "
        "are at most sqrt(H)"
    )
    log_z = float(PRIMITIVES["log_sum_exp"].kernel(numpy, numpy.full((1, 4), 10.0), axis=(-1,)).ravel()[0])
    made.good(
        f"four logits of 10 have log Z = {log_z:.3f}: a z-loss of {1e-4 * log_z**2:.4f}, and the same cross "
        "entropy as four zeros"
    )
    made.good(
        f"QK norm is {at(norm / products, **sizes):.2%} of an attention layer's products at 8,192 tokens, and "
        "fused with the turns it moves only its weights more"
    )
    made.misleads(
        f"FLOPs are not time: the cap is {at(cap / products, **sizes):.1%} of the products, on a vector unit "
        "some 15 times slower, "
        "and kernels that keep scores on chip must know it; unfused it moves all scores twice more"
    )
    return made


def _moved(word, **options):
    """Elements that grouped-query attention with rotary positions moves with the trick."""
    subject = subject_of(word, {"positions": "rotary"}, options).replace(where=("layers/attention",))
    terms = terms_of(subject, "bytes", "prefill")["bytes"]
    return sympy.expand(sympy.Add(*[plain(each.value, "prefill") for each in terms]) / 2)
