"""The development set: from official training images alone, against a slow loop."""

import tarfile
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from oltr.data.curate import CurateOptions, curate
from oltr.data.curate import cifar100_development as module
from oltr.data.curate.cifar_files import CIFAR100
from oltr.data.longtail import exponential_counts
from oltr.data.sources import read_source
from oltr.errors import UserError
from tests.data.curate import test_cifar_files as files
from tests.data.curate.test_cifar_files import image_folders, labels_of, official_archive, official_folder
from tests.helpers.pictures import picture

NAME = "cifar100-lt-development"
TOY = replace(CIFAR100, classes=10, per_class={"train": 20, "test": 2})  # 8 known, 2 open; 16 and 4 images
CLASSES = [f"class{letter}" for letter in "abcdefghij"]


@pytest.fixture(autouse=True)
def toy_size(monkeypatch):
    monkeypatch.setattr(module, "CIFAR100", TOY)
    monkeypatch.setitem(files.NAMES, TOY.title, CLASSES)


def expected(imbalance):
    """split -> (official index, class), one image at a time."""
    wanted = {"train": set(), "val": set(), "test": set(), "open": set()}
    seen = dict.fromkeys(range(10), 0)
    for index, label in enumerate(labels_of(TOY, "train")):
        position, known = seen[label], label - label // 5
        seen[label] += 1
        if label in (4, 9):
            split = "open" if position >= 16 else None
        elif position >= 16:
            split = "val" if position % 2 == 0 else "test"
        else:
            split = "train" if position < max(int(16 * (1 / imbalance) ** (known / 7) + 1e-9), 1) else None
        if split:
            wanted[split].add((index, CLASSES[label]))
    return wanted


def test_the_rows_are_those_of_a_loop_and_no_image_is_in_two_splits(tmp_path):
    root, out = image_folders(TOY, tmp_path / "cifar"), tmp_path / "out"
    for imbalance in (None, 4):
        curate(NAME, CurateOptions(out=out, root=root, imbalance=imbalance))
        made = read_source(out)
        assert made.root == root and not (out / "images").exists()
        found = {
            split: {(int(path.split("/")[-1][:5]), label) for path, label, *_ in made.rows(split).values}
            for split in ("train", "val", "test", "open")
        }
        assert found == expected(imbalance or 100)
        assert sum(map(len, found.values())) == len(made.table) == len(set(made.table["path"]))
        assert list(made.classes) == [*CLASSES[:4], *CLASSES[5:9]]
    assert made.train_counts().tolist() == [16, 13, 10, 8, 7, 5, 4, 4]
    assert made.sizes() | {"train": 0} == {"train": 0, "val": 16, "test": 16, "open": 8}


def test_no_test_image_is_touched(tmp_path):
    """Neither looked for, nor opened, nor named: only its absence or damage can show that."""
    folders = image_folders(TOY, tmp_path / "folders")
    whole = curate(NAME, CurateOptions(out=tmp_path / "whole", root=folders, imbalance=4)).manifest
    assert all(str(path).startswith("train/") for path in whole.table["path"])
    for path in (folders / "test").rglob("*.png"):
        path.unlink()
    for folder in sorted((folders / "test").rglob("*"), reverse=True):
        folder.rmdir()
    (folders / "test").rmdir()
    without = curate(NAME, CurateOptions(out=tmp_path / "without", root=folders, imbalance=4)).manifest
    assert without.table.equals(whole.table)

    raw = official_folder(TOY, tmp_path / "raw" / TOY.folder)
    (raw / "test").write_bytes(b"damaged")
    with tarfile.open(tmp_path / TOY.archive, "w:gz") as tar:
        tar.add(raw, arcname=TOY.folder)
    from_damaged = curate(
        NAME, CurateOptions(out=tmp_path / "damaged", root=tmp_path / TOY.archive, imbalance=4)
    ).manifest
    (raw / "test").unlink()
    unpacked = curate(NAME, CurateOptions(out=tmp_path / "unpacked", root=raw, imbalance=4)).manifest
    for made in (from_damaged, unpacked):
        assert made.table["path"].tolist() == [f"images/{path}" for path in whole.table["path"]]
    for path in (tmp_path / "damaged").rglob("*.png"):
        np.testing.assert_array_equal(np.asarray(Image.open(path)), picture(f"train{int(path.stem)}", 32))


def test_only_what_is_chosen_is_written(tmp_path):
    out = tmp_path / "out"
    curated = curate(NAME, CurateOptions(out=out, root=official_archive(TOY, tmp_path), size=40))
    assert curated.pack_size == 40
    written = list(out.rglob("images/train/*/*.png"))
    assert len(written) == len(curated.manifest.table) == len(curated.pictures)
    assert "every fifth class" in (out / "card.md").read_text()


def test_the_real_size():
    counts = exponential_counts(80, 400, 100)
    assert counts.tolist() == [int(400 * (1 / 100) ** (k / 79)) for k in range(80)]
    assert counts.sum() == 6956


def test_wrong_options_and_a_set_that_is_not_whole(tmp_path):
    root, out = image_folders(TOY, tmp_path / "cifar"), tmp_path / "out"
    for wrong, said in (
        ({"alpha": 6.0}, "takes no --alpha"),
        ({"open_root": root}, "takes no --open-root"),
        ({"imbalance": 0.5}, "imbalance of 0.5"),
    ):
        with pytest.raises(UserError, match=said):
            curate(NAME, CurateOptions(out=out, root=root, **wrong))
    with pytest.raises(UserError, match=f"needed to make {NAME}"):
        curate(NAME, CurateOptions(out=out))
    next((root / "train" / "classe").iterdir()).unlink()
    with pytest.raises(UserError, match=r"without 20 training images, classe \(19\)"):
        curate(NAME, CurateOptions(out=out, root=root))
    assert not out.exists()
