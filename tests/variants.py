"""Small models as dicts of card fields: one row for each variant, so that together every component occurs.

Used wherever a test loops over all that a model can be. All sizes are distinct, prime where the structure allows. To
add a variant, add a row: what it changes in BASE.
"""

BASE = {"n_layers": 3, "d_model": 23, "n_heads": 15, "n_kv_heads": 3, "head_dim": 14, "d_ff": 29, "vocab_size": 37,
        "max_positions": 31}  # fmt: skip
PLAIN = {"n_kv_heads": 15, "ffn": "gelu", "norm": "layernorm", "positions": "learned"}  # as GPT-2 has it
EXPERTS = {"n_experts": 7, "experts_per_token": 3, "expert_d_ff": 19, "router_normalized": True, "d_ff": None}
GROUPED = {"n_experts": 12, "n_expert_groups": 4, "expert_groups_used": 2}
WINDOWS = {"layers": ["2*local", "global"], "kinds": {"local": {"window": 6}, "global": {}}, "n_layers": 7}
NO_ATTENTION = {"n_heads": None, "n_kv_heads": None, "head_dim": None, "positions": "none"}
ALONE = {**NO_ATTENTION, "ffn": "none", "d_ff": None}  # a layer that is a mixer and nothing else
MAMBA = {"mixer": "mamba", "d_inner": 22, "state_dim": 9, "dt_rank": 5}
MAMBA2 = {
    "mixer": "mamba2",
    "n_mixer_heads": 6,
    "n_mixer_groups": 2,
    "mixer_head_dim": 11,
    "state_dim": 9,
    "chunk_size": 4,
}
DELTA = {"mixer": "gated_delta", "n_mixer_heads": 6, "n_mixer_groups": 2, "mixer_head_dim": 11, "mixer_value_dim": 13,
         "chunk_size": 4}  # fmt: skip
MIXERS = {
    "mamba": {**ALONE, **MAMBA},
    "mamba with biases": {**ALONE, **MAMBA, "mixer_bias": "all", "conv_bias": False},
    "mamba of two heads": {**ALONE, **MAMBA, "n_mixer_heads": 2},
    "mamba, norms": {**NO_ATTENTION, **MAMBA, "mixer_norm": "selected", "mixer_norm_eps": 0.1},
    "mamba, norms without weights": {**NO_ATTENTION, **MAMBA, "mixer_norm": "selected_plain", "conv_kernel": 3},
    "mamba2": {**ALONE, **MAMBA2},
    "mamba2 with biases": {**ALONE, **MAMBA2, "mixer_bias": "all", "mixer_norm": "before_gate"},
    "mamba2 without norm": {**NO_ATTENTION, **MAMBA2, "n_mixer_groups": None, "mixer_norm": "none", "conv_bias": False},
    "mamba2 beside attention": {
        **MAMBA2, "mixer": "attention_and_mamba2", "mixer_scales": [0.9, 0.8, 0.7, 0.6, 0.5], "mixer_in_scale": 0.4,
        "mixer_out_scale": 1.2, "attention_in_scale": 1.3, "attention_out_scale": 1.4},
    "rwkv": {**NO_ATTENTION, "mixer": "rwkv", "mixer_width": 21, "ffn": "channel_mix", "norm": "layernorm",
             "embedding_norm": True},
    "rwkv5": {**NO_ATTENTION, "mixer": "rwkv5", "n_mixer_heads": 3, "mixer_head_dim": 11, "ffn": "channel_mix",
              "norm": "layernorm", "embedding_norm": True, "mixer_norm_eps": 0.1},
    "gated_delta": {**NO_ATTENTION, **DELTA},
    "gated_delta, negative eigenvalues": {**NO_ATTENTION, **DELTA, "n_mixer_groups": 6, "beta_scale": 2.0},
    "kimi_delta": {**NO_ATTENTION, **DELTA, "mixer": "kimi_delta", "n_mixer_groups": None, "mixer_value_dim": None,
                   "gate_rank": 5},
    "kimi_delta, bounded decays": {
        **NO_ATTENTION, **DELTA, "mixer": "kimi_delta", "n_mixer_groups": None, "gates_full_rank": True,
        "decay_floor": -2.0},
    "lightning": {**NO_ATTENTION, "mixer": "lightning", "n_mixer_heads": 3, "mixer_head_dim": 11, "chunk_size": 4},
    "rg_lru": {**NO_ATTENTION, "mixer": "rg_lru", "n_mixer_heads": 3, "mixer_head_dim": 11},
    "short_conv": {**NO_ATTENTION, "mixer": "short_conv"},
    "short_conv with biases": {**NO_ATTENTION, "mixer": "short_conv", "mixer_bias": "all", "conv_bias": True},
    "hybrid": {**MAMBA2, "layers": ["2*mamba2", "ffn", "attention", "ffn"], "n_layers": 7, "mixer": None,
               "ffn": "relu2", "kinds": {"mamba2": {"mixer": "mamba2", "ffn": "none"}, "ffn": {"mixer": "none"},
                         "attention": {"ffn": "none"}}},
}  # fmt: skip

LATENT = {"n_kv_heads": None, "head_dim": None, "kv_latent_dim": 13, "nope_head_dim": 9, "rope_head_dim": 8,
          "v_head_dim": 11}  # fmt: skip
INDEXED = {**LATENT, "q_latent_dim": 19, "index_topk": 4, "index_heads": 3, "index_head_dim": 10}
SHARED = {"layers": ["2*local", "full", "local", "full", "local_shared", "full_shared"], "n_layers": 7,
          "qk_norm": "head",
          "kinds": {"local": {"window": 6}, "full": {"head_dim": 12}, "local_shared": {"window": 6, "kv_from": "local"},
                    "full_shared": {"head_dim": 12, "kv_from": "full", "d_ff": 31}}}  # fmt: skip
PER_LAYER = {**SHARED, "ffn": "geglu_tanh", "v_norm": True, "per_layer_dim": 9}
ATTENTIONS = {
    "latent": LATENT,
    "latent with a query latent": {**LATENT, "q_latent_dim": 19, "attention_bias": "all", "q_latent_scale": 1.3,
                                   "kv_latent_scale": 0.7},
    "latent without positions": {**LATENT, "positions": "none", "latent_norm_eps": 1e-6},
    "latent with a window": {**LATENT, "window": 6},
    "latent with a gate a head, growing queries": {
        **LATENT, "attention_gate": True, "attention_gate_by_head": True, "attention_temperature": 0.3,
        "attention_temperature_floor": 4, "attention_growth": "log"},
    "queries from both latents": {**LATENT, "q_latent_dim": 19, "q_latent_both": True, "attention_gate": True},
    "latent with a sink": {**LATENT, "k_rope_norm": True, "attention_sinks": True},
    "indexer": {**INDEXED, "index_rope_layout": "interleaved"},
    "indexer, last entries turned": {**INDEXED, "index_rope_last": True, "index_norm_eps": 0.1},
    "indexer of an earlier layer": {**INDEXED, "layers": ["full", "2*shared"], "n_layers": 5,
                                    "kinds": {"full": {}, "shared": {"index_shared": True}}},
    "chunks": {"attention_chunk": 6},
    "chunks, temperature": {
        "layers": ["2*local", "full"], "n_layers": 4, "rope_layout": "interleaved",
        "kinds": {"local": {"attention_chunk": 6, "qk_norm": "l2"},
                  "full": {"positions": "none", "attention_temperature": 0.3, "attention_temperature_floor": 4}}},
    "strided": {"sparse_pattern": "strided", "sparse_stride": 4},
    "fixed": {"sparse_pattern": "fixed", "sparse_stride": 5, "sparse_summary": 2},
    "keys and values of an earlier layer": SHARED,
    "values of another size": {"v_head_dim": 11, "value_scale": 0.7, "attention_sinks": True, "window": 6},
    "values from keys": {"v_from_k": True, "v_norm": True, "qk_norm": "head", "attention_bias": "qkv"},
    "gated attention": {"attention_gate": True, "attention_bias": "qkv", "v_head_dim": 11},
    "a gate a head": {"attention_gate": True, "attention_gate_by_head": True, "attention_gate_activation": "softplus",
                      "attention_gate_bias": "none", "attention_bias": "all"},
    "a gate with a bias a head": {"attention_gate": True, "attention_gate_bias": "head", "attention_temperature": 0.1,
                                  "attention_temperature_floor": 4, "attention_growth": "power"},
    "differential": {"differential": True, "n_heads": 20, "n_kv_heads": 4, "attention_bias": "all"},
    "factorized": {"q_latent_dim": 19, "n_kv_heads": 1},
    "per-layer embeddings": {**PER_LAYER, "norm_placement": "double", "layer_scale": True},
    "altup": {**PER_LAYER, "block": "altup", "altup_streams": 3, "laurel_rank": 5, "per_layer_vocab": 33,
              "ffn_sparsity": 0.7},
    "dense beside experts": {**EXPERTS, "d_ff": 29, "experts_beside_ffn": True, "norm_placement": "double",
                             "ffn": "geglu_tanh", "router_normalized": None, "layer_scale": True},
}  # fmt: skip

COMPRESSED = {
    "n_kv_heads": 1, "n_heads": 6, "rotary_dim": 6, "window": 4, "q_latent_dim": 19, "out_groups": 3,
    "out_latent_dim": 13, "layers": ["local", "sparse", "heavy", "sparse"], "n_layers": 4,
    "kinds": {"local": {}, "sparse": {"compression": 3, "compression_overlap": True, "index_topk": 2, "index_heads": 4,
                                      "index_head_dim": 10, "rope_base": 100.0},
              "heavy": {"compression": 5}},
}  # fmt: skip
BLOCKWISE = {"qk_norm": "head", "rotary_dim": 6, "index_block_size": 3, "index_topk_blocks": 2, "index_head_dim": 10}
STREAMS = {"block": "hyper_connections", "hyper_streams": 3, "hyper_iterations": 3}
BLOCKS = {
    "compressed attention": COMPRESSED,
    "attention residuals": {
        **DELTA, "mixer": None, "n_mixer_groups": None, "mixer_value_dim": None, "block": "attention_residual",
        "residual_block_size": 2, "layers": ["2*delta", "full"], "n_layers": 5, "ffn": "situ", "situ_beta": 0.7,
        "situ_up_beta": 1.3, "kinds": {"delta": {"mixer": "kimi_delta", "output_gate_full_rank": True,
                                                 "gate_rank": 5, "decay_floor": -3.0}, "full": {}}},
    "attention residuals of like layers": {"block": "attention_residual", "residual_block_size": 3, "n_layers": 4,
                                           "ffn": "situ"},
    "experts in a normed latent": {**EXPERTS, "expert_latent": 11, "expert_latent_norm": True, "ffn": "situ",
                                   "shared_d_ff": 13},
    "blocks of keys": {**BLOCKWISE, "norm": "rmsnorm_plus_one"},
    "two blocks of keys nearby": {**BLOCKWISE, "index_topk_blocks": 3, "index_local_blocks": 2, "positions": "none",
                                  "rotary_dim": None},
    "independent hyper-connections": {
        **EXPERTS, "block": "hyper_connections", "hyper_streams": 3, "hyper_magnitude": 1.5, "hyper_eps": 1e-3,
        "expert_ffn": "swiglu_limited", "ffn_limit": 0.7, "n_shared_experts": 1},
    "hyper-connections": {**STREAMS, "hyper_iterations": 1, "hyper_eps": 1e-3},
    "experts by token id": {**EXPERTS, **STREAMS, "router": "sqrtsoftplus", "router_hashed": True,
                            "n_mtp_layers": 1},
    "normed residual": {"block": "normed_residual", "residual_factors": [1.3, 0.7, 1.1, 0.9]},
    "residuals by depth": {"residual_by_depth": True, "norm_placement": "double"},
    "a norm behind the feed-forward": {"ffn_output_norm": True},
    "norms with gates": {"norm_gate_rank": 5, "ffn_norm_gate": True},
    "shared block without adapters": {
        **MAMBA, "layers": ["mamba", "shared"], "n_layers": 4, "ffn": "none", "shared_blocks": 1, "shared_ffn": "geglu",
        "positions": "none", "kinds": {"mamba": {}, "shared": {"block": "hybrid", "shared_block": 0}}},
    "feed-forward with factors": {"ffn_scales": [0.8, 0.6]},
    "mixture of attention heads": {**EXPERTS, "attention_experts": 7, "experts_per_token": 5, "router": "topk_softmax",
                                   "router_normalized": None, "expert_output_bias": True},
    "shortcut": {**EXPERTS, "d_ff": 29, "block": "shortcut", "n_zero_experts": 2},
    "experts with a capacity": {**EXPERTS, "experts_per_token": 1, "router_normalized": None, "expert_capacity": 31},
    "shared blocks": {
        **MAMBA2, "layers": ["mamba2", "one", "mamba2", "two", "one"], "n_layers": 5, "ffn": "none", "shared_blocks": 2,
        "shared_ffn": "geglu", "adapter_rank": 3, "attention_adapter": True,
        "kinds": {"mamba2": {}, "one": {"block": "hybrid", "shared_block": 0},
                  "two": {"block": "hybrid", "shared_block": 1}}},
}  # fmt: skip

ENCODER = {"stack": "encoder", "norm_placement": "post", "norm": "layernorm", "embedding_norm": True, "head_bias": True}
NARROW = {"embedding_dim": 17, "embedding_projection": "sum", "embedding_projection_bias": True, "head_transform": True}
ENCODERS = {
    "encoder, narrow embedding": {**PLAIN, **ENCODER, **NARROW, "token_types": 2, "more_token_types": [3, 4],
                                  "tied": True, "head_activation": "relu"},
    "encoder, head of another width": {**PLAIN, **ENCODER, **NARROW, "head_transform_dim": 21},
    "encoder, layers that are one": {**PLAIN, **ENCODER, "layer_groups": 2},
    "encoder, windows": {
        **WINDOWS, **ENCODER, "norm_placement": "pre", "norm": "layernorm_no_bias", "head_transform": True,
        "head_activation": "gelu", "head_transform_bias": False, "final_norm_kind": "layernorm", "ffn": "geglu",
        "layers": ["first", "2*local", "global", "2*local", "global"],
        "kinds": {"first": {"attention_norm": False}, "local": {"window": 7}, "global": {}}},
    "encoder, table beside a bias": {**ENCODER, "positions": "relative_bias", "position_buckets": 8,
                                     "position_max_distance": 11, "position_table": True, "position_offset": 2,
                                     "ffn_down_bias": True},
    "encoder, disentangled": {**ENCODER, "n_kv_heads": 15, "positions": "disentangled", "position_max_distance": 11,
                              "position_table": True, "disentangled": {"normed": True}, "attention_bias": "all"},
    "encoder, disentangled, as long as the sequence": {
        **ENCODER, "n_kv_heads": 15, "positions": "disentangled", "position_max_distance": 4,
        "disentangled": {"rows": "sequence", "key_bias": False}, "attention_bias": "all_but_k"},
    "encoder, disentangled, shared and in buckets": {
        **ENCODER, "positions": "disentangled", "position_max_distance": 11, "position_buckets": 8,
        "disentangled": {"shared": True}, "attention_bias": "all"},
    "encoder, projections in groups": {
        **PLAIN, **ENCODER, "d_model": 24, "d_ff": 28, "n_heads": 6, "n_kv_heads": 6, "projection_groups": 4,
        "attention_bias": "all", "ffn_bias": True},
    "encoder, further tables": {**PLAIN, **ENCODER, "embedding_tables": [[5, 9], [3, 7]], "tied": True},
    "encoder, bottlenecks": {
        **PLAIN, **ENCODER, "norm": "affine", "block": "bottleneck", "bottleneck_dim": 15, "ffns_per_layer": 3,
        "embedding_dim": 17, "embedding_neighbours": True, "embedding_projection_bias": True, "tied": True,
        "head_transform": True, "head_norm_kind": "layernorm", "head_rest": True, "attention_bias": "all",
        "ffn_bias": True},
    "encoder, adapters of languages": {
        **PLAIN, **ENCODER, "block": "adapted", "adapter_languages": ["en", "de", "fr"], "adapter_language": "de",
        "adapter_dim": 9, "ffn_bias": True},
    "encoder, disentangled, one product": {
        **ENCODER, "positions": "disentangled", "position_max_distance": 11,
        "disentangled": {"terms": ["position_to_content"]}},
}  # fmt: skip

VARIANTS = {
    "gqa": {},
    "mha": {"n_kv_heads": 15},
    "mqa": {"n_kv_heads": 1},
    "tied": {"tied": True},
    "gpt2": {**PLAIN, "attention_bias": "all", "ffn_bias": True, "tied": True},
    "biases qkv": {"attention_bias": "qkv"},
    "biases out": {"attention_bias": "out"},
    "embedding scale": {"embedding_scale": 4.0},
    "rmsnorm_plus_one": {"norm": "rmsnorm_plus_one"},
    "rmsnorm_plain": {"norm": "rmsnorm_plain", "embedding_norm": True},
    "layernorm_no_bias": {"norm": "layernorm_no_bias"},
    "layernorm_plain": {"norm": "layernorm_plain"},
    "layernorm_plus_one": {"norm": "layernorm_plus_one"},
    **{f"ffn {kind}": {"ffn": kind, "ffn_bias": kind == "glu"} for kind in (
        "relu", "relu2", "gelu_tanh", "silu", "elu", "selu", "xielu", "glu", "reglu", "relu2glu", "geglu", "geglu_tanh",
        "liglu", "swiglu_clamped", "swiglu_limited")},
    "sinusoidal": {"positions": "sinusoidal"},
    "sinusoidal, sines first": {"positions": "sinusoidal", "sinusoid_form": "halves"},
    "sinusoidal of tensor2tensor": {"positions": "sinusoidal", "sinusoid_form": "tensor2tensor", "position_offset": 2},
    "no positions": {"positions": "none"},
    "learned with offset": {"positions": "learned", "position_offset": 2},
    "partial rotary": {"rotary_dim": 6},
    "interleaved rotary": {"rope_layout": "interleaved"},
    "backward rotary": {"rope_backward": True},
    "alibi": {"positions": "alibi"},
    "relative_bias": {"positions": "relative_bias", "position_buckets": 8, "position_max_distance": 11},
    "relative_shaw": {"positions": "relative_shaw", "position_max_distance": 11},
    "relative_xl": {"positions": "relative_xl"},
    "qk_norm head": {"qk_norm": "head"},
    "qk_norm head_last": {"qk_norm": "head_last"},
    "qk_norm each_head": {"qk_norm": "each_head", "qk_norm_kind": "layernorm_no_bias"},
    "qk_norm full": {"qk_norm": "full"},
    "qk_norm l2": {"qk_norm": "l2"},
    "soft caps": {"attention_softcap": 5.0, "logit_softcap": 3.0},
    "sinks": {"attention_sinks": True},
    "clip": {"qkv_clip": 0.7},
    "scales": {"score_scale": 0.3, "logit_scale": 0.5, "residual_scale": 0.4},
    "window": {"window": 6},
    "windows in turn": WINDOWS,
    "parallel": {"block": "parallel"},
    "parallel_two_norms": {"block": "parallel_two_norms"},
    "post": {"norm_placement": "post", "norm": "layernorm"},
    "double": {"norm_placement": "double"},
    "output": {"norm_placement": "output"},
    "embedding norm, head bias": {"embedding_norm": True, "head_bias": True},
    "factorised embedding": {"embedding_dim": 17},
    "head of some tokens": {"head_vocab": 32},
    "sub-norms": {"attention_sub_norm": True, "ffn_sub_norm": True},
    "sub-norms, plain feed-forward": {"attention_sub_norm": True, "ffn_sub_norm": True, "ffn": "relu2",
                                      "v_head_dim": 11},
    "experts": EXPERTS,
    "experts, topk_softmax with biases": {**EXPERTS, "router": "topk_softmax", "router_bias": "linear",
                                          "expert_bias": True, "ffn": "swiglu_clamped", "ffn_limit": 0.7},
    "experts in groups": {**EXPERTS, **GROUPED, "expert_group_score": "top2", "router": "sigmoid", "router_scale": 2.5,
                          "router_bias": "correction", "router_eps": 1e-20, "n_shared_experts": 2, "n_mtp_layers": 1},
    "experts in groups by maximum": {**EXPERTS, **GROUPED, "router_normalized": False},
    "experts, shared behind a gate": {**EXPERTS, "shared_d_ff": 13, "shared_gate": True, "ffn": "gelu"},
    "experts, sqrtsoftplus": {**EXPERTS, "router": "sqrtsoftplus", "ffn": "swiglu_limited"},
    "experts, sparsemixer": {**EXPERTS, "router": "sparsemixer", "router_normalized": False, "router_jitter": 0.3,
                             "experts_per_token": 2},
    "experts with scaled inputs": {**EXPERTS, "router": "sigmoid", "router_normalized": False,
                                   "expert_input_scaled": True, "shared_d_ff": 13, "experts_per_token": 1},
    "experts, topk_sigmoid, averaged": {
        **EXPERTS, "router": "topk_sigmoid", "router_bias": "correction", "router_softcap": 2.0, "experts_scale": 0.5,
        "n_shared_experts": 1},
    "experts, capped": {**EXPERTS, "ffn": "swiglu_capped", "ffn_limit": 0.6, "n_shared_experts": 1,
                        "expert_ffn": "swiglu_capped", "expert_ffn_limit": 0.4},
    "experts and zero experts": {**EXPERTS, "n_zero_experts": 2, "router_bias": "correction"},
    "experts in a latent": {**EXPERTS, "expert_latent": 11, "ffn": "relu2", "shared_d_ff": 13,
                            "expert_output_bias": True},
    "experts in some layers": {**EXPERTS, "d_ff": 29, "layers": ["dense", "2*moe"], "n_layers": 5,
                               "kinds": {"dense": {"n_experts": 0}, "moe": {}}},
    **MIXERS,
    **ATTENTIONS,
    **BLOCKS,
    "encoder": {**PLAIN, "stack": "encoder", "token_types": 2, "embedding_norm": True, "head_transform": True,
                "head_bias": True, "norm_placement": "post", "tied": True},
    **ENCODERS,
    "encoder-decoder": {"stack": "encoder_decoder", "n_encoder_layers": 2, "positions": "relative_bias",
                        "position_buckets": 8, "position_max_distance": 11, "ffn": "relu", "score_scale": 1.0},
    "encoder-decoder, a bias in each layer": {
        "stack": "encoder_decoder", "n_encoder_layers": 2, "positions": "relative_bias", "position_buckets": 8,
        "position_max_distance": 11, "own_position_bias": True, "logits_bias": True},
    "encoder of its own": {
        "stack": "encoder_decoder", "n_encoder_layers": 2, "norm_placement": "double", "tied": True,
        "layers": ["full", "2*local"], "kinds": {"full": {}, "local": {"window": 6}},
        "encoder": {"d_model": 19, "n_heads": 10, "n_kv_heads": 2, "d_ff": 31, "vocab_size": 33, "layers": ["local"],
                    "kinds": {"local": {"window": 5}}}},
    "encoder without experts": {
        **EXPERTS, "stack": "encoder_decoder", "n_encoder_layers": 2, "ffn": "relu", "ffn_bias": True, "d_ff": None,
        "encoder": {"n_experts": 0, "d_ff": 31, "embedding_norm_first": False}, "positions": "learned",
        "embedding_norm": True, "embedding_norm_first": True, "norm": "layernorm"},
}  # fmt: skip


def fields(name):
    """The card fields of one variant."""
    found = {**BASE, **VARIANTS[name]}
    return {field: value for field, value in found.items() if value is not None}
