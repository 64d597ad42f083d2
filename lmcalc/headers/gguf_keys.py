"""A GGUF file's metadata, and what its tensors say besides; and the keys that several architectures have."""

from ..errors import InputError, shown
from ..fields import MOST, MOST_LAYERS
from .gguf import Skipped


class Keys:
    """A file's metadata under its architecture's name, and which tensors each layer has. read: the keys asked for."""

    def __init__(self, header, architecture):
        self.metadata, self.where, self.architecture = header.metadata, header.path, architecture
        self.tensors, self.read = header.tensors, set()
        nextn = self.count("nextn_predict_layers") or 0
        self.layers = self.count("block_count", needed=True) - nextn
        self.nextn = nextn
        if not 0 < self.layers <= MOST_LAYERS:
            self.refuse("block_count", self.layers + nextn, f"from {nextn + 1} to {MOST_LAYERS:,}")

    def get(self, key, needed=False):
        """The value under a key, or None."""
        self.read.add(key)
        value = self.metadata.get(f"{self.architecture}.{key}")
        if value is None and needed:
            raise InputError(f"{self.where}: the metadata key {self.architecture}.{key} is missing")
        if isinstance(value, Skipped):
            self.refuse(key, f"{value.count:,} entries", "one for each layer")
        return value

    def refuse(self, key, value, allowed):
        """Raise the error for a value that cannot be."""
        raise InputError(f"{self.where}: {self.architecture}.{key} = {shown(value)}; allowed: {allowed}")

    def one(self, key, needed=False):
        """The value for all layers: of a list the entry, if all are alike."""
        value = self.get(key, needed)
        if isinstance(value, list):
            if not value or any(each != value[0] for each in value):
                raise InputError(
                    f"{self.where}: {self.architecture}.{key} differs from layer to layer, which is not read"
                )
            value = value[0]
        return value

    def count(self, key, needed=False):
        """A whole number, or None."""
        value = self.one(key, needed)
        if value is not None and not _whole(value):
            self.refuse(key, value, "an integer from 0 to 2**40")
        return value

    def size(self, key):
        """A whole number above 0."""
        value = self.count(key, needed=True)
        return value or self.refuse(key, value, "an integer from 1 to 2**40")

    def each(self, key, kind=int):
        """A value for each layer: numbers, or (bool) yes and no."""
        value = self.get(key, needed=True)
        value = value[: self.layers] if isinstance(value, list) else [value] * self.layers
        if len(value) != self.layers or not all(each is True or each is False or _whole(each) for each in value):
            self.refuse(key, value, f"integers from 0 to 2**40, one for each of the {self.layers:,} layers")
        return [kind(each) for each in value]

    def holds(self, module):
        """Whether the first layer that could has a tensor that starts so; or a tensor of no layer is called so."""
        return f"{module}.weight" in self.tensors or self._first(module) is not None

    def where_held(self, module):
        """For each layer whether it has a tensor of this name."""
        return [
            any(f"blk.{layer}.{module}{ending}" in self.tensors for ending in ("", ".weight"))
            for layer in range(self.layers)
        ]

    def shape(self, module, axis, otherwise=None):
        """A size of a tensor: of no layer, or of the first layer that has it."""
        found = self.tensors.get(f"{module}.weight") or self._first(module)
        there = found is not None and -len(found.shape) <= axis < len(found.shape)
        return found.shape[axis] if there else otherwise

    def _first(self, module):
        for layer in range(self.layers):
            for ending in ("", ".weight"):
                found = self.tensors.get(f"blk.{layer}.{module}{ending}")
                if found is not None:
                    return found
        return None


def _whole(value):
    return type(value) is int and 0 <= value <= MOST


# {key behind the architecture's name: key of a config.json} -----------------------------------------------------------

SIZES = {
    "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps", "attention.layer_norm_epsilon": "layer_norm_eps",
    "rope.freq_base": "rope_theta",
}  # fmt: skip
HEADS = SIZES | {"attention.head_count": "num_attention_heads"}
GROUPS = HEADS | {"attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim"}
FEED = {"feed_forward_length": "intermediate_size"}
DENSE = GROUPS | FEED
WINDOW = {"attention.sliding_window": "sliding_window"}
CLIP = {"attention.clamp_kqv": "clip_qkv"}
EXPERTS = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"}
WIDE = EXPERTS | {"expert_feed_forward_length": "moe_intermediate_size"}
DEEPSEEK = WIDE | {
    "expert_shared_count": "n_shared_experts", "leading_dense_block_count": "first_k_dense_replace",
    "expert_group_count": "n_group", "expert_group_used_count": "topk_group",
    "expert_weights_scale": "routed_scaling_factor", "expert_weights_norm": "norm_topk_prob",
}  # fmt: skip
SCALES = {
    "logit_scale": "logits_scaling", "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier", "attention.scale": "attention_multiplier",
}  # fmt: skip
INDEXER = {
    "attention.indexer.head_count": "index_n_heads", "attention.indexer.key_length": "index_head_dim",
    "attention.indexer.top_k": "index_topk",
}  # fmt: skip
LATENT = HEADS | FEED | {"attention.q_lora_rank": "q_lora_rank", "attention.kv_lora_rank": "kv_lora_rank"}
FULL, LINEAR = "full_attention", "linear_attention"
# keys of a config that mean something where the file leaves theirs out, whatever the default of the class
ABSENT = {
    "sliding_window": None, "attn_logit_softcapping": None, "final_logit_softcapping": None, "q_lora_rank": None,
    "clip_qkv": None, "n_shared_experts": 0, "first_k_dense_replace": 0, "num_kv_shared_layers": 0,
    "routed_scaling_factor": 1.0, "norm_topk_prob": False, "n_group": 1, "topk_group": 1,
    "logits_scaling": 1.0, "embedding_multiplier": 1.0, "residual_multiplier": 1.0,
}  # fmt: skip


def without(keys, *some):
    return {key: name for key, name in keys.items() if name not in some}
