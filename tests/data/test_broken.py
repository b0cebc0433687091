"""Images that cannot be read: all found, refused together or left out."""

import pandas as pd
import pytest

from oltr.data.broken import (
    Broken,
    check_readable,
    drop_broken,
    find_broken,
    read_skipped,
    without,
    write_skipped,
)
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack
from oltr.data.sources import read_source
from oltr.errors import UserError
from tests.helpers.pictures import class_folders, picture, write_picture


@pytest.fixture
def photos(tmp_path):
    return class_folders(tmp_path / "photos", {"a": 10, "b": 10, "c": 5})


def broken_ones(photos, *names):
    for name in names:
        (photos / name).write_bytes((photos / name).read_bytes()[:-40])


def test_nothing_broken(photos):
    manifest = read_source(photos)
    assert manifest.skipped is None
    kept = drop_broken(manifest)
    assert kept.skipped == () and kept.table is manifest.table and kept.notes == manifest.notes


def test_truncated_empty_missing_and_foreign_files_are_left_out(photos):
    manifest = read_source(photos)
    write_picture(photos / "a" / "0.png", size=64)
    broken_ones(photos, "a/0.png")
    (photos / "a" / "1.png").write_bytes(b"")
    (photos / "b" / "2.png").unlink()
    (photos / "c" / "3.png").write_text("no image")
    seen = []
    kept = drop_broken(manifest, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (25, 25)
    reasons = dict(kept.skipped)
    assert list(reasons) == ["a/0.png", "a/1.png", "b/2.png", "c/3.png"]
    assert "0 bytes" in reasons["a/1.png"] and "no such file" in reasons["b/2.png"]
    left = manifest.table[~manifest.table["path"].isin(reasons)]
    pd.testing.assert_frame_equal(kept.table, left.reset_index(drop=True))
    assert kept.classes == manifest.classes and kept.split_made
    assert check_readable(kept) is None
    (note,) = (note for note in kept.notes if "cannot be read" in note)
    assert note.startswith("4 images cannot be read") and "c/3.png: it is not an image" in note


def test_without_the_option_all_are_counted_and_the_option_is_named(photos):
    manifest = read_source(photos)
    for path in manifest.table["path"][:14]:
        (photos / path).write_bytes(b"no image")
    with pytest.raises(UserError, match="14 of 25 images cannot be read") as refused:
        check_readable(manifest)
    assert refused.value.why.count("it is not an image") == 10 and "and 4 more" in refused.value.why
    assert "--skip-broken" in refused.value.try_this


def test_files_that_are_all_missing_ask_for_the_root(photos, tmp_path):
    manifest = read_source(photos)
    moved = Manifest.build(manifest.table, tmp_path)
    with pytest.raises(UserError, match="25 of 25 images cannot be read") as refused:
        drop_broken(moved)
    assert "--root" in refused.value.try_this


def test_a_class_without_training_images_is_left_out_and_told(photos):
    manifest = read_source(photos)
    for path in manifest.rows("train").query("label == 'c'")["path"]:
        (photos / path).write_bytes(b"no image")
    kept = drop_broken(manifest)
    assert kept.classes == ("a", "b") and "c" not in set(kept.table["label"])
    told = " ".join(kept.notes)
    assert "Left out without training images: 1 class, c, with 2 val or test images." in told


def test_no_training_image_at_all_is_refused(photos):
    manifest = read_source(photos)
    for path in manifest.rows("train")["path"]:
        (photos / path).write_bytes(b"no image")
    with pytest.raises(UserError, match="No training image can be read"):
        drop_broken(manifest)


def test_notes_on_classes_are_made_anew(photos):
    manifest = read_source(class_folders(photos, {"single": 1}))
    assert sum("single training image" in note for note in manifest.notes) == 1
    (photos / "a" / "1.png").write_bytes(b"")
    assert sum("single training image" in note for note in drop_broken(manifest).notes) == 1


def test_a_set_for_evaluation_needs_no_training_images(photos):
    manifest = read_source(photos, flat="test")
    (photos / "a" / "1.png").write_bytes(b"")
    assert drop_broken(manifest).sizes()["test"] == 24


def test_a_pack_has_none(photos, tmp_path):
    packed = open_pack(write_pack(read_source(photos), 8, tmp_path / "x.pack")).manifest
    assert find_broken(packed) == [] and drop_broken(packed).pack == packed.pack


def test_items_of_a_dataset(tmp_path):
    class Pictures:
        targets = (0, 0, 0, 0, 1, 1, 1, 1)

        def __len__(self):
            return 8

        def __getitem__(self, index):
            return ("no image" if index == 2 else picture(str(index)), self.targets[index])

    kept = drop_broken(read_source({"train": Pictures()}))
    assert [path for path, _ in kept.skipped] == ["train/000002"] and len(kept.table) == 7


def test_the_list_of_skipped_images_comes_back(photos, tmp_path):
    skipped = [Broken("a/0.png", "it is odd"), Broken("a/with\ttab ü.png", "cut off: 3 bytes")]
    write_skipped(skipped, tmp_path / "skipped.txt")
    assert read_skipped(tmp_path / "skipped.txt") == skipped
    assert read_skipped(tmp_path / "none.txt") == []
    manifest = read_source(photos)
    assert (
        without(manifest, read_skipped(tmp_path / "skipped.txt")).sizes()
        == without(manifest, skipped).sizes()
    )
