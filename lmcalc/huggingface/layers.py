"""What may differ from layer to layer in a config: layer types and rotary settings, in their old and new forms."""

from ..cards import is_kind
from ..model import shortest_period

# word in layer_types: our kind of layer
TYPES = {"full_attention": "full", "sliding_attention": "sliding"}
ROTARY_FIELDS = ("positions", "rope_base", "rotary_dim", "rope_scaling", "rope_layout")
BASE_KEYS = ("rope_theta", "rotary_emb_base")
PART_KEYS = ("partial_rotary_factor", "rotary_pct")
# rope_type: (keys of the table that it takes, by our names; those it cannot be without)
SCALINGS = {
    "linear": ({"factor": "factor"}, ("factor",)),
    "dynamic": ({"factor": "factor"}, ("factor",)),
    "llama3": (
        {"factor": "factor", "low_freq_factor": "low_freq_factor", "high_freq_factor": "high_freq_factor"},
        ("factor", "low_freq_factor", "high_freq_factor"),
    ),
    "yarn": (
        {
            each: each
            for each in ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "attention_factor", "truncate")
        },
        (),
    ),
    "longrope": (
        {each: each for each in ("short_factor", "long_factor", "factor", "attention_factor")},
        ("short_factor", "long_factor"),
    ),
    "longrope_mscale": (
        {each: each for each in ("short_factor", "long_factor", "short_mscale", "long_mscale")},
        ("short_factor", "short_mscale", "long_mscale"),
    ),
}
KINDS = {
    "short_factor": "list",
    "long_factor": "list",
    "truncate": "bool",
    "mscale": "number",
    "mscale_all_dim": "number",
}


def by_layer(types, kinds):
    """Fields `layers` and `kinds` for layers of these types in order: the shortest pattern that repeats to all."""
    first = kinds[types[0]]
    if all(kinds[name] == first for name in types):
        return dict(first)
    runs = []
    for name in types[: shortest_period(types)]:
        if runs and runs[-1][0] == name:
            runs[-1][1] += 1
        else:
            runs.append([name, 1])
    changes = {name: {key: value for key, value in kinds[name].items() if value is not None} for name in types}
    return {"layers": [name if count == 1 else f"{count}*{name}" for name, count in runs], "kinds": changes}


def combined(*ways):
    """Fields for layers that differ in several ways, each (types of the layers in order, kinds): see by_layer."""
    ways = [(types, kinds) for types, kinds in ways if types]
    alike = [{**kinds[types[0]]} for types, kinds in ways if all(kinds[name] == kinds[types[0]] for name in types)]
    ways = [(types, kinds) for types, kinds in ways if any(kinds[name] != kinds[types[0]] for name in types)]
    found = {key: value for fields in alike for key, value in fields.items()}
    if not ways:
        return found
    every = list(zip(*(types for types, _ in ways)))
    kinds = {
        "_".join(names): {key: value for name, (_, own) in zip(names, ways) for key, value in own[name].items()}
        for names in every
    }
    return found | by_layer(["_".join(names) for names in every], kinds)


def layer_types(c, count, sliding):
    """ "full" or "sliding" for each layer: as layer_types says, else as sliding(layer) does, an older pattern field."""
    types = c.get("list", "layer_types")
    if types is None:
        return ["sliding" if sliding(layer) else "full" for layer in range(count)]
    return [TYPES[each] for each in kinds_of(c, "layer_types", types, TYPES, count)]


def kinds_of(c, key, types, known, count):
    """The list, if it names a known kind for each of `count` layers."""
    if len(types) != count:
        c.refuse(key, types, f"one entry for each of the {count} layers")
    for each in types:
        if not isinstance(each, str | int) or each not in known:
            c.refuse(key, each, "one of " + ", ".join(map(str, known)))
    return types


def numbers_of(c, key):
    """The list under a key, if it is one of layers' numbers; or None."""
    found = c.get("list", key)
    if not all(is_kind(each, "count") for each in found or ()):
        c.refuse(key, found, "numbers of layers")
    return found


def pattern_types(c, count):
    """GPT-Neo's attention_types written out: [[["global", "local"], 12]] is 24 layers."""
    pattern, types = c.get("list", "attention_types") or [[["global", "local"], 12]], []
    for item in pattern:
        names, times = item if isinstance(item, list) and len(item) == 2 else (None, None)
        if not isinstance(names, list) or not isinstance(times, int) or not 0 < times * len(names) <= count:
            c.refuse("attention_types", pattern, f"pairs of kinds and how often they repeat, for {count} layers in all")
        types += names * times
    return types


def rotary(c, found, layer_type=None, base_key=None):
    """The rotary fields of all layers, or of those of one layer type.

    New form: rope_parameters, one table or one for each layer type. Old form: rope_theta (base_key for this layer
    type), rope_scaling, and a factor for the part of a head that is turned; with layer types, rope_scaling is for the
    full layers.
    """
    old = c.inside("rope_scaling")
    new = c.inside("rope_parameters") or c.default("rope_parameters")
    if new is not None and layer_type is not None:
        new = new.inside(layer_type) if layer_type in new.data else new if "rope_type" in new.data else None
    elif new is not None and "full_attention" in new.data:  # one table for each type in a model whose layers are alike
        new = new.inside("full_attention")
    if old is not None and new is not None:
        new.skip(*new.data)  # both are given: the older one holds
    if layer_type == "sliding_attention":
        table = new
    else:
        table = old or new
    return _rotary(c, table, found, base_key, layer_type)


# what a config calls positions of images and text together, which turn text as the other does
OF_IMAGES = {"mrope": "default", "xdrope": "dynamic"}


def _rotary(c, table, found, base_key, layer_type):
    if table is not None and table.data.get("type") == "mrope":
        table = table.without("type")
    get = (lambda kind, *keys: None) if table is None else table.get
    base_keys = BASE_KEYS if base_key is None else (base_key,) if isinstance(base_key, str) else base_key
    base = get("positive", "rope_theta") or c.get("positive", *base_keys)
    part = c.get("ratio", *PART_KEYS)
    part = get("ratio", "partial_rotary_factor") or part or 1.0
    head_dim = found["head_dim"]
    size = c.get("size", "rotary_dim") or int(head_dim * part)
    if table is not None:
        table.skip("mrope_section", "mrope_interleaved", "xdrope_section", "interleaved")  # positions of images
    kind = get("text", "rope_type", "type")
    kind = "default" if kind is None else kind
    kind = OF_IMAGES.get(kind, kind)
    alpha = get("ratio", "alpha") if kind == "dynamic" else None
    if alpha is not None:  # Hunyuan: a larger base for any length
        if size < 3:
            c.refuse("head_dim", head_dim, "a rotary part of more than 2 with rope_scaling.alpha")
        base, kind = (base or c.need("positive", *base_keys)) * alpha ** (size / (size - 2)), "default"
        table.skip("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")
    if (
        kind == "proportional"
    ):  # Gemma 4: the first pairs of all of a head turn, at the frequencies that these have there
        turned = {"kind": kind, "turned": 2 * int(head_dim * part / 2), "factor": get("positive", "factor")}
        turned = {key: value for key, value in turned.items() if value is not None}
        return {"positions": "rotary", "rope_base": base, "rope_scaling": turned}
    return {
        "positions": "rotary",
        "rope_base": base,
        "rotary_dim": size if size != head_dim else None,
        "rope_scaling": None if kind == "default" else _scaling(c, table, kind, found, size),
    }


def _scaling(c, table, kind, found, size):
    if kind == "su" or (kind == "yarn" and table.given("short_factor")):
        kind = "longrope"  # what Phi-3's first configs called it
    if kind == "longrope" and table.given("short_mscale"):
        kind = "longrope_mscale"
    if kind not in SCALINGS:
        table.refuse("rope_type", kind, "one of default, " + ", ".join(SCALINGS))
    keys, needed = SCALINGS[kind]
    scaling = {"kind": kind}
    for key, ours in keys.items():
        value = (table.need if key in needed else table.get)(KINDS.get(key, "ratio"), key)
        if value is None or (KINDS.get(key) == "number" and not value):
            continue
        if isinstance(value, list) and (
            len(value) != size // 2 or not all(is_kind(each, "positive") for each in value)
        ):
            table.refuse(key, value, f"{size // 2} numbers above 0")
        scaling[ours] = value
    if kind == "linear":
        return scaling
    longest = c.need("size", "max_position_embeddings", "n_positions", "max_seq_len")
    first = None
    if kind != "dynamic":
        inside = table.get("size", "original_max_position_embeddings")
        first = c.get("size", "original_max_position_embeddings") or inside
    scaling["original_max_positions"] = first or longest
    if kind in ("yarn", "longrope"):
        scaling.setdefault("factor", longest / scaling["original_max_positions"])
    return scaling
