"""quantization_config of a config.json: which weights are packed, how, and so how many bytes they have.

Read from transformers' quantizers, vLLM's readers of the same keys, and the checkpoints' own configs. A matrix is
packed unless the config leaves its module out; embeddings, heads, routers, norms and biases are not, unless a method
says so.
"""

import functools
import re

from ..errors import InputError
from ..packing import Packing
from ..record import Frozen
from ..storage import matrix_sizes, means
from ..units import BITS
from .config import Config

# torch's names of types: those of safetensors
DTYPES = {
    "float64": "F64", "float32": "F32", "float": "F32", "float16": "F16", "half": "F16", "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip
NEVER = ("token_embedding", "position_embedding", "token_type_embedding", "moe_router", "norms")
MOST_REPEATS = 4


class Scheme(Frozen):
    """Which matrix is packed how. groups: (targets, Packing) in order, targets being names, patterns, or "Linear".

    skip: modules left as they are. head, tables: whether output heads and embeddings are packed, too. experts: nothing
    but experts is. rest: the type of everything else.
    """

    groups: tuple
    skip: tuple = ()
    head: bool = False
    tables: bool = False
    experts: bool = False
    rest: str = "BF16"

    def packing(self, module, part, spec, size_of):
        """The Packing of a weight, or None."""
        _, outputs, inputs = matrix_sizes(spec, size_of)
        table = part == "token_embedding" and self.tables
        if not table and (not inputs or outputs == 1 or part in NEVER or (part == "lm_head" and not self.head)):
            return None
        if (self.experts and part != "moe_experts") or _compiled(self.skip)(module):
            return None
        for targets, packing in self.groups:
            if "Linear" in targets or _compiled(targets)(module):
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

        module = modules(model)
        return means(model, lambda path, *weight: self.size(module(path), *weight))


def scheme(config, where="config"):
    """(Scheme or None, [notes]) of a config.json's object."""
    table, text = config.get("quantization_config"), config.get("text_config")
    if table is None and isinstance(text, dict):
        table = text.get("quantization_config")
    table = config.get("quantization") if table is None else table
    if table is None:
        return None, []
    where = f"{where}: quantization_config"
    if not isinstance(table, dict):
        raise InputError(f"{where} = {str(table)[:80]!r}; allowed: an object")
    c = Config(table, {}, where)
    c.skip(
        "quant_type",
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
    if found is None:
        return None, [f"quantization_config: this form of {method} is not read: weights are as --weights says."]
    unread = [f"quantization_config.{key}" for key in c.unread()]
    notes = [f"config keys not read: {', '.join(unread)}."] if unread else []
    return found.replace(rest=dtype(config) or "BF16"), notes


def dtype(config):
    """The type of weights that a config states, by safetensors' name, or None."""
    inside = config.get("text_config")
    for each in (config, inside if isinstance(inside, dict) else {}):
        name = each.get("dtype") or each.get("torch_dtype")
        if isinstance(name, str):
            return DTYPES.get(name.removeprefix("torch."))
    return None


def described(found):
    """A Scheme in words."""
    kinds = dict.fromkeys(str(packing) for _, packing in found.groups)
    return f"{'; '.join(kinds)}; what is not packed {found.rest}"


# Methods: a Config in, a Scheme out, or None where it is not known what the files look like --------------------------

IRRELEVANT = """
_load_in_4bit _load_in_8bit activation_scheme actorder amp batch_size block_name_to_quantize bnb_4bit_compute_dtype
bnb_4bit_quant_storage cache_block_outputs checkpoint_format damp_auto_increment damp_percent dataset dequantize
desc_act exllama_config fmt format fuse_max_seq_len global_compression_ratio is_marlin_format iters
kv_cache_quant_method llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight llm_int8_threshold lr max_input_length
meta model_file_base_name model_name_or_path model_seqlen module_name_preceding_first_block modules_to_fuse nsamples
pack_dtype pad_token_id quantizer scale_fmt scheme seqlen sparsity_config static_groups sym tokenizer transform_config
true_sequential use_cuda_fp16 use_exllama use_external_rmsnorm weight_fmt
""".split()


def _list(c, *keys):
    """Names of modules, under whichever of these keys they stand."""
    found = c.get("list", *keys) or ()
    for each in found:
        if not isinstance(each, str) or len(each) > 1000:
            c.refuse(keys[0], each, "names of modules")
    _compiled(tuple(found))
    return tuple(found)


def _whole(c, allowed, *keys, default=None):
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


def _gptq(c):
    bits, group = _whole(c, (2, 3, 4, 8), "bits"), _whole(c, GROUPS, "group_size", default=128)
    c.skip("modules_in_block_to_quantize", "dynamic")
    dynamic, skip = c.get("table", "dynamic") or {}, list(_list(c, "modules_to_not_convert"))
    groups = [(("Linear",), Packing("gptq", bits, group, zeros=True, scale="F16"))]
    for name, changes in dynamic.items():  # GPTQModel's rules by module: "-:" leaves out, "+:" changes
        pattern = "re:" + name.removeprefix("-:").removeprefix("+:")
        if name.startswith("-:") or not isinstance(changes, dict):
            skip.append(pattern)
        else:
            inside = Config(changes, {}, f"{c.where}: dynamic: {name}")
            packing = Packing("gptq", _whole(inside, (2, 3, 4, 8), "bits", default=bits),
                              _whole(inside, GROUPS, "group_size", default=group), zeros=True, scale="F16")  # fmt: skip
            groups.insert(0, ((pattern,), packing))
    inside = c.get("list", "modules_in_block_to_quantize") or []
    only = tuple(each for part in inside if isinstance(part, list) for each in part if isinstance(each, str))
    if only:
        groups = [(only, packing) for _, packing in groups]
    return Scheme(tuple(groups), tuple(skip), head=bool(c.get("bool", "lm_head")))


def _awq(c):
    bits, group = (
        _whole(c, (4,), "bits", "w_bit", default=4),
        _whole(c, GROUPS, "group_size", "q_group_size", default=128),
    )
    packing = Packing("awq", bits, group, zeros=True, scale="F16")
    c.skip("zero_point")
    return Scheme(((("Linear",), packing),), _list(c, "modules_to_not_convert"))


def _auto_round(c):
    form = c.get("text", "packing_format") or ""
    return _gptq(c) if "gptq" in form else _awq(c) if "awq" in form else None


def _fp8(c):
    block = c.get("list", "weight_block_size")
    packing = Packing("fp8", 8, 0, 0, scale="F32")
    if block is not None:
        if len(block) != 2 or not all(type(each) is int and 1 <= each < 2**20 for each in block):
            c.refuse("weight_block_size", block, "two whole numbers of at least 1")
        packing = Packing("fp8", 8, block[1], block[0], scale="F32")
    return Scheme(((("Linear",), packing),), _list(c, "modules_to_not_convert", "ignored_layers"))


def _fbgemm(c):
    packing = Packing("float-quantized", 8, 0, 1, scale="F32")
    return Scheme(((("Linear",), packing),), _list(c, "modules_to_not_convert"))


def _mxfp4(c):
    return Scheme(((("Linear",), Packing("mxfp4", 4, 32)),), _list(c, "modules_to_not_convert"), experts=True)


def _bitsandbytes(c):
    four, eight = (c.get("bool", key) for key in ("load_in_4bit", "load_in_8bit"))
    double = c.get("bool", "bnb_4bit_use_double_quant")
    c.skip("bnb_4bit_quant_type")
    packing = (
        Packing("bitsandbytes-4bit", 4, 64, zeros=bool(double), scale="F32")
        if four
        else Packing("bitsandbytes-8bit", 8)
    )
    return Scheme(((("Linear",), packing),), _list(c, "llm_int8_skip_modules")) if four or eight else None


def _mlx(c):
    bits, group = _whole(c, (2, 3, 4, 5, 6, 8), "bits", default=4), _whole(c, GROUPS, "group_size", default=64)
    if c.get("text", "mode") not in (None, "affine"):
        return None
    groups, skip = [(("Linear",), Packing("mlx", bits, group, zeros=True, scale="BF16"))], []
    for name, changes in c.data.items():
        if isinstance(changes, dict):  # of one module
            inside = Config(changes, {}, f"{c.where}: {name}")
            packing = Packing("mlx", _whole(inside, (2, 3, 4, 5, 6, 8), "bits", default=bits),
                              _whole(inside, GROUPS, "group_size", default=group), zeros=True)  # fmt: skip
            groups.insert(0, ((name,), packing))
            c.skip(name)
        elif changes is False:
            skip.append(name)
            c.skip(name)
    return Scheme(tuple(groups), tuple(skip), head=True, tables=True)


def _compressed_tensors(c):
    skip, form = _list(c, "ignore"), c.get("text", "format")
    groups = []
    for name, table in sorted((c.get("table", "config_groups") or {}).items()):
        inside = Config(table if isinstance(table, dict) else {}, {}, f"{c.where}: config_groups: {name}")
        weights, targets = inside.inside("weights"), _list(inside, "targets")
        if weights is not None:
            static = (
                isinstance(inside.data.get("input_activations"), dict)
                and inside.data["input_activations"].get("dynamic") is False
            )
            packing = _weights(weights, inside.get("text", "format") or form, static)
            if packing is None:
                return None
            groups.append((targets or ("Linear",), packing))
    groups.sort(key=lambda group: "Linear" in group[0])
    return Scheme(tuple(groups), skip, head=True) if groups else None


def _weights(c, form, static):
    """The Packing of a group of compressed-tensors."""
    bits, kind = _whole(c, (2, 3, 4, 8), "num_bits"), c.get("text", "type") or "int"
    strategy, block = c.get("text", "strategy"), c.get("list", "block_structure")
    group = _whole(c, GROUPS, "group_size", default=0)
    rows = 0 if strategy == "tensor" else 1
    if (
        strategy == "block"
        and block is not None
        and len(block) == 2
        and all(type(each) is int and each > 0 for each in block)
    ):
        rows, group = block
    elif strategy in ("tensor", "channel") or (strategy is None and not group):
        group = 0
    extra = (".input_scale",) * static
    if kind == "float" and bits == 8:
        return Packing("float-quantized", 8, group, rows if strategy else 0, extra=extra)
    if kind == "float" and bits == 4:
        mx = "mx" in (form or "") or group == 32
        scalars = () if mx else (".weight_global_scale", ".input_global_scale")
        return Packing("mxfp4-pack-quantized" if mx else "nvfp4-pack-quantized", 4, group or 16, extra=scalars)
    if kind == "int" and form in ("int-quantized", "naive-quantized") and bits == 8:
        return Packing("int-quantized", 8, group, rows, extra=extra)
    if kind == "int" and form in (None, "pack-quantized"):
        return Packing("pack-quantized", bits, group, rows, zeros=c.get("bool", "symmetric") is False)
    return None


MODELOPT = {
    "FP8": Packing("modelopt-fp8", 8, 0, 0, scale="F32", extra=(".input_scale",)),
    "NVFP4": Packing("modelopt-nvfp4", 4, 16, extra=(".weight_scale_2", ".input_scale")),
    "MXFP8": Packing("float-quantized", 8, 32, scale="U8"),
    "W4A16_NVFP4": Packing("modelopt-nvfp4", 4, 16, extra=(".weight_scale_2",)),
}


def _modelopt(c):
    algorithm = c.get("text", "quant_algo")
    skip, groups = _list(c, "ignore", "exclude_modules"), {}
    for name, table in (
        (c.get("table", "quantized_layers") or {}).items() if isinstance(c.data.get("quantized_layers"), dict) else ()
    ):
        kind = table.get("quant_algo") if isinstance(table, dict) else None
        if kind not in MODELOPT:
            return None
        groups.setdefault(kind, []).append(name)
    c.skip("quantized_layers", "group_size")
    if groups:
        c.skip("config_groups")
        return Scheme(tuple((tuple(names), MODELOPT[kind]) for kind, names in groups.items()), skip, head=True)
    if algorithm == "MIXED_PRECISION":
        for table in (c.get("table", "config_groups") or {}).values():
            weights = table.get("weights") if isinstance(table, dict) else None
            kind = {8: "FP8", 4: "NVFP4"}.get(weights.get("num_bits")) if isinstance(weights, dict) else None
            targets = table.get("targets") if isinstance(table, dict) else None
            if kind is None or not isinstance(targets, list) or not all(isinstance(each, str) for each in targets):
                return None
            groups.setdefault(kind, []).extend(targets)
        return Scheme(tuple((tuple(names), MODELOPT[kind]) for kind, names in groups.items()), skip, head=True)
    c.skip("config_groups")
    return Scheme(((("Linear",), MODELOPT[algorithm]),), skip, head=True) if algorithm in MODELOPT else None


METHODS = {
    "gptq": _gptq, "awq": _awq, "auto-round": _auto_round, "fp8": _fp8, "fbgemm_fp8": _fbgemm, "mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes, "compressed-tensors": _compressed_tensors, "modelopt": _modelopt, "mlx": _mlx,
}  # fmt: skip


# Names of modules --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _compiled(patterns):
    """A function that says whether a module is named: "re:" and a regular expression, or a run of its name's parts.

    "mlp.gate" is in model.layers.3.mlp.gate, not in model.layers.3.mlp.gate_proj; * stands for anything within a
    part, and where it is a part, for one. Multimodal models call the text part language_model, ours do without.
    """
    from fnmatch import fnmatchcase

    whole, globs, expressions = set(), {}, []
    for text in patterns:
        if text.startswith("re:"):
            expressions.append(_expression(text[3:]))
            continue
        parts = _parts(text.replace("\\.", "."))
        if any("*" in part for part in parts):
            globs.setdefault(len(parts), set()).add(parts)
        else:
            whole.add(parts)

    @functools.lru_cache(maxsize=2**16)
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
