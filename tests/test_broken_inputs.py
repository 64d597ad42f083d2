"""Inputs that once broke something, or might: each is refused in one line, with status 2, in bounded time."""

import json
import os
import subprocess
import sys

import numpy
import pytest

import lmcalc
from lmcalc import cli
from lmcalc.components.base import Component
from lmcalc.fields import FIELDS
from lmcalc.questions import own
from lmcalc.questions.formula import formula
from lmcalc.questions.measured import measured
from lmcalc.questions.roofline import roofline

CARD = """name = "mine"
[architecture]
n_layers = {n_layers}
d_model = 64
n_heads = 4
d_ff = 128
vocab_size = 100
{more}
"""
PATTERN = 'layers = ["{pattern}"]\n[architecture.kinds.a]\n'
LLAMA = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "vocab_size": 100}  # fmt: skip


@pytest.mark.parametrize(
    ("n_layers", "more", "word"),
    [
        (2**40, PATTERN.format(pattern="a"), "n_layers"),  # must not be written out in memory
        (4, PATTERN.format(pattern="0*a"), "layers"),
        (4, PATTERN.format(pattern="b"), "layers"),
        (4, PATTERN.format(pattern="a") + "n_layer = 3", "n_layer"),
        (0, "", "n_layers"),
        (-1, "", "n_layers"),
        (2.5, "", "n_layers"),
        ('"two"', "", "n_layers"),
        ("true", "", "n_layers"),
        (4, "window = 0", "window"),
        (4, "head_dim = 15", "head_dim"),
        (4, "norm_eps = nan", "norm_eps"),
        (4, "n_kv_heads = 3", "n_heads"),
        (4, "n_kv_head = 2", "n_kv_heads"),
    ],
)
def test_cards(n_layers, more, word, tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text(CARD.format(n_layers=n_layers, more=more))
    status = cli.main(["report", str(path)])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "") and err.count("\n") == 1 and "mine.toml" in err and word in err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_attention_heads", 0),
        ("num_attention_heads", -4),
        ("num_attention_heads", "4"),
        ("num_attention_heads", True),
        ("hidden_size", [64]),
        ("hidden_size", 65),
        ("vocab_size", float("nan")),
        ("num_hidden_layers", 10**30),
        ("num_key_value_heads", 3),
        ("hidden_act", "square"),
        ("rope_scaling", {"rope_type": "round"}),
        ("model_type", "lama"),
    ],
)
def test_configs(key, value, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, key: value}))
    status = cli.main(["report", str(path)])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "") and err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"model_type": 3}', "{}"])
def test_files_that_are_no_config(text, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(text)
    assert cli.main(["report", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("model", [None, 3, [], b"gpt2", "", "no such\nmodel", "../gpt2", "gpt2/"])
def test_things_that_are_no_model(model):
    with pytest.raises(lmcalc.InputError) as caught:
        lmcalc.load(model)
    assert "\n" not in str(caught.value)


DEEP = "a" + ".a" * 1000 + " = 1"  # takes time with the square of its length
MACHINE = "[peak]\nbf16 = 100\n[vector]\nfp32 = 20\n[memory]\nusable_GiB = 10\nbandwidth_GBps = 1000\n"
KINDS = "[architecture.kinds.a]\nwindow = 4\n[architecture.kinds.b]\n"
PER_KIND = 'layers = ["a", "b"]\n' + KINDS


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('layers = ["\u00b2*a", "b"]\n' + KINDS, ["layers", "N*name"]),  # a digit that int() does not read
        (f'layers = ["{"9" * 5000}*a", "b"]\n' + KINDS, ["layers", "N*name"]),
        ('layers = ["1000000000*a", "b"]\n' + KINDS, ["layers", "10,000"]),
        ('layers = ["*a", "b"]\n' + KINDS, ["layers", "N*name"]),
        ('layers = [["a"]]\n' + KINDS, ["layers", "N*name"]),
        (PER_KIND + "vocab_size = 9", ["kinds.b.vocab_size", "no layer"]),  # a field, and not one of a layer
        (PER_KIND + 'stack = "encoder"', ["kinds.b.stack", "no layer"]),
        (PER_KIND + "d_model = 128", ["kinds.b.d_model", "not a field of one layer"]),
        ('layers = ["a/b"]\n[architecture.kinds."a/b"]\n', ["kinds", "a/b", "letters"]),
        ("shared_blocks = 1099511627776", ["shared_blocks", "10,000"]),
        ("shared_blocks = 1", ["shared_blocks", "hybrid"]),
        ("per_layer_dim = 4\nblock = \"parallel\"", ["per_layer_dim", "parallel"]),
        ('per_layer_dim = 4\nffn = "channel_mix"', ["ffn"]),
        ('head_transform = true\nffn = "none"', ["head_transform"]),
        ('n_encoder_layers = 1099511627776\nstack = "encoder_decoder"', ["n_encoder_layers", "10,000"]),
        (DEEP, ["dots"]),
        (f"max_positions = {'9' * 5000}", ["not valid TOML"]),
        ("max_positions = 1979-05-27", ["max_positions", "integer"]),
        (f'max_positions = "{"x" * 300_000}"', ["262,144"]),
    ],
)  # fmt: skip
def test_architectures(more, words, tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text(CARD.format(n_layers=4, more=more), encoding="utf-8")
    refused(capsys, ["report", str(path)], ["mine.toml", *words])


def test_rules_for_d_ff_that_are_too_long(tmp_path, capsys):
    for rule in ("9" * 400 + "*d_model", "2*" * 20_000 + "d_model", "8/3*d_model:" + "9" * 19):
        path = tmp_path / "mine.toml"
        path.write_text(CARD.format(n_layers=4, more="").replace("d_ff = 128", f'd_ff = "{rule}"'))
        refused(capsys, ["report", str(path)], ["mine.toml", "d_ff", "2**40"])


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('name = "a\\u001b[31m"', "name"),
        ('name = ""', "name"),
        ("name = 4", "name"),
        ("notes = [1]", "notes"),
        ('notes = ["\\u001b[2J"]', "notes"),
        ("aliases = [4]", "aliases"),
        ("context_length = -4", "context_length"),
        ("source = { config = 4 }", "source.config"),
        ("family = 4", "family"),
    ],
)
def test_words_of_cards(line, key, tmp_path, capsys):
    path = tmp_path / "mine.toml"
    card = CARD.format(n_layers=4, more="")
    path.write_text(line + "\n" + (card if key != "name" else card.removeprefix('name = "mine"\n')))
    refused(capsys, ["report", str(path)], ["mine.toml", key, "allowed"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = 4\n" + MACHINE, ["name", "text"]),
        ('name = "a\\u001b[31m"\n' + MACHINE, ["name"]),
        ("aliases = 4\n" + MACHINE, ["aliases", "list"]),
        (MACHINE + 'last_level_cache_MB = "x"', ["last_level_cache_MB", "number"]),
        (MACHINE.replace("= 1000", "= " + "9" * 4000), ["bandwidth_GBps"]),
        (MACHINE.replace("= 1000", "= nan"), ["bandwidth_GBps", "nan"]),
        (DEEP, ["dots"]),
    ],
)
def test_machines(text, words, tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    refused(capsys, ["report", "gpt2", "-H", str(path)], ["mine.toml", *words])


CONFIGS = [
    # null, or of another kind, under keys that were taken as they were
    ({"model_type": "gpt2", "text_config": True}, None),
    ({"model_type": "jamba", "layers_block_type": [[]]}, None),
    ({"model_type": "qwen3_next", "layer_types": [[]]}, "layer_types"),
    ({"model_type": "mamba2", "time_step_limit": [None]}, "time_step_limit"),
    ({"model_type": "mamba2", "time_step_limit": ["x", 1]}, "time_step_limit"),
    ({"model_type": "zamba2", "time_step_min": None}, None),
    ({"model_type": "zamba2", "hidden_size": 1}, "hidden_size"),
    ({"model_type": "zamba2", "num_mem_blocks": 2**40}, "num_mem_blocks"),
    ({"model_type": "ernie4_5_moe", "moe_layer_end_index": ""}, "moe_layer_end_index"),
    ({"model_type": "longcat_flash", "q_lora_rank": None}, "q_lora_rank"),
    ({"model_type": "smollm3", "no_rope_layer_interval": None, "no_rope_layers": None}, "no_rope_layer_interval"),
    ({"model_type": "dbrx", "attn_config": None}, "attn_config"),
    ({"model_type": "t5", "num_decoder_layers": 2**40}, "num_decoder_layers"),
    ({"model_type": "switch_transformers", "num_decoder_layers": 2**40}, "num_decoder_layers"),
    ({"model_type": "falcon_h1", "mlp_multipliers": [[]]}, None),
    ({"model_type": "falcon_h1", "ssm_multipliers": [[]]}, None),
    ({"model_type": "mimo_v2_flash", "hybrid_layer_pattern": [1]}, "hybrid_layer_pattern"),
    ({"model_type": "glm_moe_dsa", "index_topk_pattern": 5}, "index_topk_pattern"),
    ({"model_type": "glm_moe_dsa", "index_topk_pattern": [[]]}, "indexer_types"),
    ({"model_type": "llama", "rope_scaling": {"rope_type": "dynamic", "alpha": 2.0}, "head_dim": 2}, "head_dim"),
    ({"model_type": "llama", "hidden_size": 10**5000}, "hidden_size"),
    ({"model_type": "llama", "partial_rotary_factor": 1e308}, "partial_rotary_factor"),
    ({"model_type": "llama", "rope_scaling": {"rope_type": "dynamic", "alpha": 1e308}}, "alpha"),
    ({"model_type": "mamba", "expand": 1e308}, "expand"),
    ({"model_type": "bamba", "mamba_expand": 1e308}, "mamba_expand"),
    ({"model_type": "nemotron_h", "hybrid_override_pattern": "M" * 100_000}, None),
]  # fmt: skip


@pytest.mark.parametrize(("config", "key"), CONFIGS)
def test_configs_of_families(config, key):
    """Either a model, or one line that names the key."""
    try:
        lmcalc.load(config)
    except lmcalc.InputError as error:
        assert "\n" not in str(error) and (key or "config") in str(error)
    else:
        assert key is None


COMMANDS = [
    ("report", ["MODEL", "usage"]),
    ("report gpt2 gpt2", ["gpt2", "usage"]),
    ("report gpt2 -f", ["--format", "usage"]),
    ("reprot gpt2", ["reprot", "report"]),
    ("report gpt2 -p 9{5000}", ["--prompt", "integer"]),
    ("report gpt2 -p \u00b2", ["--prompt", "integer"]),
    ("report gpt2 --expert-skew nan", ["expert_skew", "nan"]),
    ("report bert-base-uncased --past 3", ["past = 3", "0"]),
    ("report gpt2 --pad-vocab 8 --set vocab_size=0", ["vocab_size = 0"]),
    ("report gpt2 --pad-vocab 8 --set vocab_size=true", ["vocab_size = True"]),
    ("report gpt2 --pad-vocab 1099511627777", ["vocab_size", "2**40"]),
    ("report gpt2 --set n_layers=1099511627776", ["n_layers", "10,000"]),
    ("report gpt2 --set layers=full", ["layers", "list"]),
    ("report gpt2 --set experts_per_token=4", ["experts_per_token"]),
    ("report gemma-4-26b-a4b --set n_experts=1", ["experts_per_token = 8", "1 experts"]),
    ("report gpt2 --set-hardware bandwidth=1e12", ["bandwidth", "-H"]),
    ("report gpt2 -H h100 --set-hardware bandwidth=9{400}", ["bandwidth"]),
    ("report gpt2 -o folder/", ["folder/", "is a folder"]),
    ("report gpt2 -o .", ["is a folder"]),
    ("report gpt2 -o a\nb/x", ["no folder"]),
    ("report .", ["a folder without config.json"]),
    ("report gpt2\u001b[31m", ["gpt2"]),
    ("compare gpt2 --variant norm=x", ["norm", "rmsnorm"]),
    ("compare gpt2 --variant norm=rmsnorm --set-hardware memory=1e10", ["memory", "-H"]),
    ("validate --measured /dev/null", ["/dev/null", "regular file"]),
    ("models --where 9**9**9>1", ["not allowed"]),
    ("hardware --where bandwidth.x", ["bandwidth.x"]),
    ("inspect .", ["no checkpoint"]),
    ("schema nothing", ["nothing"]),
    ("schema report -f csv", ["-f csv", "JSON"]),
    ("schema report -o x.md", ["x.md", "JSON"]),
    ("report gpt2 -o x.png", ["x.png", ".html, .htm, or any"]),
    ("report \u00b6", ["allowed", "names"]),
    ("report gpt2 -H h100 --set-hardware bandwidth=1e9", ["FLOP a byte", "10,000"]),
    ("report gpt2 -H h100 --set-hardware peak.bf16=1e18 --set-hardware bandwidth=1e12", ["FLOP a byte"]),
    ("roofline gpt2 -H h100 --interactive -o x.html --plot y.png", ["--interactive", "y.png"]),
    ("roofline gpt2 -H h100 --interactive -o x.html -f csv", ["--interactive", "-f csv"]),
    ("validate --plot x.png", ["x.png", "--measured"]),
    ("validate gpt2 --plot x.png", ["x.png", "--measured"]),
    ("validate --published --plot x.png", ["x.png", "--measured"]),
    ("sweep gpt2 --vary batch=1:30000 --vary context=1:30000 --plot x.png", ["900,000,000", "1,048,576"]),
    ("sweep gpt2 --vary batch=1:30000 --vary context=1:30000 --columns cache_bytes --wide batch -f csv", ["1,000"]),
    ("sweep gpt2 --set n_experts=8 --set expert_d_ff=9 --vary experts_per_token=9,2", ["8 experts", "=9 of gpt2"]),
    ("formula gqa --list", ["gqa", "--list alone"]),
    ("formula --list --with D=3", ["--with", "--list alone"]),
    ("formula --lecture kv-cache --with D=3", ["--with", "--lecture NAME alone"]),
    ("formula gqa --set d_model=-5", ["d_model = -5"]),
    ("formula gqa --set d_model=x", ["d_model = 'x'"]),
    ("formula gqa --set ffn=x", ["ffn = 'x'", "swiglu"]),
    ("formula gqa --set kinds=3", ["kinds = 3", "table"]),
    ("formula moe --set experts_per_token=1.5", ["experts_per_token = 1.5"]),
    ("formula rotary --set positions=none", ["nothing to count"]),
    ("formula moe --of bytes --expert-skew 1", ["expert_skew = 1", "n_experts"]),
    ("formula gqa --with T=5,S=2", ["T=5", "S=2", "at least T"]),
    ("formula gpt2 --with T=5,S=2", ["T=5", "S=2", "at least T"]),
    ("formula gqa --with K=8,N=2", ["n_heads = 2", "n_kv_heads = 8"]),
    ("formula moe --with A=9,E=4", ["experts_per_token = 9", "4 experts"]),
    ("formula gqa --with D=1e200", ["D=1e+200"]),
    ("formula gqa --with S=3 --when T->oo", ["T->oo", "no limit"]),
    ("formula gqa --with T=3 --when S=2", ["T=3", "S=2", "at least T"]),
    ("formula gqa --when T=0", ["T=0", "above 0"]),
    ("formula gqa --when N=D-D", ["N=D-D", "above 0"]),
    ("formula gqa --when T=T+1", ["T=T+1", "both sides"]),
    ("formula gqa --when T=S,S=T+1", ["both sides"]),
    ("formula gqa --when T=S+1", ["T=S+1", "at least T"]),
    ("formula gqa --when T>S", ["T>S", "at least T"]),
    ("formula sliding_window --when S>W,W=2*S", ["S>W", "contradicts"]),
    ("formula gqa --when S>>D,D=S", ["S>>D", "contradicts"]),
    ("formula gqa --when D=1e999", ["1e999", "numbers"]),
    ("formula gqa --when D=0**(1-2)", ["division by 0"]),
    ("formula gqa --when D=((((((9**9)**9)**9)**9)**9)**9)**9", ["1,000 bits"]),
    ("formula gqa --when D=(N+H)**9*(N+K)**9", ["10 summands"]),
]  # fmt: skip


@pytest.mark.parametrize(("command", "words"), COMMANDS)
def test_commands(command, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = command.replace("9{5000}", "9" * 5000).replace("9{400}", "9" * 400)
    refused(capsys, command.split(" "), words)
    assert list(tmp_path.iterdir()) == []


def refused(capsys, arguments, words):
    status = cli.main(arguments)
    out, err = capsys.readouterr()
    assert (status, out) == (2, ""), err
    assert err.startswith("lmcalc: ") and err.count("\n") == 1 and err.rstrip("\n").isprintable()
    for word in words:
        assert word in err


ODD = [5, True, 2.5, b"gpt2", object(), numpy.array([1.0, 2.0]), numpy.int64(5), "\0", "a\0.json"]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize(
    "ask",
    [
        lambda odd: lmcalc.load(odd),
        lambda odd: lmcalc.load("gpt2", odd),
        lambda odd: lmcalc.load("gpt2", {"ffn": odd}),
        lambda odd: lmcalc.report("gpt2", hardware=odd),
        lambda odd: lmcalc.report("gpt2", hardware=[odd]),
        lambda odd: lmcalc.report("gpt2", hardware="h100", set_hardware=odd),
        lambda odd: lmcalc.report("gpt2", mask=odd),
        lambda odd: lmcalc.report("gpt2", weights=odd),
        lambda odd: lmcalc.compare(odd),
        lambda odd: lmcalc.compare(["gpt2"], odd),
        lambda odd: lmcalc.compare(["gpt2"], [odd]),
        lambda odd: lmcalc.sweep("gpt2", vary=odd),
        lambda odd: lmcalc.sweep("gpt2", set=odd),
        lambda odd: lmcalc.sweep("gpt2", columns=odd),
        lambda odd: lmcalc.sweep("gpt2", engine=odd),
        lambda odd: lmcalc.models(odd),
        lambda odd: lmcalc.models(where=odd),
        lambda odd: lmcalc.schema(odd),
        lambda odd: lmcalc.reference.open(odd),
        lambda odd: formula("gqa", odd),
        lambda odd: formula("gqa", values={"D": 2, odd: 2} if odd.__hash__ else odd),
        lambda odd: formula("gqa", when=odd),
        lambda odd: formula("gqa", set=odd),
        lambda odd: roofline("gpt2", odd),
        lambda odd: roofline("gpt2", "h100", odd),
        lambda odd: measured(odd),
        lambda odd: lmcalc.compare(["gpt2", "gpt2"], why=[odd]),
        lambda odd: lmcalc.compare(["gpt2", "gpt2"], set=odd),
        lambda odd: lmcalc.sweep("gpt2", columns=["batch", odd]),
        lambda odd: lmcalc.report("gpt2", "h100", set_hardware={odd: 1e12} if odd.__hash__ else odd),
        lambda odd: lmcalc.add_variant(odd, "word", int),
        lambda odd: lmcalc.add_variant("ffn", "word", odd),
        lambda odd: lmcalc.add_variant("ffn", "word", int, sizes=odd),
        lambda odd: lmcalc.add_variant("ffn", "word", int, what=[odd]),
    ],
)
def test_arguments_from_python(ask, odd):
    with pytest.raises(lmcalc.InputError):
        ask(odd)


HUGE = 10**5000  # no text is made of it


@pytest.mark.parametrize(
    "ask",
    [
        lambda: lmcalc.load(HUGE),
        lambda: lmcalc.hardware(HUGE),
        lambda: lmcalc.report("gpt2", mask=HUGE),
        lambda: lmcalc.report("gpt2", expert_skew=HUGE),
        lambda: lmcalc.report("gpt2", set={HUGE: 1}),
        lambda: lmcalc.report("gpt2", "h100", set_hardware={"bandwidth": HUGE}),
        lambda: lmcalc.report("gpt2", "h100", set_hardware={HUGE: 1e12}),
        lambda: lmcalc.compare(["gpt2"], [{"n_layers": HUGE}]),
        lambda: lmcalc.sweep("gpt2", vary={"n_layers": [1, HUGE]}),
        lambda: lmcalc.sweep("gpt2", vary={"mask": [HUGE]}),
        lambda: lmcalc.sweep("gpt2", vary={"batch": [1, HUGE]}),
        lambda: lmcalc.sweep("gpt2", columns=HUGE),
        lambda: lmcalc.sweep("gpt2", vary={"batch": [1, 2]}).wide(HUGE),
        lambda: lmcalc.models(where=HUGE),
        lambda: lmcalc.schema(HUGE),
        lambda: formula("gqa", HUGE),
        lambda: formula("gqa", values={"D": HUGE}),
        lambda: formula("gqa", when=HUGE),
    ],
)
def test_huge_integers_are_refused_in_words(ask):
    with pytest.raises(lmcalc.InputError, match="thousands of digits"):
        ask()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: lmcalc.sweep(["gpt2", "bert-base-uncased"], set=[{}]), "a list of 1"),
        (lambda: lmcalc.compare(["gpt2", "gpt2"], set=[{}]), "a list of 1"),
        (lambda: roofline(["gpt2"], "h100", set=[{}, {}]), "a list of 2"),
        (lambda: roofline([], "h100"), "no model"),
        (lambda: roofline("gpt2", "h100", batch=numpy.array([1.0, 2.0])), "batch is an array"),
        (lambda: lmcalc.sweep("gpt2", vary={"batch": b"12"}), "b'12'"),
        (lambda: lmcalc.sweep("gpt2", vary={"batch": {1: 2}}), "a list of values"),
        (lambda: formula("gqa", values={"D": float("nan")}), "D=nan"),
    ],
)
def test_lists_and_arrays_that_do_not_fit(ask, words):
    with pytest.raises(lmcalc.InputError, match=words):
        ask()


class Unsized(Component):
    """A weight of an axis without a size."""

    d_model: int

    def weights(self):
        return {"weight": "D->Q"}

    def axes(self):
        return {"D": self.d_model}


class Wordless(Unsized):
    """Weights that are no table."""

    def weights(self):
        return 7


@pytest.mark.parametrize(
    ("field", "make", "words"),
    [
        ("norm", lambda width, *_: None, "norm = 'odd_word': made None"),  # was a model without norms
        ("ffn", lambda fields: 5, "made 5"),
        ("mixer", lambda fields, causal: None, "made None"),
        ("block", lambda fields, branches: "x", "made 'x'"),
        ("ffn", lambda fields: Unsized(fields["d_model"]), "weight = 'D->Q' has Q; axes.. has D"),
        ("ffn", lambda fields: Wordless(fields["d_model"]), "no dict"),
    ],
)
def test_variants_that_are_no_component(field, make, words, monkeypatch):
    made_by, changed = own.SLOTS[field][0], own.SLOTS
    monkeypatch.setattr(own, "SLOTS", {**changed, field: (dict(made_by), *changed[field][1:])})
    for table in (made_by, FIELDS, own.ADDED, own.variants.VARIANTS):
        for name, value in dict(table).items():
            monkeypatch.setitem(table, name, value)
    lmcalc.add_variant(field, "odd_word", make)
    monkeypatch.setitem(made_by, "odd_word", own.SLOTS[field][0]["odd_word"])
    try:
        for ask in (lambda: lmcalc.report("gpt2", set={field: "odd_word"}), lambda: formula("odd_word")):
            with pytest.raises(lmcalc.InputError, match=words):
                ask()
    finally:
        del own.ADDED["odd_word"], own.variants.VARIANTS["odd_word"]


def test_letters_of_two_sizes():
    row = ("Yz", "what it is", 3)
    with pytest.raises(lmcalc.InputError, match="bb: Yz is aa already"):
        lmcalc.add_variant("ffn", "word", int, sizes={"aa": row, "bb": row})


def test_changes_hold_for_each_model(capsys):
    """--pad-vocab once gave all models the vocabulary of the first; --set once overrode a variant's own value."""
    assert cli.main("compare gpt2 mistral-7b --pad-vocab 64 -f json".split()) == 0
    found = [each["params"]["total"] for each in json.loads(capsys.readouterr().out)["reports"]]
    assert found[1] == lmcalc.report("mistral-7b").to_dict()["params"]["total"] and found[0] > 124_439_808
    reports = lmcalc.compare("gpt2", [{"n_layers": 4}], set={"n_layers": 2})["reports"]
    assert [each["params"]["by_part"]["attention"] for each in reports] == [2 * 2_362_368, 4 * 2_362_368]


def test_rules_follow_what_is_changed(tmp_path):
    """d_ff by a rule grows with d_model in a sweep and a variant as it does in a report."""
    path = tmp_path / "mine.toml"
    path.write_text(CARD.format(n_layers=2, more="head_dim = 16").replace("d_ff = 128", 'd_ff = "8/3*d_model:8"'))
    want = [lmcalc.report(str(path), set={"d_model": each}).to_dict()["params"]["total"] for each in (64, 640)]
    assert lmcalc.sweep(str(path), vary={"d_model": [64, 640]}, columns="params_total")["params_total"].tolist() == want
    reports = lmcalc.compare(str(path), [{"d_model": 640}])["reports"]
    assert [each["params"]["total"] for each in reports] == want


def test_fields_that_need_what_is_varied():
    """The base of a sweep has the first of the varied values: without a choice of experts there is none."""
    card, changes, one = "mixtral-8x7b", {"n_experts": 1}, {"experts_per_token": 1}  # its two of one are refused
    found = lmcalc.sweep(
        card, set=changes, vary={"experts_per_token": [1], "n_layers": [1, 2]}, columns="prefill_flops"
    )
    want = [lmcalc.report(card, set={**changes, **one, "n_layers": each}).to_dict() for each in (1, 2)]
    assert found["prefill_flops"].tolist() == [each["prefill"]["flops"]["total"] for each in want]


def test_wide_sweeps_in_every_format(capsys):
    """A column of text that is the same in all rows once had no form in csv and JSON; whole numbers stay whole."""
    for form in ("csv", "json", "jsonl", "markdown", "html"):
        assert cli.main(f"sweep gpt2 --vary batch=1,2 --wide batch -f {form}".split()) == 0
        out = capsys.readouterr().out
        assert "gpt2" in out and "75497472" in out.replace(",", "") and "150994944" in out.replace(",", "")


def test_peaks_that_count_zeros_are_said():
    notes = lmcalc.report("gpt2", "h100", set_hardware={"peak.bf16": 1979e12}).to_dict()["notes"]
    assert any("peak.bf16 is twice the dense peak" in note for note in notes)


def test_integers_that_python_does_not_write_out():
    for ask in (lambda: lmcalc.report("gpt2", batch=10**5000), lambda: lmcalc.load("gpt2", {"d_model": 10**5000})):
        with pytest.raises(lmcalc.InputError, match="thousands of digits; allowed: an integer from 1"):
            ask()


def test_one_name_is_one_thing():
    """A text is not taken apart into letters."""
    with pytest.raises(lmcalc.InputError, match="one model to compare"):
        lmcalc.compare("gpt2")
    assert {each["model"] for each in lmcalc.validate("gpt2")["checks"]} == {"gpt2"}


def test_few_layers_of_a_pattern_are_a_model():
    """What a cut leaves out is no mistake of the card."""
    assert lmcalc.load("deepseek-v3", {"n_layers": 1}).fields["n_layers"] == 1
    assert lmcalc.load("jamba-1.5-mini", {"n_layers": 1}).fields["n_layers"] == 1


def test_names_of_files_are_no_markup_and_no_commands(tmp_path, capsys):
    folder = tmp_path / "[" / "red]\x1b[31m"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**LLAMA, "\x1b[2J": 1}))
    for form in ("table", "csv", "markdown", "html", "json"):
        for command in ("report", "show"):
            assert cli.main([command, str(folder), "-f", form]) == 0
            assert "\x1b" not in capsys.readouterr().out
    assert cli.main(["compare", "gpt2", str(folder)]) == 0
    assert "red]?[31m" in capsys.readouterr().out


def process(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "lmcalc", *arguments], stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("columns", ["\u00b2", "9" * 5000, "-1", "0", "x"])
def test_widths_that_are_none(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", columns)
    assert cli.main(["report", "gpt2"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_standard_output_that_takes_nothing():
    for form in ("table", "json"):
        with open("/dev/full", "w") as full:
            done = process("report", "gpt2", "-f", form, stdout=full)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "standard output" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_standard_error_that_takes_nothing(tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "lmcalc", "report", "nope"], stderr=full, stdout=full)
    assert done.returncode == 2
    closed = f"{sys.executable} -m lmcalc sweep gpt2 --vary batch=1,2 -o {tmp_path}/x.csv 2>&-"
    assert subprocess.run(["sh", "-c", closed]).returncode == 0 and (tmp_path / "x.csv").exists()


def test_standard_output_of_few_letters():
    options = {"stdout": subprocess.PIPE, "env": {**os.environ, "PYTHONIOENCODING": "ascii"}}
    done = process("hardware", **options)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_run_that_is_ended_leaves_nothing_half_written(tmp_path):
    arguments = "sweep gpt2 --vary batch=1:100000 --vary context=1:100000 -o big.csv".split()
    run = subprocess.Popen([sys.executable, "-m", "lmcalc", *arguments], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        while not list(tmp_path.iterdir()) and run.poll() is None:
            pass
        run.terminate()
        assert run.wait(20) == 143
    finally:
        run.kill()
    assert list(tmp_path.iterdir()) == []
