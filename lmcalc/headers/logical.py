"""Stored tensors to the weights that they stand for: packed values, and the scales and zero points that go with them.

A stored tensor of a quantised checkpoint is no weight of the model: 4-bit values lie eight to an integer, and scales
are no parameters at all. Which is which shows in names and types alone (see packing.py for the layouts).
"""

from ..record import Frozen
from ..units import BITS
from .gguf import BLOCKS

# ending of a stored name: (ending of the weight's name, whether it holds the values)
ENDINGS = {
    ".qweight": (".weight", True), ".weight_packed": (".weight", True), "_blocks": ("", True),
    ".weight_scale_inv": (".weight", False), ".weight_scale_2": (".weight", False), ".weight_scale": (".weight", False),
    ".weight_global_scale": (".weight", False), ".weight_zero_point": (".weight", False),
    ".weight_shape": (".weight", False),
    ".weight_g_idx": (".weight", False), ".input_global_scale": (".weight", False), ".input_scale": (".weight", False),
    ".input_zero_point": (".weight", False), ".output_scale": (".weight", False), ".scale": (".weight", False),
    ".qzeros": (".weight", False), ".scales": (".weight", False), ".g_idx": (".weight", False),
    ".biases": (".weight", False),
    ".weight.absmax": (".weight", False), ".weight.quant_map": (".weight", False),
    ".weight.nested_absmax": (".weight", False), ".weight.nested_quant_map": (".weight", False),
    ".weight.quant_state.bitsandbytes__nf4": (".weight", False),
    ".weight.quant_state.bitsandbytes__fp4": (".weight", False),
    ".SCB": (".weight", False), ".weight_format": (".weight", False),
    ".W_q": (".weight", True), ".zero": (".weight", False),
    ".codes": (".weight", True), ".codebooks": (".weight", False),
    ".weight._data": (".weight", True), ".weight._scale": (".weight", False), ".weight._shift": (".weight", False),
    ".weight_scales": (".weight", False), ".qbiases": (".weight", False),
    ".tables": (".weight", False), ".tables2": (".weight", False),
    **{f".{name}": (".weight", False) for name in (  # what HQQ repeats beside each matrix
        "nbits", "group_size", "shape", "axis", "packing", "unpack_view_dtype", "view_as_float", "compute_dtype",
        "quant_scale", "quant_zero", "optimize", "round_zero", "offload_meta", "encoded_state_dict",
        "stores_quant_config", "channel_wise")},
    "_scale_inv": ("", False), "_scales": ("", False), "_scale": ("", False),
}  # fmt: skip
NARROW = ("U8", "I8", "I16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4", "I32", "U32")


class Weight(Frozen):
    """A weight as a model knows it, and what is stored for it.

    shape: None where the file does not say (bitsandbytes flattens it). layout: of packing.py, "" where it is stored
    as it is. values: the tensor that holds it; sides: {ending: tensor} of scales and the like. bits: of a value.
    """

    name: str
    shape: tuple
    elements: int
    layout: str
    bits: object
    values: object
    sides: dict

    @property
    def dtype(self):
        """The type of its values, in words."""
        if not self.layout:
            return self.values.dtype
        return f"{self.values.dtype} ({self.layout})" if self.bits == 8 else f"{self.bits} bits ({self.layout})"

    @property
    def size(self):
        """Bytes of all that is stored for it."""
        return self.values.size + sum(each.size for each in self.sides.values())


def weights(tensors, bits=None):
    """({name: Weight}, [names of scales that belong to nothing]) of {name: Tensor}.

    bits: a function from the name of a weight to the bits that the config gives it, where the file does not tell.
    """
    groups, values, orphans = {}, {}, []
    for name, tensor in tensors.items():
        base, holds, _ = _base(name)
        if holds:
            values[base] = tensor
    packed = set(values)
    for name, tensor in tensors.items():
        base, holds, ending = _base(name)
        if holds:
            continue
        whole = tensors.get(base)
        if ending and (base in packed or (whole is not None and whole.dtype in NARROW)):
            groups.setdefault(base, {})[ending] = tensor
        elif ending and ending.startswith((".q", ".weight", ".g_idx", ".SCB")):
            orphans.append(name)
        else:
            values[name] = tensor
    found = {}
    for name, tensor in values.items():
        found[name] = _weight(name, tensor, groups.get(name, {}), bits)
    return found, orphans


def _base(name):
    """(name of the weight, whether this tensor holds its values, the ending that says so), or (name, False, "")."""
    for start in range(1, len(name)):
        if name[start] in "._":
            found = ENDINGS.get(name[start:])
            if found is not None:
                return name[:start] + found[0], found[1], name[start:]
    return name, False, ""


def _weight(name, tensor, sides, bits):
    shape, layout, size = tensor.shape, "", None
    if tensor.dtype in BLOCKS and tensor.dtype not in BITS:  # GGUF's block types
        block, held = BLOCKS[tensor.dtype]
        return Weight(name, shape, tensor.elements, "", held * 8 / block, tensor, sides)
    ending = tensor.name[len(name) - len(".weight") :] if name.endswith(".weight") else tensor.name[len(name) :]
    if ending == ".qweight" and ".scales" in sides:
        layout, shape, size = _gptq_or_awq(tensor, sides, bits and bits(name))
    elif ending == ".weight_packed" and len(shape) == 2:
        size = 4 if tensor.dtype == "U8" else (bits and bits(name)) or _packed_bits(tensor, sides)
        layout = "pack-quantized" if tensor.dtype == "I32" else "nvfp4-pack-quantized"
        if tensor.dtype == "U8" and sides.get(".weight_scale") is not None and sides[".weight_scale"].dtype == "U8":
            layout = "mxfp4-pack-quantized"
        shape = shape[0], shape[1] * BITS[tensor.dtype] // size
    elif ending == ".W_q" and ".scale" in sides and len(shape) == 2:
        layout, size, shape, elements = _hqq(tensor, sides[".scale"], bits and bits(name))
        return Weight(name, shape, elements, layout, size, tensor, sides)
    elif ending == ".codes" and ".codebooks" in sides and len(shape) == 3:
        return _aqlm(name, tensor, sides)
    elif ending == ".weight._data":
        return _quanto(name, tensor, sides)
    elif ".weight_scales" in sides and len(shape) == 2:
        layout, size, shape = "eetq", 8, shape[::-1]
    elif ".tables" in sides and len(shape) == 2:
        size = max(_product(sides[".tables"].shape).bit_length() - 1, 1)
        layout, shape = "higgs", (shape[0] * 16 // size, shape[1])
    elif ".qbiases" in sides and ".scales" in sides and len(shape) == 2:
        size = (bits and bits(name)) or 4
        layout, shape = "metal", (shape[0], shape[1] * 32 // size)
    elif tensor.dtype == "U8" and ".weight_scale" in sides and _product(sides[".weight_scale"].shape) == 1:
        layout, size, shape = "bitnet", 2, (4 * shape[0], *shape[1:]) if shape else shape
    elif _rows_of_four(tensor, sides):
        layout, size, shape = "fp4", 4, (*shape[:-1], shape[-1] * 2)
    elif ending == "_blocks" and len(shape) >= 3:  # (experts, outputs, groups, bytes): 2 values a byte
        layout, size = "mxfp4", 4
        shape = *shape[:-3], shape[-2] * shape[-1] * 2, shape[-3]
    elif ".weight.absmax" in sides or (tensor.dtype == "U8" and any("quant_state" in each for each in sides)):
        layout, size, shape = "bitsandbytes-4bit", 4, None
    elif ".SCB" in sides:
        layout, size = "bitsandbytes-8bit", 8
    elif tensor.dtype == "U32" and ".scales" in sides and len(shape) == 2:
        size = (bits and bits(name)) or 4
        layout, shape = "mlx", (shape[0], shape[1] * 32 // size)
    elif tensor.dtype == "U8" and ".weight_scale" in sides and len(shape) == 2:
        layout, size, shape = "modelopt-nvfp4", 4, (shape[0], shape[1] * 2)
    elif sides:
        layout, size = _eight(tensor, sides), 8
    elements = tensor.size * 8 // size if size else tensor.elements
    if shape is not None:
        elements = _product(shape)
    return Weight(name, shape, elements, layout, size or BITS[tensor.dtype], tensor, sides)


def _product(shape):
    product = 1
    for size in shape:
        product *= size
    return product


def _hqq(tensor, scale, known):
    """(layout, bits, None, elements): groups are rows or columns, as their scales say; no header has the shape."""
    rows, columns = tensor.shape
    along = len(scale.shape) == 2 and scale.shape[1] == 1
    groups = _product(scale.shape)
    if along:
        elements = groups * columns
        size = known or max((8 // max(-(-groups // max(rows, 1)), 1)) if tensor.dtype == "U8" else 3, 1)
    else:
        size = known or 4
        elements = rows * columns * 8 // size if tensor.dtype == "U8" else rows * columns * 10
    return "hqq" if along else "hqq-columns", size, None, elements


def _aqlm(name, tensor, sides):
    """Codes of groups of values; the codebooks' shape says how large these are, and how many bits a code has."""
    books = sides[".codebooks"].shape
    rows, columns, size = (*books[2:4], books[1].bit_length() - 1) if len(books) == 4 else (1, 1, 8)
    shape = tensor.shape[0] * rows, tensor.shape[1] * columns
    return Weight(name, shape, _product(shape), "aqlm", size, tensor, sides)


def _quanto(name, tensor, sides):
    """Eight bits as they are; fewer are packed by groups, whose scales say how many values there are."""
    shift = sides.get(".weight._shift")
    if shift is None or len(tensor.shape) != 2:
        layout = "quanto-float8" if tensor.dtype.startswith("F8") else "quanto"
        return Weight(name, tensor.shape, tensor.elements, layout, 8, tensor, sides)
    elements = _product(shift.shape) * tensor.shape[1]
    size = 4 if 2 * tensor.elements >= elements else 2
    return Weight(name, None, elements, "quanto-packed", size, tensor, sides)


def _rows_of_four(tensor, sides):
    """Whether bytes hold two values each, and a scale is for 32 of a row (DeepSeek V4's experts)."""
    found = [sides[each].shape for each in (".weight_scale_inv", ".scale", "_scale_inv") if each in sides]
    shape = tensor.shape
    return (
        tensor.dtype in ("I8", "F4")
        and bool(found)
        and len(shape) >= 2
        and len(found[0]) == len(shape)
        and found[0][:-1] == shape[:-1]
        and found[0][-1] == -(-shape[-1] * 2 // 32)
    )


def _gptq_or_awq(tensor, sides, known):
    """(layout, shape, bits): GPTQ packs along the inputs, AWQ along the outputs."""
    rows, columns = tensor.shape if len(tensor.shape) == 2 else (0, 0)
    outputs = sides[".scales"].shape[-1] if sides[".scales"].shape else 0
    zeros = sides.get(".qzeros")
    size = known
    if zeros is not None and zeros.shape and outputs and 0 < zeros.shape[-1] * 32 // outputs <= 8:
        size = zeros.shape[-1] * 32 // outputs
    size = size or 4
    if columns == outputs:
        return "gptq", (outputs, rows * 32 // size), size
    return "awq", (outputs, rows), size


def _packed_bits(tensor, sides):
    """Bits of compressed-tensors' integers where no config says them: 4 unless the groups would not be whole."""
    scale, words = sides.get(".weight_scale"), tensor.shape[1]
    groups = scale.shape[1] if scale is not None and len(scale.shape) == 2 else 1
    for size in (4, 8):
        inputs = words * 32 // size
        if groups == 1 or (inputs % groups == 0 and inputs // groups in (16, 32, 64, 128, 256)):
            return size
    return 4


def _eight(tensor, sides):
    if ".weight_scale_inv" in sides or "_scale_inv" in sides or ".scale" in sides:
        return "fp8"
    if tensor.dtype == "I8":
        return "int-quantized"
    scale = sides.get(".weight_scale")
    return "modelopt-fp8" if scale is not None and not scale.shape else "float-quantized"
