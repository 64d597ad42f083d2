"""Parallel blocks and fused projections: the same products, fewer bytes (p. 28)."""

from ..algebra import symbol
from .steps import B, Derivation, T, at, contractions, cost, elements, empty


def parallel():
    """What changes when attention and feed-forward read the same norm, and their projections are one product."""
    D = symbol("D")
    made = Derivation(
        "A serial block against a parallel one with one shared norm, both with SwiGLU and grouped queries. "
        "Elements moved of a whole pass; scores stay on chip."
    )
    serial, beside = empty(contractions("serial")), empty(contractions("parallel"))
    made.step("FLOPs of products, serial", serial)
    made.reached("serial less parallel", serial - beside, 0 * D, (D,), "no FLOPs saved")
    made.step("parameters, serial less parallel (a norm)", cost("serial", "params") - cost("parallel", "params"))
    moved = {
        (block, fused): empty(elements(block, fuse_projections=fused))
        for block in ("serial", "parallel")
        for fused in (False, True)
    }
    first = moved["serial", False]
    made.step("elements moved, serial", first)
    saved = made.step("saved by the parallel block", first - moved["parallel", False])
    activations = saved - (cost("serial", "params") - cost("parallel", "params"))
    made.reached("of activations", activations, B * T * D, (B, T, D), "b*n*d: fewer passes over the stream")
    both = made.step("saved by fusing Q, K, V, up and gate, too", first - moved["parallel", True])
    made.step("in a serial block, where Q, K, V and up, gate are two products", first - moved["serial", True])
    small = {"B": 8, "T": 2048, "D": 1024, "F": 2752, "N": 16, "K": 16, "H": 64}
    large = {"B": 1, "T": 2048, "D": 18432, "F": 73728, "N": 48, "K": 1, "H": 256}
    made.good(
        f"D = 1,024, 8 sequences of 2,048: {at(both / first, **small):.0%} of the elements saved, where memory "
        "bounds such layers"
    )
    made.misleads(
        f"PaLM 540B's width, one sequence: {at(both / first, **large):.0%}: its products are bound by compute, "
        "and the 15 % "
        "that PaLM reports come from larger products and fewer exchanges between chips, which one chip does not have"
    )
    return made
