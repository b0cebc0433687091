"""What images there are: by walking through folders, or by an index that stands for them."""

import pytest

from oltr.data.curate.benchmark import CurateOptions
from oltr.data.curate.files import image_paths, read_index
from oltr.errors import UserError
from tests.helpers.pictures import class_folders


def test_a_walk_finds_the_images_of_the_folders_asked_for(tmp_path):
    class_folders(tmp_path / "train", {"a": 2, "b": 1})
    class_folders(tmp_path / "other", {"c": 1})
    (tmp_path / "train" / "a" / "notes.txt").write_text("no image")
    steps = []
    options = CurateOptions(tmp_path / "out", root=tmp_path, progress=lambda *step: steps.append(step))
    assert image_paths(options, "x", "a tree", ("train", "val")) == [
        "train/a/0.png",
        "train/a/1.png",
        "train/b/0.png",
    ]
    assert steps == [(1, 2), (2, 2)]
    assert len(image_paths(options, "x", "a tree")) == 4


def test_an_index_is_sorted_tidied_and_needs_no_files(tmp_path):
    index = tmp_path / "index.txt"
    index.write_text(
        "./b/2.JPEG\r\na\\1.png\n\nREADME.md\nb//./2.JPEG\n/data/set/c/3.jpg\nwith space/4.jpg\n"
    )
    assert read_index(index, tmp_path.__class__("/data/set")) == [
        "a/1.png",
        "b/2.JPEG",
        "c/3.jpg",
        "with space/4.jpg",
    ]


@pytest.mark.parametrize(
    "content", ["", "README.md\n", "/elsewhere/a.png\n", "../a.png\n", "a/../../b.png\n"]
)
def test_an_index_without_images_below_the_root_is_refused(tmp_path, content):
    (tmp_path / "index.txt").write_text(content)
    with pytest.raises(UserError, match=r"index\.txt"):
        read_index(tmp_path / "index.txt", tmp_path)


def test_a_missing_index_or_root_is_named(tmp_path):
    with pytest.raises(UserError, match=r"index none\.txt cannot be read: No such file"):
        read_index(tmp_path.__class__("none.txt"))
    with pytest.raises(UserError, match="--root with that folder"):
        image_paths(CurateOptions(tmp_path / "out"), "x", "a tree")
    with pytest.raises(UserError, match="is not there"):
        image_paths(CurateOptions(tmp_path / "out", root=tmp_path / "no"), "x", "a tree")


def test_an_earlier_curation_inside_the_root_is_no_part_of_it(tmp_path):
    class_folders(tmp_path, {"a": 1, "out": 2})
    options = CurateOptions(tmp_path / "out", root=tmp_path)
    assert image_paths(options, "x", "a tree") == ["a/0.png"]


@pytest.mark.parametrize("options", [{"seed": -1}, {"size": 0}, {"size": -5}, {"size": 100_000}])
def test_senseless_options_are_refused_at_once(tmp_path, options):
    with pytest.raises(UserError, match=r"negative|out of range"):
        CurateOptions(tmp_path / "out", **options)
