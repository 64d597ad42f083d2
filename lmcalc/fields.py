"""The vocabulary of model cards: every field that an architecture may have, one row each.

A row is (kind, what it is, size when shrunk). Kinds: "size" (integer of at least 1), "layers" (a size of at most
MOST_LAYERS), "count" (integer of at least 0), "number" (finite), "positive" (finite, above 0), "bool", "text", "table"
(checked by its component), "list", "size_rule" (a size, or text that gives it from d_model, see `rule`), or a tuple of
the allowed words. The last entry is the size that a field takes in a shrunken copy of a card (`lmcalc validate`):
small, all distinct, prime where the structure allows; None keeps the card's own value. A component says which fields
it reads and what they default to; a field that no part of a model reads is an error.
"""

from .errors import InputError
from .numbers import exact_div

MOST = 2**40  # a size beyond this is a mistake, and products of sizes must stay finite as floats
MOST_LAYERS = 10_000  # more are a mistake, and lists of them take long

FIELDS = {
    # sizes
    "n_layers": ("layers", "decoder blocks (encoder blocks in an encoder), L", 3),
    "n_encoder_layers": ("layers", "encoder blocks of an encoder-decoder", 2),
    "d_model": ("size", "width of the residual stream, D", 23),
    "n_heads": ("size", "query heads, N = K*R", None),
    "n_kv_heads": ("size", "key/value heads, K", None),
    "head_dim": ("size", "size of a head, H", None),
    "d_ff": ("size_rule", "width of the feed-forward after its gate, F; or a rule, see `rule`", 29),
    "vocab_size": ("size", "tokens in the vocabulary, V", 37),
    "encoder": (
        "table",
        "fields in which the encoder of an encoder-decoder differs; one with vocab_size or d_model embeds by itself",
        None,
    ),
    "max_positions": ("size", "longest context that the model was made for; rows of a learned table", 31),
    "embedding_dim": ("size", "width of the embedding table where it is not d_model (OPT 350M)", 17),
    "token_types": ("size", "rows of a table of token types (BERT)", 2),
    "more_token_types": ("list", "rows of further such tables (ERNIE: tasks; TAPAS: columns, rows ...)", None),
    "layer_groups": ("layers", "groups of layers, one after the other, that share the weights of one (ALBERT)", None),
    # layers that differ
    "layers": (
        "list",
        'kinds of the layers in order, repeated to n_layers: names of [architecture.kinds], or "5*name"',
        None,
    ),
    "kinds": ("table", "for each kind of layer the fields in which it differs", None),
    # choices
    "stack": (("decoder", "encoder", "encoder_decoder"), "which stacks the model has", None),
    "block": (
        (
            "serial",
            "parallel",
            "parallel_two_norms",
            "altup",
            "normed_residual",
            "shortcut",
            "bottleneck",
            "adapted",
            "hybrid",
            "hyper_connections",
            "attention_residual",
        ),
        "attention and feed-forward one after the other, or side by side behind one shared norm or one each, ...",
        None,
    ),
    "norm_placement": (
        ("pre", "post", "double", "output"),
        "norms before each branch, after each sum, before and after each branch, or after each branch only",
        None,
    ),
    "ffn_output_norm": ("bool", "a norm of the output of the feed-forward, where only it has one (A.X K1)", None),
    "norm_gate_rank": ("size", "rank of a gate on the output of the norm before attention (A.X K2)", 5),
    "ffn_norm_gate": ("bool", "such a gate behind the norm before the feed-forward, too", None),
    "norm": (
        (
            "rmsnorm",
            "rmsnorm_plus_one",
            "rmsnorm_plain",
            "affine",
            "layernorm",
            "layernorm_no_bias",
            "layernorm_plain",
            "layernorm_plus_one",
        ),
        "kind of every norm; plain: without weights",
        None,
    ),
    "norm_eps": ("positive", "epsilon of the norms", None),
    "embedding_norm": ("bool", "a norm right behind the embedding (BLOOM, BERT)", None),
    "embedding_norm_kind": (
        ("rmsnorm", "rmsnorm_plain", "layernorm"),
        "kind of that norm, where not that of the others (Muse)",
        None,
    ),
    "output_norm_eps": ("positive", "epsilon of norms behind branches, where not norm_eps (Muse)", None),
    "embedding_norm_first": ("bool", "it lies before positions are added (decoder of Blenderbot small)", None),
    "attention_norm": ("bool", "the norm before attention, where norms lie there (ModernBERT: not in layer 0)", None),
    "final_norm": ("bool", "a norm before the head", None),
    "final_norm_kind": (
        ("rmsnorm", "rmsnorm_plus_one", "layernorm", "layernorm_no_bias"),
        "kind of that norm, where not that of the others (ESM C)",
        None,
    ),
    "ffn": (
        (
            "relu",
            "relu2",
            "gelu",
            "gelu_tanh",
            "silu",
            "elu",
            "selu",
            "xielu",
            "glu",
            "reglu",
            "relu2glu",
            "geglu",
            "geglu_tanh",
            "swiglu",
            "liglu",
            "swiglu_clamped",
            "swiglu_limited",
            "swiglu_capped",
            "situ",
            "channel_mix",
            "none",
        ),
        "activation of the feed-forward; names in -glu are gated (three matrices); channel_mix: RWKV's; none: none",
        None,
    ),
    "ffn_bias": ("bool", "biases in the feed-forward", None),
    "ffn_down_bias": ("bool", "a bias in its last matrix alone (GTE)", None),
    "ffn_sub_norm": ("bool", "a norm of what goes into the last matrix of the feed-forward (BitNet)", None),
    "ffn_scales": ("list", "factors on gate and output of a gated feed-forward (Falcon-H1)", None),
    "situ_beta": ("positive", "bound of the gate of situ (Kimi K3)", None),
    "situ_up_beta": ("positive", "bound of its other branch, where it has one", None),
    "ffn_limit": ("positive", "what swiglu_clamped, swiglu_limited and swiglu_capped clamp at", None),
    "residual_scale": ("positive", "factor on each branch before it is added (Granite, MiniCPM)", None),
    "residual_by_depth": (
        "bool",
        "the n-th sum is sqrt((n - 1) / n) of the stream and sqrt(1 / n) of the branch (Beam)",
        None,
    ),
    "residual_factors": ("list", "factors on residual and output of each branch (block normed_residual)", None),
    # positions
    "positions": (
        (
            "none",
            "learned",
            "sinusoidal",
            "rotary",
            "alibi",
            "relative_bias",
            "relative_shaw",
            "relative_xl",
            "disentangled",
        ),
        "how positions enter",
        None,
    ),
    "position_offset": (
        "count",
        "rows of a learned table before the first position (OPT: 2), or its number in sinusoids",
        2,
    ),
    "disentangled": ("table", "how positions = disentangled enters (DeBERTa): see components/disentangled.py", None),
    "position_table": ("bool", "a learned table beside other positions (MPNet)", None),
    "sinusoid_form": (
        ("turns", "halves", "tensor2tensor"),
        "sines and cosines in turns; all sines first (CTRL); the same with frequencies down to 1/10000 (XGLM)",
        None,
    ),
    "rope_base": ("positive", "base of the rotary frequencies", None),
    "rope_layout": (("half", "interleaved"), "rotary pairs: two halves of a head, or neighbours", None),
    "rope_backward": ("bool", "queries and keys turn the other way round (nanochat)", None),
    "rotary_dim": ("size", "entries of a head that are turned, where not all are", 6),
    "rope_scaling": ("table", "rescaled rotary frequencies", None),
    "position_buckets": ("size", "buckets of a relative bias (T5)", 8),
    "position_max_distance": ("size", "distance from which on a relative bias, or relative vectors, stay the same", 11),
    "own_position_bias": ("bool", "each layer has a table of relative biases of its own (UMT5)", None),
    "alibi_slopes": (("bloom", "mpt", "falcon"), "ALiBi slopes where the number of heads is no power of two", None),
    "alibi_bias_max": ("positive", "exponent of the last ALiBi slope (MPT)", None),
    # attention
    "attention_bias": (
        ("none", "qkv", "out", "all", "all_but_k"),
        "which attention projections have biases",
        None,
    ),
    "qk_norm": (
        ("none", "head", "head_last", "each_head", "full", "l2"),
        "norm of queries and keys: one weight of head size, the same behind the turn (Hunyuan), one for each head, "
        "over the full width, or L2 without weight",
        None,
    ),
    "qk_norm_kind": (
        ("rmsnorm", "rmsnorm_plus_one", "layernorm", "layernorm_no_bias"),
        "kind, where not that of the others",
        None,
    ),
    "attention_softcap": ("positive", "cap * tanh(score / cap) on attention scores", None),
    "attention_sinks": ("bool", "a learned logit a head that takes part in the softmax only (gpt-oss)", None),
    "qkv_clip": ("positive", "queries, keys and values clipped to +- this", None),
    "score_scale": ("positive", "factor on attention scores, where not 1/sqrt(head_dim)", None),
    "bottleneck_dim": ("size", "width inside the layers of block bottleneck (MobileBERT)", 15),
    "ffns_per_layer": ("layers", "feed-forwards one behind the other in such a layer", 3),
    "adapter_languages": ("list", "languages with an adapter in each layer of block adapted (X-MOD)", None),
    "adapter_language": ("text", "the one that is used, where not the first", None),
    "adapter_dim": ("size", "width inside an adapter", 9),
    "projection_groups": ("size", "groups of channels that q, k, v and the feed-forward keep apart (SqueezeBERT)", 1),
    "window": ("size", "keys that a query may attend to, itself included", 6),
    "attention_chunk": ("size", "a query attends to keys of its own chunk of so many tokens (Llama 4)", 6),
    "sparse_pattern": (("strided", "fixed"), "pattern of a sparse Transformer (Child et al. 2019)", None),
    "sparse_stride": ("size", "its stride, or the size of its blocks", 4),
    "sparse_summary": ("size", "last keys of a block that all later blocks see, in the pattern fixed", 1),
    "attention_gate": ("bool", "the output of attention times sigmoid of a projection as wide (Qwen3-Next)", None),
    "attention_gate_by_head": ("bool", "one such gate for each head", None),
    "attention_gate_activation": (("sigmoid", "softplus"), "its activation, where not sigmoid", None),
    "attention_gate_bias": (
        ("none", "head"),
        "a bias for each head or none, where not as attention_bias says",
        None,
    ),
    "attention_temperature": (
        "positive",
        "a: queries times 1 + a log(1 + floor((position + 1) / attention_temperature_floor))",
        None,
    ),
    "attention_temperature_floor": ("size", "positions between two steps of that growth", 4),
    "attention_growth": (
        ("log_next", "log", "power"),
        "another such growth: with the position itself (Mistral), or (1 + (position + 1) / floor)**a (Beam)",
        None,
    ),
    "attention_sub_norm": ("bool", "a norm of what goes into the output projection (BitNet)", None),
    "v_head_dim": ("size", "size of a value, where not that of a key", 11),
    "v_from_k": ("bool", "values are keys before these are normed and turned; no weight of their own (Gemma 4)", None),
    "v_norm": ("bool", "values are normed, without a weight (Gemma 3n)", None),
    "value_scale": ("positive", "factor on values before they are cached (MiMo-V2-Flash)", None),
    "kv_from": ("text", "kind of layer whose last one before gives this one its keys and values (Gemma 3n)", None),
    "attention_experts": ("size", "query and output projections that a token chooses from, as of experts (JetMoE)", 5),
    "differential": ("bool", "differential attention (DiffLlama)", None),
    # Gemma 3n and Gemma 4
    "altup_streams": ("size", "residual streams of the block altup, n", 3),
    "altup_scale": ("bool", "a weight on its corrected first stream", None),
    "laurel_rank": ("size", "rank of its learned residual", 5),
    "per_layer_dim": ("size", "width of the embeddings that each layer has of its own", 9),
    "per_layer_vocab": ("size", "rows of their table, where not vocab_size", 33),
    "layer_scale": ("bool", "a factor on what leaves a layer, a buffer (Gemma 4)", None),
    "ffn_sparsity": ("positive", "share of the feed-forward's hidden entries that become zero (Gemma 3n)", None),
    # blocks that layers share (Zamba)
    "shared_blocks": ("layers", "transformer blocks that layers of block hybrid share", 2),
    "shared_block": ("count", "which of them a layer has, from 0 on", None),
    "shared_ffn": (
        ("glu", "reglu", "geglu", "geglu_tanh", "swiglu", "liglu"),
        "activation of their feed-forward",
        None,
    ),
    "adapter_rank": ("size", "rank of what a layer adds to their projections, where it adds something", 3),
    "attention_adapter": ("bool", "to those of attention, too", None),
    # latent attention
    "q_latent_dim": ("size", "width that queries are projected down to", 19),
    "q_latent_both": ("bool", "queries are made from the normed latent and the latent itself (A.X K2)", None),
    "kv_latent_dim": ("size", "latent that keys and values are made from: latent attention (DeepSeek V2)", 13),
    "nope_head_dim": ("size", "entries of a latent head's key that come from the latent", 9),
    "rope_head_dim": ("size", "entries of its key that are turned, the same for all heads", 8),
    "latent_norm_eps": ("positive", "epsilon of the norms of latents, where not norm_eps", None),
    "k_rope_norm": ("bool", "a norm of the turned part of keys before it is turned (dots3)", None),
    "q_latent_scale": ("positive", "factor on the normed latent of queries (LongCat)", None),
    "kv_latent_scale": ("positive", "factor on the normed latent of keys and values (LongCat)", None),
    "index_topk": ("size", "keys that a query attends to, chosen by an indexer (DeepSeek V3.2)", 4),
    "index_heads": ("size", "heads of the indexer", 3),
    "index_head_dim": ("size", "size of a head of the indexer", 10),
    "index_rope_layout": (("half", "interleaved"), "rotary pairs of the indexer, where not as rope_layout", None),
    "index_rope_last": ("bool", "the last entries of its heads are turned, not the first (Hy4)", None),
    "index_norm_eps": ("positive", "epsilon of the norm of its keys, where not that of latents", None),
    "index_shared": ("bool", "keys are those that the last layer with an indexer chose (GLM 5.2)", None),
    "index_block_size": ("size", "keys of a block, where an indexer chooses among blocks of keys (MiniMax M3)", 3),
    "index_topk_blocks": ("size", "blocks that a query attends to", 2),
    "index_local_blocks": ("size", "of these, its own and those right before it, whatever they score", None),
    # compressed attention and hyper-connections (DeepSeek V4)
    "out_groups": ("size", "groups of heads that go down to out_latent_dim numbers each before the output", 3),
    "out_latent_dim": ("size", "those numbers, of a group", 13),
    "compression": ("size", "tokens of a window for which the cache has one entry, J (beside the last tokens)", 5),
    "compression_overlap": ("bool", "an entry is made of its window and the one before", None),
    "residual_block_size": ("layers", "layers of a block, with block attention_residual (Kimi K3)", 2),
    "hyper_streams": ("size", "residual streams of the block hyper_connections, n", 3),
    "hyper_iterations": ("size", "how often rows and columns of their mixing are divided by their sums", 3),
    "hyper_magnitude": ("positive", "streams are not mixed, and branches added to each, at most so much (Hy4)", None),
    "hyper_eps": ("positive", "added to those sums", None),
    # mixtures of experts
    "n_experts": ("count", "experts that a router chooses from, E; 0 for layers with a plain feed-forward", 7),
    "experts_per_token": ("size", "experts that a token uses, A", None),
    "expert_d_ff": ("size", "width of an expert", 19),
    "expert_latent": ("size", "width in which experts work, where not d_model: projected down and up (Nemotron 3)", 11),
    "expert_latent_norm": ("bool", "the sum over experts is normed before it leaves that width (Kimi K3)", None),
    "expert_bias": ("bool", "biases in the experts", None),
    "expert_ffn": (
        ("swiglu", "swiglu_clamped", "swiglu_limited", "swiglu_capped"),
        "activation of the experts, where not that of other feed-forwards (Hy4)",
        None,
    ),
    "expert_ffn_limit": ("positive", "what it is clamped at, where not ffn_limit (Step 3.5)", None),
    "expert_input_scaled": ("bool", "router weights multiply what goes into an expert (Llama 4)", None),
    "expert_output_bias": ("bool", "a bias on the sum over experts (JetMoE)", None),
    "experts_scale": ("positive", "factor on the sum of experts and shared expert (Cohere 2 MoE: 1/2)", None),
    "n_zero_experts": ("size", "further choices that are no experts: they give back what they get (LongCat)", 2),
    "n_shared_experts": ("size", "experts that every token uses: one feed-forward of so many times expert_d_ff", None),
    "shared_d_ff": ("size", "width of the shared expert, where not given by n_shared_experts", 13),
    "shared_gate": ("bool", "a sigmoid of one product with the input scales the shared expert (Qwen2-MoE)", None),
    "router": (
        ("softmax", "topk_softmax", "sigmoid", "topk_sigmoid", "sqrtsoftplus", "sparsemixer"),
        "scores: softmax over all experts, or over the chosen ones; sigmoid of each, or of the chosen ones; "
        "sqrt(softplus) of each; SparseMixer-v2",
        None,
    ),
    "router_hashed": ("bool", "a fixed table says by token id which experts are chosen (DeepSeek V4)", None),
    "router_normalized": ("bool", "weights of the chosen experts divided by their sum", None),
    "router_eps": ("positive", "added to that sum", None),
    "router_scale": ("positive", "factor on the weights of the chosen experts", None),
    "router_softcap": ("positive", "cap * tanh(logit / cap) on the router's logits (Laguna)", None),
    "router_bias": (
        ("none", "linear", "correction", "correction_parameter"),
        "bias on the router's logits; or on its scores for the choice only, a buffer (DeepSeek V3) or not (Ernie)",
        None,
    ),
    "expert_capacity": ("size", "tokens of a sequence that an expert takes in a pass (Switch Transformers)", None),
    "router_jitter": ("positive", "threshold of sparsemixer", None),
    "n_expert_groups": ("size", "groups of experts: a token chooses within the best of them", None),
    "expert_groups_used": ("size", "how many groups that are", None),
    "expert_group_score": (("max", "top2"), "of a group: its largest score, or the sum of its two largest", None),
    "experts_beside_ffn": ("bool", "a dense feed-forward beside the experts, norms around each (Gemma 4)", None),
    # multi-token prediction
    "n_mtp_layers": ("layers", "modules that predict further tokens; not part of the main model", None),
    # layers that mix tokens otherwise
    "mixer": (
        (
            "attention",
            "mamba",
            "mamba2",
            "attention_and_mamba2",
            "rwkv",
            "rwkv5",
            "gated_delta",
            "kimi_delta",
            "lightning",
            "rg_lru",
            "short_conv",
            "none",
        ),
        "what mixes the tokens of a layer; with none it is a feed-forward alone",
        None,
    ),
    "state_dim": ("size", "numbers in the state of each channel (Mamba), X", 9),
    "conv_kernel": ("size", "tokens that a short convolution sees, J", 4),
    "d_inner": ("size", "channels of a Mamba layer", 19),
    "dt_rank": ("size", "numbers through which Mamba's time step goes, Y", 3),
    "n_mixer_heads": ("size", "heads of a mixer (of values, in a delta rule)", None),
    "n_mixer_groups": ("size", "groups of them that share B and C (Mamba-2), queries and keys (delta rule), K", None),
    "mixer_head_dim": ("size", "size of such a head (of its keys, in a delta rule), H", 11),
    "mixer_value_dim": ("size", "size of its values, where another, U", 13),
    "mixer_width": ("size", "channels that RWKV mixes, where not d_model", 21),
    "gate_rank": ("size", "numbers through which the gates of Kimi delta attention go, where not mixer_head_dim", 5),
    "gates_full_rank": ("bool", "those gates are one matrix each (Ling 3)", None),
    "output_gate_full_rank": ("bool", "its output gate is one matrix, its decay is not (Kimi K3)", None),
    "decay_floor": ("number", "least logarithm of a decay of Kimi delta attention, then bounded (Ling 3)", None),
    "chunk_size": ("size", "tokens that a recurrence takes at once in a prefill, Q", 3),
    "mixer_norm": (
        ("none", "gated", "before_gate", "selected", "selected_plain"),
        "norm inside a mixer: of its gated output, of its output before the gate (Mamba-2), or of dt, B and C (Mamba)",
        None,
    ),
    "mixer_norm_eps": ("positive", "epsilon of that norm, where not that of the others", None),
    "mixer_bias": (("none", "in", "out", "all"), "which projections of a mixer have biases", None),
    "conv_bias": ("bool", "a bias behind a short convolution", None),
    "mixer_activation": (
        ("silu", "gelu", "gelu_tanh", "relu"),
        "activation inside a mixer, where another than its own",
        None,
    ),
    "time_step_limit": ("list", "least and largest time step (Mamba-2)", None),
    "mixer_scales": ("list", "factors on gate, x, B, C and dt of Mamba-2 (Falcon-H1)", None),
    "mixer_in_scale": ("positive", "factor on the input of Mamba-2 (Falcon-H1)", None),
    "mixer_out_scale": ("positive", "factor on its output", None),
    "attention_in_scale": ("positive", "factor on the input of attention beside it", None),
    "attention_out_scale": ("positive", "factor on the output of attention beside it", None),
    "beta_scale": ("positive", "factor on the write strength of a delta rule (2: negative eigenvalues)", None),
    # embedding and head
    "tied": ("bool", "the output head is the input embedding", None),
    "head_bias": ("bool", "a bias on the logits", None),
    "head_vocab": ("size", "tokens that the head knows, the first ones, where not all (Apertus 1.5)", 32),
    "logits_bias": ("bool", "a bias on the logits that no training changes, a buffer (BART)", None),
    "head_transform": ("bool", "a dense layer, activation and norm before the head (BERT)", None),
    "head_norm_kind": (
        ("rmsnorm", "rmsnorm_plus_one", "layernorm", "layernorm_no_bias"),
        "kind of the norm there, where not that of the others (MobileBERT)",
        None,
    ),
    "head_rest": ("bool", "behind a tied table narrower than d_model a matrix for the rest of it (MobileBERT)", None),
    "head_transform_dim": ("size", "width that it leads to, where neither d_model nor that of a tied table", 21),
    "head_transform_bias": ("bool", "a bias in that layer (ModernBERT: none)", None),
    "head_activation": (
        ("relu", "relu2", "gelu", "gelu_tanh", "silu", "elu", "selu"),
        "activation behind that layer, where not that of the feed-forward (ELECTRA, ModernBERT)",
        None,
    ),
    "embedding_neighbours": ("bool", "the rows of both neighbours beside a token's own (MobileBERT)", None),
    "embedding_tables": (
        "list",
        "[rows, width] of further tables, whose vectors are joined to that of a token and projected to d_model with it "
        "(RoCBert: shape, pronunciation)",
        None,
    ),
    "embedding_projection": (
        ("table", "sum"),
        "where a table of width embedding_dim is brought to d_model: right behind it (OPT 350M), or behind positions, "
        "token types and norm (ELECTRA, ALBERT)",
        None,
    ),
    "embedding_projection_bias": ("bool", "a bias in that projection", None),
    "embedding_scale": ("positive", "factor on the embeddings", None),
    "head_scale": ("positive", "factor on the hidden state before the head (T5: 1/sqrt(d_model))", None),
    "logit_scale": ("positive", "factor on the logits", None),
    "logit_softcap": ("positive", "cap * tanh(logit / cap) on the logits", None),
    # recorded, not computed
    "dropout": ("number", "dropout of training", None),
    "attention_dropout": ("number", "dropout on attention weights in training", None),
    "weight_decay": ("number", "weight decay of training", None),
}


def tables(fields):
    """The fields of a model, and the tables of what differs from them: in kinds of layers, in an encoder."""
    encoder = fields.get("encoder", {})
    return [fields, *fields.get("kinds", {}).values(), encoder, *encoder.get("kinds", {}).values()]


def rule(text):
    """A size given as a multiple of d_model, as (numerator, denominator, multiple), or None if it is no such rule.

    "8/3*d_model" gives a gated feed-forward the parameters of a plain one of 4*d_model (Shazeer 2020, sec. 3.1);
    "8/3*d_model:256" rounds up to a multiple of 256 (LLaMA 1 and 2), "1.3*8/3*d_model:1024" is LLaMA 3's 8B.

    >>> rule("8/3*d_model:256"), rule("1.3*8/3*d_model:1024"), rule("d_model**2")
    ((8, 3, 256), (104, 30, 1024), None)
    """
    product, _, multiple = text.replace(" ", "").partition(":")
    *factors, last = product.split("*")
    if last != "d_model" or (":" in text and not _digits(multiple)):
        return None
    numerator = denominator = 1
    for factor in factors:
        for number, below in zip(factor.split("/", 1), (False, True)):
            whole, _, decimals = number.partition(".")
            if not _digits(whole + decimals):
                return None
            over, under = int(whole + decimals), 10 ** len(decimals)
            numerator, denominator = numerator * (under if below else over), denominator * (over if below else under)
    return numerator, denominator, int(multiple or 1)


def _digits(text):
    return len(text) <= 20 and text.isascii() and text.isdigit() and int(text) > 0


def resolved(fields, where):
    """The fields with a rule for d_ff replaced by the size that it gives, rounded up; of a symbol it is exact."""
    d_model, kinds, encoder = fields.get("d_model"), fields.get("kinds"), fields.get("encoder")

    def done(table):
        text = table.get("d_ff")
        if not isinstance(text, str):
            return table
        parts = rule(text)
        if parts is None or d_model is None:
            allowed = "a size, or a rule with a given d_model such as 8/3*d_model:256"
            raise InputError(f"{where}: d_ff = {text!r}; allowed: {allowed}")
        numerator, denominator, multiple = parts
        if isinstance(d_model, int):
            size = -(-numerator * d_model // (denominator * multiple)) * multiple
            if size > MOST:
                raise InputError(f"{where}: d_ff = {text!r} is more than 2**40; allowed: an integer from 1 to 2**40")
            return table | {"d_ff": size}
        return table | {"d_ff": exact_div(numerator * d_model, denominator)}

    found = done(fields)
    if kinds is not None:
        found = found | {"kinds": {name: done(each) for name, each in kinds.items()}}
    if encoder is None:
        return found
    own = resolved({"d_model": d_model, **encoder}, f"{where}: encoder")
    return found | {"encoder": {name: own[name] for name in encoder}}
