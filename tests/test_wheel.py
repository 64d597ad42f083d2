"""The built wheel, installed into an environment of its own, works from any folder and brings its data."""

import json
import os
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import lmcalc
from lmcalc import catalogue
from lmcalc.hardware import FOLDER

ROOT = Path(__file__).parent.parent
SETTINGS = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=SETTINGS, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(wheel, sdist), built by hatchling from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def python(built, tmp_path_factory):
    """The Python of a fresh environment that has the wheel; its dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("bare") / "env"
    venv.create(folder, with_pip=False)
    found = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(sys.executable, "-m", "pip", "--python", found, "install", "-q", "--no-deps", "--no-index", built[0])
    packages = Path(run(found, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    assert (packages / "lmcalc").is_dir()
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    return found


def test_wheel_and_sdist_hold_code_cards_and_machines(built):
    wheel = set(zipfile.ZipFile(built[0]).namelist())
    with tarfile.open(built[1]) as file:
        sdist = {name.partition("/")[2] for name in file.getnames()}
    cards, machines = catalogue.names(catalogue.folder("model_cards")), catalogue.names(FOLDER)
    assert {f"lmcalc/model_cards/{name}.toml" for name in cards} <= wheel
    assert {f"model_cards/{name}.toml" for name in cards} <= sdist
    for files in (wheel, sdist):
        assert {f"lmcalc/hardware/{name}.toml" for name in machines} <= files
        assert {f"lmcalc/{path.relative_to(ROOT / 'lmcalc')}" for path in (ROOT / "lmcalc").rglob("*.py")} <= files
    assert {f"lmcalc/schemas/{path.name}" for path in (ROOT / "lmcalc" / "schemas").glob("*.json")} <= wheel
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in wheel)


def test_the_command_of_the_wheel_prints_what_that_of_the_checkout_prints(python, tmp_path):
    command = ["report", "llama-3.1-8b", "-H", "a100", "-H", "h100"]
    installed = run(python.parent / "lmcalc", *command, cwd=tmp_path)
    assert installed == run(sys.executable, "-m", "lmcalc", *command, cwd=ROOT)
    assert "8,030,261,248" in installed


def test_the_wheel_is_what_runs_and_finds_its_own_data(python, tmp_path):
    code = (
        "import json, lmcalc; names = [row['name'] for row in lmcalc.models()];"
        "print(json.dumps([lmcalc.__file__, names, len(lmcalc.hardware())]))"
    )
    file, names, machines = json.loads(run(python, "-c", code, cwd=tmp_path))
    assert Path(file).is_relative_to(python.parent.parent)
    assert names == [row["name"] for row in lmcalc.models()]
    assert machines == len(lmcalc.hardware())


def test_validate_runs_in_the_wheel(python, tmp_path):
    found = json.loads(run(python.parent / "lmcalc", "validate", "gpt2", "-f", "json", cwd=tmp_path))
    assert found["failed"] == 0


def test_version(python, tmp_path):
    assert lmcalc.__version__ in run(python.parent / "lmcalc", "--version", cwd=tmp_path)
