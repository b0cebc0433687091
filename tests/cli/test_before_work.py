"""What is refused before any work: empty arguments, places that cannot be written, runs that cannot be."""

from __future__ import annotations

import json
import shlex

import pytest
import torch

from tests.cli.conftest import QUICK


@pytest.mark.parametrize(
    "words",
    [
        "train ''",
        "train ' '",
        "train --out '' PACK",
        "train PACK --weights=",
        "train PACK -- ''",
        "evaluate ''",
        "evaluate RUN --source ''",
        "compare RUN ''",
        "report ''",
        "explain RUN ''",
        "explain '' x.png",
        "suite glyphs --source ''",
        "data check ''",
        "data stats ''",
        "data pack '' --out x.pack",
        "data longtail '' --out x",
        "data curate glyphs --out ''",
    ],
)
def test_an_empty_argument(oltr, pack, trained, words):
    places = {"PACK": str(pack), "RUN": str(trained["plain"])}
    oltr(*(places.get(word, word) for word in shlex.split(words))).refused("was given an empty argument")


@pytest.mark.parametrize(
    "words",
    [
        "train PHOTOS --out FILE/run",
        "train PHOTOS --out FILE/run --resume",
        "train PHOTOS --out FILE/run --dry-run",
        "data pack PHOTOS --out FILE/x.pack",
        "data pack PHOTOS --out x.zip",
        "data longtail PHOTOS --out FILE/x",
        "data curate cifar100-lt --root PHOTOS --out FILE/x",
        "report RUN --out FILE/x.html",
    ],
)
def test_a_place_is_tried_before_the_images(oltr, photos, trained, tmp_path, monkeypatch, words):
    def too_early(*_, **__):
        raise AssertionError("work began before --out was tried")

    for place in ("sources._read_path", "curate.cifar_files._read"):
        monkeypatch.setattr(f"oltr.data.{place}", too_early)
    monkeypatch.setattr("oltr.report.page.write.measured_runs", too_early)
    (tmp_path / "file").write_text("precious")
    places = {"PHOTOS": photos, "RUN": trained["plain"]}
    arguments = [places.get(word, word.replace("FILE", str(tmp_path / "file"))) for word in words.split()]
    oltr(*arguments).refused("x.zip is no name" if "x.zip" in words else "cannot be written: Not a directory")


def test_a_dry_run_tells_what_it_checked(oltr, photos, tmp_path):
    command = ("train", photos, *QUICK, "--out", tmp_path / "run", "--dry-run")
    said = oltr(*command)
    assert said.code == 0, said.err
    assert (
        "# checked: the first image of each of 4 classes, the rejection rule (softmax), test_resnet"
        in said.out
    )
    assert json.loads(oltr(*command, "--json").out)["checked"][0] == "the first image of each of 4 classes"
    assert not (tmp_path / "run").exists()


def test_a_dry_run_finds_a_broken_first_image(oltr, tmp_path):
    from tests.helpers.pictures import class_folders

    folder = class_folders(tmp_path / "photos", {"cat": 5, "dog": 5})
    for file in (folder / "dog").iterdir():
        file.write_bytes(b"no image")
    oltr("train", folder, *QUICK, "--dry-run").refused("1 of 2 images cannot be read", "dog/")


def test_a_dry_run_finds_weights_of_another_network(oltr, pack, tmp_path):
    torch.save({"layer.weight": torch.zeros(3)}, tmp_path / "other.pth")
    (tmp_path / "cut.safetensors").write_bytes(b"cut")
    for name, reason in (
        ("other.pth", "does not fit this backbone"),
        ("cut.safetensors", "could not be read"),
    ):
        oltr("train", pack, *QUICK, "--dry-run", "--weights", tmp_path / name).refused(reason)


def test_a_dry_run_finds_a_rule_that_cannot_be(oltr, pack):
    command = ("train", pack, *QUICK, "--dry-run")
    oltr(*command, "--method", "plain", "--score", "reachability").refused("reachability")
    oltr(*command, "--unknown-rate", "1.5").refused("1.5")


def test_a_dry_run_finds_a_pack_that_is_too_small(oltr, photos, tmp_path):
    assert oltr("data", "pack", photos, "--size", "8", "--out", tmp_path / "small.pack").code == 0
    oltr("train", tmp_path / "small.pack", *QUICK, "--dry-run").refused("holds images of 8 px")
