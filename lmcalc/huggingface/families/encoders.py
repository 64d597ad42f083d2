"""Encoders with a masked-language-model head, and decoders of their make: one short function for each `model_type`.

All tokens count as of the first type, task or language, as in the classes where nothing else is given.
"""

import math

from ...cards import is_kind
from ..layers import combined, layer_types, rotary
from .common import ACTIVATIONS, PLAIN, bias, flag, gated, head_dim, plain, sizes
from .dense import llama

ONLY = "no published model has another"
BEFORE = {"norm_placement": "pre", "final_norm": True}  # where norms lie before the branches


def bert(c):
    return _alone(c) | {"token_types": c.need("size", "type_vocab_size")}


def roberta(c):
    return behind_padding(c, bert(c))


def behind_padding(c, found, row=None):
    """The same with positions that begin behind the row of the padding token, and a head that always has GeLU."""
    given = c.get("count", "pad_token_id") if c.given("pad_token_id") else 1  # where the class has one, it is 1
    rows, first = c.need("size", "max_position_embeddings"), (given if row is None else row) + 1
    if rows <= first:
        c.refuse("max_position_embeddings", rows, f"more than {first}, the rows before the first position")
    return found | {"max_positions": rows - first, "position_offset": first, "head_activation": "gelu"}


def xlm_roberta_xl(c):
    return roberta(c) | BEFORE | {"embedding_norm": False}


def roberta_prelayernorm(c):
    return roberta(c) | BEFORE


def megatron_bert(c):
    return bert(c) | BEFORE | {"embedding_norm": False}


def ernie(c):
    rows, tasks = c.need("size", "task_type_vocab_size"), c.get("bool", "use_task_id")
    return bert(c) | {"more_token_types": [rows] if tasks else None}


def bert_generation(c):
    """A BERT without token types and without a transform before its head; most of them are decoders."""
    return _alone(c, is_decoder=c.get("bool", "is_decoder")) | {"head_transform": None}


def big_bird(c):
    full = c.need(("original_full", "block_sparse"), "attention_type") == "original_full"
    if not full:
        c.refuse("attention_type", "block_sparse", "original_full, which the class takes for short sequences anyway")
    c.skip("block_size", "num_random_blocks")
    found = bert(c)
    return found | {
        "attention_bias": flag(c, "use_bias", "all", "out"),
        "embedding_scale": math.sqrt(found["d_model"]) if c.get("bool", "rescale_embeddings") else None,
    }


def xmod(c):
    """RoBERTa with an adapter for each language; tokens count as of the default language, or of the first."""
    for key, value in (("pre_norm", False), ("adapter_layer_norm", False), ("adapter_reuse_layer_norm", True),
                       ("ln_before_adapter", True)):  # fmt: skip
        c.only(key, value, ONLY)
    found, names = roberta(c), c.get("list", "languages") or ["en_XX"]
    if not all(isinstance(each, str) and each for each in names):
        c.refuse("languages", names, "names of languages")
    language = c.get("text", "default_language") or names[0]
    if language not in names:
        c.refuse("default_language", language, "one of languages: " + ", ".join(names))
    return found | {
        "block": "adapted", "adapter_languages": list(names), "adapter_language": language,
        "adapter_dim": max(found["d_model"] // c.need("size", "adapter_reduction_factor"), 1),
    }  # fmt: skip


def mobilebert(c):
    for key, value in (("use_bottleneck", True), ("key_query_shared_bottleneck", True),
                       ("normalization_type", "no_norm"), ("use_bottleneck_attention", False)):  # fmt: skip
        c.only(key, value, ONLY)
    c.skip("classifier_activation", "true_hidden_size")
    found, width = bert(c), c.need("size", "intra_bottleneck_size")
    narrow, trigrams = c.need("size", "embedding_size"), c.get("bool", "trigram_input")
    if narrow >= found["d_model"]:
        c.refuse("embedding_size", narrow, f"less than hidden_size = {found['d_model']}")
    return found | {
        "norm": "affine", "block": "bottleneck", "bottleneck_dim": width, "head_dim": _head(c, found, width),
        "ffns_per_layer": c.need("layers", "num_feedforward_networks"), "head_norm_kind": "layernorm",
        "embedding_dim": narrow, "embedding_projection_bias": True, "embedding_neighbours": trigrams or None,
        "head_rest": True,
    }  # fmt: skip


def _head(c, found, width):
    """The size of a head where heads share another width than the model's."""
    if width % found["n_heads"]:
        c.refuse("intra_bottleneck_size", width, f"a multiple of the {found['n_heads']} heads")
    return width // found["n_heads"]


def squeezebert(c):
    c.only("layer_norm_eps", 1e-12, "the norms of its layers have it whatever is given")
    c.only("post_attention_groups", 1, ONLY)
    keys = ("q_groups", "k_groups", "v_groups", "intermediate_groups", "output_groups")
    groups = [c.need("size", key) for key in keys]
    for key, number in zip(keys, groups):
        if number != groups[0]:
            c.refuse(key, number, f"{groups[0]}, as q_groups")
    found = bert(c)
    c.only("embedding_size", found["d_model"], "the class knows no other")
    return found | {"projection_groups": groups[0] if groups[0] > 1 else None}


def electra(c):
    c.skip("summary_last_dropout")
    return bert(c) | narrow(c) | {"head_activation": "gelu"}


def albert(c):
    c.only("inner_group_num", 1, "a group is one block")
    c.skip("classifier_dropout_prob", "down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks")
    return bert(c) | narrow(c, always=True) | {"layer_groups": c.need("layers", "num_hidden_groups")}


def rembert(c):
    c.skip("classifier_dropout_prob")
    own = c.need("size", "output_embedding_size")
    return bert(c) | narrow(c, "input_embedding_size", always=True) | {"head_transform_dim": own}


def roc_bert(c):
    """BERT for Chinese whose tokens have a shape and a pronunciation, too."""
    for key in ("enable_shape", "enable_pronunciation", "concat_input"):
        c.only(key, True, "all published models have both, joined to the token")
    keys = [(f"{what}_vocab_size", f"{what}_embed_dim") for what in ("shape", "pronunciation")]
    return bert(c) | {"embedding_tables": [[c.need("size", key) for key in pair] for pair in keys]}


def roformer(c):
    c.only("rotary_value", False, "only queries and keys turn")
    found = bert(c)
    return found | narrow(c) | {"positions": "rotary", "rope_layout": "interleaved", "rope_base": 10000.0}


def narrow(c, key="embedding_size", always=False):
    """An embedding of a width of its own, projected behind positions, token types and norm. always: even from equal
    widths."""
    width = c.get("size", key) or c.need("size", "hidden_size")
    if width == c.need("size", "hidden_size") and not always:
        return {}
    return {"embedding_dim": width, "embedding_projection": "sum", "embedding_projection_bias": True}


def distilbert(c):
    c.skip("sinusoidal_pos_embds")  # what the table starts from: it lies in the file either way
    c.skip("qa_dropout", "seq_classif_dropout", "tie_weights_", "output_past")
    return _alone(c, width=("hidden_dim",)) | {"norm_eps": 1e-12}


def mpnet(c):
    c.only("relative_attention_num_buckets", 32, "the class always computes 32")
    return behind_padding(c, _alone(c), 1) | {
        "positions": "relative_bias", "position_table": True, "position_buckets": 32, "position_max_distance": 128,
    }  # fmt: skip


def xlm(c):
    c.only("is_encoder", True, "the class knows no other")
    c.only("asm", False, "a linear head")
    c.skip("sinusoidal_embeddings")  # its table lies in the file either way
    c.skip("n_words", "bos_index", "eos_index", "pad_index", "unk_index", "mask_index", "lang_id", "lang2id", "id2lang")
    c.skip("embed_init_std", "init_std", "start_n_top", "end_n_top", "max_vocab", "min_count", "summary_last_dropout",
           "same_enc_dec", "share_inout_emb")  # fmt: skip
    languages, added = c.need("size", "n_langs"), c.get("bool", "use_lang_emb")
    found = _alone(c, is_decoder=c.get("bool", "causal"), width=None, ffn=flag(c, "gelu_activation", "gelu", "relu"))
    return found | {
        "d_ff": 4 * found["d_model"], "head_transform": None,
        "token_types": languages if languages > 1 and added else None,
    }  # fmt: skip


def flaubert(c):
    return xlm(c) | {"norm_placement": flag(c, "pre_norm", "pre", "post"), "final_norm": False}


def tapas(c):
    """BERT with seven tables of token types; what it reads off the answers of tables is no part of it here."""
    c.skip(*(
        key for key in (*c.data, *c.defaults)
        if key.startswith(("aggregation_", "answer_", "average_", "cell_", "huber_", "max_num_", "no_aggregation_",
                           "num_aggregation_", "positive_label_", "use_answer_", "use_gumbel_", "use_normalized_"))
    ))  # fmt: skip
    c.skip("allow_empty_column_selection", "disable_per_token_loss", "init_cell_selection_weights_to_zero",
           "reset_position_index_per_cell", "select_one_column", "softmax_temperature")  # fmt: skip
    rows = c.get("list", "type_vocab_sizes") or [3, 256, 256, 2, 256, 256, 10]  # the class's own
    if not all(is_kind(each, "size") for each in rows):
        c.refuse("type_vocab_sizes", rows, "integers of at least 1")
    return _alone(c) | {"token_types": rows[0], "more_token_types": rows[1:] or None}


def deberta(c):
    c.only("talking_head", False, "heads are not mixed")
    return _disentangled(c, rows="sequence", key_bias=False) | {"attention_bias": "all_but_k"}


def deberta_v2(c):
    c.only("conv_kernel_size", 0, "no convolution beside the first layer")
    c.skip("conv_act", "conv_groups")
    norms = (c.get("text", "norm_rel_ebd") or "none").lower().split("|")
    found = _disentangled(c, shared=c.get("bool", "share_att_key") or False,
                          normed="layer_norm" in [each.strip() for each in norms])  # fmt: skip
    return found | {"head_dim": c.get("size", "attention_head_size")}


def _disentangled(c, **table):
    """BERT whose attention meets positions in products of their own. table: see components/disentangled.py."""
    c.skip("pooler_dropout", "pooler_hidden_act", "pooler_hidden_size", "legacy", "padding_idx", "z_steps")
    found, width = _alone(c), c.get("size", "embedding_size")
    if width not in (None, found["d_model"]):
        c.refuse("embedding_size", width, f"{found['d_model']}, the width of the model")
    relative, learned = c.get("bool", "relative_attention"), c.get("bool", "position_biased_input")
    most, buckets = (c.get("number", key) or -1 for key in ("max_relative_positions", "position_buckets"))
    given = [] if c.data.get("pos_att_type") in (None, "") else c.data["pos_att_type"]
    words = [each.strip() for each in given.lower().split("|")] if isinstance(given, str) else given
    c.skip("pos_att_type")
    known = isinstance(words, list) and all(each in list(POSITION_TERMS) for each in words)
    if not known or (relative and not words):
        c.refuse("pos_att_type", given, "c2p and p2c, or one of them" + ("" if relative else ", or none"))
    found["token_types"] = c.get("count", "type_vocab_size") or None
    if not relative:
        scale = (head_dim(c, found) * (1 + len(words))) ** -0.5 if words else None
        return found | {"positions": "learned" if learned else "none", "score_scale": scale}
    buckets = int(buckets) if buckets >= 1 else None
    return found | {
        "positions": "disentangled", "position_table": learned or None,
        "position_max_distance": int(most) if most >= 1 else c.need("size", "max_position_embeddings"),
        "position_buckets": buckets, "disentangled": {"terms": [POSITION_TERMS[each] for each in words], **table},
    }  # fmt: skip


POSITION_TERMS = {"c2p": "content_to_position", "p2c": "position_to_content"}


def _alone(c, is_decoder=False, width=("intermediate_size",), ffn=None):
    """What a BERT has, but for token types: learned positions, norms behind each sum, a head with a transform."""
    if not is_decoder:
        c.only("is_decoder", False, "an encoder")
    c.only("add_cross_attention", False, "no attention to another encoder")
    c.only("position_embedding_type", "absolute", "learned positions")
    found = sizes(c)
    return found | {
        "stack": "decoder" if is_decoder else "encoder", "d_ff": c.need("size", *width) if width else None,
        "ffn": ffn or plain(c), "ffn_bias": True, "norm": "layernorm", "norm_placement": "post", "final_norm": False,
        "embedding_norm": True, "positions": "learned", "attention_bias": "all", "head_transform": True,
        "head_bias": True,
    }  # fmt: skip


# Rotary positions -------------------------------------------------------------------------------------------------


def modernbert(c):
    return _modern(c, lambda local: 2 * (local // 2) + 1) | {"stack": "encoder"}


def modernbert_decoder(c):
    c.skip("sliding_window")  # the class overwrites it
    return _modern(c, lambda local: local // 2)  # half of it is the window of the class


def _modern(c, window):
    """GeGLU, norms without biases, windows in two of three layers, no norm before the first attention."""
    c.skip("classifier_pooling", "classifier_dropout", "deterministic_flash_attn", "embedding_dropout", "mlp_dropout",
           "sparse_prediction", "sparse_pred_ignore_index", "initializer_cutoff_factor", "reference_compile",
           "layer_norm_eps", "repad_logits_with_grad", "position_embedding_type")  # fmt: skip
    local, every = c.need("size", "local_attention"), c.get("size", "global_attn_every_n_layers") or 3
    found = sizes(c.without("layer_norm_eps"))
    found["head_dim"] = head_dim(c, found)
    if local < 2:
        c.refuse("local_attention", local, "at least 2: a window of half of it")
    types = layer_types(c, found["n_layers"], lambda layer: layer % every)
    kinds = {
        "full": rotary(c, found, "full_attention", base_key=("global_rope_theta", "rope_theta")),
        "sliding": {
            "window": window(local),
            **rotary(c, found, "sliding_attention", base_key=("local_rope_theta", "rope_local_base_freq")),
        },
    }
    first = ["first"] + ["later"] * (found["n_layers"] - 1)
    return found | {
        "d_ff": c.need("size", "intermediate_size"), "ffn": gated(c), "ffn_bias": c.get("bool", "mlp_bias"),
        "norm": flag(c, "norm_bias", "layernorm", "layernorm_no_bias"), "embedding_norm": True,
        "attention_bias": bias(c), "head_bias": c.get("bool", "decoder_bias"), "head_transform": True,
        "head_transform_bias": c.get("bool", "classifier_bias"),
        "head_activation": ACTIVATIONS[c.need(PLAIN, "classifier_activation")][0],
        **combined((types, kinds), (first, {"first": {"attention_norm": False}, "later": {}})),
    }  # fmt: skip


def eurobert(c):
    c.skip("classifier_pooling", "clf_pooling")
    found = llama(c)
    return found | {"stack": "encoder", "head_bias": found["ffn_bias"]}


NOMIC_ONLY = (  # keys of its first configs, which are those of GPT-2 and some more
    ("activation_function", "swiglu"),
    ("causal", False),
    ("mlp_fc1_bias", False),
    ("mlp_fc2_bias", False),
    ("parallel_block", False),
    ("prenorm", False),
    ("qkv_proj_bias", False),
    ("rotary_emb_fraction", 1.0),
    ("rotary_emb_interleaved", False),
    ("rotary_emb_scale_base", None),
    ("scale_attn_by_inverse_layer_idx", False),
    ("scale_attn_weights", True),
    ("use_rms_norm", False),
)


def nomic_bert(c):
    c.skip("activation_function", "dense_seq_output", "expand_type_embeddings", "fused_bias_fc", "fused_dropout_add_ln",
           "max_trained_positions", "pad_vocab_size_multiple", "parallel_block_tied_norm", "use_flash_attn",
           "use_xentropy")  # fmt: skip
    for key, value in NOMIC_ONLY:
        c.only(key, value, ONLY)
    found, factor = _turned(c, "n_inner"), c.get("positive", "rotary_scaling_factor")
    if factor is not None and found["rope_scaling"] is None:
        trained = c.get("size", "max_trained_positions") or found["max_positions"]
        found["rope_scaling"] = {"kind": "dynamic", "factor": factor, "original_max_positions": trained}
    now = c.without("activation_function")
    return found | {
        "ffn": gated(now), "ffn_bias": None, "attention_bias": "none", "head_activation": plain(now),
        "tied": found["tied"] is not False,
    }  # fmt: skip


def jina_embeddings_v3(c):
    return _turned(c) | {"ffn": plain(c), "head_activation": "gelu"}


def gte(c):
    return _turned(c) | {"ffn": gated(c), "ffn_bias": None, "ffn_down_bias": True, "head_activation": "gelu"}


def _turned(c, *width):
    """BERT with rotary positions instead of learned ones. width: further keys for that of the feed-forward."""
    found = _alone(c, width=("intermediate_size", *width), ffn="gelu")
    found["head_dim"] = c.get("size", "head_dim") or head_dim(c, found)
    return found | {"token_types": c.get("count", "type_vocab_size") or None, **rotary(c, found)}


def esm(c):
    """The tokens of a protein. Where its config asks for token dropout, embeddings are scaled as of sequences without
    a masked token: by 1 - 0.15 * 0.8, the share that is not masked in training."""
    c.only("is_folding_model", False, "the language model alone")
    c.only("hidden_act", "gelu", "the class knows no other")
    c.skip("esmfold_config", "vocab_list", "mask_token_id")
    how = c.need(("absolute", "rotary"), "position_embedding_type")
    found = behind_padding(c, _alone(c.without("position_embedding_type"), ffn="gelu")) | BEFORE
    base = c.get("positive", "rope_theta")
    if how == "rotary":
        found |= {"positions": "rotary", "rope_base": base, "position_offset": None}
    return found | {
        "embedding_norm": c.get("bool", "emb_layer_norm_before") or False,
        "embedding_scale": 1 - 0.15 * 0.8 if c.get("bool", "token_dropout") else None,
    }


def esmc(c):
    found = llama(c)
    c.only("num_key_value_heads", found["n_heads"], "as many as query heads")
    return found | {
        "stack": "encoder", "norm": "layernorm", "norm_eps": 1e-5, "final_norm_kind": "layernorm_no_bias",
        "qk_norm": "full", "qk_norm_kind": "layernorm_no_bias", "head_transform": True, "head_activation": "gelu",
        "head_bias": True, "residual_scale": math.sqrt(36 / found["n_layers"]),
    }  # fmt: skip
