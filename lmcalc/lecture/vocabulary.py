"""What a vocabulary costs in embedding and softmax (p. 47)."""

from ..algebra import symbol
from ..cards import load
from ..lenses.flops import flops
from ..lenses.params import params
from ..model import trace
from ..questions.report import report
from ..questions.variants import generic
from .steps import B, Derivation, T, cost, grows


def vocabulary():
    """V D parameters once or twice; 2 V D FLOPs, and a few V of softmax, a token."""
    D, V = map(symbol, "DV")
    made = Derivation(
        "A table of V rows at the input, another at the output where they are not tied; logits for each token of "
        "training, for "
        "the last of a prompt, for every token of a decode."
    )
    table = made.step("parameters of the embedding", cost("embedding", "params"))
    head = made.step("parameters of the head", cost("lm_head", "params"))
    made.reached("embedding and head", table + head, V * D, (V, D))
    logits = made.step("FLOPs of the logits, all positions", cost("lm_head", "flops", logits="all"))
    made.reached("of the logits", logits, B * T * D * V, (B, T, D, V))
    loss = made.step("FLOPs of softmax and loss (with the logits at hand)", loss_flops("cross_entropy"))
    made.reached("of softmax and loss, V -> oo", grows(loss, V), B * T * V, (B, T, V))
    made.reached("softmax against logits", grows(loss / logits, V), 1 / D, (D,), "1/d: nothing")
    for name, good in (("llama-2-70b", True), ("gemma-3-1b", False)):
        found = params(load(name))
        share = (found["token_embedding"] + found.get("lm_head", 0)) / sum(found.values())
        costs = report(name, logits="all").to_dict()
        parts, step = (costs[phase]["flops"]["contraction_by_part"] for phase in ("prefill", "decode"))
        (made.good if good else made.misleads)(
            f"{name}: {share:.1%} of its parameters, {parts['lm_head'] / sum(parts.values()):.1%} of the "
            "products of training "
            f"(all logits), {step['lm_head'] / sum(step.values()):.1%} of those of a decode step"
        )
    size = 4096 * 262144 * 4
    made.misleads(
        f"logits are kept, and in fp32 4,096 tokens of 262,144 entries are {size / 1e9:.1f} GB: more than the "
        "small model's weights"
    )
    return made


def loss_flops(loss):
    """FLOPs of a loss on the logits of all positions, off the trace."""
    model, _, _ = generic("gqa")
    with_loss, without = (sum(flops(trace(model, B, T, 0, "all", loss=each))[0].values()) for each in (loss, None))
    return (with_loss - without).expand()
