"""The catalogues: models and machines that lmcalc knows, as plain rows."""

from .. import catalogue
from ..cards import built, read
from ..errors import unknown
from ..fields import resolved
from ..hardware import machine, machines
from ..lenses.params import params
from ..where import chosen


def names():
    """The name of every model card."""
    return catalogue.names(catalogue.folder("model_cards"))


def architectures():
    """The names of the cards that have an architecture: all but those of models that were never described."""
    return [name for name in names() if "architecture" in read(name)]


def models(family=None, where=None):
    """A row for every model card: its name, sizes and choices, parameters ours and as published.

    family: only these. where: only rows for which this expression over their fields holds.

    >>> next(row for row in models() if row["name"] == "gpt2")["params_total"]
    124439808
    >>> [row["name"] for row in models("gpt", "n_layers > 40 and attention == 'mha'")]
    ['gpt2-xl', 'gpt3-175b']
    """
    rows = [row(name) for name in names()]
    if family is not None:
        families = sorted({each["family"] for each in rows})
        if not isinstance(family, str) or family not in families:
            raise unknown("family", family, families)
        rows = [each for each in rows if each["family"] == family]
    return rows if where is None else chosen(rows, where)


def row(name):
    """The catalogue's row of one model; of one that was never described, what is known of it, and None."""
    card = read(name)
    model = built(card) if "architecture" in card else None
    published = card.get("published", {})
    fields = {} if model is None else resolved(model.fields, name)
    known = {
        "name": card["name"],
        "family": card.get("family", ""),
        "organization": card.get("organization"),
        "released": card.get("released"),
        "params_total": None if model is None else sum(params(model).values()),
        "params_published": published.get("params_total"),
        **_sizes(fields),
        "vocab_size": fields.get("vocab_size", published.get("vocab_size")),
        **(_choices(fields) if model is not None else dict.fromkeys(CHOICES)),
        "dropout": fields.get("dropout", published.get("dropout")),
        "attention_dropout": fields.get("attention_dropout", published.get("attention_dropout")),
        "weight_decay": fields.get("weight_decay", published.get("weight_decay")),
        "z_loss": published.get("z_loss"),
        "training_tokens": published.get("training_tokens"),
        "context_length": card.get("context_length"),
        "unpublished": card.get("unpublished"),
        "aliases": card.get("aliases", []),
        "notes": list(card.get("notes", [])),
    }
    return known


def _sizes(fields):
    """Sizes of a model, and the ratios of the lecture's tables. Where layers differ, a size is the largest."""
    heads, layers, width = (_largest(fields, name) for name in ("n_heads", "n_layers", "d_model"))
    head_dim, expert = _largest(fields, "head_dim"), _largest(fields, "expert_d_ff")
    if fields.get("kv_latent_dim") is not None:
        head_dim = fields["nope_head_dim"] + fields["rope_head_dim"]
    elif heads and not head_dim:
        head_dim = width // heads
    d_ff = _largest(fields, "d_ff") or expert
    return {
        "n_layers": layers,
        "d_model": width,
        "n_heads": heads,
        "n_kv_heads": _largest(fields, "n_kv_heads") or heads,
        "head_dim": head_dim,
        "d_ff": d_ff,
        "window": _largest(fields, "window"),
        "n_experts": _largest(fields, "n_experts"),
        "experts_per_token": _largest(fields, "experts_per_token"),
        "expert_d_ff": expert,
        "d_ff_over_d_model": d_ff and d_ff / width,
        "heads_over_d_model": heads and heads * head_dim / width,
        "d_model_over_n_layers": layers and width / layers,
    }


def _largest(fields, name):
    return max((kind[name] for kind in [fields, *_kinds(fields)] if kind.get(name) is not None), default=None)


def _kinds(fields):
    """The fields of each kind of layer."""
    return [{**fields, **changes} for changes in (fields.get("kinds") or {"": {}}).values()]


# field: what a card without it has
CHOICES = {
    "stack": "decoder", "block": "serial", "norm": "rmsnorm", "norm_placement": "pre", "ffn": "swiglu",
    "attention": None, "positions": "rotary", "qk_norm": "none", "attention_bias": "none", "ffn_bias": False,
    "tied": False,
}  # fmt: skip


def _choices(fields):
    """How a model is built; where layers differ in a word, all of them, joined by +."""
    found, kinds = {}, [{**kind, "attention": _attention(kind)} for kind in _kinds(fields)]
    for name, default in CHOICES.items():
        every = dict.fromkeys(kind.get(name, default) for kind in kinds)
        if name in ("ffn", "attention") and len(every) > 1:
            every.pop("none", None)  # layers of a hybrid that have no such branch
        found[name] = next(iter(every)) if len(every) == 1 else "+".join(map(str, every))
    return found


def _attention(kind):
    """What mixes tokens: mha, mqa, gqa by the heads, mla or compressed by what keys are, else the word of a mixer."""
    mixer = kind.get("mixer", "attention")
    if not mixer.startswith("attention"):
        return mixer
    heads, kv_heads = kind.get("n_heads"), kind.get("n_kv_heads", kind.get("n_heads"))
    if kind.get("kv_latent_dim") is not None:
        word = "mla"
    elif kind.get("out_groups") is not None:
        word = "compressed"
    else:
        word = "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"
    return word + mixer.removeprefix("attention").replace("_and_", "+")


def hardware(name=None, where=None):
    """One machine by name, alias or file; without a name a row for every machine, or those for which `where` holds.

    >>> hardware("h100-sxm").peak["bf16"]
    989400000000000.0
    >>> [row["id"] for row in hardware(where="bandwidth > 7e12 and vendor == 'NVIDIA' and 'B300' in title")]
    ['b300', 'gb300']
    """
    if name is not None:
        return machine(name)
    rows = [machine_row(each) for each in machines()]
    return rows if where is None else chosen(rows, where)


def machine_row(each):
    """The catalogue's row of one machine, in base units."""
    card, (peak, _) = each.card, each.matrix_peak("bf16")
    return {
        "id": each.name,
        "vendor": card.get("vendor"),
        "title": card.get("title"),
        "kind": card.get("kind"),
        "memory": each.memory,
        "bandwidth": each.bandwidth,
        "peak": each.peak,
        "vector": each.vector,
        "ridge_bf16": None if peak is None else peak / each.bandwidth,
        "grade": card.get("grade"),
        "aliases": card.get("aliases", []),
        "source": card.get("source"),
    }
