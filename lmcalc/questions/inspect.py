"""What is in a checkpoint? Its headers alone: true parameters, bytes and bits, and where it differs from its config."""

import functools
import os
import re

from .. import headers
from ..errors import InputError
from ..headers import logical
from ..record import Frozen

SCHEMA = "lmcalc.inspect/1"
# part of a weight by its name, where no model says it: the first that is found
PARTS = (
    (r"norm|(^|\.)ln_|layernorm", "norms"),
    (r"position|wpe|pos_emb", "position_embedding"),
    (r"(^|\.)(lm_head|output|embed_out)\.", "lm_head"),
    (r"embed|wte|word_embeddings|(^|\.)shared\.weight", "token_embedding"),
    (r"shared_expert|_shexp", "moe_shared"),
    (r"experts|_exps", "moe_experts"),
    (r"router|mlp\.gate\.|ffn_gate_inp|e_score_correction", "moe_router"),
    (r"mamba|ssm|mixer|linear_attn", "mixer"),
    (r"attn|attention", "attention"),
    (r"mlp|ffn|feed_forward|fc[12]|dense", "ffn"),
)
MTP = r"(^|\.)mtp\.|(^|\.)mtp_|eagle_module|nextn"
# Tensors that stay in 32 bits in files of a narrower type: buffers, and what a recurrence is sensitive to
KEPT_WIDE = r"e_score_correction_bias|correction|A_log|dt_bias|\.D$|inv_freq|freqs|sinks|ssm_a|ssm_d"

MTP_KEYS = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", "mtp_num_layers")
# tensors of a prediction module that may repeat the model's own, by the end of their names
REPEATED = {"embed_tokens.weight": ("embedding/table",), "head.weight": ("head/weight", "embedding/table")}
FLOATS = ("F64", "F32", "F16", "BF16")
SAME = {"modelopt-fp8": "float-quantized"}  # they differ in the number of scales, if at all
OPTIONAL = (".g_idx", ".weight_shape", ".weight.quant_map", ".qzeros")
GGUF_LEFT_OVER = (r"rope_freqs\.weight", r"rope_factors_(long|short)\.weight", r"blk\.\d+\.attn_rot_embd\.weight")


def inspect(path, against=None):
    """{schema, ...}: a checkpoint's tensors, true parameters, bytes and bits by type and part, and its differences.

    path: a folder, a .safetensors or .gguf file, or a hub id. against: the MODEL to hold it against (default: the
    config.json beside it, or a .gguf file's own metadata). Raises InputError for files that cannot be.
    """
    header = opened(path)
    says = _says(header, against)
    bits = None
    if says.scheme is not None:
        every = {packing.bits for _, packing in says.scheme.groups}
        bits = (lambda name: next(iter(every))) if len(every) == 1 else None
    weights, orphans = logical.weights(header.tensors, bits)
    held = Held(header, weights, says)
    differences = held.differences + [(name, "scales or zero points of no weight in the file") for name in orphans]
    counted = [each for name, each in weights.items() if name not in held.apart]
    stored = sum(tensor.size for tensor in header.tensors.values())
    total = sum(each.elements for each in counted)
    held_bytes = sum(each.size for each in counted)
    return {
        "schema": SCHEMA,
        "path": os.fspath(path),
        "kind": header.kind,
        "files": len(header.files),
        "file_bytes": sum(header.files.values()),
        "tensors": len(header.tensors),
        "params": {"total": total} | {what: sum(weights[name].elements for name in names) for what, names in
                   (("mtp", held.mtp), ("buffers", held.buffers), ("duplicated", held.copies))},
        "elements_stored": sum(tensor.elements for tensor in header.tensors.values()),
        "bytes": {"total": stored, "values": sum(each.values.size for each in weights.values()),
                  "scales": sum(side.size for each in weights.values() for side in each.sides.values()),
                  "duplicated": sum(weights[name].size for name in held.copies)},
        "bits_per_weight": held_bytes * 8 / total if total else None,
        "by_dtype": _rows(counted, lambda each: each.dtype),
        "by_part": _rows(counted, held.part),
        "duplicates": [{"tensor": name, "of": of, "bytes": weights[name].size} for name, of in held.copies.items()],
        "mtp": sorted(held.mtp),
        "against": says.model and {name: getattr(says.model, name) for name in ("name", "source", "family")},
        "differences": [{"tensor": name, "problem": problem} for name, problem in differences],
        "notes": [*says.notes, *held.notes],
    }  # fmt: skip


def opened(path):
    """The Header of a path or hub id."""
    text = os.fspath(path)
    if not os.path.exists(text):
        from .. import hub

        if hub.is_id(text):
            return hub.header(text)
    return headers.read(text)


def _rows(weights, key):
    """Sums by key: [{name, tensors, params, bytes, bits_per_weight}], the largest first."""
    found = {}
    for each in weights:
        row = found.setdefault(key(each), [0, 0, 0])
        row[0] += 1 + len(each.sides)
        row[1] += each.elements
        row[2] += each.size
    return [
        {
            "name": name,
            "tensors": row[0],
            "params": row[1],
            "bytes": row[2],
            "bits_per_weight": row[2] * 8 / row[1] if row[1] else None,
        }
        for name, row in sorted(found.items(), key=lambda item: -item[1][1])
    ]


class Says(Frozen):
    """What a checkpoint should be: a Model, how its config packs weights (a Scheme), the type of the others (by
    safetensors' name), how many prediction modules it may hold, and notes. types: whether anything is said about types.
    """

    model: object = None
    scheme: object = None
    dtype: str = None
    mtp: int = 0
    types: bool = True
    notes: tuple = ()


def _says(header, against):
    from ..huggingface import built, read
    from ..huggingface.names import NAMES

    if against is not None:
        return _against(against, header)
    try:
        if header.kind == "gguf":
            from ..headers.gguf_models import model

            found = model(header)
            return Says(found, mtp=found.fields.get("n_mtp_layers") or 0, types=False, notes=found.notes)
        if header.config is None:
            return Says(
                notes=("Not held against a model: there is no config.json beside it (--against MODEL names one).",)
            )
        config = read(header.config)
        model = built(config, os.path.dirname(header.config), "lm_head.weight" in header.tensors)
        if model.family not in NAMES:
            raise InputError(f"names of tensors are not known for model_type {model.family!r}")
    except InputError as error:
        return Says(notes=(f"Not held against a model: {error}",))
    return _of_config(model, config)


def _of_config(model, config):
    from ..huggingface.nested import text_part
    from ..huggingface.quantization import dtype, scheme

    config = text_part(config, "config").data
    packed = any("quantization" in key for key in config)
    found = scheme(config)[0] if packed else None
    count = next((config[key] for key in MTP_KEYS if type(config.get(key)) is int), 0)
    return Says(model, found, dtype(config), count, found is not None or not packed, model.notes)


def _against(against, header):
    """The same of a MODEL that was named: one whose family says how its tensors are called."""
    from ..cards import load
    from ..huggingface import read
    from ..huggingface.names import NAMES

    model, text = load(against), str(against) if isinstance(against, str | os.PathLike) else ""
    if header.kind == "gguf":
        from ..headers.gguf_models import TABLES

        if model.family not in TABLES:
            raise InputError(
                f"--against {text}: names in GGUF files are not known for the family {model.family!r}; "
                f"allowed: {', '.join(TABLES)}"
            )
        return Says(model, types=False, notes=model.notes)
    if model.family not in NAMES:
        raise InputError(
            f"--against {text}: names of tensors are not known for the family {model.family!r}; "
            "allowed: a config.json, or a folder that holds one"
        )
    path = os.path.join(text, "config.json") if os.path.isdir(text) else text
    return _of_config(model, read(path) if path.endswith(".json") else {})


class Held:
    """A checkpoint held against a model, tensor by tensor.

    differences: [(tensor, problem)]. copies: {weight: what it repeats}. mtp: weights of prediction modules. buffers:
    what is no parameter. beside: weights of other parts of a multimodal model. apart: all of these, which are not
    counted as the model's.
    """

    def __init__(self, header, weights, says):
        self.weights, self.says, self.kind = weights, says, header.kind
        self.differences, self.copies, self.mtp, self.buffers, self.notes, self._parts = [], {}, set(), set(), [], {}
        self._found, self._names, self.beside, self._is_beside = {}, {}, set(), lambda name: False
        for name in list(weights) if says.model is None else self._compare():
            self._sort(name)
        self.apart = {*self.copies, *self.mtp, *self.buffers, *self.beside}
        if self.beside:
            elements = sum(weights[name].elements for name in self.beside)
            self.notes.append(f"{len(self.beside):,} weights of other parts than the text part are not counted "
                              f"({elements:,} elements).")  # fmt: skip
        if says.model is not None:
            self._predictions()
        self._index(header)

    def part(self, weight):
        """The heading that a weight belongs under."""
        found = self._parts.get(weight.name)
        return found or next((part for pattern, part in _patterns()[0] if pattern.search(weight.name)), "other")

    def _compare(self):
        """Hold every weight against the model; the names of those that it has no use for."""
        from ..huggingface import tensors
        from ..storage import numbered_weights

        model, spec_of, buffers = self.says.model, {}, set()
        for what in ("weights", "buffers"):
            for _, path, part, spec, size_of in numbered_weights(model, what):
                spec_of[path] = part, spec, size_of
                if what == "buffers":
                    buffers.add(path)
        wanted = {path: (spec, size_of) for path, (_, spec, size_of) in spec_of.items()}
        shapes = {name: each.shape for name, each in self.weights.items()}
        if self.kind == "gguf":
            from ..headers.gguf_models import places, plain

            self._found = found = places(model, wanted, shapes)
            shapes = {name: plain(shape) for name, shape in shapes.items()}
        else:
            known = {name: shape for name, shape in shapes.items() if shape is not None}
            self._found = found = tensors.places(model, wanted, known)
        self._names, self.differences, others = tensors.compared(found, shapes, bool(model.beside))
        self._is_beside = tensors.beside(found, model)
        for path, place in found.items():
            for name in place.names:
                if name in self._names:
                    self._parts[self._names[name]] = spec_of[path][0]
                    if path in buffers:
                        self.buffers.add(self._names[name])
        if self.says.types:
            self._types(spec_of)
        return others

    def _types(self, spec_of):
        """Hold how each weight is stored against what the config says of it."""
        from ..huggingface.tensors import modules

        scheme, module, seen = self.says.scheme, modules(self.says.model), set()
        plain = self.says.dtype or self._usual()
        for path, place in self._found.items():
            packing = None if scheme is None else scheme.packing(module(path), *spec_of[path])
            for name in place.names:
                weight = self.weights.get(self._names.get(name))
                if weight is None or weight.name in seen:
                    continue
                seen.add(weight.name)
                if packing is not None:
                    self._packed(weight, packing)
                elif weight.layout:
                    self._differs(
                        weight.name,
                        f"stored in {weight.dtype}; needed: {plain}, since the config does not say that it is packed",
                    )
                elif weight.values.dtype != plain and not self._kept(weight.name, weight.values.dtype):
                    self._differs(weight.name, f"type {weight.values.dtype}; needed: {plain}")

    def _kept(self, name, dtype):
        """Whether a tensor may have another type than the others: what stays in 32 bits, and buffers of integers."""
        if name in self.buffers and dtype not in FLOATS:
            return True
        return dtype == "F32" and (name in self.buffers or re.search(KEPT_WIDE, name) is not None)

    def _packed(self, weight, packing):
        """Hold a weight that should be packed against how."""
        one, other = (SAME.get(layout, layout) for layout in (weight.layout, packing.layout))
        if one != other or weight.bits != packing.bits:
            self._differs(weight.name, f"stored in {weight.dtype}; needed: {packing}")
            return
        if weight.shape is None:  # flattened: only what is missing shows
            for ending in packing.tensors(1024, 1024):
                if ending not in weight.sides and ending not in OPTIONAL and not weight.values.name.endswith(ending):
                    self._differs(weight.name.removesuffix(".weight") + ending, f"missing; needed for {packing}")
            return
        if len(weight.shape) not in (2, 3):
            return
        stacked, (outputs, inputs) = weight.shape[:-2], weight.shape[-2:]
        if packing.layout == "mxfp4":  # transposed, as transformers has it
            outputs, inputs = inputs, outputs
        elif stacked:
            return
        for ending, (_, shape) in packing.tensors(outputs, inputs).items():
            side, base = weight.sides.get(ending), weight.name.removesuffix(".weight")
            side = weight.sides.get(".scale") if side is None and ending == ".weight_scale_inv" else side
            if side is None and ending not in (*packing.extra, *OPTIONAL) and not weight.values.name.endswith(ending):
                self._differs(base + ending, f"missing; needed: shape {[*stacked, *shape]}, for {packing}")
            elif side is not None and _plain(side.shape) != _plain((*stacked, *shape)):
                self._differs(side.name, f"shape {list(side.shape)}; needed: {[*stacked, *shape]}, for {packing}")

    def _usual(self):
        """The type of most weights that are stored as they are."""
        sums = {}
        for each in self.weights.values():
            if not each.layout and each.values.dtype in FLOATS:
                sums[each.values.dtype] = sums.get(each.values.dtype, 0) + each.elements
        return max(sums, key=sums.get) if sums else "BF16"

    def _differs(self, name, problem):
        self.differences.append((name, problem))

    def _sort(self, name):
        """A weight that the model has no use for: a copy, a prediction module, a buffer, or a difference."""
        from ..huggingface.names import COPIES
        from ..huggingface.tensors import idle, of_text

        place = self._found.get(COPIES.get(name) or COPIES.get(of_text(name)))
        if place is not None and name not in place.names:
            original = self._names.get(place.names[0])
            if original is None or self.weights[original].shape != self.weights[name].shape:
                self._differs(name, f"no copy of {place.names[0]}, which the config says it is tied to")
            else:
                self.copies[name] = original
        elif self._is_beside(name):
            self.beside.add(name)
        elif self._predicts(name):
            self._prediction(name)
        elif _patterns()[1].fullmatch(name) or idle(name, self.weights):
            self.buffers.add(name)
        elif self.says.model is not None:
            self._differs(name, "not used by the model")

    def _predicts(self, name):
        if re.search(MTP, name):
            return True
        number = re.search(r"(?:layers|blk|h)\.(\d+)\.", name)
        if self.says.model is None or number is None or not self.says.mtp:
            return False
        first = self.says.model.fields["n_layers"]
        return first <= int(number[1]) < first + self.says.mtp

    def _prediction(self, name):
        """A weight of a prediction module; its embedding and head may be copies of the model's."""
        for ending, paths in REPEATED.items():
            place = next((self._found[path] for path in paths if path in self._found), None)
            original = None if place is None else self._names.get(place.names[0])
            if (
                name.endswith(ending)
                and original is not None
                and self.weights[original].shape == self.weights[name].shape
            ):
                self.copies[name] = original
                return
        self.mtp.add(name)

    def _predictions(self):
        """Whether prediction modules have as many parameters as the model says."""
        from ..lenses.params import mtp

        needed, held = mtp(self.says.model), sum(self.weights[name].elements for name in self.mtp)
        if needed and not held:
            self.notes.append(
                f"The config has modules of multi-token prediction ({needed:,} parameters); the file has none."
            )
        elif needed and needed != held:
            names = min(self.mtp)
            self._differs(names, f"modules of multi-token prediction have {held:,} parameters; needed: {needed:,}")

    def _index(self, header):
        """What an index says against what the files say."""
        for name, file in (header.index or {}).items():
            tensor = header.tensors.get(name)
            if tensor is None or tensor.file != file:
                self._differs(
                    name,
                    f"not in {file}, where the index has it" + ("" if tensor is None else f", but in {tensor.file}"),
                )
        if header.index is not None:
            for name in header.tensors.keys() - header.index.keys():
                self._differs(name, f"in {header.tensors[name].file}, and not in the index")


@functools.cache
def _patterns():
    """PARTS, compiled, and what a tensor of no use is called: files may hold hundreds of thousands."""
    from ..huggingface.names import CONSTANTS, LEFT_OVER

    left = "|".join(f"(?:{pattern})" for pattern in (*LEFT_OVER, *CONSTANTS, *GGUF_LEFT_OVER))
    return [(re.compile(pattern), part) for pattern, part in PARTS], re.compile(left)


def _plain(shape):
    return [size for size in shape if size != 1]
