import json
import shutil

import pandas as pd
import pytest

from oltr.data.check import check
from oltr.data.manifest import Manifest
from oltr.data.records import record_path
from oltr.data.sources import read_source
from tests.helpers.pictures import class_folders, write_picture
from tests.helpers.records import face, record, write_records


def kinds(findings):
    return {finding.kind: finding for finding in findings}


def clean_set(folder):
    for split, number in [("train", 4), ("val", 2), ("test", 2)]:
        class_folders(folder / split, {"a": number, "b": number}, size=20)
    return folder


def test_a_clean_set_has_nothing_to_report(tmp_path):
    calls = []
    report = check(read_source(clean_set(tmp_path)), progress=lambda done, total: calls.append((done, total)))
    assert (report.problems, report.warnings) == ((), ())
    assert report.images == 16
    assert calls[-1] == (16, 16)
    assert "16 images opened: no problems" in report.lines()[-1]


def test_broken_files_are_named_with_the_reason(tmp_path):
    clean_set(tmp_path)
    manifest = read_source(tmp_path)
    (tmp_path / "train/a/0.png").unlink()
    (tmp_path / "train/a/1.png").write_bytes(b"")
    cut = tmp_path / "test/b/0.png"
    cut.write_bytes(cut.read_bytes()[:-100])
    found = kinds(check(manifest).problems)
    assert found["missing"].items == ("train/a/0.png",)
    assert len(found["unreadable"].items) == 2
    assert any(item.startswith("train/a/1.png (") and "0 bytes" in item for item in found["unreadable"].items)


def test_images_in_a_record_file(tmp_path):
    offsets = write_records(tmp_path / "train.rec", {key: record(0, face(str(key % 3))) for key in range(4)})
    paths = [record_path("train.rec", offset) for offset in offsets.values()]
    paths += [record_path("train.rec", 4), record_path("gone.rec", 0)]
    table = pd.DataFrame({"path": paths, "label": list("aabbab"), "split": "train"})
    report = check(Manifest.build(table, tmp_path))
    found = kinds(report.problems)
    assert found["missing"].items == ("gone.rec/000000000000.jpg",)
    assert len(found["unreadable"].items) == 1
    assert (
        found["unreadable"]
        .items[0]
        .startswith("train.rec/000000000004.jpg (no sound record begins at byte 4")
    )
    assert kinds(report.warnings)["duplicates_within_split"].items == (f"{paths[0]} = {paths[3]}",)


def test_copies_across_and_within_splits(tmp_path):
    clean_set(tmp_path)
    shutil.copy(tmp_path / "train/a/0.png", tmp_path / "test/a/leak.png")
    shutil.copy(tmp_path / "train/b/1.png", tmp_path / "train/b/copy.png")
    shutil.copy(tmp_path / "train/b/2.png", tmp_path / "train/a/other label.png")
    report = check(read_source(tmp_path))
    across = kinds(report.problems)["duplicates_across_splits"]
    assert across.items == ("train/a/0.png (train) = test/a/leak.png (test)",)
    warned = kinds(report.warnings)
    assert len(warned["duplicates_within_split"].items) == 2
    assert len(warned["conflicting_labels"].items) == 1


def test_one_image_under_two_labels_is_told_across_splits_too(tmp_path):
    clean_set(tmp_path)
    shutil.copy(tmp_path / "train/a/0.png", tmp_path / "test/b/twin.png")
    report = check(read_source(tmp_path))
    assert list(kinds(report.problems)) == ["duplicates_across_splits"]
    assert kinds(report.warnings)["conflicting_labels"].items == ("train/a/0.png (a) = test/b/twin.png (b)",)


@pytest.mark.parametrize(("split", "problems"), [("train", ["one_class"]), ("test", [])])
def test_one_class_cannot_be_trained_but_evaluated(tmp_path, split, problems):
    class_folders(tmp_path / split, {"a": 3}, size=20)
    found = kinds(check(read_source(tmp_path)).problems)
    assert list(found) == problems
    assert all(finding.items == ("a",) for finding in found.values())


def test_thin_empty_and_untested_classes(tmp_path):
    clean_set(tmp_path)
    class_folders(tmp_path / "train", {"single": 1, "gone": 1}, size=20)
    class_folders(tmp_path / "test", {"single": 1}, size=20)
    manifest = read_source(tmp_path)
    (tmp_path / "train/gone/0.png").write_bytes(b"")
    report = check(manifest)
    assert kinds(report.problems)["empty_classes"].items == ("gone",)
    warned = kinds(report.warnings)
    assert warned["single_image_classes"].items == ("single",)
    assert warned["untested_classes"].items == ("gone",)


def test_small_images_and_missing_splits(tmp_path):
    class_folders(tmp_path / "train", {"a": 2, "b": 2}, size=20)
    write_picture(tmp_path / "train/a/tiny.png", size=3)
    warned = kinds(check(read_source(tmp_path)).warnings)
    assert warned["small_images"].items == ("train/a/tiny.png",)
    assert "no_test_images" in warned


def test_a_wrong_root_is_suspected_when_every_file_is_missing(tmp_path):
    table = pd.DataFrame({"path": ["1.png", "2.png"], "label": ["a", "b"], "split": ["train", "train"]})
    report = check(Manifest.build(table, tmp_path))
    assert "root" in kinds(report.problems)["missing"].message


def test_json_holds_everything(tmp_path):
    clean_set(tmp_path)
    (tmp_path / "val/a/0.png").write_bytes(b"")
    written = json.loads(json.dumps(check(read_source(tmp_path)).to_json()))
    assert written["images"] == 16
    assert written["problems"][0]["kind"] == "unreadable"
    assert written["problems"][0]["items"][0].startswith("val/a/0.png")
