"""The reference forward against logits that transformers recorded, and checkpoints used to the last tensor.

Reached, relative to the largest logit of a prefill and of every cached step: 1e-15 where the class computed in float64
throughout (EXACT), 1e-6 or better elsewhere, where it keeps rotary tables, norms or softmax in float32, but for those
in COARSER.
"""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import lmcalc
from lmcalc import reference
from lmcalc.huggingface import built, read, tensors
from lmcalc.huggingface.checkpoint import Checkpoint
from lmcalc.huggingface.families import FAMILIES
from lmcalc.huggingface.names import CONSTANTS, LEFT_OVER

RECORDED = Path(__file__).parent / "recorded" / "logits"
NAMES = sorted(folder.name for folder in RECORDED.iterdir() if read(folder / "config.json")["model_type"] in FAMILIES)
EXACT = {"bert", "biogpt", "falcon-rw", "gpt2", "gpt2-layer-scale", "openai-gpt"} | {
    "albert", "albert-groups", "bert-generation", "big_bird", "camembert", "data2vec-text", "distilbert", "electra",
    "electra-wide", "ernie", "ernie-tasks", "esm-learned", "megatron-bert", "mpnet", "rembert", "roberta",
    "roberta-prelayernorm", "tapas", "xlm-roberta", "xlm-roberta-xl", "mobilebert", "mobilebert-single", "roc_bert",
    "squeezebert", "squeezebert-whole", "xmod",
}  # fmt: skip
COARSER = {  # recordings that are less exact, and why
    "kimi_linear": 2e-6,  # a delta rule in float32
    "bailing_hybrid": 2e-6,
    "muse_glimmer_text": 2e-6,  # norms in float32
    "zamba2": 2e-6,  # norms of norms in float32
    "gemma4": 2e-6,
    "rwkv-rescale": 1e-4,  # halves activations for float16 every other layer, which the epsilon of norms notices
}


def tolerance(name):
    return 1e-14 if name in EXACT else COARSER.get(name, 1e-6)


def calls(expected):
    """[(keyword arguments, logits)] of a recording, in order."""
    first = {"input_ids": expected["input_ids"]}
    if "encoder_input_ids" in expected:
        first["encoder_input_ids"] = expected["encoder_input_ids"]
    found, at = [(first, expected["logits"])], 0
    for step, size in enumerate(expected.get("step_sizes", ())):
        found.append(({"input_ids": expected["next_ids"][:, at : at + size]}, expected[f"step_logits_{step}"]))
        at += size
    return found


def test_every_family_is_recorded():
    assert {read(RECORDED / name / "config.json")["model_type"] for name in NAMES} == set(FAMILIES)


@pytest.mark.parametrize("name", NAMES)
def test_logits(name):
    ref = reference.open(RECORDED / name)
    expected = calls(dict(np.load(RECORDED / name / "expected.npz")))
    largest, cache = max(abs(logits).max() for _, logits in expected), None
    for arguments, logits in expected:
        given, cache = ref(**arguments, cache=cache)
        assert given.shape == logits.shape and given.dtype == np.float64
        assert abs(given - logits).max() <= tolerance(name) * largest


def test_float32():
    expected = calls(dict(np.load(RECORDED / "gpt2" / "expected.npz")))[0]
    logits, cache = reference.open(RECORDED / "gpt2", dtype="float32")(**expected[0])
    assert logits.dtype == np.float32 and {each.dtype for each in cache.states.values()} == {np.dtype("float32")}
    assert abs(logits - expected[1]).max() < 1e-5 * abs(expected[1]).max()


# Every tensor of a checkpoint -------------------------------------------------------------------------------------


class File:
    """A checkpoint with other shapes."""

    def __init__(self, file, **changes):
        self.shapes, self.read = {**file.shapes, **changes}, file.read
        self.shapes = {name: shape for name, shape in self.shapes.items() if shape is not None}


@pytest.mark.parametrize("name", NAMES)
def test_each_tensor_is_used(name):
    """Dropping, transposing or adding a tensor is an error that names it."""
    file = Checkpoint(RECORDED / name)
    model = built(read(RECORDED / name / "config.json"), str(RECORDED / name), "lm_head.weight" in file.shapes)
    found = tensors.places(model, reference.weights(model), file.shapes)
    names = {name: wanted for wanted, name in tensors.matched(found, file, "file").items()}
    assert set(names) <= set(file.shapes)
    for tensor, shape in file.shapes.items():
        if tensor not in names and not any(re.fullmatch(pattern, tensor) for pattern in (*CONSTANTS, *LEFT_OVER)):
            assert tensors.idle(tensor, file.shapes), tensor
        if tensor not in names:
            continue
        with pytest.raises(lmcalc.InputError, match=rf"1 tensors.*\n  {re.escape(names[tensor])}: missing"):
            tensors.matched(found, File(file, **{tensor: None}), "file")
        if shape != shape[::-1]:
            with pytest.raises(lmcalc.InputError, match=rf"\n  {re.escape(tensor)}: shape \[.*needed"):
                tensors.matched(found, File(file, **{tensor: shape[::-1]}), "file")
    with pytest.raises(lmcalc.InputError, match=r"more\.weight: not used by the model"):
        tensors.matched(found, File(file, **{"more.weight": (3,)}), "file")


def checkpoint(folder, name, change=lambda weights: None, config=None):
    """A copy of a recorded checkpoint whose {name: array} was changed."""
    weights = load_file(RECORDED / name / "model.safetensors")
    change(weights)
    save_file({key: np.ascontiguousarray(value) for key, value in weights.items()}, folder / "model.safetensors")
    text = json.loads((RECORDED / name / "config.json").read_text()) | (config or {})
    (folder / "config.json").write_text(json.dumps(text))
    return folder


def same(folder, name):
    """Whether a checkpoint answers as the recorded one does."""
    arguments, _ = calls(dict(np.load(RECORDED / name / "expected.npz")))[0]
    one, other = (reference.open(each)(**arguments)[0] for each in (folder, RECORDED / name))
    return (one == other).all()


def test_all_problems_are_named(tmp_path):
    def change(weights):
        del weights["model.layers.1.mlp.up_proj.weight"]
        weights["model.layers.0.mlp.down_proj.weight"] = weights["model.layers.0.mlp.down_proj.weight"].T
        weights["model.layers.2.mlp.up_proj.weight"] = np.zeros((28, 24), np.float32)
        weights["model.layers.0.self_attn.q_proj.bias"] = np.zeros(32, np.float32)

    with pytest.raises(lmcalc.InputError) as error:
        reference.open(checkpoint(tmp_path, "llama", change))
    assert str(error.value).split("\n")[1:] == [
        "  model.layers.0.mlp.down_proj.weight: shape [28, 24]; needed: [24, 28]",
        "  model.layers.1.mlp.up_proj.weight: missing; needed: shape [28, 24]",
        "  model.layers.0.self_attn.q_proj.bias: not used by the model",
        "  model.layers.2.mlp.up_proj.weight: not used by the model",
    ]


RENAMED = {
    "gpt2": (r"^transformer\.", ""),
    "openai-gpt": (r"^transformer\.", ""),
    "bloom": (r"^transformer\.", ""),
    "opt": (r"^model\.", ""),
    "bart": (r"^model\.", ""),
    "gpt_neox": (r"^gpt_neox\.", ""),
    "bert": (r"^bert\.", ""),
    **{name: (rf"^{name.replace('-', '_')}\.", "") for name in (
        "roberta", "distilbert", "electra", "mpnet", "ernie", "data2vec-text", "roberta-prelayernorm", "rembert",
        "roformer", "nomic_bert", "gte", "esm", "esmc", "tapas", "deberta", "mobilebert", "roc_bert")},
    "albert": (r"^albert\.", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", RENAMED)
def test_names_without_prefix(name, tmp_path):
    def change(weights):
        for key in list(weights):
            weights[re.sub(*RENAMED[name], key)] = weights.pop(key)

    assert same(checkpoint(tmp_path, name, change), name)


def test_gamma_and_beta(tmp_path):
    def change(weights):
        for key in list(weights):
            new = key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            weights[new] = weights.pop(key)

    assert same(checkpoint(tmp_path, "bert", change), "bert")


LEFT_OVERS = {
    "gpt2": ["h.0.attn.bias", "transformer.h.1.attn.masked_bias"],
    "gpt_neox": ["gpt_neox.layers.0.attention.rotary_emb.inv_freq", "gpt_neox.layers.1.attention.bias"],
    "llama": ["model.layers.0.self_attn.rotary_emb.inv_freq"],
    "bert": ["bert.embeddings.position_ids", "bert.pooler.dense.weight", "cls.seq_relationship.bias"],
    "t5": ["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"],
    "bart": ["model.encoder.version", "model.decoder.version"],
    "marian": ["model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"],
    "m2m_100": ["model.encoder.embed_positions.weights", "model.decoder.embed_positions._float_tensor"],
    "albert": ["albert.pooler.weight", "sop_classifier.classifier.bias", "albert.embeddings.position_ids"],
    "electra": ["discriminator_predictions.dense.weight", "discriminator_predictions.dense_prediction.bias"],
    "big_bird": ["bert.pooler.weight"],
    "esm": ["esm.encoder.layer.1.attention.self.rotary_embeddings.inv_freq", "esm.contact_head.regression.weight"],
}


@pytest.mark.parametrize("name", LEFT_OVERS)
def test_left_overs(name, tmp_path):
    change = dict.fromkeys(LEFT_OVERS[name], np.ones((2, 2), np.float32))
    assert same(checkpoint(tmp_path, name, lambda weights: weights.update(change)), name)


COPIES = {
    "gpt2": ("lm_head.weight", "transformer.wte.weight"),
    "llama-tied": ("lm_head.weight", "model.embed_tokens.weight"),
    "t5": ("decoder.embed_tokens.weight", "shared.weight"),
    "bart": ("model.encoder.embed_tokens.weight", "model.shared.weight"),
    "fsmt-tied": ("model.decoder.output_projection.weight", "model.decoder.embed_tokens.weight"),
    "t5gemma": ("lm_head.out_proj.weight", "model.decoder.embed_tokens.weight"),
    "bert": ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    "roberta": ("lm_head.decoder.bias", "lm_head.bias"),
    "esm": ("lm_head.decoder.weight", "esm.embeddings.word_embeddings.weight"),
    "albert": ("predictions.decoder.weight", "albert.embeddings.word_embeddings.weight"),
    "electra": ("generator_lm_head.weight", "electra.embeddings.word_embeddings.weight"),
    "distilbert": ("vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"),
    "modernbert": ("decoder.weight", "model.embeddings.tok_embeddings.weight"),
    "xlm": ("pred_layer.proj.weight", "transformer.embeddings.weight"),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_tied_tensors(name, tmp_path):
    copy, original = COPIES[name]

    def change(weights):
        weights[copy] = weights[original]

    assert same(checkpoint(tmp_path, name, change), name)

    def differ(weights):
        weights[copy] = weights[original] + 1

    with pytest.raises(lmcalc.InputError, match=rf"{re.escape(copy)}: differs from {re.escape(original)}"):
        reference.open(checkpoint(tmp_path, name, differ))


def test_t5_head_is_decided_by_the_file(tmp_path):
    """transformers 5 writes version 1.1 without its head, under a config that has one."""
    folder = checkpoint(tmp_path, "t5-v1.1", lambda weights: weights.pop("lm_head.weight"))
    fields = reference.open(folder).model.fields
    assert fields["tied"] and "head_scale" not in fields


def test_constants(tmp_path):
    def change(weights):
        weights["model.layers.1.mlp.act_fn.beta"] = np.array(0.7, np.float32)

    with pytest.raises(lmcalc.InputError, match=r"act_fn\.beta = .*0\.5"):
        reference.open(checkpoint(tmp_path, "apertus", change))


# Forms that transformers holds at run time ---------------------------------------------------------------------------

RUN_TIME = {  # recording: (what is renamed, in order)
    "mixtral": [(r"\.block_sparse_moe\.", ".mlp.")],
    "phimoe": [(r"\.block_sparse_moe\.gate\.", ".mlp.router."), (r"\.block_sparse_moe\.", ".mlp.")],
    "minimax_m2": [(r"\.block_sparse_moe\.", ".mlp.")],
    "deepseek_v3": [],
    "ernie4_5_moe": [(r"\.moe_statics\.", ".gate.moe_statics.")],
    "qwen3_next": [],
    "jamba": [],
    "lfm2_moe": [],
    "kimi_linear": [(r"\.block_sparse_moe\.", ".mlp.")],
    "nemotron_h": [(r"^backbone\.", "model.")],
    "mimo_v2_flash": [(r"attention_sink_bias", "sinks")],
    "granitemoe": [
        (r"\.input_linear\.weight", ".experts.gate_up_proj"),
        (r"\.output_linear\.weight", ".experts.down_proj"),
        (r"\.router\.layer\.", ".router."),
    ],
}
PARTS = {"gate_proj": 0, "w1": 0, "up_proj": 1, "w3": 1, "down_proj": 2, "w2": 2}


def fused(weights):
    """Experts of one layer as two tensors, the way transformers holds them at run time."""
    apart = {}
    for key in [key for key in weights if re.search(r"\.experts\.\d+\.", key) and "shared" not in key]:
        stem, number, name = re.fullmatch(r"(.*\.experts)\.(\d+)\.(\w+)\.weight", key).groups()
        apart.setdefault(stem, {})[PARTS[name], int(number)] = weights.pop(key)
    for stem, found in apart.items():
        gate, up, down = ([found[part, at] for at in range(99) if (part, at) in found] for part in range(3))
        up = [np.concatenate(pair) for pair in zip(gate, up)] if gate else up
        weights[f"{stem}.{'gate_' if gate else ''}up_proj"] = np.stack(up)
        weights[f"{stem}.down_proj"] = np.stack(down)


@pytest.mark.parametrize("name", RUN_TIME)
def test_names_at_run_time(name, tmp_path):
    def change(weights):
        fused(weights)
        for key in list(weights):
            new = key
            for rule in RUN_TIME[name]:
                new = re.sub(*rule, new)
            weights[new] = weights.pop(key)

    assert same(checkpoint(tmp_path, name, change), name)


def test_prediction_modules_are_left_over(tmp_path):
    """Published files hold them behind the last layer."""

    def change(weights):
        weights["model.layers.2.eh_proj.weight"] = np.zeros((24, 48), np.float32)

    assert same(checkpoint(tmp_path, "deepseek_v3", change), "deepseek_v3")
    with pytest.raises(lmcalc.InputError, match=r"layers\.2\.eh_proj\.weight: not used"):
        reference.open(checkpoint(tmp_path, "mixtral", change))


# Files --------------------------------------------------------------------------------------------------------------


def write_raw(path, dtype, arrays):
    """A safetensors file of any type: {name: array of its bytes' unsigned integers}."""
    header, data = {}, b""
    for name, array in arrays.items():
        start, data = len(data), data + array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_bfloat16(tmp_path):
    def rounded(weights):
        for key, value in weights.items():
            weights[key] = (value.view(np.uint32) & 0xFFFF0000).view(np.float32)

    (tmp_path / "float32").mkdir(), (tmp_path / "bfloat16").mkdir()
    one = checkpoint(tmp_path / "float32", "llama", rounded)
    weights = load_file(one / "model.safetensors")
    shutil.copy(one / "config.json", tmp_path / "bfloat16")
    upper = {key: (value.view(np.uint32) >> 16).astype("<u2") for key, value in weights.items()}
    write_raw(tmp_path / "bfloat16" / "model.safetensors", "BF16", upper)
    ids = [[5, 6, 7]]
    assert (reference.open(one)(ids)[0] == reference.open(tmp_path / "bfloat16")(ids)[0]).all()
    eighths = {key: np.zeros(value.shape, np.uint8) for key, value in weights.items()}
    write_raw(tmp_path / "bfloat16" / "model.safetensors", "F8_E4M3", eighths)
    with pytest.raises(lmcalc.InputError, match="of type F8_E4M3; allowed: F64, F32, F16, BF16"):
        reference.open(tmp_path / "bfloat16")(ids)


def sharded(folder, index=None):
    """The recorded llama in two files with an index."""
    weights = load_file(RECORDED / "llama" / "model.safetensors")
    names = {key: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, key in enumerate(sorted(weights))}
    for file in set(names.values()):
        save_file({key: weights[key] for key in weights if names[key] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names} if index is None else index))
    shutil.copy(RECORDED / "llama" / "config.json", folder)
    return folder


def test_sharded(tmp_path):
    assert same(sharded(tmp_path), "llama")


def test_bad_folders(tmp_path):
    refused = {
        "no such folder": lambda: tmp_path / "nothing",
        "config.json: cannot be read": lambda: tmp_path,
        "weight_map = 3": lambda: sharded(tmp_path, {"weight_map": 3}),
        "no such file": lambda: sharded(tmp_path, {"weight_map": {"a": "../config.json"}}),
    }
    for message, make in refused.items():
        with pytest.raises(lmcalc.InputError, match=message):
            reference.open(make())
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(lmcalc.InputError, match=r"allowed: one \.safetensors file"):
        reference.open(tmp_path)
    for file in tmp_path.glob("*.safetensors"):
        file.unlink()
    with pytest.raises(lmcalc.InputError, match=r"no model\.safetensors and no model\.safetensors\.index\.json"):
        reference.open(tmp_path)
    (tmp_path / "model.safetensors").write_bytes((RECORDED / "llama" / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(lmcalc.InputError, match="cannot be read as safetensors"):
        reference.open(tmp_path)


# Calls ----------------------------------------------------------------------------------------------------------------


def test_bad_calls():
    gpt2, bert, t5, llama = (reference.open(RECORDED / name) for name in ("gpt2", "bert", "t5", "llama"))
    _, cache = gpt2([[1] * 30])
    refused = {
        "holds 53; allowed: token ids from 0 to 52": lambda: gpt2([[1, 53]]),
        "holds -1; allowed": lambda: gpt2([[-1]]),
        r"has shape \(2,\)": lambda: gpt2([1, 2]),
        "type float64": lambda: gpt2([[1.5]]),
        r"shape \(1, 0\)": lambda: gpt2([[]]),
        "33 tokens are beyond the 32 positions": lambda: gpt2([[1, 2, 3]], cache),
        "34 tokens are beyond the 32 positions": lambda: reference.open(RECORDED / "opt")([[1] * 34]),
        "the cache 1; allowed: the same": lambda: gpt2([[1], [2]], cache),
        "cache is dict": lambda: gpt2([[1]], {}),
        "no encoder": lambda: llama([[1]], encoder_input_ids=[[1]]),
        "has an encoder": lambda: t5([[1]]),
        "encoder_input_ids 2; allowed": lambda: t5([[1]], encoder_input_ids=[[1], [2]]),
        "cache is Cache; allowed: what an earlier call of this reference returned": lambda: bert([[1]], cache),
        "dtype = 'int8'": lambda: reference.open(RECORDED / "gpt2", dtype="int8"),
    }
    for message, call in refused.items():
        with pytest.raises(lmcalc.InputError, match=message):
            call()
    assert gpt2([[1, 2]], cache)[1].past == 32
    assert bert([[1, 2]])[1] is None


def test_any_model():
    """A reference of a model without a checkpoint: random weights by path, or given ones."""
    model = lmcalc.load(RECORDED / "gemma3-window")
    ids = np.arange(12).reshape(1, 12) + 3
    whole, _ = reference.of(model)(ids)
    ref, cache, parts = reference.of(model), None, []
    for start, stop in ((0, 5), (5, 6), (6, 12)):
        logits, cache = ref(ids[:, start:stop], cache)
        parts.append(logits)
    assert abs(np.concatenate(parts, 1) - whole).max() < 1e-12 * abs(whole).max()
    with pytest.raises(lmcalc.InputError, match="the weight embedding/table is missing"):
        reference.of(model, {})(ids)
