"""Text parts of multimodal models that differ from the text models they come from: one function for each `model_type`.

Positions of images have several sections in a head, which turn tokens of text alike.
"""

from .common import bias, experts, first_dense, llama_like, with_experts
from .dense import ernie4_5, llama, qwen3
from .moe import qwen_sparse


def glm4v(c):
    return _glm(c) | {"attention_bias": "qkv"}


def glm_ocr(c):
    return _glm(c)


def _glm(c):
    return llama_like(c) | {"norm_placement": "double", "rope_layout": "interleaved"}


def paddleocr_vl(c):
    return ernie4_5(c) | {"rope_layout": None}


def qwen3_vl_moe(c):
    c.only("norm_topk_prob", True, "the class in transformers knows no other")
    found = qwen3(c)
    mixture = experts(c, router="softmax", router_normalized=True)
    return with_experts(found, mixture, qwen_sparse(c, found["n_layers"]))


def deepseek_ocr2(c):
    """DeepSeek V2's experts on multi-head attention."""
    for key, value in (("topk_method", "greedy"), ("n_group", 1), ("topk_group", 1), ("scoring_func", "softmax")):
        c.only(key, value, "no published model has another")
    c.skip("kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "use_mla", "ep_size")
    c.skip("lm_head", "rm_head")
    c.skip("norm_topk_prob", "moe_layer_freq", "n_group", "topk_group", "topk_method")  # the class does not read them
    found = llama(c)
    mixture = experts(
        c, router="softmax", router_scale=c.get("positive", "routed_scaling_factor"),
        n_shared_experts=c.get("count", "n_shared_experts") or None,
    )  # fmt: skip
    return with_experts(found, mixture, first_dense(c, found["n_layers"], 1))


def ernie4_5_vl_moe(c):
    """Ernie 4.5 with experts for tokens of text, and others for those of images, which do not count here."""
    found, widths = llama_like(c), c.get("list", "moe_intermediate_size") or [1536, 512]
    if len(widths) != 2 or not all(type(each) is int and each > 0 for each in widths):
        c.refuse("moe_intermediate_size", widths, "two sizes: of experts of text, and of images")
    c.skip("moe_norm_min")
    types = c.get("list", "mlp_layer_types")
    sparse = first_dense(c, found["n_layers"], 1) if types is None else [each == "sparse" for each in types]
    if len(sparse) != found["n_layers"]:
        c.refuse("mlp_layer_types", types, f"one entry for each of the {found['n_layers']} layers")
    return with_experts(
        found | {"attention_bias": bias(c, "use_bias"), "ffn_bias": c.get("bool", "use_bias") or None,
                 "rope_layout": "interleaved"},
        {
            "n_experts": c.need("size", "moe_num_experts"), "experts_per_token": c.need("size", "moe_k"),
            "expert_d_ff": widths[0], "n_shared_experts": c.get("count", "moe_num_shared_experts") or None,
            "router": "softmax", "router_bias": "correction_parameter", "router_normalized": True,
        },
        sparse,
    )  # fmt: skip
