"""How quantised checkpoints store one matrix: which tensors, of which types and shapes, and so how many bytes.

One function a layout, of a Packing and the matrix's (outputs, inputs): {ending: (dtype, shape)}, as files have them.
Read from the code that writes them: AutoGPTQ's QuantLinear, AutoAWQ's WQLinear_GEMM, compressed-tensors'
compressors, bitsandbytes' QuantState, transformers' integrations of FP8 and MXFP4, NVIDIA's ModelOpt, MLX's
QuantizedLinear.
"""

from .record import Frozen
from .units import BITS


class Packing(Frozen):
    """How a matrix is packed. layout: a name of LAYOUTS. bits: of a value.

    group: inputs that share a scale, 0 for all of them. rows: outputs that share it, 0 for all. zeros: whether scales
    come with zero points. scale: the type of scales. extra: names of further scalars, one for each matrix.
    """

    layout: str
    bits: int
    group: int = 0
    rows: int = 1
    zeros: bool = False
    scale: str = "BF16"
    extra: tuple = ()

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


LAYOUTS = {
    "gptq": _gptq, "awq": _awq, "pack-quantized": _integers, "int-quantized": _wide, "float-quantized": _wide,
    "fp8": _wide, "modelopt-fp8": _wide, "nvfp4-pack-quantized": _fp4, "mxfp4-pack-quantized": _fp4,
    "modelopt-nvfp4": _fp4,
    "mxfp4": _mxfp4, "bitsandbytes-4bit": _bnb4, "bitsandbytes-8bit": _bnb8, "mlx": _mlx,
}  # fmt: skip
