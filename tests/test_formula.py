"""Formulas: evaluated they are the report, for a variant they are what one writes by hand, and limits are SymPy's."""

import json
import subprocess
import sys
import time

import jsonschema
import pytest
import sympy
from variants import VARIANTS, fields

import lmcalc
from lmcalc import cli
from lmcalc.algebra import latex, nested, symbol, text
from lmcalc.asymptotics import GROWTH, Assumptions, Condition, leading, under
from lmcalc.errors import InputError
from lmcalc.questions.formula import PHASED, formula
from lmcalc.questions.symbolic import P, S, T
from lmcalc.questions.variants import every

CONVENTIONS = [
    {},
    {"mask": "full", "traffic": "unfused", "logits": "all", "cache": "fp8", "weights": "int4"},
    {"traffic": "ideal", "experts": "max", "mla": "absorbed", "fuse_projections": True},
]
MODELS = [
    "gpt2",
    "llama-3.1-8b",
    "gemma-3-27b",
    "mistral-7b-v0.1",
    "deepseek-v2-lite",
    "mixtral-8x7b",
    "t5-base",
    "bert-base-uncased",
    "mamba2-2.7b",
]
WORKLOADS = [(2, 5, 3, 7), (1, 3000, 0, 5000)]  # batch, prompt, past, context


ASKED = [("params", None), ("cache", None), ("state", None)]
ASKED += [(of, phase) for of in PHASED for phase in ("prefill", "decode")]


def parsed(data, key="expression"):
    return sympy.sympify(data[key], locals={name: sympy.Symbol(name) for name in data["symbols"]})


def evaluated(data, **values):
    return parsed(data).subs({sympy.Symbol(name): number for name, number in values.items()})


def reported(report, of, phase):
    return {
        "params": lambda: report["params"]["total"],
        "cache": lambda: report["cache"]["bytes"],
        "state": lambda: report["cache"]["state_bytes"],
        "flops": lambda: report[phase]["flops"]["total"],
        "bytes": lambda: report[phase]["bytes"]["total"],
        "intensity": lambda: report[phase]["intensity"],
    }[of]()


def hold(model, options):
    """Every formula of a model against its reports."""
    made = {}
    for batch, prompt, past, context in WORKLOADS:
        past = 0 if model.bidirectional else past
        report = lmcalc.report(model, batch=batch, prompt=prompt, past=past, context=context, **options).to_dict()
        for of, phase in ASKED:
            if (phase and report[phase] is None) or not reported(report, of, phase):
                continue
            data = made.setdefault((of, phase), None) or formula(model, of, phase, **options)
            made[of, phase] = data
            keys = context + 1 if phase == "decode" else past + prompt
            at = {"B": batch, "T": prompt, "S": keys, "C": context, "M": prompt}
            found, expected = evaluated(data, **at), reported(report, of, phase)
            if of == "intensity":
                assert float(found) == pytest.approx(expected, rel=1e-12)
                continue
            assert found == expected, (of, phase, data["expression"])
            parts = [evaluated({**each, "symbols": data["symbols"]}, **at) for each in data["parts"]]
            assert sum(parts) == expected


@pytest.mark.parametrize("options", CONVENTIONS, ids=["default", "full", "ideal"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_evaluates_to_its_report(name, options):
    hold(lmcalc.load(name), options)


@pytest.mark.parametrize("name", [*VARIANTS][::8])  # a sample: SymPy takes a second for each
def test_variants_as_models_evaluates_to_its_report(name):
    hold(lmcalc.build(fields(name)), {})


def test_a_whole_model_fits_a_screen_and_is_quick():
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "lmcalc", "formula", "gemma-3-27b", "--phase", "decode"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert time.perf_counter() - start < 3
    lines = done.stdout.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert "Min(1024, S)" in done.stdout


# Variants by hand ------------------------------------------------------------------------------------------------

BY_HAND = [
    ("gqa", "params", None, None, "2*D*H*(N + K)"),
    ("gqa", "flops", "prefill", "attention_proj", "4*B*T*D*H*(N + K)"),
    ("gqa", "flops", "prefill", "attention_scores", "2*B*T*N*H*(2*S - T + 1)"),
    ("gqa", "flops", "decode", "attention_scores", "4*B*S*N*H"),
    ("gqa", "bytes", "decode", "cache_read", "4*B*K*H*(S - 1)"),
    ("gqa", "cache", None, None, "4*B*C*K*H"),
    ("mqa", "cache", None, None, "4*B*C*H"),
    ("mha", "params", None, None, "4*D*N*H"),
    ("mla", "cache", None, None, "2*B*C*(Z + C_kv)"),
    ("mla", "flops", "decode", "attention_scores", "2*B*S*N*(Z + 2*C_kv)"),
    ("sliding_window", "flops", "decode", "attention_scores", "4*B*N*H*Min(S, W)"),
    ("sliding_window", "bytes", "decode", "cache_read", "4*B*K*H*(Min(S, W) - 1)"),
    ("swiglu", "params", None, None, "3*D*F"),
    ("swiglu", "flops", "prefill", "ffn", "6*B*T*D*F"),
    ("gelu ffn", "params", None, None, "2*D*F"),
    ("rmsnorm", "params", None, None, "D"),
    ("rmsnorm", "flops", "prefill", None, "4*B*T*(D + 1)"),
    ("layernorm", "params", None, None, "2*D"),
    ("moe", "params", None, "moe_experts", "3*D*F*E"),
    ("moe", "flops", "prefill", "moe_experts", "6*B*T*D*F*A"),
    ("mamba2", "state", None, "layers/state", "4*B*N*H*X"),
    ("rotary", "flops", "prefill", None, "3*B*T*H*(N + K)"),
    ("learned", "params", None, None, "D*J"),
    ("serial", "kept", None, None, "2*B*T*(T*N + 2*H*(N + K) + 4*(D + F))"),
    ("decoder", "params", None, "ffn", "3*L*D*F"),
]


@pytest.mark.parametrize(("word", "of", "phase", "part", "expected"), BY_HAND)
def test_variants_by_hand(word, of, phase, part, expected):
    data = formula(word, of, phase)
    found = data if part is None else next(each for each in data["parts"] if each["part"] == part)
    assert found["expression"] == expected


@pytest.mark.parametrize("word", [each for each in every() if each != "embedding"][::3])
def test_words_have_flops(word):
    for phase in ("prefill", "decode") if word != "encoder" else ("prefill",):
        data = formula(word, "flops", phase)
        assert set(data["symbols"]) == {each.name for each in parsed(data).free_symbols}
        assert all(data["symbols"].values()), "a letter without a meaning"


def test_symbols_numbers_and_terms():
    data = formula("gqa", "flops", values={"D": 4096, "H": 128})
    assert data["with"] == {"D": 4096, "H": 128} and set(data["symbols"]) == {"B", "T", "S", "N", "K"}
    assert data["terms"][0]["term"] == "layers/attention/q"
    assert data["terms"][0]["expression"] == "1048576*B*T*N"
    assert formula("gqa", "cache")["latex"] == "4 B C K H"


def test_expressions_are_read_back_as_they_were():
    N, K, E, A, B = map(symbol, "NKEAB")
    for each in (
        2 * N / K,
        (1 - A / E) ** B,
        sympy.Min(N, K) - 1,
        nested([6 * N * K, 4 * N * E]),
        sympy.floor(N / 2) / 3,
    ):
        back = sympy.sympify(text(each), locals={one.name: one for one in each.free_symbols})
        assert sympy.simplify(back - each) == 0
    assert text(2 * N - K + 1) == "2*N - K + 1" and latex(symbol("C_kv")) == "C_{kv}"


# Limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "of", "phase", "when", "expected"),
    [
        ("gqa", "flops", "prefill", ["S >> D"], "B*T*S*N*(4*H + 7)"),
        ("gqa", "flops", "prefill", ["D << S"], "B*T*S*N*(4*H + 7)"),
        ("gqa", "flops", "prefill", ["T = S", "S >> D"], "B*S**2*N*(2*H + 7/2)"),
        ("gqa", "intensity", "decode", ["S >> D"], "N*(H + 7/4)/(K*H)"),
        ("swiglu", "intensity", "prefill", ["B -> oo"], "F*(6*D + 5)/(6*(D + 2*F))"),
        ("swiglu", "intensity", "prefill", ["D -> oo"], "B*T*F/(B*T + F)"),
        ("sliding_window", "cache", None, ["C >> W"], "4*B*W*K*H"),
        ("sliding_window", "cache", None, ["C < W"], "4*B*C*K*H"),
        ("mamba2", "state", None, ["B -> oo"], "2*B*(N*H*(2*X + J - 1) + 2*G*X*(J - 1))"),
    ],
)
def test_leading_orders(word, of, phase, when, expected):
    data = formula(word, of, phase, when=when)
    exact = sympy.sympify(expected, locals={name: sympy.Symbol(name) for name in data["symbols"]})
    if data["expression"] != expected:
        found = sympy.simplify(parsed(data) - exact)
        assert (word == "swiglu" and found.free_symbols == set()) or found == 0, data["expression"]


def test_a_leading_order_is_what_numbers_tend_to():
    for of, phase, grown in (("flops", "decode", "S"), ("bytes", "decode", "B"), ("intensity", "decode", "B")):
        data = formula("llama-3.1-8b", of, phase, when=[f"{grown} -> oo"])
        at = {"B": 3, "S": 1000} | {grown: 10**15}
        exact = parsed(data, "exact").subs({sympy.Symbol(name): number for name, number in at.items()})
        assert float(evaluated(data, **at)) == pytest.approx(float(exact), rel=1e-6)


def test_what_is_left_out_is_the_rest():
    data = formula("gqa", "flops", "decode", when=["S >> D"])
    locals_ = {name: sympy.Symbol(name) for name in data["symbols"]}
    rest = sympy.sympify(data["left_out"][0], locals=locals_)
    assert sympy.expand(parsed(data) + rest - parsed(data, "exact")) == 0


def test_experts_and_rounding():
    data = formula("moe", "bytes", "decode", when=["E > A", "B -> oo"])
    assert "floor" not in data["expression"] and "**" not in data["expression"]
    with pytest.raises(InputError, match="which is larger of A and E"):
        formula("moe", "bytes", "decode", when=["B -> oo"])


def test_no_limit_where_there_is_none():
    n, w = map(symbol, "nw")
    with pytest.raises(InputError, match="no limit"):
        leading(n - w * sympy.floor(n / w), {n: n * GROWTH})
    with pytest.raises(InputError, match="which is larger"):
        leading(sympy.Min(n, symbol("m")), {n: n * GROWTH, symbol("m"): symbol("m") * GROWTH})
    with pytest.raises(InputError, match="no leading order"):
        leading(sympy.log(n), {n: n * GROWTH})


def test_assumptions():
    a, b, c = map(symbol, "abc")
    known = {"a": a, "b": b, "c": c}
    assert under(sympy.Min(a, b), [Condition("a > b", known)])[0] == b
    assert under(sympy.Max(a, b + 3), [Condition("a > b + 4", known)])[0] == a
    assert under(sympy.Min(a, b), [Condition("a = b*c", known)])[0] == sympy.Min(b, b * c)
    assert Assumptions([(a, b), (b, c)]).sign(a - c) is True
    assert Assumptions().sign(a - b) is None


@pytest.mark.parametrize("window", [1, 4, 9])
def test_formulas_of_min_are_the_cases_of_a_window(window):
    """The proof of cases in keys.py, by numbers."""
    from lmcalc.numbers import causal_pairs
    from lmcalc.questions.keys import plain

    for symbolic in (causal_pairs(P, 1, symbol("W")), causal_pairs(P, 1, window)):
        found = plain(symbolic, "decode")
        assert window == 1 or found in (sympy.Min(S, symbol("W")), sympy.Min(S, window))
        for past in range(12):
            assert found.subs({S: past + 1, symbol("W"): window}) == causal_pairs(past, 1, window)
    assert plain(P + T, "prefill") == S


# Bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gqa", "--of", "speed"], ["speed", "intensity"]),
        (["gqa", "--phase", "training"], ["training", "decode"]),
        (["swigl"], ["swigl", "swiglu", "--list"]),
        (["lama-3.1-8b"], ["llama-3.1-8b"]),
        (["swiglu", "--of", "cache"], ["swiglu has no cache", "params", "kept"]),
        (["mamba2", "--of", "cache"], ["no cache", "state"]),
        (["layernorm_plain", "--of", "params"], ["no params"]),
        (["rotary", "--of", "bytes"], ["--traffic unfused"]),
        (["bert-base-uncased", "--phase", "decode"], ["no decode", "prefill"]),
        (["gqa", "--of", "kept", "--phase", "decode"], ["kept", "prefill"]),
        (["gqa", "--with", "Q=3"], ["Q", "D, H, K, N"]),
        (["gqa", "--with", "D=-1"], ["D=-1", "positive"]),
        (["gqa", "--with", "D=0"], ["positive"]),
        (["gqa", "--with", "D=wide"], ["D=wide", "positive"]),
        (["gqa", "--with", "D=inf"], ["positive"]),
        (["gqa", "--with", "D"], ["FIELD=VALUE"]),
        (["gqa", "--with", "D=1,D=2"], ["twice"]),
        (["llama-3.1-8b", "--with", "D=1"], ["D", "B, S, T"]),
        (["gqa", "--when", "Z >> D"], ["Z", "D, H, K, N"]),
        (["gqa", "--when", "S >> Z"], ["Z", "D, H, K, N"]),
        (["gqa", "--when", "S"], ["S >> D", "B -> oo"]),
        (["gqa", "--when", "B -> 0"], ["B -> oo"]),
        (["gqa", "--when", "S >> S + 1"], ["both sides"]),
        (["gqa", "--when", "S > D; D"], ["expression"]),
        (["gqa", "--when", "S = __import__('os')"], ["symbols"]),
        (["gqa", "--when", "S = D/0"], ["division by 0"]),
        (["gqa", "--when", "S = D**D"], ["power"]),
        (["gqa", "--when", "S >> D", "--when", "D >> S"], ["contradicts"]),
        (["sliding_window", "--when", "T >> W"], ["S is at least T", "T = S"]),
        (["gqa", "--traffic", "best"], ["fused"]),
        (["gqa", "--set", "layers=3"], ["layers"]),
        (["gqa", "--set", "n_layer=3"], ["n_layers"]),
        ([], ["--list"]),
        (["gqa", "--lecture", "rope"], ["--lecture"]),
        (["--lecture", "ropes"], ["ropes", "rope"]),
    ],
)
def test_bad_input_is_one_message_and_status_two(arguments, said, capsys):
    status = cli.main(["formula", *arguments])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "") and err.count("\n") == 1 and "Traceback" not in err
    for word in said:
        assert word in err, err


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["gqa"],
        ["llama-3.1-8b", "--of", "bytes", "--terms"],
        ["serial", "--of", "intensity", "--when", "B -> oo"],
        ["--list"],
        ["moe", "--of", "bytes"],
    ],
)
def test_it_fits_the_screen(arguments, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert cli.main(["formula", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= int(columns) and all(line == line.rstrip() for line in lines)


def test_latex_is_one_line_for_copying(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["formula", "mla", "--latex"]) == 0
    assert formula("mla")["latex"] in map(str.strip, capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    "arguments", [["gqa", "--of", "kept"], ["gpt2", "--phase", "decode", "--when", "S >> B"], ["gqa", "--with", "D=2"]]
)
def test_json_is_of_its_schema(arguments, capsys):
    assert cli.main(["formula", *arguments, "-f", "json"]) == 0
    jsonschema.Draft202012Validator(lmcalc.schema("formula")).validate(json.loads(capsys.readouterr().out))


def test_json_has_what_the_interface_says(capsys):
    assert cli.main(["formula", "gqa", "--with", "D=4096", "-f", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"schema", "of", "phase", "expression", "latex", "symbols", "with"} <= set(data)
    assert (data["schema"], data["of"], data["phase"], data["with"]) == (
        "lmcalc.formula/1",
        "flops",
        "prefill",
        {"D": 4096},
    )


def test_a_report_needs_no_sympy():
    code = "import sys; from lmcalc.cli import main; main(['report', 'gpt2']); assert 'sympy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("given", "same"),
    [
        (["T = S", "T -> oo"], ["T = S", "S -> oo"]),
        (["T = S", "T >> D"], ["T = S", "S >> D"]),
        (["D = N*H", "N = K", "N -> oo"], ["D = K*H", "N = K", "K -> oo"]),
    ],
)
def test_a_condition_on_a_replaced_symbol_is_on_what_replaced_it(given, same):
    found, plain = (lmcalc.formula("gqa", when=when)["expression"] for when in (given, same))
    assert found == plain != lmcalc.formula("gqa", when=given[:-1])["expression"]


def test_a_condition_on_a_symbol_that_is_gone_is_refused():
    with pytest.raises(InputError, match=r"'D -> oo': D was replaced by H\*N before"):
        lmcalc.formula("gqa", when=["D = N*H", "D -> oo"])
