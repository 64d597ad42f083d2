"""What each quant_method of a quantization_config says: one short function for each, of its keys, that gives a Scheme.

None stands for a form of which it is not known what the files look like. Where the files say more than a config does,
the Scheme says what was assumed.
"""

from ..packing import Packing
from .config import Config
from .quantization import GROUPS, Scheme, names, whole


def _gptq(c):
    bits, group = whole(c, (2, 3, 4, 8), "bits"), whole(c, GROUPS, "group_size", default=128)
    c.skip("modules_in_block_to_quantize", "dynamic")
    dynamic, skip = c.get("table", "dynamic") or {}, list(names(c, "modules_to_not_convert"))
    groups = [(("Linear",), Packing("gptq", bits, group, zeros=True, scale="F16"))]
    for name, changes in dynamic.items():  # GPTQModel's rules by module: "-:" leaves out, "+:" changes
        pattern = "re:" + name.removeprefix("-:").removeprefix("+:")
        if name.startswith("-:") or not isinstance(changes, dict):
            skip.append(pattern)
        else:
            inside = Config(changes, {}, f"{c.where}: dynamic: {name}")
            packing = Packing("gptq", whole(inside, (2, 3, 4, 8), "bits", default=bits),
                              whole(inside, GROUPS, "group_size", default=group), zeros=True, scale="F16")  # fmt: skip
            groups.insert(0, ((pattern,), packing))
    inside = c.get("list", "modules_in_block_to_quantize") or []
    only = tuple(each for part in inside if isinstance(part, list) for each in part if isinstance(each, str))
    if only:
        groups = [(only, packing) for _, packing in groups]
    return Scheme(tuple(groups), tuple(skip), head=bool(c.get("bool", "lm_head")))


def _awq(c):
    bits, group = (
        whole(c, (4,), "bits", "w_bit", default=4),
        whole(c, GROUPS, "group_size", "q_group_size", default=128),
    )
    packing = Packing("awq", bits, group, zeros=True, scale="F16")
    c.skip("zero_point")
    return Scheme(((("Linear",), packing),), names(c, "modules_to_not_convert"))


def _auto_round(c):
    form = c.get("text", "packing_format") or ""
    return _gptq(c) if "gptq" in form else _awq(c) if "awq" in form else None


def _fp8(c):
    block = c.get("list", "weight_block_size")
    experts = c.get("text", "expert_dtype") or _outer(c, "expert_dtype")
    narrow = experts is not None or c.model.get("model_type") == "deepseek_v4"
    # DeepSeek V4 stores scales as powers of two, a byte each; V3.1 says the same of them, and stores 4 bytes
    scale = "F8_E8M0" if c.get("text", "scale_fmt") == "ue8m0" and narrow else "F32"
    packing = Packing("fp8", 8, 0, 0, scale="F32")
    if block is not None:
        if len(block) != 2 or not all(type(each) is int and 1 <= each < 2**20 for each in block):
            c.refuse("weight_block_size", block, "two whole numbers of at least 1")
        packing = Packing("fp8", 8, block[1], block[0], scale=scale)
    if experts not in (None, "fp8", "fp4"):
        c.refuse("expert_dtype", experts, "fp8 or fp4")
    groups = ((("Linear",), packing),)
    if experts == "fp4":  # two values a byte, and a scale for 32 of a row
        groups = ((("experts",), Packing("fp4", 4, 32, scale=scale)), *groups)
    return Scheme(groups, names(c, "modules_to_not_convert", "ignored_layers"))


def _outer(c, key):
    value = c.model.get(key)
    return value if isinstance(value, str) else None


def _fbgemm(c):
    packing = Packing("float-quantized", 8, 0, 1, scale="F32")
    return Scheme(((("Linear",), packing),), names(c, "modules_to_not_convert"))


def _mxfp4(c):
    return Scheme(((("Linear",), Packing("mxfp4", 4, 32)),), names(c, "modules_to_not_convert"), experts=True)


def _bitsandbytes(c):
    four, eight = (c.get("bool", key) for key in ("load_in_4bit", "load_in_8bit"))
    double = c.get("bool", "bnb_4bit_use_double_quant")
    c.skip("bnb_4bit_quant_type", "quant_type")
    packing = (
        Packing("bitsandbytes-4bit", 4, 64, zeros=bool(double), scale="F32")
        if four
        else Packing("bitsandbytes-8bit", 8)
    )
    return Scheme(((("Linear",), packing),), names(c, "llm_int8_skip_modules")) if four or eight else None


def _mlx(c):
    bits, group = whole(c, (2, 3, 4, 5, 6, 8), "bits", default=4), whole(c, GROUPS, "group_size", default=64)
    if c.get("text", "mode") not in (None, "affine"):
        return None
    groups, skip = [(("Linear",), Packing("mlx", bits, group, zeros=True, scale="BF16"))], []
    for name, changes in c.data.items():
        if isinstance(changes, dict):  # of one module
            inside = Config(changes, {}, f"{c.where}: {name}")
            packing = Packing("mlx", whole(inside, (2, 3, 4, 5, 6, 8), "bits", default=bits),
                              whole(inside, GROUPS, "group_size", default=group), zeros=True)  # fmt: skip
            groups.insert(0, ((name,), packing))
            c.skip(name)
        elif changes is False:
            skip.append(name)
            c.skip(name)
    return Scheme(tuple(groups), tuple(skip), head=True, tables=True)


def _compressed_tensors(c):
    skip, form = names(c, "ignore"), c.get("text", "format")
    groups = []
    for name, table in sorted((c.get("table", "config_groups") or {}).items()):
        inside = Config(table if isinstance(table, dict) else {}, {}, f"{c.where}: config_groups: {name}")
        weights, targets = inside.inside("weights"), names(inside, "targets")
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
    bits, kind = whole(c, (2, 3, 4, 8), "num_bits"), c.get("text", "type") or "int"
    strategy, block = c.get("text", "strategy"), c.get("list", "block_structure")
    group = whole(c, GROUPS, "group_size", default=0)
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
    skip, groups = names(c, "ignore", "exclude_modules"), {}
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


def _hqq(c):
    table, skip = c.inside("quant_config"), names(c, "skip_modules")
    if table is None:  # as written by hand
        found = _hqq_packing(c, c)
    elif "weight_quant_params" in table.data or "nbits" in table.data:
        found = _hqq_packing(c, table)
    else:  # one for each kind of layer, and none for the others
        groups = []
        for name, own in table.data.items():
            table.skip(name)
            packing = _hqq_packing(c, Config(own if isinstance(own, dict) else {}, {}, f"{table.where}: {name}"))
            if packing is None:
                return None
            groups.append(((name,), packing))
        return Scheme(tuple(groups), skip, head=True, assumed=HQQ)
    return None if found is None else Scheme(((("Linear",), found),), skip or ("lm_head",), head=True, assumed=HQQ)


HQQ = "files of HQQ repeat its settings beside each matrix, which is not counted"


def _hqq_packing(c, table):
    """The Packing that HQQ's settings say, or None where scales or zero points are packed themselves."""
    inside = table.inside("weight_quant_params") or table
    if any(table.get("table", key) for key in ("scale_quant_params", "zero_quant_params")):
        return None
    table.skip("offload_meta", "view_as_float")
    inside.skip("channel_wise", "optimize", "round_zero", "view_as_float", "bitpack")
    bits, group = whole(inside, (1, 2, 3, 4, 8), "nbits", default=4), whole(inside, GROUPS, "group_size", default=64)
    if "group_size" in inside.data and inside.data["group_size"] is None:
        group = 0
    axis = inside.get("count", "axis")
    axis = 1 if axis is None else axis
    if axis not in (0, 1):
        inside.refuse("axis", axis, "0 or 1")
    return Packing("hqq" if axis else "hqq-columns", bits, group, zeros=True, scale=c.rest)


def _quanto(c):
    bits = {"float8": 8, "int8": 8, "int4": 4, "int2": 2}
    word = c.get("text", "weights") or "int8"
    c.skip("activations")
    if word not in bits:
        c.refuse("weights", word, "one of " + ", ".join(bits))
    layout = "quanto-float8" if word == "float8" else "quanto" if bits[word] == 8 else "quanto-packed"
    packing = Packing(layout, bits[word], 0 if bits[word] == 8 else 128, scale=c.rest)
    assumed = "" if bits[word] == 8 else "quanto chooses groups itself: of 128, or fewer where these are not whole"
    return Scheme(((("Linear",), packing),), names(c, "modules_to_not_convert"), assumed=assumed)


def _aqlm(c):
    inputs, outputs = (whole(c, range(1, 2**16), f"{each}_group_size", default=size)
                       for each, size in (("in", 8), ("out", 1)))  # fmt: skip
    books, bits = whole(c, range(1, 2**8), "num_codebooks", default=1), whole(c, range(1, 33), "nbits_per_codebook",
                                                                              default=16)  # fmt: skip
    packing = Packing("aqlm", bits, inputs, outputs, scale=c.rest, books=books)
    skip = tuple(each.removesuffix(".weight") for each in names(c, "linear_weights_not_to_quantize"))
    return Scheme(((("Linear",), packing),), skip, head=bool(skip))


def _eetq(c):
    c.skip("weights")
    return Scheme(((("Linear",), Packing("eetq", 8, scale="F16")),), names(c, "modules_to_not_convert"))


def _higgs(c):
    c.skip("p", "hadamard_size", "tune_metadata")
    bits, group = whole(c, (2, 3, 4), "bits", default=4), whole(c, (64, 128, 256), "group_size", default=256)
    return Scheme(((("Linear",), Packing("higgs", bits, group, scale=c.rest)),), names(c, "modules_to_not_convert"))


def _bitnet(c):
    c.skip("rms_norm_eps")
    kind, mode = c.get("text", "linear_class") or "bitlinear", c.get("text", "quantization_mode") or "offline"
    c.only("use_rms_norm", False, "norms inside matrices are not counted")
    if kind not in ("bitlinear", "autobitlinear") or mode not in ("online", "offline"):
        return None
    skip = names(c, "modules_to_not_convert")
    if kind == "autobitlinear":  # kept as they were trained
        return Scheme((), skip)
    return Scheme(((("Linear",), Packing("bitnet", 2, scale=c.rest)),), skip)


def _metal(c):
    bits, group = whole(c, (2, 4, 8), "bits", default=4), whole(c, range(1, 2**20), "group_size", default=64)
    packing = Packing("metal", bits, group, zeros=True, scale="F32")
    return Scheme(((("Linear",), packing),), names(c, "modules_to_not_convert"))


# torchao's classes of settings, and their older names: (layout, bits, group of values, key that says it)
TORCHAO = {
    "Int8WeightOnlyConfig": ("torchao-int8", 8, 0),
    "Int8DynamicActivationInt8WeightConfig": ("torchao-int8", 8, 0),
    "Float8WeightOnlyConfig": ("torchao-float8", 8, 0),
    "Int4WeightOnlyConfig": ("torchao-int4", 4, 128),
    "int8_weight_only": ("torchao-int8", 8, 0),
    "int8_dynamic_activation_int8_weight": ("torchao-int8", 8, 0),
    "float8_weight_only": ("torchao-float8", 8, 0),
    "int4_weight_only": ("torchao-int4", 4, 128),
}


def _torchao(c):
    kind, given = c.data.get("quant_type"), c.get("table", "quant_type_kwargs") or {}
    c.skip("quant_type", "untie_embedding_weights")
    if isinstance(kind, dict):
        inside = kind.get("default")
        kind, given = (inside.get("_type"), inside.get("_data")) if isinstance(inside, dict) else (None, {})
    if not isinstance(kind, str) or kind not in TORCHAO:
        return None
    layout, bits, group = TORCHAO[kind]
    if group:
        group = whole(Config(given if isinstance(given, dict) else {}, {}, f"{c.where}: quant_type"),
                      range(1, 2**20), "group_size", default=group)  # fmt: skip
    packing = Packing(layout, bits, group, zeros=bool(group), scale="F32" if "float8" in layout else c.rest)
    tables = bool(c.get("bool", "include_input_output_embeddings"))
    return Scheme(((("Linear",), packing),), names(c, "modules_to_not_convert"), head=tables, tables=tables,
                  assumed="the types of scales are those of torchao's present version")  # fmt: skip


METHODS = {
    "gptq": _gptq, "awq": _awq, "auto-round": _auto_round, "fp8": _fp8, "fbgemm_fp8": _fbgemm, "mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes, "compressed-tensors": _compressed_tensors, "modelopt": _modelopt, "mlx": _mlx,
    "hqq": _hqq, "torchao": _torchao, "quanto": _quanto, "aqlm": _aqlm, "eetq": _eetq, "higgs": _higgs,
    "bitnet": _bitnet, "metal": _metal,
}  # fmt: skip
