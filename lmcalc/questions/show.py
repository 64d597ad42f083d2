"""What does a model look like, and how usual is it? A drawing as data, parameters by part, and the consensus check."""

from ..cards import load
from ..lenses.params import active, params
from ..model import Run
from ..numbers import Sum, monomial
from .describe import described, equations, is_a, norm_word

SCHEMA = "lmcalc.show/1"
BEFORE = ("project_in", "position_bias", "per_layer", "widen", "memory")  # behind what is added to the embedding
BEHIND = ("narrow", "final_norm")


def show(model, set=None):
    """{schema, model, params, stacks, embedding, head, consensus, relatives, notes}, all read off the model itself.

    model: anything `load` takes. set: {field: value} over its card. Nothing is traced; every card is read for the
    consensus, to say where this model lies among them. Raises InputError.

    >>> found = show("gemma-3-27b")
    >>> found["stacks"][0]["order"], found["stacks"][0]["kinds"][0]["equations"][0]
    ('10 x (5 sliding, full), 2 sliding', 'x + norm(attention(norm(x)))')
    """
    from .consensus import consensus

    model = load(model, set)
    by_part = params(model)
    stacks = [] if model.encoder is None else [_stack("encoder", model.encoder)]
    if model.source_embedding is not None:
        stacks[0]["before"].insert(0, _part("embedding", model.source_embedding))
    stacks.append(_stack("encoder" if model.bidirectional else "decoder", model))
    return {
        "schema": SCHEMA,
        "model": {"id": model.name, "family": model.family, "source": model.source, "d_model": model.fields["d_model"]},
        "params": {"total": sum(by_part.values()), "active": active(model), "by_part": by_part},
        "embedding": _part("embedding", model.embedding),
        "stacks": stacks,
        "head": _part("head", model.head),
        **consensus(model),
        "notes": list(model.notes),
    }


def _stack(name, stack):
    """One stack: what lies before its layers, the order of these, each kind of them once, and what lies behind."""
    every = layers(stack.runs)
    kinds, names = {}, []
    for label, block in every:
        kind = label.removeprefix("layers").removeprefix(".").partition(".")[0] or "layer"
        names.append(kind)
        kinds.setdefault(kind, block)
    letters = _letters(kinds)
    before, behind = (
        [_part(each, getattr(stack, each)) for each in wanted if getattr(stack, each, None) is not None]
        for wanted in ((*stack.before, *BEFORE), BEHIND)
    )
    return {
        "name": name, "n_layers": len(every), "order": _text(compressed(names)),
        "strip": "".join(letters[each] for each in names) if len(kinds) > 1 else "",
        "before": before,
        "kinds": [_kind(kind, block, letters[kind], names.count(kind)) for kind, block in kinds.items()],
        "behind": behind,
    }  # fmt: skip


def layers(runs):
    """[(label, block)] of every layer in order, runs written out."""
    found = []
    for run in runs:
        inside = [each for item in run.items for each in (layers([item]) if isinstance(item, Run) else [item])]
        found += inside * run.count
    return found


def _kind(name, block, letter, count):
    children = block.children()
    norms = dict.fromkeys(norm_word(each) for label, each in children.items() if _is_norm(label))
    parts = [_part(label, each) for label, each in children.items() if not _is_norm(label)]
    return {"name": name, "letter": letter, "layers": count, "params": _elements(block), "norms": list(norms),
            "equations": equations(block), "parts": parts}  # fmt: skip


def _is_norm(label):
    return "norm" in label


def _part(name, component):
    if is_a(component, "SharedBlocks"):
        count, joined = len(component.blocks), is_a(component.blocks[0], "SharedBlock")
        text = f"{count} block{'s' * (count != 1)} that layers share{', on [x; embedding]' * joined}"
        further = []
        for label, each in component.blocks[0].children().items():
            if not _is_norm(label):
                further.append(f"{label}: {described(each)[0]}")
    else:
        text, further = described(component)
        inner = [each for label, each in component.children().items() if label in ("attention", "mamba2")]
        if inner and is_a(component, "AttentionAndMamba2"):
            text, further = "attention and Mamba-2 side by side, summed", []
            for each in inner:
                line, lines = described(each)
                further += [line, *lines]
    return {"name": name, "text": text, "further": [line for line in further if line], "params": _elements(component)}


def _elements(component):
    """Parameters of a component and all inside it."""
    total = Sum()

    def walk(each):
        size_of = each.axes()
        for spec in each.weights().values():
            total.add(monomial(*[size_of[axis] for axis in spec if axis not in "->|"]))
        for child in each.children().values():
            walk(child)

    walk(component)
    return total.value()


def _letters(kinds):
    """{kind: a letter}, its first where that is free."""
    found = {}
    for kind in kinds:
        choices = [*kind.lower(), *kind.upper(), *"abcdefghijklmnopqrstuvwxyz0123456789"]
        found[kind] = next((each for each in choices if each.isalnum() and each not in found.values()), "?")
    return found


def compressed(names):
    """Names in order as [(times, [names or further pairs])], repetitions found from the left.

    >>> compressed(["a", "a", "b", "a", "a", "b", "a"])
    [(2, [(2, ['a']), (1, ['b'])]), (1, ['a'])]
    """
    found, at = [], 0
    while at < len(names):
        best = (1, 1)  # period, repetitions: what covers most, then the shortest period
        for period in range(1, (len(names) - at) // 2 + 1):
            piece, times = names[at : at + period], 1
            while names[at + times * period : at + (times + 1) * period] == piece:
                times += 1
            if times > 1 and times * period > best[0] * best[1]:
                best = (period, times)
        piece = names[at : at + best[0]]
        found.append((best[1], piece if len(piece) == 1 else compressed(piece)))
        at += best[0] * best[1]
    return found


def _text(pairs):
    found = []
    for times, inside in pairs:
        plain = len(inside) == 1 and isinstance(inside[0], str)
        text = inside[0] if plain else f"({_text(inside)})"
        found.append(text if times == 1 else f"{times} {text}" if plain else f"{times} x {text}")
    return ", ".join(found)
