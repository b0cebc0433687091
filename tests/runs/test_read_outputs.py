"""Images that a run reads again: its own wherever it is asked from, and those of other sources."""

import pytest

from oltr.console import Console
from oltr.data.sources import read_source
from oltr.runs.read_outputs import outputs_on, own_outputs, source_to_measure
from oltr.runs.train_run import train_run
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from tests.helpers.pictures import class_folders
from tests.helpers.tiny import tiny_config

QUIET = Console(quiet=True)


def trained(out, source, root=None):
    train_run(
        tiny_config("plain", (1, 1)), read_source(source, root), out, QUIET, TrainOptions(), str(source)
    )
    return RunFolder(out)


@pytest.fixture
def photos(tmp_path):
    class_folders(tmp_path / "photos", {"a": 10, "b": 10}, 32)
    return tmp_path / "photos"


def test_a_run_finds_its_images_from_any_folder(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flat = trained(tmp_path / "flat", "photos")
    (tmp_path / "lists").mkdir()
    read_source("photos").write(tmp_path / "lists" / "all.csv", record_root=False)
    listed = trained(tmp_path / "listed", "lists/all.csv", root="photos")
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    for folder in (flat, listed):
        assert len(own_outputs(folder, ["train"], QUIET)["train"]) == folder.run()["data"]["images"]["train"]
    assert "root" not in flat.run() and listed.run()["root"] == str(photos)


def test_of_a_folder_without_splits_all_images_are_measured(photos, tmp_path):
    folder = trained(tmp_path / "run", photos)
    own = source_to_measure(folder, photos)
    assert own.sizes()["test"] == folder.run()["data"]["images"]["test"] < 20
    class_folders(tmp_path / "new", {"a": 1, "b": 4}, 32)
    manifest = source_to_measure(folder, tmp_path / "new")
    assert manifest.sizes() == {"train": 0, "val": 0, "test": 5, "open": 0}
    assert any("all for testing" in note for note in manifest.notes)
    outputs = outputs_on(folder, manifest, QUIET)
    assert len(outputs["test"]) == 5
    assert len(outputs["val"]) == folder.run()["data"]["images"]["val"]  # the run's own, for a threshold
