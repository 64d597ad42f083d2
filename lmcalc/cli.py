"""The command line: parse, ask one question, render. Heavy imports happen inside the command that needs them."""

import argparse
import os
import sys

from . import __version__
from .errors import InputError

FORMATS = ("table", "json")


def main(argv=None):
    """Run one command; returns the exit status (0 done, 1 a check failed, 2 bad usage or input)."""
    try:
        options = parser().parse_args(argv)
        text, status = COMMANDS[options.command][0](options)
        if text is not None:
            write(text, options.output)
        return status
    except InputError as error:
        print(f"lmcalc: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("lmcalc: interrupted", file=sys.stderr)
        return 130


def write(text, path):
    """Text to standard output, or to a file that is whole or not there."""
    if path is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    partial = f"{path}.part"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)
    except OSError as error:
        if os.path.isfile(partial):
            os.remove(partial)
        raise InputError(f"-o {path}: cannot be written: {error.strerror}") from None


def rendered(options, data, view, **more):
    """The data in the format asked for; `view` is the module of render/ that draws its table."""
    if options.format == "json":
        import json

        return json.dumps(data, indent=2, allow_nan=False) + "\n"
    from importlib import import_module

    from .render import console

    screen = console.screen(to_file=options.output is not None)
    with screen.capture() as captured:
        import_module(f".render.{view}", __package__).draw(screen, data, **more)
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))


# Commands: each takes the parsed options, returns (text, exit status) ----------------------------------------------


def report(options):
    """what a model costs, and how fast a machine can be at it"""
    from .questions.report import report as ask

    data = ask(options.model, options.hardware, set=changes(options, options.model), set_hardware=pairs("--set-hardware", options.set_hardware),
               **workload(options)).to_dict()  # fmt: skip
    return rendered(options, data, "report"), 0


def compare(options):
    """models, or variants of one, side by side, and why they differ"""
    from .questions.compare import compare as ask

    variants = [pairs("--variant", text.split(",")) for text in options.variant]
    data = ask(options.model, variants, options.hardware, set=changes(options, options.model[0]),
               set_hardware=pairs("--set-hardware", options.set_hardware), **workload(options))  # fmt: skip
    return rendered(options, data, "compare"), 0


def models(options):
    """the model cards"""
    from .questions.catalogue import models as ask

    rows = ask(options.family, options.where)
    return rendered(options, rows, "catalogue", what="axes" if options.axes else "models"), 0


def hardware(options):
    """the machines"""
    from .questions.catalogue import hardware as ask

    return rendered(options, ask(where=options.where), "catalogue", what="hardware"), 0


def validate(options):
    """reference forwards of shrunken copies, counted by machine, against what was predicted"""
    from .questions.validate import validate as ask

    shown = sys.stderr.isatty()
    data = ask(options.model, progress=(lambda name: print(f"\r\033[K{name}", end="", file=sys.stderr)) if shown else None)
    if shown:
        print("\r\033[K", end="", file=sys.stderr)
    return rendered(options, data, "validate"), 1 if data["failed"] else 0


def inspect(options):
    """checkpoints by their headers alone: parameters, bytes, bits a weight, and where they differ from their config"""
    from .questions.inspect import inspect as ask

    data = ask(options.path, options.against)
    return rendered(options, data, "inspect"), 1 if data["differences"] else 0


COMMANDS = {
    "report": (report, "model hardware workload"),
    "compare": (compare, "several variants hardware workload"),
    "models": (models, "family where"),
    "hardware": (hardware, "where"),
    "validate": (validate, "models"),
    "inspect": (inspect, "checkpoint"),
}

# Options -----------------------------------------------------------------------------------------------------------

SIZES = {"batch": ("-b", "sequences"), "prompt": ("-p", "new tokens of each at prefill"),
         "context": ("-c", "tokens in the cache at decode"), "past": (None, "tokens in the cache before prefill")}  # fmt: skip
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


def parser():
    """The argument parser of all commands."""
    top = argparse.ArgumentParser(prog="lmcalc", description="What a language-model architecture costs, exactly.")
    top.add_argument("--version", action="version", version=f"lmcalc {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (function, groups) in COMMANDS.items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__.capitalize() + ".")
        for group in groups.split():
            GROUPS[group](command)
        command.add_argument("-f", "--format", choices=FORMATS, default="table", help="how to print (default table)")
        command.add_argument("-o", "--output", metavar="FILE", help="write to a file")
        command.add_argument("--no-color", action="store_true", help="no colours (NO_COLOR in the environment does the same)")
    return top


def _model(command):
    command.add_argument("model", metavar="MODEL", help="a card's name (see lmcalc models), a path to a card, config.json or .gguf file, or a hub id")


def _models(command):
    command.add_argument("model", metavar="MODEL", nargs="*", help="cards (default: all)")


def _checkpoint(command):
    command.add_argument("path", metavar="PATH", help="a folder, a .safetensors or .gguf file, an index, or a hub id (org/name)")
    command.add_argument("--against", metavar="MODEL", help="hold it against this model (default: the config.json beside it)")


def _several(command):
    command.add_argument("model", metavar="MODEL", nargs="+", help="models; ratios are to the first")


def _variants(command):
    command.add_argument("--variant", action="append", default=[], metavar="FIELD=VALUE[,...]", help="the model with these fields changed; repeatable")  # fmt: skip


def _family(command):
    command.add_argument("--family", metavar="F", help="only this family")
    command.add_argument("--axes", action="store_true", help="what models choose (norm, activation, positions, ratios), not their sizes")


def _where(command):
    command.add_argument("--where", metavar="EXPR", help="only rows for which it holds: \"n_layers > 60 and attention == 'gqa'\"; fields as in -f json, None where unknown")  # fmt: skip


def _hardware(command):
    command.add_argument("-H", "--hardware", action="append", default=[], metavar="HARDWARE", help="a machine (see lmcalc hardware), or a path to its .toml file; repeatable")
    command.add_argument("--set-hardware", action="append", default=[], metavar="FIELD=VALUE", help="what if: bandwidth=3.0e12, peak.bf16=1e15, memory=96e9")  # fmt: skip


def _workload(command):
    for name, (short, meaning) in SIZES.items():
        command.add_argument(*([short] if short else []), f"--{name}", metavar="N", help=meaning)
    for name, meaning in CHOSEN.items():
        command.add_argument(f"--{name.replace('_', '-')}", metavar="X", help=meaning)
    command.add_argument("--fuse-projections", action="store_true", help="products of one input (Q, K, V; up, gate) read it once")
    command.add_argument("--pad-vocab", metavar="N", help="vocabulary rounded up to a multiple of N")
    command.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="what if: n_layers=16, n_kv_heads=1, ...")


GROUPS = {"checkpoint": _checkpoint, "model": _model, "models": _models, "several": _several, "variants": _variants, "family": _family, "where": _where, "hardware": _hardware, "workload": _workload}


def workload(options):
    """The workload options that were given, as numbers."""
    found = {name: getattr(options, name) for name in CHOSEN if getattr(options, name) is not None}
    if "expert_skew" in found:
        found["expert_skew"] = number(found["expert_skew"])
    found |= {name: whole(f"--{name}", getattr(options, name)) for name in SIZES if getattr(options, name) is not None}
    return found | {"fuse_projections": options.fuse_projections}


def whole(name, text):
    """An integer from the command line; k stands for 1024, _ and , may group digits."""
    plain = text.replace(",", "").replace("_", "")
    factor = 1024 if plain[-1:] in ("k", "K") else 1
    digits = plain[:-1] if factor > 1 else plain
    if not (digits.isascii() and digits.removeprefix("-").isdigit()):
        raise InputError(f"{name} {text}: allowed: an integer, such as 2048 or 2k")
    return int(digits) * factor


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


def number(text):
    """The value of a word on the command line: int, float, bool, or the word itself."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def changes(options, model):
    """The fields that --set and --pad-vocab change on a model."""
    found = pairs("--set", options.set)
    if options.pad_vocab is not None:
        from .cards import load

        multiple = whole("--pad-vocab", options.pad_vocab)
        if multiple < 1:
            raise InputError(f"--pad-vocab {options.pad_vocab}: allowed: an integer of at least 1")
        size = found.get("vocab_size") or load(model).fields["vocab_size"]
        if isinstance(size, int):
            found["vocab_size"] = -(-size // multiple) * multiple
    return found
