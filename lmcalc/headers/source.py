"""Where the bytes of a header come from: a file, read at any place and never as a whole."""

import os
import stat

from ..errors import InputError


class File:
    """A regular file. `name` for messages, `size` in bytes; `read(start, count)` gives exactly so many."""

    def __init__(self, path):
        self.name = path
        try:
            found = os.stat(path)
            if not stat.S_ISREG(found.st_mode):  # a pipe or a device would never end
                raise InputError(f"{path}: not a regular file")
            self._file = open(path, "rb", buffering=0)
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from None
        self.size = found.st_size

    def read(self, start, count):
        if start + count > self.size:
            raise InputError(
                f"{self.name}: ends after {self.size:,} bytes, {start + count:,} are needed: it is cut off"
            )
        try:
            self._file.seek(start)
            found = self._file.read(count)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {error.strerror}") from None
        if len(found) != count:
            raise InputError(f"{self.name}: ends before byte {start + count:,}: it is cut off")
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
