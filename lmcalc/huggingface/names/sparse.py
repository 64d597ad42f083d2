"""Attention to compressed keys, or to chosen blocks of keys."""

from .dense import LLAMA, L, M
from .moe import PARTS, W, experts

# weight: (its name in files, its name at run time, each without "model.layers.{}."); how it lies behind a colon
IN_LAYER = {
    "attention_norm": ("attn_norm", "input_layernorm"),
    "ffn_norm": ("ffn_norm", "post_attention_layernorm"),
    "attention/q_down": ("attn.wq_a", "self_attn.q_a_proj"),
    "attention/q_norm": ("attn.q_norm", "self_attn.q_a_norm"),
    "attention/q": ("attn.wq_b", "self_attn.q_b_proj"),
    "attention/kv": ("attn.wkv", "self_attn.kv_proj"),
    "attention/kv_norm": ("attn.norm", "self_attn.kv_norm"),
    "attention/sink": ("=attn.attn_sink", "=self_attn.sinks"),
    "attention/out_down": ("attn.wo_a:(@>)<", "self_attn.o_a_proj:(@>)<"),
    "attention/out": ("attn.wo_b", "self_attn.o_b_proj"),
    "attention/indexer/q": ("attn.indexer.wq_b", "self_attn.compressor.indexer.q_b_proj"),
    "attention/indexer/weigh": ("attn.indexer.weights_proj", "self_attn.compressor.indexer.scorer.weights_proj"),
    "ffn/router/gate": ("ffn.gate", "mlp.gate"),
    "ffn/router/correction": ("=ffn.gate.bias", "=mlp.gate.e_score_correction_bias"),
    "ffn/router/table": ("=ffn.gate.tid2eid", "=mlp.gate.tid2eid"),
    **{f"ffn/experts/{ours}": (f"ffn.experts.*.{name}", f"mlp.experts.*.{ours}_proj") for ours, name in zip(PARTS, W)},
    **{
        f"ffn/shared/ffn/{ours}": (f"ffn.shared_experts.{name}", f"mlp.shared_experts.{ours}_proj")
        for ours, name in zip(PARTS, W)
    },
    **{
        f"{branch}_streams/{ours}": (f"=hc_{short}_{name}", f"={short}_hc.{name}")
        for branch, short in (("attention", "attn"), ("ffn", "ffn"))
        for ours, name in (
            ("pre|post|comb", "fn"),
            ("pre_base|post_base|comb_base", "base"),
            ("scale", "scale"),
        )
    },
}
# of the compressor in these modules: those of its weights that come twice where an entry sees the window before, too
COMPRESSOR = {"kv": ("wkv", "kv_proj"), "gate": ("wgate", "gate_proj"), "position": ("=ape", "=position_bias")}
COMPRESSORS = {
    "attention/compressor": ("attn.compressor", "self_attn.compressor"),
    "attention/indexer/compressor": ("attn.indexer.compressor", "self_attn.compressor.indexer"),
}
ENDS = {
    "embedding/table": ("model.embed_tokens", "model.embed_tokens"),
    "final_norm": ("model.norm", "model.norm"),
    "head": ("head", "lm_head"),
    **{f"narrow/{ours}": (f"=model.hc_head.hc_{name}",) * 2 for ours, name in (
        ("pre", "fn"), ("base", "base"), ("scale", "scale"))},
}  # fmt: skip


def deepseek_v4(model, file=()):
    """The rows of DeepSeek V4: of files, or of the class at run time, whichever `file` has."""
    from ...reference import blocks

    held = any(".self_attn." in name for name in file)
    found = {row: names[held] for row, names in ENDS.items()}
    found |= {L + row: _inside(names[held]) for row, names in IN_LAYER.items()}
    for number, block in enumerate(blocks(model)):
        for at, modules in COMPRESSORS.items():
            *_, last = at.split("/")
            owner = block.attention if at == "attention/compressor" else block.attention.indexer
            compressor = getattr(owner, last, None)
            if compressor is not None:
                rows = _compressor(modules[held], held, compressor.before)
                found |= {f"layers/{number}/{at}/{row}": name for row, name in rows.items()}
    return found


def _inside(name):
    return f"={M}{name[1:]}" if name.startswith("=") else M + name


def _compressor(module, held, before):
    found = {"norm": f"{M}{module}.{'kv_norm' if held else 'norm'}"}
    for row, names in COMPRESSOR.items():
        name = names[held]
        at = f"={M}{module}.{name[1:]}" if name.startswith("=") else f"{M}{module}.{name}"
        found[f"{row}_before|{row}" if before else row] = at
    return found


MINIMAX_M3 = {
    **LLAMA,
    **experts(M, "block_sparse_moe", inside=W),
    L + "ffn/router/correction": f"={M}block_sparse_moe.e_score_correction_bias",
    **{f"{L}attention/indexer/{each}": f"{M}self_attn.index_{each}_proj" for each in "qk"},
    **{f"{L}attention/indexer/{each}_norm": f"{M}self_attn.index_{each}_norm" for each in "qk"},
}
MINIMAX_M3_HELD = {  # at run time
    **experts(M),
    L + "ffn/gate|up": M + "mlp.gate_up_proj",
    L + "ffn/shared/ffn/gate|up": M + "mlp.shared_experts.gate_up_proj",
    **{f"{L}attention/indexer/{each}": f"{M}self_attn.indexer.{each}_proj" for each in "qk"},
    **{f"{L}attention/indexer/{each}_norm": f"{M}self_attn.indexer.{each}_norm" for each in "qk"},
}


def minimax_m3(file=()):
    """The rows of MiniMax M3: of files, or of the class at run time, whichever `file` has."""
    held = any(".indexer." in name or name.endswith("mlp.gate_up_proj.weight") for name in file)
    if not held:
        return MINIMAX_M3
    apart = {f"{L}ffn/{part}" for part in PARTS[:2]} | {f"{L}ffn/shared/ffn/{part}" for part in PARTS[:2]}
    return {row: name for row, name in (MINIMAX_M3 | MINIMAX_M3_HELD).items() if row not in apart}


SPARSE = {"deepseek_v4": {}, "minimax_m3_vl_text": MINIMAX_M3}  # the first is made for each model
