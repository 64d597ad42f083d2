"""Measured kernels against bounds: nothing that was measured may be faster than what lmcalc says nothing beats.

A row of a CSV file is one kernel of one machine: its kind, its sizes, its seconds. Each is built from the components
and primitives that models are built from, traced, and bounded as `report` bounds a phase. No formula stands here.
"""

import csv
import fnmatch
import os

from ..arguments import several
from ..components import load
from ..components.base import Bound
from ..errors import InputError, shown
from ..hardware import machine
from ..lenses.flops import flops
from ..lenses.traffic import traffic
from ..ops import Ops
from ..trace import Array, Trace
from .report import _by_category, _total, bounds

SCHEMA = "lmcalc.measured/1"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

# Why a measurement can beat the bound of its work: columns of the row and what they hold (patterns), and the reason. Of
# a row with more bytes than the cache, only what the cache can have held may be missing from its bound (`resident`).
CAUSES = (
    ({"fits_llc": ("yes", "near"), "bound_by": ("memory",)}, "operands of repeated runs stay in the last-level cache"),
    (
        {
            "kind": ("norm", "rope", "activation", "residual_add"),
            "source": ("vidur*",),
            "bound_by": ("memory",),
            "resident": ("yes",),
        },
        "the kernel runs right behind the one that makes its operand, part of which is still in the last-level cache",
    ),
    (
        {"dtype": ("bf16",), "dtype_cache": ("fp8",), "bound_by": ("compute",)},
        "declared bf16, but over an fp8 cache kernels multiply in fp8",
    ),
)


def measured(paths, progress=None):
    """{schema, files, distribution, above, skipped, failed}: bound/measured of every row of CSV files.

    distribution: quantiles by kind and machine. above: the rows that beat their bound, each with its cause, or None
    where it has none; `failed` counts those without a cause whose operands do not fit the cache. skipped: kinds of rows
    that no bound is made for, and how many. Raises InputError, with file, line and column.
    """
    ratios, above, skipped, read = {}, [], {}, []
    for path in several(paths):
        rows, known = 0, {}
        for line, row in _rows(path):
            kind, why = _get(row, "kind", path, line), None
            if kind not in KINDS:
                why = f"{kind}: no bound is made for this kind yet"
            elif row.get("devices", "1") not in ("", "1"):
                why = f"{kind}: of {row['devices']} devices"
            elif row.get("moe_ep", "1") not in ("", "1"):
                why = f"{kind}: experts of several ranks (moe_ep)"
            if why is not None:
                skipped[why] = skipped.get(why, 0) + 1
                continue
            try:
                found = bound(row, known)
                seconds = float(row["seconds"])
            except (KeyError, ValueError, InputError) as error:
                raise InputError(f"{path}, line {line}: {_said(error)}") from None
            if not seconds > 0:
                raise InputError(f"{path}, line {line}: seconds = {row['seconds']}; allowed: a number above 0")
            ratio = found["bound_s"] / seconds
            ratios.setdefault((kind, row["machine"]), []).append(ratio)
            if ratio > 1:
                above.append(_above(path, line, row, found, ratio, seconds))
            rows += 1
        read.append({"file": str(path), "rows": rows})
        if progress is not None:
            progress(str(path))
    kinds = list(dict.fromkeys(kind for kind, _ in ratios))
    distribution = [
        {
            "kind": kind,
            "machine": on,
            "rows": len(values),
            **{f"q{int(100 * q):02}": _quantile(values, q) for q in QUANTILES},
            "largest": max(values),
            "above": sum(value > 1 for value in values),
        }
        for (kind, on), values in sorted(ratios.items(), key=lambda each: kinds.index(each[0][0]))
    ]
    failed = [each for each in above if each["fits_llc"] == "no" and each["cause"] is None]
    return {
        "schema": SCHEMA,
        "files": read,
        "distribution": distribution,
        "above": above,
        "skipped": [{"what": what, "rows": count} for what, count in skipped.items()],
        "failed": len(failed),
    }


def _rows(path):
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"measured {shown(path)} is a {type(path).__name__}; allowed: a path to a .csv file")
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device would never end
        raise InputError(f"{path}: not a regular file")
    try:
        with open(path, newline="", encoding="utf-8") as file:
            yield from enumerate(csv.DictReader(file), start=2)
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _get(row, column, path, line):
    if row.get(column) in (None, ""):
        raise InputError(f"{path}, line {line}: column {column} is missing or empty")
    return row[column]


def _said(error):
    return f"column {error} is missing" if isinstance(error, KeyError) else str(error)


def _quantile(values, q):
    """By linear interpolation between the two nearest."""
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def _above(path, line, row, found, ratio, seconds):
    """What is known of a row that beats its bound, and the first cause that applies."""
    one, fits = machine(row["machine"]), row.get("fits_llc", "")
    cache = one.card["memory"].get("last_level_cache_MB", 0) * 2**20
    resident = (found["bytes"] - cache) / one.bandwidth <= seconds
    asked = row | {"bound_by": found["bound_by"], "resident": "yes" if resident else "no"}
    cause = next(
        (
            reason
            for columns, reason in CAUSES
            if all(
                any(fnmatch.fnmatch(asked.get(name) or "", pattern) for pattern in patterns)
                for name, patterns in columns.items()
            )
        ),
        None,
    )
    return {
        "file": str(path),
        "line": line,
        "kind": row["kind"],
        "machine": row["machine"],
        "fits_llc": fits,
        "bound_by": found["bound_by"],
        "bound_s": found["bound_s"],
        "seconds": seconds,
        "ratio": ratio,
        "cause": cause,
    }


# The bound of a row ----------------------------------------------------------------------------------------------


class Kernel:
    """One kernel, as `report.bounds` takes a phase: what it computes, and the bytes that it cannot do without."""

    def __init__(self, trace, storage):
        self.bound_classes = flops(trace)[0]
        self.bound_bytes = _by_category(traffic(trace, storage, "ideal"))


def bound(row, known=None):
    """{bound_s, bound_by, bytes, ...} of a row: its kernel at the dense peaks and the bandwidth of its machine."""
    one, size = machine(row["machine"]), _Sizes(row)
    key = row["kind"], *[(name, value) for name, value in row.items() if name not in IRRELEVANT]
    kernel = None if known is None else known.get(key)
    if kernel is None:
        kernel = Kernel(*KINDS[row["kind"]](size))
        if known is not None:
            known[key] = kernel
    dtype = row.get("peak_dtype") or row["dtype"]
    found = bounds(kernel, one.bandwidth, one.matrix_peak(dtype)[0], one.vector_peak()[0])
    return found | {"bytes": _total(kernel.bound_bytes), "flops": _total(kernel.bound_classes)}


IRRELEVANT = (
    "machine",
    "seconds",
    "source",
    "licence",
    "backend_version",
    "kernel",
    "model",
    "tp",
    "bytes_min",
    "bound_s_simple",
    "bound_by",
    "peak_dtype",
    "fits_llc",
    "value",
    "unit",
    "mfu_printed",
    "GBps_printed",
)

# as the tables call a storage type, where not as we do: blocks of 128 x 128 have a scale, which is not counted
STORED = {"fp8-block": "fp8"}


class _Sizes:
    """The columns of a row as ints, and its storage types."""

    def __init__(self, row):
        self._row = row

    def __getattr__(self, name):
        text = self._row[name]
        if not (text.isascii() and text.isdigit()) or (name != "window" and int(text) == 0):
            raise ValueError(f"{name} = {text!r}; allowed: an integer from 1")
        return int(text)

    def word(self, name):
        return self._row[name]

    def one_of(self, name, table):
        """What a table has for the word in a column."""
        if self._row[name] not in table:
            raise ValueError(f"{name} = {self._row[name]!r}; allowed: {', '.join(table)}")
        return table[self._row[name]]

    def storage(self):
        """{slot: dtype} for the traffic lens."""
        dtype = self._row["dtype"]
        found = {slot: self._row.get(f"dtype_{slot}") or dtype for slot in ("weights", "activations", "cache")}
        return {slot: STORED.get(name, name) for slot, name in found.items()} | {"state": "fp32", "conv": "fp32"}


def _begin(batch, new, past=0, **options):
    return Ops(batch, new, past, **options)


def _input(axes, sizes, role="activation", dtype="activations"):
    return Array(axes, sizes, role, dtype, "given")


def _done(ops, inputs, output, size):
    """(trace, storage) of what was recorded."""
    ops.trace.inputs, ops.trace.outputs = inputs, [output]
    return ops.trace, size.storage()


def _written(ops, x, size):
    """x as it is written: activations of 8 bits or less leave a product in 16."""
    return x if size.storage()["activations"] in ("bf16", "fp16", "fp32") else ops.cast(x, "bf16")


def gemm(size):
    """[m, k] x [k, n], `batch` copies of both operands."""
    copies, ops = size.batch, _begin(size.batch, size.m)
    x = _input("BTD", (copies, size.m, size.k))
    weight = Array("BDF", (copies, size.k, size.n), "weight", "weights", "weight", blocks=(1,))
    with ops.fused("gemm"):
        out = _written(ops, ops.einsum("BTD,BDF->BTF", x, weight), size)
    return _done(ops, [x], out, size)


def attention(size):
    """The core of attention: scores, softmax, mixing. A cache holds the context, the new tokens included."""
    new, window = size.new_tokens, size.window or None
    kv, group = size.n_kv_heads, size.n_heads // size.n_kv_heads
    values = load(("attention", "Values"))(size.v_head_dim) if size.v_head_dim != size.head_dim else None
    core = load(("attention", "Attention"))(0, kv, group, size.head_dim, window=window, values=values)
    ops, u = _begin(size.batch, new, size.context - new), core.value_axis
    keys, role = ops.span(window)[1], "activation" if size.context == new else "cache"
    q = _input("BTKRH", (size.batch, new, kv, group, size.head_dim))
    k = _input("BSKH", (size.batch, keys, kv, size.head_dim), role, "cache")
    v = _input(f"BSK{u}", (size.batch, keys, kv, size.v_head_dim), role, "cache")
    with ops.fused("core"):
        out = core.mix(ops, Bound(ops, core, "", "attention"), q, k, v, ops.causal(window))
    return _done(ops, [q, k, v], out, size)


def latent(size):
    """The core of latent attention, without its projections: expanded for a prompt, absorbed for one token."""
    norm = load(("norms", "RMSNorm"))(size.kv_lora, axis="C")
    core = load(("latent", "LatentAttention"))(
        0, size.n_heads, size.qk_nope, size.qk_rope, size.v_head_dim, size.kv_lora, norm
    )
    new, keys = size.new_tokens, size.context
    ops = _begin(size.batch, new, keys - new)
    role = "activation" if new == keys and size.word("kind") == "mla_prefill" else "cache"
    dtype = "activations" if role == "activation" else "cache"
    q = _input("BTNH", (size.batch, new, size.n_heads, size.qk_nope))
    turned = _input("BTNZ", (size.batch, new, size.n_heads, size.qk_rope))
    held = _input("BSC", (size.batch, keys, size.kv_lora), role, dtype)
    rope = _input("BSZ", (size.batch, keys, size.qk_rope), role, dtype)
    way = core.expanded if size.word("kind") == "mla_prefill" else core.absorbed
    way(ops, Bound(ops, core, "", "attention"), q, turned, held, rope, ops.causal())
    return _part(ops, "core"), size.storage()


def _part(ops, name):
    """The trace of one kernel of what was recorded: what it reads of others is its input, what it writes last its
    output."""
    found = Trace(ops.trace.batch, ops.trace.new, ops.trace.past)
    found.ops = next(group for path, _, group in ops.trace.kernels() if path.rpartition("/")[2] == name)
    born = {id(each.base) for op in found.ops for each in op.writes}
    found.inputs = [each for op in found.ops for each in op.reads if id(each.base) not in born]
    found.outputs = list(found.ops[-1].writes)
    return found


def moe(size):
    """The feed-forwards of a token's experts and their sum, where the routing is given; of one rank of `moe_tp`."""
    inter, ops = size.inter // size.moe_tp, _begin(1, size.new_tokens)
    kind = "GatedFeedForward" if size.word("gated") == "yes" else "FeedForward"
    ffn = load(("feed_forward", kind))(
        size.hidden, inter, "silu" if size.word("gated") == "yes" else "relu2", part="moe_experts"
    )
    experts = load(("moe", "Experts"))(size.experts, size.experts, size.topk, ffn)
    x = _input("BTD", (1, size.new_tokens, size.hidden))
    index = _input("BTA", (1, size.new_tokens, size.topk), "index", "int32")
    weights = _input("BTA", (1, size.new_tokens, size.topk), "activation", "fp32")
    made = Bound(ops, experts, "", "experts")(x, index)
    with ops.fused("combine"):
        out = _written(ops, ops.sum(ops.multiply(made, weights), "A"), size)
    return _done(ops, [x, index, weights], out, size)


def norm(size):
    """A norm of each token."""
    one = load(("norms", size.one_of("norm_type", {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"})))(size.hidden)
    ops, x = _begin(1, size.new_tokens), _input("BTD", (1, size.new_tokens, size.hidden))
    return _done(ops, [x], Bound(ops, one, "", "norm")(x), size)


def rope(size):
    """Queries and keys turned to their positions."""
    ops, tables = _begin(1, size.new_tokens), load(("rotary", "Rotary"))(size.head_dim)
    q = _input("BTNH", (1, size.new_tokens, size.n_heads, size.head_dim))
    k = _input("BTKH", (1, size.new_tokens, size.n_kv_heads, size.head_dim))
    outs = [ops.rotate(each, tables) for each in (q, k)]
    found = _done(ops, [q, k], outs[0], size)
    ops.trace.outputs = outs
    return found


def activation(size):
    """The activation of a feed-forward, with its gate if it has one."""
    gated, ops = size.word("gated") == "yes", _begin(1, size.new_tokens)
    name = size.one_of("function", {"gelu": "gelu", "silu*up": "silu"})
    one = load(("feed_forward", "GatedFeedForward" if gated else "FeedForward"))(0, size.inter, name)
    up = _input("BTF", (1, size.new_tokens, size.inter))
    if not gated:
        return _done(ops, [up], one.activated(ops, None, up), size)
    gate = _input("BTF", (1, size.new_tokens, size.inter))
    with ops.fused("activation"):
        out = one.gated(ops, gate, up)
    return _done(ops, [gate, up], out, size)


def residual_add(size):
    """The sum of two branches, or of three."""
    ops = _begin(1, size.new_tokens)
    inputs = [_input("BTD", (1, size.new_tokens, size.hidden)) for _ in range(size.n_inputs)]
    out = inputs[0]
    with ops.fused("residual"):
        for each in inputs[1:]:
            out = ops.add(out, each)
    return _done(ops, inputs, out, size)


def embedding(size):
    """A row of the table for each token; which ones is not known, so that only one is certain to be read."""
    ops, one = _begin(1, size.new_tokens), load(("embeddings", "TokenEmbedding"))(size.vocab, size.hidden)
    tokens = _input("BT", (1, size.new_tokens), "index", "int32")
    return _done(ops, [tokens], Bound(ops, one, "", "embedding")(tokens), size)


KINDS = {
    "gemm": gemm,
    "attention_prefill": attention,
    "attention_decode": attention,
    "mla_prefill": latent,
    "mla_decode": latent,
    "moe": moe,
    "norm": norm,
    "rope": rope,
    "activation": activation,
    "residual_add": residual_add,
    "embedding": embedding,
}
