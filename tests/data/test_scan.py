"""What a folder holds beside images: other kinds of files, and links."""

import pytest

from oltr.data.scan import find_images
from oltr.data.sources import read_source
from oltr.wording import Caution
from tests.helpers.pictures import class_folders, touch, write_picture


@pytest.fixture
def photos(tmp_path):
    return class_folders(tmp_path / "photos", {"a": 5, "b": 5})


def told(folder, word):
    return [note for note in read_source(folder).notes if word in note]


def test_files_of_kinds_that_are_not_read_are_counted(photos):
    touch(*(photos / "a" / f"{n}.MOV" for n in range(12)), *(photos / "b" / f"{n}.pdf" for n in range(3)))
    touch(photos / "b" / "deep" / "x.cr2", photos / "top.cr2", photos / "a" / "README")
    (note,) = told(photos, "Not read")
    assert note == "Not read: 12 .mov, 3 .pdf, 2 .cr2, 1 without a suffix."
    assert isinstance(note, Caution)


def test_sidecars_are_counted_without_a_warning(photos):
    touch(*(photos / "a" / f"{n}.txt" for n in range(4)), photos / "a" / ".DS_Store", photos / "Thumbs.db")
    (note,) = told(photos, "Not read")
    assert note == "Not read: 6 sidecar files." and not isinstance(note, Caution)


def test_both_are_one_note(photos):
    touch(photos / "a" / "x.mov", photos / "a" / "0.json")
    assert told(photos, "Not read") == ["Not read: 1 .mov; 1 sidecar file."]


def test_images_alone_need_no_note(photos):
    assert told(photos, "Not read") == [] and told(photos, "link") == []


def test_split_folders_are_counted_at_every_level(tmp_path):
    for split in ("train", "test", "open"):
        class_folders(tmp_path / split, {"a": 2, "b": 2} if split != "open" else {"x": 2})
        touch(tmp_path / split / "list.mov", tmp_path / split / ("x" if split == "open" else "a") / "y.mov")
    touch(tmp_path / "z.mov")
    write_picture(tmp_path / "loose.png")
    assert told(tmp_path, "Not read") == ["Not read: 7 .mov."]
    assert told(tmp_path, "outside any class folder") == ["Ignored: 1 image outside any class folder."]


def test_links_out_of_the_folder_are_told_and_read(photos, tmp_path):
    elsewhere = class_folders(tmp_path / "elsewhere", {"c": 4, "d": 1})
    (photos / "c").symlink_to(elsewhere / "c", target_is_directory=True)
    (photos / "a" / "far.png").symlink_to(elsewhere / "d" / "0.png")
    (photos / "a" / "near.png").symlink_to(photos / "b" / "0.png")
    assert told(photos, "link") == ["2 symbolic links lead out of the folder; images there are read."]
    assert {"c/0.png", "a/far.png", "a/near.png"} <= set(read_source(photos).table["path"])


def test_a_source_that_is_itself_a_link_leads_nowhere_else(photos, tmp_path):
    (tmp_path / "link").symlink_to(photos, target_is_directory=True)
    (photos / "a" / "near.png").symlink_to(photos / "b" / "0.png")
    assert told(tmp_path / "link", "link") == []


def test_loops_of_links_end(photos):
    before = find_images(photos)
    (photos / "a" / "up").symlink_to(photos, target_is_directory=True)
    (photos / "again").symlink_to(photos, target_is_directory=True)  # would be a class of all images
    (photos / "b" / "self").symlink_to(photos / "b" / "self")
    manifest = read_source(photos)
    assert manifest.classes == ("a", "b") and len(manifest.table) == len(before) == 10
    assert told(photos, "Empty: 1 class folder, again")


def test_a_loop_inside_a_split_folder_ends(tmp_path):
    for split in ("train", "test"):
        class_folders(tmp_path / split, {"a": 2, "b": 2})
    (tmp_path / "train" / "a" / "up").symlink_to(tmp_path / "train", target_is_directory=True)
    assert len(read_source(tmp_path).table) == 8
