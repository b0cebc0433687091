import errno
import io
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file

from oltr.config import Frame
from oltr.data.decode import decode_all
from oltr.data.images import read_image
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, read_pack_manifest, write_pack, write_pack_from
from oltr.errors import UserError
from tests.helpers.pictures import write_picture

FILES = [
    ("a/0.png", "cat", "train"),
    ("a/1.png", "cat", "train"),
    ("b/ein Bär.png", "Bär", "train"),
    ("ü b/0.png", "Bär", "test"),
    ("c/日本.png", "", "open"),
]


def source(folder, size=8):
    for path, _, _ in FILES:
        write_picture(folder / path, size)
    return Manifest.build(pd.DataFrame(FILES, columns=["path", "label", "split"]).assign(site="nörd"), folder)


@pytest.mark.parametrize(("own", "size"), [(8, 8), (12, 8)])
def test_a_pack_holds_the_pixels_and_the_manifest(own, size, tmp_path):
    manifest = source(tmp_path / "bilder ä", own)
    out = write_pack(manifest, size, tmp_path / "päck ü.pack")
    pack = open_pack(out)
    assert pack.size == size and pack.images.shape == (5, size, size, 3)
    for row, (path, _, _) in enumerate(FILES):
        assert np.array_equal(pack.images[row], read_image(manifest.root / path, size))
    pd.testing.assert_frame_equal(pack.manifest.table, manifest.table)
    assert pack.manifest.classes == manifest.classes
    assert pack.manifest.fingerprint() == manifest.fingerprint()
    assert pack.manifest.pack == out.absolute()
    assert read_pack_manifest(out).sizes() == {"train": 3, "val": 0, "test": 1, "open": 1}


@pytest.mark.parametrize("resize", ["stretch", "crop", "short-side"])
def test_a_pack_knows_how_its_pictures_became_squares(resize, tmp_path):
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (30, 47, 3), dtype=np.uint8)).save(tmp_path / "wide.png")
    table = pd.DataFrame({"path": ["wide.png"], "label": "a", "split": "train"})
    frame = Frame(16, resize)
    pack = open_pack(write_pack(Manifest.build(table, tmp_path), frame, tmp_path / "x.pack"))
    assert pack.frame == frame and pack.size == 16
    assert np.array_equal(pack.images[0], read_image(tmp_path / "wide.png", frame))


def test_an_older_pack_that_does_not_say_so_is_stretched(tmp_path):
    path = write_pack(source(tmp_path), Frame(8, "short-side"), tmp_path / "x.pack")
    content = path.read_bytes()
    told = b', "resize": "short-side", "interpolation": "bilinear"'
    assert content.count(told) == 1
    path.write_bytes(content.replace(told, b" " * len(told)))
    pack = open_pack(path)
    assert pack.frame == Frame(8, "stretch", "bilinear") and len(pack.manifest.table) == 5


def test_any_safetensors_reader_opens_a_pack(tmp_path):
    manifest = source(tmp_path)
    tensors = load_file(write_pack(manifest, 8, tmp_path / "x.pack"))
    assert set(tensors) == {"images", "manifest"}
    assert np.array_equal(tensors["images"], open_pack(tmp_path / "x.pack").images)
    table = pd.read_parquet(io.BytesIO(tensors["manifest"].tobytes()))
    assert table["path"].tolist() == [path for path, _, _ in FILES]


def test_the_same_images_give_the_same_bytes(tmp_path):
    manifest = source(tmp_path)
    first, second = (write_pack(manifest, 8, tmp_path / name) for name in ("a.pack", "b.pack"))
    assert first.read_bytes() == second.read_bytes()


def test_the_pixels_can_be_given_to_torch_and_the_file_cannot_be_changed(tmp_path):
    path = write_pack(source(tmp_path), 8, tmp_path / "x.pack")
    before = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pixels = torch.from_numpy(np.asarray(open_pack(path).images))
    pixels.zero_()
    assert path.read_bytes() == before
    assert open_pack(path).images.any()


def test_progress_is_told(tmp_path):
    seen = []
    write_pack(source(tmp_path), 8, tmp_path / "x.pack", lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5, 5)


def test_unreadable_images_are_listed_and_nothing_is_left(tmp_path):
    manifest = source(tmp_path / "images")
    (tmp_path / "images/a/1.png").write_bytes(b"")
    (tmp_path / "images/c/日本.png").write_bytes(b"no image")
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=r"2 of 5 images cannot be read") as caught:
        write_pack(manifest, 8, tmp_path / "out" / "x.pack")
    assert "1.png" in str(caught.value) and "日本.png" in str(caught.value) and "empty" in str(caught.value)
    assert not list((tmp_path / "out").iterdir())


def test_many_unreadable_images_are_counted_and_ten_shown(tmp_path):
    paths = [f"{number}.png" for number in range(19)]
    manifest = Manifest.build(pd.DataFrame({"path": paths, "label": "a", "split": "train"}), tmp_path)
    with pytest.raises(UserError, match="19 of 19 images") as caught:
        list(decode_all(manifest, paths, 8))
    assert str(caught.value).count("no such file") == 10 and "and 9 more" in str(caught.value)


def test_an_older_pack_survives_a_failed_one(tmp_path):
    manifest = source(tmp_path)
    path = write_pack(manifest, 8, tmp_path / "x.pack")
    before = path.read_bytes()
    (tmp_path / "a/0.png").unlink()
    with pytest.raises(UserError):
        write_pack(manifest, 8, path)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("number", [4, 6])
def test_pixels_that_do_not_fit_the_manifest_are_refused(number, tmp_path):
    manifest = source(tmp_path)
    with pytest.raises(ValueError, match="does not fit"):
        write_pack_from(manifest, np.zeros((number, 8, 8, 3), np.uint8), 8, tmp_path / "x.pack")
    assert not list(tmp_path.glob("*.pack")) and not list(tmp_path.glob(".*"))


def test_a_full_disk_is_one_message_and_leaves_nothing(tmp_path, monkeypatch):
    manifest = source(tmp_path)

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UserError, match=r"x\.pack could not be written: No space left on device"):
        write_pack(manifest, 8, tmp_path / "x.pack")
    assert not list(tmp_path.glob(".*")) and not list(tmp_path.glob("*.pack"))


def test_a_folder_that_cannot_be_made_is_one_message(tmp_path):
    manifest = source(tmp_path)
    with pytest.raises(UserError, match="could not be written"):
        write_pack(manifest, 8, tmp_path / "a/0.png/x.pack")


@pytest.mark.parametrize("name", ["x.safetensors", "x", "x.pack.zip"])
def test_a_pack_is_called_pack(name, tmp_path):
    with pytest.raises(UserError, match=r"(?s)is no name for a pack.*\.pack"):
        write_pack(source(tmp_path), 8, tmp_path / name)


def test_a_missing_pack(tmp_path):
    with pytest.raises(UserError, match="There is no pack"):
        open_pack(tmp_path / "x.pack")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 0.5, 0.9, 0.999])
def test_a_pack_that_was_cut_off_is_told(share, tmp_path):
    path = write_pack(source(tmp_path), 8, tmp_path / "x.pack")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(UserError, match=r"x\.pack is not a whole pack"):
        open_pack(path)


@pytest.mark.parametrize(
    "content", [b"plain text that is no pack at all", b"\x02\0\0\0\0\0\0\0{}", b"\0" * 64]
)
def test_a_foreign_file_is_told(content, tmp_path):
    (tmp_path / "x.pack").write_bytes(content)
    with pytest.raises(UserError, match="is not a whole pack"):
        open_pack(tmp_path / "x.pack")
