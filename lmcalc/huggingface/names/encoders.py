"""Encoders: BERT, and what was made from it."""

import re

from .dense import DENSE, LLAMA, L, M


def _bert(prefix):
    """The names of BERT under another prefix."""
    return {key: re.sub(r"^bert\.", f"{prefix}.", module) for key, module in DENSE["bert"].items()}


LM_HEAD = {
    "head": "lm_head.decoder",
    "head/bias": "=lm_head.bias",
    "head/transform": "lm_head.dense",
    "head/transform/norm": "lm_head.layer_norm",
}
ROBERTA = _bert("roberta") | LM_HEAD
XLM = {
    "embedding/table": "transformer.embeddings",
    "positions/table": "transformer.position_embeddings",
    "token_types/table": "transformer.lang_embeddings",
    "embedding_norm": "transformer.layer_norm_emb",
    "head": "pred_layer.proj",
    L + "attention/q": "transformer.attentions.{}.q_lin",
    L + "attention/k": "transformer.attentions.{}.k_lin",
    L + "attention/v": "transformer.attentions.{}.v_lin",
    L + "attention/out": "transformer.attentions.{}.out_lin",
    L + "attention_norm": "transformer.layer_norm1.{}",
    L + "attention_sum_norm": "transformer.layer_norm1.{}",
    L + "ffn/up": "transformer.ffns.{}.lin1",
    L + "ffn/down": "transformer.ffns.{}.lin2",
    L + "ffn_norm": "transformer.layer_norm2.{}",
    L + "ffn_sum_norm": "transformer.layer_norm2.{}",
}
MODERN = {
    "embedding/table": "model.embeddings.tok_embeddings",
    "embedding_norm": "model.embeddings.norm",
    "final_norm": "model.final_norm",
    "head": "decoder",
    "head/transform": "head.dense",
    "head/transform/norm": "head.norm",
    L + "attention_norm": M + "attn_norm",
    L + "attention/q|k|v": M + "attn.Wqkv",
    L + "attention/out": M + "attn.Wo",
    L + "ffn_norm": M + "mlp_norm",
    L + "ffn/gate|up": M + "mlp.Wi",
    L + "ffn/down": M + "mlp.Wo",
}
# names of nomic_bert, jina_embeddings_v3 and gte in files that were made before transformers had their classes, and of
# what it writes; RENAMED has those that it holds at run time
NOMIC = {
    "embedding/table": "nomic_bert.embeddings.word_embeddings",
    "token_types/table": "nomic_bert.embeddings.token_type_embeddings",
    "embedding_norm": "nomic_bert.emb_ln",
    "head": "cls.predictions.decoder",
    "head/bias": "=cls.predictions.bias",
    "head/transform": "cls.predictions.transform.dense",
    "head/transform/norm": "cls.predictions.transform.layer_norm",
    L + "attention/q|k|v": "nomic_bert.encoder.layers.{}.attn.Wqkv",
    L + "attention/out": "nomic_bert.encoder.layers.{}.attn.out_proj",
    L + "attention_sum_norm": "nomic_bert.encoder.layers.{}.norm1",
    L + "ffn/up": "nomic_bert.encoder.layers.{}.mlp.fc11",
    L + "ffn/gate": "nomic_bert.encoder.layers.{}.mlp.fc12",
    L + "ffn/down": "nomic_bert.encoder.layers.{}.mlp.fc2",
    L + "ffn_sum_norm": "nomic_bert.encoder.layers.{}.norm2",
}
JINA = LM_HEAD | {
    "embedding/table": "roberta.embeddings.word_embeddings",
    "token_types/table": "roberta.embeddings.token_type_embeddings",
    "embedding_norm": "roberta.emb_ln",
    L + "attention/q|k|v": "roberta.encoder.layers.{}.mixer.Wqkv",
    L + "attention/out": "roberta.encoder.layers.{}.mixer.out_proj",
    L + "attention_sum_norm": "roberta.encoder.layers.{}.norm1",
    L + "ffn/up": "roberta.encoder.layers.{}.mlp.fc1",
    L + "ffn/down": "roberta.encoder.layers.{}.mlp.fc2",
    L + "ffn_sum_norm": "roberta.encoder.layers.{}.norm2",
}
GTE = {
    "embedding/table": "gte.embeddings.word_embeddings",
    "token_types/table": "gte.embeddings.token_type_embeddings",
    "embedding_norm": "gte.embeddings.LayerNorm",
    "head": "lm_head.decoder",
    "head/transform": "lm_head.dense",
    "head/transform/norm": "lm_head.norm",
    L + "attention/q|k|v": "gte.encoder.layer.{}.attention.qkv_proj",
    L + "attention/out": "gte.encoder.layer.{}.attention.o_proj",
    L + "attention_sum_norm": "gte.encoder.layer.{}.attn_ln",
    L + "ffn/up|gate": "gte.encoder.layer.{}.mlp.up_gate_proj",
    L + "ffn/down": "gte.encoder.layer.{}.mlp.down_proj",
    L + "ffn_sum_norm": "gte.encoder.layer.{}.mlp_ln",
}
RENAMED = {
    family: {
        "embedding_norm": f"{prefix}.embeddings.LayerNorm",
        **{L + f"attention/{part}": f"{prefix}.layers.{{}}.self_attn.{part}_proj" for part in "qkv"},
        L + "attention/out": f"{prefix}.layers.{{}}.self_attn.o_proj",
        L + "attention_sum_norm": f"{prefix}.layers.{{}}.post_attention_layernorm",
        L + "ffn_sum_norm": f"{prefix}.layers.{{}}.post_mlp_layernorm",
        **{L + f"ffn/{part}": f"{prefix}.layers.{{}}.mlp.{name}" for part, name in parts},
        **more,
    }
    for family, prefix, parts, more in (
        ("nomic_bert", "nomic_bert", [(part, f"{part}_proj") for part in ("up", "gate", "down")], {}),
        ("jina_embeddings_v3", "roberta", [("up", "fc1"), ("down", "fc2")], {}),
        ("gte", "gte", [(part, f"{part}_proj") for part in ("up", "gate", "down")],
         {"head/transform/norm": "lm_head.layer_norm"}),
    )
}  # fmt: skip
ALBERT = {
    "embedding/table": "albert.embeddings.word_embeddings",
    "positions/table": "albert.embeddings.position_embeddings",
    "token_types/table": "albert.embeddings.token_type_embeddings",
    "embedding_norm": "albert.embeddings.LayerNorm",
    "project_in": "albert.encoder.embedding_hidden_mapping_in",
    "head": "predictions.decoder",
    "head/bias": "=predictions.bias",
    "head/transform": "predictions.dense",
    "head/transform/norm": "predictions.LayerNorm",
}
ALBERT_LAYER = {
    "attention/q": "attention.query",
    "attention/k": "attention.key",
    "attention/v": "attention.value",
    "attention/out": "attention.dense",
    "attention_sum_norm": "attention.LayerNorm",
    "ffn/up": "ffn",
    "ffn/down": "ffn_output",
    "ffn_sum_norm": "full_layer_layer_norm",
}
DEBERTA = _bert("deberta") | {
    "position_bias/table": "deberta.encoder.rel_embeddings",
    "position_bias/norm": "deberta.encoder.LayerNorm",
}
DEBERTA_SELF = "deberta.encoder.layer.{}.attention.self."
NEW_HEAD = {  # of DeBERTa with legacy = false, and of its published files
    "head/bias": "=lm_predictions.lm_head.bias",
    "head/transform": "lm_predictions.lm_head.dense",
    "head/transform/norm": "lm_predictions.lm_head.LayerNorm",
}
MOBILE = "mobilebert.encoder.layer.{}."
ENCODERS = {
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "data2vec-text": _bert("data2vec_text") | LM_HEAD,
    "xlm-roberta-xl": ROBERTA
    | {
        L + "attention_norm": "roberta.encoder.layer.{}.attention.self_attn_layer_norm",
        L + "ffn_norm": "roberta.encoder.layer.{}.LayerNorm",
        "final_norm": "roberta.encoder.LayerNorm",
    },
    "roberta-prelayernorm": _bert("roberta_prelayernorm")
    | LM_HEAD
    | {
        L + "attention_norm": "roberta_prelayernorm.encoder.layer.{}.attention.LayerNorm",
        L + "ffn_norm": "roberta_prelayernorm.encoder.layer.{}.intermediate.LayerNorm",
        "final_norm": "roberta_prelayernorm.LayerNorm",
    },
    "ernie": _bert("ernie") | {"more_token_types/0/table": "ernie.embeddings.task_type_embeddings"},
    "tapas": _bert("tapas")
    | {"token_types/table": "tapas.embeddings.token_type_embeddings_0"}
    | {f"more_token_types/{at}/table": f"tapas.embeddings.token_type_embeddings_{at + 1}" for at in range(64)},
    "megatron-bert": DENSE["bert"]
    | {
        L + "attention_norm": "bert.encoder.layer.{}.attention.ln",
        L + "ffn_norm": "bert.encoder.layer.{}.ln",
        "final_norm": "bert.encoder.ln",
    },
    "bert-generation": DENSE["bert"] | {"head": "lm_head.decoder", "head/bias": "=lm_head.bias"},
    "big_bird": DENSE["bert"],
    "electra": _bert("electra")
    | {
        "project_in": "electra.embeddings_project",
        "head": "generator_lm_head",
        "head/bias": "=generator_lm_head.bias",
        "head/transform": "generator_predictions.dense",
        "head/transform/norm": "generator_predictions.LayerNorm",
    },
    "rembert": _bert("rembert")
    | {
        "project_in": "rembert.encoder.embedding_hidden_mapping_in",
        "head/bias": "=cls.predictions.decoder.bias",
        "head/transform": "cls.predictions.dense",
        "head/transform/norm": "cls.predictions.LayerNorm",
    },
    "roc_bert": _bert("roc_bert")
    | {
        "embedding/beside/0/table": "roc_bert.embeddings.shape_embed",
        "embedding/beside/1/table": "roc_bert.embeddings.pronunciation_embed",
        "embedding/project_in": "roc_bert.embeddings.map_inputs_layer",
    },
    "roformer": _bert("roformer") | {"project_in": "roformer.embeddings_project"},
    "distilbert": {
        "embedding/table": "distilbert.embeddings.word_embeddings",
        "positions/table": "distilbert.embeddings.position_embeddings",
        "embedding_norm": "distilbert.embeddings.LayerNorm",
        "head": "vocab_projector",
        "head/transform": "vocab_transform",
        "head/transform/norm": "vocab_layer_norm",
        L + "attention/q": "distilbert.transformer.layer.{}.attention.q_lin",
        L + "attention/k": "distilbert.transformer.layer.{}.attention.k_lin",
        L + "attention/v": "distilbert.transformer.layer.{}.attention.v_lin",
        L + "attention/out": "distilbert.transformer.layer.{}.attention.out_lin",
        L + "attention_sum_norm": "distilbert.transformer.layer.{}.sa_layer_norm",
        L + "ffn/up": "distilbert.transformer.layer.{}.ffn.lin1",
        L + "ffn/down": "distilbert.transformer.layer.{}.ffn.lin2",
        L + "ffn_sum_norm": "distilbert.transformer.layer.{}.output_layer_norm",
    },
    "mpnet": _bert("mpnet")
    | LM_HEAD
    | {L + f"attention/{ours}": f"mpnet.encoder.layer.{{}}.attention.attn.{ours[0]}" for ours in ("q", "k", "v", "out")}
    | {
        "position_bias/table": "mpnet.encoder.relative_attention_bias",
        L + "attention_sum_norm": "mpnet.encoder.layer.{}.attention.LayerNorm",
    },
    "deberta": DEBERTA
    | {
        L + "attention/q|k|v": DEBERTA_SELF + "in_proj:groups",
        L + "attention/q_bias": "=" + DEBERTA_SELF + "q_bias",
        L + "attention/v_bias": "=" + DEBERTA_SELF + "v_bias",
        L + "attention/position_k": DEBERTA_SELF + "pos_proj",
        L + "attention/position_q": DEBERTA_SELF + "pos_q_proj",
    },
    "deberta-v2": DEBERTA
    | {
        L + f"attention/{ours}": DEBERTA_SELF + theirs
        for ours, theirs in (
            ("q", "query_proj"),
            ("k", "key_proj"),
            ("v", "value_proj"),
            ("position_k", "pos_key_proj"),
            ("position_q", "pos_query_proj"),
        )
    },
    "mobilebert": _bert("mobilebert")
    | {
        "embedding/project_in": "mobilebert.embeddings.embedding_transformation",
        "head/rest": "cls.predictions.dense",
        L + "entry/project": MOBILE + "bottleneck.input.dense",
        L + "entry/norm": MOBILE + "bottleneck.input.LayerNorm",
        L + "query_entry/project": MOBILE + "bottleneck.attention.dense",
        L + "query_entry/norm": MOBILE + "bottleneck.attention.LayerNorm",
        L + "leave": MOBILE + "output.bottleneck.dense",
        L + "output_norm": MOBILE + "output.bottleneck.LayerNorm",
    }
    | {
        L + f"ffn_{number}{ours}": MOBILE + f"ffn.{number}.{theirs}"
        for number in range(15)
        for ours, theirs in (
            ("/up", "intermediate.dense"),
            ("/down", "output.dense"),
            ("_sum_norm", "output.LayerNorm"),
        )
    },
    "squeezebert": _bert("transformer")
    | {
        L + f"attention/{part[0]}": f"transformer.encoder.layers.{{}}.attention.{part}:(@>)<1"
        for part in ("query", "key", "value")
    }
    | {
        L + "attention/out": "transformer.encoder.layers.{}.post_attention.conv1d:><1",
        L + "attention_sum_norm": "transformer.encoder.layers.{}.post_attention.layernorm",
        L + "ffn/up": "transformer.encoder.layers.{}.intermediate.conv1d:(@>)<1",
        L + "ffn/down": "transformer.encoder.layers.{}.output.conv1d:(@>)<1",
        L + "ffn_sum_norm": "transformer.encoder.layers.{}.output.layernorm",
    },
    "albert": ALBERT,
    "modernbert": MODERN,
    "modernbert-decoder": {key: module for key, module in MODERN.items() if "|k|" not in key}
    | {L + f"attention/{part}": M + f"attn.{part}_proj" for part in "qkv"}
    | {"head/transform": "lm_head.dense", "head/transform/norm": "lm_head.norm"},
    "eurobert": LLAMA,
    "nomic_bert": NOMIC,
    "jina_embeddings_v3": JINA,
    "gte": GTE,
    "esm": _bert("esm")
    | LM_HEAD
    | {
        "embedding_norm": "esm.embeddings.layer_norm",
        "final_norm": "esm.encoder.emb_layer_norm_after",
        L + "attention_norm": "esm.encoder.layer.{}.attention.LayerNorm",
        L + "ffn_norm": "esm.encoder.layer.{}.LayerNorm",
    },
    "esmc": {key: module.replace("model.", "esmc.") for key, module in LLAMA.items()}
    | {
        "head": "lm_head.decoder",
        "head/transform": "lm_head.dense",
        "head/transform/norm": "lm_head.layer_norm",
    },
    "xmod": ROBERTA,
    "xlm": XLM,
    "flaubert": XLM,
}


def albert(model):
    """ALBERT's names: those of the block that the layers of each group share."""
    return ALBERT | {
        f"memory/{number}/{ours}": f"albert.encoder.albert_layer_groups.{number}.albert_layers.0.{theirs}"
        for number in range(model.fields["layer_groups"])
        for ours, theirs in ALBERT_LAYER.items()
    }


def xmod(model):
    """X-MOD's names: RoBERTa's, and those of the adapter of each language."""
    return ROBERTA | {
        L + f"adapters/{language}/{ours}": f"roberta.encoder.layer.{{}}.output.adapter_modules.{language}.{theirs}"
        for language in model.fields["adapter_languages"]
        for ours, theirs in (("up", "dense1"), ("down", "dense2"))
    }


def at_run_time(family, file):
    """The rows in which a file differs that has the names which transformers holds at run time, or another head."""
    if family in ("deberta", "deberta-v2"):
        return NEW_HEAD if any(name.startswith("lm_predictions.") for name in file) else {}
    return RENAMED[family] if family in RENAMED and any(".self_attn." in name for name in file) else {}
