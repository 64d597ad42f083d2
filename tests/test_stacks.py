"""Encoders, and encoder-decoders with their cross attention and its cache; counts as other people's code has them."""

import json

import numpy
import pytest
from soundness import assert_sound, built, bytes_of, component, logits

import lmcalc
from lmcalc.components.base import Bound
from lmcalc.compute import Data, random_weights
from lmcalc.lenses.cache import cache
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import buffers, params
from lmcalc.ops import Ops
from lmcalc.trace import Array

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


WIDE = {**T5, "n_kv_heads": 3, "positions": "rotary", "position_buckets": None, "position_max_distance": None,
        "score_scale": None, "encoder": {"d_model": 19, "n_heads": 10, "n_kv_heads": 2, "d_ff": 31}}  # fmt: skip


def test_an_encoder_of_another_width():
    """It embeds by itself, and cross attention has its keys and values from its width (T5Gemma 9B-2B)."""
    model = assert_sound(**WIDE)
    own = 37 * 19 + 2 * (14 * 19 * 2 * (10 + 2) + 3 * 19 * 31 + 2 * 19) + 19
    cross = 14 * (2 * 23 * 15 + 2 * 19 * 3)
    decoder = 2 * 37 * 23 + 3 * (14 * 23 * 2 * (15 + 3) + cross + 3 * 23 * 29 + 3 * 23) + 23
    assert sum(params(model).values()) == own + decoder
    with pytest.raises(lmcalc.InputError, match="encoder_input_ids holds 37; allowed: token ids from 0 to 36"):
        lmcalc.reference.of(model)([[1]], encoder_input_ids=[[37]])


def test_an_encoder_that_differs():
    alike = built(**WIDE | {"encoder": {"d_ff": 31}})
    assert alike.source_embedding is None and alike.encoder.runs[0].items[0][1].ffn.d_ff == 31
    apart = built(**WIDE | {"encoder": {"vocab_size": 41}})
    assert apart.source_vocab == 41 and apart.embedding.vocab_size == 37
    assert lmcalc.reference.of(apart)([[1]], encoder_input_ids=[[40]])[0].shape == (1, 1, 37)
    rule = built(**WIDE | {"encoder": {"d_model": 24, "d_ff": "8/3*d_model"}})
    assert rule.fields["encoder"]["d_ff"] == 64


def test_keys_and_values_from_another_width():
    model, random = built(**WIDE), numpy.random.default_rng(5)
    source = random.standard_normal((2, 7, 19))
    ops = Ops(2, 5, source=7, data=Data(random_weights, tokens(5)))
    made = ops.rename(Array("BTD", (2, 7, 19), "activation", "activations", data=source), "BMD")
    x = Array("BTD", (2, 5, 23), "activation", "activations", data=random.standard_normal((2, 5, 23)))
    Bound(ops, model.runs[0].items[0][1].cross_attention, "", "it")(x, source=made)
    for name in "kv":
        expected = numpy.einsum("bmx,xkh->bmkh", source, random_weights(f"it/{name}", "", (19, 3, 14)))
        numpy.testing.assert_allclose(ops.data.kept[f"it/{name}"], expected, rtol=1e-12)


def test_windows_of_each_side():
    both = {"n_encoder_layers": 2, "stack": "encoder_decoder", "window": 6, "encoder": {"window": 5}}
    model = built(**both)
    assert model.encoder.runs[0].items[0][1].attention.reach == 2
    assert model.runs[0].items[0][1].attention.window == 6
    with pytest.raises(lmcalc.InputError, match="encoder: window = 6; allowed: an odd number in an encoder"):
        built(**both | {"encoder": {"window": 6}})


def test_a_bias_on_the_logits_that_is_a_buffer():
    plain, biased = built(), built(logits_bias=True)
    assert params(plain) == params(biased) and (buffers(plain), buffers(biased)) == (0, 37)
    expected = logits(plain, tokens(5)) + random_weights("head/logits_bias", "V", (37,))
    numpy.testing.assert_allclose(logits(biased, tokens(5)), expected, atol=1e-12)


def test_the_embedding_norm_before_positions():
    def order(stack="", **changes):
        given = {**fields("bart"), "norm_placement": "pre", "embedding_norm_first": True, **changes}
        paths = [op.path for op in lmcalc.trace(built(**given), 1, 5).ops]
        return paths.index(f"{stack}positions/add") - paths.index(f"{stack}embedding_norm/layer_norm")

    assert order() > 0 and order("encoder/") > 0 and order(embedding_norm_first=False) < 0
    assert order("encoder/", encoder={"embedding_norm_first": False}) < 0


def test_a_relative_bias_of_each_layer():
    """With the same table in each layer it is the one that all share."""
    model, shared = built(**fields("t5"), own_position_bias=True), built(**fields("t5"))
    tables = {side: random_weights(f"{side}position_bias/table", "", (8, 15, 1)) for side in ("encoder/", "")}

    def alike(path, axes, sizes):
        own = path.endswith("relative/table")
        return tables["encoder/" * path.startswith("encoder")] if own else random_weights(path, axes, sizes)

    assert params(model)["position_embedding"] == 5 * 8 * 15 and params(shared)["position_embedding"] == 2 * 8 * 15
    one, other = (logits(each, tokens(5), weights=alike, source=tokens(7, 1)) for each in (model, shared))
    numpy.testing.assert_allclose(one, other, rtol=1e-12)


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
        ({"encoder": {"d_ff": 31}}, "encoder = .*: no part of this model"),
        (T5 | {"qk_norm": "head"}, "qk_norm = 'head'; allowed: none in an encoder-decoder"),
        (T5 | {"qkv_clip": 0.5}, "qkv_clip = 0.5; allowed: none in an encoder-decoder"),
        (WIDE | {"encoder": {"tied": True}}, "encoder: tied = True: no part of this encoder has such a field"),
        (
            WIDE | {"encoder": {"kinds": {"a": {"mixer_bias": "all"}}, "layers": ["a"]}},
            r"encoder: kinds\.a\.mixer_bias = 'all': no layer of this model",
        ),
        (WIDE | {"encoder": {"embedding_scale": 2.0}}, "encoder: embedding_scale = 2.0: no part of this encoder"),
    ]:
        with pytest.raises(lmcalc.InputError, match=message):
            built(**changes)
