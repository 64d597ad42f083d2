"""How quantised checkpoints store one matrix: which tensors, of which types and shapes, and so how many bytes.

One function a layout, of a Packing and the matrix's (outputs, inputs): {ending: (dtype, shape)}, as files have them.
Read from the code that writes them: AutoGPTQ's QuantLinear, AutoAWQ's WQLinear_GEMM, compressed-tensors'
compressors, bitsandbytes' QuantState, transformers' integrations of FP8, MXFP4, EETQ, HIGGS, BitNet and Metal, NVIDIA's
ModelOpt, MLX's QuantizedLinear, HQQ's BitPack, AQLM's QuantizedLinear, quanto's QModuleMixin, torchao's tensors.
"""

from .record import Frozen
from .units import BITS


class Packing(Frozen):
    """How a matrix is packed. layout: a name of LAYOUTS. bits: of a value.

    group: inputs that share a scale, 0 for all of them. rows: outputs that share it, 0 for all. zeros: whether scales
    come with zero points. scale: the type of scales. extra: names of further scalars, one for each matrix. books: how
    many vectors, of codebooks of 2**bits, make one group of group x rows values (AQLM).
    """

    layout: str
    bits: int
    group: int = 0
    rows: int = 1
    zeros: bool = False
    scale: str = "BF16"
    extra: tuple = ()
    books: int = 0

    def tensors(self, outputs, inputs):
        """{ending of the name, after the module's: (dtype, shape)} of a matrix."""
        return LAYOUTS[self.layout](self, outputs, inputs)

    def size(self, outputs, inputs):
        """Bytes of a matrix with all that belongs to it.

        >>> Packing("awq", 4, 128, zeros=True, scale="F16").size(4096, 4096) * 8 / 4096**2
        4.15625
        """
        bits = 0
        for dtype, shape in self.tensors(outputs, inputs).values():
            product = BITS[dtype]
            for size in shape:
                product *= size
            bits += product
        return -(-bits // 8)

    def groups(self, inputs):
        """Groups of a row."""
        return -(-inputs // self.group) if self.group else 1

    def __str__(self):
        if self.books:
            return f"{self.layout}, {self.books} x {self.bits} bits for {self.rows} x {self.group} values"
        rows = {0: "a matrix", 1: "a row"}.get(self.rows, f"{self.rows} rows")
        where = (
            f"{self.group} values"
            if self.rows == 1 and self.group
            else f"{self.rows} x {self.group}"
            if self.group
            else rows
        )
        return f"{self.layout}, {self.bits} bits, a scale for {where}"


def _words(count, bits):
    return -(-count * bits // 32)


def _gptq(p, outputs, inputs):
    groups = p.groups(inputs)
    return {".qweight": ("I32", (_words(inputs, p.bits), outputs)),
            ".qzeros": ("I32", (groups, _words(outputs, p.bits))),
            ".scales": ("F16", (groups, outputs)), ".g_idx": ("I32", (inputs,))}  # fmt: skip


def _awq(p, outputs, inputs):
    groups = p.groups(inputs)
    return {".qweight": ("I32", (inputs, _words(outputs, p.bits))),
            ".qzeros": ("I32", (groups, _words(outputs, p.bits))),
            ".scales": ("F16", (groups, outputs))}  # fmt: skip


def _scale(p, outputs, inputs):
    """The shape of the scales: one for the matrix, for each row, group of a row, or block."""
    if p.rows == 0:
        return (1,)
    return -(-outputs // p.rows), p.groups(inputs)


def _integers(p, outputs, inputs):
    found = {".weight_packed": ("I32", (outputs, _words(inputs, p.bits))),
             ".weight_scale": (p.scale, _scale(p, outputs, inputs)),
             ".weight_shape": ("I64", (2,))}  # fmt: skip
    if p.zeros:
        found[".weight_zero_point"] = "I32", (_words(outputs, p.bits), p.groups(inputs))
    return found


def _wide(p, outputs, inputs):
    """Values of a byte under the weight's own name."""
    dtype = "I8" if p.layout == "int-quantized" else "F8_E4M3"
    name = ".weight_scale_inv" if p.layout == "fp8" else ".weight_scale"
    return {".weight": (dtype, (outputs, inputs)), name: (p.scale, _scale(p, outputs, inputs))} | _scalars(p)


def _scalars(p):
    return dict.fromkeys(p.extra, ("F32", (1,)))


def _fp4(p, outputs, inputs):
    scale = "U8" if p.layout == "mxfp4-pack-quantized" else "F8_E4M3"
    name = ".weight" if p.layout == "modelopt-nvfp4" else ".weight_packed"
    return {name: ("U8", (outputs, -(-inputs // 2))), ".weight_scale": (scale, _scale(p, outputs, inputs))} | _scalars(
        p
    )


def _mxfp4(p, outputs, inputs):
    groups = p.groups(inputs)
    return {"_blocks": ("U8", (outputs, groups, p.group // 2)), "_scales": ("U8", (outputs, groups))}


def _bnb4(p, outputs, inputs):
    blocks = -(-outputs * inputs // p.group)
    found = {".weight": ("U8", (-(-outputs * inputs // 2), 1)), ".weight.quant_map": ("F32", (16,))}
    if p.zeros:  # double quantisation: the scales are 8 bits, and scaled themselves, 256 of them at a time
        return found | {".weight.absmax": ("U8", (blocks,)), ".weight.nested_absmax": ("F32", (-(-blocks // 256),)),
                        ".weight.nested_quant_map": ("F32", (256,))}  # fmt: skip
    return found | {".weight.absmax": ("F32", (blocks,))}


def _bnb8(p, outputs, inputs):
    return {".weight": ("I8", (outputs, inputs)), ".SCB": ("F32", (outputs,))}


def _mlx(p, outputs, inputs):
    scales = p.scale, (outputs, p.groups(inputs))
    return {".weight": ("U32", (outputs, _words(inputs, p.bits))), ".scales": scales, ".biases": scales}


def _fp4_rows(p, outputs, inputs):
    return {".weight": ("I8", (outputs, -(-inputs // 2))), ".weight_scale_inv": (p.scale, (outputs, p.groups(inputs)))}


HQQ_VALUES = {8: 1, 4: 2, 3: 10, 2: 4, 1: 8}  # in an entry of what it packs: a byte, or four for 3 bits


def _hqq(p, outputs, inputs):
    """Groups are rows of what is packed, along its columns; "hqq-columns": they are its columns."""
    values = outputs * inputs
    size = p.group or (inputs if p.layout == "hqq" else outputs)
    groups = -(-values // size)
    rows, columns = (groups, size) if p.layout == "hqq" else (size, groups)
    scales = p.scale, (rows, 1) if p.layout == "hqq" else (1, columns)
    packed = "I32" if p.bits == 3 else "U8", (-(-rows // HQQ_VALUES[p.bits]), columns)
    return {".W_q": packed, ".scale": scales, ".zero": scales}


def _aqlm(p, outputs, inputs):
    code = next(f"I{size}" for size in (8, 16, 32) if p.bits <= size)
    groups = -(-outputs // p.rows)
    return {".codes": (code, (groups, p.groups(inputs), p.books)),
            ".codebooks": (p.scale, (p.books, 2**p.bits, p.rows, p.group)),
            ".scales": (p.scale, (groups, 1, 1, 1))}  # fmt: skip


def _quanto(p, outputs, inputs):
    """With a scale for each row, or (packed) scales and shifts for groups of a row."""
    found = {".input_scale": (p.scale, ()), ".output_scale": (p.scale, ())}
    if p.layout != "quanto-packed":
        dtype = "F8_E4M3" if p.layout == "quanto-float8" else "I8"
        return found | {".weight._data": (dtype, (outputs, inputs)), ".weight._scale": (p.scale, (outputs, 1))}
    size = p.group
    while inputs % size and size > 32:
        size -= 32
    size = size if inputs > p.group and inputs % size == 0 else inputs
    groups = outputs * inputs // size
    return found | {".weight._data": ("U8", (-(-groups * p.bits // 8), size)),
                    ".weight._scale": (p.scale, (groups, 1)), ".weight._shift": (p.scale, (groups, 1))}  # fmt: skip


def _torchao(p, outputs, inputs):
    if p.bits == 4:
        scales = p.scale, (p.groups(inputs), outputs)
        return {".weight": ("U8", (outputs, -(-inputs // 2))), ".scale": scales, ".zero_point": scales}
    dtype = "F8_E4M3" if p.layout == "torchao-float8" else "I8"
    return {".weight": (dtype, (outputs, inputs)), ".scale": (p.scale, (outputs, 1))}


def _eetq(p, outputs, inputs):
    return {".weight": ("I8", (inputs, outputs)), ".weight_scales": ("F16", (outputs,))}


def _higgs(p, outputs, inputs):
    entries = 2**p.bits
    return {".weight": ("I16", (outputs * p.bits // 16, inputs)), ".scales": (p.scale, (outputs, p.groups(inputs))),
            ".tables": (p.scale, (entries,)), ".tables2": (p.scale, (entries, entries, 2))}  # fmt: skip


def _bitnet(p, outputs, inputs):
    return {".weight": ("U8", (outputs // 4, inputs)), ".weight_scale": (p.scale, (1,))}


def _metal(p, outputs, inputs):
    scales = p.scale, (outputs, p.groups(inputs))
    return {".weight": ("U32", (outputs, _words(inputs, p.bits))), ".scales": scales, ".qbiases": scales}


LAYOUTS = {
    "gptq": _gptq, "awq": _awq, "pack-quantized": _integers, "int-quantized": _wide, "float-quantized": _wide,
    "fp8": _wide, "modelopt-fp8": _wide, "nvfp4-pack-quantized": _fp4, "mxfp4-pack-quantized": _fp4,
    "modelopt-nvfp4": _fp4,
    "mxfp4": _mxfp4, "bitsandbytes-4bit": _bnb4, "bitsandbytes-8bit": _bnb8, "mlx": _mlx, "metal": _metal,
    "fp4": _fp4_rows, "hqq": _hqq, "hqq-columns": _hqq, "aqlm": _aqlm, "eetq": _eetq, "higgs": _higgs,
    "bitnet": _bitnet, "quanto": _quanto, "quanto-float8": _quanto, "quanto-packed": _quanto,
    "torchao-int8": _torchao, "torchao-int4": _torchao, "torchao-float8": _torchao,
}  # fmt: skip
