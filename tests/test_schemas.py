"""What commands print with -f json is what the published schemas say, in shape and in closedness."""

import copy
import json

import jsonschema
import numpy
import pytest
from safetensors.numpy import save_file

import lmcalc
from lmcalc import cli, schemas

NAMES = ("report", "compare", "validate", "sweep", "models", "hardware", "inspect")


def validator(name):
    schema = lmcalc.schema(name)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    assert kind is jsonschema.Draft202012Validator
    return kind(schema)


def printed(capsys, *arguments):
    assert cli.main([*arguments, "-f", "json"]) in (0, 1)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_files_that_the_command_prints(name, capsys):
    assert cli.main(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out) == lmcalc.schema(name)
    assert lmcalc.schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_an_unknown_schema_is_refused():
    with pytest.raises(lmcalc.InputError, match=r"repot.*report"):
        schemas.schema("repot")


CARDS = (
    "llama-3.1-8b",
    "gpt2",
    "bert-base-uncased",
    "t5-small",
    "mixtral-8x7b",
    "deepseek-v2",
    "mamba-2.8b",
    "gemma-3-4b",
)
OPTIONS = (
    [],
    [
        "-H",
        "h100",
        "-H",
        "cerebras-wse3",
        "-H",
        "epyc-9654",
        "--traffic",
        "unfused",
        "--mask",
        "full",
        "--logits",
        "all",
    ],
    [
        "-H",
        "a100",
        "--traffic",
        "ideal",
        "--weights",
        "mxfp4",
        "--experts",
        "max",
        "--mla",
        "absorbed",
        "--fuse-projections",
    ],
)


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_reports(card, options, capsys):
    validator("report").validate(printed(capsys, "report", card, *options))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("compare", ["compare", "gpt2", "gpt2-medium", "-H", "h100"]),
        ("compare", ["compare", "llama-3.1-8b", "bert-base-uncased", "mixtral-8x7b"]),
        ("compare", ["compare", "gpt2", "--variant", "norm=rmsnorm"]),
        ("validate", ["validate", "gpt2", "mixtral-8x7b"]),
        ("models", ["models"]),
        ("models", ["models", "--family", "gpt"]),
        ("hardware", ["hardware"]),
        ("sweep", ["sweep", "gpt2"]),
        ("sweep", ["sweep", "gpt2", "bert-base-uncased", "--vary", "batch=1:4", "-H", "h100", "-H", "cerebras-wse3"]),
        (
            "sweep",
            ["sweep", "gpt2", "--vary", "tied=true,false", "--vary", "weights=bf16,int4", "--vary", "mask=causal,full"],
        ),
        ("sweep", ["sweep", "gpt2", "--vary", "batch=1:4", "--wide", "batch", "--columns", "cache_bytes,context"]),
        ("sweep", ["sweep", "gpt2", "--vary", "batch=1:3000"]),
    ],
)
def test_other_commands(name, arguments, capsys):
    validator(name).validate(printed(capsys, *arguments))


def test_inspect(capsys, tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"transformer.wte.weight": numpy.zeros((6, 4), numpy.float16)}, path)
    validator("inspect").validate(printed(capsys, "inspect", str(path)))


def objects(data, path=()):
    """Every object within JSON, with where it stands."""
    if isinstance(data, dict):
        yield path, data
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from objects(value, (*path, key))


OPEN = ("by_part", "contraction_by_part")  # further parts are allowed, as counts


def test_a_report_is_closed():
    """A key more, or one less, anywhere: the schema says so."""
    data = lmcalc.report("mixtral-8x7b", ["h100"]).to_dict()
    check = validator("report")
    check.validate(data)
    for path, found in objects(data):
        more = copy.deepcopy(data)
        at = more
        for key in path:
            at = at[key]
        if path and path[-1] in OPEN and isinstance(found, dict):
            at["new_part"] = 1.5
        else:
            at["not_in_the_interface"] = 1
        assert not check.is_valid(more), path
        if path and path[-1] == "contraction_by_part":
            continue
        for key in found:
            if key == "estimated":
                continue
            less = copy.deepcopy(data)
            at = less
            for each in path:
                at = at[each]
            del at[key]
            assert not check.is_valid(less), (*path, key)


def test_a_comparison_holds_reports_as_they_are():
    inner = {key: value for key, value in lmcalc.schema("report").items() if key != "$schema"}
    assert lmcalc.schema("compare")["$defs"]["report"] == inner


def test_counts_are_integers_not_floats():
    check, data = validator("report"), lmcalc.report("gpt2").to_dict()
    data["params"]["total"] += 0.5
    assert not check.is_valid(data)
