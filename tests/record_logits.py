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
                       of a float32 run of the same weights, and of one forward over the whole sequence;
                       the smallest distance between a chosen and a rejected score of routers and indexers

The models are rows of record_logits_models.py: to add one, add a row to MODELS and, where the usual workload does not
show its options, one to WORKLOADS. Where two experts (or indexed keys) stand too close to choose between, recording
stops: give the model another number in SEEDS.
"""

import argparse
import copy
import inspect
import json
import math
import shutil
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import torch
import transformers
from record_logits_models import (
    CLASSES,
    DOUBLE,
    MASKED,
    MODELS,
    SEEDS,
    SEQ2SEQ,
    TEXT_PARTS,
    UNTIED,
    WORKLOAD,
    WORKLOADS,
)
from record_text_part import TextPart
from torch.overrides import TorchFunctionMode

RECORDED = Path(__file__).parent / "recorded" / "logits"
CACHE_TOLERANCE = 3e-6  # cached steps against one forward without a cache; many classes keep states in float32
CHOICE_GAP = 1e-3  # between the last score that a router takes and the first that it leaves
FOLDER_LIMIT = 300_000  # bytes
# Values of parameters and buffers that are no plain weights: name: (least, largest). States neither explode nor vanish
VALUES = {
    "A_log": (-1.0, 1.0),
    "D": (0.7, 1.3),
    "dt_bias": (-1.5, 0.5),
    "e_score_correction_bias": (-0.3, 0.3),
    "expert_bias": (-0.3, 0.3),
    "final_logits_bias": (-0.5, 0.5),
    "hc_scale": (0.7, 1.3),
    "lambda_k1": (-0.8, 0.8),
    "lambda_k2": (-0.8, 0.8),
    "lambda_q1": (-0.8, 0.8),
    "lambda_q2": (-0.8, 0.8),
    "layer_scalar": (0.7, 1.3),
    "per_expert_scale": (0.7, 1.3),
    "recurrent_param": (-4.0, -1.5),
    "scale": (0.7, 1.3),
    "sinks": (-1.0, 1.0),
    "time_decay": (-2.0, 1.0),
    "time_first": (-1.0, 1.0),
    "time_mix_key": (0.0, 1.0),
    "time_mix_receptance": (0.0, 1.0),
    "time_mix_value": (0.0, 1.0),
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
    # experts one by one, in their own precision; the fused forms of the other settings compute the same
    experts = {"experts_implementation": "eager"} if kind is transformers.AutoModelForCausalLM else {}
    if model_type in TEXT_PARTS:
        config._attn_implementation, config._experts_implementation = attention, "eager"
        model = TextPart(config, TEXT_PARTS[model_type]).eval()
    else:
        make = getattr(transformers, CLASSES[model_type])._from_config if model_type in CLASSES else kind.from_config
        model = make(config, attn_implementation=attention, dtype=torch.float32, **experts).eval()
    if model_type in UNTIED and fields.get("tie_word_embeddings") is False:
        untie_head(model)
    if model_type in REPAIRS:
        REPAIRS[model_type](model)
    fill(model, torch.Generator().manual_seed(zlib.crc32(name.encode()) + SEEDS.get(name, 0)))
    return model


def untie_head(model):
    """T5 v1.1 and mT5 publish a head of their own; the config classes of transformers 5 tie it always."""
    model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    model.all_tied_weights_keys.pop("lm_head.weight")
    model.config.tie_word_embeddings = False


def repair_experts(model):
    """NLLB-MoE's class in transformers 5.24 takes a mask of experts for their numbers and so runs the first two alone.

    Fairseq's code and transformers 4 send each token through the two experts that its router chose, the others have
    weight 0.
    """

    def forward(self, hidden_states, router_mask, router_probs):
        out = torch.zeros_like(hidden_states)
        for number in range(self.num_experts):
            out += self[f"expert_{number}"](hidden_states) * router_probs[:, number, None]
        return out * (1 - self.moe_token_dropout)

    type(next(each for each in model.modules() if type(each).__name__ == "NllbMoeExperts")).forward = forward


def repair_mask(model):
    """FSMT's class fills its mask with the least float64 by way of a float32, which cannot hold it."""
    sys.modules[type(model).__module__].fill_with_neg_inf = lambda mask: mask.fill_(torch.finfo(mask.dtype).min)


REPAIRS = {"nllb-moe": repair_experts, "fsmt": repair_mask}


def fill(model, generator):
    """Random values for every parameter and learnt buffer: nothing trivial, norms around what they start from."""

    def uniform(tensor, bound):
        return (torch.rand(tensor.shape, generator=generator) * 2 - 1) * bound

    seen = set()
    with torch.no_grad():
        for module in model.modules():
            kind = type(module).__name__
            if "Sinusoidal" in kind:  # a table that is computed
                continue
            for name, parameter in module.named_parameters(recurse=False):
                if id(parameter) in seen:
                    continue
                seen.add(id(parameter))
                if name in VALUES:
                    fill_between(parameter, *VALUES[name], generator)
                elif "Norm" in kind and name == "weight":
                    start = 0.0 if kind.endswith("1P") else parameter.flatten()[0].item()
                    parameter.copy_(start + uniform(parameter, 0.3))
                elif parameter.dim() < 2:
                    parameter.copy_(uniform(parameter, 0.2))
                else:
                    scale = 0.5 if "Embedding" in kind or kind == "Conv1d" else 0.25
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
            for name, buffer in module.named_buffers(recurse=False):
                if name in VALUES:
                    fill_between(buffer, *VALUES[name], generator)
                elif name == "tid2eid":  # experts of every token id
                    order = torch.rand(len(buffer), module.num_experts, generator=generator).argsort()
                    buffer.copy_(order[:, : module.top_k])


def fill_between(tensor, least, largest, generator):
    tensor.copy_(least + torch.rand(tensor.shape, generator=generator) * (largest - least))


def workload(name):
    return {**WORKLOAD, **WORKLOADS.get(name, {})}


def vocabularies(fields):
    """Sizes of the vocabularies of a model and of its encoder."""
    size = fields.get("decoder_vocab_size") or fields.get("tgt_vocab_size") or fields["vocab_size"]
    return size, fields.get("src_vocab_size") or fields.get("vocab_size") or size


def make_inputs(name):
    """Token ids, and nothing that a class could take for padding."""
    work, (vocab, source_vocab) = workload(name), vocabularies(MODELS[name][1])
    random = np.random.default_rng(zlib.crc32(name.encode()))
    inputs = {"input_ids": random.integers(3, vocab, (work["batch"], work["prompt"]))}
    if MODELS[name][0] in SEQ2SEQ:
        inputs["encoder_input_ids"] = random.integers(3, source_vocab, (work["batch"], work["source"]))
    if MODELS[name][0] not in MASKED:
        inputs["next_ids"] = random.integers(3, vocab, (work["batch"], sum(work["steps"])))
        inputs["step_sizes"] = np.array(work["steps"])
    return inputs


def forward(model, ids, source=None, **kwargs):
    ids = torch.from_numpy(ids)
    if source is None:
        return model(input_ids=ids, **kwargs)
    return model(input_ids=torch.from_numpy(source), decoder_input_ids=ids, **kwargs)


def cache_name(model):
    """Under which name the class takes and returns what it keeps between calls, or None.

    FSMT masks nothing in calls that bring several tokens and a cache: its steps come from whole forwards.
    """
    if model.config.model_type == "fsmt":
        return None
    names = inspect.signature(model.forward).parameters
    return next((name for name in ("cache", "state") if name in names), None)


@torch.no_grad()
def run(model, inputs, positions=False, zeros=()):
    """Logits of the prefill and of each cached step, as the arrays to record."""
    source, name = inputs.get("encoder_input_ids"), cache_name(model)
    if "next_ids" not in inputs:
        zeros = {name: torch.zeros(inputs["input_ids"].shape, dtype=torch.int64) for name in zeros}
        return {"logits": forward(model, inputs["input_ids"], **zeros).logits.numpy()}
    ids = np.concatenate([inputs["input_ids"], inputs["next_ids"]], axis=1)
    ends = inputs["input_ids"].shape[1] + np.r_[0, np.cumsum(inputs["step_sizes"])]
    if name is None:
        parts = np.split(run_whole(model, inputs), ends[:-1], axis=1)
    else:
        parts, kept, start = [], first_cache(model), 0
        for end in ends:
            keywords = {"position_ids": torch.arange(start, end)[None]} if positions else {}
            if model.config.model_type != "switch_transformers":  # hands it to its encoder too, which refuses
                keywords["use_cache"] = True
            out = forward(model, ids[:, start:end], source, **{name: kept}, **keywords)
            parts.append(out.logits.numpy())
            kept, start = out.get(name, kept), end
    return {"logits": parts[0], **{f"step_logits_{step}": part for step, part in enumerate(parts[1:])}}


def first_cache(model):
    """None where the class makes its cache; RecurrentGemma makes one, but does not return it."""
    if model.config.model_type == "recurrent_gemma":
        return transformers.DynamicCache(config=model.config)
    return None


@torch.no_grad()
def run_whole(model, inputs):
    """Logits of one forward without a cache over the prompt and all new tokens."""
    ids = np.concatenate([inputs["input_ids"], inputs["next_ids"]], axis=1)
    keywords = {"use_cache": False} if cache_name(model) or model.config.model_type == "fsmt" else {}
    return forward(model, ids, inputs.get("encoder_input_ids"), **keywords).logits.numpy()


def in_double(function, model, *arguments, **options):
    """function(model, ...) of a copy in float64."""
    torch.set_default_dtype(torch.float64 if model.config.model_type in DOUBLE else torch.float32)
    try:
        return function(copy.deepcopy(model).double(), *arguments, **options)
    finally:
        torch.set_default_dtype(torch.float32)


class ChoiceGaps(TorchFunctionMode):
    """Keeps the smallest distance between the last score that a choice takes and the first that it leaves."""

    def __init__(self, model_type):
        super().__init__()
        self.least = math.inf
        self.choices = {torch.topk, torch.Tensor.topk, torch.argmax}
        if model_type == "phimoe":
            self.choices.add(torch.Tensor.max)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if function in self.choices:
            taken = out[0].shape[-1] if isinstance(out, tuple) else 1
            scores = args[0].sort(dim=-1, descending=True).values
            if taken < scores.shape[-1]:
                last, next_one = scores[..., taken - 1], scores[..., taken]
                open_to_choice = last > torch.finfo(torch.float32).min / 2  # else both are masked
                gaps = (last - next_one)[open_to_choice]
                self.least = min([self.least, *gaps.flatten().tolist()])
        return out


def joined(logits):
    return np.concatenate(list(logits.values()), axis=1)


def difference(one, other):
    """The largest difference, relative to the largest value."""
    return float(np.abs(one - other).max() / np.abs(other).max())


def record(name):
    model, inputs = make_model(name), make_inputs(name)
    # Copies: a class may keep state between calls (dynamic rotary scaling does)
    options = {key: workload(name)[key] for key in ("positions", "zeros")}
    with ChoiceGaps(model.config.model_type) as gaps:
        logits = in_double(run, model, inputs, **options)
    if gaps.least < CHOICE_GAP:
        raise SystemExit(f"{name}: a choice is as close as {gaps.least:.1e}; give it another number in SEEDS")
    single = run(copy.deepcopy(model), inputs, **options)
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
    if math.isfinite(gaps.least):
        meta["choice_gap"] = gaps.least
    if "next_ids" in inputs and cache_name(model):
        whole = in_double(run_whole, model, inputs)
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
        cached, gap = (meta.get(key) for key in ("cache_difference", "choice_gap"))
        print(
            f"{name:28} {meta['class']:40} largest {meta['largest_logit']:7.3f}"
            f"  float32 {meta['float32_difference']:.1e}"
            f"  cache {'-' if cached is None else format(cached, '.1e')}"
            f"  gap {'-' if gap is None else format(gap, '.1e')}"
        )


if __name__ == "__main__":
    main()
