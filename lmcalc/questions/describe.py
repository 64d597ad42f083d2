"""What a component is, in words: the lines of a drawing, read off the component's own fields and weights."""

from ..components.blocks import BRANCHES
from ..lenses.params import matrix
from ..patterns import Chunk, Fixed, Strided

NORMS = {
    "RMSNorm": "RMSNorm", "RMSNormPlusOne": "RMSNorm (1 + w)", "LayerNorm": "LayerNorm",
    "LayerNormNoBias": "LayerNorm, no bias", "LayerNormPlain": "LayerNorm, no weights",
    "LayerNormPlusOne": "LayerNorm (1 + w)", "L2Norm": "RMSNorm, no weights", "RMSNormPlain": "RMSNorm, no weights",
    "Affine": "weights and biases, no norm",
}  # fmt: skip
GATED = {"silu": "SwiGLU", "gelu": "GeGLU", "gelu_tanh": "GeGLU", "relu": "ReGLU", "relu2": "gated ReLU^2",
         "sigmoid": "GLU", None: "LiGLU", "clamped_glu": "SwiGLU", "limited_glu": "SwiGLU",
         "situ": "SiTU"}  # fmt: skip
PLAIN = {"relu": "ReLU", "relu2": "ReLU^2", "gelu": "GELU", "gelu_tanh": "GELU", "silu": "SiLU", "xielu": "xIELU"}

RELATIVE = {"Alibi": "ALiBi", "BucketedBias": "relative bias", "OwnBucketedBias": "relative bias",
            "RelativeVectors": "relative vectors (Shaw)", "RelativeXL": "relative (Transformer-XL)"}  # fmt: skip


def is_a(component, name):
    """Is it of the class of that name, or made from it? Asked by name, so that nothing is imported to ask."""
    return any(kind.__name__ == name for kind in type(component).__mro__)


def described(component):
    """(line, further lines) of a component; of one without words of its own here, its name and its matrices."""
    for kind in type(component).__mro__:
        if kind.__name__ in WORDS:
            return WORDS[kind.__name__](component)
    return generic(component)


def size(number):
    """A size for people; symbols as they are."""
    return f"{number:,}" if isinstance(number, int) else str(number)


def share(number):
    """A factor for people."""
    return f"{number:.4g}" if isinstance(number, int | float) else str(number)


# Norms, activations, positions -----------------------------------------------------------------------------------


def norm_word(component):
    """The kind of a norm."""
    return NORMS.get(type(component).__name__, type(component).__name__)


def ffn_word(ffn):
    """The activation of a feed-forward, as papers call it."""
    if is_a(ffn, "ChannelMix"):
        return "channel mix"
    if not hasattr(ffn, "activation"):
        return generic(ffn)[0]
    return GATED.get(ffn.activation, ffn.activation) if gated(ffn) else PLAIN.get(ffn.activation, ffn.activation)


def gated(ffn):
    """Does it have three matrices?"""
    return "gate" in ffn.weights()


def window_word(window):
    """Which keys a query may see."""
    if window is None:
        return "all keys before"
    if isinstance(window, Chunk):
        return f"keys of its own chunk of {size(window.size)}"
    if isinstance(window, Strided):
        return f"the last {size(window.size)} keys, and each {size(window.size)}th before"
    if isinstance(window, Fixed):
        return f"keys of its block of {size(window.size)}, and the last {size(window.summary)} of each block before"
    return f"window of {size(window)}"


def sides_word(reach):
    """Which keys a query of an encoder may see."""
    return "all keys, both sides" if reach is None else f"{size(reach)} keys on either side"


def positions_word(attention):
    """How positions enter within a layer: ("rotary", "rotary, base 10,000") or (None, None)."""
    if is_a(attention, "DisentangledAttention"):
        return "disentangled", "disentangled: products with the vectors of distances"
    rotary, relative = getattr(attention, "rotary", None), getattr(attention, "relative", None)
    if relative is not None:
        name = RELATIVE.get(type(relative).__name__, type(relative).__name__)
        return name, name
    if rotary is None:
        return None, None
    text = f"rotary, base {rotary.base:,.0f}"
    head = getattr(attention, "rope_dim", getattr(attention, "head_dim", None))
    if isinstance(head, int) and rotary.size != head:
        text += f", on {size(rotary.size)} of {size(head)}"
    if rotary.scaling is not None:
        factor = rotary.scaling.get("factor")
        text += f", rescaled ({rotary.scaling['kind']}{'' if factor is None else f' x {share(factor)}'})"
    return "rotary", text


def bias_word(component, names):
    """Which of these projections have biases: ["q", "k", "v"]."""
    weights = component.weights()
    return [name for name in names if f"{name}_bias" in weights]


# Mixers of tokens ------------------------------------------------------------------------------------------------


def heads_word(attention):
    """(MHA, MQA or GQA, "32 query heads on 8 key/value heads of 128")."""
    kv_heads, group, head = attention.kv_heads, attention.group, attention.head_dim
    values = attention.values and attention.values.size
    of = f"of {size(head)}" + ("" if values is None else f" (values of {size(values)})")
    if group == 1:
        return "MHA", f"{size(kv_heads)} heads {of}"
    return ("MQA" if kv_heads == 1 else "GQA"), (
        f"{size(kv_heads * group)} query heads on {size(kv_heads)} key/value head{'' if kv_heads == 1 else 's'} {of}"
    )


def attention_words(attention):
    """Softmax attention."""
    kind, heads = heads_word(attention)
    if is_a(attention, "DifferentialAttention"):
        kind = f"differential {kind}"
    lines = [window_word(attention.window) if attention.causal else sides_word(attention.reach)]
    if is_a(attention, "BlockSparseAttention"):
        lines = [blocks_word(attention.indexer)]
    lines.append(positions_word(attention)[1])
    norms = [norm for norm in (attention.q_norm, attention.k_norm) if norm is not None]
    if norms:
        lines.append(f"queries{' and keys' if len(norms) > 1 else ''} normed ({norm_word(norms[0])})")
    if is_a(attention, "SharedAttention"):
        lines.append(f"keys and values of the last {attention.source} layer, no cache of its own")
    if attention.softcap is not None:
        lines.append(f"scores capped at {share(attention.softcap)}")
    if attention.scale is not None:
        lines.append("scores not scaled" if attention.scale == 1 else f"scores times {share(attention.scale)}")
    if attention.sinks:
        lines.append("a sink logit a head")
    if attention.clip is not None:
        lines.append(f"q, k, v clipped at {share(attention.clip)}")
    if attention.values is not None and attention.values.of_keys:
        lines.append("values are keys")
    if attention.sub_norm is not None:
        lines.append(f"output normed before its projection ({norm_word(attention.sub_norm)})")
    if attention.gated:
        lines.append("output gated")
    if attention.temperature is not None:
        lines.append("queries grow with their position")
    biases = bias_word(attention, ("q", "k", "v", "out"))
    if biases:
        lines.append(f"biases on {', '.join(biases)}")
    if getattr(attention, "q_latent", None) is not None:
        lines.append(f"queries from a latent of {size(attention.q_latent)}")
    return f"{kind}, {heads}", lines


def blocks_word(indexer):
    """Which blocks of keys a query may see."""
    blocks = indexer.blocks
    chosen = f"the {size(blocks.count)} blocks of {size(blocks.size)} keys that {indexer_word(indexer)} chose"
    return f"{chosen}, for each key/value head its own"


def indexer_word(indexer):
    """An indexer."""
    return f"an indexer of {size(indexer.heads)} heads of {size(indexer.head_dim)}"


def compressed_words(attention):
    """Attention to a window and to compressed entries."""
    compressor, indexer = attention.compressor, attention.indexer
    lines = [window_word(attention.window)]
    if compressor is not None:
        made = f"one for {size(compressor.size)} tokens" + (", each made of twice as many" if compressor.before else "")
        which = "all" if indexer is None else f"the {size(indexer.topk)} that {indexer_word(indexer)} chose"
        lines.append(f"compressed entries, {made}: {which}")
    lines.append(f"{positions_word(attention)[1]}, also on values")
    lines.append(f"queries and keys normed ({norm_word(attention.head_norm)}; {norm_word(attention.kv_norm)})")
    lines += ["a sink logit a head", f"queries from a latent of {size(attention.q_latent)}"]
    lines.append(f"output of {size(attention.groups)} groups of heads through {size(attention.out_latent)} each")
    kind = "to a window" if compressor is None else "compressed" if indexer is None else "compressed and sparse"
    heads = size(attention.groups * attention.group)
    return f"attention {kind}, {heads} heads on one key and value of {size(attention.head_dim)}", lines


def cross_words(attention):
    """Attention to an encoder."""
    kind, heads = heads_word(attention)
    return f"{kind}, {heads}", ["keys and values of the encoder's output, computed once"]


def latent_words(attention):
    """Latent attention."""
    lines = [f"latent of {size(attention.kv_latent)} and {size(attention.rope_dim)} turned numbers in the cache"]
    if attention.q_latent is not None:
        lines.append(f"queries from a latent of {size(attention.q_latent)}")
    lines.append(window_word(attention.window) if attention.indexer is None else None)
    lines.append(positions_word(attention)[1] or "no positions")
    indexer = attention.indexer
    if indexer is not None:
        scored = indexer_word(indexer) if hasattr(indexer, "heads") else "the last indexer"
        lines.append(f"the {size(indexer.topk)} keys that {scored} chose")
    return (
        f"MLA, {size(attention.heads)} heads of {size(attention.nope_dim)} + {size(attention.rope_dim)}, "
        f"values of {size(attention.v_dim)}"
    ), lines


def mamba_words(mixer):
    """Mamba."""
    return f"Mamba, {size(mixer.heads * mixer.head_dim)} channels, a state of {size(mixer.state_dim)} each", [
        f"convolution of {size(mixer.kernel)}", f"time step from {size(mixer.dt_rank)} numbers",
    ]  # fmt: skip


def mamba2_words(mixer):
    """Mamba-2."""
    heads = mixer.groups * mixer.group
    return f"Mamba-2, {size(heads)} heads of {size(mixer.head_dim)}, a state of {size(mixer.state_dim)} a channel", [
        f"{size(mixer.groups)} group{'' if mixer.groups == 1 else 's'} of B and C",
        f"convolution of {size(mixer.kernel)}", f"chunks of {size(mixer.chunk)}",
    ]  # fmt: skip


def delta_words(mixer):
    """Gated delta rule, and Kimi's."""
    name = "Kimi delta attention" if is_a(mixer, "KimiDelta") else "gated delta rule"
    heads, head = mixer.groups * mixer.group, f"keys of {size(mixer.head_dim)}, values of {size(mixer.value_dim)}"
    return f"{name}, {size(heads)} heads, {head}", [
        f"{size(mixer.groups)} key heads", f"convolution of {size(mixer.kernel)}", f"chunks of {size(mixer.chunk)}",
    ]  # fmt: skip


def lightning_words(mixer):
    """Lightning attention."""
    return f"lightning attention, {size(mixer.heads)} heads of {size(mixer.head_dim)}", ["linear, a fixed decay a head"]


def recurrence_words(mixer):
    """RG-LRU."""
    return f"RG-LRU, {size(mixer.heads * mixer.head_dim)} channels", [f"convolution of {size(mixer.kernel)}"]


def short_conv_words(mixer):
    """Gated short convolution."""
    return f"gated convolution of {size(mixer.kernel)}, {size(mixer.d_model)} channels", []


def matrix_time_words(mixer):
    """RWKV-5."""
    return f"RWKV-5, {size(mixer.heads)} heads of {size(mixer.head_dim)}", [
        f"a state of {size(mixer.head_dim)} x {size(mixer.head_dim)} a head", "a decay a channel, a gate",
    ]  # fmt: skip


# Streams of the residual ----------------------------------------------------------------------------------------


def connection_words(around):
    """Hyper-connections around a branch."""
    how = "left as they are" if around.iterations is None else f"mixed by a matrix balanced {around.iterations} times"
    return f"hyper-connection, {size(around.streams)} streams", [f"streams {how}"]


def streams_word(widen):
    """What makes streams of an embedding."""
    if hasattr(widen, "streams"):
        return f"from one residual stream to {size(widen.streams)}"
    return "the first residual stream; each block of layers begins another"


def narrow_word(narrow):
    """What makes a hidden state of streams."""
    if hasattr(narrow, "streams"):
        return f"from {size(narrow.streams)} residual streams to one"
    return "a weighted sum of all residual streams"


# Feed-forwards ---------------------------------------------------------------------------------------------------


def ffn_words(ffn):
    """A feed-forward."""
    width = f"{size(ffn.d_model)} -> {size(ffn.d_ff)} -> {size(ffn.d_model)}"
    lines = ["biases"] if any(name.endswith("bias") for name in ffn.weights()) else []
    if getattr(ffn, "sub_norm", None) is not None:
        lines.append(f"normed before the last matrix ({norm_word(ffn.sub_norm)})")
    if getattr(ffn, "deviations", None) is not None:
        lines.append(f"entries below mean + {share(ffn.deviations)} deviations made zero")
    return f"{ffn_word(ffn)}, {width}", lines


def mixture_words(moe):
    """A mixture of experts."""
    experts, router = moe.experts, moe.router
    lines = [f"each {described(experts.ffn)[0]}"]
    if moe.shared is not None:
        lines.append(f"shared: {described(moe.shared.ffn)[0]}")
    scores = {"softmax": "softmax", "topk_softmax": "softmax of the chosen", "sparsemixer": "SparseMixer"}
    lines.append(f"router: {scores.get(router.kind, router.kind)}")
    if is_a(router, "HashRouter"):
        lines.append("which ones, says a table by token id")
    if router.groups is not None:
        lines.append(f"within {size(router.groups[1])} of {size(router.groups[0])} groups")
    if moe.latent_in is not None:
        lines.append(f"experts in a width of {size(moe.latent_in.outputs)}")
    return f"{size(experts.per_token)} of {size(experts.experts)} experts", lines


def beside_words(both):
    """A dense feed-forward beside experts."""
    experts = both.experts
    return f"{described(both.dense)[0]}, and beside it {size(experts.per_token)} of {size(experts.experts)} experts", [
        f"each {described(experts.ffn)[0]}"
    ]


# Embedding and head ----------------------------------------------------------------------------------------------


def embedding_words(embedding):
    """The token embedding."""
    text = f"{size(embedding.vocab_size)} x {size(embedding.width)}"
    if embedding.scale is not None:
        text += f", times {share(embedding.scale)}"
    return text, [] if embedding.project_in is None else [
        f"then {size(embedding.width)} -> {size(embedding.project_in.outputs)}"
    ]


def head_words(head):
    """The head."""
    lines = ["a dense layer and a norm before it"] if head.transform is not None else []
    if head.project_out is not None:
        lines.append(f"{size(head.project_out.inputs)} -> {size(head.width)} before it")
    if head.softcap is not None:
        lines.append(f"logits capped at {share(head.softcap)}")
    if head.bias or head.logits_bias:
        lines.append("biases" if head.bias else "biases that are a buffer")
    return f"{size(head.width)} -> {size(head.vocab_size)}{', the embedding again' if head.tied else ''}", lines


def generic(component):
    """The name of its class, and the sizes of its matrices."""
    axes, found = component.axes(), []
    for name, spec in component.weights().items():
        if "->" in spec:
            _, *around = (_size(term) for term in matrix(spec, axes))
            found.append(f"{name} {around[0]} -> {around[1]}")
    return " ".join(_words(type(component).__name__)), found


def _size(term):
    number = term[0]
    for atom in term[1]:
        number = number * atom
    return size(number)


def _words(name):
    word = ""
    for letter in name:
        if letter.isupper() and word and not word[-1].isupper():
            yield word.lower()
            word = ""
        word += letter
    yield word.lower()


WORDS = {
    "Attention": attention_words, "CrossAttention": cross_words, "LatentAttention": latent_words,
    "Mamba": mamba_words, "Mamba2": mamba2_words, "GatedDelta": delta_words, "Lightning": lightning_words,
    "GatedRecurrence": recurrence_words, "ShortConv": short_conv_words,
    "FeedForward": ffn_words, "MixtureOfExperts": mixture_words, "DenseAndExperts": beside_words,
    "TokenEmbedding": embedding_words, "Head": head_words,
    "AltUp": lambda altup: (f"predicts and corrects {size(altup.streams)} residual streams", []),
    "Laurel": lambda laurel: (f"residual of rank {size(laurel.rank)}", []),
    "PerLayerInput": lambda layer: (f"{size(layer.width)} numbers of the token for each layer", []),
    "PerLayerEmbedding": lambda table: (
        f"{size(table.rows)} x {size(table.layers)} layers x {size(table.width)}, an embedding a layer", []),
    "Widen": lambda widen: (streams_word(widen), []), "Narrow": lambda narrow: (narrow_word(narrow), []),
    "HyperConnection": connection_words,
    "Mix": lambda mix: ("weighted sum of the residual streams of all blocks of layers", []),
    "CompressedAttention": compressed_words, "MatrixTimeMix": matrix_time_words,
    "TimeMix": lambda mixer: (f"RWKV, {size(mixer.width)} channels", ["a decay a channel"]),
    "ChannelMix": lambda ffn: (f"channel mix, {size(ffn.d_model)} -> {size(ffn.d_ff)} -> {size(ffn.d_model)}", []),
    "RMSNorm": lambda norm: (norm_word(norm), []), "L2Norm": lambda norm: (norm_word(norm), []),
    "SinusoidalPositions": lambda positions: ("sines and cosines, added", []),
    "LearnedPositions": lambda positions: (f"{size(positions.axes()['J'])} x {size(positions.d_model)}, added", []),
    "PositionBias": lambda bias: (f"relative bias in {size(bias.buckets)} buckets, shared by all layers", []),
    "DistanceVectors": lambda vectors: (
        f"{size(vectors.axes()['J'])} x {size(vectors.d_model)}, a vector a distance, for all layers", []),
    "MoreTokenTypes": lambda more: (
        f"{' + '.join(size(each.types) for each in more.tables)} x {size(more.tables[0].d_model)}, added", []),
    "LanguageAdapters": lambda adapters: (
        f"{len(adapters.languages)} languages, {described(adapters.used)[0]}", [f"used: {adapters.language}"]),
    "TokenTypes": lambda types: (f"{size(types.types)} x {size(types.d_model)}, added", []),
}  # fmt: skip

# Blocks ----------------------------------------------------------------------------------------------------------


def equations(block):
    """What a block computes, a line a branch."""
    for kind in type(block).__mro__:
        if kind.__name__ in EQUATIONS:
            return EQUATIONS[kind.__name__](block)
    return [(type(block).__doc__ or type(block).__name__).partition("\n")[0].rstrip(".")]


def _serial(block):
    found = []
    scale = "" if block.residual_scale is None else f"{share(block.residual_scale)} "
    for name in BRANCHES:
        if getattr(block, name) is not None:
            inside = f"{name}({'x' if getattr(block, f'{name}_norm') is None else 'norm(x)'})"
            if getattr(block, f"{name}_output_norm") is not None:
                inside = f"norm({inside})"
            total = f"x + {scale}{inside}"
            found.append(total if getattr(block, f"{name}_sum_norm") is None else f"norm({total})")
    if getattr(block, "per_layer", None) is not None:
        found.append("x + per_layer(x, the layer's own embedding)")
    return found


def _parallel(block):
    names = ("norm", "norm") if block.ffn_norm is None else ("norm_1", "norm_2")
    both = f"attention({names[0]}(x)) + ffn({names[1]}(x))"
    return [f"x + {both}" if block.residual_scale is None else f"x + {share(block.residual_scale)} ({both})"]


def _normed_residual(block):
    names = [name for name in BRANCHES if getattr(block, name) is not None]
    times = ["" if factor == 1 else f"{share(factor)} " for pair in block.factors for factor in pair]
    return [f"x = norm(x); {a}x + {b}{name}(x)" for name, a, b in zip(names, times[::2], times[1::2])]


def _branches(block):
    return [name for name in BRANCHES if getattr(block, name, None) is not None]


def _residual(block):
    found = []
    for at, name in enumerate(_branches(block)):
        read = "x" if getattr(block, f"{name}_mix") is None else "mix(streams, x)"
        found.append(f"{'x, kept as a stream; then ' if block.opens and not at else 'x + '}{name}(norm({read}))")
    return found


EQUATIONS = {
    "NormedResidualBlock": _normed_residual,
    "HyperBlock": lambda block: [f"comb streams + post {name}(norm(pre streams))" for name in _branches(block)],
    "ResidualBlock": _residual,
    "SerialBlock": _serial,
    "ParallelBlock": _parallel,
    "ShortcutBlock": lambda block: [
        "x + attention_0(norm(x)); then h = norm(x)", "x + ffn_0(h)", "x + attention_1(norm(x))",
        "x + ffn_1(norm(x)) + experts(h)",
    ],
    "SharedLayer": lambda layer: equations(layer.block),
    "AdaptedBlock": lambda block: [*_serial(block), "norm(x + adapters(x))"],
    "BottleneckBlock": lambda block: [
        "y = entry(x), norm(y + attention(query_entry(x), x))",
        f"{size(block.ffns)} times norm(y + ffn(y)), then norm(x + leave(y))",
    ],
    "HybridBlock": lambda block: [f"x + mixer(norm(x + project(memory_{block.number}([x; embedding]))))"],
    "AltUpBlock": lambda block: [
        "all streams predicted; then of the first one", "x + norm(attention(norm(x))) + laurel(norm(x))",
        "x + norm(ffn(norm(x)))", "all streams corrected, + the layer's own embedding",
    ],
}  # fmt: skip
