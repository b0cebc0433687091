"""Backbones of other packages, and names of the form package.module:attribute."""

from __future__ import annotations

import sys

import pytest

from oltr.errors import UserError
from oltr.nn.backbone import Backbone, check_backbone
from oltr.plugins import is_reference, load_backbones
from tests.helpers.installed import installed

NETWORK = """
import timm
from timm.models import register_model

@register_model
def {name}(pretrained=False, **kwargs):
    return timm.create_model("test_resnet", num_classes=0, global_pool="")

def not_registered():
    pass
"""


@pytest.mark.parametrize("name", ["a:b", "a.b_2.c:D", "a.b:C.d", "ünï.code:Ä"])
def test_names_of_objects(name):
    assert is_reference(name)


@pytest.mark.parametrize(
    "name",
    [
        "oltr",
        "a.b",
        "a:",
        ":b",
        "2a:b",
        "a.2:b",
        "C:/photos",
        "C:\\photos",
        "a/b:c",
        "a b:c",
        "hf-hub:timm/x",
        "a:b:c",
    ],
)
def test_other_names(name):
    assert not is_reference(name)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """One package with a network, and one that fails."""
    good = {"good_nets.py": NETWORK.format(name="plugged_net")}
    installed(tmp_path, "good-nets", good, {"oltr.backbones": {"any name": "good_nets"}})
    bad = {"bad_nets.py": "raise ImportError('needs a compiler')"}
    installed(tmp_path, "bad-nets", bad, {"oltr.backbones": {"bad_net": "bad_nets"}})
    monkeypatch.syspath_prepend(tmp_path)
    load_backbones.cache_clear()
    yield
    load_backbones.cache_clear()


def test_a_backbone_of_another_package(packages, capsys):
    check_backbone("resnet18", None)
    assert "good_nets" not in sys.modules  # nothing is loaded for networks that timm has
    assert Backbone("plugged_net", 32).channels > 0
    told = capsys.readouterr().err
    assert told.count("warning") == 1 and "the backbone 'bad_net' of bad-nets (bad_nets) is left out" in told
    with pytest.raises(UserError, match=r"(?s)plug-in of backbone 'bad_net'.*ImportError: needs a compiler"):
        check_backbone("bad_net", None)
    with pytest.raises(UserError, match=r"(?s)no backbone called 'plugged_nte'.*did you mean plugged_net"):
        check_backbone("plugged_nte", None)


def test_a_backbone_named_by_its_module(tmp_path, monkeypatch):
    (tmp_path / "nets_of_mine.py").write_text(NETWORK.format(name="net_of_mine"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert Backbone("nets_of_mine:net_of_mine", 32).channels == Backbone("test_resnet", 32).channels
    for name, said in [
        ("nets_of_mine:not_registered", r"no backbone.*timm knows no model 'not_registered'"),
        ("nets_of_mine:gone", "no attribute 'gone'"),
        ("no_nets:net", "There is no module no_nets"),
    ]:
        with pytest.raises(UserError, match=f"(?s){said}"):
            check_backbone(name, None)
    with pytest.raises(UserError, match="no pretrained weights for nets_of_mine:net_of_mine"):
        check_backbone("nets_of_mine:net_of_mine", "pretrained")
