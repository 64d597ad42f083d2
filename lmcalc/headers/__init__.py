"""What a checkpoint file says about itself: names, types and shapes of its tensors, without reading one of them.

A header is written by somebody else: every size in it is held against the file before anything is made of it.
"""

import os
from typing import NamedTuple

from ..errors import InputError
from ..record import Frozen
from .source import File


class Tensor(NamedTuple):
    """A tensor as a file lists it. shape: outermost axis first. size: bytes. file: where it lies."""

    name: str
    dtype: str
    shape: tuple
    size: int
    file: str

    @property
    def elements(self):
        """The product of its shape."""
        product = 1
        for size in self.shape:
            product *= size
        return product


class Header(Frozen):
    """The tensors of a checkpoint. kind: "safetensors" or "gguf". files: {name: bytes}. metadata: what else it says.

    config: the path of the config.json beside it, or None. index: {tensor: file} as an index lists them, or None.
    """

    path: str
    kind: str
    tensors: dict
    files: dict
    metadata: dict = {}
    config: str = None
    index: dict = None


def read(path):
    """The Header of a checkpoint: a folder, a .safetensors or .gguf file, or an index. Raises InputError."""
    from . import gguf, safetensors

    path = os.fspath(path)
    if os.path.isdir(path):
        return _folder(path)
    if path.endswith(".gguf"):
        return gguf.read(path)
    if path.endswith(safetensors.INDEX) or path.endswith(".safetensors"):
        folder = os.path.dirname(path) or "."
        config = os.path.join(folder, "config.json")
        names = None if path.endswith(".json") else [os.path.basename(path)]
        return safetensors.read(path, lambda name: File(os.path.join(folder, name)), names,
                                config if os.path.isfile(config) else None)  # fmt: skip
    if not os.path.exists(path):
        raise InputError(f"{path}: no such file or folder")
    raise InputError(
        f"{path}: allowed: a folder, or a file that ends in .safetensors, .safetensors.index.json or .gguf"
    )


def names(folder):
    """The names of what is in a folder, sorted."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: cannot be read: {getattr(error, 'strerror', error)}") from None


def _folder(folder):
    from . import gguf, safetensors

    there = names(folder)
    config = os.path.join(folder, "config.json") if "config.json" in there else None
    if not any(name.endswith((".safetensors", safetensors.INDEX)) for name in there):
        name = gguf.chosen(there, folder)
        if name is not None:
            return gguf.read(os.path.join(folder, name))
        raise InputError(f"{folder}: no checkpoint in it; allowed: one model in .safetensors files or in a .gguf file")
    files = None if safetensors.INDEX in there else [name for name in there if name.endswith(".safetensors")]
    if files is not None and len(files) > 1:
        if "model.safetensors" not in files:
            raise InputError(
                f"{folder}: {len(files)} files and no {safetensors.INDEX}; "
                "allowed: one .safetensors file, or an index beside them"
            )
        files = ["model.safetensors"]
    return safetensors.read(folder, lambda name: File(os.path.join(folder, name)), files, config)
