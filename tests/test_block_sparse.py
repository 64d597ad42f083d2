"""MiniMax M3: blocks of keys that an indexer chooses; counts against loops by hand, the choice against its words."""

import numpy
import pytest
import sympy
from variants import fields

import lmcalc
from lmcalc.compute import Data, random_weights
from lmcalc.errors import InputError
from lmcalc.huggingface import load
from lmcalc.lenses.params import buffers, params
from lmcalc.model import build, trace
from lmcalc.patterns import Blocks, pairs

SMALL = fields("blocks of keys")


def keys(query, size, count):
    """Keys that a query sees: all before it while there are so few blocks, else its own block and whole ones."""
    blocks = query // size + 1
    return query + 1 if blocks <= count else (count - 1) * size + query % size + 1


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_pairs(size, count):
    every = [keys(query, size, count) for query in range(60)]
    for past, new in ((0, 1), (0, 17), (5, 1), (20, 13), (31, 29)):
        assert pairs(past, new, Blocks(size, count)) == sum(every[past : past + new])


def test_pairs_on_symbols_and_arrays():
    P, T, W, C = sympy.symbols("P T W C", positive=True, integer=True)
    points = [(past, new, size, count) for past in (0, 9) for new in (1, 30) for size in (2, 5) for count in (1, 3)]
    of_symbols, arrays = pairs(P, T, Blocks(W, C)), [numpy.array(each, float) for each in zip(*points)]
    of_arrays = pairs(*arrays[:2], Blocks(*arrays[2:]))
    for at, point in enumerate(points):
        expected = pairs(*point[:2], Blocks(*point[2:]))
        assert of_symbols.subs(dict(zip((P, T, W, C), point))) == expected == of_arrays[at]


@pytest.mark.parametrize("name", ["blocks of keys", "two blocks of keys nearby"])
def test_the_mask_is_the_best_blocks(name):
    """For each key/value head the blocks of the largest scores, its own and those nearby first, and no later key."""
    given = fields(name)
    size, count = given["index_block_size"], given["index_topk_blocks"]
    near = given.get("index_local_blocks", 1)
    tokens = numpy.random.default_rng(4).integers(0, 37, (2, 14))
    done = trace(build(given), 2, 14, data=Data(random_weights, tokens), logits="all")
    scores = next(op for op in done.ops if op.path == "layers/1/attention/indexer/mask").writes[0].data
    mask = next(op for op in done.ops if op.path == "layers/1/attention/scores").mask
    assert mask.data.shape == (2, 3, 1, 14, 14) and mask.data.sum() == 2 * 3 * mask.pairs
    for b, head, query in numpy.ndindex(2, 3, 14):
        own = query // size
        best = {at: scores[b, head, query, at * size : (at + 1) * size].max() for at in range(own + 1)}
        best |= dict.fromkeys(range(max(own - near + 1, 0), own + 1), numpy.inf)
        chosen = sorted(best, key=best.get, reverse=True)[:count]
        seen = [key for at in chosen for key in range(at * size, (at + 1) * size) if key <= query]
        assert numpy.flatnonzero(mask.data[b, head, 0, query]).tolist() == sorted(seen)


def test_few_blocks_are_full_attention():
    """While a sequence has no more blocks than a query chooses, the indexer changes nothing."""
    tokens = numpy.arange(2 * 6).reshape(2, 6)
    plain = {name: each for name, each in SMALL.items() if not name.startswith("index_")}
    one, other = (
        trace(build(each), 2, 6, data=Data(random_weights, tokens), logits="all").outputs[0].data
        for each in (SMALL, plain)
    )
    assert abs(one - other).max() < 1e-12
    longer = numpy.arange(2 * 9).reshape(2, 9)
    one, other = (
        trace(build(each), 2, 9, data=Data(random_weights, longer), logits="all").outputs[0].data
        for each in (SMALL, plain)
    )
    assert abs(one - other).max() > 1e-3


def test_minimax_m3():
    """60 layers, 3 of them full; 16 blocks of 128 for each of 4 key/value heads, and an indexer that sees all keys."""
    model = lmcalc.load("minimax-m3")
    assert sum(params(model).values()) == 426_174_565_632 and buffers(model) == 57 * 128
    for context in (1000, 2047, 2048, 2100, 2**20):
        found = lmcalc.report(model, context=context).to_dict()
        token = 2 * 4 * 128  # keys and values of a layer
        assert found["cache"]["bytes"] == 2 * context * (60 * token + 57 * 128)
        sees, full = keys(context, 128, 16), context + 1
        scores = 4 * 64 * 128 * (3 * full + 57 * sees) + 57 * 2 * 4 * 128 * full
        assert found["decode"]["flops"]["contraction_by_part"]["attention_scores"] == scores
        read = 2 * (3 * context * token + 57 * min(context, 16 * 128) * token + 57 * context * 128)
        assert found["decode"]["bytes"]["cache_read"] == read


CONFIG = {"model_type": "minimax_m3_vl_text", "num_hidden_layers": 3, "layer_types": ["minimax_m3_sparse"] * 3}


def test_older_configs_say_the_same():
    older = load({
        "model_type": "minimax_m3_vl_text", "num_hidden_layers": 3, "moe_layer_freq": [0, 1, 1],
        "sparse_attention_config": {
            "use_sparse_attention": True, "sparse_attention_freq": [0, 1, 1], "sparse_index_dim": 64,
            "sparse_block_size": 32, "sparse_topk_blocks": 8, "sparse_local_block": 2, "sparse_num_index_heads": 4,
            "sparse_disable_index_value": [0, 1, 1], "sparse_score_type": "max", "sparse_init_block": 0,
        },
    })  # fmt: skip
    newer = load({**CONFIG, "layer_types": ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"],
                  "mlp_layer_types": ["dense", "sparse", "sparse"], "index_head_dim": 64, "index_block_size": 32,
                  "index_topk_blocks": 8, "index_local_blocks": 2})  # fmt: skip
    assert older.fields == newer.fields
    assert not [note for each in (older, newer) for note in each.notes if "not in the config" not in note]


REFUSED = [
    ({"index_n_heads": 2}, "index_n_heads = 2; allowed: one for each of the 4 key/value heads"),
    ({"index_local_blocks": 0}, "index_local_blocks = 0; allowed: at least 1"),
    ({"index_local_blocks": 17}, "index_local_blocks = 17; allowed: at most index_topk_blocks = 16"),
    ({"index_head_dim": 32}, "index_head_dim = 32; allowed: at least the 64 entries that are turned"),
    ({"swiglu_alpha": 1.0}, "swiglu_alpha = 1.0; allowed: 1.702"),
    ({"attention_output_gate": True}, "attention_output_gate = True; allowed: False"),
    ({"layer_types": ["sliding"] * 3}, "layer_types = 'sliding'; allowed: one of full_attention, minimax_m3_sparse"),
    ({"sparse_attention_config": {"sparse_score_type": "mean"}}, "sparse_score_type = 'mean'; allowed: 'max'"),
    ({"sparse_attention_config": {"sparse_disable_index_value": [0, 1, 1]}}, "1 for each layer with an indexer"),
]


@pytest.mark.parametrize("changes, message", REFUSED)
def test_configs_refused(changes, message):
    with pytest.raises(InputError) as error:
        load({**CONFIG, **changes})
    assert message in str(error.value)


FIELDS_REFUSED = [
    ({"window": 6}, "window = 6; allowed: none with index_block_size"),
    ({"attention_gate": True}, "attention_gate = True; allowed: none with index_block_size"),
    ({"positions": "alibi", "rotary_dim": None}, "positions = 'alibi'; allowed: rotary or none"),
    ({"index_topk_blocks": None}, "index_topk_blocks is missing"),
    ({"index_block_size": None}, "index_topk_blocks = 2: no part of this model has such a field"),
]


@pytest.mark.parametrize("changes, message", FIELDS_REFUSED)
def test_fields_refused(changes, message):
    with pytest.raises(InputError) as error:
        build({name: each for name, each in {**SMALL, **changes}.items() if each is not None})
    assert message in str(error.value)
