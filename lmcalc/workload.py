"""What is asked for: sizes, storage types and conventions, checked at one door."""

import operator
import sys

from .errors import InputError, shown, unknown
from .record import Frozen
from .units import STORED, dtype

MOST = 2**53  # beyond this floats are not exact
MOST_SKEW = 100
LEAST = {"batch": 1, "prompt": 1, "past": 0, "context": 0}
CHOICES = {
    "mask": ("causal", "full"),
    "logits": ("last", "all"),
    "traffic": ("fused", "unfused", "ideal"),
    "experts": ("expected", "min", "max", "all"),
    "mla": ("best", "expanded", "absorbed"),
}
DTYPES = ("weights", "activations", "cache", "state")


class Workload(Frozen):
    """Sizes (ints, or float64 arrays in a sweep), storage types and conventions of a question."""

    batch: object = 1
    prompt: object = 2048
    past: object = 0
    context: object = 2048
    weights: str = "bf16"
    activations: str = "bf16"
    cache: str = "bf16"
    state: str = "fp32"
    mask: str = "causal"
    logits: str = "last"
    traffic: str = "fused"
    experts: str = "expected"
    expert_skew: float = 0
    mla: str = "best"
    fuse_projections: bool = False
    conv: str = None  # columns that convolutions keep: as the cache, unless `state` was given

    def dtypes(self):
        """{slot: dtype} of the four slots that a user sets."""
        return {slot: getattr(self, slot) for slot in DTYPES}

    def of(self, model, given=()):
        """The same with weights as the model's checkpoint stores them, if it says so and no other type was given."""
        if model.storage is not None:
            return self if "weights" in given else self.replace(weights=STORED)
        return self.replace(weights=Workload.weights) if self.weights == STORED else self

    def storage(self):
        """{slot: dtype} of everything that is stored."""
        return {**self.dtypes(), "conv": self.conv or self.cache}


def workload(**given):
    """A checked Workload; InputError says what was given and what is allowed.

    >>> workload(batch=4, weights="float16").weights
    'fp16'
    """
    for name, value in given.items():
        if name not in Workload._fields[:-1]:
            raise unknown("workload option", name, Workload._fields[:-1])
        if name in LEAST:
            given[name] = size(name, value, LEAST[name])
        elif name in DTYPES:
            if name != "weights" or not isinstance(value, str) or value != STORED:
                given[name] = dtype(value, f"dtype for {name}")
        elif name in CHOICES:
            if not isinstance(value, str) or value not in CHOICES[name]:
                raise InputError(f"{name} = {shown(value)}; allowed: {', '.join(CHOICES[name])}")
        elif name == "expert_skew":
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_SKEW:
                raise InputError(f"expert_skew = {shown(value)}; allowed: a number from 0 (all alike) to {MOST_SKEW}")
        elif not isinstance(value, bool):
            raise InputError(f"{name} = {shown(value)}; allowed: true or false")
    return Workload(**given, conv=given.get("state"))


def size(name, value, least=1):
    """A workload size: an int, or a float64 array of whole numbers (integer arrays would overflow silently)."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        if value.dtype != numpy.float64:
            raise InputError(f"{name} is an array of {value.dtype}; allowed: float64 (x.astype(float)), or an integer")
        if value.size and not (value.min() >= least and value.max() <= MOST and (value == numpy.rint(value)).all()):
            raise InputError(f"{name} holds values that are not whole numbers from {least} to 2**53")
        return value
    try:
        whole = operator.index(value)
    except TypeError:
        whole = None
    if whole is None or isinstance(value, bool) or not least <= whole <= MOST:
        raise InputError(f"{name} = {shown(value)}; allowed: an integer from {least} to 2**53")
    return whole
