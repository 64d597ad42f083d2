"""The catalogues: models and machines that lmcalc knows, as plain rows."""

from .. import catalogue
from ..cards import load, read
from ..hardware import machine, machines
from ..lenses.params import params


def names():
    """The name of every model card."""
    return catalogue.names(catalogue.folder("model_cards"))


def models():
    """A row for every model card: its name, sizes and choices, parameters ours and as published.

    >>> next(row for row in models() if row["name"] == "gpt2")["params_total"]
    124439808
    """
    return [row(name) for name in names()]


def row(name):
    """The catalogue's row of one model."""
    card, model = read(name), load(name)
    fields = model.fields
    heads = fields.get("n_heads")
    return {
        "name": model.name,
        "family": model.family,
        "params_total": sum(params(model).values()),
        "params_published": card.get("published", {}).get("params_total"),
        "n_layers": fields.get("n_layers"),
        "d_model": fields.get("d_model"),
        "n_heads": heads,
        "n_kv_heads": fields.get("n_kv_heads", heads),
        "head_dim": fields.get("head_dim") or fields["d_model"] // heads,
        "d_ff": fields.get("d_ff"),
        "vocab_size": fields.get("vocab_size"),
        "norm": fields.get("norm", "rmsnorm"),
        "ffn": fields.get("ffn", "swiglu"),
        "positions": fields.get("positions", "rotary"),
        "tied": fields.get("tied", False),
        "context_length": card.get("context_length"),
        "aliases": card.get("aliases", []),
        "notes": list(model.notes),
    }


def hardware(name=None):
    """One machine by name, alias or file; without a name a row for every machine of the catalogue.

    >>> hardware("h100-sxm").peak["bf16"]
    989400000000000.0
    """
    return machine(name) if name is not None else [machine_row(each) for each in machines()]


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
