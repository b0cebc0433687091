"""`--group-by` and `--folds` as they are typed."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from oltr import Recognizer
from oltr.data.sources import read_source
from oltr.runs.trained_run import TrainedRun
from tests.cli.conftest import QUICK
from tests.helpers.pictures import class_folders, write_picture


@pytest.fixture
def sites(tmp_path):
    """A manifest without splits: two classes, twelve sites of two images each, two unknown images."""
    rows = []
    for number in range(24):
        label = "ab"[number % 2]
        write_picture(tmp_path / "photos" / label / f"{number}.png", 16)
        rows.append((f"{label}/{number}.png", label, f"site {number // 2}"))
    for number in (24, 25):
        write_picture(tmp_path / "photos" / "odd" / f"{number}.png", 16)
        rows.append((f"odd/{number}.png", "", "site 1"))
    file = tmp_path / "photos" / "photos.csv"
    pd.DataFrame(rows, columns=["path", "label", "site"]).to_csv(file, index=False)
    return file


def test_train_by_group_and_open_the_run_again(oltr, sites, tmp_path):
    said = oltr("train", sites, *QUICK, "--group-by", "site", "--out", tmp_path / "run")
    assert said.code == 0 and "by site: 12 groups, each in one split" in said.err
    kept = json.loads((tmp_path / "run" / "splits.json").read_text())
    site = read_source(sites).table.set_index("path")["site"]
    seen = [set(site[kept[split]]) for split in ("train", "val", "test")]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2]) and len(kept["open"]) == 2
    run = TrainedRun(tmp_path / "run")
    assert sorted(run.manifest.rows("test")["path"]) == sorted(kept["test"])
    # Its own source again is measured on its own test images, not on all images of a folder without splits.
    evaluated = oltr("evaluate", tmp_path / "run", "--source", sites, "--json")
    assert evaluated.code == 0, evaluated.err
    assert json.loads(evaluated.out)["closed"] == run.report["closed"]


def test_check_and_stats_by_group(oltr, sites):
    said = oltr("data", "check", sites, "--group-by", "site", "--json")
    assert said.code == 0 and "by site" in said.err, said.err
    facts = json.loads(oltr("data", "stats", sites, "--group-by", "site", "--json").out)
    assert facts["images"]["train"] % 2 == facts["images"]["test"] % 2 == 0
    table = pd.read_csv(sites).assign(split=["test", *["train"] * 2, "test", *["train"] * 20, "open", "open"])
    table.to_csv(sites, index=False)
    said = oltr("data", "check", sites, "--group-by", "site", "--json")
    assert "12 groups of site, 2 in more than one split" in said.err
    (problem,) = json.loads(said.out)["problems"]
    assert (
        said.code == 2
        and problem["kind"] == "groups_across_splits"
        and problem["items"]
        == [
            "site 0 (train, test)",
            "site 1 (train, test)",
        ]
    )
    oltr("train", sites, *QUICK, "--group-by", "site").refused(
        "2 groups of site in more than one split", "--folds 5"
    )
    oltr("train", sites, *QUICK, "--group-by", "camera").refused("'camera'", "the columns site")


def test_folds(oltr, sites, tmp_path):
    out = tmp_path / "folds"
    words = ("train", sites, *QUICK, "--folds", 3, "--group-by", "site", "--out", out)
    plan = json.loads(oltr(*words, "--dry-run", "--json").out)
    assert [fold["test"] for fold in plan["folds"]] == [8, 8, 8] and not out.exists()
    said = oltr(*words)
    assert said.code == 0 and "spread" in said.out and "fold 3 of 3" in said.err, said.err
    assert "3 folds of 24 images by site" in said.err and "Split made for you" not in said.err
    assert sorted(path.name for path in out.iterdir()) == ["fold-1", "fold-2", "fold-3", "folds.json"]
    again = oltr(*words, "--resume", "--json")
    assert json.loads(again.out) == json.loads((out / "folds.json").read_text())
    oltr(*words).refused("holds folds already", "--resume")
    oltr("train", sites, *QUICK, "--folds", 1, "--out", tmp_path / "new").refused("--folds 1")


def test_the_recogniser_by_group(tmp_path):
    for label in "ab":
        class_folders(tmp_path / "photos" / label, {f"site {number}": 3 for number in range(6)}, size=16)
    changes = {"stage1.batch_size": 8}
    recognizer = Recognizer(
        "plain",
        "test_resnet",
        recipe="glyphs",
        epochs=(1,),
        changes=changes,
        group_by="folder",
        verbose=False,
    ).fit(tmp_path / "photos")
    table = recognizer.run_.manifest.table
    assert (table["split"].groupby(table["path"].str.split("/").str[1]).nunique() == 1).all()
