"""Variants from outside the package: after one call they are counted, checked and asked for like any other."""

import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import sympy
from soundness import assert_sound, built, component, weight

import lmcalc
from lmcalc import components, fields
from lmcalc.components.base import Component
from lmcalc.errors import InputError
from lmcalc.primitives import ELEMENTWISE, PRIMITIVES, primitive
from lmcalc.questions import own, variants

TABLES = (components.NORMS, components.FFNS, components.MIXERS, components.BLOCKS, fields.FIELDS, variants.SIZES,
          variants.VARIANTS, own.ADDED, PRIMITIVES)  # fmt: skip


@pytest.fixture(autouse=True)
def as_before():
    """What is added in a test is gone after it."""
    saved, sizes = [dict(table) for table in TABLES], set(own.SIZES)
    yield
    for table, before in zip(TABLES, saved):
        table.clear()
        table.update(before)
    own.SIZES.clear()
    own.SIZES.update(sizes)


class Scaled(Component):
    """x * weight: no norm at all, where a norm is expected."""

    width: int
    eps: float = 1e-5
    axis: str = "D"

    part, flop_class = "norms", "normalization"

    def weights(self):
        return {"weight": self.axis}

    def axes(self):
        return {self.axis: self.width}

    def forward(self, ops, p, x):
        return ops.multiply(x, p.weight)


class NarrowGate(Component):
    """SwiGLU whose gate goes through Y numbers."""

    d_model: int
    d_ff: int
    gate_dim: int

    part, contraction_part = "ffn", ("ffn", "ffn")

    def weights(self):
        return {"narrow": "D->Y", "gate": "Y->F", "up": "D->F", "down": "F->D"}

    def axes(self):
        return {"D": self.d_model, "F": self.d_ff, "Y": self.gate_dim}

    def forward(self, ops, p, x):
        gate = ops.einsum("BTY,YF->BTF", ops.einsum("BTD,DY->BTY", x, p.narrow), p.gate)
        up = ops.einsum("BTD,DF->BTF", x, p.up)
        with ops.fused("activation"):
            hidden = ops.multiply(ops.apply("silu", gate), up)
        return ops.einsum("BTF,FD->BTD", hidden, p.down)


class KeysAreValues(Component):
    """Attention with one matrix for keys and values, which are cached once; without positions."""

    d_model: int
    kv_heads: int
    group: int
    head_dim: int
    window: int = None

    part, contraction_part = "attention", ("attention_proj", "attention_scores")

    def weights(self):
        return {"q": "D->KRH", "kv": "D->KH", "out": "KRH->D"}

    def axes(self):
        return {"D": self.d_model, "K": self.kv_heads, "R": self.group, "H": self.head_dim}

    def forward(self, ops, p, x):
        q = ops.einsum("BTD,DKRH->BTKRH", x, p.q)
        kv = ops.append("kv", ops.einsum("BTD,DKH->BTKH", x, p.kv), window=self.window)
        with ops.fused("core"):
            scores = ops.einsum("BTKRH,BSKH->BKRTS", q, kv, mask=ops.causal(self.window))
            mixed = ops.einsum("BKRTS,BSKH->BTKRH", ops.softmax(scores, "S"), kv)
        return ops.einsum("BTKRH,KRHD->BTD", mixed, p.out)


class FedFirst(Component):
    """The feed-forward before the attention."""

    attention: Component
    ffn: Component
    attention_norm: Component
    ffn_norm: Component

    def forward(self, ops, p, x, **shared):
        x = ops.add(x, p.ffn(p.ffn_norm(x)))
        return ops.add(x, p.attention(p.attention_norm(x), **shared))


def narrow_gate(fields):
    return NarrowGate(fields["d_model"], fields["d_ff"], fields["gate_dim"])


def keys_are_values(fields, causal):
    heads, kv_heads = fields["n_heads"], fields["n_kv_heads"]
    group = fields.divided("n_heads", heads, "n_kv_heads", kv_heads)
    return KeysAreValues(fields["d_model"], kv_heads, group, fields["head_dim"], fields.get("window"))


def fed_first(fields, branches):
    norms = {f"{name}_norm": components.norm(fields, fields["d_model"]) for name in branches}
    return FedFirst(**branches, **norms)


OWN_SIZE = {"d_ff": None, "gate_dim": ("Y", "numbers that the gate goes through", 7)}
HEADS = dict.fromkeys(("n_heads", "n_kv_heads", "head_dim"))
# word: (field, make, sizes, changes in a small model)
VARIANTS = {
    "scaled": ("norm", Scaled, {}, {}),
    "narrow_gate": ("ffn", narrow_gate, OWN_SIZE, {"gate_dim": 7}),
    "keys_are_values": ("mixer", keys_are_values, HEADS, {"positions": "none"}),
    "fed_first": ("block", fed_first, {}, {}),
}
FORMULAS = {
    ("scaled", "params"): "D",
    ("scaled", "flops"): "B*T*D",
    ("narrow_gate", "params"): "D*Y + Y*F + 2*D*F",
    ("narrow_gate", "flops"): "B*T*(2*D*Y + 2*Y*F + 4*D*F + 5*F)",
    ("keys_are_values", "params"): "2*D*N*H + D*K*H",
    ("keys_are_values", "cache"): "2*B*C*K*H",
    ("fed_first", "params"): "2*D + 3*D*F + 2*D*N*H + 2*D*K*H",
    ("fed_first", "cache"): "4*B*C*K*H",
}


def add(word):
    field, make, sizes, changes = VARIANTS[word]
    lmcalc.add_variant(field, word, make, sizes)
    return {field: word, **changes}


@pytest.mark.parametrize("word", VARIANTS)
def test_it_is_sound(word):
    assert_sound(**add(word))


def test_one_with_a_window_is_sound():
    assert_sound(**add("keys_are_values"), window=6)


@pytest.mark.parametrize(("word", "of"), FORMULAS)
def test_its_formulas(word, of):
    add(word)
    found = lmcalc.formula(word, of=of)
    names = {name: sympy.Symbol(name) for name in [*found["symbols"], *"BCDFHKNTY"]}
    assert sympy.expand(sympy.sympify(found["expression"], names) - sympy.sympify(FORMULAS[word, of], names)) == 0


def test_values():
    x = numpy.random.default_rng(0).standard_normal((2, 3, 5))
    gate = x @ weight("it/narrow", 5, 2) @ weight("it/gate", 2, 7)
    expected = (gate / (1 + numpy.exp(-gate)) * (x @ weight("it/up", 5, 7))) @ weight("it/down", 7, 5)
    numpy.testing.assert_allclose(component(NarrowGate(5, 7, 2), x), expected, rtol=1e-10)


def test_all_questions_take_it(tmp_path):
    add("narrow_gate")
    changed = {"ffn": "narrow_gate", "gate_dim": 256}
    model = lmcalc.load("llama-3.1-8b", changed)
    base, found = (lmcalc.report(each).to_dict() for each in ("llama-3.1-8b", model))
    assert base["params"]["total"] - found["params"]["total"] == 32 * (4096 * 14336 - 256 * (4096 + 14336))
    data = lmcalc.compare("llama-3.1-8b", [changed])
    assert data["reports"][1]["params"] == found["params"]
    assert any("ffn" in each["feature"] for row in data["differences"] for each in row["by_feature"])
    checks = lmcalc.validate(model)
    assert checks["failed"] == 0 and len(checks["checks"]) > 10
    grid = lmcalc.sweep(model, vary={"gate_dim": [128, 256]}, columns="params_total")
    assert grid["params_total"][1] == found["params"]["total"] > grid["params_total"][0]
    card = tmp_path / "card.toml"
    card.write_text('name = "mine"\n[architecture]\nn_layers = 2\nd_model = 16\nn_heads = 2\nhead_dim = 8\nd_ff = 24\n'
                    'vocab_size = 32\nffn = "narrow_gate"\ngate_dim = 4\n')  # fmt: skip
    assert lmcalc.report(card).to_dict()["params"]["by_part"]["ffn"] == 2 * (4 * (16 + 24) + 2 * 16 * 24)


def test_a_drawing_names_it():
    from lmcalc.questions.show import show

    found = show(built(**add("narrow_gate")))
    assert {row["what"]: row["value"] for row in found["choices"]}["feed-forward"] == "narrow gate"
    ffn = next(each for each in found["stacks"][0]["kinds"][0]["parts"] if each["name"] == "ffn")
    assert ffn["text"] == "narrow gate" and "narrow 23 -> 7" in ffn["further"]


def test_in_some_layers_only():
    changes = add("narrow_gate")
    model = built(layers=["2*plain", "own"], kinds={"plain": {}, "own": changes})
    assert lmcalc.validate(model)["failed"] == 0
    ffn = lmcalc.report(model).to_dict()["params"]["by_part"]["ffn"]
    assert ffn == 2 * 3 * 23 * 29 + 7 * (23 + 29) + 2 * 23 * 29


def test_again_replaces():
    add("scaled")
    lmcalc.add_variant("norm", "scaled", components.load(components.NORMS["layernorm"]))
    assert lmcalc.formula("scaled", of="params")["expression"] == "2*D"
    assert fields.FIELDS["norm"][0].count("scaled") == 1
    add("narrow_gate")
    lmcalc.add_variant("ffn", "narrow_gate", narrow_gate, {"d_ff": None, "gate_dim": ("X", "another letter", 5)})
    assert "X" in lmcalc.formula("narrow_gate", of="params")["symbols"]


def test_a_wrong_cost_is_found():
    """A primitive that does two operations an element and says one."""

    @primitive(ELEMENTWISE, per_element=1)
    def doubled(np, x):
        return x * 2 + x

    class Doubled(Scaled):
        def forward(self, ops, p, x):
            return ops.multiply(ops.apply("doubled", x), p.weight)

    lmcalc.add_variant("norm", "doubled", Doubled)
    wrong = lmcalc.validate(built(norm="doubled"))
    differ = [each for each in wrong["checks"] if not each["ok"] and each["what"].startswith("operations that differ")]
    assert differ and all("doubled" in each for row in differ for each in row["counted"])
    primitive(ELEMENTWISE, per_element=2)(doubled)
    assert lmcalc.validate(built(norm="doubled"))["failed"] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"field": "head"}, r"unknown field to add a variant to 'head'; allowed: block, ffn, mixer, norm"),
        ({"word": "Narrow-Gate"}, r"word = 'Narrow-Gate'; allowed: small letters"),
        ({"word": 3}, r"word = 3; allowed"),
        ({"word": "swiglu"}, r"word = 'swiglu' stands for something else"),
        ({"word": "gqa"}, r"word = 'gqa' stands for something else"),
        ({"word": "attention"}, r"word = 'attention' stands for something else"),
        ({"make": "narrow_gate"}, r"make = 'narrow_gate'; allowed: a class or function"),
        ({"sizes": {"d_fff": None}}, r"unknown size 'd_fff'; closest: .*d_ff"),
        ({"sizes": {"d_ff": ("F", "mine", 7)}}, r"'d_ff' with a row; allowed: a name that no field has"),
        ({"sizes": {"Gate": ("Y", "mine", 7)}}, r"'Gate' with a row"),
        ({"sizes": {"gate_dim": ("Y", "mine")}}, r"gate_dim = \('Y', 'mine'\); allowed: None, or \(letter"),
        ({"sizes": {"gate_dim": ("Y", "mine", 0)}}, r"gate_dim = .*allowed: None, or"),
        ({"sizes": {"gate_dim": ("y", "mine", 7)}}, r"letter 'y'; allowed: a capital letter"),
        ({"sizes": {"gate_dim": ("T", "mine", 7)}}, r"T is new tokens already"),
        ({"sizes": {"gate_dim": ("F", "mine", 7), "d_ff": None}}, r"F is d_ff, .* already; allowed: another letter"),
        ({"sizes": {"gate_dim": ("D", "mine", 7)}}, r"D is d_model, .* already"),
    ],
)
def test_what_is_refused(changes, message):
    given = {"field": "ffn", "word": "narrow_gate", "make": narrow_gate, "sizes": OWN_SIZE} | changes
    before = [dict(table) for table in TABLES]
    with pytest.raises(InputError, match=message):
        lmcalc.add_variant(**given)
    assert [dict(table) for table in TABLES] == before


def test_a_missing_size_is_one_message():
    add("narrow_gate")
    with pytest.raises(InputError, match="gate_dim is missing; it is needed: numbers that the gate goes through"):
        lmcalc.load("llama-3.1-8b", {"ffn": "narrow_gate"})


def test_experts_beside_it_are_refused():
    with pytest.raises(InputError, match="n_experts = 7; allowed: 0 with ffn = 'narrow_gate'"):
        built(**add("narrow_gate"), n_experts=7, experts_per_token=3, expert_d_ff=19)


def test_a_script_is_the_command_line_with_it(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "import lmcalc, lmcalc.cli\n"
        "from lmcalc.components.norms import RMSNorm\n"
        'lmcalc.add_variant("norm", "mine", RMSNorm)\n'
        "raise SystemExit(lmcalc.cli.main())\n"
    )
    for arguments in (["report", "gpt2", "--set", "norm=mine"], ["formula", "mine", "--of", "params"]):
        done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, cwd=Path.cwd())
        assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] != "" and "D" in done.stdout
