import gzip
import lzma
import pickle
import tarfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from oltr.data.curate.cifar_files import CIFAR10, CIFAR100, find_official, read_official, whole_cifar
from oltr.errors import UserError
from tests.helpers.pictures import picture

TOY100 = replace(CIFAR100, classes=4, per_class={"train": 30, "test": 3})
TOY10 = replace(CIFAR10, classes=3, per_class={"train": 20, "test": 2})
NAMES = {"CIFAR-100": ["apple", "bear", "train", "zebra"], "CIFAR-10": ["airplane", "cat", "truck"]}
both = pytest.mark.parametrize("cifar", [TOY100, TOY10], ids=["100", "10"])


def labels_of(cifar, split):
    """Labels in official order: classes mixed, as in the original."""
    labels = np.repeat(np.arange(cifar.classes), cifar.per_class[split])
    return np.random.default_rng(len(labels)).permutation(labels).tolist()


def image_folders(cifar, folder):
    for split in ("train", "test"):
        for index, label in enumerate(labels_of(cifar, split)):
            path = folder / split / NAMES[cifar.title][label] / f"{index:05d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture(f"{split}{index}", 32)).save(path)
    return folder


def official_folder(cifar, folder, protocol=2):
    """The official files, CIFAR-10's training images in five of them."""
    folder.mkdir(parents=True)
    for split, parts in cifar.parts.items():
        labels = labels_of(cifar, split)
        for part, indices in zip(parts, np.array_split(np.arange(len(labels)), len(parts)), strict=True):
            images = np.stack([picture(f"{split}{index}", 32) for index in indices])
            content = {
                b"data": images.transpose(0, 3, 1, 2).reshape(len(indices), 3072),
                cifar.labels.encode(): [labels[index] for index in indices],
            }
            (folder / part).write_bytes(pickle.dumps(content, protocol=protocol))
    names = [name.encode() for name in NAMES[cifar.title]]
    (folder / cifar.meta).write_bytes(pickle.dumps({cifar.names.encode(): names}))
    return folder


def official_archive(cifar, folder):
    raw = official_folder(cifar, folder / "raw" / cifar.folder)
    with tarfile.open(folder / cifar.archive, "w:gz") as tar:
        tar.add(raw, arcname=cifar.folder)
    return folder / cifar.archive


@both
def test_every_form_gives_the_same_rows_and_pixels(tmp_path, cifar):
    folders = whole_cifar(cifar, image_folders(cifar, tmp_path / "folders"), "toy")
    archive = official_archive(cifar, tmp_path)
    assert folders.root == tmp_path / "folders"
    for root in (archive, tmp_path, tmp_path / "raw", tmp_path / "raw" / cifar.folder):
        files = whole_cifar(cifar, root, "toy")
        assert files.root is None
        expected = folders.table.assign(path="images/" + folders.table["path"])
        pd.testing.assert_frame_equal(files.table, expected)
        for path, image in files.pictures.items():
            original = Image.open(tmp_path / "folders" / path.removeprefix("images/"))
            np.testing.assert_array_equal(image, np.asarray(original))


@both
@pytest.mark.parametrize("protocol", [2, 4])
def test_rows_are_in_official_order_whatever_the_pickle_protocol(tmp_path, cifar, protocol):
    files = whole_cifar(cifar, official_folder(cifar, tmp_path / "raw", protocol), "toy")
    row = 0
    for split in ("train", "test"):
        for index, label in enumerate(labels_of(cifar, split)):
            name = NAMES[cifar.title][label]
            assert tuple(files.table.iloc[row]) == (f"images/{split}/{name}/{index:05d}.png", name, split)
            row += 1
    assert row == len(files.table) == len(files.pictures)


@both
def test_one_split_alone_needs_its_own_files_alone(tmp_path, cifar):
    raw = official_folder(cifar, tmp_path / "raw")
    for part in cifar.parts["train"]:
        (raw / part).unlink()
    assert find_official(cifar, raw) is None
    assert find_official(cifar, raw, ("test",)) == raw
    assert set(read_official(cifar, raw, ("test",)).table["split"]) == {"test"}


def test_names_without_an_index_are_taken_in_their_order(tmp_path):
    root = image_folders(TOY10, tmp_path / "folders")
    first = next((root / "train" / "cat").iterdir())
    first.rename(first.with_name("a cat.png"))
    assert "no official index" in whole_cifar(TOY10, root, "toy").order


class Evil:
    def __reduce__(self):
        return print, ("code was run",)


@both
def test_a_pickle_that_would_run_code_is_refused(tmp_path, capsys, cifar):
    raw = official_folder(cifar, tmp_path / "raw")
    (raw / cifar.parts["train"][-1]).write_bytes(pickle.dumps({b"data": Evil()}))
    with pytest.raises(UserError, match="print"):
        whole_cifar(cifar, raw, "toy")
    assert "code was run" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no pickle", "cannot be read"),
        (pickle.dumps([1]), "not a CIFAR-10 file"),
        (pickle.dumps({b"labels": [0]}), "not a CIFAR-10 file"),
        (pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [0]}), "damaged"),
        (pickle.dumps({b"data": np.zeros((1, 3072), np.uint8), b"labels": [3]}), "damaged"),
        (pickle.dumps({b"data": np.zeros((1, 3072), np.uint8), b"labels": ["a"]}), "damaged"),
        (pickle.dumps({b"data": np.zeros((1, 3072), np.uint8), b"labels": [0.5]}), "damaged"),
        (pickle.dumps({b"\xff": 1}), "cannot be read"),
    ],
)
def test_damaged_official_files(tmp_path, content, said):
    raw = official_folder(TOY10, tmp_path / "raw")
    (raw / "data_batch_2").write_bytes(content)
    with pytest.raises(UserError, match=f"data_batch_2.*{said}"):
        whole_cifar(TOY10, raw, "toy")
    for names in (None, [1, 2, 3], ["../../up", "b", "c"], ["", "b", "c"]):  # a class becomes a folder
        (raw / "batches.meta").write_bytes(pickle.dumps({b"label_names": names}))
        with pytest.raises(UserError, match=r"batches\.meta is not a CIFAR-10 file"):
            whole_cifar(TOY10, raw, "toy")


@both
def test_archives_cut_off_or_of_something_else(tmp_path, cifar):
    archive = official_archive(cifar, tmp_path)
    content = archive.read_bytes()
    for kept in (10, len(content) // 2, len(content) - 2000):
        archive.write_bytes(content[:kept])
        with pytest.raises(UserError, match=f"not the archive {cifar.archive}, or it is cut off"):
            whole_cifar(cifar, archive, "toy")
    archive.write_bytes(content[: len(content) // 2] + b"\0" * 50 + content[len(content) // 2 :])
    with pytest.raises(UserError, match="cut off"):
        whole_cifar(cifar, archive, "toy")
    xz = bytearray(lzma.compress(gzip.decompress(content)))
    xz[len(xz) // 2] ^= 255
    archive.write_bytes(xz)
    with pytest.raises(UserError, match="cut off"):
        whole_cifar(cifar, archive, "toy")
    other = official_archive(TOY10 if cifar is TOY100 else TOY100, tmp_path / "other")
    with pytest.raises(UserError, match=f"{cifar.folder}/.* not found"):
        whole_cifar(cifar, other, "toy")


def test_a_missing_part_is_named_unless_the_archive_is_there_too(tmp_path):
    archive = official_archive(TOY10, tmp_path)
    (tmp_path / "raw" / TOY10.folder / "data_batch_3").unlink()
    for root in (tmp_path / "raw", tmp_path / "raw" / TOY10.folder):
        with pytest.raises(UserError, match="not whole: data_batch_3 missing"):
            whole_cifar(TOY10, root, "toy")
    archive.rename(tmp_path / "raw" / archive.name)
    assert len(whole_cifar(TOY10, tmp_path / "raw", "toy").table) == 66


@both
def test_missing_classes_and_incomplete_ones_are_refused(tmp_path, cifar):
    root, name = image_folders(cifar, tmp_path / "folders"), NAMES[cifar.title][1]
    for split, kind in (("test", "test"), ("train", "training")):
        each = cifar.per_class[split]
        next((root / split / name).iterdir()).unlink()
        with pytest.raises(UserError, match=rf"1 class without {each} {kind} images, {name} \({each - 1}\)"):
            whole_cifar(cifar, root, "toy")
    for path in (root / "train" / name).iterdir():
        path.unlink()
    with pytest.raises(UserError, match=f"not {cifar.title}: {cifar.classes - 1} classes in train"):
        whole_cifar(cifar, root, "toy")


@both
def test_nothing_there(tmp_path, cifar):
    with pytest.raises(UserError, match=f"{cifar.title} was not found in"):
        whole_cifar(cifar, tmp_path, "toy")
    with pytest.raises(UserError, match="There is no file or folder"):
        whole_cifar(cifar, tmp_path / "nowhere", "toy")
    with pytest.raises(UserError, match=f"needed to make toy.\nTry: --root with the archive {cifar.archive}"):
        whole_cifar(cifar, None, "toy")
