"""Bytes between device memory and chip, under a stated convention.

unfused: every operation reads its inputs from memory and writes its outputs to it. fused: operations of one kernel pass
intermediates on chip; only what crosses its edge counts. ideal: each weight and each stored token once, the model's
inputs and outputs, nothing else; of a table that is looked up, one row is all that is certain.

Of a mixture of experts those matrices are read that any token chose. How many depends on the input: `experts` is "min"
(all tokens choose the same), "max" (different ones, as far as they go), "all", "expected" (tokens choose independently,
all experts alike or with a skew, see numbers.touched: an estimate, counted apart as ESTIMATED), or, of a numeric run,
"chosen": those that it did choose. ideal is always "min".
"""

from ..numbers import ceil_div, maximum, minimum, monomial, times, touched, value
from ..trace import Routing
from ..units import DTYPES, STORED

CATEGORIES = ("weights", "activations", "cache_read", "cache_write")
ESTIMATED = 4  # the category of those weights that are an estimate
_READ = {"weight": 0, "activation": 1, "index": 1, "cache": 2, "state": 2}
_WRITE = {"activation": 1, "index": 1, "cache": 3, "state": 3}


def size_in_bytes(array, dtypes, rows=None):
    """Bytes of an array as a term; of `rows` rows (a term) along its first axis where only those are touched."""
    dtype = dtypes.get(array.dtype) or array.dtype
    if dtype == STORED:
        found = dtypes["by_path"].get(array.base.path)
        if found is not None:
            return _of_stored(array, found, rows)
        dtype = "bf16"  # buffers
    size, values = DTYPES[dtype]
    sizes = array.sizes if rows is None else array.sizes[1:]
    if values != 1:
        at = array.blocks
        sizes = [each for i, each in enumerate(array.sizes) if i not in at and (rows is None or i)]
        inner = 1
        for i in at:
            inner = inner * array.sizes[i]
        sizes.append(ceil_div(inner, values))
    term = monomial(size, *sizes)
    return term if rows is None else (term[0] * rows[0], term[1] + rows[1])


def _of_stored(array, size, rows):
    """The same for a weight of `size` bytes: its share of them where it is a part of it."""
    if rows is None and array is array.base:
        return size, ()
    from fractions import Fraction

    part = monomial(*(array.sizes if rows is None else array.sizes[1:]))[0]
    share = Fraction(size * part) / monomial(*array.base.sizes)[0]
    if rows is None or rows == (1, ()):
        return -(-share.numerator // share.denominator), ()
    return share * rows[0], rows[1]


def chosen(op):
    """How many experts the tokens of a numeric run chose in an operation on them."""
    routing = op.touched
    return len({each for each in routing.index.data.ravel().tolist() if each < routing.experts})


def _of_experts(array, dtypes, op, experts, skew):
    """(category, bytes as a term) of those experts that are read."""
    routing, row = op.touched, size_in_bytes(array, dtypes, (1, ()))
    if experts == "expected":
        each = touched(value(row), routing.experts, routing.used, routing.choices, routing.tokens, skew)
        return ESTIMATED, monomial(each)
    return _READ[array.role], times(row, COUNTS[experts](op))


def _fewest(op):
    routing = op.touched
    return maximum(routing.used - (routing.choices - routing.experts), 0)


COUNTS = {
    "min": _fewest,
    "max": lambda op: minimum(op.touched.experts, op.touched.used * op.touched.tokens),
    "all": lambda op: op.touched.experts,
    "chosen": chosen,
}


def traffic(trace, dtypes, convention="fused", experts="max", skew=0):
    """[(path, times, operations, terms)] for each kernel; terms: [(index into CATEGORIES, bytes as a term)]."""
    if convention == "ideal":
        return _ideal(trace, dtypes)
    how = experts, skew
    if convention == "unfused":
        return [(op.path, op.times, [op], _edge(op.times, [op], dtypes, None, None, how)) for op in trace.ops]
    kernels = trace.kernels()
    readers = {}  # storage -> the kernel that reads it, or None where several do
    for at, (_, _, ops) in enumerate(kernels):
        for op in ops:
            for array in op.reads:
                key = id(array.base)
                readers[key] = at if readers.get(key, at) == at else None
    for array in trace.outputs:
        readers[id(array.base)] = None
    return [
        (path, repeats, ops, _edge(repeats, ops, dtypes, readers, at, how))
        for at, (path, repeats, ops) in enumerate(kernels)
    ]


def _edge(repeats, ops, dtypes, readers, at, how):
    """What crosses the edge of one kernel. Without `readers` everything written is written to memory."""
    count, atoms = repeats
    born = {id(array.base) for op in ops for array in op.writes} if len(ops) > 1 else ()
    whole = {id(each) for op in ops if op.touched is None for each in op.reads if each is each.base} if born else ()
    read, terms = set(), []
    for op in ops:
        for array in _scanned(op.reads) if readers is not None else op.reads:
            part = array.base is not array and id(array.base) in whole  # of what is read whole anyway
            if id(array) not in read and id(array.base) not in born and not part:
                read.add(id(array))
                rows = op.touched if op.touched is not None and array is op.reads[0] else None
                if type(rows) is Routing:
                    kind, size = _of_experts(array, dtypes, op, *how)
                else:
                    kind, size = _READ[array.role], size_in_bytes(array, dtypes, rows)
                terms.append((kind, (size[0] * count, size[1] + atoms)))
        for array in op.writes:
            if readers is None or array.role in ("cache", "state") or readers.get(id(array.base), at) != at:
                size = size_in_bytes(array if readers is None else array.whole or array, dtypes)
                terms.append((_WRITE[array.role], (size[0] * count, size[1] + atoms)))
    return terms


def _scanned(arrays):
    """The arrays, with slices that a scan takes replaced by what all its trips together read."""
    if all(array.whole is None for array in arrays):
        return arrays
    whole = [array if array.whole is None else array.whole for array in arrays]
    return [part for array in whole for part in ((array,) if array.parts is None else array.parts)]


def _ideal(trace, dtypes):
    whole = {id(array.base) for op in trace.ops if op.touched is None for array in op.reads if array is array.base}
    outside, seen, found = {id(array.base) for array in (*trace.inputs, *trace.outputs)}, set(), []
    for path, repeats, ops in trace.kernels():
        terms = []
        for op in ops:
            for array in _scanned(op.reads):
                key = id(array.base)
                if array.role in ("weight", "cache", "state"):
                    if array.base is not array and key in whole:
                        continue  # a part of what is read whole elsewhere
                elif key not in outside:
                    continue
                rows = None
                if op.touched is not None and array is op.reads[0]:
                    if key in whole:
                        continue
                    rows = monomial(_fewest(op)) if type(op.touched) is Routing else (1, ())
                if id(array) not in seen:
                    seen.add(id(array))
                    # of a weight that layers share there is one; trips of a scan read nothing again
                    copies = array.base.times or (op.group.times if op.group is not None else op.times)
                    terms.append((_READ[array.role], times(size_in_bytes(array, dtypes, rows), *_flat(copies))))
            for array in op.writes:
                if array.role in ("cache", "state") or id(array.base) in outside:
                    copies = op.group.times if op.group is not None else op.times
                    terms.append((_WRITE[array.role], times(size_in_bytes(array, dtypes), *_flat(copies))))
        found.append((path, repeats, ops, terms))
    return found


def _flat(term):
    return (term[0], *term[1])
