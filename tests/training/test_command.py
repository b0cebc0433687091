"""The command of a configuration leads back to it."""

from __future__ import annotations

import dataclasses

import pytest
import yaml

from oltr.cli.main import _run
from oltr.recipes import recipe_names
from oltr.training.command import settings_changed, train_command
from oltr.training.configure import configure

CHANGES = (
    "stage1.lr=1e-5",
    "stage2.lr_milestones={1: 0.25, 2: 0.1}",
    "stage1.frozen=[backbone, memory]",
    "settings.memory=false",
    "data.mean=[0.1, 0.2, 0.3]",
    "decision.unknown_rate=null",
    "decision.threshold=0.3",
)


def configuration_of(words, monkeypatch):
    """What `oltr train` makes of the words, up to reading the images."""
    found = []

    class Enough(Exception):
        pass

    def read_source(source, root):
        raise Enough

    def configured(*values, **named):
        found.append(configure(*values, **named))
        return found[0]

    monkeypatch.setattr("oltr.training.configure.configure", configured)
    monkeypatch.setattr("oltr.data.sources.read_source", read_source)
    with pytest.raises(Enough):
        _run(words)
    return found[0]


@pytest.mark.parametrize(
    ("recipe", "method", "changes"),
    [
        ("glyphs", "oltr", ()),
        ("glyphs", "oltr", CHANGES),
        ("glyphs", "oltr", ("weights=pretrained", "backbone=resnet18", "precision=float32")),
        ("glyphs", "plain", ("stage2=null", "stage1.epochs=24")),
        ("cifar100-lt-100", "plain", ("stage2={epochs: 3, lr_milestones: {1: 0.5}}",)),
        ("cifar100-lt-100", "ldam-drw", ("stage2.lr_milestones={}",)),
    ],
)
def test_the_exact_configuration_arrives(monkeypatch, recipe, method, changes):
    config = configure(recipe, method, seed=3, changes=changes)
    words, exact = train_command(config, "-a source", root="a root", out="an out")
    assert exact and words[:2] == ["train", "-a source"] and words[-2:] == ["--out", "an out"]
    assert configuration_of(["train", "data", *words[2:]], monkeypatch) == config


@pytest.mark.parametrize("recipe", recipe_names())
def test_a_recipe_as_it_is_needs_no_changes(recipe):
    words, exact = train_command(configure(recipe, "oltr"), "data")
    scratch = ["--weights", "none"] if recipe == "photos" else []  # or weights at hand would be used
    assert exact and words == [
        *["train", "data", "--recipe", recipe, "--method", "oltr", "--seed", "0"],
        *scratch,
    ]


def test_weights_that_are_not_there_yet(tmp_path):
    config = dataclasses.replace(configure("glyphs", "plain"), weights=str(tmp_path / "model.safetensors"))
    words, exact = train_command(config, "data")
    assert exact and words[words.index("--weights") + 1] == config.weights


def test_the_seed_of_a_recipe_is_not_the_commands(tmp_path, monkeypatch):
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump({"base": "glyphs", "run": {"seed": 4, "weights": "pretrained"}}))
    config = configure(str(own), "plain", seed=0, changes=["weights=null"])
    words, exact = train_command(config, "data")
    assert exact and words[words.index("--seed") + 1] == "0" and "weights=null" in words
    assert configuration_of(words, monkeypatch) == config


def test_a_setting_that_the_configuration_lacks_is_told():
    config = configure("glyphs", "oltr")
    settings = {name: value for name, value in config.settings.items() if name != "memory"}
    assert not train_command(dataclasses.replace(config, settings=settings), "data")[1]


def test_changes_are_read_back_as_they_were():
    base = {"seed": 0, "stage1": {"lr": 0.1, "lr_milestones": {3: 0.1}}, "stage2": {"epochs": 3}}
    wanted = {"seed": 0, "stage1": {"lr": 1e-05, "lr_milestones": {4: 0.5}}, "stage2": None}
    assert settings_changed(base, wanted) == [
        "stage1.lr=1.0e-05",
        "stage1.lr_milestones={4: 0.5}",
        "stage2=null",
    ]
