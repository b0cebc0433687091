"""`oltr data ...`: facts on standard output, notes beside it, files whole."""

from __future__ import annotations

import json
import shutil

from oltr.config import Frame
from oltr.data.pack import open_pack
from tests.helpers.pictures import class_folders, write_picture


def test_check_of_sound_data(oltr, photos):
    said = oltr("data", "check", photos)
    assert said.code == 0 and said.out == "25 images opened: no problems, 0 warnings.\n"
    assert "Split made for you" in said.err


def test_check_says_each_thing_once(oltr, tmp_path):
    said = oltr("data", "check", class_folders(tmp_path / "photos", {"cat": 5, "dog": 5, "pika": 1}, size=16))
    assert said.code == 0 and "Split made for you" in said.err
    assert (said.out + said.err).count("single training image: pika") == 1
    said = oltr("data", "check", class_folders(tmp_path / "alone", {"cat": 5}, size=16))
    assert said.code == 2 and "1 problem" in said.out
    assert (said.out + said.err).count("only one class") == 1


def test_check_of_a_pack_looks_at_its_pixels(oltr, pack):
    said = oltr("data", "check", pack, "--json")
    assert said.code == 0 and json.loads(said.out) == {
        "images": 118,
        "problems": [],
        "warnings": [],
        "near_duplicates": [],
    }


def test_check_finds_the_same_picture_in_two_splits(oltr, tmp_path):
    source = class_folders(tmp_path / "train", {"a": 3, "b": 3}, size=16).parent
    class_folders(source / "test", {"a": 1, "b": 1}, size=16)
    shutil.copy(source / "train" / "a" / "0.png", source / "test" / "a" / "copy.png")
    said = oltr("data", "check", source, "--json")
    found = json.loads(said.out)
    assert said.code == 2 and [problem["kind"] for problem in found["problems"]] == [
        "duplicates_across_splits"
    ]


def test_stats(oltr, pack, tmp_path):
    said = oltr("data", "stats", pack)
    assert said.code == 0 and "classes  6, 24 to 4" in said.out and "█" in said.out
    said = oltr("data", "stats", pack, "--json", "--figure", tmp_path / "classes.svg")
    facts = json.loads(said.out)
    assert facts["images"] == {"train": 64, "val": 18, "test": 24, "open": 12}
    assert facts["classes"] == 6 and facts["shots"] == {"many": 0, "medium": 1, "few": 5}
    assert [path.name for path in tmp_path.iterdir()] == ["classes.svg"]


def test_stats_tell_how_the_split_was_made(oltr, photos):
    said = oltr("data", "stats", photos, "--json")
    assert "Split made for you" in said.err and json.loads(said.out)["images"]["open"] == 4


def test_stats_of_counts(oltr, tmp_path):
    (tmp_path / "counts.json").write_text("[200, 100, 20, 3]")
    command = ("data", "stats", "--counts", tmp_path / "counts.json", "--json")
    assert json.loads(oltr(*command).out)["shots"] == {"many": 1, "medium": 2, "few": 1}
    assert json.loads(oltr(*command, "--shots", "released").out)["shots"] == {
        "many": 2,
        "medium": 0,
        "few": 2,
    }


def test_pack(oltr, photos, tmp_path):
    said = oltr("data", "pack", photos, "--size", "16", "--out", tmp_path / "new" / "p.pack")
    assert said.code == 0 and "25 images of 16 px" in said.out
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["p.pack"]
    source, packed = (
        json.loads(oltr("data", "stats", at, "--json").out) for at in (photos, tmp_path / "new" / "p.pack")
    )
    assert source == packed
    said = oltr("data", "pack", photos, "--size", "16", "--out", tmp_path / "new" / "p.pack", "--json")
    assert json.loads(said.out)["images"] == 25
    assert json.loads(said.out)["resize"] == open_pack(tmp_path / "new" / "p.pack").frame.resize == "stretch"
    oltr("data", "pack", photos, "--size", "16", "--resize", "short-side", "--out", tmp_path / "s.pack")
    assert open_pack(tmp_path / "s.pack").frame == Frame(16, "short-side")


def test_a_pack_that_cannot_be_made_keeps_the_one_before(oltr, photos, tmp_path):
    mine = shutil.copytree(photos, tmp_path / "photos")
    command = ("data", "pack", mine, "--size", "16", "--out", tmp_path / "p.pack")
    assert oltr(*command).code == 0
    before = (tmp_path / "p.pack").read_bytes()
    (mine / "cat" / "0.png").write_bytes(b"")
    oltr(*command).refused("0.png")
    assert (tmp_path / "p.pack").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.pack", "photos"]


def test_longtail(oltr, photos, tmp_path):
    command = (
        "data",
        "longtail",
        photos,
        "--out",
        tmp_path / "lt",
        "--imbalance",
        "3",
        "--min",
        "1",
        "--open",
        "1",
    )
    said = oltr(*command, "--json")
    facts = json.loads(said.out)
    assert said.code == 0 and facts["classes"] == 2 and facts["images"]["open"] >= 4
    assert oltr(*command).code == 0  # over its own earlier result
    assert oltr("data", "check", tmp_path / "lt").code == 0
    write_picture(tmp_path / "lt" / "mine.png")
    oltr(*command).refused("not empty", "mine.png")


def test_curate_glyphs(oltr, tmp_path, few_glyphs):
    command = ("data", "curate", "glyphs", "--size", "16", "--out", tmp_path / "g")
    said = oltr(*command, "--pack", "--verify", "--json")
    facts = json.loads(said.out)
    assert said.code == 0 and facts["classes"] == 6 and "images opened: no problems" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "g.pack"]
    assert oltr("data", "check", tmp_path / "g").code == 0
    assert "written to" in oltr(*command).out
