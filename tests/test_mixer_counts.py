"""What torch's flop counter and transformers' classes count in mixers, less what they count otherwise.

Recorded with transformers 5.24 and torch 2.13, as record_counts.py does it: all mixers of a model, none of its other
layers. Projections are equal; in the core each difference has a name and a formula (`torch_counts_more`), and there is
no other.
"""

import pytest

from lmcalc.components.gated_delta import GatedDelta, KimiDelta
from lmcalc.components.lightning import Lightning
from lmcalc.components.mamba2 import Mamba2
from lmcalc.components.rg_lru import GatedRecurrence
from lmcalc.lenses.flops import flops
from lmcalc.lenses.params import params
from lmcalc.model import build, trace

ALONE = {"vocab_size": 7, "ffn": "none", "positions": "none"}
MAMBA = {"mixer": "mamba", "state_dim": 16}
MAMBA2 = {"mixer": "mamba2", "state_dim": 128}
DELTA = {"mixer": "gated_delta", "mixer_head_dim": 128}
FIELDS = {
    "mamba-130m": {**MAMBA, "n_layers": 24, "d_model": 768, "d_inner": 1536, "dt_rank": 48},
    "falcon-mamba-7b": {**MAMBA, "n_layers": 64, "d_model": 4096, "d_inner": 8192, "dt_rank": 256,
                        "mixer_norm": "selected_plain"},
    "jamba-1.5-mini": {**MAMBA, "n_layers": 28, "d_model": 4096, "d_inner": 8192, "dt_rank": 256,
                       "mixer_norm": "selected"},
    "mamba2-2.7b": {**MAMBA2, "n_layers": 64, "d_model": 2560, "n_mixer_heads": 80, "mixer_head_dim": 64},
    "falcon-h1-7b": {**MAMBA2, "n_layers": 44, "d_model": 3072, "n_mixer_heads": 24, "mixer_head_dim": 128,
                     "state_dim": 256, "mixer_norm": "none"},
    "granite-4.0-h-small-like": {**MAMBA2, "n_layers": 36, "d_model": 4096, "n_mixer_heads": 128, "mixer_head_dim": 64},
    "nemotron-h-8b": {**MAMBA2, "n_layers": 24, "d_model": 4096, "n_mixer_heads": 128, "n_mixer_groups": 8,
                      "mixer_head_dim": 64, "chunk_size": 128},
    "nemotron-3-nano-30b-a3b": {**MAMBA2, "n_layers": 23, "d_model": 2688, "n_mixer_heads": 64, "n_mixer_groups": 8,
                                "mixer_head_dim": 64, "chunk_size": 128},
    "qwen3-next-80b-a3b": {**DELTA, "n_layers": 36, "d_model": 2048, "n_mixer_heads": 32, "n_mixer_groups": 16},
    "qwen-3.5-27b": {**DELTA, "n_layers": 48, "d_model": 5120, "n_mixer_heads": 48, "n_mixer_groups": 16},
    "olmo-hybrid-default": {**DELTA, "n_layers": 24, "d_model": 3840, "n_mixer_heads": 30, "mixer_head_dim": 96,
                            "mixer_value_dim": 192, "beta_scale": 2.0},
    "kimi-linear-default": {**DELTA, "mixer": "kimi_delta", "n_layers": 21, "d_model": 2304, "n_mixer_heads": 32},
    "minimax-text-01-like": {"mixer": "lightning", "n_layers": 70, "d_model": 6144, "n_mixer_heads": 64,
                             "mixer_head_dim": 128},
    "rwkv-4-169m": {"mixer": "rwkv", "n_layers": 12, "d_model": 768},
    "recurrentgemma-2b": {"mixer": "rg_lru", "n_layers": 18, "d_model": 2560, "n_mixer_heads": 10,
                          "mixer_head_dim": 256},
    "lfm2-1.2b": {"mixer": "short_conv", "n_layers": 10, "d_model": 2048},
}  # fmt: skip
RECORDED = {  # parameters, {phase: (projections, core and convolution)}
    "mamba-130m": (90501120, {
        "prefill_B1_S512": (89992986624, 2567798784),
        "prefill_B2_S100": (35153510400, 1004470272),
        "decode_ctx1024": (175767552, 5308416)}),
    "falcon-mamba-7b": (6739722240, {
        "prefill_B1_S512": (6751688589312, 148188954624),
        "prefill_B2_S100": (2637378355200, 57906561024),
        "decode_ctx1024": (13186891776, 293601280)}),
    "jamba-1.5-mini": (2948628480, {
        "prefill_B1_S512": (2953863757824, 64832667648),
        "prefill_B2_S100": (1153853030400, 25334120448),
        "decode_ctx1024": (5769265152, 128450560)}),
    "mamba2-2.7b": (2573368320, {
        "prefill_B1_S512": (2633351823360, 345769902080),
        "prefill_B2_S1000": (10286530560000, 1384105377792),
        "decode_ctx1024": (5143265280, 89391104)}),
    "falcon-h1-7b": (1318949984, {
        "prefill_B1_S512": (1349794136064, 178439962624),
        "prefill_B2_S1000": (5272633344000, 714660610048),
        "decode_ctx1024": (2636316672, 71729152)}),
    "granite-4.0-h-small-like": (3682036224, {
        "prefill_B1_S512": (3768833802240, 311170129920),
        "prefill_B2_S1000": (14722007040000, 1245606100992),
        "decode_ctx1024": (7361003520, 80363520)}),
    "nemotron-h-8b": (2631066624, {
        "prefill_B1_S512": (2692944494592, 131119841280),
        "prefill_B2_S1000": (10519314432000, 527493758976),
        "decode_ctx1024": (5259657216, 54263808)}),
    "nemotron-3-nano-30b-a3b": (890976576, {
        "prefill_B1_S512": (911631974400, 62925291520),
        "prefill_B2_S1000": (3561062400000, 253135388672),
        "decode_ctx1024": (1780531200, 26378240)}),
    "qwen3-next-80b-a3b": (1213860096, {
        "prefill_B1_S512": (1241782419456, 88188125184),
        "prefill_B2_S1000": (4850712576000, 352625098752),
        "decode_ctx1024": (2425356288, 4718592)}),
    "qwen-3.5-27b": (5562044928, {
        "prefill_B1_S512": (5693516021760, 175971237888),
        "prefill_B2_S1000": (22240296960000, 703672614912),
        "decode_ctx1024": (11120148480, 7864320)}),
    "olmo-hybrid-default": (2130003360, {
        "prefill_B1_S512": (2179989504000, 60027125760),
        "prefill_B2_S1000": (8515584000000, 239989063680),
        "decode_ctx1024": (4257792000, 4423680)}),
    "kimi-linear-default": (829797024, {
        "prefill_B1_S512": (848566419456, 51797458944),
        "prefill_B2_S1000": (3314712576000, 207078359040),
        "decode_ctx1024": (1657356288, 4128768)}),
    "minimax-text-01-like": (17616076800, {
        "prefill_B1_S512": (18038862643200, 450971566080),
        "prefill_B2_S1000": (70464307200000, 1736064368640),
        "decode_ctx1024": (35232153600, 293601280)}),
    "rwkv-4-169m": (28357632, {
        "prefill_B1_S512": (28991029248, 0),
        "prefill_B2_S100": (11324620800, 0),
        "decode_ctx1024": (56623104, 0)}),
    "recurrentgemma-2b": (377994240, {
        "prefill_B1_S512": (362387865600, 24349040640),
        "prefill_B2_S100": (141557760000, 9513123840),
        "decode_ctx1024": (707788800, 47185920)}),
    "lfm2-1.2b": (167833600, {
        "prefill_B1_S512": (171798691840, 63160320),
        "prefill_B2_S1000": (671088640000, 246251520),
        "decode_ctx1024": (335544320, 245760)}),
}  # fmt: skip

STATES = {Mamba2: "KRHX", GatedDelta: "KRHU", KimiDelta: "KRHU", Lightning: "NHU"}


def torch_counts_more(kind, batch, new, decode):
    """FLOPs of one mixer's core and convolutions that torch counts and lmcalc does not (below 0: the other way)."""
    chunks, state = -(-new // getattr(kind, "chunk", 1)), 1
    for axis in STATES.get(type(kind), ""):
        state *= kind.axes()[axis]
    found = 0
    for spec in kind.weights().values():
        if spec.startswith(
            "J->"
        ):  # a convolution runs over its padding: J - 1 columns; in a step over one column too many
            taps = 2 * kind.kernel
            for axis in spec[3:]:
                taps *= kind.axes()[axis]
            found += (
                taps * (1 if decode else kind.kernel - 1) * (-1 if decode and isinstance(kind, GatedRecurrence) else 1)
            )
    if isinstance(kind, Mamba2) and not decode:  # states pass from chunk to chunk by a matrix over all pairs of chunks
        found += 2 * (chunks + 1) ** 2 * state
    if (
        isinstance(kind, GatedDelta) and decode
    ):  # what the state holds at a key, and the reading, as elementwise products
        found -= 2 * 2 * state
    if isinstance(kind, Lightning) and decode:  # an outer product as a matrix product over one entry
        found += 2 * state
    if isinstance(kind, Lightning) and not decode:  # the last block is cut, not padded
        rest, block = new - (chunks - 1) * kind.chunk, kind.chunk
        found -= kind.heads * 4 * kind.head_dim * ((block**2 - rest**2) + (block - rest) * kind.head_dim)
    return found * batch


@pytest.mark.parametrize("name", RECORDED)
def test_mixers_of_published_models(name):
    total, phases = RECORDED[name]
    model = build({**ALONE, **FIELDS[name]}, name)
    kind = next(each for _, each, _ in model.declared() if each.part == "mixer")
    assert params(model)["mixer"] == total
    for phase, (projections, core) in phases.items():
        decode = phase.startswith("decode")
        batch, new = (1, 1) if decode else (int(each[1:]) for each in phase.split("_")[1:])
        found = flops(trace(model, batch, new, 1024 if decode else 0, phase="decode" if decode else "prefill"))[1]
        assert found["mixer_proj"] == projections, phase
        more = FIELDS[name]["n_layers"] * torch_counts_more(kind, batch, new, decode)
        assert found.get("mixer_core", 0) + found.get("mixer_conv", 0) == core - more, phase
