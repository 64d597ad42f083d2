"""Record logits of tiny random models, made with transformers, as truth for the reference forwards.

    python tests/record_logits.py [NAME...]        these models, or all of MODELS

Needs torch and transformers (5.24 or later; no network). The tests that read the records need neither.
For every model a folder tests/recorded/logits/NAME/ is written:

    config.json        as transformers saves it, model_type included
    model.safetensors  float32 weights under the names that transformers saves, tied tensors once
    expected.npz       input_ids (B, T) and the logits (B, T, V) of a prefill; next_ids (B, N), step_sizes and
                       the logits of every cached step: step_logits_0, step_logits_1, ...
                       An encoder-decoder has encoder_input_ids too; input_ids and next_ids are its decoder's.
                       An encoder has no steps.
    meta.json          versions, class, dtype of the run, and two differences relative to the largest logit:
                       of a float32 run of the same weights, and of one forward over the whole sequence

To add a model, add a row to MODELS and, where the usual workload does not show its options, one to WORKLOADS.
"""

import argparse
import copy
import inspect
import json
import math
import shutil
import tempfile
import zlib
from pathlib import Path

import numpy as np
import torch
import transformers

RECORDED = Path(__file__).parent / "recorded" / "logits"
BATCH = 2
CACHE_TOLERANCE = 1e-6  # cached steps against one forward without a cache, relative to the largest logit
FOLDER_LIMIT = 300_000  # bytes
SEQ2SEQ = {"t5", "mt5"}
MASKED = {"bert"}

TOKENS = {"vocab_size": 53, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}
HALF_ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}}
HEADS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
SIZES = {"hidden_size": 24, "intermediate_size": 28, "max_position_embeddings": 64}
WIDE_HEAD = {"head_dim": 8}  # 4 heads of 8 on a width of 24
LLAMA = {**TOKENS, **HEADS, **SIZES, **ROPE}
GPT2 = {**TOKENS, "n_embd": 24, "n_head": 4, "n_layer": 2, "n_positions": 32}
GPT_NEOX = {
    **TOKENS,
    **HALF_ROPE,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
OPT = {
    **TOKENS,
    "hidden_size": 24,
    "ffn_dim": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "pad_token_id": 1,
}
FALCON = {**TOKENS, **ROPE, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
PHI = {**LLAMA, **HALF_ROPE, "hidden_size": 32}
GEMMA = {**LLAMA, **WIDE_HEAD}
GEMMA2 = {
    **GEMMA,
    "query_pre_attn_scalar": 6,
    "attn_logit_softcapping": 3.0,
    "final_logit_softcapping": 8.0,
    "num_hidden_layers": 3,
}
GEMMA3 = {
    **{k: v for k, v in GEMMA.items() if k != "rope_parameters"},
    "query_pre_attn_scalar": 6,
    "num_hidden_layers": 3,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
        "full_attention": {"rope_type": "linear", "rope_theta": 400.0, "factor": 4.0},
    },
}
COHERE = {**LLAMA, "logit_scale": 0.25}
STABLELM = {**LLAMA, **HALF_ROPE, "hidden_size": 32, "use_qkv_bias": True}
PHI3_LONGROPE = {
    **LLAMA,
    "hidden_size": 32,
    "max_position_embeddings": 40,
    "rope_parameters": {
        "rope_type": "longrope",
        "rope_theta": 100.0,
        "partial_rotary_factor": 0.75,
        "short_factor": [1.0, 1.1, 1.3],
        "long_factor": [1.5, 2.5, 4.0],
    },
}
T5 = {
    "vocab_size": 53,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 28,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
}


def rope(kind, theta=100.0, **fields):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **fields}}


# name: (model_type, fields of its config)
MODELS = {
    "gpt2": ("gpt2", {**GPT2, "n_inner": 40}),
    "gpt2-layer-scale": ("gpt2", {**GPT2, "scale_attn_by_inverse_layer_idx": True}),
    "openai-gpt": ("openai-gpt", {**GPT2}),
    "opt": ("opt", {**OPT}),
    "opt-post-norm": ("opt", {**OPT, "do_layer_norm_before": False, "word_embed_proj_dim": 16}),
    "gptj": ("gptj", {**GPT2, "rotary_dim": 4, "n_inner": 40}),
    "gpt_neo": (
        "gpt_neo",
        {
            **TOKENS,
            "hidden_size": 24,
            "num_layers": 3,
            "num_heads": 4,
            "intermediate_size": 40,
            "attention_types": [[["global", "local", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 32,
        },
    ),
    "gpt_neox": ("gpt_neox", {**GPT_NEOX}),
    "gpt_neox-serial": ("gpt_neox", {**GPT_NEOX, "use_parallel_residual": False}),
    "bloom": ("bloom", {**TOKENS, "hidden_size": 24, "n_layer": 2, "n_head": 6}),
    "mpt": (
        "mpt",
        {
            **TOKENS,
            "d_model": 24,
            "n_heads": 6,
            "n_layers": 2,
            "max_seq_len": 32,
            "attn_config": {"clip_qkv": 1.0, "softmax_scale": 0.4, "alibi_bias_max": 8},
        },
    ),
    "falcon-7b": ("falcon", {**FALCON, "multi_query": True, "parallel_attn": True}),
    "falcon-40b": ("falcon", {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2}),
    "falcon-11b": (
        "falcon",
        {
            **FALCON,
            "new_decoder_architecture": True,
            "num_kv_heads": 2,
            "num_ln_in_parallel_attn": 1,
            "ffn_hidden_size": 40,
            "tie_word_embeddings": False,
        },
    ),
    "falcon-rw": (
        "falcon",
        {**FALCON, "multi_query": False, "parallel_attn": False, "alibi": True, "bias": True},
    ),
    "llama": ("llama", {**LLAMA, **WIDE_HEAD}),
    "llama-tied": ("llama", {**LLAMA, "tie_word_embeddings": True, "num_key_value_heads": 1}),
    "llama-biases": ("llama", {**LLAMA, "attention_bias": True, "mlp_bias": True}),
    "llama-llama3": (
        "llama",
        {
            **LLAMA,
            **WIDE_HEAD,
            **rope(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            ),
            "max_position_embeddings": 512,
        },
    ),
    "llama-linear": ("llama", {**LLAMA, **rope("linear", factor=2.5)}),
    "llama-dynamic": (
        "llama",
        {**LLAMA, **WIDE_HEAD, **rope("dynamic", factor=2.0), "max_position_embeddings": 8},
    ),
    "llama-yarn": (
        "llama",
        {
            **LLAMA,
            **WIDE_HEAD,
            **rope("yarn", factor=4.0, original_max_position_embeddings=64),
            "max_position_embeddings": 256,
        },
    ),
    "llama-yarn-options": (
        "llama",
        {
            **LLAMA,
            **WIDE_HEAD,
            **rope(
                "yarn",
                factor=4.0,
                original_max_position_embeddings=64,
                beta_fast=8.0,
                beta_slow=0.5,
                mscale=1.2,
                mscale_all_dim=0.7,
                truncate=False,
            ),
            "max_position_embeddings": 256,
        },
    ),
    "mistral": ("mistral", {**LLAMA, **WIDE_HEAD, "sliding_window": None}),
    "mistral-window": ("mistral", {**LLAMA, "sliding_window": 4}),
    "qwen2": ("qwen2", {**LLAMA}),
    "qwen2-window": (
        "qwen2",
        {
            **LLAMA,
            "use_sliding_window": True,
            "sliding_window": 4,
            "max_window_layers": 1,
            "tie_word_embeddings": True,
        },
    ),
    "qwen3": ("qwen3", {**LLAMA, **WIDE_HEAD}),
    "phi": ("phi", {**PHI}),
    "phi-qk-norm": ("phi", {**PHI, "qk_layernorm": True}),
    "phi3": ("phi3", {**LLAMA, "sliding_window": None}),
    "phi3-window": ("phi3", {**LLAMA, "sliding_window": 4}),
    "phi3-longrope-short": ("phi3", {**PHI3_LONGROPE, "original_max_position_embeddings": 16}),
    "phi3-longrope-long": ("phi3", {**PHI3_LONGROPE, "original_max_position_embeddings": 8}),
    "gemma": ("gemma", {**GEMMA}),
    "gemma2": ("gemma2", {**GEMMA2, "sliding_window": 32}),
    "gemma2-window": ("gemma2", {**GEMMA2, "sliding_window": 4}),
    "gemma3": ("gemma3_text", {**GEMMA3, "sliding_window": 32}),
    "gemma3-window": ("gemma3_text", {**GEMMA3, "sliding_window": 4, "final_logit_softcapping": 8.0}),
    "olmo": ("olmo", {**LLAMA, "clip_qkv": 1.0}),
    "olmo2": ("olmo2", {**LLAMA}),
    "olmo3": (
        "olmo3",
        {
            **LLAMA,
            "num_hidden_layers": 4,
            "sliding_window": 4,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                "full_attention": {
                    "rope_type": "yarn",
                    "rope_theta": 100.0,
                    "factor": 4.0,
                    "original_max_position_embeddings": 64,
                },
            },
        },
    ),
    "cohere": ("cohere", {**COHERE}),
    "cohere-qk-norm": ("cohere", {**COHERE, "use_qk_norm": True}),
    "cohere2": ("cohere2", {**COHERE, "num_hidden_layers": 4, "sliding_window": 4}),
    "starcoder2": ("starcoder2", {**LLAMA, "sliding_window": None}),
    "starcoder2-window": ("starcoder2", {**LLAMA, "sliding_window": 4, "tie_word_embeddings": False}),
    "stablelm": ("stablelm", {**STABLELM, "qk_layernorm": True, "use_parallel_residual": True}),
    "stablelm-serial": ("stablelm", {**STABLELM}),
    "nemotron": ("nemotron", {**LLAMA, **HALF_ROPE, **WIDE_HEAD, "attention_bias": True, "mlp_bias": True}),
    "granite": (
        "granite",
        {
            **LLAMA,
            "embedding_multiplier": 3.0,
            "residual_multiplier": 0.4,
            "attention_multiplier": 0.3,
            "logits_scaling": 2.5,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
        },
    ),
    "smollm3": ("smollm3", {**LLAMA, "num_hidden_layers": 4, "no_rope_layer_interval": 2}),
    "glm": ("glm", {**LLAMA, **HALF_ROPE, **WIDE_HEAD}),
    "glm4": ("glm4", {**LLAMA, **HALF_ROPE, **WIDE_HEAD}),
    "t5": ("t5", {**T5}),
    "t5-v1.1": ("t5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "mt5": ("mt5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "bert": (
        "bert",
        {
            **TOKENS,
            "hidden_size": 24,
            "intermediate_size": 40,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 32,
        },
    ),
    "seed_oss": ("seed_oss", {**LLAMA, **WIDE_HEAD}),
    "seed_oss-biases": ("seed_oss", {**LLAMA, **WIDE_HEAD, "attention_out_bias": True, "mlp_bias": True}),
    "exaone4": (
        "exaone4",
        {**LLAMA, "num_hidden_layers": 4, "sliding_window": 4, "sliding_window_pattern": 4},
    ),
    "exaone4-full": ("exaone4", {**LLAMA, "sliding_window": None, "layer_types": ["full_attention"] * 2}),
    "ernie4_5": ("ernie4_5", {**LLAMA, **WIDE_HEAD, "use_bias": True}),
    "helium": ("helium", {**LLAMA, "head_dim": 6, "attention_bias": True, "mlp_bias": True}),
    "arcee": ("arcee", {**LLAMA, "attention_bias": True, "mlp_bias": True}),
    "apertus": (
        "apertus",
        {
            **LLAMA,
            **rope(
                "llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            ),
        },
    ),
}

# Unless a model says otherwise: length of prompt and source, new tokens of each cached step, attention code
WORKLOAD = {"prompt": 8, "source": 11, "steps": (1, 2, 1), "attention": "eager", "note": ""}
WORKLOADS = {
    "falcon-rw": {"attention": "sdpa", "note": "eager attention adds ALiBi twice here; sdpa once"},
    "llama-dynamic": {
        "prompt": 10,
        "note": "cached keys keep the rotation of the call that made them: one forward over all differs",
    },
    "phi3-longrope-long": {
        "prompt": 10,
        "note": "prompt past original_max_position_embeddings: long factors",
    },
    "phi3-longrope-short": {"note": "never past original_max_position_embeddings: short factors"},
    "openai-gpt": {"note": "the class has no cache: steps come from forwards over the whole sequence"},
}


def make_model(name):
    """The model of a row of MODELS, float32, filled with random values that its name alone decides."""
    model_type, fields = MODELS[name]
    config = transformers.AutoConfig.for_model(model_type, **copy.deepcopy(fields), dtype=torch.float32)
    kind = (
        transformers.AutoModelForSeq2SeqLM
        if model_type in SEQ2SEQ
        else transformers.AutoModelForMaskedLM
        if model_type in MASKED
        else transformers.AutoModelForCausalLM
    )
    attention = workload(name)["attention"]
    model = kind.from_config(config, attn_implementation=attention, dtype=torch.float32).eval()
    if model_type in SEQ2SEQ and fields.get("tie_word_embeddings") is False:
        untie_head(model)
    fill(model, torch.Generator().manual_seed(zlib.crc32(name.encode())))
    return model


def untie_head(model):
    """T5 v1.1 and mT5 publish a head of their own; the config classes of transformers 5 tie it always."""
    model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    model.all_tied_weights_keys.pop("lm_head.weight")
    model.config.tie_word_embeddings = False


def fill(model, generator):
    """Random values for every parameter: nothing trivial, norms around what they start from."""

    def uniform(tensor, bound):
        return (torch.rand(tensor.shape, generator=generator) * 2 - 1) * bound

    seen = set()
    with torch.no_grad():
        for module in model.modules():
            kind = type(module).__name__
            for name, parameter in module.named_parameters(recurse=False):
                if id(parameter) in seen:
                    continue
                seen.add(id(parameter))
                if "Norm" in kind and name == "weight":
                    start = 0.0 if kind.endswith("1P") else parameter.flatten()[0].item()
                    parameter.copy_(start + uniform(parameter, 0.3))
                elif parameter.dim() < 2:
                    parameter.copy_(uniform(parameter, 0.2))
                else:
                    scale = 0.5 if "Embedding" in kind else 0.25
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)


def workload(name):
    return {**WORKLOAD, **WORKLOADS.get(name, {})}


def make_inputs(name):
    """Token ids, and nothing that a class could take for padding."""
    work, vocab = workload(name), MODELS[name][1]["vocab_size"]
    random = np.random.default_rng(zlib.crc32(name.encode()))
    inputs = {"input_ids": random.integers(3, vocab, (BATCH, work["prompt"]))}
    if MODELS[name][0] in SEQ2SEQ:
        inputs["encoder_input_ids"] = random.integers(3, vocab, (BATCH, work["source"]))
    if MODELS[name][0] not in MASKED:
        inputs["next_ids"] = random.integers(3, vocab, (BATCH, sum(work["steps"])))
        inputs["step_sizes"] = np.array(work["steps"])
    return inputs


def forward(model, ids, source=None, **kwargs):
    ids = torch.from_numpy(ids)
    if source is None:
        return model(input_ids=ids, **kwargs)
    return model(input_ids=torch.from_numpy(source), decoder_input_ids=ids, **kwargs)


def has_cache(model):
    return "cache" in inspect.signature(model.forward).parameters


@torch.no_grad()
def run(model, inputs):
    """Logits of the prefill and of each cached step, as the arrays to record."""
    source = inputs.get("encoder_input_ids")
    if "next_ids" not in inputs:
        return {"logits": forward(model, inputs["input_ids"]).logits.numpy()}
    ends = np.cumsum(inputs["step_sizes"])
    if not has_cache(model):
        parts = np.split(run_whole(model, inputs), inputs["input_ids"].shape[1] + np.r_[0, ends[:-1]], axis=1)
    else:
        out = forward(model, inputs["input_ids"], source, use_cache=True)
        parts = [out.logits.numpy()]
        for ids in np.split(inputs["next_ids"], ends[:-1], axis=1):
            out = forward(model, ids, source, use_cache=True, cache=out.cache)
            parts.append(out.logits.numpy())
    return {"logits": parts[0], **{f"step_logits_{step}": part for step, part in enumerate(parts[1:])}}


@torch.no_grad()
def run_whole(model, inputs):
    """Logits of one forward without a cache over the prompt and all new tokens."""
    ids = np.concatenate([inputs["input_ids"], inputs["next_ids"]], axis=1)
    keywords = {"use_cache": False} if has_cache(model) else {}
    return forward(model, ids, inputs.get("encoder_input_ids"), **keywords).logits.numpy()


def joined(logits):
    return np.concatenate(list(logits.values()), axis=1)


def difference(one, other):
    """The largest difference, relative to the largest value."""
    return float(np.abs(one - other).max() / np.abs(other).max())


def record(name):
    model, inputs = make_model(name), make_inputs(name)
    # Copies: a class may keep state between calls (dynamic rotary scaling does)
    logits = run(copy.deepcopy(model).double(), inputs)
    single = run(copy.deepcopy(model), inputs)
    meta = {
        "class": type(model).__name__,
        "model_type": model.config.model_type,
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
        "dtype": str(logits["logits"].dtype),
        "attention": workload(name)["attention"],
        "float32_difference": difference(joined(single), joined(logits)),
        "cache_difference": None,
        "largest_logit": float(np.abs(joined(logits)).max()),
        "note": workload(name)["note"],
    }
    if "next_ids" in inputs and has_cache(model):
        whole = run_whole(copy.deepcopy(model).double(), inputs)
        meta["cache_difference"] = cached = difference(joined(logits), whole)
        if cached > CACHE_TOLERANCE and not meta["note"]:
            raise SystemExit(f"{name}: cached steps differ from one forward by {cached:.1e}")
    if not math.isfinite(meta["largest_logit"]):
        raise SystemExit(f"{name}: logits are not finite")
    save(name, model, {**inputs, **logits}, meta)
    return meta


def save(name, model, arrays, meta):
    folder = RECORDED / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        for file in ("config.json", "model.safetensors"):
            shutil.copyfile(Path(scratch) / file, folder / file)
    np.savez_compressed(folder / "expected.npz", **arrays)
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")
    size = sum(file.stat().st_size for file in folder.iterdir())
    if size > FOLDER_LIMIT:
        raise SystemExit(f"{name}: {size} bytes are too many for a recorded model ({FOLDER_LIMIT})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to record (default: all)")
    names = parser.parse_args().names or list(MODELS)
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(MODELS)}")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name in names:
        meta = record(name)
        cached = meta["cache_difference"]
        print(
            f"{name:22} {meta['class']:28} largest {meta['largest_logit']:7.3f}"
            f"  float32 {meta['float32_difference']:.1e}"
            f"  cache {'-' if cached is None else format(cached, '.1e')}"
        )


if __name__ == "__main__":
    main()
