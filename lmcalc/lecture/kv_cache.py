"""The cache of grouped queries against that of all heads, and of latent attention (p. 62)."""

import sympy

from ..algebra import symbol
from ..questions.compare import compare
from ..questions.report import report
from .steps import Derivation, at, cost


def kv_cache():
    """h_kv / h_q, exactly; and a latent for all heads."""
    N, K, C, Z, H = (symbol(name) for name in ("N", "K", "C_kv", "Z", "H"))
    made = Derivation(
        "Bytes that a cache without waste holds. h_q = N query heads, h_kv = K heads of keys and values, of size H."
    )
    multi, grouped, latent = (cost(word, "cache") for word in ("mha", "gqa", "mla"))
    made.step("multi-head", multi)
    made.step("grouped", grouped)
    made.step("latent: a latent of C_kv and Z turned numbers", latent)
    made.reached("grouped against multi-head", sympy.cancel(grouped / multi), K / N, (K, N), "h_kv/h_q")
    found = made.step("latent against multi-head", sympy.cancel(latent / multi))
    made.reached(
        "latent against multi-head of the same N and H", found, C / (N * H) + Z / (N * H), (C, Z, N, H), "no form"
    )
    ratio = at(found, C_kv=512, Z=64, N=128, H=128)
    made.good(
        f"32 query heads on 8: 1/4. DeepSeek-V3's 128 heads of 128 in a latent of 512 and 64: 1/{1 / ratio:.0f}, "
        "less than "
        f"GQA with {128 * ratio:.2f} heads of keys and values"
    )
    for context in (2048, 131072):
        reports = compare(["llama-3.1-8b"], [{"n_kv_heads": 32}], context=context)["reports"]
        few, all_heads = (each["decode"]["bytes"]["total"] for each in reports)
        text = (
            f"llama-3.1-8b at {context:,} tokens, one sequence: decode moves {few / all_heads:.0%} of what 32 "
            "heads would move"
        )
        (made.good if context > 99999 else made.misleads)(
            text + ("" if context > 99999 else ": weights are most of it")
        )
    costs = report("deepseek-v3", context=4096, batch=64).to_dict()["decode"]["flops"]["contraction_by_part"]
    made.misleads(
        "absorbed, latent attention does the products of one head of 576 and 512 for each of 128 heads: at 4,096 "
        "tokens "
        f"{costs['attention_scores'] / costs['attention_proj']:.1f} times the FLOPs of its projections"
    )
    return made
