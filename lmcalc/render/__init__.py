"""Rendering: plain data to screen and file. It computes nothing, and imports what a format needs when it is asked."""

FORMATS = ("table", "json", "csv", "markdown", "html")
STREAMED = ("jsonl", "parquet")  # further ones of a sweep
ENDINGS = {"json": "json", "csv": "csv", "md": "markdown", "html": "html", "htm": "html"}  # of files


def rendered(form, data, view, to_file=False, **more):
    """The data as text in a format; `view` names its question, and the module of render/ that draws its table."""
    if form == "json":
        import json

        return json.dumps(data, indent=2, allow_nan=False) + "\n"
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
