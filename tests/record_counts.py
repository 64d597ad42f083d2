"""Record parameters, FLOPs and cache sizes of real models as PyTorch and transformers count them.

    python tests/record_counts.py [NAME...]        these models, or all of CONFIGS

Needs torch and transformers (made with torch 2.13, transformers 5.24; no network, no memory for weights: the models are
built on the meta device). The tests that read tests/recorded/counts.json need neither. Of every model it holds, on one
line:

    class    the transformers class that was built
    config   from which config
    params   numel() of its parameters by part, tied tensors once; a bias belongs to its part
    flops    what torch.utils.flop_counter counts (2 per multiply-add, matrix products and convolutions only) by part,
             in a prefill of B sequences of S tokens with all logits, and in a decode of one token onto ctx cached ones
    cache    bytes of the tensors in past_key_values after a prefill of ctx tokens, batch 1, bf16

The names of the parts are those of `lmcalc report`. To add a model, add a row to CONFIGS under the name of its card.
Module names that no pattern of PARAMETERS or PRODUCTS knows are an error.
"""

import json
import re
import sys
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded" / "counts.json"
PREFILLS = ((1, 512), (2, 1000))
CONTEXT = 1024

GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024}
LLAMA2 = {"model_type": "llama", "vocab_size": 32000, "max_position_embeddings": 4096}
LLAMA3 = {"model_type": "llama", "vocab_size": 128256, "num_key_value_heads": 8, "max_position_embeddings": 131072}
MISTRAL = {"model_type": "mistral", "vocab_size": 32000, "max_position_embeddings": 32768}
GEMMA = {"model_type": "gemma", "vocab_size": 256000, "head_dim": 256, "max_position_embeddings": 8192}
QWEN2 = {"model_type": "qwen2", "max_position_embeddings": 131072}
MIXTRAL = {"model_type": "mixtral", "vocab_size": 32000, "max_position_embeddings": 32768, "num_local_experts": 8}
GPT_OSS = {"model_type": "gpt_oss", "vocab_size": 201088, "max_position_embeddings": 131072, "head_dim": 64,
           "num_experts_per_tok": 4, "sliding_window": 128}  # fmt: skip
QWEN3_MOE = {"model_type": "qwen3_moe", "vocab_size": 151936, "max_position_embeddings": 40960, "head_dim": 128,
             "num_experts_per_tok": 8, "num_experts": 128}  # fmt: skip


def gpt2(layers, width, heads):
    return {**GPT2, "n_layer": layers, "n_embd": width, "n_head": heads}


def decoder(base, layers, width, ffn, heads, kv_heads, tied=False, **others):
    return {
        **base,
        "num_hidden_layers": layers,
        "hidden_size": width,
        "intermediate_size": ffn,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "tie_word_embeddings": tied,
        **others,
    }


CONFIGS = {
    "gpt2": gpt2(12, 768, 12),
    "gpt2-medium": gpt2(24, 1024, 16),
    "gpt2-large": gpt2(36, 1280, 20),
    "gpt2-xl": gpt2(48, 1600, 25),
    "llama-2-7b": decoder(LLAMA2, 32, 4096, 11008, 32, 32),
    "llama-2-13b": decoder(LLAMA2, 40, 5120, 13824, 40, 40),
    "llama-2-70b": decoder(LLAMA2, 80, 8192, 28672, 64, 8),
    "llama-3.1-8b": decoder(LLAMA3, 32, 4096, 14336, 32, 8),
    "llama-3.1-70b": decoder(LLAMA3, 80, 8192, 28672, 64, 8),
    "llama-3.1-405b": decoder(LLAMA3, 126, 16384, 53248, 128, 8),
    "llama-3.2-1b": decoder(LLAMA3, 16, 2048, 8192, 32, 8, tied=True, head_dim=64),
    "llama-3.2-3b": decoder(LLAMA3, 28, 3072, 8192, 24, 8, tied=True, head_dim=128),
    "mistral-7b-v0.1": decoder(MISTRAL, 32, 4096, 14336, 32, 8, sliding_window=4096),
    "gemma-2b": decoder(GEMMA, 18, 2048, 16384, 8, 1, tied=True),
    "gemma-7b": decoder(GEMMA, 28, 3072, 24576, 16, 16, tied=True),
    "qwen-2.5-0.5b": decoder(QWEN2, 24, 896, 4864, 14, 2, tied=True, vocab_size=151936),
    "qwen-2.5-7b": decoder(QWEN2, 28, 3584, 18944, 28, 4, vocab_size=152064),
    "qwen-2.5-72b": decoder(QWEN2, 80, 8192, 29568, 64, 8, vocab_size=152064),
    "mixtral-8x7b": decoder(MIXTRAL, 32, 4096, 14336, 32, 8),
    "gpt-oss-20b": decoder(GPT_OSS, 24, 2880, 2880, 64, 8, num_local_experts=32),
    "qwen-3-30b-a3b": decoder(QWEN3_MOE, 48, 2048, 6144, 32, 4, moe_intermediate_size=768),
}

# first match decides; None: not counted by the convention (the making of rotary tables)
PARAMETERS = (
    (r"(^|\.)(lm_head|embed_out)\.", "lm_head"),
    (r"(^|[._])(norm|layernorm|ln)([._]|\d|$)|layer_?norm|ln_", "norms"),
    (r"(^|\.)(wpe|embed_positions|position_embeddings)\.", "position_embedding"),
    (r"(^|\.)(wte|embed_tokens|word_embeddings|embed_in)\.", "token_embedding"),
    (r"\.(self_attn|self_attention|attention|attn)\.", "attention"),
    (r"\.mlp\.(gate|router)\.", "moe_router"),
    (r"\.mlp\.experts\.", "moe_experts"),
    (r"\.(mlp|fc1|fc2)\.", "ffn"),
)
PRODUCTS = (
    (r"rotary_emb$", None),
    (r"(^|\.)(lm_head|embed_out)$", "lm_head"),
    (r"\.(self_attn|self_attention|attention|attn)\.\w+$", "attention_proj"),
    (r"\.(self_attn|self_attention|attention|attn)$", "attention_scores"),
    (r"\.mlp\.(gate|router)$", "moe_router"),
    (r"\.mlp\.experts$", "moe_experts"),
    (r"\.mlp(\.\w+)+$|\.(fc1|fc2)$", "ffn"),
)


def part(name, patterns):
    """The part that a parameter's or module's name stands for."""
    for pattern, found in patterns:
        if re.search(pattern, name):
            return found
    raise SystemExit(f"{name}: no pattern knows this name")


def parameters(model):
    """{part: parameters}."""
    found = {}
    for name, tensor in model.named_parameters():
        key = part(name, PARAMETERS)
        found[key] = found.get(key, 0) + tensor.numel()
    return found


def products(model, **inputs):
    """({part: FLOPs}, output) of one forward pass."""
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    with counter:
        output = model(**inputs)
    totals = {name: sum(ops.values()) for name, ops in counter.get_flop_counts().items() if name != "Global"}
    own = dict(totals)
    for name, flops in totals.items():
        above = name.rpartition(".")[0]
        while above and above not in own:
            above = above.rpartition(".")[0]
        if above:
            own[above] -= flops
    found, uncounted = {}, 0
    for name, flops in own.items():
        if flops:
            key = part(name, PRODUCTS)
            if key is None:
                uncounted += flops
            else:
                found[key] = found.get(key, 0) + flops
    assert sum(found.values()) + uncounted == counter.get_total_flops()
    return found, output


def record(config):
    """The record of one model."""
    import torch
    import transformers
    from transformers import masking_utils

    masking_utils.find_packed_sequence_indices = lambda positions: None  # it looks at values, which meta tensors lack
    tokens = {"device": "meta", "dtype": torch.long}
    built = transformers.AutoConfig.for_model(**config)
    for key in config:
        assert hasattr(built, key), f"the class does not know {key}"
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(built, dtype=torch.bfloat16, attn_implementation="eager")
        model.config._experts_implementation = "batched_mm"  # the eager form looks at which experts were chosen
    model.eval()
    longest = getattr(built, "n_positions", CONTEXT + 1)  # of a learned table
    flops, cache = {}, {}
    with torch.no_grad():
        for batch, length in PREFILLS:
            key = f"prefill_B{batch}_S{length}"
            flops[key] = products(model, input_ids=torch.zeros(batch, length, **tokens), use_cache=False)[0]
        for context in sorted({min(CONTEXT, longest), min(CONTEXT, longest - 1)}, reverse=True):
            held = model(input_ids=torch.zeros(1, context, **tokens), use_cache=True).past_key_values
            cache[f"ctx{context}"] = sum(
                tensor.numel() * tensor.element_size() for layer in held.layers for tensor in (layer.keys, layer.values)
            )
        flops[f"decode_ctx{context}"] = products(
            model, input_ids=torch.zeros(1, 1, **tokens), past_key_values=held, use_cache=True
        )[0]
    return {
        "class": type(model).__name__,
        "config": config,
        "params": parameters(model),
        "flops": flops,
        "cache": cache,
    }


def main():
    found = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    for name in sys.argv[1:] or CONFIGS:
        found[name] = record(CONFIGS[name])
        print(name, sum(found[name]["params"].values()), flush=True)
    lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found)]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
