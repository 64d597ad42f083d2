"""What encoders have of their own: windows on both sides, narrow embeddings, layers that are one block, heads."""

import numpy
import pytest
from soundness import assert_sound, built, logits, weight
from test_logits import checkpoint, same
from variants import ENCODERS

import lmcalc
from lmcalc.compute import random_weights
from lmcalc.errors import InputError
from lmcalc.lenses.params import params
from lmcalc.patterns import near_pairs

POST = {"stack": "encoder", "norm": "layernorm", "norm_placement": "post", "ffn": "gelu", "positions": "learned"}
NARROW = {"embedding_dim": 17, "embedding_projection": "sum"}
TOKENS = numpy.array([[3, 4, 5, 6, 7, 8, 9, 10, 11], [11, 9, 7, 5, 3, 4, 6, 8, 10]])


@pytest.mark.parametrize("name", ENCODERS)
def test_sound(name):
    assert_sound(**ENCODERS[name])


# Windows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", range(1, 12))
@pytest.mark.parametrize("reach", [0, 1, 2, 5, 20])
def test_pairs_of_a_window_on_both_sides(tokens, reach):
    places = numpy.arange(tokens)
    assert near_pairs(tokens, reach) == (abs(places[:, None] - places) <= reach).sum()


def test_a_token_is_seen_from_as_far_as_the_window_goes():
    """One layer with a window of 7: a change of token 4 reaches tokens 1 to 7 and no others."""
    model = built(n_layers=1, stack="encoder", window=7)
    changed = TOKENS.copy()
    changed[:, 4] = 20
    moved = abs(logits(model, TOKENS) - logits(model, changed)).max((0, 2)) > 0
    assert moved.tolist() == [False, *[True] * 7, False]


def test_a_wide_window_is_none():
    assert (logits(built(stack="encoder", window=19), TOKENS) == logits(built(stack="encoder"), TOKENS)).all()


# Layers that are one block ------------------------------------------------------------------------------------------


def test_layers_of_a_group_have_the_weights_of_one():
    """As a model whose layers have weights of their own that are equal; parameters are those of one layer a group."""
    shared, own = built(**POST, layer_groups=2), built(**POST)
    groups = [0, 0, 1]

    def equal(path, axes, sizes):
        kind, _, rest = path.partition("/")
        number, _, rest = rest.partition("/")
        return random_weights(f"memory/{groups[int(number)]}/{rest}" if kind == "layers" else path, axes, sizes)

    assert abs(logits(shared, TOKENS) - logits(own, TOKENS, equal)).max() < 1e-12
    few, many = (params(each) for each in (shared, own))
    assert few["attention"] * 3 == many["attention"] * 2 and few["ffn"] * 3 == many["ffn"] * 2
    assert (lmcalc.trace(shared, 2, 9).outputs[0].sizes) == (2, 9, 37)


def test_groups_may_differ_by_a_layer():
    """Layer i is of group floor(i groups / layers), as ALBERT's class has it."""
    counts = [run.count for run in built(**POST, n_layers=7, layer_groups=3).runs]
    found = [int(i / (7 / 3)) for i in range(7)]
    assert counts == [found.count(group) for group in range(3)]


def test_shared_weights_are_read_for_each_layer_and_once_in_the_ideal():
    reports = [lmcalc.report(built(**POST, **more), prompt=8, traffic=how).to_dict()["prefill"]["bytes"]["weights"]
               for more in ({}, {"layer_groups": 1}) for how in ("fused", "ideal")]  # fmt: skip
    own, own_ideal, shared, shared_ideal = reports
    layer = sum(size for part, size in params(built(**POST, n_layers=1)).items() if part in ("attention", "ffn"))
    assert own == shared
    assert own_ideal - shared_ideal == 2 * 2 * (layer + 4 * 23)  # bf16; two layers less, two norms of 2 x 23 in each


# Embedding and head -------------------------------------------------------------------------------------------------


def test_a_narrow_embedding_is_projected_behind_the_sum():
    """positions, token types and norm at width 17; then the projection with its bias (Lan et al. 2019, sec. 3.1)."""
    fields = {**POST, **NARROW, "embedding_projection_bias": True, "token_types": 2, "more_token_types": [3],
              "n_layers": 1, "embedding_norm": True, "head_transform": True, "tied": True}  # fmt: skip
    seen = {}

    def keep(path, axes, sizes):
        seen[path] = axes, sizes
        return random_weights(path, axes, sizes)

    logits(built(**fields), TOKENS, keep)
    assert seen["embedding/table"] == ("VX", (37, 17)) and seen["positions/table"] == ("JX", (31, 17))
    assert seen["more_token_types/0/table"] == ("YX", (3, 17)) and seen["embedding_norm/weight"] == ("X", (17,))
    assert seen["project_in/weight"] == ("XD", (17, 23)) and seen["project_in/bias"] == ("D", (23,))
    assert seen["head/transform/weight"] == ("DO", (23, 17)) and seen["head/transform/norm/weight"] == ("X", (17,))
    assert params(built(**fields))["embedding_projection"] == 17 * 23 + 23


def test_the_first_row_of_each_table_of_types_is_added():
    """Rows of both tables for all tokens, as if they were in the positions."""
    fields = {"stack": "encoder", "positions": "learned", "token_types": 2}
    more = {"more_token_types": [3, 4]}
    rows = sum(weight(f"more_token_types/{at}/table", size, 23)[0] for at, size in enumerate((3, 4)))

    def moved(path, axes, sizes):
        found = random_weights(path, axes, sizes)
        return found + rows if path == "positions/table" else found

    given = logits(built(**fields, **more), TOKENS)
    assert abs(given - logits(built(**fields), TOKENS, moved)).max() < 1e-12


def test_the_transform_has_an_activation_of_its_own():
    fields = {**POST, "head_transform": True}
    plain, other = (logits(built(**fields, **more), TOKENS) for more in ({}, {"head_activation": "relu"}))
    assert abs(plain - other).max() > 1e-3
    assert (plain == logits(built(**fields, head_activation="gelu"), TOKENS)).all()
    bare = params(built(**fields, head_transform_bias=False))
    assert params(built(**fields))["lm_head"] - bare["lm_head"] == 23


@pytest.mark.parametrize("changes, message", [
    ({"window": 4}, "window = 4; allowed: an odd number in an encoder"),
    ({"attention_chunk": 4}, "attention_chunk = 4; allowed: none in an encoder"),
    ({"embedding_projection": "sum"}, "embedding_projection = 'sum'; allowed: none without embedding_dim"),
    ({**NARROW, "tied": True}, "tied = True; allowed: false without head_transform"),
    ({**NARROW, "tied": True, "head_transform": True, "ffn": "gelu", "head_transform_dim": 9},
     "head_transform_dim = 9; allowed: none with tied = true"),
    ({"head_transform": True}, "head_transform = True; allowed: false, since ffn = 'swiglu'"),
    ({"head_activation": "gelu"}, "head_activation = 'gelu': no part of this model has such a field"),
    ({"more_token_types": [0]}, "more_token_types = [0]; allowed: integers of at least 1"),
    ({"more_token_types": []}, "more_token_types = []; allowed: integers of at least 1"),
    ({"layer_groups": 4}, "layer_groups = 4; allowed: at most one for each of the 3 layers"),
    ({"layer_groups": 1, "layers": ["a"], "kinds": {"a": {}}}, "layer_groups = 1; allowed: none with layers"),
    ({"layer_groups": 1, "stack": "encoder_decoder", "n_encoder_layers": 2}, "layer_groups = 1; allowed: none in a"),
    ({"attention_norm": False, "norm_placement": "post"}, "attention_norm = False; allowed: true where no norm"),
    ({"position_table": True, "positions": "learned"}, "position_table = True; allowed: false with positions"),
])  # fmt: skip
def test_what_cannot_be_is_refused(changes, message):
    with pytest.raises(InputError) as error:
        built(**{"stack": "encoder", **changes})
    assert message in str(error.value)


# Checkpoints of two makes --------------------------------------------------------------------------------------------

QKV = [f"self_attn.{part}_proj" for part in "qkv"]
AT_RUN_TIME = {  # recording: {tensor: its parts}, {name in files: name at run time}
    "nomic_bert": (
        {"attn.Wqkv": QKV},
        {"encoder.layers": "layers", "emb_ln": "embeddings.LayerNorm", "attn.out_proj": "self_attn.o_proj",
         "fc11": "up_proj", "fc12": "gate_proj", "fc2": "down_proj", "norm1": "post_attention_layernorm",
         "norm2": "post_mlp_layernorm"},
    ),
    "jina_embeddings_v3": (
        {"mixer.Wqkv": QKV},
        {"encoder.layers": "layers", "emb_ln": "embeddings.LayerNorm", "mixer.out_proj": "self_attn.o_proj",
         "norm1": "post_attention_layernorm", "norm2": "post_mlp_layernorm"},
    ),
    "gte": (
        {"attention.qkv_proj": QKV, "mlp.up_gate_proj": ["mlp.up_proj", "mlp.gate_proj"]},
        {"encoder.layer": "layers", "attention.o_proj": "self_attn.o_proj", "attn_ln": "post_attention_layernorm",
         "mlp_ln": "post_mlp_layernorm", "lm_head.norm": "lm_head.layer_norm"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_RUN_TIME)
def test_names_that_transformers_holds_at_run_time(name, tmp_path):
    parted, renamed = AT_RUN_TIME[name]

    def change(weights):
        for key in list(weights):
            value = weights.pop(key)
            whole, names = next(((each, names) for each, names in parted.items() if each in key), ("", [""]))
            for part, array in zip(names, numpy.split(value, len(names))):
                new = key.replace(whole, part)
                for old, now in renamed.items():
                    new = new.replace(old, now)
                weights[new] = array

    assert same(checkpoint(tmp_path, name, change), name)
