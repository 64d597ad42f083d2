"""quantization_config of a config.json: which weights are packed, how, and so how many bytes they have.

Read from transformers' quantizers, vLLM's readers of the same keys, and the checkpoints' own configs. A matrix is
packed unless the config leaves its module out; embeddings, heads, routers, norms and biases are not, unless a method
says so.
"""

import functools
import re

from ..errors import InputError, shown
from ..record import Frozen
from ..storage import matrix_sizes, means, numbered_weights
from ..units import BITS
from .config import Config

# torch's names of types: those of safetensors
DTYPES = {
    "float64": "F64", "float32": "F32", "float": "F32", "float16": "F16", "half": "F16", "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip
NEVER = ("token_embedding", "position_embedding", "token_type_embedding", "moe_router", "norms")
MOST_REPEATS = 4
MOST_PATTERNS, MOST_TRIES = 1024, 10**7  # patterns of one list, and how often they are tried on weights in all


class Scheme(Frozen):
    """Which matrix is packed how. groups: (targets, Packing) in order, targets being names, patterns, or "Linear".

    A target "experts" stands for those of a mixture. skip: modules left as they are. head, tables: whether output heads
    and embeddings are packed, too. experts: nothing but experts is. rest: the type of everything else. assumed: on what
    bytes rest that the config does not say.
    """

    groups: tuple
    skip: tuple = ()
    head: bool = False
    tables: bool = False
    experts: bool = False
    rest: str = "BF16"
    assumed: str = ""

    def packing(self, module, part, spec, size_of):
        """The Packing of a weight, or None."""
        _, outputs, inputs = matrix_sizes(spec, size_of)
        table = part == "token_embedding" and self.tables
        if not table and (not inputs or outputs == 1 or part in NEVER or (part == "lm_head" and not self.head)):
            return None
        if (self.experts and part != "moe_experts") or _compiled(self.skip)(module):
            return None
        for targets, packing in self.groups:
            if "Linear" in targets or ("experts" in targets and part == "moe_experts") or _compiled(targets)(module):
                return packing
        return None

    def size(self, module, part, spec, size_of):
        """Bytes of a weight."""
        stacked, outputs, inputs = matrix_sizes(spec, size_of)
        packing = self.packing(module, part, spec, size_of)
        if packing is None:
            return stacked * outputs * (inputs or 1) * BITS[self.rest] // 8
        return packing.size(outputs, inputs) * stacked if inputs else packing.size(stacked, outputs)

    def __call__(self, model):
        from .tensors import modules

        count, rules = sum(1 for _ in numbered_weights(model)), len(self.groups) + _patterns(self.skip)
        if count * rules > MOST_TRIES:
            raise InputError(
                f"quantization_config: {rules:,} rules for {count:,} weights; allowed: up to {MOST_TRIES:,} in all"
            )
        module = modules(model)
        return means(model, lambda path, *weight: self.size(module(path), *weight))


def scheme(config, where="config"):
    """(Scheme or None, [notes]) of a config.json's object, of a multimodal one its text part's."""
    table = config.get("quantization_config")
    table = config.get("quantization") if table is None else table
    if table is None:
        return None, []
    where = f"{where}: quantization_config"
    if not isinstance(table, dict):
        raise InputError(f"{where} = {shown(table)[:80]}; allowed: an object")
    from .quantization_methods import METHODS

    c = Settings(table, config, where)
    c.skip(
        "version",
        "quantization_status",
        "kv_cache_scheme",
        "kv_cache_quant_algo",
        "producer",
        "backend",
        *IRRELEVANT,
    )
    method = c.get("text", "quant_method") or ("modelopt" if "quant_algo" in table else "mlx")
    if method not in METHODS:
        known = ", ".join(METHODS)
        return None, [
            f"quantization_config: quant_method {method!r} is not read (known: {known}): weights are as --weights says."
        ]
    found = METHODS[method](c)
    if found is not None and len(found.groups) > MOST_PATTERNS:
        raise InputError(f"{where}: {len(found.groups):,} rules; allowed: up to {MOST_PATTERNS:,}")
    if found is None:
        return None, [f"quantization_config: this form of {method} is not read: weights are as --weights says."]
    unread = [f"quantization_config.{key}" for key in c.unread()]
    notes = [f"config keys not read: {', '.join(unread)}."] if unread else []
    if found.assumed:
        notes.append(f"quantization_config: bytes of weights are an estimate: {found.assumed}.")
    return found.replace(rest=c.rest), notes


class Settings(Config):
    """The keys of a quantization_config. rest: the type of what is not packed, and of most scales. model: the keys of
    the model's own config.
    """

    def __init__(self, data, config, where):
        super().__init__(data, {}, where)
        self.rest, self.model = dtype(config) or "BF16", config


def dtype(config):
    """The type of weights that a config states, by safetensors' name, or None."""
    name = config.get("dtype") or config.get("torch_dtype")
    return DTYPES.get(name.removeprefix("torch.")) if isinstance(name, str) else None


def described(found):
    """A Scheme in words."""
    kinds = dict.fromkeys(str(packing) for _, packing in found.groups)
    return f"{'; '.join(kinds)}; what is not packed {found.rest}"


IRRELEVANT = """
_load_in_4bit _load_in_8bit activation_scheme actorder amp batch_size block_name_to_quantize bnb_4bit_compute_dtype
bnb_4bit_quant_storage cache_block_outputs checkpoint_format damp_auto_increment damp_percent dataset dequantize
desc_act exllama_config fmt format fuse_max_seq_len global_compression_ratio is_marlin_format iters
kv_cache_quant_method llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight llm_int8_threshold lr max_input_length
meta model_file_base_name model_name_or_path model_seqlen module_name_preceding_first_block modules_to_fuse nsamples
pack_dtype pad_token_id quantizer scale_fmt scheme seqlen sparsity_config static_groups sym tokenizer transform_config
true_sequential use_cuda_fp16 use_exllama use_external_rmsnorm weight_fmt
""".split()


def names(c, *keys):
    """Names of modules, under whichever of these keys they stand."""
    found = c.get("list", *keys) or ()
    for each in found:
        if not isinstance(each, str) or len(each) > 1000:
            c.refuse(keys[0], each, "names of modules")
    _compiled(tuple(found))
    return tuple(found)


def whole(c, allowed, *keys, default=None):
    """A whole number; -1 and null stand for 0, all of them."""
    value = c.get("number", *keys)
    value = default if value is None else value
    value = 0 if value == -1 else value
    if type(value) is not int or value not in allowed:
        c.refuse(
            next((key for key in keys if key in c.data), keys[0]),
            value,
            str(allowed).replace("range", "from and to below"),
        )
    return value


GROUPS = range(0, 2**20)


# Names of modules --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=2 * MOST_PATTERNS)
def _compiled(patterns):
    """A function that says whether a module is named: "re:" and a regular expression, or a run of its name's parts.

    "mlp.gate" is in model.layers.3.mlp.gate, not in model.layers.3.mlp.gate_proj; * stands for anything within a
    part, and where it is a part, for one. Multimodal models call the text part language_model, ours do without.
    """
    from fnmatch import fnmatchcase

    whole, globs, expressions = set(), {}, []
    count = _patterns(patterns)
    if count > MOST_PATTERNS:
        raise InputError(f"quantization_config: {count:,} patterns in a list; allowed: up to {MOST_PATTERNS:,}")
    for text in patterns:
        if text.startswith("re:"):
            expressions.append(_expression(text[3:]))
            continue
        parts = _parts(text.replace("\\.", "."))
        if any("*" in part for part in parts):
            globs.setdefault(len(parts), set()).add(parts)
        else:
            whole.add(parts)

    @functools.lru_cache(maxsize=2**10)
    def hits(module):
        parts = _parts(module)
        for start in range(len(parts)):
            for stop in range(start + 1, len(parts) + 1):
                if parts[start:stop] in whole:
                    return True
            for length, some in globs.items():
                window = parts[start : start + length]
                if len(window) == length and any(all(map(fnmatchcase, window, glob)) for glob in some):
                    return True
        return any(expression.match(module) for expression in expressions)

    return hits


def _patterns(names):
    return sum(text.startswith("re:") or "*" in text for text in names)


def _parts(name):
    return tuple(part for part in name.split(".") if part != "language_model")


def _expression(text):
    """A regular expression from a config: refused if matching it could take for ever."""
    try:
        repeats = _repeats(re._parser.parse(text))
        found = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"quantization_config: {text[:200]!r} is no regular expression: {error}") from None
    if repeats > MOST_REPEATS:
        raise InputError(
            f"quantization_config: {text[:200]!r}: repeats in repeats, or more than {MOST_REPEATS} of them"
        )
    return found


def _repeats(tree, inside=False):
    """How many repeats a parsed expression has; one inside another, and a reference back, count as too many."""
    total = 0
    for code, value in tree:
        name = str(code)
        if name == "GROUPREF":
            return MOST_REPEATS + 1
        if "REPEAT" in name:
            low, high, body = value
            many = high != low and high > 1
            total += (MOST_REPEATS + 1 if inside and many else many) + _repeats(body, inside or many)
        elif name == "SUBPATTERN":
            total += _repeats(value[-1], inside)
        elif name == "BRANCH":
            total += sum(_repeats(each, inside) for each in value[1])
        elif name in ("ASSERT", "ASSERT_NOT"):
            total += _repeats(value[1], inside)
        elif name == "ATOMIC_GROUP":
            total += _repeats(value, inside)
    return total
