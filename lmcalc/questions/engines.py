"""What the arrays of a sweep are: NumPy's, or Dask's: the same plain arithmetic, on threads or a cluster."""

import numpy

from ..errors import InputError, shown, unknown

ENGINES = ("numpy", "dask")


def engine(name="numpy", scheduler=None):
    """The engine of that name. scheduler: the address of a Dask cluster, or a Client (default: threads here)."""
    if not isinstance(name, str) or name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if name == "dask":
        return Dask(scheduler)
    if scheduler is not None:
        raise InputError(f"scheduler {shown(scheduler)} with engine numpy; allowed: engine dask")
    return Numpy()


class Numpy:
    """Arrays of this process, small enough to stay in a core's cache."""

    chunk = 2**15  # points at a time

    def sizes(self, sizes):
        """The sizes of a part as the arrays that cost code runs on."""
        return sizes

    def values(self, values):
        """Its results as numbers and NumPy arrays."""
        return values

    def close(self):
        """Let go of what was connected."""


class Dask:
    """Dask arrays: each part of the grid is one graph of elementwise operations, in chunks that workers share.

    Workers need NumPy and Dask, not lmcalc.
    """

    chunk, block = 2**22, 2**18  # points of a graph, and of a chunk of it

    def __init__(self, scheduler=None):
        try:
            import dask.array
        except ImportError:
            raise InputError("engine dask needs dask: pip install 'lmcalc[distributed]'") from None
        self.array, self.compute, self.client = dask.array, dask.compute, None
        if scheduler is not None and not isinstance(scheduler, str) and not hasattr(scheduler, "scheduler_info"):
            raise InputError(f"scheduler {shown(scheduler)}; allowed: the address of a Dask cluster, or a Client")
        if scheduler is not None:
            self.own = isinstance(scheduler, str)
            self.client = _client(scheduler) if self.own else scheduler

    def sizes(self, sizes):
        shape = numpy.broadcast_shapes(*(numpy.shape(value) for value in sizes.values()))
        chunks, room = [], self.block
        for size in reversed(shape):  # the last axes whole, as far as a chunk goes
            chunks.insert(0, max(1, min(size, room)))
            room //= max(1, size)
        return {
            name: self.array.from_array(value, chunks=tuple(
                min(size, chunk) for size, chunk in zip(value.shape, chunks[len(chunks) - value.ndim :]))
            ) if isinstance(value, numpy.ndarray) else value
            for name, value in sizes.items()
        }  # fmt: skip

    def values(self, values):
        how = {"scheduler": "threads"} if self.client is None else {"scheduler": self.client}
        return list(self.compute(*values, **how))

    def close(self):
        if self.client is not None and self.own:
            self.client.close()


def _client(address):
    try:
        from distributed import Client
    except ImportError:
        raise InputError("a Dask cluster needs distributed: pip install 'lmcalc[distributed]'") from None
    try:
        return Client(address, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"--scheduler {address}: no Dask scheduler answers there: {error}") from None
