"""Comparisons: differences add up, by part and by feature, and are those of the reports."""

import pytest

import lmcalc
from lmcalc.questions.compare import QUANTITIES, compare

VARIANTS = [{"norm": "layernorm"}, {"block": "parallel"}, {"ffn": "gelu", "d_ff": 16384}, {"n_kv_heads": 1}]


@pytest.fixture(scope="module")
def compared():
    return compare(["llama-3.1-8b"], VARIANTS, ["h100"])


def at(data, path):
    for key in path:
        data = data[key]
    return data


def test_every_quantity_of_every_variant(compared):
    assert [report["model"]["id"] for report in compared["reports"]] == [
        "llama-3.1-8b",
        "llama-3.1-8b norm=layernorm",
        "llama-3.1-8b block=parallel",
        "llama-3.1-8b ffn=gelu,d_ff=16384",
        "llama-3.1-8b n_kv_heads=1",
    ]
    assert len(compared["differences"]) == len(VARIANTS) * len(QUANTITIES)


def test_parts_and_features_add_up(compared):
    reports = {report["model"]["id"]: report for report in compared["reports"]}
    for each in compared["differences"]:
        path = QUANTITIES[each["quantity"]]
        assert each["from"] == at(compared["reports"][0], path)
        assert each["to"] == at(reports[each["model"]], path)
        assert sum(each["by_part"].values()) == each["to"] - each["from"], each
        assert sum(step["change"] for step in each["by_feature"]) == each["to"] - each["from"], each


def test_a_variant_is_the_model_with_these_fields(compared):
    alone = lmcalc.report("llama-3.1-8b", ["h100"], set={"n_kv_heads": 1}).to_dict()
    there = compared["reports"][4]
    for key in ("params", "weights", "cache", "prefill", "decode", "hardware"):
        assert there[key] == alone[key]


def test_two_models_by_feature_in_order():
    data = compare(["llama-2-7b", "llama-3.1-8b"])
    params = next(each for each in data["differences"] if each["quantity"] == "params")
    assert [step["feature"] for step in params["by_feature"]] == ["n_kv_heads", "d_ff", "vocab_size"]
    assert params["by_feature"][0]["change"] == -32 * 2 * 4096 * 24 * 128


def test_steps_that_no_forward_can_run_are_merged():
    # 25 heads do not go with 12 kv heads, nor d_model 1600 with 12 heads of a size that is not given
    data = compare(["gpt2", "gpt2-xl"])
    params = next(each for each in data["differences"] if each["quantity"] == "params")
    assert "n_heads, n_kv_heads" in [step["feature"] for step in params["by_feature"]]
    assert sum(step["change"] for step in params["by_feature"]) == 1557611200 - 124439808


@pytest.mark.parametrize(
    "models, variants, said",
    [
        (["gpt2"], [], "one model to compare"),
        (["gpt2", "gpt2-xl"], [{"norm": "rmsnorm"}], "variants of one model"),
        (["gpt2"], [{"n_layer": 3}], "n_layers"),
        (["gpt2"], [{"norm": "groupnorm"}], "rmsnorm"),
        (["gpt2"], [{"n_kv_heads": 5}], "multiple of n_kv_heads = 5"),
    ],
)
def test_refusals(models, variants, said):
    with pytest.raises(lmcalc.InputError, match=said):
        compare(models, variants)
