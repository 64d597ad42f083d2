"""What encoders have of their own: windows on both sides, narrow embeddings, layers that are one block, heads."""

import numpy
import pytest
from soundness import assert_sound, built, logits, weight
from test_logits import checkpoint, same
from variants import ENCODERS

import lmcalc
from lmcalc.compute import random_weights
from lmcalc.errors import InputError
from lmcalc.huggingface import translate
from lmcalc.lenses.params import active, params
from lmcalc.patterns import near_pairs
from lmcalc.primitives import PRIMITIVES

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


# Layers of other makes ----------------------------------------------------------------------------------------------


def test_projections_in_groups_are_block_diagonal():
    """As whole matrices that are zero outside of 4 blocks; a quarter of the weights, out apart."""
    sizes = {"d_model": 24, "d_ff": 28, "n_heads": 6, "n_kv_heads": 6, "n_layers": 1}
    whole, parted = built(**POST | sizes), built(**POST | sizes, projection_groups=4)
    shapes = {"q": ("Gio", (4, 6, 21)), "k": ("Giu", (4, 6, 21)), "v": ("Giu", (4, 6, 21)), "up": ("Gif", (4, 6, 7)),
              "down": ("Gfi", (4, 7, 6))}  # fmt: skip

    def diagonal(path, axes, sizes):
        name = path.rpartition("/")[2]
        if name not in shapes:
            return random_weights(path, axes, sizes)
        blocks = random_weights(path, *shapes[name])
        found = numpy.zeros((4 * blocks.shape[1], 4 * blocks.shape[2]))
        for at, block in enumerate(blocks):
            found[at * len(block) : (at + 1) * len(block), at * block.shape[1] : (at + 1) * block.shape[1]] = block
        return found.reshape(sizes)

    assert abs(logits(parted, TOKENS) - logits(whole, TOKENS, diagonal)).max() < 1e-12
    few, many = params(parted), params(whole)
    assert 4 * few["ffn"] == many["ffn"] and many["attention"] - few["attention"] == 3 * (24 * 84 * 3 // 4)


def test_adapters_of_other_languages_are_idle():
    """All are parameters, a token uses one; which one does not change the costs."""
    adapters = {"block": "adapted", "adapter_languages": ["en", "de", "fr"], "adapter_dim": 9, "ffn_bias": True}
    model, without = built(**POST, **adapters), built(**POST, ffn_bias=True)
    one = 3 * (2 * 23 * 9 + 9 + 23)
    total, fewer = (sum(params(each).values()) for each in (model, without))
    assert total - fewer == 3 * one and total - active(model) == 2 * one
    other = built(**POST, **adapters, adapter_language="fr")
    assert abs(logits(model, TOKENS) - logits(other, TOKENS)).max() > 1e-3
    here, there = (lmcalc.report(each, prompt=8).to_dict()["prefill"]["flops"] for each in (model, other))
    assert here == there


def test_neighbours_lie_beside_a_token():
    """Next, own and last row; zeros beyond the ends."""
    x = numpy.arange(1.0, 7.0).reshape(1, 3, 2)
    expected = [[[3, 4, 1, 2, 0, 0], [5, 6, 3, 4, 1, 2], [0, 0, 5, 6, 3, 4]]]
    assert PRIMITIVES["neighbours"].kernel(numpy, x).tolist() == expected


def test_feed_forwards_of_a_bottleneck():
    fields = {**POST, "norm": "affine", "block": "bottleneck", "bottleneck_dim": 15, "n_layers": 1}
    one, three = (params(built(**fields, ffns_per_layer=count)) for count in (1, 3))
    assert three["ffn"] - one["ffn"] == 2 * (2 * 15 * 29) and three["norms"] - one["norms"] == 2 * 2 * 15


def test_distances_beyond_the_span_are_one():
    """With vectors for distances from -4 to 3, only these 8 rows are projected, in a long sequence all of them."""
    fields = {"stack": "encoder", "positions": "disentangled", "position_max_distance": 4}
    model = built(**fields, disentangled={"rows": "sequence"})
    rows = [each.sizes[0] for tokens in (3, 9) for each in _distances(model, tokens)]
    assert rows == [6] * 3 + [8] * 3
    assert [each.sizes[0] for each in _distances(built(**fields), 3)] == [8] * 3


def _distances(model, tokens):
    """The keys of the distances in each layer."""
    found = lmcalc.trace(model, 2, tokens, unroll=True)
    return [op.writes[0] for op in found.ops if op.path.endswith("/position_k")]


@pytest.mark.parametrize("changes, message", [
    ({"projection_groups": 7}, "d_model = 23; allowed: a multiple of projection_groups = 7"),
    ({"projection_groups": 2, "d_model": 24, "d_ff": 46}, "projection_groups = 2; allowed: none with a feed-forward"),
    ({"bottleneck_dim": 15}, "bottleneck_dim = 15; allowed: none without block = 'bottleneck'"),
    ({"block": "bottleneck", "bottleneck_dim": 15}, "norm_placement = 'pre'; allowed: post with block = 'bottleneck'"),
    ({"block": "adapted", "adapter_languages": [1], "adapter_dim": 9}, "adapter_languages = [1]; allowed: names"),
    ({"block": "adapted", "adapter_languages": ["a"], "adapter_language": "b", "adapter_dim": 9},
     "adapter_language = 'b'; allowed: one of adapter_languages: a"),
    ({"embedding_neighbours": True}, "embedding_neighbours = True; allowed: false but in an encoder with"),
    ({"embedding_tables": [[3]]}, "embedding_tables = [[3]]; allowed: pairs of rows and width"),
    ({"head_rest": True}, "head_rest = True; allowed: false but with tied = true"),
    ({"positions": "disentangled", "position_max_distance": 9, "stack": None},
     "positions = 'disentangled'; allowed: another in a decoder"),
    ({"positions": "disentangled", "position_max_distance": 9, "position_buckets": 20},
     "position_buckets = 20; allowed: at least 4, and below twice position_max_distance - 1"),
    ({"positions": "disentangled", "position_max_distance": 9, "disentangled": {"terms": ["x"]}},
     "disentangled.terms = ['x']; allowed: one or both of content_to_position, position_to_content"),
    ({"positions": "disentangled", "position_max_distance": 9, "disentangled": {"colour": 1}},
     "disentangled.colour = 1; allowed: only terms, rows, shared, normed, key_bias"),
    ({"positions": "disentangled", "position_max_distance": 9, "qk_norm": "head"}, "qk_norm = 'head'; allowed: none"),
    ({"disentangled": {}}, "disentangled = {}: no part of this model has such a field"),
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


# Configs -------------------------------------------------------------------------------------------------------------


def fields(model_type, **config):
    return translate({"model_type": model_type, **config})[0]


def test_windows_of_modernbert():
    """local_attention is the whole window, half of it on each side; in the decoder half of it is the window."""
    found, decoder = fields("modernbert"), fields("modernbert-decoder")
    assert found["layers"][:3] == ["full_first", "2*sliding_later", "full_later"]
    assert found["kinds"]["sliding_later"]["window"] == 129 and decoder["kinds"]["sliding_later"]["window"] == 64
    bases = [found["kinds"][kind]["rope_base"] for kind in ("full_first", "sliding_later", "full_later")]
    assert bases == [160000.0, 10000.0, 160000.0]
    given = fields("modernbert", global_rope_theta=5e4, local_rope_theta=1e3, global_attn_every_n_layers=2)
    assert given["layers"][:3] == ["full_first", "sliding_later", "full_later"]
    assert [given["kinds"][kind]["rope_base"] for kind in ("full_later", "sliding_later")] == [5e4, 1e3]


def test_first_position():
    """Positions begin behind the row of the padding token; their table has all rows that the config says."""
    found = fields("roberta", max_position_embeddings=514)
    assert (found["max_positions"], found["position_offset"]) == (512, 2)
    assert fields("roberta", pad_token_id=4)["position_offset"] == 5
    assert fields("mpnet", pad_token_id=4)["position_offset"] == 2  # the class does not ask
    assert "position_offset" not in fields("bert")


def test_disentangled_terms_of_old_and_new_configs():
    given = {"relative_attention": True, "max_relative_positions": -1}
    one, other = (fields("deberta-v2", **given, pos_att_type=each) for each in ("p2c|c2p", ["p2c", "c2p"]))
    assert one == other and one["position_max_distance"] == 512 and "position_buckets" not in one
    buckets = fields("deberta-v2", **given, pos_att_type="c2p", position_buckets=256, norm_rel_ebd="layer_norm")
    assert buckets["position_buckets"] == 256 and buckets["disentangled"]["normed"]
    assert buckets["disentangled"]["terms"] == ["content_to_position"]
    scaled = fields("deberta-v2", pos_att_type="p2c|c2p", hidden_size=768, num_attention_heads=12)
    assert scaled["score_scale"] == (64 * 3) ** -0.5 and scaled["positions"] == "learned"


def test_first_configs_of_nomic_bert():
    """Keys of GPT-2; a factor becomes frequencies rescaled beyond the trained length."""
    given = {"activation_function": "swiglu", "n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 12,
             "n_positions": 8192, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "max_trained_positions": 2048,
             "rotary_scaling_factor": 2, "prenorm": False, "layer_norm_epsilon": 1e-12}  # fmt: skip
    found = fields("nomic_bert", **given)
    assert translate({"model_type": "nomic_bert", **given})[2] == ()
    table = {"kind": "dynamic", "factor": 2, "original_max_positions": 2048}
    assert found.pop("rope_scaling") == table and found == fields("nomic_bert", max_position_embeddings=8192)


REFUSED = [
    ("roberta", {"is_decoder": True}, "is_decoder = True; allowed: False (an encoder)"),
    ("electra", {"add_cross_attention": True}, "add_cross_attention = True; allowed: False"),
    ("ernie", {"position_embedding_type": "relative_key"}, "position_embedding_type = 'relative_key'"),
    ("roberta", {"max_position_embeddings": 2}, "max_position_embeddings = 2; allowed: more than 2"),
    ("big_bird", {}, "attention_type = 'block_sparse'; allowed: original_full"),
    ("albert", {"inner_group_num": 2}, "inner_group_num = 2; allowed: 1"),
    ("albert", {"num_hidden_groups": 13}, "layer_groups = 13; allowed: at most one for each of the 12 layers"),
    ("mpnet", {"relative_attention_num_buckets": 16}, "relative_attention_num_buckets = 16; allowed: 32"),
    ("roformer", {"rotary_value": True}, "rotary_value = True; allowed: False"),
    ("esm", {"vocab_size": 33, "is_folding_model": True}, "is_folding_model = True; allowed: False"),
    ("esm", {"vocab_size": 33, "position_embedding_type": "relative_key"}, "allowed: one of absolute, rotary"),
    ("modernbert", {"local_attention": 1}, "local_attention = 1; allowed: at least 2"),
    ("xlm", {"asm": True}, "asm = True; allowed: False"),
    ("tapas", {"type_vocab_sizes": [3, 0]}, "type_vocab_sizes = [3, 0]; allowed: integers of at least 1"),
    ("squeezebert", {"k_groups": 2}, "k_groups = 2; allowed: 4, as q_groups"),
    ("squeezebert", {"hidden_size": 756, "embedding_size": 756, "intermediate_size": 3070},
     "d_ff = 3070; allowed: a multiple of projection_groups = 4"),
    ("mobilebert", {"embedding_size": 512}, "embedding_size = 512; allowed: less than hidden_size = 512"),
    ("mobilebert", {"intra_bottleneck_size": 126}, "intra_bottleneck_size = 126; allowed: a multiple of the 4 heads"),
    ("roc_bert", {"concat_input": False}, "concat_input = False; allowed: True"),
    ("xmod", {"default_language": "xx"}, "default_language = 'xx'; allowed: one of languages: en_XX"),
    ("nomic_bert", {"prenorm": True}, "prenorm = True; allowed: False"),
    ("deberta", {"talking_head": True}, "talking_head = True; allowed: False"),
    ("deberta", {"relative_attention": True}, "pos_att_type = []; allowed: c2p and p2c, or one of them"),
    ("deberta-v2", {"pos_att_type": "p2p"}, "pos_att_type = 'p2p'; allowed: c2p and p2c, or one of them, or none"),
    ("deberta-v2", {"conv_kernel_size": 3}, "conv_kernel_size = 3; allowed: 0"),
    ("deberta-v2", {"embedding_size": 128}, "embedding_size = 128; allowed: 1536, the width of the model"),
    ("esmc", {"num_key_value_heads": 8}, "num_key_value_heads = 8; allowed: 40"),
]  # fmt: skip


@pytest.mark.parametrize("family, config, message", REFUSED)
def test_configs_that_are_refused(family, config, message):
    with pytest.raises(InputError) as error:
        lmcalc.load({"model_type": family, **config})
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
