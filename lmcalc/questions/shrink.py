"""A model at small sizes: its own structure, sizes distinct, prime where the structure allows."""

from ..fields import FIELDS
from ..model import build

HEAD_DIM, KV_HEADS, GROUPS = 14, (3, 5, 7), (5, 2, 4)
MOST = {"experts_per_token": 3, "n_expert_groups": 4, "expert_groups_used": 2}
LENGTHS = ("long_factor", "short_factor")  # of rope_scaling: one number for each pair that is turned


def shrunk(model):
    """The model with small sizes: its own kinds of layers, in its own order, without long repetitions.

    A size that differs between kinds of layers, or in an encoder, differs in the copy, too, and in the same direction.
    """
    fields = dict(model.fields)
    encoder = dict(fields["encoder"]) if "encoder" in fields else {}
    sides = [
        (table, {name: dict(each) for name, each in table.get("kinds", {}).items()}) for table in (fields, encoder)
    ]
    kinds = [each for _, side in sides for each in side.values()]
    _sizes([fields, encoder, *kinds])
    _experts([fields, encoder, *kinds])
    whole = sides[0] if fields.get("stack") == "encoder" else sides[1]
    for each in (whole[0], *whole[1].values()):
        if "window" in each:
            each["window"] += 1  # odd in an encoder: as many keys before a token as behind it
    if "layer_groups" in fields:
        fields["layer_groups"] = min(fields["layer_groups"], fields["n_layers"])
    if "n_heads" in fields:
        _heads(fields, [encoder, *kinds])
    for each in (fields, *kinds):
        _mixer_heads(each, fields | each)
        if each.get("index_topk") and (fields | each).get("compression"):
            each["index_topk"] = 2  # of the few entries that there are
    for each in (fields, encoder, *kinds):
        if "rope_scaling" in each:
            layer = fields | each
            turned = next(layer[name] for name in ("rope_head_dim", "rotary_dim", "head_dim") if layer.get(name))
            each["rope_scaling"] = _scaling(each["rope_scaling"], turned)
    for (table, side), count in zip(sides, ("n_layers", "n_encoder_layers")):
        if side:
            table["layers"], fields[count] = _pattern(table["layers"], model.fields[count])
            table["kinds"] = {name: side[name] for name in side if name in table["layers"]}
    if encoder:
        fields["encoder"] = encoder
    return build(fields, model.name, model.source, model.family, where=f"{model.name} (shrunk)")


def _sizes(tables):
    """Shrinks each field to its size in FIELDS where it is largest, and 2 less for each step down from there."""
    for name, (_, _, size) in FIELDS.items():
        if size is None:
            continue
        given = sorted({table[name] for table in tables if table.get(name)}, reverse=True)
        for table in tables:
            if table.get(name):  # 0 stays 0
                table[name] = max(size - 2 * given.index(table[name]), 2 - size % 2)


def _experts(tables):
    """Few experts a token, and groups that come out even."""
    grouped = any(table.get("n_expert_groups") for table in tables)
    for table in tables:
        for name, most in MOST.items():
            if table.get(name):
                table[name] = min(table[name], most)
        if grouped and table.get("n_experts"):
            table["n_experts"] = MOST["n_expert_groups"] * (table["n_experts"] // 2)


def _heads(fields, kinds):
    """Shrinks heads and their size: MHA, MQA and GQA stay what they are."""
    whole, shapes = dict(fields), {}
    tables = [fields, *(each for each in kinds if {"n_heads", "n_kv_heads", "head_dim"} & set(each))]
    dims = sorted({(whole | each).get("head_dim") or 0 for each in tables}, reverse=True)
    latent = any("kv_latent_dim" in each for each in (fields, *kinds))
    for table in tables:
        layer = whole | table
        heads, kv_heads = layer["n_heads"], layer.get("n_kv_heads") or layer["n_heads"]
        at = shapes.setdefault((heads, kv_heads), len(shapes)) % len(GROUPS)
        small = KV_HEADS[at] if kv_heads > 1 else 1
        if layer.get("differential"):
            small += 1  # heads come in pairs
        if not latent or layer.get("head_dim"):
            table["head_dim"] = max(HEAD_DIM - 2 * dims.index(layer.get("head_dim") or 0), 8)
        table["n_heads"] = small * (1 if kv_heads == heads else GROUPS[at])
        if layer.get("attention_experts"):
            table["n_heads"] = small * layer["experts_per_token"]  # each has as many query heads as there are keys
        if layer.get("out_groups"):
            table["n_heads"] = small * 2 * layer["out_groups"]
        if layer.get("out_groups"):
            table["n_heads"] = small * 2 * layer["out_groups"]
        if not latent or layer.get("n_kv_heads"):
            table["n_kv_heads"] = small


def _mixer_heads(table, layer):
    """Shrinks the heads of a mixer: groups of one stay such, and one group stays one."""
    heads, groups = layer.get("n_mixer_heads"), layer.get("n_mixer_groups")
    if heads is None or not {"n_mixer_heads", "n_mixer_groups"} & set(table):
        return
    table["n_mixer_heads"] = small = 6 if heads > 1 else 1
    if groups is not None:
        table["n_mixer_groups"] = {heads: small, 1: 1}.get(groups, 2)
    if "d_inner" in layer:
        table["d_inner"] = table["n_mixer_heads"] * 7


def _scaling(table, size):
    table = dict(table)
    for name in LENGTHS:
        if name in table:
            table[name] = (list(table[name]) * size)[: size // 2]
    return table | ({"turned": min(table["turned"], 4)} if "turned" in table else {})


def _pattern(layers, count):
    """(kinds of layers, number of layers): a period with runs of at most 2, twice if it repeats, 1 more if uneven."""
    every = []
    for entry in layers:
        times, _, name = entry.rpartition("*")
        every += [name.strip()] * int(times or 1)
    every = (every * (count // len(every) + 1))[:count]
    period = next(p for p in range(1, count + 1) if every == (every[:p] * (count // p + 1))[:count])
    names = [every[i] for i in range(period) if i < 2 or every[i] != every[i - 1] or every[i] != every[i - 2]]
    return names, min(count // period, 2) * len(names) + min(count % period, 1)
