"""The command line: parse, ask one question, render. Heavy imports happen inside the command that needs them."""

import argparse
import os
import signal
import sys

from . import __version__
from .errors import InputError
from .options import GROUPS, changes, conventions, pairs, workload
from .render import ENDINGS, FORMATS, STREAMED, outlet
from .words import counted


def main(argv=None):
    """Run one command; returns the exit status (0 done, 1 a check failed, 2 bad usage or input)."""
    outlet.prepare()
    if argv is None:  # as a process of its own: ended, it leaves nothing half written
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        given = sys.argv[1:] if argv is None else argv
        options = parser(next(iter(given), None)).parse_args(given)
        if options.output is not None:
            outlet.check(options.output)
            if "plot" not in options or not _is_picture(options.output):  # a name that stands for no format is
                form(options, STREAMED if options.command == "sweep" else ())  # refused before any work
        text, status = COMMANDS[options.command][0](options)
        if text is not None:
            write(text, options.output)
        return status
    except InputError as error:
        outlet.say(f"lmcalc: {error}")
        return 2
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        outlet.say("lmcalc: interrupted")
        return 130


def write(text, path):
    """Text to standard output, or to a file that is whole or not there."""
    with outlet.Outlet(path) as out:
        out.write(text)


def form(options, more=()):
    """The format asked for: by -f, or by the ending of the file's name."""
    if options.format or options.output is None:
        return options.format or "table"
    known = {**ENDINGS, **dict(zip(more, more))}
    ending = os.path.splitext(options.output)[1].lower()
    if os.path.isfile(options.output) or not os.path.exists(options.output):  # not a device
        if ending not in {"", *(f".{each}" for each in known)}:
            raise InputError(f"-o {options.output}: {ending} is no format of {options.command}; allowed: "
                             f".{', .'.join(known)}, or any name with -f")  # fmt: skip
    return known.get(ending[1:], "table")


def rendered(options, data, view, **more):
    """The data in the format asked for; `view` is the module of render/ that draws its table."""
    from .render import rendered

    return rendered(form(options), data, view, to_file=options.output is not None, **more)


# Commands: each takes the parsed options, returns (text, exit status) ----------------------------------------------


def report(options):
    """what a model costs, and how fast a machine can be at it"""
    from .questions.report import report as ask

    data = ask(options.model, options.hardware, set=changes(options, options.model),
               set_hardware=pairs("--set-hardware", options.set_hardware),
               **workload(options)).to_dict()  # fmt: skip
    return rendered(options, data, "report"), 0


def compare(options):
    """models, or variants of one, side by side, and why they differ"""
    from .questions.compare import compare as ask

    variants, path = [pairs("--variant", text.split(",")) for text in options.variant], pictured(options)
    set = [changes(options, each) for each in options.model]
    data = ask(options.model, variants, options.hardware, set=set,
               set_hardware=pairs("--set-hardware", options.set_hardware), why=True if options.why else None,
               **workload(options))  # fmt: skip
    text = rendered(options, data, "compare")
    if path is not None:
        from .plot.compare import draw
        from .questions.compare import curves

        lines = curves(options.model, variants, set=set, **workload(options))
        plotted(draw(data, lines, options.dark), path)
    return text, 0


def roofline(options):
    """models under the roofs of machines: the plot (-o FILE.png, .svg, .pdf), and the table behind it"""
    from .questions.roofline import roofline as ask

    if options.interactive and not str(options.output).endswith(".html"):
        raise InputError("--interactive writes one HTML file; allowed: -o FILE.html")
    if options.interactive and (options.plot is not None or options.format not in (None, "html")):
        other = f"--plot {options.plot}" if options.plot is not None else f"-f {options.format}"
        raise InputError(f"--interactive with {other}; allowed: --interactive -o FILE.html alone")
    path = pictured(options)
    data = ask(options.model, options.hardware, options.points, set=[changes(options, each) for each in options.model],
               set_hardware=pairs("--set-hardware", options.set_hardware), **workload(options))  # fmt: skip
    if options.interactive:
        from .interactive import page

        return page(data), 0
    text = rendered(options, data, "roofline", plot=path is None)
    if path is not None:
        from .plot.roofline import draw

        plotted(draw(data, options.dark), path)
    return text, 0


PICTURES = ("png", "svg", "pdf")


def pictured(options):
    """Where to draw: --plot FILE, or -o FILE that ends like a picture (the table is then not for a file), else None."""
    named = [path for path in (options.plot, options.output) if path is not None and _is_picture(path)]
    if options.plot is not None and options.plot not in named:
        raise InputError(f"--plot {options.plot}: allowed: a file that ends in .{', .'.join(PICTURES)}")
    if len(named) > 1:
        raise InputError(f"--plot {named[0]} and -o {named[1]}: two pictures; allowed: one, and -o for the table")
    if options.output in named:
        options.output = None
    for path in named:
        outlet.check(path, "-o" if options.plot is None else "--plot")
    return next(iter(named), None)


def _is_picture(path):
    return str(path).rpartition(".")[2].lower() in PICTURES


def plotted(figure, path):
    """Write a figure as what its file's name says."""
    from .plot import drawn

    write(drawn(figure, path.rpartition(".")[2].lower()), path)


def sweep(options):
    """grids over sizes, dtypes, conventions, machines and any field of a model: a row a point"""
    from .questions.sweep import Sweep
    from .questions.vary import parsed
    from .render.stream import answer

    columns, path = None if options.columns is None else options.columns.split(","), pictured(options)
    chosen = {name: value for name, value in workload(options).items() if value is not False}
    fields = [changes(options, each) for each in options.model]
    asked = Sweep(options.model, options.hardware, columns, fields, pairs("--set-hardware", options.set_hardware),
                  parsed(options.vary), options.engine, options.scheduler, chosen)  # fmt: skip
    if columns is not None and not {*columns} & {*asked.grid.axes}:  # rows say which point they are
        asked = asked.of([*(name for name, values in asked.grid.axes.items() if len(values) > 1), *asked.columns])
    if path is not None:
        from .plot.sweep import draw, needed

        names, all_names = needed(asked, columns is not None)
        plotted(draw(asked.of(all_names).held(), names, columns is not None, options.dark), path)
    return answer(asked, form(options, STREAMED), options.output, options.wide, columns is not None, path is not None)


def models(options):
    """the model cards"""
    from .questions.catalogue import models as ask

    rows = ask(options.family, options.where)
    return rendered(options, rows, "catalogue", what="axes" if options.axes else "models"), 0


def hardware(options):
    """the machines"""
    from .questions.catalogue import hardware as ask

    return rendered(options, ask(where=options.where), "catalogue", what="hardware"), 0


def show(options):
    """a drawing of a model, its parameters by part, and how usual its ratios and choices are"""
    from .questions.show import show as ask

    return rendered(options, ask(options.model, pairs("--set", options.set)), "show"), 0


def validate(options):
    """reference forwards of shrunken copies, counted, against what was predicted; or measured times against bounds"""
    if options.measured is not None:
        return measured(options)
    if options.plot is not None:
        raise InputError(f"--plot {options.plot}: allowed: with --measured FILE alone")
    if options.published:
        if options.model:
            raise InputError(f"--published {options.model[0]}: allowed: --published alone, which needs no model")
        from .questions.published import published

        data = published()
        return rendered(options, data, "published"), 1 if data["failed"] else 0
    from .questions.validate import validate as ask

    shown = sys.stderr.isatty()
    data = ask(
        options.model, progress=(lambda name: print(f"\r\033[K{name}", end="", file=sys.stderr)) if shown else None
    )
    if shown:
        print("\r\033[K", end="", file=sys.stderr)
    return rendered(options, data, "validate"), 1 if data["failed"] else 0


def measured(options):
    """What `validate` does with measured kernels."""
    if options.model or options.published:
        other = "--published" if options.published else options.model[0]
        raise InputError(f"--measured with {other}: allowed: --measured alone")
    from .questions.measured import measured as ask

    data, path = ask(options.measured), pictured(options)
    if path is not None:
        from .plot.measured import draw

        plotted(draw(data, options.dark), path)
    return rendered(options, data, "measured"), 1 if data["failed"] else 0


def inspect(options):
    """checkpoints by their headers alone: parameters, bytes, bits a weight, and where they differ from their config"""
    from .questions.inspect import inspect as ask

    data = ask(options.path, options.against)
    return rendered(options, data, "inspect"), 1 if data["differences"] else 0


def schema(options):
    """the JSON schema of what a command prints with -f json"""
    import json

    from .schemas import schema as ask

    if options.format not in (None, "json") or form(options) not in ("table", "json"):
        given = f"-f {options.format}" if options.format else f"-o {options.output}"
        raise InputError(f"{given}: a schema is JSON; allowed: -f json, or -o FILE.json")
    return json.dumps(ask(options.name), indent=2) + "\n", 0


def formula(options):
    """a cost as a formula: of a model in its workload, or of one variant in its sizes; derivations of the lecture"""
    if options.lecture is not None or options.list:
        alone, named = "--list" if options.lecture is None else "--lecture", [options.what] if options.what else []
        further = {"phase": "phase", "values": "with", **{name: name for name in ("when", "set", "latex", "terms")}}
        others = named + [f"--{word}" for name, word in further.items() if getattr(options, name)]
        if others:
            allowed = "--list alone" if options.lecture is None else "--lecture NAME alone"
            raise InputError(f"formula {others[0]}: not with {alone}; allowed: {allowed}")
    if options.lecture is not None:
        from .lecture import ask

        return rendered(options, ask(options.lecture or None), "lecture"), 0
    from .questions.formula import formula as ask
    from .questions.formula import listed

    if options.list:
        return rendered(options, listed(), "formula"), 0
    if options.what is None:
        raise InputError("formula: allowed: a model, a variant (--list names them), or --lecture")
    given = pairs("--with", [part for text in options.values for part in text.split(",")])
    given = {
        name: counted(value) if isinstance(value, str) and counted(value) is not None else value
        for name, value in given.items()
    }
    data = ask(
        options.what,
        options.of,
        options.phase,
        given,
        options.when,
        pairs("--set", options.set),
        **conventions(options),
    )
    more = {"latex": options.latex, "terms": options.terms} if form(options) == "table" else {}
    return rendered(options, data, "formula", **more), 0


COMMANDS = {
    "report": (report, "model hardware workload"),
    "compare": (compare, "several variants why plot hardware workload"),
    "roofline": (roofline, "several points plot hardware workload"),
    "sweep": (sweep, "vary plot hardware workload"),
    "models": (models, "family where"),
    "hardware": (hardware, "where"),
    "formula": (formula, "formula conventions changes"),
    "show": (show, "model changes"),
    "validate": (validate, "models published measured plot"),
    "inspect": (inspect, "checkpoint"),
    "schema": (schema, "named"),
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all others."""

    def error(self, message):
        raise InputError(f"{message}; usage: {self.prog} --help")


def parser(only=None):
    """The argument parser of all commands, or of `only` one, which starts faster."""
    top = Parser(prog="lmcalc", description="What a language-model architecture costs, exactly.")
    top.add_argument("--version", action="version", version=f"lmcalc {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in [only] if isinstance(only, str) and only in COMMANDS else COMMANDS:
        function, groups = COMMANDS[name]
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__.capitalize() + ".")
        for group in groups.split():
            GROUPS[group](command)
        more = STREAMED if name == "sweep" else ()
        command.add_argument(
            "-f", "--format", choices=(*FORMATS, *more), help="default: by the ending of FILE, else table"
        )
        command.add_argument("-o", "--output", metavar="FILE", help="write to a file")
        command.add_argument(
            "--no-color", action="store_true", help="no colours (NO_COLOR in the environment does the same)"
        )
    return top
