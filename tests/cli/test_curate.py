"""`oltr data curate`: the names it knows, what it prints, and bad input."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from oltr.cli import curate
from oltr.config import Frame
from oltr.data.curate import CURATORS
from oltr.data.pack import open_pack
from tests.helpers.pictures import class_folders

LISTED = [f"train/n0000000{c}/{n}.png {c}" for c in (1, 2) for n in range(3)]


@pytest.fixture
def images(tmp_path):
    return class_folders(tmp_path / "images" / "train", {"n00000001": 3, "n00000002": 3}).parent


def lists(folder, **splits):
    folder.mkdir()
    for split, lines in splits.items():
        (folder / f"X_{split}.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_the_help_names_every_benchmark():
    told = re.search(r"name: (.*?)\n +out:", curate.curate.__doc__, re.DOTALL)[1]
    assert set(re.findall(r"[a-z0-9-]+[0-9a-z]", told.replace(" or ", " "))) == set(CURATORS)


def test_facts_stand_beside_the_published_ones(oltr, images, tmp_path):
    folder = lists(tmp_path / "lists", train=LISTED[:4], test=LISTED[4:])
    command = (
        "data",
        "curate",
        "imagenet-lt",
        "--root",
        images,
        "--lists",
        folder,
        "--out",
        tmp_path / "out",
    )
    said = oltr(*command)
    assert said.code == 0, said.err
    assert re.search(r"training images +4 +\(published: 115,846\)", said.out)
    facts = json.loads(oltr(*command, "--json").out)
    assert facts["images"]["train"] == 4 and facts["published"]["images"]["train"] == 115_846


def test_pack_and_verify(oltr, images, tmp_path):
    folder = lists(tmp_path / "lists", train=LISTED)
    options = ("--lists", folder, "--out", tmp_path / "out", "--pack", "--size", "16", "--verify")
    said = oltr("data", "curate", "imagenet-lt", "--root", images, *options)
    assert said.code == 0 and "6 images opened: no problems" in said.err
    assert json.loads(oltr("data", "stats", tmp_path / "out.pack", "--json").out)["images"]["train"] == 6
    assert open_pack(tmp_path / "out.pack").frame == Frame(16, "short-side")  # as the recipe wants it
    (images / "train" / "n00000001" / "0.png").write_bytes(b"broken")
    options = (*options[:4], "--verify")
    said = oltr("data", "curate", "imagenet-lt", "--root", images, *options)
    assert said.code == 2 and "not all of its images are sound" in said.err


@pytest.mark.parametrize(
    ("splits", "words"),
    [
        (
            {"train": [*LISTED, *(f"train/n3/{n}.png 3" for n in range(7))]},
            "Not there: 7 of 13 listed files",
        ),
        ({"train": LISTED, "test": LISTED[:2]}, "2 paths in more than one split"),
        ({"train": LISTED[:3], "test": LISTED[3:]}, "1 class that training never saw: 2"),
        ({"train": ["train/n00000001/0.png"]}, "has no label"),
        ({}, "holds no list"),
    ],
)
def test_bad_lists(oltr, images, tmp_path, splits, words):
    options = ("--root", images, "--lists", lists(tmp_path / "lists", **splits), "--out", tmp_path / "out")
    oltr("data", "curate", "imagenet-lt", *options).refused(words)
    assert not (tmp_path / "out").exists()


def test_the_pack_lies_beside_the_folder_whatever_its_name(oltr, images, tmp_path, monkeypatch):
    folder = lists(tmp_path / "lists", train=LISTED)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for out, packed in {"v1.2": "here/v1.2.pack", "~/set": "home/set.pack", ".": "here.pack"}.items():
        if out == ".":
            (tmp_path / "here" / "v1.2.pack").unlink()
            shutil.rmtree(tmp_path / "here" / "v1.2")
        options = ("--root", images, "--lists", folder, "--out", out, "--pack", "--size", "16")
        assert oltr("data", "curate", "imagenet-lt", *options).code == 0
        assert (tmp_path / packed).is_file()
    assert not (tmp_path / "here" / "~").exists()


def test_a_pack_that_fails_is_told_from_the_set_that_does_not(oltr, images, tmp_path):
    (images / "train" / "n00000001" / "0.png").write_bytes(b"broken")
    options = (
        "--root",
        images,
        "--lists",
        lists(tmp_path / "lists", train=LISTED),
        "--out",
        tmp_path / "out",
    )
    said = oltr("data", "curate", "imagenet-lt", *options, "--pack")
    said.refused("out was written, its pack was not", "1 of 6 images cannot be read")
    assert (tmp_path / "out" / "manifest.csv").is_file() and not (tmp_path / "out.pack").exists()


def test_a_long_tail_is_not_written_into_its_source(oltr, images):
    source = images / "train"
    said = oltr("data", "longtail", source, "--min", "1", "--out", source / "lt")
    said.refused("lies in the source", "beside it")
    assert not (source / "lt").exists()


def test_bad_options(oltr, images, tmp_path):
    out = ("--out", tmp_path / "out")
    for options in (("--seed", "-1"), ("--size", "0"), ("--size", "100000")):
        oltr("data", "curate", "ms1m-lt", "--root", images, *options, *out).refused(options[1])
    oltr("data", "curate", "imagenet-tl", *out).refused("did you mean imagenet-lt")
    oltr("data", "curate", "imagenet-lt", *out).refused("--root")
    oltr("data", "curate", "imagenet-lt", "--root", images, *out).refused(
        "Not enough images in 2 classes", "(has 3, needs 1280)", "oltr data longtail"
    )
    oltr("data", "curate", "places-lt", "--imbalance", "10", *out).refused("takes no --imbalance")
    oltr("data", "curate", "imagenet-lt", "--index", tmp_path / "none", *out).refused("cannot be read")
    assert not (tmp_path / "out").exists()
