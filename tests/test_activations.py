"""What training keeps, against Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large Transformers")."""

import sympy

from lmcalc.lenses.activations import kept
from lmcalc.model import build, trace

s, b, h, a = sympy.symbols("s b h a", positive=True, integer=True)
GPT2 = {
    "n_layers": 1,
    "d_model": h,
    "n_heads": a,
    "d_ff": 4 * h,
    "vocab_size": 37,
    "max_positions": s,
    "norm": "layernorm",
    "ffn": "gelu_tanh",
    "ffn_bias": True,
    "positions": "learned",
    "attention_bias": "all",
    "tied": True,
}


def of_blocks(layers):
    return kept(trace(build({**GPT2, "n_layers": layers}), b, s), {"activations": "bf16"})


def test_a_block_of_gpt_keeps_what_the_paper_counts():
    """Their eq. 1 is s b h (34 + 5 a s / h) bytes a layer, in 16 bits, masks in 1 byte an element.

    It holds dropout: two masks of s b h behind attention and feed-forward (2 of the 34), and for the attention weights
    a mask of a s^2 b and the weights after dropout, 2 a s^2 b (3 of the 5). We have no dropout: 32 and 2.
    """
    block = of_blocks(2) - of_blocks(1)
    theirs = s * b * h * (34 + 5 * a * s / h)
    dropout = 2 * s * b * h + 3 * a * s**2 * b
    assert sympy.expand(block - (theirs - dropout)) == 0


def test_their_parts():
    """Sec. 4.1: attention 11 s b h + 5 a s^2 b and feed-forward 19 s b h, with dropout masks; two norms 4 s b h."""
    attention = 2 + 4 + 2 + 2  # shared input of q, k, v; q and k; v; input of the output projection
    feed_forward = 2 + 8 + 8  # inputs of both matrices and of GeLU
    assert attention + 1 == 11 and feed_forward + 1 == 19
    assert sympy.expand(of_blocks(2) - of_blocks(1)).coeff(a, 0) == (attention + feed_forward + 4) * s * b * h


def test_nothing_is_kept_twice_and_weights_never():
    t = trace(build({**GPT2, "d_model": 12, "n_heads": 3, "d_ff": 48, "max_positions": 8}), 2, 8)
    storages = {id(array.base) for op in t.ops for array in (*op.reads, *op.writes) if array.role != "weight"}
    assert kept(t, {"activations": "fp8"}) <= len(storages) * 2 * 8 * 48 * 3


def test_wider_types_keep_more():
    t = trace(build({**GPT2, "d_model": 12, "n_heads": 3, "d_ff": 48, "max_positions": 8}), 2, 8)
    ids = 2 * 8 * 4  # of the tokens, whatever the type
    assert kept(t, {"activations": "fp32"}) - ids == 2 * (kept(t, {"activations": "bf16"}) - ids)
