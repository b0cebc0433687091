"""Images named on a command line: every form, in order, each once, and what names nothing refused."""

from __future__ import annotations

import io
import os

import pandas as pd
import pytest

from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.runs.named_images import named_images
from tests.helpers.pictures import touch


@pytest.fixture
def place(tmp_path, monkeypatch):
    """photos/ with two folders of pictures and a note, as the current folder's neighbour."""
    photos = tmp_path / "photos"
    touch(photos / "b" / "2.jpg", photos / "b" / "1.PNG", photos / "a" / "3.jpg", photos / "a" / "notes.txt")
    touch(photos / "a" / ".hidden.jpg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_folders_files_and_globs(place):
    assert named_images(["photos"]).paths == ["photos/a/3.jpg", "photos/b/1.PNG", "photos/b/2.jpg"]
    assert named_images(["photos/b/2.jpg", "photos/a"]).paths == ["photos/b/2.jpg", "photos/a/3.jpg"]
    assert named_images(["photos/*/*.jpg"]).paths == ["photos/a/3.jpg", "photos/b/2.jpg"]
    assert named_images(["photos/**"]).paths == ["photos/a/3.jpg", "photos/b/1.PNG", "photos/b/2.jpg"]
    assert named_images(["photos/**/*.PNG"]).paths == ["photos/b/1.PNG"]
    assert named_images(["phot*"]).paths == named_images(["photos"]).paths
    assert named_images(["photos/gone.jpg"]).paths == ["photos/gone.jpg"]  # the reader will say so


def test_a_name_with_brackets_is_a_file_where_there_is_one(place):
    touch(place / "photos" / "x[1].jpg")
    assert named_images(["photos/x[1].jpg"]).paths == ["photos/x[1].jpg"]


def test_an_image_named_twice_is_taken_once(place, capsys):
    assert len(named_images(["photos", "photos/a"])) == 3
    assert "1 image named more than once" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_keep_their_other_columns(place, suffix):
    table = pd.DataFrame({"path": ["b/2.jpg", "a/3.jpg"], "site": ["007", ""], "burst": [3.0, None]})
    file = place / "photos" / f"list.{suffix}"
    table.to_csv(file, index=False) if suffix == "csv" else table.to_parquet(file)
    found = named_images([f"photos/list.{suffix}", "photos/b"])
    assert found.paths == ["photos/b/2.jpg", "photos/a/3.jpg", "photos/b/1.PNG"]
    assert found.column("site", "--sequence") == ["007", "", ""]
    assert found.column("burst", "--sequence") == ["3.0" if suffix == "csv" else "3", "", ""]
    with pytest.raises(UserError, match="--sequence event: there is no such column") as problem:
        found.column("event", "--sequence")
    assert "site, burst" in problem.value.why
    turned = found.taken([2, 0])
    assert turned.paths == ["photos/b/1.PNG", "photos/b/2.jpg"]
    assert turned.table["site"].tolist() == ["", "007"]


def test_where_relative_paths_of_tables_start(place):
    (place / "out").mkdir()
    (place / "out" / "predictions.csv").write_text("path,label\nphotos/a/3.jpg,x\n")  # written from here
    assert named_images(["out/predictions.csv"]).paths == ["photos/a/3.jpg"]
    (place / "out" / "manifest.csv").write_text("path,root\n3.jpg,../photos/a\n")
    assert [os.path.realpath(path) for path in named_images(["out/manifest.csv"]).paths] == [
        str(place / "photos" / "a" / "3.jpg")
    ]
    (place / "out" / "gone.csv").write_text(f"path\ngone.jpg\n{place}/photos/a/3.jpg\n")
    assert named_images(["out/gone.csv"]).paths == ["out/gone.jpg", f"{place}/photos/a/3.jpg"]


def test_lists_in_files_and_on_standard_input(place, monkeypatch):
    (place / "photos" / "some.txt").write_text("b/2.jpg\n\n a/3.jpg \n")
    assert named_images(["photos/some.txt"]).paths == ["photos/b/2.jpg", "photos/a/3.jpg"]
    monkeypatch.setattr("sys.stdin", io.StringIO("photos/b/2.jpg\ngone.jpg\n"))
    assert named_images(["-"]).paths == ["photos/b/2.jpg", "gone.jpg"]
    monkeypatch.setattr("sys.stdin", io.StringIO("photos/b/2.jpg\0photos/a/3.jpg\0"))  # find -print0
    assert named_images(["-"]).paths == ["photos/b/2.jpg", "photos/a/3.jpg"]


def test_a_pack(pack):
    found, opened = named_images([pack]), open_pack(pack)
    assert found.paths == opened.manifest.table["path"].tolist() and found.pack == opened.path
    assert found.column("label", "--x") == opened.manifest.table["label"].tolist()
    assert found.taken([5, 1]).rows.tolist() == [5, 1]
    with pytest.raises(UserError, match="beside other images"):
        named_images([pack, "a.jpg"])


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "No images were named"),
        (["  "], "No images were named"),
        (["fotos"], "There is no file or folder fotos"),
        (["empty"], "There are no images in empty"),
        (["photos/*.tif"], r"No image matches photos/\*.tif"),
        (["empty.csv"], "cannot be read"),
        (["headless.csv"], "has no column `path`"),
        (["blank.csv"], "1 row without a path"),
        (["empty.txt"], "names no images"),
        (["latin.txt"], "not UTF-8"),
    ],
)
def test_what_names_nothing(place, items, message):
    (place / "empty").mkdir()
    (place / "empty.csv").touch()
    (place / "headless.csv").write_text("file\nx\n")
    (place / "blank.csv").write_text('path,x\na.jpg,1\n"",2\n')
    (place / "empty.txt").write_text("\n")
    (place / "latin.txt").write_bytes(b"caf\xe9.jpg\n")
    with pytest.raises(UserError, match=message):
        named_images(items)
