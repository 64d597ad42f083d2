"""How usual is a model? Its ratios and choices beside what the field does, and where the cards of the catalogue lie.

The rules: a plain feed-forward of 4 D, a gated one of 8/3 D (Shazeer 2020, sec. 3.1, so that three matrices have the
parameters of two), and a loss that hardly changes from 1 to 10 (Kaplan et al. 2020, fig. 5); heads that add up to D;
D/L of 100 to 200; 30,000 to 50,000 tokens for one language, 100,000 to 256,000 for many (CS336, lecture 3). They
inform: nothing here is an error.
"""

import math
from functools import cache

from .. import cards
from ..errors import InputError
from .describe import ffn_word, gated, is_a, norm_word, positions_word

BASIN = (1, 10)
PLAIN, GATED = 4, 8 / 3
MULTIPLES = (128, 64, 8)  # a tile of a TPU's matrix unit is 128 wide, one of a tensor core 8 in 16 bits (64 of a wave)


def consensus(model):
    """{ratios, choices, multiples, relatives, cards}: this model's, each with where those of the catalogue lie."""
    own, others = features(model), [each for each in catalogue() if each["name"] != model.name]
    own |= {"z_loss": next((each["z_loss"] for each in catalogue() if each["name"] == model.name), False)}
    _stabilised(own)
    return {
        "ratios": [found for name in RATIOS if (found := _ratio(name, own, others)) is not None],
        "multiples": _multiples(own, others),
        "choices": [_choice(name, own, others) for name in CHOICES],
        "relatives": _relatives(own, others),
        "cards": len(others),
    }


@cache
def catalogue():
    """The features of every card that has an architecture and can be built; read once, 0.4 s."""
    from .catalogue import names

    found = []
    for name in names():
        try:
            card = cards.read(name)
            if "architecture" in card:
                features_of = features(cards.built(card))
                features_of["z_loss"] = bool(card.get("published", {}).get("z_loss"))
                found.append(_stabilised(features_of))
        except InputError:  # one bad card is for the tests of cards to tell
            continue
    return found


# What a model is like ---------------------------------------------------------------------------------------------


def features(model):
    """{name: number, word or None}, read off the components of a model."""
    every = [component for _, component, _ in model.declared()]
    blocks = _blocks(model)
    width = model.fields["d_model"]
    softmax = [each for each in every if is_a(each, "Attention") and not is_a(each, "CrossAttention")]
    latent = [each for each in every if is_a(each, "LatentAttention")]
    compressed = [each for each in every if is_a(each, "CompressedAttention")]
    dense = [each for each in every if is_a(each, "FeedForward") and each.part == "ffn"]
    mixtures = [each for each in every if is_a(each, "MixtureOfExperts")]
    mixtures += [each for each in every if is_a(each, "DenseAndExperts")]
    experts = [each.experts.ffn for each in mixtures]
    both = dense + experts
    known = ("FeedForward", "MixtureOfExperts", "DenseAndExperts")
    others = [each for block, _ in blocks for label, each in block.children().items()
              if label == "ffn" and not any(is_a(each, kind) for kind in known)]  # fmt: skip
    spans = [each.kv_heads * each.group * each.head_dim for each in softmax]
    spans += [each.heads * (each.nope_dim + each.rope_dim) for each in latent]
    spans += [each.groups * each.group * each.head_dim for each in compressed]
    attentions = softmax + latent + compressed
    layers = sum(count for _, count in blocks)
    return {
        "name": model.name,
        "family": model.family,
        "d_model": width,
        "gated": gated(both[0]) if both else None,
        "d_ff": max((each.d_ff for each in dense), default=None),
        "expert": max((each.d_ff for each in experts), default=None),
        "heads": max(spans, default=None),
        "kv_heads": min((each.kv_heads for each in softmax), default=None),
        "vocab": model.embedding.vocab_size,
        "d_ff / D": max((each.d_ff for each in dense), default=0) / width or None,
        "active d_ff / D": max((_active(each) for each in mixtures), default=0) / width or None,
        "N*H / D": max(spans, default=0) / width or None,
        "D / L": width / layers,
        "vocabulary": model.embedding.vocab_size,
        "N / K": max((each.group for each in softmax), default=None),
        "norm": _joined(norm_word(norm) for block, _ in blocks for _, norm in _norms(block)),
        "norms lie": _joined(_placement(block) for block, _ in blocks),
        "block": _joined(_form(block) for block, _ in blocks),
        "feed-forward": _joined(ffn_word(each) for each in both + others) or "none",
        "experts": _joined(map(_shared, mixtures)) or "none",
        "tokens mixed by": _joined(_mixer(each) for each in every) or "none",
        "keys seen": _seen(attentions),
        "positions": _positions(model, attentions),
        "biases": _biases(every),
        "_stabilisers": _stabilisers(model, attentions),
        "output head": "the embedding again" if model.head.tied else "of its own",
        "z_loss": False,
    }


def _blocks(model):
    """[(block, number of layers)] of the model and of its encoder."""
    found = []

    def walk(runs, times):
        for run in runs:
            for item in run.items:
                if isinstance(item, tuple):
                    block = item[1].block if is_a(item[1], "SharedLayer") else item[1]
                    found.append((block, times * run.count))
                else:
                    walk([item], times * run.count)

    walk(model.runs, 1)
    return found


def _norms(block):
    return [(label, each) for label, each in block.children().items() if "norm" in label]


def _placement(block):
    labels = {label for label, _ in _norms(block)}
    if is_a(block, "NormedResidualBlock"):
        return "on the residual"
    after, summed = (any(each.endswith(end) for each in labels) for end in ("_output_norm", "_sum_norm"))
    before = any(not each.endswith(("_output_norm", "_sum_norm")) for each in labels)
    if summed:
        return "behind each sum (post)"
    return (
        "before and behind each branch (double)"
        if before and after
        else "behind each branch"
        if after
        else "before each branch (pre)"
    )


def _form(block):
    names = {
        "ParallelBlock": "parallel",
        "AltUpBlock": "AltUp",
        "ShortcutBlock": "shortcut",
        "HybridBlock": "shared block",
        "HyperBlock": "hyper-connections",
        "ResidualBlock": "attention residuals",
    }
    return next((word for kind, word in names.items() if is_a(block, kind)), "serial")


def _mixer(component):
    if is_a(component, "CrossAttention"):
        return None
    if is_a(component, "Attention"):
        return "MHA" if component.group == 1 else "MQA" if component.kv_heads == 1 else "GQA"
    names = {"LatentAttention": "MLA", "Mamba": "Mamba", "Mamba2": "Mamba-2", "KimiDelta": "delta rule",
             "GatedDelta": "delta rule", "Lightning": "linear", "GatedRecurrence": "RG-LRU", "ShortConv": "convolution",
             "TimeMix": "RWKV", "MatrixTimeMix": "RWKV", "CompressedAttention": "compressed keys"}  # fmt: skip
    found = next((word for kind, word in names.items() if is_a(component, kind)), None)
    return found if found or component.part != "mixer" else type(component).__name__


def _shared(mixture):
    beside = getattr(mixture, "shared", None) is not None or is_a(mixture, "DenseAndExperts")
    return f"{'with' if beside else 'without'} shared ones"


def _seen(attentions):
    if not attentions:
        return "no attention"
    limits = ("window", "indexer", "reach")
    whole = [all(getattr(each, name, None) is None for name in limits) for each in attentions]
    return "all" if all(whole) else "all in some layers" if any(whole) else "a window or choice"


def _positions(model, attentions):
    words = [positions_word(each)[0] or "none" for each in attentions]
    words += ["learned"] * (model.positions is not None and is_a(model.positions, "LearnedPositions"))
    words += ["sinusoidal"] * (model.positions is not None and is_a(model.positions, "SinusoidalPositions"))
    if model.positions is not None:
        words = [each for each in words if each != "none"]
    return _joined(words) or "none"


BIASED = {"attention": "attention", "ffn": "ffn", "moe_experts": "experts", "lm_head": "head"}


def _biases(every):
    found, attention = dict.fromkeys(BIASED.values(), False), set()
    for each in every:
        biases = [name for name in each.weights() if name.endswith("bias") and name != "dt_bias"]
        if biases and each.part in BIASED:
            found[BIASED[each.part]] = True
            if each.part == "attention":
                attention |= set(biases)
    words = [name for name, there in found.items() if there]
    if words == ["attention"] and "out_bias" not in attention:
        return "q, k, v only"
    return " and ".join(words) if words else "none"


def _stabilisers(model, attentions):
    found = []
    if any(getattr(each, "q_norm", None) is not None for each in attentions if not is_a(each, "LatentAttention")):
        found.append("q, k normed")
    if any(getattr(each, "softcap", None) is not None for each in attentions):
        found.append("scores capped")
    if model.head.softcap is not None:
        found.append("logits capped")
    if any(getattr(each, "sinks", False) or "sink" in each.weights() for each in attentions):
        found.append("sinks")
    if any(getattr(each, "clip", None) is not None for each in attentions):
        found.append("q, k, v clipped")
    return found


def _stabilised(found):
    words = found.pop("_stabilisers", None)
    if words is not None:
        found["softmax steadied by"] = ", ".join([*words, *(["z-loss"] * found["z_loss"])]) or "nothing"
    return found


def _active(mixture):
    """Width of all feed-forward that one token goes through in a layer of experts."""
    shared, dense = getattr(mixture, "shared", None), getattr(mixture, "dense", None)
    found = mixture.experts.per_token * mixture.experts.ffn.d_ff
    return found + sum(each.d_ff for each in (shared and shared.ffn, dense) if each is not None)


def _joined(words):
    return " + ".join(dict.fromkeys(word for word in words if word))


# Beside the catalogue ---------------------------------------------------------------------------------------------


def _of_ffn(value, own):
    rule = GATED if own["gated"] else PLAIN
    return (
        "as the rule"
        if abs(value / rule - 1) <= 0.1
        else "in the basin"
        if BASIN[0] <= value <= BASIN[1]
        else "outside"
    )


def _of_vocabulary(value, own):
    if 30_000 <= value <= 50 * 1024:
        return "of one language"
    if 50 * 1024 < value < 100_000:
        return "between the two"
    return "of many languages" if 100_000 <= value <= 256 * 1024 else "outside"


def _of_active(value, own):
    return "in the basin" if BASIN[0] <= value <= BASIN[1] else "outside"


def _of_heads(value, own):
    return "as the rule" if value == 1 else "less" if value < 1 else "more"


def _of_aspect(value, own):
    return "deep" if value < 100 else "wide" if value > 200 else "as the rule"


def _of_group(value, own):
    return "as the rule" if value == 1 or 4 <= value <= 8 or own["kv_heads"] == 1 else "beside the rule"


RATIOS = {  # name: (rule, the feature that peers share, verdict)
    "d_ff / D": ("{4 or 8/3}; loss is flat from 1 to 10", "gated", _of_ffn),
    "active d_ff / D": ("of all that one token goes through, 1 to 10", None, _of_active),
    "N*H / D": ("1", None, _of_heads),
    "D / L": ("100 to 200", None, _of_aspect),
    "vocabulary": ("30-50k, or 100-256k", None, _of_vocabulary),
    "N / K": ("query heads on a key/value head: 1 (MHA), 4 to 8 (GQA), or all (MQA)", None, _of_group),
}
CHOICES = ("norm", "norms lie", "block", "feed-forward", "experts", "tokens mixed by", "keys seen", "positions",
           "biases", "softmax steadied by", "output head")  # fmt: skip


def _ratio(name, own, others):
    value, (rule, group, verdict) = own[name], RATIOS[name]
    if value is None:
        return None
    rule = rule.replace("{4 or 8/3}", "8/3, gated" if own["gated"] else "4, not gated")
    peers = [each for each in others if each[name] is not None and (group is None or each[group] == own[group])]
    ordered = sorted(peers, key=lambda each: each[name])
    near = sorted(
        peers, key=lambda each: (abs(math.log(each[name] / value)), each["family"] == own["family"], _far(own, each))
    )
    found = {"what": name, "value": value, "rule": rule, "verdict": verdict(value, own), "cards": len(peers)}
    if peers:
        numbers = [each[name] for each in ordered]
        found |= {
            "low": _at(numbers, 0.1), "median": _at(numbers, 0.5), "high": _at(numbers, 0.9),
            "below": sum(each < value for each in numbers) / len(numbers),
            "same": sum(each == value for each in numbers) / len(numbers),
            "near": [[each["name"], each[name]] for each in near[:2]],
            "least": [ordered[0]["name"], numbers[0]], "most": [ordered[-1]["name"], numbers[-1]],
        }  # fmt: skip
        if not numbers[0] <= value <= numbers[-1]:
            found["verdict"] += ", beyond all"
    return found


def _at(numbers, part):
    return numbers[round(part * (len(numbers) - 1))]


def _choice(name, own, others):
    counts = {}
    for each in others:
        counts[each[name]] = counts.get(each[name], 0) + 1
    word, alike = own[name], [each for each in others if each[name] == own[name]]
    alike.sort(key=lambda each: (each["family"] == own["family"], _far(own, each)))
    usual = sorted(counts.items(), key=lambda pair: -pair[1])
    return {"what": name, "value": word, "same": len(alike), "cards": len(others), "counts": dict(usual),
            "near": [each["name"] for each in alike[:2]]}  # fmt: skip


def _multiples(own, others):
    found = []
    for name, what in (("d_model", "D"), ("heads", "N*H"), ("d_ff", "d_ff"), ("expert", "expert d_ff"), ("vocab", "V")):
        size = own[name]
        if size is not None:
            of = next((each for each in MULTIPLES if size % each == 0), None)
            sizes = [each[name] for each in others if each[name] is not None]
            shares = (
                {str(each): sum(size % each == 0 for size in sizes) / len(sizes) for each in MULTIPLES} if sizes else {}
            )
            found.append({"what": what, "size": size, "multiple_of": of, "shares": shares})
    return found


NUMBERS = ("d_model", "d_ff / D", "active d_ff / D", "N*H / D", "D / L", "vocabulary", "N / K")


def _far(a, b):
    """How unlike two models are: choices that differ, and ratios by their logarithms."""
    found = sum(a[name] != b[name] for name in CHOICES if name in a and name in b)
    for name in NUMBERS:
        if (a[name] is None) != (b[name] is None):
            found += 1
        elif a[name] is not None:
            found += min(abs(math.log(a[name] / b[name])), 2)
    return found


def _relatives(own, others):
    """The nearest cards, and in which choices they differ."""
    nearest = sorted(others, key=lambda each: _far(own, each))
    chosen = nearest[:2] + [each for each in nearest[2:] if each["family"] != own["family"]][:2]
    return [
        {
            "name": each["name"],
            "distance": _far(own, each),
            "differs": [f"{name}: {each[name]}" for name in CHOICES if each[name] != own[name]],
        }
        for each in chosen
    ]
