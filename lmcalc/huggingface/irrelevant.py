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
