"""Keys of a config that change neither what a forward pass computes nor what it costs."""

IRRELEVANT = frozenset(
    """
    _attn_implementation _attn_implementation_autoset _commit_hash _flash_attn_2_enabled _from_model_config
    _name_or_path _num_labels _provenance activation_dropout architectures attention_softmax_in_fp32 attn_implementation
    audio_token_id auto_map aux_loss_alpha aux_loss_coef bad_words_ids begin_suppress_tokens bias_dropout_fusion
    boa_token_id boi_token_id boi_token_index bos_token_id cache_implementation chunk_size_feed_forward classif_dropout
    classifier_dropout cls_token_id cross_attention_hidden_size decoder_layerdrop decoder_start_token_id directionality
    diversity_penalty do_sample dtype early_stopping emb_pdrop embd_pdrop embed_dropout embedding_dropout
    encoder_layerdrop encoder_no_repeat_ngram_size eoa_token_id eoa_token_index eod_token_id eoi_token_id
    eoi_token_index eos_token_id exponential_decay_length_penalty finetuning_task force_bos_token_to_be_generated
    forced_bos_token_id forced_eos_token_id gradient_checkpointing id2label ignore_index image_placeholder
    image_token_id image_token_index index_share_for_mtp_iteration init_device init_std initializer_factor
    initializer_range is_encoder_decoder label2id language_model_only layerdrop length_penalty mamba_ssm_dtype
    mask_token_id masked_softmax_fusion max_length media_placeholder_token_id min_length model_type moe_loss_weight
    moe_router_dtype n_ctx no_repeat_ngram_size num_beam_groups num_beams num_labels num_return_sequences offset_alibi
    output_attentions output_hidden_states output_past output_router_logits output_scores pad_token_id pooler_fc_size
    pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type predict_special_tokens prefix
    pretraining_tp problem_type pruned_heads remove_invalid_values reorder_and_upcast_attn repetition_penalty
    return_dict return_dict_in_generate router_aux_loss_coef router_z_loss_coef save_step scalar_embedding sep_token_id
    seq_aux seq_length skip_bias_add slow_but_exact summary_activation summary_first_dropout summary_proj_to_labels
    summary_type summary_use_proj suppress_tokens task_specific_params temperature tf_legacy_loss tie_encoder_decoder
    tokenizer_class top_k top_p torch_dtype torchscript transformers.js_config transformers_version typical_p
    unk_token_id use_bfloat16 use_cache use_mrope use_unified_vision_chunk video_placeholder video_token_id
    vision_end_token_id vision_soft_tokens_per_image vision_start_token_id
    """.split()
)

# Keys beside the text part of a multimodal config that speak of its other parts, and what begins like them
OTHER_PARTS = frozenset(
    """
    acoustic_tokenizer_chunk_size adapter_layer_norm_eps alignment_intermediate_size cls_token_id deepstack_layer_map
    default_num_delay_tokens density_router_hidden_size density_router_loss_weight density_router_threshold
    diffusion_loss_weight downsample_factor downsample_mode downsample_rate downsample_ratio drop_vision_last_layer
    dynamic_image_size force_image_size frame_end_token_id frame_start_token_id freeze_mm_mlp_adapter has_lora_adapter
    im_end_id im_newline_id im_start_id insert_layer_id latent_query_num low_res_image_start_token_id max_dynamic_patch
    merge_kernel_size merger_times min_dynamic_patch newline_id num_channels num_image_tokens num_query_tokens
    out_hidden_size patch_size pixel_shuffle_factor position_id_per_seconds ps_version qformer_layer scale_factor
    seconds_per_chunk select_layer slice_end_id slice_start_id template temporal_patch_size timestamp_token_id
    tune_mm_mlp_adapter unfreeze_mm_vision_tower use_backbone_lora use_im_start_end use_image_newline_parameter
    use_image_text_joint_attention use_llm_lora use_mm_proj use_thumbnail user_token_id visual_tokenizer
    vocabulary_map window_size
    """.split()
)
OTHER_PREFIXES = ("audio_", "image_", "img_", "mm_", "multimodal_", "projection_", "projector_", "spatial_", "speech_",
                  "video_", "vision_", "visual_")  # fmt: skip
