"""Heads against the width (p. 42-43) and width against depth (p. 44)."""

import sympy

from ..algebra import symbol
from ..cards import load
from ..lenses.params import params
from ..questions.report import report
from .steps import Derivation, T, contractions, cost, empty

RATIO, ASPECT = sympy.symbols("rho alpha", positive=True)


def ratios():
    """What N H / D and D / L cost."""
    D, F, N, H = map(symbol, "DFNH")
    made = Derivation(
        "rho = N H / D, which most models have at 1; alpha = D / L, mostly 100 to 200. A block with a plain "
        "feed-forward "
        "of 4 D, all heads with keys of their own."
    )
    attention = made.step("parameters of multi-head attention", cost("mha", "params"))
    made.reached("with N H = rho D", attention.subs(N, RATIO * D / H), 4 * D**2, (D,), "4*d**2 at rho = 1")
    block = attention.subs(N, D / H) + cost("relu", "params").subs(F, 4 * D)
    made.reached("a block at rho = 1", block, 12 * D**2, (D,))
    made.step("L = D/alpha blocks", block * D / ASPECT)
    scores = empty(contractions("mha") - cost("mha", "flops", parts=("attention_proj",)))
    share = made.step(
        "scores' FLOPs against those of projections, N H = rho D: rho cancels",
        sympy.cancel(scores / cost("mha", "flops", parts=("attention_proj",))),
    )
    assert share.free_symbols == {T, D}
    for name, good, notes in (("gpt3-175b", True, 128), ("t5-11b", False, 33)):
        model = load(name)
        fields, total = model.fields, sum(params(model).values())
        layers = fields["n_layers"] + fields.get("n_encoder_layers", 0)
        rule = 12 * layers * fields["d_model"] ** 2
        rho = fields["n_heads"] * fields["head_dim"] / fields["d_model"] if fields.get("head_dim") else 1
        (made.good if good else made.misleads)(
            f"{name}: rho {rho:g}, F/D {fields['d_ff'] / fields['d_model']:g}, D/L "
            f"{fields['d_model'] / fields['n_layers']:.0f} (the notes' table: {notes}): 12 L D**2 "
            f"is {rule / total:.1%} of its parameters"
        )
    deep, wide = (
        {
            "n_layers": layers,
            "d_model": width,
            "n_heads": width // 128,
            "n_kv_heads": width // 128,
            "head_dim": 128,
            "d_ff": 4 * width,
            "ffn": "gelu",
        }
        for layers, width in ((128, 2048), (32, 4096))
    )
    bytes_of = {}
    for name, changes in (("deep", deep), ("wide", wide)):
        costs = report("llama-3.1-8b", set=changes, hardware="h100", prompt=2048).to_dict()
        bytes_of[name] = (
            costs["prefill"]["bytes"]["activations"],
            costs["hardware"][0]["prefill"]["roofline_s"],
            sum(row["times"] for row in costs["prefill"]["by_part"]),
        )
    (a, s, kernels), (b, t, fewer) = bytes_of["deep"], bytes_of["wide"]
    made.misleads(
        f"equal parameters, not equal work: 128 layers of 2,048 move {a / b:.1f} times the activations of 32 of "
        "4,096, one after "
        f"the other in {kernels / fewer:.1f} times the kernels; roofline of a prefill of 2,048 on an H100: "
        f"{s * 1e3:.0f} ms against {t * 1e3:.0f} ms"
    )
    return made
