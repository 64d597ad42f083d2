"""Encoders, and encoder-decoders with their cross attention and its cache; counts as other people's code has them."""

import json

import numpy
import pytest
from soundness import assert_sound, built, bytes_of, component, logits

import lmcalc
from lmcalc.compute import Data, random_weights
from lmcalc.lenses.cache import cache
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import params

ENCODER = {"stack": "encoder", "norm": "layernorm", "norm_placement": "post", "embedding_norm": True, "ffn": "gelu",
           "ffn_bias": True, "attention_bias": "all", "positions": "learned", "n_kv_heads": 15, "token_types": 2,
           "tied": True, "head_bias": True, "head_transform": True}  # fmt: skip
T5 = {"stack": "encoder_decoder", "n_encoder_layers": 2, "positions": "relative_bias", "position_buckets": 8,
      "position_max_distance": 11, "n_kv_heads": 15, "score_scale": 1.0}  # fmt: skip
VARIANTS = {
    "bert": ENCODER,
    "encoder, rotary": {"stack": "encoder"},
    "encoder, relative bias": {**T5, "stack": "encoder", "n_encoder_layers": None},
    "t5": {**T5, "ffn": "relu", "tied": True, "head_scale": 23**-0.5},
    "t5 v1.1": {**T5, "ffn": "geglu_tanh"},
    "original transformer": {"stack": "encoder_decoder", "n_encoder_layers": 2, "positions": "sinusoidal",
                             "norm": "layernorm", "norm_placement": "post", "ffn": "relu", "ffn_bias": True,
                             "attention_bias": "all", "embedding_scale": 23**0.5, "tied": True, "n_kv_heads": 15},
    "bart": {**ENCODER, "stack": "encoder_decoder", "n_encoder_layers": 2, "token_types": None,
             "head_transform": False},
    "encoder-decoder, double": {"stack": "encoder_decoder", "n_encoder_layers": 2, "norm_placement": "double",
                                "residual_scale": 0.4},
    "encoder-decoder, output": {"stack": "encoder_decoder", "n_encoder_layers": 2, "norm_placement": "output"},
}  # fmt: skip


def fields(name):
    return {key: value for key, value in VARIANTS[name].items() if value is not None}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_stack_is_sound(name):
    assert_sound(**fields(name))


def tokens(length, seed=0):
    return numpy.random.default_rng(seed).integers(0, 37, (2, length))


@pytest.mark.parametrize("name", ["bert", "encoder, rotary", "encoder, relative bias"])
def test_an_encoder_sees_both_sides_and_keeps_nothing(name):
    model, seen = built(**fields(name)), tokens(5)
    changed = seen.copy()
    changed[:, -1] = (changed[:, -1] + 1) % 37
    assert abs(logits(model, seen)[:, 0] - logits(model, changed)[:, 0]).min() > 0
    trace = lmcalc.trace(model, 2, 5, logits="last")
    assert trace.states == {} and trace.outputs[0].sizes == (2, 5, 37)  # all positions go through the head
    with pytest.raises(lmcalc.InputError, match="past = 3; allowed: 0, since an encoder keeps nothing"):
        lmcalc.trace(model, 2, 5, 3)


@pytest.mark.parametrize("name", ["t5", "original transformer", "bart"])
def test_a_decoder_sees_the_whole_source_and_no_token_to_come(name):
    model, seen, source = built(**fields(name)), tokens(5), tokens(7, 1)
    other = source.copy()
    other[:, -1] = (other[:, -1] + 1) % 37
    one = logits(model, seen, source=source)
    assert abs(one[:, 0] - logits(model, seen, source=other)[:, 0]).min() > 0
    later = seen.copy()
    later[:, -1] = (later[:, -1] + 1) % 37
    two = logits(model, later, source=source)
    assert (one[:, :-1] == two[:, :-1]).all() and (one[:, -1] != two[:, -1]).any()


def test_cross_attention_by_the_formula():
    """softmax(q k) v over the source, without a mask (Vaswani et al. 2017, eq. 1)."""
    model = built(**fields("encoder-decoder, double"))
    cross = model.runs[0].items[0][1].cross_attention
    random = numpy.random.default_rng(4)
    x, source = random.standard_normal((2, 5, 23)), random.standard_normal((2, 7, 23))

    class Both:
        """Calls the component with a source as the encoder leaves it, axes BMD."""

        def __init__(self, inner):
            self.__dict__ = inner.__dict__
            self.weights, self.buffers, self.axes, self.inner = inner.weights, inner.buffers, inner.axes, inner

        contraction_part = flop_class = None

        def forward(self, ops, p, a, b):
            return self.inner.forward(ops, p, a, ops.rename(b, "BMD"))

    w = {name: random_weights(f"it/{name}", "", sizes) for name, sizes in (
        ("q", (23, 3, 5, 14)), ("k", (23, 3, 14)), ("v", (23, 3, 14)), ("out", (3, 5, 14, 23)))}  # fmt: skip
    q, k, v = (numpy.einsum(f"btd,d{axes}->bt{axes}", each, w[name]) for each, axes, name in (
        (x, "krh", "q"), (source, "kh", "k"), (source, "kh", "v")))  # fmt: skip
    scores = numpy.exp(numpy.einsum("btkrh,bmkh->bkrtm", q, k) / 14**0.5)
    mixed = numpy.einsum("bkrtm,bmkh->btkrh", scores / scores.sum(-1, keepdims=True), v)
    expected = numpy.einsum("btkrh,krhd->btd", mixed, w["out"])
    numpy.testing.assert_allclose(component(Both(cross), x, source), expected, rtol=1e-10)


def test_the_cross_cache_is_written_once_and_read_at_decode():
    model, size = built(**fields("t5")), 3 * 2 * 15 * 14 * 2  # decoder layers, k and v, heads, head size, bf16
    prefill = lmcalc.trace(model, 2, 5, source=7)
    decode = lmcalc.trace(model, 2, 1, 5, source=7, encoded=True)
    assert bytes_of(prefill)[2:] == [0, size * 2 * (5 + 7)]
    assert bytes_of(decode)[2:] == [size * 2 * (5 + 7), size * 2 * 1]
    assert not any(op.path.startswith("encoder") or op.path.endswith(("cross_attention/k", "cross_attention/v"))
                   for op in decode.ops)  # fmt: skip
    for trace in (prefill, decode):
        held = cache(trace, 2, 6, {"cache": "bf16", "state": "fp32"})
        assert held == {"bytes": size * 2 * (6 + 7), "bytes_per_token": size, "bytes_per_token_first": size,
                        "state_bytes": 0}  # fmt: skip


def test_a_source_as_long_as_the_prompt_is_the_default():
    model = built(**fields("t5"))
    assert flops(lmcalc.trace(model, 2, 5)) == flops(lmcalc.trace(model, 2, 5, source=5))
    assert flops(lmcalc.trace(model, 2, 5)) != flops(lmcalc.trace(model, 2, 5, source=6))


def test_fused_projections_of_the_source():
    """Keys and values of the source are one product in each layer, whether layers are written out or multiplied."""
    model = built(**fields("t5"))
    traces = [lmcalc.trace(model, 2, 5, source=7, fuse_projections=on, unroll=unrolled)
              for on, unrolled in ((False, False), (True, False), (True, True))]  # fmt: skip
    apart, together, unrolled = map(bytes_of, traces)
    # encoder layers: q, k, v; decoder layers: q, k, v of the tokens, k, v of the source
    assert apart[1] - together[1] == (2 * 2 * 7 + 3 * (2 * 5 + 1 * 7)) * 2 * 23 * 2
    assert together == unrolled


def test_counted_weights_of_both_stacks():
    model = built(**fields("t5"))
    data = Data(random_weights, tokens(5), source=tokens(7))
    lmcalc.trace(model, 2, 5, data=data, source=7)
    paths = sorted(data.used)
    assert sum(each.size for each in data.used.values()) == sum(params(model).values())
    assert "encoder/layers/1/attention/q" in paths and "layers/2/cross_attention/k" in paths
    assert "encoder/position_bias/table" in paths and "position_bias/table" in paths
    assert sum(path.startswith("embedding/") for path in paths) == 1  # one table for both


def test_reports():
    encoder = lmcalc.report(built(**fields("bert")), hardware="h100", prompt=5)
    data = json.loads(json.dumps(encoder.to_dict()))
    assert data["decode"] is None and data["hardware"][0]["decode"] is None
    assert data["cache"] == {"bytes": 0, "bytes_per_token": 0, "bytes_per_token_first": 0, "state_bytes": 0}
    assert any("no decode" in note for note in data["notes"])
    with pytest.raises(lmcalc.InputError, match="past"):
        lmcalc.report(built(**fields("bert")), prompt=5, past=2)
    both = lmcalc.report(built(**fields("t5")), batch=2, prompt=7, context=5).to_dict()
    size = 3 * 2 * 15 * 14 * 2
    assert both["cache"]["bytes"] == size * 2 * (5 + 7) and both["cache"]["bytes_per_token"] == size
    assert both["decode"]["bytes"]["cache_read"] == size * 2 * (5 + 7)
    assert any(note.startswith("The encoder reads as many tokens as the prompt") for note in both["notes"])


# Counts of Hugging Face transformers 5.24: parameters by group; contraction FLOPs by group at batch 2, 1000 (300)
# tokens, all logits, no mask; for a decoder also of one token onto 1024, 512 of the source; bytes of the cache in bf16
RECORDED = {
    "t5-small": (
        {"stack": "encoder_decoder", "n_encoder_layers": 6, "n_layers": 6, "d_model": 512, "n_heads": 8, "head_dim": 64,
         "d_ff": 2048, "vocab_size": 32128, "positions": "relative_bias", "position_buckets": 32, "ffn": "relu",
         "tied": True, "score_scale": 1.0, "head_scale": 512**-0.5},
        {"token_embedding": 16449536, "position_embedding": 512, "attention": 18874368, "ffn": 25165824,
         "norms": 16384},
        (1000, {"attention_scores": 73728000000, "attention_proj": 75497472000, "ffn": 100663296000,
                "lm_head": 65798144000}),
        {"attention_scores": 18886656, "attention_proj": 18874368, "ffn": 25165824, "lm_head": 32899072},
        18874368,
    ),
    "flan-t5-xl": (
        {"stack": "encoder_decoder", "n_encoder_layers": 24, "n_layers": 24, "d_model": 2048, "n_heads": 32,
         "head_dim": 64, "d_ff": 5120, "vocab_size": 32128, "positions": "relative_bias", "position_buckets": 32,
         "ffn": "geglu_tanh", "score_scale": 1.0},
        {"token_embedding": 65798144, "position_embedding": 2048, "attention": 1207959552, "ffn": 1509949440,
         "norms": 249856, "lm_head": 65798144},
        (1000, {"attention_scores": 1179648000000, "attention_proj": 4831838208000, "ffn": 6039797760000,
                "lm_head": 263192576000}),
        {"attention_scores": 302186496, "attention_proj": 1207959552, "ffn": 1509949440, "lm_head": 131596288},
        301989888,
    ),
    # Their groups put the output projection of attention (768*768 + 768 a layer) with the feed-forward; here it counts
    # as attention, like all its projections
    "bert-base-uncased": (
        {"stack": "encoder", "n_layers": 12, "d_model": 768, "n_heads": 12, "d_ff": 3072, "vocab_size": 30522,
         "max_positions": 512, "positions": "learned", "norm": "layernorm", "norm_placement": "post",
         "embedding_norm": True, "attention_bias": "all", "ffn": "gelu", "ffn_bias": True, "token_types": 2,
         "tied": True, "head_bias": True, "head_transform": True},
        {"token_embedding": 23440896, "position_embedding": 393216, "attention": 21261312 + 12 * (768 * 768 + 768),
         "ffn": 63756288 - 12 * (768 * 768 + 768), "norms": 39936, "lm_head": 621114, "token_type_embedding": 1536},
        (300, {"attention_scores": 6635520000, "attention_proj": 25480396800 + 12 * 2 * 600 * 768 * 768,
               "ffn": 76441190400 - 12 * 2 * 600 * 768 * 768, "lm_head": 28836864000}),
        None,
        0,
    ),
    "opt-350m": (
        {"n_layers": 24, "d_model": 1024, "n_heads": 16, "d_ff": 4096, "vocab_size": 50272, "embedding_dim": 512,
         "max_positions": 2048, "positions": "learned", "position_offset": 2, "norm": "layernorm",
         "norm_placement": "post", "attention_bias": "all", "ffn": "relu", "ffn_bias": True, "tied": True},
        {"token_embedding": 25739264, "position_embedding": 2099200, "attention": 100761600, "ffn": 201449472,
         "norms": 98304, "embedding_projection": 1048576},
        (1000, {"embedding_projection": 4194304000, "attention_scores": 196608000000, "attention_proj": 402653184000,
                "ffn": 805306368000, "lm_head": 102957056000}),
        {"embedding_projection": 2097152, "attention_scores": 100761600, "attention_proj": 201326592,
         "ffn": 402653184, "lm_head": 51478528},
        100663296,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_counts_of_others(name):
    given, groups, (length, prefill), decode, held = RECORDED[name]
    model = lmcalc.build(given, name)
    assert {part: number for part, number in params(model).items() if number} == groups
    trace = lmcalc.trace(model, 2, length, logits="all")
    assert flops(trace, "full")[1] == prefill
    if decode is not None:
        trace = lmcalc.trace(model, 1, 1, 1024, source=512, encoded=True)
        assert flops(trace, "full")[1] == decode
    assert cache(trace, 1, 1024, {"cache": "bf16", "state": "fp32"})["bytes"] == held


def test_refusals():
    for changes, message in [
        ({"stack": "encoder_decoder"}, "n_encoder_layers is missing"),
        ({"n_encoder_layers": 2}, "n_encoder_layers = 2: no part of this model"),
        ({"stack": "encoder", "window": 4}, "window = 4; allowed: an odd number in an encoder"),
    ]:
        with pytest.raises(lmcalc.InputError, match=message):
            built(**changes)
