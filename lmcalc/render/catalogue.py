"""The catalogues as tables."""

from ..units import si
from .console import table


def draw(screen, data, what):
    """Print the rows of `models` or `hardware`."""
    {"models": _models, "hardware": _hardware}[what](screen, data, screen.width >= 110)


def _models(screen, data, wide):
    rows = []
    for row in data:
        heads = f"{row['n_heads']}/{row['n_kv_heads']} x {row['head_dim']}" if row["n_heads"] else ""
        sizes = [row["n_layers"], row["d_model"], heads, row["d_ff"], row["vocab_size"]]
        rows.append([row["name"], si(row["params_total"]), *["" if size is None else str(size) for size in sizes],
                     *([row["norm"], row["ffn"], row["positions"]] * wide)])  # fmt: skip
    headings = ["<model", "parameters", "layers", "D", "heads", "d_ff", "vocabulary", *["<norm", "<ffn", "<positions"] * wide]
    table(screen, headings, rows)


def _hardware(screen, data, wide):
    rows = []
    for row in data:
        peaks = [row["peak"].get("bf16"), row["peak"].get("fp8"), row["vector"].get("fp32")]
        ridge = "" if row["ridge_bf16"] is None else f"{row['ridge_bf16']:.0f}"
        rows.append([row["id"], _known(row["memory"], "B"), _known(row["bandwidth"], "B/s"), *map(_known, peaks), ridge,
                     row["grade"] or "", *([row["title"] or ""] * wide)])  # fmt: skip
    headings = ["<machine", "memory", "bandwidth", "bf16", "fp8", "vector", "ridge", "<grade", *["<title"] * wide]
    table(screen, headings, rows)


def _known(value, unit=""):
    return "" if value is None else si(value, unit)
