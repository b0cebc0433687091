"""The example package as if it were installed: method, score and backbone, by command line and in Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import oltr
from oltr import Recognizer
from oltr.cli.main import _guarded
from oltr.methods import METHODS
from oltr.openset import SCORES
from oltr.plugins import load_backbones
from tests.helpers.installed import installed

EXAMPLE = Path(__file__).parents[1] / "examples" / "04_own_method"
SHORT = ["--recipe", "glyphs", "--epochs", "1", "1", "--cpu"]
SHORT += ["--set", "stage1.batch_size=8", "--set", "stage2.batch_size=8"]


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """A folder with the example and the entry points that pip would have written."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    text = (EXAMPLE / "own_method.py").read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("packages")
    return installed(folder, project["name"], {"own_method.py": text}, project["entry-points"])


@pytest.fixture
def own_path(monkeypatch):
    """The search path and what was found through it, as before when the test ends."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_method", raising=False)
    for registry in (METHODS, SCORES):
        monkeypatch.setattr(registry, "_plugins_read", False)
        monkeypatch.setattr(registry, "_table", dict(registry._table))
    load_backbones.cache_clear()
    yield
    sys.modules.pop("own_method", None)


@pytest.fixture
def here(own_path, packages, monkeypatch):
    """This process finds the package."""
    monkeypatch.syspath_prepend(packages)


@pytest.fixture(scope="module")
def run(packages, pack, tmp_path_factory) -> Path:
    """A run of the example's method and backbone, by a command of its own process."""
    folder = tmp_path_factory.mktemp("work")
    paths = os.pathsep.join([str(packages), str(Path(oltr.__file__).parents[1]), *sys.path])
    names = ["--method", "smoothed-adjustment", "--backbone", "own_tiny"]
    options = [*names, "--set", "settings.smoothing=0.05", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "oltr.cli.main", "train", str(pack), *SHORT, *options],
        env=os.environ | {"PYTHONPATH": paths}, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["method"], report["backbone"]) == ("smoothed-adjustment", "own_tiny")
    return folder / "runs" / "tiny-smoothed-adjustment"


def test_training_by_command_line(run):
    config = yaml.safe_load((run / "run.yaml").read_text())["config"]
    assert config["settings"] == {"tau": 1.0, "smoothing": 0.05}


def test_the_method_is_listed(here, capsys):
    assert _guarded(["methods", "--json"]) == 0
    said = capsys.readouterr()
    listed = json.loads(said.out)["methods"]
    assert listed["smoothed-adjustment"]["summary"] == "Logit adjustment with smoothed labels"
    assert "oltr" in listed and "left out" not in said.err


def test_training_in_python(here, pack, tmp_path):
    changes = {"stage1.batch_size": 8, "stage2.batch_size": 8}
    names = ("smoothed-adjustment", "own_tiny")
    trained = Recognizer(*names, recipe="glyphs", epochs=(1, 1), changes=changes, verbose=False).fit(pack)
    trained.save(tmp_path / "kept")
    again = Recognizer.load(tmp_path / "kept", verbose=False)
    assert again.evaluate().to_json() == trained.evaluate().to_json()


def test_nothing_needs_to_be_installed(own_path, pack, tmp_path, monkeypatch, capsys):
    shutil.copy(EXAMPLE / "own_method.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    names = ["--method", "own_method:SmoothedAdjustment", "--backbone", "own_method:own_tiny"]
    assert _guarded(["train", str(pack), *SHORT, *names]) == 0
    run = tmp_path / "runs" / "tiny-SmoothedAdjustment"
    config = yaml.safe_load((run / "run.yaml").read_text())["config"]
    assert (config["method"], config["backbone"]) == (names[1], names[3])
    assert _guarded(["evaluate", str(run)]) == 0
    monkeypatch.chdir(run)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    monkeypatch.delitem(sys.modules, "own_method")
    capsys.readouterr()
    assert _guarded(["evaluate", str(run), "--source", str(pack)]) == 2
    assert "There is no module own_method" in capsys.readouterr().err


def test_evaluating_by_the_score(here, run, capsys):
    options = ["--score", "logit-margin", "--unknown-rate", "0.1", "--json"]
    assert _guarded(["evaluate", str(run), *options]) == 0
    assert json.loads(capsys.readouterr().out)["open"]["score"] == "logit-margin"
