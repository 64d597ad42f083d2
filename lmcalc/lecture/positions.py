"""Position embeddings: tables, biases and turns (p. 30)."""

from ..algebra import symbol
from ..cards import load
from ..lenses.params import params
from .steps import B, Derivation, T, at, cost, empty


def positions():
    """Parameters and FLOPs of each way."""
    D, J, N, K, H = map(symbol, "DJNKH")
    made = Derivation(
        "Where positions enter: a sum at the input, a bias on scores, or a turn of queries and keys in each layer."
    )
    table = made.step("learned: parameters, of a table for J positions", cost("learned", "params"))
    made.reached("the learned table", table, J * D, (J, D))
    for word, where in (
        ("learned", "once"),
        ("sinusoidal", "once"),
        ("alibi", "each layer"),
        ("relative_bias", "each layer"),
        ("rotary", "each layer"),
    ):
        made.step(f"{word}: FLOPs, {where}", empty(cost(word, "flops")))
    made.step("T5's bias: parameters, for all layers together", cost("relative_bias", "params"))
    turned = empty(cost("rotary", "flops"))
    made.reached(
        "rotary: FLOPs of a layer",
        turned,
        B * T * N * H + B * T * K * H,
        (B, T, N, K, H),
        "b*n*d, for queries and for keys",
    )
    made.good(f"J = 2,048, D = 4,096: {at(table, J=2048, D=4096):,.0f} parameters, the lecture's 8.4 M")
    found = params(load("gpt2"))
    share = found["position_embedding"] / sum(found.values())
    made.misleads(
        f"the share depends on the model: {share:.2%} of gpt2's parameters, and rotary has none at all "
        "but works in every layer"
    )
    made.misleads(
        "a bias on scores (ALiBi, T5) costs n**2: "
        f"{at(empty(cost('alibi', 'flops')) / turned, T=8192, N=32, K=32, H=128, B=1):.1f} times the FLOPs of "
        "rotary at 8,192 tokens, "
        f"{at(empty(cost('alibi', 'flops')) / turned, T=512, N=32, K=32, H=128, B=1):.2f} at 512"
    )
    return made
