"""Rendering: plain data to screen and file. It computes nothing, and imports what a format needs when it is asked."""

FORMATS = ("table", "json", "csv", "markdown", "html")
STREAMED = ("jsonl", "parquet")  # further ones of a sweep
ENDINGS = {"txt": "table", "json": "json", "csv": "csv", "md": "markdown", "html": "html", "htm": "html"}  # of files


def rendered(form, data, view, to_file=False, **more):
    """The data as text in a format; `view` names its question, and the module of render/ that draws its table."""
    if form == "json":
        import json

        return json.dumps(data, indent=2, allow_nan=False) + "\n"
    data = printable(data)
    if form != "table":
        from importlib import import_module

        from .flat import tables

        module, name = {"csv": (".text", "csv"), "markdown": (".text", "markdown"), "html": (".html", "page")}[form]
        return getattr(import_module(module, __package__), name)(*tables(view, data, more.get("what")))
    from importlib import import_module

    from . import console

    screen = console.screen(to_file=to_file)
    with screen.capture() as captured:
        import_module(f".{view}", __package__).draw(screen, data, **more)
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))


def printable(data):
    """The same, with what a terminal would take for commands as `?`: names come from files of others."""
    if isinstance(data, str):
        shown = data.isprintable() or "".join(each if each.isprintable() or each == "\n" else "?" for each in data)
        return data if shown is True else shown
    if isinstance(data, dict):
        return {printable(key): printable(each) for key, each in data.items()}
    return [printable(each) for each in data] if isinstance(data, list) else data
