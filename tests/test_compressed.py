"""DeepSeek V4: compressed caches and their counts, routing by token id, hyper-connections; against loops by hand."""

import re
import shutil
from pathlib import Path

import numpy
import pytest
import sympy
from safetensors.numpy import load_file, save_file
from soundness import component, weight
from variants import BLOCKS, fields

import lmcalc
from lmcalc.components.base import Bound
from lmcalc.components.hyper_connections import HyperConnection
from lmcalc.compress import Entries, Last, Waiting, seen
from lmcalc.compute import Data, random_weights
from lmcalc.errors import InputError
from lmcalc.huggingface import load
from lmcalc.lenses.cache import cache
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import buffers, mtp, params
from lmcalc.model import build, trace
from lmcalc.numbers import value
from lmcalc.ops import Ops
from lmcalc.trace import Array

FLASH, PRO = (lmcalc.load(f"deepseek-v4-{name}") for name in ("flash", "pro"))
SMALL = fields("compressed attention")


# Counts of windows and pairs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("most", [None, 1, 2, 4])
def test_pairs_with_entries(size, most):
    """A query at position q sees the windows that end at q or before, the best `most` of them."""
    total = 0
    for n in range(1, 40):
        visible = sum((window + 1) * size <= n for window in range(40))  # of the query at n - 1
        total += visible if most is None else min(visible, most)
        assert seen(n, size, most) == total


def test_pairs_with_entries_on_symbols_and_arrays():
    N, M = sympy.symbols("N M", positive=True, integer=True)
    points = [(n, size) for n in (0, 1, 7, 30) for size in (2, 5)]
    of_symbols, arrays = seen(N, M, 3), [numpy.array(each, float) for each in zip(*points)]
    of_arrays = seen(arrays[0], arrays[1], 3)
    for at, (n, size) in enumerate(points):
        assert of_symbols.subs({N: n, M: size}) == seen(n, size, 3) == of_arrays[at]


def test_rows_that_a_cache_holds():
    tokens = range(12)
    assert [Entries(4).held(each) for each in tokens] == [0] * 4 + [1] * 4 + [2] * 4
    assert [Waiting(4).held(each) for each in tokens] == [0, 1, 2, 3] * 3
    assert [Last(4).held(each) for each in tokens] == [0] * 4 + [4] * 8
    assert value(Entries(4).growth((6, ()))) == sympy.Rational(3, 2) and value(Waiting(4).growth((6, ()))) == 0


# The cache --------------------------------------------------------------------------------------------------------


def bytes_of(model, context):
    """By hand, in bf16: a window of H numbers a layer, entries, what waits for its window, and the last whole one."""
    layers = model.fields["layers"]
    every = [each.split("*")[-1] for each in layers for _ in range(int(each.split("*")[0]) if "*" in each else 1)]
    total = 0
    for name in every:
        kind = model.fields["kinds"][name]
        size, head, index = kind.get("compression"), model.fields["head_dim"], kind.get("index_head_dim", 0)
        total += min(context, model.fields["window"]) * head
        if size is not None:
            whole = context // size
            total += whole * (head + index)
            series = 2 if kind.get("compression_overlap") else 1  # kv and gate of each token that waits
            total += (context - whole * size) * 2 * series * (head + index)
            total += 2 * size * (head + index) if series == 2 and whole else 0
    return 2 * total


@pytest.mark.parametrize("model", [FLASH, PRO])
@pytest.mark.parametrize("context", [1, 3, 4, 127, 128, 130, 2048, 99_999, 2**20])
def test_cache_by_hand(model, context):
    assert lmcalc.report(model, context=context).to_dict()["cache"]["bytes"] == bytes_of(model, context)


def test_a_million_tokens_as_printed():
    """vllm.ai/blog/deepseek-v4 and tables after it: 9.62 GiB, 6.72 GiB, against 83.88 GiB of V3.2, in bf16."""
    found = [lmcalc.report(each, context=2**20).to_dict()["cache"]["bytes"] for each in (PRO, FLASH, "deepseek-v3.2")]
    for held, printed in zip(found, (9.62, 6.72, 83.88)):
        assert held / 2**30 == pytest.approx(printed, abs=0.006)


def test_growth_is_that_of_a_long_stretch():
    held = [lmcalc.report(FLASH, context=tokens).to_dict()["cache"] for tokens in (128 * 100, 128 * 200)]
    assert held[1]["bytes"] - held[0]["bytes"] == 128 * 100 * held[0]["bytes_per_token"]
    assert held[0]["bytes_per_token"] == 6880 and held[0]["state_bytes"] == 0


@pytest.mark.parametrize("length", range(1, 17))
def test_what_is_kept_is_what_is_counted(length):
    """Step by step as at once, whatever the length is modulo the windows."""
    model, tokens = build(SMALL), numpy.arange(17 * 2).reshape(2, 17)
    whole = trace(model, 2, length, data=Data(random_weights, tokens[:, :length]), logits="all").outputs[0].data
    states = {}
    for past in range(length):
        data = Data(random_weights, tokens[:, past : past + 1], states)
        logits = trace(model, 2, 1, past, data=data).outputs[0].data
        states = data.kept
        assert abs(logits - whole[:, past : past + 1]).max() < 1e-12
    held = cache(trace(model, 2, 1, length), 2, length, {"cache": "fp64"})["bytes"]
    assert held == sum(each.nbytes for each in states.values())


def test_one_token_makes_an_entry_only_where_it_ends_a_window():
    model = build(SMALL)
    elementwise = [flops(trace(model, 1, 1, past))[0]["elementwise"] for past in (15, 16, 17)]
    assert elementwise[2] > elementwise[1] and elementwise[2] > elementwise[0]  # the 18th token ends a window of 3


# An entry ---------------------------------------------------------------------------------------------------------


def test_an_entry_by_hand():
    """softmax over the tokens of a window, and of the one before, channel by channel; normed, turned as its first."""
    model = build(SMALL)
    compressor = model.runs[0].items[1][1].attention.compressor
    size, head, path = compressor.size, compressor.head_dim, "it"
    x = numpy.random.default_rng(3).standard_normal((1, 8, 23))
    found = component(compressor, x)[0]
    made = {name: x[0] @ weight(f"{path}/{name}", 23, head) for name in ("kv", "kv_before", "gate", "gate_before")}
    for entry in range(8 // size):
        kv, gate = [], []
        for at in range(size):
            token = (entry - 1) * size + at
            if token >= 0:
                kv.append(made["kv_before"][token])
                gate.append(made["gate_before"][token] + weight(f"{path}/position_before", size, head)[at])
        for at in range(size):
            kv.append(made["kv"][entry * size + at])
            gate.append(made["gate"][entry * size + at] + weight(f"{path}/position", size, head)[at])
        shares = numpy.exp(gate) / numpy.exp(gate).sum(axis=0)
        mixed = (numpy.array(kv) * shares).sum(axis=0)
        mixed = mixed / numpy.sqrt((mixed * mixed).mean() + 1e-5) * weight(f"{path}/norm/weight", head)
        for pair in range(3):  # the last 6 of 14, in halves
            angle = entry * size * 100.0 ** (-pair / 3)
            a, b = mixed[8 + pair], mixed[11 + pair]
            mixed[8 + pair] = a * numpy.cos(angle) - b * numpy.sin(angle)
            mixed[11 + pair] = b * numpy.cos(angle) + a * numpy.sin(angle)
        assert abs(found[entry] - mixed).max() < 1e-12
    assert len(found) == 8 // size


# Hyper-connections ------------------------------------------------------------------------------------------------


def test_hyper_connections_by_hand():
    n, width, eps, norm_eps, path = 3, 5, 1e-3, 1e-5, "it"
    kind = HyperConnection(width, n, 4, eps, norm_eps)
    streams = numpy.random.default_rng(1).standard_normal((1, 2, n, width))
    ops = Ops(1, 2, data=Data(random_weights, None))
    given = Array("BTnD", streams.shape, "activation", "activations", data=streams)
    bound = Bound(ops, kind, "", path)
    x, post, comb = bound(given)
    out = numpy.random.default_rng(2).standard_normal((1, 2, width))
    after = bound(given, Array("BTD", out.shape, "activation", "activations", data=out), post, comb).data
    scale = weight(f"{path}/scale", 3)
    for token in range(2):
        flat = streams[0, token].reshape(-1)
        flat = (flat / numpy.sqrt((flat * flat).mean() + norm_eps)).reshape(n, width)

        def mapped(name, *sizes, at, flat=flat):
            found = numpy.tensordot(flat, weight(f"{path}/{name}", n, width, *sizes), 2)
            return found * scale[at] + weight(f"{path}/{name}_base", *sizes)

        pre = 1 / (1 + numpy.exp(-mapped("pre", n, at=0))) + eps
        share = 2 / (1 + numpy.exp(-mapped("post", n, at=1)))
        mix = numpy.exp(mapped("comb", n, n, at=2))
        mix = mix / mix.sum(axis=1, keepdims=True) + eps
        mix = mix / (mix.sum(axis=0, keepdims=True) + eps)
        for _ in range(3):
            mix = mix / (mix.sum(axis=1, keepdims=True) + eps)
            mix = mix / (mix.sum(axis=0, keepdims=True) + eps)
        assert abs(x.data[0, token] - pre @ streams[0, token]).max() < 1e-12
        expected = share[:, None] * out[0, token] + mix.T @ streams[0, token]
        assert abs(after[0, token] - expected).max() < 1e-12
    assert abs(comb.data.sum(axis=-2) - 1).max() < 0.002 and abs(comb.data.sum(axis=-1) - 1).max() < 0.1


# Routing by token id ----------------------------------------------------------------------------------------------


def test_the_table_names_the_experts():
    model = build({**fields("experts by token id"), "n_mtp_layers": None})
    tokens = numpy.array([[1, 5, 1]])

    def weights(path, axes, sizes):
        if path.endswith("router/table"):
            return numpy.stack([numpy.roll(numpy.arange(7), -row)[:3] for row in range(sizes[0])]).astype(float)
        return random_weights(path, axes, sizes)

    done = trace(model, 1, 3, data=Data(weights, tokens), logits="all")
    index = next(op.touched.index.data for op in done.ops if op.path == "layers/0/ffn/experts/gate")
    assert index.tolist() == [[[1, 2, 3], [5, 6, 0], [1, 2, 3]]]


def test_parts_of_the_count():
    assert sum(params(FLASH).values()) == 284_332_230_231 and sum(params(PRO).values()) == 1_572_997_179_491
    assert buffers(FLASH) == 40 * 256 + 3 * 129_280 * 6
    width, n = 4096, 4
    streams = 2 * (n * width * (2 * n + n * n) + 2 * n + n * n + 3)
    ends = n * width * n + n + 1
    assert params(FLASH)["hyper_connections"] == 43 * streams + ends
    attention = width * 1024 + 1024 * 64 * 512 + width * 512 + 64 + 8 * 8 * 512 * 1024 + 8 * 1024 * width
    experts = 3 * width * 2048 * 257 + width * 256 + 256  # the router's correction included
    norms = 2 * width + 1024 + 512
    assert mtp(FLASH) == attention + experts + norms + streams + ends + 2 * width * width + 3 * width


# Configs ----------------------------------------------------------------------------------------------------------

SIZES = {"num_hidden_layers": 4, "vocab_size": 1000, "n_routed_experts": 8}


def test_older_configs_say_the_same():
    """compress_ratios with one more for the prediction module, qk_rope_head_dim, rope_scaling, num_hash_layers."""
    older = load({"model_type": "deepseek_v4", **SIZES, "compress_ratios": [0, 4, 128, 4, 0], "num_hash_layers": 1,
                  "qk_rope_head_dim": 32, "compress_rate_csa": 8,
                  "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536},
                  })  # fmt: skip
    table = {"rope_type": "yarn", "rope_theta": 160000.0, "factor": 16, "original_max_position_embeddings": 65536,
             "partial_rotary_factor": 0.0625, "attention_factor": 1.0}  # fmt: skip
    newer = load({"model_type": "deepseek_v4", **SIZES, "partial_rotary_factor": 0.0625,
                  "layer_types": ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention",
                                  "compressed_sparse_attention"],
                  "compress_rates": {"compressed_sparse_attention": 8, "heavily_compressed_attention": 128},
                  "mlp_layer_types": ["hash_moe", "moe", "moe", "moe"],
                  "rope_parameters": {"main": {"rope_type": "default", "rope_theta": 10000.0,
                                               "partial_rotary_factor": 0.0625}, "compress": table}})  # fmt: skip
    assert older.fields == newer.fields
    assert not [note for each in (older, newer) for note in each.notes if "not in the config" not in note]
    assert older.fields["rotary_dim"] == 32 and older.fields["kinds"]["sparse_scored"]["compression"] == 8


def test_layers_by_default():
    found = load({"model_type": "deepseek_v4", **SIZES, "num_hidden_layers": 6}).fields
    assert found["layers"] == ["3*heavy_hashed", "sparse_scored", "heavy_scored", "sparse_scored"]


REFUSED = [
    ({"compress_ratios": [0, 4, 64, 4]}, "compress_ratios = 64; allowed: one of 0, 4, 128"),
    ({"layer_types": ["full_attention"] * 4}, "layer_types = 'full_attention'; allowed: one of sliding_attention"),
    ({"mlp_layer_types": ["dense"] * 4}, "mlp_layer_types = 'dense'; allowed: one of hash_moe, moe"),
    ({"num_key_value_heads": 8}, "num_key_value_heads = 8; allowed: 1"),
    ({"scoring_func": "softmax"}, "scoring_func = 'softmax'; allowed: one of sqrtsoftplus, sigmoid"),
    ({"hc_mult": 0}, "hc_mult = 0; allowed: an integer"),
    ({"o_groups": 7}, "n_heads = 64; allowed: a multiple of out_groups = 7"),
]


@pytest.mark.parametrize("changes, message", REFUSED)
def test_configs_refused(changes, message):
    with pytest.raises(InputError) as error:
        load({"model_type": "deepseek_v4", **SIZES, **changes})
    assert message in str(error.value)


FIELDS_REFUSED = [
    ({"n_kv_heads": 2}, "n_kv_heads = 2; allowed: 1 with out_groups"),
    ({"positions": "none"}, "positions = 'none'; allowed: rotary with out_groups"),
    ({"kinds": {**SMALL["kinds"], "local": {"index_topk": 2}}}, "index_topk = 2; allowed: none without compression"),
    ({"compression_overlap": True}, "compression_overlap = True; allowed: none without compression"),
    ({"block": "hyper_connections"}, "hyper_streams is missing"),
    ({"hyper_streams": 4}, "hyper_streams = 4: no part of this model has such a field"),
    ({"kinds": {**SMALL["kinds"], "heavy": {"block": "hyper_connections"}}}, "block = 'hyper_connections'; allowed:"),
    ({**BLOCKS["experts by token id"], "router_bias": "correction"}, "router_bias = 'correction'; allowed: none with"),
    ({**BLOCKS["experts by token id"], "router": "topk_softmax"}, "router = 'topk_softmax'; allowed: softmax, sigmoid"),
]


@pytest.mark.parametrize("changes, message", FIELDS_REFUSED)
def test_fields_refused(changes, message):
    given = {name: each for name, each in {**SMALL, **changes}.items() if each is not None}
    with pytest.raises(InputError) as error:
        build(given)
    assert message in str(error.value)


# A checkpoint as its makers named it ------------------------------------------------------------------------------

PUBLISHED = (
    (r"^model\.embed_tokens\.", "embed."), (r"^model\.hc_head\.hc_", "hc_head_"), (r"^model\.", ""),
    (r"\.attn\.norm\.", ".attn.kv_norm."),
)  # fmt: skip


def test_published_names(tmp_path):
    recorded = Path(__file__).parent / "recorded" / "logits" / "deepseek_v4"
    weights = {}
    for name, tensor in load_file(recorded / "model.safetensors").items():
        for rule in PUBLISHED:
            name = re.sub(*rule, name)
        weights[name] = tensor
    assert {"embed.weight", "head.weight", "norm.weight", "hc_head_fn", "layers.1.attn.kv_norm.weight"} <= set(weights)
    weights["mtp.0.e_proj.weight"] = numpy.zeros((4, 4), numpy.float32)
    shutil.copy(recorded / "config.json", tmp_path)
    save_file(weights, tmp_path / "model.safetensors")
    expected = numpy.load(recorded / "expected.npz")
    logits, _ = lmcalc.reference.open(tmp_path)(expected["input_ids"])
    assert numpy.abs(logits - expected["logits"]).max() <= 1e-6 * numpy.abs(expected["logits"]).max()
