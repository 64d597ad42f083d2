"""Encoder-decoders from config.json: published sums, keys of the class that all once shared, what is refused."""

import pytest

import lmcalc
from lmcalc.huggingface import translate
from lmcalc.lenses.params import active, params


def fields(model_type, **config):
    return translate({"model_type": model_type, **config})[0]


def notes(model_type, **config):
    return translate({"model_type": model_type, **config})[2]


def both(**sizes):
    """The same sizes for both sides, under BART's keys."""
    return {f"{side}_{name}": size for name, size in sizes.items() for side in ("encoder", "decoder")}


LARGE = both(layers=24, ffn_dim=8192)
PEGASUS = {"vocab_size": 96103, **both(layers=16), "num_hidden_layers": 16}
NINE = {"hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42, "num_attention_heads": 16,
        "num_key_value_heads": 8}  # fmt: skip
UMT5 = {"vocab_size": 256384, "tie_word_embeddings": False}
# model_type, its config, parameters in millions and where that is said
PUBLISHED = [
    ("bart", {}, 406),  # Lewis et al. 2019; the model card of bart-large
    ("bart", {"d_model": 768, **both(layers=6, ffn_dim=3072, attention_heads=12)}, 139),  # the card of bart-base
    ("mbart", {"vocab_size": 250027, "scale_embedding": True}, 611),  # Liu et al. 2020, sec. 2: "~680M" with sinusoids
    ("pegasus", PEGASUS, 569),  # Zhang et al. 2020, sec. 6: 568M
    ("m2m_100", {"d_model": 1024, "vocab_size": 256206}, 615),  # NLLB-200 distilled: "600M"
    ("m2m_100", {"d_model": 2048, "vocab_size": 256206, **LARGE}, 3345),  # NLLB-200: "3.3B"
    ("m2m_100", LARGE, 1239),  # Fan et al. 2020: "1.2B"
    ("nllb-moe", {"d_model": 2048, "vocab_size": 256206, **LARGE}, 54501),  # NLLB team 2022: 54.5B
    ("blenderbot", {}, 2696),  # Roller et al. 2020, table 2: 2.7B
    ("blenderbot-small", {"vocab_size": 54944}, 88),  # the same: 87.5M
    ("umt5", {**UMT5, "d_model": 4096, "d_ff": 10240, "num_layers": 24, "num_heads": 64}, 12973),  # UMT5-XXL: 13B
    ("t5gemma", {}, 5597),  # Zhang et al. 2025, T5Gemma 2B-2B: 5.6B
    ("t5gemma", {"encoder": NINE}, 12292),  # 9B-2B: 12.3B
    ("t5gemma", {"encoder": NINE, "decoder": NINE}, 20333),  # 9B-9B: 20.3B
]


@pytest.mark.parametrize("model_type, config, millions", PUBLISHED)
def test_published_sums(model_type, config, millions):
    model = lmcalc.load({"model_type": model_type, **config})
    assert notes(model_type, **config) == () and round(sum(params(model).values()) / 1e6) == millions


def test_a_token_of_nllb_moe_uses_two_experts():
    model = lmcalc.load({"model_type": "nllb-moe"})
    layer = 126 * (2 * 1024 * 4096 + 1024 + 4096)
    assert sum(params(model).values()) - active(model) == 6 * layer


# The class that all once shared --------------------------------------------------------------------------------------

ONCE = {"add_bias_logits": False, "do_blenderbot_90_layernorm": False, "extra_pos_embeddings": 2,
        "force_bos_token_to_be_generated": False, "classif_dropout": 0.0, "gradient_checkpointing": False}  # fmt: skip
EARLIER = [
    ("bart", {"normalize_before": False, "normalize_embedding": True, "add_final_layer_norm": False,
              "static_position_embeddings": False}),
    ("mbart", {"normalize_before": True, "normalize_embedding": True, "add_final_layer_norm": True,
               "static_position_embeddings": False}),
    ("pegasus", {"normalize_before": True, "normalize_embedding": False, "add_final_layer_norm": True,
                 "static_position_embeddings": True}),
    ("marian", {"normalize_before": False, "normalize_embedding": False, "add_final_layer_norm": False,
                "static_position_embeddings": True}),
    ("blenderbot", {"normalize_before": True, "normalize_embedding": False, "add_final_layer_norm": True,
                    "static_position_embeddings": False, "layernorm_variant": "prelayernorm"}),
    ("blenderbot-small", {"normalize_before": False, "normalize_embedding": True, "add_final_layer_norm": False,
                          "static_position_embeddings": False, "layernorm_variant": "xlm"}),
]  # fmt: skip


@pytest.mark.parametrize("model_type, keys", EARLIER)
def test_keys_of_that_class(model_type, keys):
    """They go without a note where they say what the class of today does, and are named where they do not."""
    assert notes(model_type, **ONCE, **keys) == () and fields(model_type, **ONCE, **keys) == fields(model_type)
    for key, value in keys.items():
        if isinstance(value, bool):
            assert notes(model_type, **ONCE, **keys | {key: not value}) == (f"config keys not read: {key}.",)


def test_layers_of_the_encoder_under_their_other_name():
    assert fields("bart", num_hidden_layers=6) == fields("bart", encoder_layers=6)
    assert fields("bart", encoder_layers=6)["n_layers"] == 12 and "encoder" not in fields("bart", encoder_layers=6)
    with pytest.raises(lmcalc.InputError, match="encoder_layers = 6 and num_hidden_layers = 12 contradict"):
        fields("bart", encoder_layers=6, num_hidden_layers=12)


def test_sides_that_differ():
    found = fields("bart", encoder_attention_heads=8, decoder_ffn_dim=2048)
    assert (found["n_heads"], found["d_ff"], found["encoder"]) == (16, 2048, {"n_heads": 8, "d_ff": 4096})
    assert fields("bart", tie_word_embeddings=False)["encoder"] == {"vocab_size": 50265}
    apart = fields("marian", share_encoder_decoder_embeddings=False, vocab_size=60, decoder_vocab_size=50)
    assert (apart["vocab_size"], apart["encoder"], apart["tied"]) == (50, {"vocab_size": 60}, True)
    assert fields("fsmt", src_vocab_size=60)["encoder"] == {"vocab_size": 60}
    assert "encoder" not in fields("fsmt", tie_word_embeddings=True)


def test_first_positions():
    assert fields("bart")["position_offset"] == 2 and "position_offset" not in fields("blenderbot")
    assert fields("m2m_100")["position_offset"] == 2 and fields("m2m_100", pad_token_id=0)["position_offset"] == 1
    assert fields("pegasus")["sinusoid_form"] == "halves" and fields("fsmt")["sinusoid_form"] == "tensor2tensor"


def test_experts_of_each_side():
    small = {"encoder_layers": 4, "decoder_layers": 6, "num_experts": 8}
    alike = fields("nllb-moe", **small)
    assert alike["layers"] == ["3*dense", "experts"] and "encoder" not in alike
    found = fields("nllb-moe", **small, encoder_sparse_step=2, encoder_ffn_dim=64)
    assert found["encoder"]["layers"] == ["dense", "experts"] and found["encoder"]["expert_d_ff"] == 64
    only = fields("nllb-moe", **small, encoder_sparse_step=1, decoder_sparse_step=0)
    assert only["layers"] == ["dense"] and only["encoder"]["layers"] == ["experts"]
    assert "n_experts" not in fields("nllb-moe", encoder_sparse_step=0, decoder_sparse_step=0)
    every = lmcalc.load({"model_type": "nllb-moe", "encoder_sparse_step": 1, "decoder_sparse_step": 1}).fields
    assert not {"d_ff", "layers", "encoder"} & set(every)
    wide = {"encoder_ffn_dim": 64, "decoder_sparse_step": 1}
    assert lmcalc.load({"model_type": "nllb-moe", **wide}).fields["encoder"]["d_ff"] == 64
    assert fields("switch_transformers", num_sparse_encoder_layers=6)["encoder"]["layers"] == ["dense", "experts"]


def test_windows_of_each_side():
    found = fields("t5gemma")
    assert found["kinds"]["sliding"]["window"] == 4096
    assert found["encoder"]["kinds"]["sliding"]["window"] == 2 * 4096 + 1  # so many on either side, and the query
    full = {"layer_types": ["full_attention"] * 26}
    found = fields("t5gemma", encoder=full)
    assert found["layers"] == ["sliding", "full"] and found["encoder"]["layers"] == ["full"]
    found = fields("t5gemma", encoder=full, decoder=full)
    assert "layers" not in found and found["encoder"] == {"vocab_size": 256000}
    open_, types = {"sliding_window": None}, {"layer_types": ["sliding_attention"] * 26}
    found = lmcalc.load({"model_type": "t5gemma", "encoder": open_ | types}).fields
    assert found["encoder"]["kinds"] == {"sliding": {}} and found["layers"] == ["sliding", "full"]
    assert fields("longt5")["encoder"] == {"window": 255}


def test_heads_of_t5_and_after_it():
    """A head of its own came with version 1.1, which has no factor before it; LongT5 lost the head, not the factor."""
    assert fields("umt5")["tied"] and fields("umt5")["head_scale"] == 512**-0.5
    assert not fields("umt5", tie_word_embeddings=False)["tied"]
    found = fields("longt5", tie_word_embeddings=False)
    assert found["tied"] and "head_scale" not in found


REFUSED = [
    ("bart", {"encoder_attention_heads": 7}, "encoder_attention_heads = 7; allowed: a divisor of the width 1024"),
    ("bart", {"is_encoder_decoder": False}, "is_encoder_decoder = False; allowed: True"),
    ("bart", {"is_decoder": True}, "is_decoder = True; allowed: False"),
    ("bart", {"activation_function": "gated-gelu"}, "activation_function = 'gated-gelu'; allowed: one of relu"),
    ("mvp", {"use_prompt": True}, "use_prompt = True; allowed: False"),
    ("bigbird_pegasus", {}, "attention_type = 'block_sparse'; allowed: 'original_full'"),
    ("longt5", {"encoder_attention_type": "transient-global"}, "'transient-global'; allowed: 'local'"),
    ("marian", {"decoder_vocab_size": 7}, "decoder_vocab_size = 7; allowed: 58101"),
    ("fsmt", {"tie_word_embeddings": True, "src_vocab_size": 7}, "src_vocab_size = 7; allowed: tgt_vocab_size = 42024"),
    ("nllb-moe", {"second_expert_policy": "random"}, "second_expert_policy = 'random'"),
    ("nllb-moe", {"moe_token_dropout": 1.0}, "moe_token_dropout = 1.0; allowed: a number from 0 to below 1"),
    ("nllb-moe", {"moe_eval_capacity_token_fraction": 0.5}, "moe_eval_capacity_token_fraction = 0.5"),
    ("t5gemma", {"encoder": {"attn_logit_softcapping": None}}, "encoder = {'attention_softcap': None}"),
    ("t5gemma", {"encoder": {"head_dim": "a"}}, "encoder: head_dim = 'a'; allowed: an integer"),
    ("t5gemma", {"decoder": 3}, "decoder = 3; allowed: a table"),
    ("encoder-decoder", {"encoder": {"model_type": "bert"}, "decoder": {"model_type": "gpt2"}}, "encoder = {"),
]  # fmt: skip


@pytest.mark.parametrize("model_type, config, message", REFUSED)
def test_refused(model_type, config, message):
    with pytest.raises(lmcalc.InputError) as error:
        lmcalc.load({"model_type": model_type, **config})
    assert message in str(error.value)
