"""Keys of a config that change neither what a forward pass computes nor what it costs."""

IRRELEVANT = frozenset(
    """
    _attn_implementation _attn_implementation_autoset _commit_hash _flash_attn_2_enabled _name_or_path _provenance
    architectures attention_softmax_in_fp32 attn_implementation auto_map aux_loss_alpha aux_loss_coef bad_words_ids
    begin_suppress_tokens bias_dropout_fusion boi_token_index bos_token_id cache_implementation chunk_size_feed_forward
    classifier_dropout cls_token_id decoder_start_token_id directionality dtype emb_pdrop embd_pdrop embed_dropout
    embedding_dropout eod_token_id eoi_token_index eos_token_id finetuning_task forced_bos_token_id forced_eos_token_id
    gradient_checkpointing id2label image_token_index init_device init_std initializer_factor initializer_range
    is_encoder_decoder label2id layerdrop mask_token_id masked_softmax_fusion model_type moe_loss_weight n_ctx
    num_labels offset_alibi output_attentions output_hidden_states output_past output_router_logits pad_token_id
    pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type
    predict_special_tokens prefix pretraining_tp problem_type reorder_and_upcast_attn return_dict router_aux_loss_coef
    router_z_loss_coef scalar_embedding sep_token_id seq_aux seq_length skip_bias_add slow_but_exact summary_activation
    summary_first_dropout summary_proj_to_labels summary_type summary_use_proj suppress_tokens task_specific_params
    tokenizer_class torch_dtype torchscript transformers.js_config transformers_version unk_token_id use_cache
    """.split()
)
