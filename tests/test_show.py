"""The drawing of a model and the consensus check."""

import json
import time

import jsonschema
import pytest

import lmcalc
from lmcalc import cards, cli
from lmcalc.errors import InputError
from lmcalc.questions import consensus, show
from lmcalc.questions.catalogue import architectures

TWELVE = ["gpt2", "bert-large-uncased", "t5-11b", "palm-540b", "llama-3.1-8b", "gemma-3-27b", "gpt-oss-120b",
          "deepseek-v3", "jamba-1.5-mini", "nemotron-h-56b", "rwkv-4-169m", "gemma-3n-e4b"]  # fmt: skip


def drawn(capsys, *arguments):
    assert cli.main(["show", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", TWELVE)
def test_twelve_very_different_models_in_80_columns(name, capsys):
    text = drawn(capsys, name)
    assert max(map(len, text.splitlines())) <= 80
    for word in ("tokens", "embedding", "logits", "parameters by part", "Ratios", "Choices", "Nearest relatives"):
        assert word in text


@pytest.mark.parametrize("name", architectures()[::6])
def test_cards_can_be_drawn(name):
    found = show.show(name)
    model = lmcalc.load(name)
    params = lmcalc.report(model).to_dict()["params"]
    assert found["params"]["total"] == params["total"] and found["params"]["active"] == params["active"]
    decoder = found["stacks"][-1]
    assert decoder["n_layers"] == model.fields["n_layers"] == sum(kind["layers"] for kind in decoder["kinds"])
    assert all(part["text"] for stack in found["stacks"] for kind in stack["kinds"] for part in kind["parts"])
    layers = sum(kind["layers"] * kind["params"] for stack in found["stacks"] for kind in stack["kinds"])
    around = [part for stack in found["stacks"] for part in (*stack["before"], *stack["behind"])]
    rest = found["embedding"]["params"] + found["head"]["params"] + sum(part["params"] for part in around)
    assert layers + rest == params["total"], "the drawing holds every parameter once"


def test_an_encoder_that_embeds_by_itself(tmp_path, capsys):
    """Its table stands above it, the decoder's above the decoder; before positions, what lies before them."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "t5gemma", "encoder": {"hidden_size": 1024}}))
    text = drawn(capsys, str(path))
    assert text.index("256,000 x 1,024") < text.index("to the cross attention") < text.index("256,000 x 2,304")
    assert "the same table" not in text and sum(show.show(path)["params"]["by_part"].values()) > 4e9
    small = show.show(lmcalc.load({"model_type": "blenderbot-small"}))["stacks"]
    assert [[part["name"] for part in stack["before"]] for stack in small] == [
        ["positions", "embedding_norm"], ["embedding_norm", "positions"]]  # fmt: skip


def test_pattern_and_multiplicities():
    stack = show.show("gemma-3-27b")["stacks"][0]
    assert stack["order"] == "10 x (5 sliding, full), 2 sliding"
    assert stack["strip"] == "sssssf" * 10 + "ss"
    assert [(kind["name"], kind["layers"]) for kind in stack["kinds"]] == [("sliding", 52), ("full", 10)]
    assert show.show("deepseek-v3")["stacks"][0]["order"] == "3 dense, 58 experts"


@pytest.mark.parametrize(
    "names", ["a", "ab", "aab", "abab", "aabaab", "aaabaaabaa", "mfmfmfmafmfmfmfmfmaf", "abcabcabd"]
)
def test_compressed_orders_say_the_same(names):
    def written_out(pairs):
        return [each for times, inside in pairs for _ in range(times)
                for each in (written_out(inside) if isinstance(inside[0], tuple) else inside)]  # fmt: skip

    assert written_out(show.compressed(list(names))) == list(names)


@pytest.mark.parametrize(
    "name, equations",
    [
        ("gpt2", ["x + attention(norm(x))", "x + ffn(norm(x))"]),
        ("bert-base-uncased", ["norm(x + attention(x))", "norm(x + ffn(x))"]),
        ("gemma-2-9b", ["x + norm(attention(norm(x)))", "x + norm(ffn(norm(x)))"]),
        ("olmo-2-7b", ["x + norm(attention(x))", "x + norm(ffn(x))"]),
        ("palm-8b", ["x + attention(norm(x)) + ffn(norm(x))"]),
        ("pythia-1b", ["x + attention(norm_1(x)) + ffn(norm_2(x))"]),
        ("deepseek-v4-pro", [f"comb streams + post {branch}(norm(pre streams))" for branch in ("attention", "ffn")]),
        ("kimi-k3", ["x, kept as a stream; then mixer(norm(x))", "x + ffn(norm(mix(streams, x)))"]),
    ],
)
def test_where_norms_lie(name, equations):
    assert show.show(name)["stacks"][0]["kinds"][0]["equations"] == equations


def test_what_a_block_is_said_to_be():
    parts = {part["name"]: part for part in show.show("gpt-oss-120b")["stacks"][0]["kinds"][0]["parts"]}
    assert parts["attention"]["text"] == "GQA, 64 query heads on 8 key/value heads of 64"
    assert {"window of 128", "a sink logit a head"} <= set(parts["attention"]["further"])
    assert parts["ffn"]["text"] == "4 of 128 experts"


def test_which_keys_are_chosen():
    further = {}
    for name in ("deepseek-v4-flash", "minimax-m3"):
        for kind in show.show(name)["stacks"][0]["kinds"]:
            further[kind["name"]] = " / ".join(part for part in kind["parts"][0]["further"])
    chosen = "one for 4 tokens, each made of twice as many: the 512 that an indexer of 64 heads of 128 chose"
    assert f"compressed entries, {chosen}" in further["sparse_scored"]
    assert "compressed entries, one for 128 tokens: all" in further["heavy_scored"]
    assert "the 16 blocks of 128 keys that an indexer of 4 heads of 128 chose" in further["blocks_experts"]
    assert "all keys before" in further["full_dense"]


def ratio(found, name):
    return next(row for row in found["ratios"] if row["what"] == name)


def choice(found, name):
    return next(row for row in found["choices"] if row["what"] == name)


def test_t5_11b_is_an_outlier_and_said_so():
    found = show.show("t5-11b")
    row = ratio(found, "d_ff / D")
    assert row["value"] == 64 and row["verdict"] == "outside, beyond all" and row["below"] == 1
    assert ratio(found, "N*H / D")["value"] == 16
    assert ratio(show.show("gpt2"), "d_ff / D")["most"] == ["t5-11b", 64]


@pytest.mark.parametrize(
    "name, what, value, verdict",
    [
        ("gpt2", "d_ff / D", 4, "as the rule"),
        ("deepseek-v3", "d_ff / D", 18432 / 7168, "as the rule"),
        ("gemma-3-27b", "d_ff / D", 4, "in the basin"),
        ("palm-540b", "N*H / D", 2 / 3, "less"),
        ("gpt3-175b", "D / L", 128, "as the rule"),
        ("gpt2", "vocabulary", 50257, "of one language"),
        ("gemma-3-27b", "vocabulary", 262144, "of many languages"),
        ("llama-3.1-8b", "N / K", 4, "as the rule"),
        ("mixtral-8x7b", "active d_ff / D", 7, "in the basin"),
    ],
)
def test_ratios_and_their_rules(name, what, value, verdict):
    row = ratio(show.show(name), what)
    assert row["value"] == pytest.approx(value) and row["verdict"] == verdict


@pytest.mark.parametrize(
    "name, what, value",
    [
        ("gpt2", "biases", "attention and ffn"),
        ("qwen-2.5-7b", "biases", "q, k, v only"),
        ("llama-3.1-8b", "biases", "none"),
        ("gemma-2-9b", "softmax steadied by", "scores capped, logits capped"),
        ("gpt-oss-20b", "softmax steadied by", "sinks"),
        ("palm-8b", "softmax steadied by", "z-loss"),
        ("bloom-176b", "positions", "ALiBi"),
        ("palm-8b", "block", "parallel"),
        ("opt-125m", "norms lie", "before each branch (pre)"),
        ("opt-350m", "norms lie", "behind each sum (post)"),
        ("jamba-1.5-mini", "tokens mixed by", "Mamba + GQA"),
        ("t5-11b", "feed-forward", "ReLU"),
        ("olmo-1-7b", "norm", "LayerNorm, no weights"),
        ("deepseek-v4-flash", "tokens mixed by", "compressed keys"),
        ("deepseek-v4-flash", "block", "hyper-connections"),
        ("minimax-m3", "keys seen", "all in some layers"),
        ("kimi-k3", "block", "attention residuals"),
        ("kimi-k3", "feed-forward", "SiTU"),
        ("rwkv5-3b", "tokens mixed by", "RWKV"),
    ],
)
def test_choices(name, what, value):
    row = choice(show.show(name), what)
    assert row["value"] == value
    assert sum(row["counts"].values()) == row["cards"] == len(architectures()) - 1
    assert row["same"] == row["counts"].get(value, 0)


def test_multiples_of_tiles():
    rows = {row["what"]: row for row in show.show("gpt2")["multiples"]}
    assert rows["D"]["multiple_of"] == 128 and rows["V"]["multiple_of"] is None
    assert {row["what"]: row["multiple_of"] for row in show.show("gpt2", {"d_model": 744, "d_ff": 2976})["multiples"]}[
        "D"
    ] == 8


def test_a_change_moves_the_ratios_and_keeps_the_relatives_near():
    found = show.show("llama-3.1-8b", {"d_ff": 4096 * 12})
    assert ratio(found, "d_ff / D")["value"] == 12 and ratio(found, "d_ff / D")["verdict"].startswith("outside")
    assert show.show("llama-3-70b")["relatives"][0]["name"] == "llama-3.1-70b"


def test_a_model_that_is_no_card(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\n[architecture]\nn_layers = 2\nd_model = 24\nn_heads = 2\nd_ff = 100\nvocab_size = 37\n'
    )
    found = show.show(str(path))
    assert found["cards"] == len(architectures()) and found["relatives"]
    assert ratio(found, "vocabulary")["verdict"] == "outside, beyond all"


def test_a_broken_card_does_not_stop_the_others(monkeypatch):
    def read(name, whole=cards.read):
        if name == "gpt2":
            raise InputError("broken")
        return whole(name)

    consensus.catalogue.cache_clear()
    monkeypatch.setattr(cards, "read", read)
    try:
        assert "gpt2" not in [each["name"] for each in consensus.catalogue()]
        assert len(consensus.catalogue()) == len(architectures()) - 1
    finally:
        consensus.catalogue.cache_clear()


@pytest.mark.parametrize("name", TWELVE)
def test_its_json_is_as_the_schema_says(name):
    text = json.dumps(show.show(name), allow_nan=False)
    jsonschema.Draft202012Validator(lmcalc.schema("show")).validate(json.loads(text))


@pytest.mark.parametrize("form", ["csv", "markdown", "html"])
def test_other_formats_have_every_part(form, capsys):
    text = drawn(capsys, "jamba-1.5-mini", "-f", form)
    assert "2 of 16 experts" in text and "Mamba, 8,192 channels" in text and "{'" not in text


def test_it_is_quick():
    start = time.perf_counter()
    show.show("gemma-3-27b")
    assert time.perf_counter() - start < 1


def test_nothing_is_traced(monkeypatch):
    def trace(*given, **more):
        raise AssertionError("traced")

    monkeypatch.setattr("lmcalc.model.Ops", trace)
    show.show("deepseek-v3")


def test_an_unknown_model_and_a_bad_change(capsys):
    assert cli.main(["show", "llama-3.1-8"]) == 2
    assert "llama-3.1-8b" in capsys.readouterr().err
    assert cli.main(["show", "gpt2", "--set", "n_heads=5"]) == 2
    assert "n_heads" in capsys.readouterr().err
