"""The catalogues as tables."""

from ..units import si
from .console import table


def draw(screen, data, what):
    """Print the rows of `models` (their sizes, or the `axes` on which they differ) or `hardware`."""
    {"models": _models, "axes": _axes, "hardware": _hardware}[what](screen, data, screen.width >= 110)


def _models(screen, data, wide):
    rows = []
    for row in data:
        heads = f"{row['n_heads']}/{row['n_kv_heads']} x {row['head_dim']}" if row["n_heads"] else ""
        sizes = [row["n_layers"], row["d_model"], heads, row["d_ff"], row["vocab_size"]]
        rows.append([row["name"], _known(row["params_total"]), *map(_text, sizes),
                     *([_text(row["norm"]), _text(row["ffn"]), _text(row["positions"])] * wide)])  # fmt: skip
    headings = ["<model", "parameters", "layers", "D", "heads", "d_ff", "vocabulary"]
    headings += ["<norm", "<ffn", "<positions"] * wide
    table(screen, headings, rows)


# words of the fields where a column is narrow
SHORT = {
    "rmsnorm": "rms", "rmsnorm_plus_one": "rms+1", "rmsnorm_plain": "rms -", "layernorm": "ln", "layernorm_no_bias": "ln w",
    "layernorm_plain": "ln -", "layernorm_plus_one": "ln+1", "output": "out", "serial": "", "parallel": "par",
    "parallel_two_norms": "par",
    "rotary": "rope", "sinusoidal": "sine", "relative_bias": "bias", "relative_shaw": "shaw", "relative_xl": "xl",
    "gelu_tanh": "gelu", "geglu_tanh": "geglu", "swiglu_clamped": "swiglu", "swiglu_limited": "swiglu", "none": "no",
    "mamba": "ssm", "mamba2": "ssm2", "gated_delta": "gdn", "kimi_delta": "kda", "lightning": "light",
}  # fmt: skip


def _axes(screen, data, wide):
    rows = []
    for row in data:
        place = " ".join(filter(None, (_short(row["norm_placement"]), _short(row["block"]))))
        words = [_short(row[name]) for name in ("ffn", "positions", "attention")]
        ratios = [
            _ratio(row["d_ff_over_d_model"], 1),
            _ratio(row["heads_over_d_model"], 1),
            _ratio(row["d_model_over_n_layers"], 0),
        ]
        vocabulary = "" if row["vocab_size"] is None else f"{row['vocab_size'] / 1000:.0f}k"
        rest = [{True: "yes", False: "no", None: ""}[row["tied"]], _text(row["dropout"]), _text(row["weight_decay"])]
        rows.append([row["name"], _short(row["norm"]), place, *words, *ratios, vocabulary, *rest * wide])
    headings = ["<model", "<norm", "<place", "<ffn", "<pos", "<attn", "F/D", "NH/D", "D/L", "V"]
    table(screen, [*headings, *["<tied", "dropout", "decay"] * wide], rows, space=2 if wide else 1)


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


def _text(value):
    return "" if value is None else str(value)


def _short(value):
    return "+".join(SHORT.get(each, each) for each in _text(value).split("+"))


def _ratio(value, digits):
    return "" if value is None else f"{value:.{digits}f}"
