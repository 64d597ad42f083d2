"""Which tensor of a checkpoint holds which weight, one literal table for each `model_type`.

A row says where a weight of ours lies: path -> module of the checkpoint, both without "weight" and "bias". `{}` is the
number of the layer, `*` that of an expert or of a head, each of which has a tensor of its own; "=" marks a tensor that
is called so and no more. "q|k|v" on the left: the three lie in one tensor, one after the other. "[qkv]" on the right:
three tensors, which are parts of one.

Behind a colon stands how a matrix lies, where it is not (outputs, inputs), each side in the order of our axes and
merged: > outputs, < inputs, @ what stacks matrices, parentheses around what is merged, 1 an axis of size one, ^ the
first of the outputs and _ the others. Before it how parts share it, where not one after the other: "groups" for each
key/value head, "quarters" for each of four parts, "turns" entry by entry. "rows" is a norm with a row for each head,
"last" has its last axis apart, "apart" each of its axes.
"""

from ...errors import InputError
from .dense import DENSE, FALCON_40B, LLAMA, T5_PLAIN
from .encoders import ENCODERS, albert, at_run_time, xmod
from .gemma import GEMMA
from .gpt import GPT
from .hybrid import BAILING_FUSED, CUT_CONVOLUTION, FUSED_CONVOLUTION, GRANITE_DENSE, HYBRID, KIMI_K3
from .latent import LATENT, without_q_latent
from .llama import LLAMAS
from .moe import MOE
from .multimodal import MULTIMODAL
from .outside import OUTSIDE
from .qwen import LARA_AT_RUN_TIME, QWENS
from .recurrent import RECURRENT
from .seq2seq import APART, SEQ2SEQ
from .sigmoid_moe import SARVAM, SIGMOID_MOE
from .sparse import SPARSE, deepseek_v4, minimax_m3
from .zamba import ZAMBA, zamba

NAMES = (
    DENSE | GPT | LLAMAS | QWENS | MOE | SIGMOID_MOE | GEMMA | LATENT | RECURRENT
    | HYBRID | ZAMBA | SEQ2SEQ | SPARSE | OUTSIDE | MULTIMODAL | ENCODERS
)  # fmt: skip
CONV1D = {"gpt2", "openai-gpt"}  # families whose matrices lie as (inputs, outputs)

# Prefixes that some published files leave out, and endings that old files have, with what they are now
PREFIXES = (
    "transformer.", "model.", "bert.", "gpt_neox.", "backbone.", "rwkv.", "roberta.", "distilbert.", "electra.",
    "albert.", "mpnet.", "ernie.", "data2vec_text.", "roberta_prelayernorm.", "rembert.", "roformer.", "nomic_bert.",
    "gte.", "esm.", "esmc.", "tapas.", "deberta.", "mobilebert.", "roc_bert.",
)  # fmt: skip
ENDINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}

# Tensors of no forward pass of ours: masks, tables and buffers that are computed, and heads of other tasks
LEFT_OVER = (
    r".*\.self_attn\.(slope_rate|query_decay|key_decay|diagonal_decay)",
    r".*\.rotary_(pos_)?emb\.inv_freq",
    r".*\.position_ids",
    r".*\.mlp\.vision_moe\..*",  # experts of images beside those of text (Ernie 4.5 VL)
    r"(transformer\.)?h\.\d+\.attn\.(attention\.)?(bias|masked_bias)",
    r"((gpt_neox|gpt_neox_japanese)\.)?layers\.\d+\.attention\.(bias|masked_bias)",
    r"(transformer\.)?h\.\d+\.attn\.causal_mask",
    r"(model\.)?embed_positions\.weights",
    r"(\w+\.)?pooler(\.dense)?\.(weight|bias)",
    r"(cls\.seq_relationship|sop_classifier\.classifier)\.(weight|bias)",
    r"(discriminator_predictions\.(dense|dense_prediction)|mask_predictions\.(dense|LayerNorm|classifier))\.(weight|bias)",
    r"(roformer\.)?encoder\.embed_positions\.weight",
    r"(esm\.)?contact_head\.regression\.(weight|bias)",
    r".*\.rotary_embeddings\.inv_freq",
    r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
    r"(model\.)?(encoder|decoder)\.(version|embed_positions\.(weights?|_float_tensor))",
    r"model\.shared\.weight",
    r"model\.layers\.0\.self_attention_res_(norm|proj)\.weight",  # Kimi K3: there is but one stream to mix
)
# Names that transformers holds at run time, and those in files: the first rule that gives a name of the table holds
ALIASES = (
    (r"^embed\.", "model.embed_tokens."),
    (r"^hc_head_(fn|base|scale)$", r"model.hc_head.hc_\1"),
    (r"^layers\.(\d+)\.attn\.kv_norm\.", r"model.layers.\1.attn.norm."),
    (r"\.mlp\.(router|gate)\.", ".block_sparse_moe.gate."),
    (r"\.mlp\.", ".block_sparse_moe."),
    (r"\.experts\.gate_up_proj$", ".input_linear.weight"),
    (r"\.experts\.down_proj$", ".output_linear.weight"),
    (r"\.router\.weight$", ".router.layer.weight"),
    (r"\.input_layernorm\.", ".attention_layer_norm."),
    (r"\.post_attention_layernorm\.", ".feedforward_layer_norm."),
    (r"\.feedforward_layer_norm\.", ".post_attention_layernorm."),
    (r"\.gate\.moe_statics\.", ".moe_statics."),
    (r"\.self_attn\.sinks$", ".self_attn.attention_sink_bias"),
    (r"\.self_attn\.forget_gate\.", ".self_attn."),
    (r"\.self_attn\.sinks$", ".self_attn.softmax_offset"),
    (r"\.mlp\.gate\.e_score_correction_bias$", ".mlp.e_score_correction_bias"),
    (r"\.mlp\.gate\.e_score_correction_bias$", ".moe.router.expert_bias"),
    (r"\.mlp\.gate\.e_score_correction_bias$", ".mlp.experts.e_score_correction_bias"),
    (r"\.mlp\.shared_experts\.", ".mlp.shared_expert."),
    (r"\.mlp\.gate\.e_score_correction_bias$", ".mlp.gate.expert_bias"),
    (r"\.mlp\.e_score_correction_bias$", ".mlp.expert_bias"),
    (r"^model\.embed_tokens\.", "model.word_embeddings."),
    (r"\.self_attn\.forget_gate\.", ".attention."),
    (r"\.self_attn\.o_proj\.", ".attention.dense."),
    (r"\.self_attn\.q_norm\.", ".attention.query_layernorm."),
    (r"\.self_attn\.k_norm\.", ".attention.key_layernorm."),
    (r"\.self_attn\.", ".attention."),
    (r"\.mlp\.fc1\.", ".W_down."),
    (r"\.mlp\.fc2\.", ".W_up."),
    (r"\.q_gate_proj\.", ".q_b_proj."),
    (r"\.g_proj\.", ".gate_proj."),
    (r"\.linear_gate\.", ".gate_proj."),  # transformers 5.24 calls all gates so in files of Hy4
    (r"\.gate_proj\.", ".linear_gate."),
    (r"\.self_attn\.sinks$", ".self_attn.learnable_sink_param"),
    (r"\.attn_hc\.", ".hc_pre.hc_attn_layer.hc_"),
    (r"\.ffn_hc\.", ".hc_pre.hc_mlp_layer.hc_"),
    (r"\.hc_head\.hc_", ".hc_pre.hc_head.hc_head_"),
    (r"\.hc_head\.hc_pre\.", ".hc_pre.hc_head."),  # so where the text is part of Hy4 VL
    (r"\.mlp\.gate\.", ".mlp.router.gate."),
    (r"\.mlp\.shared_experts\.", ".mlp.shared_mlp."),
    (r"\.mlp\.post_mlp_layernorm\.", ".post_mlp_layernorm."),
    (r"\.post_self_attn_layernorm\.", ".post_attn_norm."),
    (r"\.post_mlp_layernorm\.", ".post_ffn_norm."),
    (r"\.experts\.gate_up_proj$", ".experts.fc1.weight"),
    (r"\.experts\.down_proj$", ".experts.fc2.weight"),
    (r"^model\.", "backbone."),
    (r"^lm_head\.", "embed_out."),
)
# Tables of families whose files have names of their own, as transformers calls them at run time: (how a name ends that
# only such a file has, the table)
RUN_TIME = {"exaone": ("model.norm.weight", LLAMA), "lara_mini": ("in_proj_qkv.weight", LARA_AT_RUN_TIME)}
# Copies of tied tensors that some files repeat: they have to be equal to what they repeat
COPIES = {
    "lm_head.weight": "embedding/table",
    "embed_out.weight": "embedding/table",
    "output_projection.weight": "embedding/table",
    "head.weight": "embedding/table",
    "encoder.embed_tokens.weight": "embedding/table",
    "decoder.embed_tokens.weight": "embedding/table",
    "model.encoder.embed_tokens.weight": "embedding/table",
    "model.decoder.embed_tokens.weight": "embedding/table",
    "model.decoder.output_projection.weight": "embedding/table",
    "lm_head.out_proj.weight": "embedding/table",
    "cls.predictions.decoder.weight": "embedding/table",
    "cls.predictions.decoder.bias": "head/bias",
    "lm_head.decoder.weight": "embedding/table",
    "lm_head.decoder.bias": "head/bias",
    "predictions.decoder.weight": "embedding/table",
    "predictions.decoder.bias": "head/bias",
    "generator_lm_head.weight": "embedding/table",
    "vocab_projector.weight": "embedding/table",
    "pred_layer.proj.weight": "embedding/table",
    "decoder.weight": "embedding/table",
}
# Buffers whose value our components have as a constant
CONSTANTS = {r"model\.layers\.\d+\.mlp\.act_fn\.beta": 0.5, r"model\.layers\.\d+\.mlp\.act_fn\.eps": -1e-6}


def table(model, file=()):
    """{path without ".weight" or ".bias": module} of a model; file: names of the tensors in its checkpoint."""
    if model.family not in NAMES:
        raise InputError(f"names of tensors are not known for model_type {model.family!r}")
    fields, found = model.fields, NAMES[model.family]
    ending, own = RUN_TIME.get(model.family, (None, None))
    if own is not None and any(name.endswith(ending) for name in file):
        found = own
    if model.family in ("albert", "xmod"):
        return albert(model) if model.family == "albert" else xmod(model)
    if model.family in ZAMBA:
        return zamba(model)
    if model.family == "deepseek_v4":
        found = deepseek_v4(model, file)
    if model.family == "minimax_m3_vl_text":
        found = minimax_m3(file)
    if model.family == "falcon" and fields.get("block") == "parallel_two_norms":
        return found | FALCON_40B
    if model.family in SEQ2SEQ and model.source_embedding is not None:
        found = found | APART
    if model.family in ("t5", "mt5", "umt5", "longt5") and not fields["ffn"].endswith(("glu", "glu_tanh")):
        return found | T5_PLAIN
    if model.family == "bailing_hybrid" and any(name.endswith("_attn.conv1d.weight") for name in file):
        found = found | BAILING_FUSED
    layers = [fields, *fields.get("kinds", {}).values()]
    if model.family in {*LATENT, "bailing_hybrid"} and all(each.get("q_latent_dim") is None for each in layers):
        found = found | without_q_latent(found)
    if model.family == "granitemoehybrid" and fields.get("n_experts") is None:
        found = found | GRANITE_DENSE
    if model.family == "sarvam_moe" and not any(name.endswith(".q_proj.weight") for name in file):
        found = found | SARVAM
    if model.family == "kimi_linear" and fields.get("block") == "attention_residual":
        found = found | KIMI_K3
    if model.family == "olmo_hybrid":
        found = found | _convolution(file)
    return found | at_run_time(model.family, file) | _fused(found, file)


def _convolution(file):
    """The row of OLMo hybrid's convolutions, where they do not lie as queries, keys and values."""
    sizes = (
        {name.rpartition("linear_attn.")[2]: shape for name, shape in file.items() if "_attn." in name} if file else {}
    )
    if "conv1d.weight" in sizes:
        return FUSED_CONVOLUTION
    cut = "q_conv1d.weight" in sizes and sizes["q_conv1d.weight"] == sizes.get("v_conv1d.weight")
    return CUT_CONVOLUTION if cut else {}


def _fused(found, file):
    """Rows for experts that the file holds as one tensor of all, as transformers does at run time."""
    up = next((up for up in ("gate_up_proj", "up_proj") if any(name.endswith(f"experts.{up}") for name in file)), None)
    rows = {}
    for key, module in found.items():
        stem, several, _ = module.partition("experts.*.")
        if up is not None and several and key.endswith("experts/down"):
            rows[key] = f"={stem}experts.down_proj"
            rows[key.replace("down", "gate|up" if up == "gate_up_proj" else "up")] = f"={stem}experts.{up}"
    return rows
