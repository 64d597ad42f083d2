"""Where output goes: standard output, or a file that is whole or not there."""

import os
import sys

from ..errors import InputError


def prepare():
    """Standard output that takes any text: what it cannot show becomes `?`, and if it was closed all is lost.

    Standard error, closed, likewise: a status is left.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
    elif hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")


def say(text):
    """A line on standard error; where that takes nothing it is lost, and not tried again when Python ends."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def check(path, option="-o"):
    """Refuse a path that cannot be written, before any work is done."""
    folder = os.path.dirname(os.path.abspath(path))
    path = str(path)
    if os.path.isdir(path) or not os.path.basename(path):
        raise InputError(f"{option} {path}: is a folder; allowed: a file")
    if not os.path.isdir(folder):
        raise InputError(f"{option} {path}: cannot be written: there is no folder {os.path.dirname(path)}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK) or not os.access(folder, os.W_OK):
        raise InputError(f"{option} {path}: cannot be written: Permission denied")


class Outlet:
    """A file to write bytes or text to, as a context: what is there at its end is the file, unless an error came.

    path: None for standard output. A device, such as a terminal, is written to as it is.
    """

    def __init__(self, path):
        self.path = None if path is None else os.path.realpath(path)
        self.given, self.partial = path, None

    def __enter__(self):
        if self.path is None:
            return self
        try:
            if os.path.exists(self.path) and not os.path.isfile(self.path):
                self.file = open(self.path, "wb")
            else:
                self.partial = f"{self.path}.part"
                self.file = open(self.partial, "wb")
        except OSError as error:
            raise self._refused(error) from None
        return self

    def write(self, data):
        if self.path is None:
            try:
                sys.stdout.write(data)
            except OSError as error:
                self._failed(error)
        else:
            self.file.write(data if isinstance(data, bytes) else data.encode())

    def __exit__(self, kind, error, trace):
        if self.path is None:
            try:
                if kind is None:
                    sys.stdout.flush()
            except OSError as other:
                self._failed(other)
            return
        try:
            self.file.close()
            if kind is None and self.partial:
                os.replace(self.partial, self.path)
        except OSError as other:
            kind, error = type(other), other
        if kind is not None and self.partial and os.path.isfile(self.partial):
            os.remove(self.partial)
        if isinstance(error, OSError):
            raise self._refused(error) from None

    def _failed(self, error):
        """What standard output did not take is lost, and is not tried again when Python ends."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has gone, as `head` does
            raise error
        raise InputError(f"standard output: cannot be written: {error.strerror}") from None

    def _refused(self, error):
        return InputError(f"-o {self.given}: cannot be written: {error.strerror}")
