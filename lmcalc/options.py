"""What the command line takes: options in groups, and what was given as plain values."""

from .errors import InputError
from .words import number, whole

SIZES = {
    "batch": ("-b", "sequences"),
    "prompt": ("-p", "new tokens of each at prefill"),
    "context": ("-c", "tokens in the cache at decode"),
    "past": (None, "tokens in the cache before prefill"),
}
CHOSEN = {
    "weights": "dtype that weights are stored in (bf16 fp16 fp8 int8 int4 mxfp4 ...)",
    "activations": "dtype of activations; contractions run at its peak",
    "cache": "dtype of the cache",
    "state": "dtype of recurrent state",
    "mask": "causal (only allowed pairs) or full (the rectangle)",
    "logits": "last (position of the prompt) or all",
    "traffic": "fused, unfused or ideal",
    "experts": "whose weights are read: expected, min, max or all",
    "expert_skew": "popularity of experts as rank**-X, for expected (default 0: all alike)",
    "mla": "best, expanded or absorbed",
}


def _model(command):
    command.add_argument(
        "model",
        metavar="MODEL",
        help="a card's name (see lmcalc models), a path to a card, a config.json or .gguf file, or a folder with one, "
        "or a hub id",
    )


def _models(command):
    command.add_argument("model", metavar="MODEL", nargs="*", help="cards (default: all)")


def _published(command):
    command.add_argument(
        "--published",
        action="store_true",
        help="papers' formulas and tables against ours; exit 1 for a miss without a reason",
    )


def _changes(command):
    command.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="what if: n_layers=16, n_kv_heads=1, ..."
    )


def _checkpoint(command):
    command.add_argument("path", metavar="PATH", help="a folder, a .safetensors or .gguf file, an index, or a hub id")
    command.add_argument("--against", metavar="MODEL", help="a model to hold it against (default: its config.json)")


def _several(command):
    command.add_argument("model", metavar="MODEL", nargs="+", help="models; ratios are to the first")


def _why(command):
    command.add_argument(
        "--why",
        action="store_true",
        help="attribute differences to features for any number of models (default: up to 6)",
    )


PLOTS = {
    "compare": "parameters by part, cache and FLOPs against context",
    "roofline": "the roofs and the points under them",
    "sweep": "the --columns: lines against one axis, or heat maps over two long ones",
    "validate": "the bounds of --measured over what was measured",
}


def _plot(command):
    what = PLOTS[command.prog.split()[-1]]
    command.add_argument("--plot", metavar="FILE", help=f"draw {what} (.png .svg .pdf; -o takes such a FILE too)")
    command.add_argument("--dark", action="store_true", help="a plot for dark pages")


def _points(command):
    command.add_argument(
        "--points", choices=("phase", "kernel"), default="phase", help="a point a phase (default), or a kernel"
    )
    command.add_argument(
        "--interactive",
        action="store_true",
        help="write a page (-o FILE.html) with hover and toggles, that needs no network",
    )


def _measured(command):
    command.add_argument(
        "--measured",
        metavar="FILE",
        nargs="+",
        help="measured kernels (.csv) against their bounds; -o FILE.png draws them",
    )


def _variants(command):
    command.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="FIELD=VALUE[,...]",
        help="the model with these fields changed; repeatable",
    )


def _vary(command):
    command.add_argument("model", metavar="MODEL", nargs="+", help="models; each has a grid of its own")
    axes = "batch=1,8,64  n_layers=8:64:8  context=1k:128k:log2 (k = 1024, ends included)"
    command.add_argument(
        "--vary", action="append", default=[], metavar="NAME=VALUES", help=f"an axis: {axes}; repeatable"
    )
    command.add_argument("--columns", metavar="NAME,...", help="which columns (default: the usual ones)")
    command.add_argument("--wide", metavar="NAME", help="the values of this axis side by side, not below each other")
    command.add_argument("--engine", choices=("numpy", "dask"), default="numpy", help="whose arrays (default numpy)")
    command.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster (default: threads of this process)")


def _named(command):
    command.add_argument("name", metavar="COMMAND", help="report, compare, sweep, validate, inspect ...")


def _family(command):
    command.add_argument("--family", metavar="F", help="only this family")
    command.add_argument(
        "--axes", action="store_true", help="what models choose (norm, activation, positions, ratios), not their sizes"
    )


def _where(command):
    command.add_argument(
        "--where",
        metavar="EXPR",
        help="only rows for which it holds, over the fields of -f json (None where unknown)",
    )


def _hardware(command):
    command.add_argument(
        "-H",
        "--hardware",
        action="append",
        default=[],
        metavar="HARDWARE",
        help="a machine (see lmcalc hardware), or a path to its .toml file; repeatable",
    )
    command.add_argument(
        "--set-hardware",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="what if: bandwidth=3.0e12, peak.bf16=1e15, memory=96e9",
    )


def _formula(command):
    command.add_argument(
        "what",
        metavar="MODEL_OR_VARIANT",
        nargs="?",
        help="a model as for report, or a variant: gqa, swiglu, moe, serial, ... (--list)",
    )
    command.add_argument(
        "--of", default="flops", metavar="X", help="params, flops (default), bytes, intensity, cache, state or kept"
    )
    command.add_argument("--phase", metavar="X", help="prefill (default) or decode")
    command.add_argument(
        "--with", action="append", default=[], dest="values", metavar="D=4096", help="numbers for symbols; repeatable"
    )
    command.add_argument(
        "--when",
        action="append",
        default=[],
        metavar="COND",
        help="leading order: 'S >> D', 'B -> oo'; 'S > W' assumes, 'T = S' substitutes; repeatable",
    )
    command.add_argument("--terms", action="store_true", help="term by term, too")
    command.add_argument("--latex", action="store_true", help="as LaTeX")
    command.add_argument("--list", action="store_true", help="quantities, variants and symbols")
    command.add_argument(
        "--lecture", nargs="?", const="", metavar="NAME", help="the derivations of the lecture, or one of them"
    )


def _workload(command):
    for name, (short, meaning) in SIZES.items():
        command.add_argument(*([short] if short else []), f"--{name}", metavar="N", help=meaning)
    _conventions(command)
    command.add_argument("--pad-vocab", metavar="N", help="vocabulary rounded up to a multiple of N")
    command.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="what if: n_layers=16, n_kv_heads=1, ..."
    )


def _conventions(command):
    for name, meaning in CHOSEN.items():
        command.add_argument(f"--{name.replace('_', '-')}", metavar="X", help=meaning)
    command.add_argument(
        "--fuse-projections", action="store_true", help="products of one input (Q, K, V; up, gate) read it once"
    )


GROUPS = {
    "formula": _formula,
    "conventions": _conventions,
    "named": _named,
    "changes": _changes,
    "published": _published,
    "checkpoint": _checkpoint,
    "model": _model,
    "models": _models,
    "several": _several,
    "points": _points,
    "why": _why,
    "plot": _plot,
    "measured": _measured,
    "vary": _vary,
    "variants": _variants,
    "family": _family,
    "where": _where,
    "hardware": _hardware,
    "workload": _workload,
}


def workload(options):
    """The workload options that were given, as numbers."""
    sizes = {name: whole(f"--{name}", getattr(options, name)) for name in SIZES if getattr(options, name) is not None}
    return conventions(options) | sizes


def conventions(options):
    """The options of conventions and storage types that were given."""
    found = {name: getattr(options, name) for name in CHOSEN if getattr(options, name) is not None}
    if "expert_skew" in found:
        found["expert_skew"] = number(found["expert_skew"])
    return found | {"fuse_projections": options.fuse_projections}


def pairs(name, given):
    """{field: value} from FIELD=VALUE arguments; values are numbers, true, false or words."""
    found = {}
    for text in given:
        field, equals, value = text.partition("=")
        if not equals or not field or not value:
            raise InputError(f"{name} {text}: allowed: FIELD=VALUE")
        if field in found:
            raise InputError(f"{name} {field} is given twice: {found[field]} and {value}")
        found[field] = number(value)
    return found


def changes(options, model):
    """The fields that --set and --pad-vocab change on a model."""
    found = pairs("--set", options.set)
    if options.pad_vocab is not None:
        from .cards import load

        multiple = whole("--pad-vocab", options.pad_vocab)
        if multiple < 1:
            raise InputError(f"--pad-vocab {options.pad_vocab}: allowed: an integer of at least 1")
        size = load(model, {name: found[name] for name in found if name == "vocab_size"}).fields["vocab_size"]
        found["vocab_size"] = -(-size // multiple) * multiple
    return found
