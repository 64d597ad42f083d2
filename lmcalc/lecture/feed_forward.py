"""Parameters of the feed-forward: 2DF and 3DF, the 8/3 rule (p. 22-23, 38), T5's 64 (p. 39)."""

import sympy

from ..algebra import symbol
from ..cards import load
from .steps import Derivation, cost


def ffn():
    """Two matrices or three, and the width that makes them equal."""
    D, F = symbol("D"), symbol("F")
    made = Derivation("A plain feed-forward has two matrices, a gated one three. F is the width after the gate.")
    plain, gated = cost("relu", "params"), cost("swiglu", "params")
    made.step("parameters of a plain one", plain)
    made.step("parameters of a gated one", gated)
    made.reached("a plain one of F = 4 D", plain.subs(F, 4 * D), 8 * D**2, (D,))
    width = sympy.solve(sympy.Eq(gated, plain.subs(F, 4 * D)), F)[0]
    made.reached("F of a gated one with as many", width, sympy.Rational(8, 3) * D, (D,))
    flops = cost("swiglu", "flops") / cost("relu", "flops").subs(F, sympy.Rational(3, 2) * F)
    made.step("FLOPs of gated against plain at equal parameters, activations included", flops)
    for name, good, why in (
        ("llama-1-7b", True, "8/3 D rounded up to a multiple of 256"),
        ("llama-3.1-8b", False, "3.5 D, to which parameters went that GQA saved"),
        ("t5-11b", False, "64 D, in two matrices"),
    ):
        fields = load(name).fields
        ratio = sympy.Rational(fields["d_ff"], fields["d_model"])
        three = fields["ffn"].endswith("glu")
        there = (gated if three else plain).subs({D: fields["d_model"], F: fields["d_ff"]})
        share = float(there / (8 * fields["d_model"] ** 2))
        (made.good if good else made.misleads)(
            f"{name}: F/D = {float(ratio):.4g}, {why}: {share:.3g} times the parameters of 8 D**2 a layer"
        )
    made.misleads(
        "the rule is of parameters and products; the gate's product and its activation are F elements more, "
        "moved and kept"
    )
    return made
