"""Situations that public reports got wrong, each with one right answer: parameters, FLOPs, caches, decode traffic.

The letters are those of the collection that the cases come from; training is three times the forward pass, and "causal
half" is half of the full rectangle.
"""

import pytest

import lmcalc
from lmcalc.numbers import causal_pairs

GiB, MiB = 2**30, 2**20
LLAMA_2_7B = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
              "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000}  # fmt: skip
QWEN_3 = {"model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36,
          "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936}  # fmt: skip
QWEN_2_5_7B = {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
               "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064}  # fmt: skip


def asked(model, **options):
    """The report as plain data."""
    return lmcalc.report(model, **options).to_dict()


def total(model, **changes):
    """Parameters of a model, or of a config."""
    return asked(model, set=changes or None)["params"]["total"]


def cache(model, context, **options):
    """Bytes that the cache holds after so many tokens."""
    return asked(model, context=context, **options)["cache"]["bytes"]


def parts(model, prompt, mask="full", **options):
    """Contraction FLOPs of a forward over the prompt by part, all logits."""
    found = asked(model, prompt=prompt, mask=mask, logits="all", **options)["prefill"]["flops"]
    return {"total": found["contraction"], **found["contraction_by_part"]}


# Parameters ------------------------------------------------------------------------------------------------------


def test_p1_a_tied_head_is_one_tensor():
    assert total("gpt2") == 124_439_808
    assert total("gpt2", tied=False) == 163_037_184


def test_p8_biases_of_queries_keys_and_values():
    config = {"model_type": "qwen2", "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64,
              "num_attention_heads": 40, "num_key_value_heads": 8, "vocab_size": 152064}  # fmt: skip
    assert total(config) == 32_763_876_352
    assert total(config) - total(config, attention_bias="none") == 458_752


def test_p10_an_encoder_decoder_without_its_head():
    assert total("t5-3b") == 2_851_598_336  # the head is the token table


def test_p11_a_padded_vocabulary():
    assert total("gpt2", vocab_size=50_304) == 124_475_904


def test_p15_a_wrong_number_of_kv_heads():
    assert (total(LLAMA_2_7B), cache(LLAMA_2_7B, 1)) == (6_738_415_616, 524_288)
    wrong = {**LLAMA_2_7B, "num_key_value_heads": 8}
    assert (total(wrong), cache(wrong, 1)) == (5_933_109_248, 131_072)


def test_p16_sizes_that_lie_in_text_config():
    text = {"model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62,
            "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "vocab_size": 262208}  # fmt: skip
    found = asked({"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1152}})
    assert found["params"]["total"] == 27_009_346_304
    assert any("vision" in note for note in found["notes"])


# FLOPs -----------------------------------------------------------------------------------------------------------


def test_f1_training_with_and_without_the_causal_half():
    found = parts("llama-2-7b", 8192, batch=4)
    assert round(3 * (found["total"] - found["attention_scores"]) / 1e12, 3) == 1299.004
    assert round(3 * found["attention_scores"] / 1e12, 3) == 422.212


def test_f3_two_experts_of_eight():
    assert round(3 * parts("mixtral-8x7b", 1024)["total"] / 1e12, 2) == 79.98


def test_f8_fewer_kv_heads_do_not_cut_the_scores():
    one = {kv: parts("llama-3.1-70b", 1, set={"n_kv_heads": kv}, past=999) for kv in (8, 64)}
    assert one[8]["attention_scores"] == one[64]["attention_scores"] == 80 * 1000 * 32_768
    assert one[64]["attention_proj"] - one[8]["attention_proj"] == 80 * (268_435_456 - 33_554_432)


def test_f9_the_head_of_a_small_model():
    found = parts("pythia-70m", 2048)
    assert (3 * found["total"] / 2048, 3 * found["lm_head"] / 2048) == (343_277_568, 154_533_888)


def test_f12_looking_up_is_free_and_the_head_is_not():
    tied, untied = (parts("qwen-3-0.6b", 1, set={"tied": tied}) for tied in (True, False))
    assert tied == untied and tied["lm_head"] == 311_164_928 and "token_embedding" not in tied


def test_f13_plain_and_gated():
    for ffn, expected in (("gelu", 402_653_184), ("swiglu", 536_870_912)):
        found = parts(LLAMA_2_7B, 1, set={"ffn": ffn, "d_ff": 4 * 4096, "n_layers": 1})
        assert found["attention_proj"] + found["ffn"] == expected


def test_f15_more_keys_than_queries():
    assert causal_pairs(6, 4) == 34  # and with heads of 8 and 16: 2 * 34 * (8 + 16) = 1,632


def test_f19_heads_that_are_not_the_width():
    found = parts("qwen-3-235b-a22b", 196_608)
    half = found["attention_scores"] / 2
    assert round(3 * half / 1e15, 2) == 178.60
    assert round(3 * (found["total"] - half) / 1e15, 2) == 204.04


def test_f20_scores_are_products_too():
    encoder = {"stack": "encoder", "n_layers": 1, "d_model": 768, "n_heads": 12, "d_ff": 8, "vocab_size": 8}
    found = parts(lmcalc.build({**encoder, "positions": "none"}), 512)
    assert found["attention_proj"] // 2 == 1_207_959_552
    assert (found["attention_proj"] + found["attention_scores"]) // 2 == 1_610_612_736


def test_f22_latent_attention_in_training():
    found = parts("deepseek-v3", 4096, mla="expanded")
    assert 3 * found["attention_scores"] // 2 // 4096 == 30_702_305_280


# Caches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "model", "context", "options", "expected"),
    [
        ("K1", "llama-3.1-8b", 31_232, {}, int(3.8125 * GiB)),
        ("K3", "gpt-oss-120b", 2000, {}, int((70.3125 + 4.5) * MiB)),
        ("K6", "gemma-3-27b", 131_072, {}, int(10.40625 * GiB)),
        ("K8", "deepseek-v3", 32_768, {}, 2196 * MiB),
        ("K13", "mistral-small-22b-2409", 49_152, {"cache": "q8_0"}, 5712 * MiB),
        ("K16", "qwen-3.6-27b", 262_144, {"batch": 4}, 4 * 16_384 * MiB),
        ("K23", "qwen-3-0.6b", 40_960, {}, int(4.375 * GiB)),
        ("K28", "gemma-4-26b-a4b", 131_072, {}, 2_894_069_760),
        ("K36", "jamba-1.5-mini", 131_072, {}, 2 * GiB),
        ("K40", "llama-1-33b", 512, {"cache": "fp16"}, 780 * MiB),
        ("K40", "llama-1-33b", 512, {"cache": "fp32"}, 1560 * MiB),
        ("K41", "llama-3-70b", 32_768, {}, 10 * GiB),
        ("K41", "llama-3-70b", 32_768, {"set": {"n_kv_heads": 64}}, 80 * GiB),
        ("K46", {**QWEN_2_5_7B, "sliding_window": 4096, "use_sliding_window": False}, 32_768, {}, int(1.75 * GiB)),
        ("K46", {**QWEN_2_5_7B, "sliding_window": -1, "use_sliding_window": False}, 32_768, {}, int(1.75 * GiB)),
    ],
)
def test_what_a_cache_holds(case, model, context, options, expected):
    assert cache(model, context, **options) == expected


@pytest.mark.parametrize(
    ("case", "model", "expected"),
    [
        ("K1", "llama-3.1-8b", 131_072),
        ("K22", "phi-2", 327_680),
        ("K24", "glm-4.5", 376_832),
        ("K25", "mistral-small-24b-2501", 163_840),
        ("K48", {**QWEN_3, "kv_lora_rank": 32, "qk_rope_head_dim": 64, "v_head_dim": 128}, 147_456),
    ],
)
def test_bytes_a_token(case, model, expected):
    assert asked(model)["cache"]["bytes_per_token"] == expected


def test_k5_the_first_tokens_cost_more():
    found = asked("gpt-oss-120b")["cache"]
    assert (found["bytes_per_token_first"], found["bytes_per_token"]) == (73_728, 36_864)
    assert asked("gpt-oss-20b")["cache"]["bytes_per_token_first"] == 49_152  # K25


def test_k14_block_formats_of_a_cache():
    model = {**LLAMA_2_7B, "num_hidden_layers": 40, "num_key_value_heads": 8, "head_dim": 128}
    found = [cache(model, 6656, cache=dtype) / MiB for dtype in ("fp16", "q8_0", "q4_0")]
    assert found == [1040, 552.5, 292.5]


def test_k15_and_k16_state_is_constant():
    assert asked("mamba-2.8b", context=10, state="fp32")["cache"]["state_bytes"] == 23.75 * MiB
    assert asked("mamba-2.8b", context=10**6, state="fp32")["cache"]["state_bytes"] == 23.75 * MiB
    assert asked("qwen-3.6-27b", batch=4, state="fp32")["cache"]["state_bytes"] == 598.5 * MiB


def test_k18_layers_without_attention():
    kinds = ["full_attention" if i in (2, 5, 8, 10, 12, 14) else "conv" for i in range(16)]
    config = {"model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
              "num_key_value_heads": 8, "vocab_size": 65536, "block_ff_dim": 12288, "layer_types": kinds}  # fmt: skip
    assert cache(config, 32_768) == 384 * MiB


def test_k21_old_key_names():
    config = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
    assert cache(config, 8192) == 301_989_888
    config = {"model_type": "gpt_bigcode", "n_layer": 24, "n_embd": 2048, "n_head": 16, "multi_query": True}
    assert cache(config, 8192) == 100_663_296
    assert cache(config | {"multi_query": False}, 8192) == 1.5 * 2**30


def test_k26_layers_that_share_their_cache():
    found = asked("gemma-4-e4b", context=4096)["cache"]
    assert found["bytes"] == 64 * MiB + 20 * 2 * 2 * 256 * 2 * 512  # 4 full owners; 20 of a window of 512


def test_k32_the_dtype_of_the_cache_decides_what_fits():
    config = {**QWEN_3, "num_hidden_layers": 48, "num_key_value_heads": 4}
    assert asked(config, cache="fp8")["cache"]["bytes_per_token"] == 49_152
    assert round(cache(config, 221_000, cache="fp8") / GiB, 3) == 10.117


def test_k44_a_rescaled_context_is_not_rescaled_again():
    assert lmcalc.load("deepseek-v3").fields["max_positions"] == 163_840


# Decode traffic --------------------------------------------------------------------------------------------------


def test_k42_a_step_reads_keys_and_values_of_kv_heads():
    assert asked("llama-3.1-8b", context=4096)["decode"]["bytes"]["cache_read"] == 536_870_912


def test_d1_a_step_reads_active_experts_and_holds_all():
    found = asked("qwen-3-30b-a3b", context=0, experts="min", traffic="ideal")
    row = 2 * 2048  # of the input table one row is read
    assert found["decode"]["bytes"]["weights"] - row == 6_083_735_552
    assert found["weights"]["bytes"] == 2 * 30_532_122_624
