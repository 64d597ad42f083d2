"""The safetensors files of a checkpoint folder: names, shapes, and tensors when they are asked for."""

import json
import os

from ..errors import InputError

INDEX, SINGLE, ENDING = "model.safetensors.index.json", "model.safetensors", ".safetensors"


class Checkpoint:
    """All tensors of a folder. `shapes` is {name: shape}; `read(name)` an array, bfloat16 as float32."""

    def __init__(self, folder):
        from safetensors import SafetensorError, safe_open

        self.shapes, self._files = {}, {}
        for path in files(folder):
            try:
                file = safe_open(path, framework="np")
                names = file.keys()
                for name in names:
                    if name in self._files:
                        raise InputError(f"{path}: the tensor {name} is in {self._files[name][0]} as well")
                    self._files[name] = path, file
                    self.shapes[name] = tuple(file.get_slice(name).get_shape())
            except (SafetensorError, OSError) as error:
                raise InputError(f"{path}: cannot be read as safetensors: {error}") from None

    def read(self, name):
        """One tensor."""
        path, file = self._files[name]
        dtype = file.get_slice(name).get_dtype()
        if dtype == "BF16":  # which NumPy lacks: the upper half of a float32
            return self._bfloat16(path, name)
        try:
            return file.get_tensor(name)
        except (TypeError, AttributeError):
            raise InputError(f"{path}: the tensor {name} is of type {dtype}; allowed: F64, F32, F16, BF16") from None

    def _bfloat16(self, path, name):
        import numpy

        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            start, stop = json.loads(file.read(length))[name]["data_offsets"]
            file.seek(8 + length + start)
            halves = numpy.frombuffer(file.read(stop - start), dtype="<u2")
        return (halves.astype(numpy.uint32) << 16).view(numpy.float32).reshape(self.shapes[name])


def files(folder):
    """The paths of the safetensors files of a folder: those of its index, else the only one."""
    there = sorted(name for name in os.listdir(folder) if name.endswith(ENDING))
    index = os.path.join(folder, INDEX)
    if os.path.isfile(index):
        from . import read

        table = read(index).get("weight_map")
        if not isinstance(table, dict) or not table or not all(isinstance(name, str) for name in table.values()):
            raise InputError(f"{index}: weight_map = {table!r}; allowed: an object from tensors to files")
        named = sorted(set(table.values()))
        for name in named:
            if name not in there:
                raise InputError(f"{index}: weight_map names {name!r}, and {folder} has no such file")
    else:
        named = [SINGLE] if SINGLE in there else there
    if not named:
        raise InputError(f"{folder}: no {SINGLE} and no {INDEX} in it")
    if len(named) > 1 and not os.path.isfile(index):
        raise InputError(f"{folder}: {', '.join(named)}; allowed: one {ENDING} file, or {INDEX} beside them")
    return [os.path.join(folder, name) for name in named]
