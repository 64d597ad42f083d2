"""Layers that mix tokens without softmax attention, each against a loop over tokens: its paper's equations."""

import numpy
import pytest
from soundness import assert_sound, built, bytes_of, weight
from variants import MIXERS, fields

import lmcalc
from lmcalc.components import MIXERS as KINDS
from lmcalc.components import load
from lmcalc.components.base import Bound
from lmcalc.compute import Data, random_weights
from lmcalc.fields import FIELDS
from lmcalc.lenses.flops import flops
from lmcalc.model import Fields, build, trace
from lmcalc.ops import Ops
from lmcalc.trace import Array

B, T, D = 2, 7, 23
X = numpy.random.default_rng(5).standard_normal((B, T, D))


def small(name):
    """The fields of a variant, as its components read them."""
    return Fields(fields(name), name)


def made(kind, x=X, states=None, past=0, phase="prefill"):
    """(what a mixer makes of x, the states that it leaves)."""
    data = Data(random_weights, None, states)
    ops = Ops(*x.shape[:2], past, data=data, phase=phase)
    ops._layer = 2  # the second of its stack
    out = Bound(ops, kind, "", "it")(Array("BTD", x.shape, "activation", "activations", data=x))
    return out.data, data.kept


def mixer(name):
    return load(KINDS[fields(name)["mixer"]])(small(name))


def w(kind, name):
    """The random weight of a mixer's name."""
    sizes = kind.axes()
    return weight(f"it/{name}", *[sizes[axis] for axis in kind.weights()[name] if axis not in "->|"])


def in_turn(kind, x, step):
    """step(token, state) -> (output, state) over the tokens of each sequence."""
    out = numpy.zeros_like(x)
    for b in range(len(x)):
        state = None
        for t in range(x.shape[1]):
            out[b, t], state = step(x[b, t], state)
    return out


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return numpy.log(1 + numpy.exp(x))


def rms(x, gain, eps=1e-5):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain


def unit(x):
    return x / numpy.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def window(past, x, kernel):
    """(the last columns with x behind them, what the convolution makes of them)."""
    past = numpy.zeros((len(kernel) - 1, *x.shape)) if past is None else past
    columns = numpy.concatenate((past, x[None]))
    return columns[1:], (columns * kernel).sum(0)


# Values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mamba", "mamba of two heads", "mamba, norms", "mamba, norms without weights"])
def test_mamba(name):
    kind = mixer(name)
    p = {each: w(kind, each) for each in kind.weights()}
    norms = {each: weight(f"it/{each}/weight", size) for each, size in (("dt_norm", 5), ("b_norm", 9), ("c_norm", 9))}
    if name == "mamba, norms without weights":
        norms = dict.fromkeys(norms, 1.0)
    eps = 0.1 if name == "mamba, norms" else 1e-5

    def step(x, state):
        columns, h = state or (None, numpy.zeros((*p["x"].shape[1:], 9)))
        gate, x = numpy.tensordot(x, p["gate"], 1), numpy.tensordot(x, p["x"], 1)
        columns, x = window(columns, x, p["conv"])
        x = silu(x + p["conv_bias"])
        out = numpy.zeros_like(x)
        h = h.copy()
        for n in range(len(x)):
            dt, b, c = x[n] @ p["dt_down"][n], x[n] @ p["b"][n], x[n] @ p["c"][n]
            if "norms" in name:
                dt, b, c = (rms(v, norms[k], eps) for k, v in (("dt_norm", dt), ("b_norm", b), ("c_norm", c)))
            dt = softplus(dt @ p["dt_up"][n] + p["dt_bias"][n])
            for i in range(len(dt)):
                h[n, i] = numpy.exp(-dt[i] * numpy.exp(p["a_log"][n, i])) * h[n, i] + dt[i] * x[n, i] * b
                out[n, i] = h[n, i] @ c + p["skip"][n, i] * x[n, i]
        return numpy.tensordot(out * silu(gate), p["out"], 2), (columns, h)

    numpy.testing.assert_allclose(made(kind)[0], in_turn(kind, X, step), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("limit", [None, [0.5, 1.1]])
@pytest.mark.parametrize("name", ["mamba2", "mamba2 with biases", "mamba2 without norm"])
def test_mamba2(name, limit):
    kind = load(("mamba2", "mamba2"))(Fields({**fields(name), "time_step_limit": limit}, name))
    p = {each: w(kind, each) for each in kind.weights()}
    K, R, H, N = kind.groups, kind.group, kind.head_dim, 9

    def step(x, state):
        columns, h = state or ((None, None, None), numpy.zeros((K, R, H, N)))
        given = {each: numpy.tensordot(x, p[each], 1) for each in ("gate", "x", "b", "c", "dt")}
        if kind.bias == "all":
            for each in given:
                given[each] = given[each] + p["in_dt_bias" if each == "dt" else f"{each}_bias"]
        convolved, new = [], []
        for each, past in zip("xbc", columns):
            past, value = window(past, given[each], p[f"conv_{each}"])
            new.append(past)
            convolved.append(silu(value + p[f"conv_{each}_bias"] if kind.conv_bias else value))
        x, b, c = convolved
        dt = softplus(given["dt"] + p["dt_bias"])
        dt = dt if limit is None else numpy.clip(dt, *limit)
        h, y = h.copy(), numpy.zeros((K, R, H))
        for k in range(K):
            for r in range(R):
                decay = numpy.exp(-dt[k, r] * numpy.exp(p["a_log"][k, r]))
                h[k, r] = decay * h[k, r] + dt[k, r] * numpy.outer(x[k, r], b[k])
                y[k, r] = h[k, r] @ c[k] + p["skip"][k, r] * x[k, r]
        gate = silu(given["gate"])
        gain = None if kind.norm is None else weight("it/norm/weight", K, R, H)
        for k in range(K):
            if kind.norm is None:
                y[k] = y[k] * gate[k]
            elif kind.gate_last:
                y[k] = rms(y[k].ravel(), gain[k].ravel()).reshape(R, H) * gate[k]
            else:
                y[k] = rms((y[k] * gate[k]).ravel(), gain[k].ravel()).reshape(R, H)
        out = numpy.tensordot(y, p["out"], 3)
        return out + p["out_bias"] if kind.bias == "all" else out, (new, h)

    numpy.testing.assert_allclose(made(kind)[0], in_turn(kind, X, step), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["gated_delta", "gated_delta, negative eigenvalues", "kimi_delta", "kimi_delta, bounded decays"]
)
def test_delta_rules(name):
    kind = mixer(name)
    p = {each: w(kind, each) for each in kind.weights()}
    K, R, H, U = kind.groups, kind.group, kind.head_dim, kind.value_dim
    per_channel, bounded = name.startswith("kimi_delta"), name.endswith("bounded decays")

    def step(x, state):
        columns, h = state or ((None, None, None), numpy.zeros((K, R, H, U)))
        new, convolved = [], []
        for each, past in zip("qkv", columns):
            past, value = window(past, numpy.tensordot(x, p[each], 1), p[f"conv_{each}"])
            new.append(past)
            convolved.append(silu(value))
        q, k, v = unit(convolved[0]) / numpy.sqrt(H), unit(convolved[1]), convolved[2]
        beta = sigmoid(numpy.tensordot(x, p["beta"], 1)) * (kind.beta_scale or 1)
        if bounded:
            decay, gate = numpy.tensordot(x, p["decay"], 1), sigmoid(numpy.tensordot(x, p["gate"], 1))
        elif per_channel:
            decay, gate = ((x @ p[f"{each}_down"]) for each in ("decay", "gate"))
            decay, gate = numpy.tensordot(decay, p["decay_up"], 1), sigmoid(numpy.tensordot(gate, p["gate_up"], 1))
        else:
            decay, gate = numpy.tensordot(x, p["decay"], 1), silu(numpy.tensordot(x, p["gate"], 1))
        decay = decay + p["dt_bias"]
        h, y = h.copy(), numpy.zeros((K, R, U))
        for a in range(K):
            for b in range(R):
                rate = numpy.exp(p["a_log"][a, b])
                g = numpy.exp(-2 * sigmoid(rate * decay[a, b]) if bounded else -rate * softplus(decay[a, b]))
                h[a, b] = (g[:, None] if per_channel else g) * h[a, b]
                h[a, b] += numpy.outer(k[a], beta[a, b] * (v[a, b] - k[a] @ h[a, b]))
                y[a, b] = q[a] @ h[a, b]
        y = rms(y, weight("it/norm/weight", U)) * gate
        return numpy.tensordot(y, p["out"], 3), (new, h)

    numpy.testing.assert_allclose(made(kind)[0], in_turn(kind, X, step), rtol=1e-9, atol=1e-12)


def test_lightning():
    kind = mixer("lightning")
    p = {each: w(kind, each) for each in kind.weights()}
    n_layers = fields("lightning")["n_layers"]
    slopes = [2 ** (-8 * (n + 1) / 3) * (1 - 1 / (n_layers - 1 + 1e-5) + 1e-5) for n in range(3)]  # of layer 1

    def step(x, h):
        h = numpy.zeros((3, 11, 11)) if h is None else h
        q, k, v = (silu(numpy.tensordot(x, p[each], 1)) for each in "qkv")
        h = numpy.stack([numpy.exp(-slopes[n]) * h[n] + numpy.outer(k[n], v[n]) for n in range(3)])
        y = numpy.stack([q[n] @ h[n] for n in range(3)])
        y = rms(y.ravel(), weight("it/norm/weight", 3, 11).ravel()).reshape(3, 11)
        return numpy.tensordot(y * sigmoid(numpy.tensordot(x, p["gate"], 1)), p["out"], 2), h

    numpy.testing.assert_allclose(made(kind)[0], in_turn(kind, X, step), rtol=1e-9, atol=1e-12)


def test_rg_lru():
    kind = mixer("rg_lru")
    p = {each: w(kind, each) for each in kind.weights()}

    def step(x, state):
        columns, h = state or (None, None)
        gate = numpy.tensordot(x, p["gate"], 1) + p["gate_bias"]
        gate = gate / 2 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (gate + 0.044715 * gate**3)))
        columns, x = window(columns, numpy.tensordot(x, p["x"], 1) + p["x_bias"], p["conv"])
        x = x + p["conv_bias"]
        chosen, kept = (
            sigmoid(numpy.stack([x[n] @ p[f"{each}_gate"][n] for n in range(3)]) + p[f"{each}_gate_bias"])
            for each in ("input", "decay")
        )
        a = numpy.exp(-8 * softplus(p["param"]) * kept)
        h = x * chosen if h is None else a * h + numpy.sqrt(1 - a**2) * x * chosen
        return numpy.tensordot(h * gate, p["out"], 2) + p["out_bias"], (columns, h)

    numpy.testing.assert_allclose(made(kind)[0], in_turn(kind, X, step), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["short_conv", "short_conv with biases"])
def test_short_conv(name):
    kind = mixer(name)
    p = {each: w(kind, each) for each in kind.weights()}
    bias = {each: p.get(f"{each}_bias", 0) for each in ("b", "c", "x", "conv", "out")}

    def step(x, past):
        b, c, x = (numpy.tensordot(x, p[each], 1) + bias[each] for each in "bcx")
        past, y = window(past, b * x, p["conv"])
        return (c * (y + bias["conv"])) @ p["out"] + bias["out"], past

    numpy.testing.assert_allclose(made(kind)[0], in_turn(kind, X, step), rtol=1e-9, atol=1e-12)


def test_rwkv_time_mix():
    """As the paper's eq. 16 writes it, sums over all tokens before."""
    kind = mixer("rwkv")
    p = {each: w(kind, each) for each in kind.weights()}
    before = numpy.concatenate((numpy.zeros((B, 1, D)), X[:, :-1]), axis=1)
    k, v, r = (
        (X * p[f"mix_{each}"] + before * (1 - p[f"mix_{each}"])) @ p[each] for each in "kvr"
    )  # fmt: skip
    wkv = numpy.zeros_like(k)
    for t in range(T):
        above, below = numpy.exp(p["first"] + k[:, t]) * v[:, t], numpy.exp(p["first"] + k[:, t])
        for i in range(t):
            share = numpy.exp(k[:, i] - (t - 1 - i) * numpy.exp(p["decay"]))
            above, below = above + share * v[:, i], below + share
        wkv[:, t] = above / below
    numpy.testing.assert_allclose(made(kind)[0], (sigmoid(r) * wkv) @ p["out"], rtol=1e-9, atol=1e-12)


def test_rwkv_channel_mix():
    kind = load(("rwkv", "channel_mix"))(small("rwkv"))
    p = {each: w(kind, each) for each in kind.weights()}
    before = numpy.concatenate((numpy.zeros((B, 1, D)), X[:, :-1]), axis=1)
    k, r = ((X * p[f"mix_{each}"] + before * (1 - p[f"mix_{each}"])) @ p[each] for each in "kr")
    numpy.testing.assert_allclose(
        made(kind)[0], sigmoid(r) * (numpy.maximum(k, 0) ** 2 @ p["v"]), rtol=1e-9, atol=1e-12
    )


def test_attention_and_mamba2_are_summed():
    kind = mixer("mamba2 beside attention")
    x, tables = Array("BTD", X.shape, "activation", "activations", data=X), {}
    for part, scale in (("attention", 1.3), ("mamba2", 1.0)):
        bound = Bound(Ops(B, T, data=Data(random_weights, None)), kind, "", "it")
        scaled = Array("BTD", X.shape, "activation", "activations", data=X * scale)
        tables[part] = getattr(bound, part)(scaled).data
    numpy.testing.assert_allclose(made(kind)[0], 1.4 * tables["attention"] + 1.2 * tables["mamba2"], rtol=1e-12)
    assert x.sizes == (B, T, D)


# Chunks, tokens and pieces -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in MIXERS if name != "hybrid"])
def test_token_by_token_is_chunk_by_chunk(name):
    kind = mixer(name)
    whole, left = made(kind)
    steps, left_by_steps = made(kind, phase="decode")
    numpy.testing.assert_allclose(steps, whole, rtol=1e-9, atol=1e-12)
    assert set(left) == set(left_by_steps)
    for path, state in left.items():
        numpy.testing.assert_allclose(left_by_steps[path], state, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in MIXERS if name != "hybrid"])
@pytest.mark.parametrize("cut", [1, 2, 4, 6])  # within a chunk of 4, at its end, in the next
def test_pieces_are_the_whole(name, cut):
    kind = mixer(name)
    whole, left = made(kind)
    first, states = made(kind, X[:, :cut])
    second, last = made(kind, X[:, cut:], states, cut)
    numpy.testing.assert_allclose(numpy.concatenate((first, second), axis=1), whole, rtol=1e-9, atol=1e-12)
    for path, state in left.items():
        numpy.testing.assert_allclose(last[path], state, rtol=1e-9, atol=1e-12)


def test_strong_decays_stay_finite():
    """Kimi's pairs are a product of two factors, one of which grows: decays of exp(-16) a token, 64 a chunk."""
    kind = load(("gated_delta", "kimi_delta"))(Fields({**fields("kimi_delta"), "chunk_size": 64}, "strong"))
    random = numpy.random.default_rng(0)

    def weights(path, axes, sizes):
        return numpy.full(sizes, numpy.log(16.0)) if path.endswith("a_log") else random_weights(path, axes, sizes)

    x, found = random.standard_normal((1, 64, D)), []
    for phase in ("prefill", "decode"):
        ops = Ops(1, 64, data=Data(weights, None), phase=phase)
        found.append(Bound(ops, kind, "", "it")(Array("BTD", x.shape, "activation", "activations", data=x)).data)
    numpy.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


# Costs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MIXERS)
def test_every_mixer_is_sound(name):
    assert_sound(**MIXERS[name])


def test_every_word_has_a_row():
    assert set(FIELDS["mixer"][0]) == {*KINDS, "none"}
    assert {each.get("mixer", "attention") for each in MIXERS.values()} >= set(KINDS) - {"attention"}


@pytest.mark.parametrize("name", ["mamba2", "gated_delta", "kimi_delta", "lightning"])
def test_the_form_of_a_pass_is_said_and_not_seen_from_its_size(name):
    model = build(fields(name))
    chunked, stepped = (flops(trace(model, 2, 1, 9, phase=phase))[1] for phase in ("prefill", "decode"))
    assert chunked["mixer_core"] > stepped["mixer_core"]
    assert {k: v for k, v in chunked.items() if k != "mixer_core"} == {
        k: v for k, v in stepped.items() if k != "mixer_core"
    }
    assert flops(trace(model, 2, 1, 9))[1] == chunked
    answer = lmcalc.report(model, prompt=9, past=0, context=9, batch=2).to_dict()
    assert answer["decode"]["flops"]["contraction_by_part"]["mixer_core"] == stepped["mixer_core"]
    longer = flops(trace(model, 2, 9, 0))[1]  # three chunks of 4
    assert answer["prefill"]["flops"]["contraction_by_part"]["mixer_core"] == longer["mixer_core"]
    assert longer["mixer_core"] == 3 * chunked["mixer_core"]


def core(name, **run):
    return flops(trace(build({**fields(name), "n_layers": 1}), 2, **run))[1]["mixer_core"]


def test_core_flops_by_hand():
    N, R, H, U, S, Q = 6, 3, 11, 13, 9, 4  # heads, of a group, sizes of head, value and state, chunk
    assert core("mamba", new=5) == 2 * 5 * 2 * 22 * (S + 5)  # C h, and dt through 5 numbers
    chunk = 2 * (Q * Q * N * S + Q * Q * N * H + 2 * Q * N * H * S)  # pairs, inside, before and added
    assert core("mamba2", new=5) == 2 * 2 * chunk
    assert core("mamba2", new=1, past=9, phase="decode") == 2 * 2 * N * H * S
    chunk = 2 * (2 * Q * Q * N * H + Q * Q * N * U + 3 * Q * N * H * U)  # system, inside; mixed; held, before, added
    assert core("gated_delta", new=5) == 2 * 2 * chunk
    assert core("gated_delta", new=1, past=9, phase="decode") == 2 * 2 * 2 * N * H * U  # held and read
    chunk = 2 * (4 * Q * Q * N * H + 3 * Q * N * H * H - Q * Q * N * H)
    assert core("kimi_delta", new=5) == 2 * 2 * chunk
    chunk = 2 * (2 * Q * Q * 3 * H + 2 * Q * 3 * H * H)
    assert core("lightning", new=5) == 2 * 2 * chunk
    assert core("rg_lru", new=5) == 2 * 2 * 5 * 2 * 3 * H * H  # two gates
    assert R * 2 == N


def test_a_convolution_costs_its_taps_and_no_padding():
    found = flops(trace(build(fields("short_conv")), 2, 5))[1]
    assert found["mixer_conv"] == 3 * 2 * 2 * 5 * 3 * 23 and found["mixer_proj"] == 3 * 2 * 2 * 5 * 4 * 23 * 23
    assert "mixer_core" not in found


# State -----------------------------------------------------------------------------------------------------------

MIB = 2**20
MAMBA_2_8B = {"n_layers": 64, "d_model": 2560, "vocab_size": 50280, "mixer": "mamba", "ffn": "none", "d_inner": 5120,
              "state_dim": 16, "dt_rank": 160, "tied": True, "positions": "none"}  # fmt: skip
QWEN = {"n_layers": 64, "d_model": 5120, "vocab_size": 248320, "d_ff": 17408, "n_heads": 24, "n_kv_heads": 4,
        "head_dim": 256, "n_mixer_heads": 48, "n_mixer_groups": 16, "mixer_head_dim": 128,
        "layers": ["3*delta", "full"], "kinds": {"delta": {"mixer": "gated_delta"}, "full": {}}}  # fmt: skip


def held(fields, context, **options):
    return lmcalc.report(build(fields), prompt=1, context=context, **options).to_dict()["cache"]


@pytest.mark.parametrize("context", [0, 1, 2048, 10**6])
def test_mamba_2_8b_keeps_23_75_mib_a_sequence(context):
    found = held(MAMBA_2_8B, context, state="fp32")
    assert found["state_bytes"] == 23.75 * MIB and found["bytes"] == found["bytes_per_token"] == 0
    assert held(MAMBA_2_8B, context, state="fp32", batch=512)["state_bytes"] == 11.875 * 1024 * MIB
    assert held(MAMBA_2_8B, context)["state_bytes"] == 64 * 5120 * (
        3 * 2 + 16 * 4
    )  # columns as the cache, state in fp32


def test_a_hybrid_of_gated_delta_keeps_598_5_mib_and_a_quarter_of_the_cache():
    found = held(QWEN, 262144, batch=4, state="fp32")
    assert found["state_bytes"] == 598.5 * MIB
    assert held(QWEN, 262144)["bytes"] == 16384 * MIB
    full = {
        **QWEN,
        "layers": None,
        "kinds": None,
        **dict.fromkeys(("n_mixer_heads", "n_mixer_groups", "mixer_head_dim")),
    }
    assert held({k: v for k, v in full.items() if v is not None}, 262144)["bytes"] == 65536 * MIB


def test_lfm2_keeps_a_cache_in_six_layers_of_sixteen():
    kinds = ["full" if at in (2, 5, 8, 10, 12, 14) else "conv" for at in range(16)]
    lfm2 = {"n_layers": 16, "d_model": 2048, "vocab_size": 65536, "d_ff": 8192, "n_heads": 32, "n_kv_heads": 8,
            "layers": kinds, "kinds": {"full": {}, "conv": {"mixer": "short_conv"}}}  # fmt: skip
    found = held(lfm2, 32768, cache="fp16")
    assert found["bytes"] == 384 * MIB and found["state_bytes"] == 10 * 2 * 2048 * 2


def test_jamba_keeps_a_cache_in_four_layers_of_32():
    jamba = {"n_layers": 32, "d_model": 4096, "vocab_size": 65536, "d_ff": 14336, "n_heads": 32, "n_kv_heads": 8,
             "d_inner": 8192, "state_dim": 16, "dt_rank": 256, "mixer_norm": "selected",
             "layers": ["4*mamba", "full", "3*mamba"], "kinds": {"mamba": {"mixer": "mamba"}, "full": {}}}  # fmt: skip
    found = held(jamba, 131072)
    assert found["bytes"] == 2 * 1024 * MIB and found["state_bytes"] == 28 * 8192 * (3 * 2 + 16 * 4)


# Traffic ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["mamba", "mamba2", "rwkv", "gated_delta", "kimi_delta", "lightning", "rg_lru", "short_conv"]
)
@pytest.mark.parametrize(("new", "past", "phase"), [(50, 0, "prefill"), (50, 9, "prefill"), (1, 9, "decode")])
def test_a_state_is_read_and_written_once(name, new, past, phase):
    """However many tokens a scan runs over; before the first token there is nothing to read."""
    model = build(fields(name))
    state = lmcalc.report(model, context=9, batch=2).to_dict()["cache"]["state_bytes"]
    for convention in ("fused", "ideal"):
        _, _, read, written = bytes_of(trace(model, 2, new, past, phase=phase), convention)
        assert (read, written) == (state if past else 0, state)


@pytest.mark.parametrize("name", ["mamba", "mamba2", "gated_delta", "rg_lru"])
def test_a_scan_is_one_kernel(name):
    """It reads what goes in and writes what comes out once for all tokens: nothing between grows with the trips."""
    model, moved = build({**fields(name), "n_layers": 1}), []
    for new in (40, 80):
        t = trace(model, 2, new)
        (kernel,) = [ops for path, _, ops in t.kernels() if path.rpartition("/")[2] in ("scan", "delta", "recurrence")]
        assert any(op.times != (1, ()) for op in kernel)
        moved.append(bytes_of(t)[1])
    assert moved[1] < 2 * moved[0]
    unfused = [bytes_of(trace(model, 2, new), "unfused")[1] for new in (40, 80)]
    assert moved[0] < unfused[0] / 1.5


def test_what_a_scan_moves_by_hand():
    """RG-LRU: the fused kernel reads x, both gates and the gate, and writes y; A state of 3 x 11."""
    t = trace(build({**fields("rg_lru"), "n_layers": 1}), 2, 5, 9)
    kernels = {path.rpartition("/")[2]: ops for path, _, ops in t.kernels()}
    from lmcalc.lenses.traffic import CATEGORIES, traffic
    from lmcalc.numbers import Sum

    found = {}
    for path, _, ops, terms in traffic(
        t, {"weights": "bf16", "activations": "bf16", "cache": "bf16", "state": "fp32", "conv": "bf16"}
    ):
        if ops is kernels["recurrence"] or path.endswith("recurrence"):
            for at, term in terms:
                found.setdefault(CATEGORIES[at], Sum()).add(term)
    one = 2 * 5 * 33
    assert {k: v.value() for k, v in found.items()} == {
        "weights": 2 * 33, "activations": 2 * 5 * one, "cache_read": 4 * 2 * 33, "cache_write": 4 * 2 * 33}  # fmt: skip


# Wiring ----------------------------------------------------------------------------------------------------------


def test_a_layer_may_have_one_branch():
    model = built(**MIXERS["hybrid"])
    t = trace(model, 2, 5, unroll=True)
    inside = [{op.path.split("/")[2] for op in t.ops if op.path.startswith(f"layers/{at}/")} for at in range(7)]
    order = ["mixer", "mixer", "ffn", "attention", "ffn", "mixer", "mixer"]
    assert inside == [{each, f"{each}_norm", "add"} for each in order]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mixer": "none", "ffn": "none"}, "ffn = 'none'; allowed: a feed-forward"),
        ({"mixer": "mamba2", "n_mixer_heads": 6, "n_mixer_groups": 4, "mixer_head_dim": 3, "state_dim": 2},
         "n_mixer_heads = 6; allowed: a multiple of n_mixer_groups = 4"),
        ({"mixer": "mamba2", "n_mixer_heads": 6, "mixer_head_dim": 3, "state_dim": 2, "mixer_norm": "selected"},
         "mixer_norm = 'selected'; allowed: none, gated or before_gate"),
        ({"mixer": "mamba2", "n_mixer_heads": 6, "mixer_head_dim": 3, "state_dim": 2, "time_step_limit": [0.1]},
         "time_step_limit = .* allowed: a list of 2 numbers"),
        ({"mixer": "mamba", "d_inner": 6, "dt_rank": 3, "state_dim": 2, "mixer_norm": "gated"},
         "mixer_norm = 'gated'; allowed: none, selected or selected_plain"),
        ({"mixer": "mamba", "d_inner": 6, "dt_rank": 3}, "state_dim is missing"),
        ({"mixer": "kimi_delta", "n_mixer_heads": 6, "mixer_head_dim": 3, "decay_floor": 2.0},
         "decay_floor = 2.0; allowed: a number below 0"),
        ({"mixer": "kimi_delta", "n_mixer_heads": 6, "mixer_head_dim": 3, "gates_full_rank": True, "gate_rank": 2},
         "gate_rank = 2; allowed: none with gates_full_rank"),
        ({"mixer": "short_conv", "block": "parallel"}, "'parallel'; allowed: serial for a layer of mixer and ffn"),
        ({"mixer": "short_conv", "stack": "encoder"}, "mixer = 'short_conv'; allowed: attention in an encoder"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(changes, message):
    gone = {"n_heads": None, "n_kv_heads": None, "head_dim": None}
    with pytest.raises(lmcalc.InputError, match=message):
        built(**gone, **changes)
