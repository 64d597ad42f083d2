"""A GGUF file's own metadata to a Model: its keys are translated to those of a config.json, which families/ reads.

Keys and names of tensors: gguf-py's constants.py and tensor_mapping.py (github.com/ggml-org/llama.cpp).
"""

from fractions import Fraction

from ..errors import InputError, closest
from ..storage import numbered_weights, stored
from .gguf import Skipped

L = "layers/{}/"
DENSE = {
    "embedding/table": "token_embd",
    "final_norm": "output_norm",
    "head": "output",
    L + "attention_norm": "blk.{}.attn_norm",
    L + "attention/q": "blk.{}.attn_q",
    L + "attention/k": "blk.{}.attn_k",
    L + "attention/v": "blk.{}.attn_v",
    L + "attention/out": "blk.{}.attn_output",
    L + "attention/q_norm": "blk.{}.attn_q_norm",
    L + "attention/k_norm": "blk.{}.attn_k_norm",
    L + "ffn_norm": "blk.{}.ffn_norm",
    L + "ffn/gate": "blk.{}.ffn_gate",
    L + "ffn/up": "blk.{}.ffn_up",
    L + "ffn/down": "blk.{}.ffn_down",
    L + "ffn/router/gate": "blk.{}.ffn_gate_inp",
    L + "ffn/experts/gate": "blk.{}.ffn_gate_exps",
    L + "ffn/experts/up": "blk.{}.ffn_up_exps",
    L + "ffn/experts/down": "blk.{}.ffn_down_exps",
}
QKV = {L + "attention/q|k|v": "blk.{}.attn_qkv"}
DOUBLE = {L + "attention_output_norm": "blk.{}.post_attention_norm", L + "ffn_output_norm": "blk.{}.post_ffw_norm"}
# model_type: names of its tensors
TABLES = {
    "llama": DENSE,
    "mixtral": DENSE,
    "qwen2": DENSE,
    "qwen3": DENSE,
    "qwen3_moe": DENSE,
    "gemma": DENSE,
    "gemma2": DENSE | DOUBLE,
    "gemma3_text": DENSE | DOUBLE,
    "phi3": DENSE | QKV | {L + "ffn/gate|up": "blk.{}.ffn_up"},
    "gpt2": DENSE | QKV | {"positions/table": "position_embd"},
    "starcoder2": DENSE,
    "olmo2": DENSE | DOUBLE,
    "cohere": DENSE,
    "granite": DENSE,
    "smollm3": DENSE,
    "exaone4": DENSE | DOUBLE,
}
# general.architecture: model_type; a config's key where the class's default is not the architecture's
ARCHITECTURES = {
    "llama": ("llama", {}),
    "mistral3": ("llama", {}),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {}),
    "qwen3moe": ("qwen3_moe", {}),
    "gemma": ("gemma", {}),
    "gemma2": ("gemma2", {}),
    "gemma3": ("gemma3_text", {}),
    "phi3": ("phi3", {}),
    "gpt2": ("gpt2", {}),
    "starcoder2": ("starcoder2", {}),
    "olmo2": ("olmo2", {}),
    "command-r": ("cohere", {}),
    "granite": ("granite", {}),
    "smollm3": ("smollm3", {}),
    "exaone4": ("exaone4", {}),
}
# key after the architecture's name: key of a config.json
KEYS = {
    "block_count": "num_hidden_layers", "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps", "attention.layer_norm_epsilon": "layer_norm_eps",
    "attention.sliding_window": "sliding_window", "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping", "rope.freq_base": "rope_theta", "vocab_size": "vocab_size",
    "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size", "logit_scale": "logit_scale",
    "embedding_scale": "embedding_multiplier", "residual_scale": "residual_multiplier",
    "attention.scale": "attention_multiplier",
}  # fmt: skip
GPT2 = {"num_hidden_layers": "n_layer", "max_position_embeddings": "n_positions", "hidden_size": "n_embd",
        "intermediate_size": "n_inner", "num_attention_heads": "n_head",
        "layer_norm_eps": "layer_norm_epsilon", "num_key_value_heads": None}  # fmt: skip
RENAMED = {"gpt2": GPT2, "mixtral": {"num_experts": "num_local_experts", "moe_intermediate_size": None},
           "starcoder2": {"layer_norm_eps": "norm_epsilon"}}  # fmt: skip
NEEDED = ("block_count", "embedding_length", "feed_forward_length", "attention.head_count")
# keys that say nothing about costs, by how they start
IRRELEVANT = ("general.", "tokenizer.", "quantize.", "split.", "rope.dimension_count", "rope.scaling",
              "attention.value_length", "vocab_size", "attention.causal", "rope.freq_base_swa",
              "attention.key_length_swa")  # fmt: skip


def load(path, changes=None):
    """The Model of a GGUF file's metadata, stored as its tensors are."""
    from . import read

    return model(read(path), changes)


def model(header, changes=None):
    """The same of a Header."""
    from ..cards import check
    from ..huggingface import translate
    from ..model import build

    config, notes = _config(header)
    fields, family, more = translate(config, header.path)
    for field, value in (changes or {}).items():
        fields[field] = check(field, value, "set")
    name = header.metadata.get("general.name")
    name = name if isinstance(name, str) and name.isprintable() and 0 < len(name) <= 100 else header.path
    made = build(fields, name, header.path, family, (*notes, *more), header.path)
    kinds = {}
    for tensor in header.tensors.values():
        kinds[tensor.dtype] = kinds.get(tensor.dtype, 0) + tensor.size
    text = ", ".join(f"{dtype} {size:,} bytes" for dtype, size in sorted(kinds.items(), key=lambda item: -item[1]))
    original = (
        made if not changes else build(translate(config, header.path)[0], name, header.path, family, (), header.path)
    )
    return stored(made, text, Bits(_bits(header, original)))


class Bits:
    """A rule of storage: bits of a value by path, for the model of a file and for changed copies of it."""

    def __init__(self, found):
        self.found = found

    def __call__(self, model):
        from ..lenses.params import tensors

        sizes, usual = {}, Fraction(16)
        for path, _, spec, size_of, _ in tensors(model):
            elements = 1
            for axis in spec:
                if axis not in "->|":
                    elements *= size_of[axis]
            size = self.found.get(path, usual) * elements / 8
            sizes[path] = size.numerator if size.denominator == 1 else size
        return sizes


def _bits(header, model):
    """{path: mean bits of a value} of the weights that the file holds."""
    from ..huggingface.tensors import places

    if model.family not in TABLES:
        return {}
    weights = {path: (traced, spec, size_of) for traced, path, _, spec, size_of in numbered_weights(model)}
    found, totals = places(model, {path: each[1:] for path, each in weights.items()}, names=TABLES[model.family]), {}
    for path, place in found.items():
        for name in place.names:
            tensor = header.tensors.get(name)
            if tensor is not None and tensor.elements:
                sums = totals.setdefault(weights[path][0], [0, 0])
                sums[0] += Fraction(tensor.size * 8, tensor.elements)
                sums[1] += 1
    return {path: total / count for path, (total, count) in totals.items()}


def _config(header):
    """(an object in config.json's form, notes) of a header's metadata."""
    metadata, where = header.metadata, header.path
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in ARCHITECTURES:
        near = closest(architecture, ARCHITECTURES) or sorted(ARCHITECTURES)
        raise InputError(
            f"{where}: general.architecture = {str(architecture)[:80]!r} is not known; closest: " + ", ".join(near)
        )
    model_type, extra = ARCHITECTURES[architecture]
    if model_type == "llama" and metadata.get("llama.expert_count"):
        model_type = "mixtral"
    config, unread = {"model_type": model_type, **extra}, []
    for key, value in metadata.items():
        short = key.removeprefix(architecture + ".")
        name = KEYS.get(short) if short != key else None
        name = RENAMED.get(model_type, {}).get(name, name)
        if name is not None:
            config[name] = _value(where, key, value)
        elif not (short.startswith(IRRELEVANT) or key.startswith(IRRELEVANT) or short in KEYS):
            unread.append(key)
    for key in NEEDED:
        if f"{architecture}.{key}" not in metadata:
            raise InputError(f"{where}: the metadata key {architecture}.{key} is missing")
    _from_tensors(config, header, model_type)
    notes = [f"metadata keys not read: {', '.join(sorted(unread))}."] if unread else []
    if f"{architecture}.rope.scaling.type" in metadata or "rope_freqs.weight" in header.tensors:
        notes.append("Rescaled rotary frequencies are not read: they change no cost.")
    return config, notes


def _value(where, key, value):
    """A number; of a list with one entry a layer, the entry if all are alike."""
    if isinstance(value, list) and value and all(each == value[0] for each in value):
        value = value[0]
    if isinstance(value, list | Skipped):
        raise InputError(f"{where}: {key} differs from layer to layer, which is not read")
    return value


def _from_tensors(config, header, model_type):
    """What the table of tensors says, and the metadata does not."""
    table, tensors = header.tensors.get("token_embd.weight"), header.tensors
    if table is not None and len(table.shape) == 2:
        config["vocab_size"] = table.shape[0]
    config["tie_word_embeddings"] = "output.weight" not in tensors
    if model_type in ("llama", "qwen3", "granite"):
        config["attention_bias"] = "blk.0.attn_q.bias" in tensors and "blk.0.attn_output.bias" in tensors
    if model_type == "cohere":
        config["use_qk_norm"] = "blk.0.attn_q_norm.weight" in tensors
    if model_type in ("qwen2", "qwen3") and "sliding_window" in config:
        config["use_sliding_window"] = True
    if model_type == "phi3" and config.get("sliding_window") == 0:
        del config["sliding_window"]
