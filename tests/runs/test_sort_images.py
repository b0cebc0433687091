"""Sorting into class folders: safe names, nothing overwritten, begun again without doubles."""

from __future__ import annotations

from pathlib import Path

import pytest

from oltr.errors import UserError
from oltr.runs.predictions.sort_images import class_folders, sort_images

CLASSES = ["fox", "a/b", "a_b", "..", "unknown", "", "é" * 300, "FOX", 'x:"y"']


def row(path, label="fox", unknown=False, error=""):
    return {"path": str(path), "error": error} if error else {
        "path": str(path), "label": label, "unknown": unknown, "error": ""
    }  # fmt: skip


def test_folders_are_safe_and_no_two_are_one():
    folders = class_folders(CLASSES)
    assert list(folders) == CLASSES and folders["fox"] == "fox" and folders["a/b"] == "a_b"
    names = [name.casefold() for name in folders.values()]
    assert len({*names, "unknown"}) == len(CLASSES) + 1
    for name in folders.values():
        assert Path("x", name).parent == Path("x") and name not in ("", ".", "..")
        assert len(name.encode()) < 250 and not set('/\\:"*') & set(name)


@pytest.mark.parametrize("link", [False, True])
def test_files_of_one_name_and_a_second_time(tmp_path, link):
    rows = []
    for place, (folder, content) in enumerate([("n", b"1"), ("s", b"2"), ("w", b"3")]):
        file = tmp_path / folder / "IMG.jpg"
        file.parent.mkdir()
        file.write_bytes(content)
        rows.append(row(file, unknown=place == 2))
    rows.append(row(tmp_path / "gone.jpg", error="no such file"))
    out = tmp_path / "out"
    (out / "fox").mkdir(parents=True)
    (out / "fox" / "IMG.jpg").write_bytes(b"not ours")
    for _ in range(2):
        assert sort_images(rows, out, CLASSES, link, len(rows)) == 3
        found = {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}
        assert found == {
            "fox/IMG.jpg": b"not ours",
            "fox/IMG_2.jpg": b"1",
            "fox/IMG_3.jpg": b"2",
            "unknown/IMG.jpg": b"3",
        }
    assert (out / "fox" / "IMG_2.jpg").is_symlink() == link
    if link:
        assert (out / "fox" / "IMG_2.jpg").readlink() == tmp_path / "n" / "IMG.jpg"


def test_an_image_that_has_gone_meanwhile(tmp_path, capsys):
    assert sort_images([row(tmp_path / "gone.jpg")], tmp_path / "out", CLASSES, True, 1) == 0
    assert "gone.jpg is gone" in capsys.readouterr().err and not any((tmp_path / "out" / "fox").iterdir())


def test_a_folder_that_cannot_be_made(tmp_path):
    file = tmp_path / "a.jpg"
    file.write_bytes(b"1")
    with pytest.raises(UserError, match="could not be put"):
        sort_images([row(file)], file, CLASSES, False, 1)


@pytest.mark.parametrize("link", [False, True])
def test_what_an_earlier_sort_put_elsewhere_is_told(tmp_path, capsys, link):
    rows = []
    for name in ("1.jpg", "2.jpg"):
        (tmp_path / name).write_bytes(name.encode())
        rows.append(row(tmp_path / name, unknown=True))
    out = tmp_path / "out"
    sort_images(rows, out, CLASSES, link, 2)
    assert "earlier sort" not in capsys.readouterr().err
    sort_images([rows[0], row(tmp_path / "2.jpg")], out, CLASSES, link, 2)
    assert "1 image also in another folder" in capsys.readouterr().err
    assert (out / "unknown" / "2.jpg").exists() and (out / "fox" / "2.jpg").exists()
