"""Architecture variants, one idea a file. The tables say which word on a card means which component.

Components are loaded when a model needs them: `make("norm", fields, ...)`.
"""

from importlib import import_module

# what a card calls it: (file, class or function)
NORMS = {  # called with the width, epsilon and axes
    "rmsnorm": ("norms", "RMSNorm"),
    "rmsnorm_plus_one": ("norms", "RMSNormPlusOne"),
    "rmsnorm_plain": ("norms", "RMSNormPlain"),
    "affine": ("norms", "Affine"),
    "layernorm": ("norms", "LayerNorm"),
    "layernorm_no_bias": ("norms", "LayerNormNoBias"),
    "layernorm_plain": ("norms", "LayerNormPlain"),
    "layernorm_plus_one": ("norms", "LayerNormPlusOne"),
}
MIXERS = {  # what mixes the tokens of a layer; called with the fields and whether the stack is causal
    "attention": ("attention", "attention"),
    "mamba": ("mamba", "mamba"),
    "mamba2": ("mamba2", "mamba2"),
    "attention_and_mamba2": ("mamba2", "attention_and_mamba2"),
    "rwkv": ("rwkv", "rwkv"),
    "rwkv5": ("eagle", "eagle"),
    "gated_delta": ("gated_delta", "gated_delta"),
    "kimi_delta": ("gated_delta", "kimi_delta"),
    "lightning": ("lightning", "lightning"),
    "rg_lru": ("rg_lru", "rg_lru"),
    "short_conv": ("short_conv", "short_conv"),
}
FFNS = {  # feed-forwards of another form than those of feed_forward.KINDS; called with the fields
    "channel_mix": ("rwkv", "channel_mix"),
}
BLOCKS = {  # called with the fields and the branches of a layer
    "serial": ("blocks", "serial"),
    "parallel": ("blocks", "parallel"),
    "parallel_two_norms": ("blocks", "parallel"),
    "altup": ("altup", "altup"),
    "normed_residual": ("normed_residual", "normed_residual"),
    "shortcut": ("shortcut", "shortcut"),
    "bottleneck": ("bottleneck", "bottleneck"),
    "adapted": ("language_adapters", "adapted"),
    "hybrid": ("shared_block", "hybrid"),
    "hyper_connections": ("hyper_connections", "hyper_connections"),
    "attention_residual": ("attention_residual", "attention_residual"),
}
STREAMS = {  # blocks between several residual streams: what leads from one to several and back; called with the fields
    "altup": ("altup", "ends"),
    "hyper_connections": ("hyper_connections", "ends"),
    "attention_residual": ("attention_residual", "ends"),
}
# attention of another form, also in an encoder: the field that asks for it; called with the fields and whether causal
ENCODER_ATTENTIONS = {
    "projection_groups": ("grouped", "attention"),
    "bottleneck_dim": ("bottleneck", "attention"),
}
# attention of another form than softmax over keys and values of each head: the field that asks for it
ATTENTIONS = {
    "out_groups": ("compressed", "compressed"),
    "index_block_size": ("block_sparse", "block_sparse"),
    "kv_latent_dim": ("latent", "latent"),
    "kv_from": ("shared_kv", "shared"),
    "differential": ("differential", "differential"),
    "attention_experts": ("expert_attention", "expert_attention"),
    "q_latent_dim": ("factorized", "factorized"),
}


def load(entry):
    """The class or function of a table entry; one from outside the package (see questions/own.py) is its own entry."""
    if callable(entry):
        return entry
    file, name = entry
    return getattr(import_module("." + file, __name__), name)


def norm(fields, width, axis="D", kind=None, eps=None):
    """The norm that a card describes, over `width` entries of `axis`. kind, eps: others than those of its norms."""
    usual = fields.get("norm", "rmsnorm")
    return load(NORMS[kind or usual])(width, eps or fields.get("norm_eps", 1e-5), axis)
