"""The catalogues as tables."""

from ..units import si
from .console import table


def draw(screen, data, what):
    """Print the rows of `models` (their sizes, or the `axes` on which they differ) or `hardware`."""
    if data:
        VIEWS[what](screen, data)
    else:
        screen.print("None: no row for which all that was asked holds.")


def _fitting(screen, headings, rows, last, space=2):
    """A table without those of its `last` columns, from the first on, for which there is no room; they are named."""
    names = [each.removeprefix("<") for each in headings]
    widths = [max(len(name), *(len(row[at]) for row in rows)) + space for at, name in enumerate(names)]
    left = []
    for name in last:
        if sum(widths) - space <= screen.width:
            break
        at = names.index(name)
        left.append(name)
        widths[at] = 0
    shown = [at for at, name in enumerate(names) if name not in left]
    table(screen, [headings[at] for at in shown], [[row[at] for at in shown] for row in rows], space=space)
    if left:
        screen.print(f"\nNot shown in {screen.width} columns: {', '.join(left)} (-f csv has all).", markup=False)


def _models(screen, data):
    rows = []
    for row in data:
        heads = f"{row['n_heads']}/{row['n_kv_heads']} x {row['head_dim']}" if row["n_heads"] else ""
        sizes = [row["n_layers"], row["d_model"], heads, row["d_ff"], row["vocab_size"]]
        count = "not counted" if row["params_total"] is None else si(row["params_total"])
        rows.append(
            [row["name"], count, *map(_text, sizes), *(_text(row[name]) for name in ("norm", "ffn", "positions"))]
        )
    headings = ["<model", "parameters", "layers", "D", "heads", "d_ff", "vocabulary", "<norm", "<ffn", "<positions"]
    _fitting(screen, headings, rows, ("positions", "norm", "ffn", "vocabulary", "d_ff"))
    if any(row["params_total"] is None for row in data):
        screen.print("\nnot counted: no architecture on the card; -f json has what is known.")


# words of the fields where a column is narrow
SHORT = {
    "rmsnorm": "rms", "rmsnorm_plus_one": "rms+1", "rmsnorm_plain": "rms -", "layernorm": "ln",
    "layernorm_no_bias": "ln w", "layernorm_plain": "ln -", "layernorm_plus_one": "ln+1",
    "output": "out", "serial": "", "parallel": "par", "parallel_two_norms": "par",
    "rotary": "rope", "sinusoidal": "sine", "relative_bias": "bias", "relative_shaw": "shaw", "relative_xl": "xl",
    "gelu_tanh": "gelu", "geglu_tanh": "geglu", "swiglu_clamped": "swiglu", "swiglu_limited": "swiglu",
    "swiglu_capped": "swiglu", "none": "no",
    "mamba": "ssm", "mamba2": "ssm2", "gated_delta": "gdn", "kimi_delta": "kda", "lightning": "light",
    "compressed": "comp",
}  # fmt: skip


def _axes(screen, data):
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
        rows.append([row["name"], _short(row["norm"]), place, *words, *ratios, vocabulary, *rest])
    headings = ["<model", "<norm", "<place", "<ffn", "<pos", "<attn", "F/D", "NH/D", "D/L", "V", "<tied", "dropout",
                "decay"]  # fmt: skip
    _fitting(screen, headings, rows, ("decay", "dropout", "tied", "D/L", "place", "V", "NH/D", "pos"), space=1)


GRADES = """bf16, fp8: dense peaks of matrix units, FLOP/s; vector: fp32 FLOP/s; ridge: FLOP/B at which bf16 (or fp16,
tf32, fp32, vector units, where a machine has none) turns compute bound.
grade: where the figures come from: seen (in the maker's own documents or a copy of them), recalled, or mixed."""


def _hardware(screen, data):
    rows = []
    for row in data:
        peaks = [row["peak"].get("bf16"), row["peak"].get("fp8"), row["vector"].get("fp32")]
        ridge = "" if row["ridge_bf16"] is None else f"{row['ridge_bf16']:.0f}"
        rows.append([row["id"], _known(row["memory"], "B"), _known(row["bandwidth"], "B/s"), *map(_known, peaks), ridge,
                     row["grade"] or "", row["title"] or ""])  # fmt: skip
    headings = ["<machine", "memory", "bandwidth", "bf16", "fp8", "vector", "ridge", "<grade", "<title"]
    _fitting(screen, headings, rows, ("title", "grade", "ridge"))
    screen.print(f"\n{GRADES}", markup=False)


VIEWS = {"models": _models, "axes": _axes, "hardware": _hardware}


def _known(value, unit=""):
    return "" if value is None else si(value, unit)


def _text(value):
    return "" if value is None else str(value)


def _short(value):
    return "+".join(SHORT.get(each, each) for each in _text(value).split("+"))


def _ratio(value, digits):
    return "" if value is None else f"{value:.{digits}f}"
