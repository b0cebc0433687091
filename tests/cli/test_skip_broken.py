"""`--skip-broken`: train, pack and evaluate without the images that cannot be read."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

from oltr.data.broken import read_skipped
from oltr.data.pack import open_pack
from oltr.runs.trained_run import TrainedRun
from tests.cli.conftest import QUICK
from tests.helpers.pictures import class_folders

BROKEN = ("cat/1.png", "dog/0.png")


@pytest.fixture
def damaged(tmp_path):
    """A flat folder of which two images cannot be read."""
    folder = class_folders(tmp_path / "photos", {"cat": 9, "dog": 8, "unknown": 3}, size=16)
    for name in BROKEN:
        (folder / name).write_bytes((folder / name).read_bytes()[:60])
    return folder


@pytest.fixture
def run(oltr, damaged, tmp_path):
    """A run that was trained on the rest."""
    said = oltr("train", damaged, *QUICK, "--method", "plain", "--out", tmp_path / "run", "--skip-broken")
    assert said.code == 0, said.err
    assert "2 images cannot be read" in said.err and "cat/1.png: " in said.err
    return tmp_path / "run"


def test_without_it_the_option_is_named_and_nothing_is_left(oltr, damaged, tmp_path):
    said = oltr("train", damaged, *QUICK, "--out", tmp_path / "run")
    said.refused("2 of 20 images cannot be read", *BROKEN, "--skip-broken")
    assert not (tmp_path / "run").exists()


def test_a_run_lists_what_it_skipped_and_finds_its_data_again(run, oltr):
    assert [path for path, _ in read_skipped(run / "skipped.txt")] == list(BROKEN)
    assert sum(yaml.safe_load((run / "run.yaml").read_text())["data"]["images"].values()) == 18
    assert set(TrainedRun(run).manifest.table["path"]).isdisjoint(BROKEN)
    said = oltr("evaluate", run, "--score", "energy", "--unknown-rate", "0.2", "--json")
    assert said.code == 0, said.err


def test_the_run_knows_its_source_as_its_own(run, damaged, oltr):
    assert TrainedRun(run).on(damaged).other_is_own
    assert (
        oltr("train", damaged, *QUICK, "--method", "plain", "--out", run, "--skip-broken", "--resume").code
        == 0
    )


def test_a_run_without_broken_images_has_no_list(oltr, photos, tmp_path):
    assert oltr("train", photos, *QUICK, "--out", tmp_path / "run", "--skip-broken").code == 0
    assert not (tmp_path / "run" / "skipped.txt").exists()


def test_a_pack(oltr, damaged, tmp_path):
    out = tmp_path / "x.pack"
    oltr("data", "pack", damaged, "--size", 8, "--out", out).refused("2 of 20 images", "--skip-broken")
    assert not out.exists()
    said = oltr("data", "pack", damaged, "--size", 8, "--out", out, "--skip-broken", "--json")
    assert said.code == 0 and json.loads(said.out)["images"] == 18
    assert len(open_pack(out).images) == 18
    assert [path for path, _ in read_skipped(tmp_path / "x.skipped.txt")] == list(BROKEN)


def test_evaluating_on_other_data(oltr, run, damaged, tmp_path):
    other = shutil.copytree(damaged, tmp_path / "other", ignore=shutil.ignore_patterns("8.png"))
    ask = ("evaluate", run, "--source", other)
    oltr(*ask).refused("cannot be read", "--skip-broken")
    said = oltr(*ask, "--skip-broken", "--json")
    assert said.code == 0 and "2 images cannot be read" in said.err
    assert [path for path, _ in read_skipped(run / "skipped-evaluate.txt")] == list(BROKEN)
    oltr("evaluate", run, "--skip-broken").refused("--skip-broken was given without a --source")


def test_images_too_many_for_memory_are_tried_before_training(oltr, damaged, tmp_path, monkeypatch):
    monkeypatch.setattr("oltr.data.image_access.KEPT_IN_MEMORY", 0)
    command = ("train", damaged, *QUICK, "--method", "plain", "--workers", 0, "--out", tmp_path / "run")
    said = oltr(*command)
    said.refused("2 of 20 images cannot be read", "--skip-broken")
    assert "images from" not in said.err  # training had not begun
    said = oltr(*command, "--skip-broken")
    assert said.code == 0 and "images from files" in said.err
