"""What a run collected, handed on to the next."""

from __future__ import annotations

import shutil
import unicodedata

import pytest

from oltr import UserError
from oltr.data.sources import read_source
from oltr.openworld.add_class import add_class
from oltr.openworld.change_classes import rename_class
from oltr.openworld.collected_data import collected_manifest
from oltr.runs.trained_run import TrainedRun
from oltr.training.run_folder import RunFolder
from tests.helpers.pictures import write_picture


def handed_on(run, tmp_path, name="next"):
    return read_source(collected_manifest(run, RunFolder(tmp_path / name)))


@pytest.fixture
def dozen(tmp_path):
    return [write_picture(tmp_path / f"new{i:02}.png", size=24) for i in range(12)]


def test_every_fifth_of_enough_images_is_for_validation(run, dozen, strangers, tmp_path):
    add_class(run, "many", dozen)
    add_class(run, "few", next(iter(strangers.values()))[:9])
    table = handed_on(run, tmp_path).table
    assert table[table["label"] == "many"]["split"].tolist() == (["train"] * 4 + ["val"]) * 2 + ["train"] * 2
    assert set(table[table["label"] == "few"]["split"]) == {"train"}


def test_no_image_is_for_validation_where_none_is(run, dozen, tmp_path):
    add_class(run, "many", dozen)
    own = run.own_data.table
    run.own_data = type(run.own_data).build(own[own["split"] != "val"], run.own_data.root)
    run.__dict__.pop("manifest", None)
    assert handed_on(run, tmp_path).sizes()["val"] == 0


def test_the_images_lie_in_the_new_folder(run, dozen, tmp_path):
    add_class(run, "many", dozen)
    manifest = handed_on(run, tmp_path)
    shutil.rmtree(run.path)
    rows = manifest.table[manifest.table["label"] == "many"]
    assert [(manifest.root / path).read_bytes() for path in rows["path"]] == [f.read_bytes() for f in dozen]
    assert all(path.startswith(str(tmp_path / "next")) for path in rows["path"])


def test_without_links_they_are_copied(run, dozen, tmp_path, monkeypatch):
    def refused(*_):
        raise OSError("no links")

    monkeypatch.setattr("os.link", refused)
    add_class(run, "many", dozen[:2])
    manifest = handed_on(run, tmp_path)
    assert sum(path.is_file() for path in manifest.paths("train")) == manifest.sizes()["train"]


def test_a_collected_file_that_is_gone_is_told(run, dozen, tmp_path):
    add_class(run, "many", dozen[:2])
    (run.path / run.changes.added[0].files[1]).unlink()
    with pytest.raises(UserError, match="is missing"):
        handed_on(run, tmp_path)


def test_an_image_added_twice_is_what_it_was_called_last(run, dozen, tmp_path):
    add_class(run, "one", dozen[:3])
    add_class(run, "other", dozen[2:5])
    counts = handed_on(run, tmp_path).rows("train")["label"].value_counts()
    assert counts["one"] == 2 and counts["other"] == 3


def test_open_images_are_found_whatever_the_spelling(run, strangers, dozen, tmp_path):
    name = next(iter(strangers))
    add_class(run, "x", dozen[:2])
    rename_class(run, "x", unicodedata.normalize("NFD", name.upper()))
    table = handed_on(run, tmp_path).table
    assert (table[table["label"] == name.upper()]["split"] == "test").sum() == len(strangers[name])
    assert name not in set(table["label"]) and TrainedRun(run.path).class_names[-1] == name.upper()
