"""RWKV-5 against its formulas written out token by token, its published sizes, and a checkpoint under its names."""

import json

import numpy
import pytest
from safetensors.numpy import save_file
from variants import fields

import lmcalc
from lmcalc import reference
from lmcalc.compute import random_weights
from lmcalc.huggingface import load
from lmcalc.lenses.params import params

SIZES = {"model_type": "rwkv5", "head_size": 64, "vocab_size": 65_536}
HEADS, SIZE, WIDTH, EPS = 3, 11, 23, {"norm": 1e-5, "head": 0.1}


def weight(path, *sizes):
    return random_weights(path, "", sizes)


def normed(x, path, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight(f"{path}/weight", *x.shape[-1:]) + weight(
        f"{path}/bias", *x.shape[-1:]
    )


def mixed(x, before, path):
    share = weight(path, WIDTH)
    return x * share + before * (1 - share)


def time_mix(layer, x, state):
    """Peng et al. 2024: y_t = r_t (diag(u) k_t^T v_t + S_t), S_t+1 = diag(exp(-exp(w))) S_t + k_t^T v_t."""
    before, matrix = state.get("mixer", numpy.zeros(WIDTH)), state.get("matrix", numpy.zeros((HEADS, SIZE, SIZE)))
    r, k, v, gate = (
        numpy.einsum(
            "d,dnh->nh", mixed(x, before, f"{layer}/mix_{name}"), weight(f"{layer}/{name}", WIDTH, HEADS, SIZE)
        )
        for name in ("r", "k", "v", "gate")
    )
    out, after = numpy.zeros((HEADS, SIZE)), numpy.zeros_like(matrix)
    decay = numpy.exp(-numpy.exp(weight(f"{layer}/decay", HEADS, SIZE)))
    for head in range(HEADS):
        for i in range(SIZE):
            for j in range(SIZE):
                new = k[head, i] * v[head, j]
                out[head, j] += r[head, i] * (weight(f"{layer}/first", HEADS, SIZE)[head, i] * new + matrix[head, i, j])
                after[head, i, j] = decay[head, i] * matrix[head, i, j] + new
    out = out - out.mean(-1, keepdims=True)
    out = out / numpy.sqrt((out * out).mean(-1, keepdims=True) + EPS["head"])
    out = out * weight(f"{layer}/norm/weight", HEADS, SIZE) + weight(f"{layer}/norm/bias", HEADS, SIZE)
    state |= {"mixer": x, "matrix": after}
    return numpy.einsum("nh,nhd->d", out * gate / (1 + numpy.exp(-gate)), weight(f"{layer}/out", HEADS, SIZE, WIDTH))


def channel_mix(layer, x, state):
    before, state["ffn"] = state.get("ffn", numpy.zeros(WIDTH)), x
    k = mixed(x, before, f"{layer}/mix_k") @ weight(f"{layer}/k", WIDTH, 29)
    r = mixed(x, before, f"{layer}/mix_r") @ weight(f"{layer}/r", WIDTH, WIDTH)
    return 1 / (1 + numpy.exp(-r)) * (numpy.maximum(k, 0) ** 2 @ weight(f"{layer}/v", 29, WIDTH))


def by_hand(tokens):
    states, found = [{} for _ in range(3)], []
    for token in tokens:
        x = normed(weight("embedding/table", 37, WIDTH)[token], "embedding_norm", EPS["norm"])
        for number, state in enumerate(states):
            at = f"layers/{number}"
            x = x + time_mix(f"{at}/mixer", normed(x, f"{at}/mixer_norm", EPS["norm"]), state)
            x = x + channel_mix(f"{at}/ffn", normed(x, f"{at}/ffn_norm", EPS["norm"]), state)
        found.append(normed(x, "final_norm", EPS["norm"]) @ weight("head/weight", WIDTH, 37))
    return numpy.array(found)


def test_it_is_the_recurrence_of_the_paper():
    tokens, ref = [3, 1, 4, 1, 5, 9, 2], reference.of(lmcalc.build(fields("rwkv5")))
    expected = by_hand(tokens)
    largest = abs(expected).max()
    logits, cache = ref([tokens[:4]])
    pieces = [logits]
    for start, end in ((4, 5), (5, 7)):
        logits, cache = ref([tokens[start:end]], cache)
        pieces.append(logits)
    assert abs(numpy.concatenate(pieces, axis=1)[0] - expected).max() < 1e-12 * largest


@pytest.mark.parametrize("layers, width, printed", [(24, 1024, 0.46e9), (32, 2560, 3.1e9), (32, 4096, 7.5e9)])
def test_eagle_has_13_squares_of_its_width_a_layer(layers, width, printed):
    """13 D^2 L + 14 D L + 4 D + 2 D V, and the sizes that the abstract of Peng et al. 2024 prints."""
    config = SIZES | {"hidden_size": width, "num_hidden_layers": layers}
    total = sum(params(load(config)).values())
    assert total == 13 * width**2 * layers + 14 * width * layers + 4 * width + 2 * width * 65_536
    assert total == pytest.approx(printed, rel=0.02)


def test_the_state_does_not_grow():
    held = lmcalc.report("rwkv5-3b", context=9999).to_dict()["cache"]
    assert held == {"bytes": 0, "bytes_per_token": 0, "bytes_per_token_first": 0,
                    "state_bytes": 32 * (4 * 40 * 64 * 64 + 2 * 2 * 2560)}  # fmt: skip


def test_a_checkpoint_under_its_published_names(tmp_path):
    """What modeling_rwkv5.py holds, shapes and all, and the same logits as from weights by our paths."""
    config = {"model_type": "rwkv5", "hidden_size": 22, "head_size": 11, "num_hidden_layers": 2, "vocab_size": 37}
    model, tensors = load(config), {}

    def put(name, path, *sizes, shape=None):
        x = weight(path, *sizes).astype(numpy.float32)
        tensors[name] = numpy.ascontiguousarray(x.T.reshape(shape or x.T.shape) if len(sizes) < 3 else x)

    def norm(name, path, *sizes):
        for each in ("weight", "bias"):
            put(f"{name}.{each}", f"{path}/{each}", *sizes, shape=(22,))
            tensors[f"{name}.{each}"] = weight(f"{path}/{each}", *sizes).astype(numpy.float32).reshape(22)

    tensors["rwkv.embeddings.weight"] = weight("embedding/table", 37, 22).astype(numpy.float32)
    put("head.weight", "head/weight", 22, 37)
    norm("rwkv.ln_out", "final_norm", 22)
    norm("rwkv.blocks.0.pre_ln", "embedding_norm", 22)
    for number in range(2):
        at, here = f"rwkv.blocks.{number}.", f"layers/{number}/"
        norm(at + "ln1", here + "mixer_norm", 22)
        norm(at + "ln2", here + "ffn_norm", 22)
        norm(at + "attention.ln_x", here + "mixer/norm", 2, 11)
        for ours, theirs in (("k", "key"), ("v", "value"), ("r", "receptance"), ("gate", "gate")):
            put(f"{at}attention.time_mix_{theirs}", f"{here}mixer/mix_{ours}", 22, shape=(1, 1, 22))
            x = weight(f"{here}mixer/{ours}", 22, 2, 11).astype(numpy.float32)
            tensors[f"{at}attention.{theirs}.weight"] = numpy.ascontiguousarray(x.reshape(22, 22).T)
        tensors[at + "attention.time_faaaa"] = weight(here + "mixer/first", 2, 11).astype(numpy.float32)
        tensors[at + "attention.time_decay"] = weight(here + "mixer/decay", 2, 11).astype(numpy.float32)
        x = weight(here + "mixer/out", 2, 11, 22).astype(numpy.float32)
        tensors[at + "attention.output.weight"] = numpy.ascontiguousarray(x.reshape(22, 22).T)
        for ours, theirs in (("k", "key"), ("r", "receptance")):
            put(f"{at}feed_forward.time_mix_{theirs}", f"{here}ffn/mix_{ours}", 22, shape=(1, 1, 22))
        put(at + "feed_forward.key.weight", here + "ffn/k", 22, 64)
        put(at + "feed_forward.value.weight", here + "ffn/v", 64, 22)
        put(at + "feed_forward.receptance.weight", here + "ffn/r", 22, 22)
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    one = reference.open(tmp_path)([[1, 2, 3]])[0]
    other = reference.of(model)([[1, 2, 3]])[0]
    assert abs(one - other).max() < 1e-6 * abs(other).max()


REFUSED = [
    ({"head_size": 60}, "head_size = 60; allowed: a divisor of hidden_size = 2560"),
    ({"attention_hidden_size": 1280}, "attention_hidden_size = 1280; allowed: 2560"),
    ({"model_version": "5_1"}, "model_version = '5_1'; allowed: '5_2'"),
]


@pytest.mark.parametrize("changes, message", REFUSED)
def test_refused(changes, message):
    with pytest.raises(lmcalc.InputError) as error:
        load(SIZES | {"hidden_size": 2560, "num_hidden_layers": 2} | changes)
    assert message in str(error.value)
