"""HEIC images with pillow-heif, and what is said without it."""

import sys

import numpy as np
import pytest
from PIL import Image

from oltr.data import heif
from oltr.data.check import check
from oltr.data.images import UnreadableImage, read_image
from oltr.data.sources import read_source
from tests.helpers.pictures import class_folders

HEADER = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
QUARTERS = np.zeros((64, 64, 3), dtype=np.uint8)  # four plain quarters, so that every turn shows
QUARTERS[:32, 32:] = (255, 0, 0)
QUARTERS[32:, :32] = (0, 255, 0)
QUARTERS[32:, 32:] = (0, 0, 255)


def heic(path, pixels=QUARTERS, **options):
    pillow_heif = pytest.importorskip("pillow_heif")
    pillow_heif.from_pillow(Image.fromarray(pixels)).save(path, quality=100, **options)
    return path


@pytest.fixture
def without_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.setattr(heif, "_registered", False)


@pytest.mark.parametrize("name", ["IMG_1.HEIC", "b.heif", "called.jpg"])
def test_the_picture(tmp_path, name):
    made = heic(tmp_path / "made.heic").rename(tmp_path / name)
    assert np.abs(read_image(made, 64).astype(int) - QUARTERS).mean() < 2


def test_an_orientation_is_applied_once(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right when shown
    path = heic(tmp_path / "turned.heic", exif=exif.tobytes())
    shown = np.rot90(QUARTERS, -1)
    assert np.abs(read_image(path, 64).astype(int) - shown).mean() < 2


def test_a_folder_of_them_is_a_source(tmp_path):
    for label in "ab":
        (tmp_path / label).mkdir()
        for index in range(3):
            heic(tmp_path / label / f"{index}.HEIC", np.roll(QUARTERS, 5 * index + ord(label), axis=0))
    manifest = read_source(tmp_path)
    assert len(manifest.table) == 6 and not check(manifest).problems


def test_it_is_registered_once_and_only_when_one_is_met(tmp_path, monkeypatch):
    pillow_heif = pytest.importorskip("pillow_heif")
    calls = []
    monkeypatch.setattr(heif, "_registered", False)
    register = pillow_heif.register_heif_opener
    monkeypatch.setattr(pillow_heif, "register_heif_opener", lambda: calls.append(register()))
    path = heic(tmp_path / "a.heic")
    Image.fromarray(QUARTERS).save(tmp_path / "a.png")
    read_image(tmp_path / "a.png", 8)
    assert calls == []
    read_image(path, 8)
    read_image(path, 8)
    assert len(calls) == 1


def test_without_the_package_the_cure_is_named(tmp_path, without_package):
    (tmp_path / "a.heic").write_bytes(HEADER)
    with pytest.raises(UnreadableImage, match="it is HEIC") as refused:
        read_image(tmp_path / "a.heic", 8)
    assert refused.value.try_this == 'pip install "oltr[heif]"'


def test_without_the_package_other_images_called_heic_are_read(tmp_path, without_package):
    Image.fromarray(QUARTERS).save(tmp_path / "really a png.heic", "PNG")
    np.testing.assert_array_equal(read_image(tmp_path / "really a png.heic", 64), QUARTERS)


def test_check_names_the_cure(tmp_path, without_package):
    class_folders(tmp_path, {"a": 3, "b": 3})
    (tmp_path / "a" / "x.heic").write_bytes(HEADER)
    (problem,) = check(read_source(tmp_path)).problems
    assert "1 unreadable file" in problem.message and "oltr[heif]" in str(problem)
