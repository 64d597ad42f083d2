"""Encoder-decoders made from BART or T5."""

from .dense import T5, L

SIDES = {"encoder/": "model.encoder.", "": "model.decoder."}
PROJECTIONS = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "out_proj"}


def bart(final="layer_norm", ffn="", ffn_norm="final", cross="encoder_attn"):
    """Rows of an encoder-decoder with BART's names. final: the norm behind a stack; the others: of parts of a layer."""
    rows = {"embedding/table": "model.shared", "head": "lm_head", "head/logits_bias": "=final_logits_bias:1>"}
    branches = {"attention": "self_attn", "cross_attention": cross, "ffn": ffn_norm}
    for ours, theirs in SIDES.items():
        layer = f"{theirs}layers.{{}}."
        rows |= {
            ours + "positions/table": theirs + "embed_positions",
            ours + "embedding_norm": theirs + "layernorm_embedding",
            ours + "final_norm": theirs + final,
            ours + L + "ffn/up": f"{layer}{ffn}fc1",
            ours + L + "ffn/down": f"{layer}{ffn}fc2",
        }
        for branch, name in branches.items():
            norm = f"{layer}{name}_layer_norm"
            rows |= {f"{ours}{L}{branch}_{place}norm": norm for place in ("", "sum_")}
            if branch != "ffn":
                rows |= {f"{ours}{L}{branch}/{part}": f"{layer}{name}.{each}" for part, each in PROJECTIONS.items()}
    return rows


# where an encoder does not share its decoder's embedding
APART = {"source_embedding/table": "model.encoder.embed_tokens", "embedding/table": "model.decoder.embed_tokens"}
BART = bart()
BIGBIRD = bart(final="layernorm_embedding") | {
    f"encoder/{L}attention/{part}": f"model.encoder.layers.{{}}.self_attn.{name}"
    for part, name in (("q", "self.query"), ("k", "self.key"), ("v", "self.value"), ("out", "output"))
}
NLLB_MOE = (
    bart(ffn="ffn.", ffn_norm="ff", cross="cross_attention")
    | {
        f"{ours}{L}ffn/{part}": f"{theirs}layers.{{}}.ffn.{name}"
        for ours, theirs in SIDES.items()
        for part, name in (
            ("router/gate", "router.classifier"),
            ("experts/up", "experts.expert_*.fc1"),
            ("experts/down", "experts.expert_*.fc2"),
        )
    }
    | {
        f"{ours}{L}ffn/router/bias": f"={theirs}layers.{{}}.ffn.router.classifier.bias"
        for ours, theirs in SIDES.items()
    }
)
UMT5 = T5 | {
    f"{ours}{L}attention/relative/table": f"{theirs}.block.{{}}.layer.0.SelfAttention.relative_attention_bias"
    for ours, theirs in (("encoder/", "encoder"), ("", "decoder"))
}
LOCAL, GLOBAL = (f"encoder.block.{{}}.layer.0.{kind}SelfAttention" for kind in ("Local", ""))
LONGT5 = {row: module.replace(GLOBAL, LOCAL) for row, module in T5.items()} | {
    "encoder/position_bias/table": "encoder.block.0.layer.0.LocalSelfAttention.relative_attention_bias"
}
GEMMA_BRANCHES = (("attention", "self_attn"), ("cross_attention", "cross_attn"), ("ffn", "feedforward"))


def t5gemma():
    """Rows of two Gemma 2s."""
    rows = {**APART, "head": "lm_head.out_proj"}
    for ours, theirs in SIDES.items():
        layer = f"{theirs}layers.{{}}."
        rows[ours + "final_norm"] = theirs + "norm"
        for branch, name in GEMMA_BRANCHES:
            norms = (("_norm", "pre"), ("_output_norm", "post"))
            rows |= {ours + L + branch + kind: f"{layer}{place}_{name}_layernorm" for kind, place in norms}
            module, parts = (name, "qkvo") if branch != "ffn" else ("mlp", ("gate", "up", "down"))
            for part in parts:
                rows[f"{ours}{L}{branch}/{'out' if part == 'o' else part}"] = f"{layer}{module}.{part}_proj"
    return rows


SEQ2SEQ = {
    "bart": BART,
    "mbart": BART,
    "mvp": BART,
    "plbart": BART,
    "pegasus": BART,
    "bigbird_pegasus": BIGBIRD,
    "marian": BART,
    "blenderbot": BART,
    "blenderbot-small": BART,
    "m2m_100": BART,
    "nllb-moe": NLLB_MOE,
    "fsmt": BART | {"embedding/table": "model.decoder.embed_tokens", "head": "model.decoder.output_projection"},
    "umt5": UMT5,
    "longt5": LONGT5,
    "t5gemma": t5gemma(),
}
