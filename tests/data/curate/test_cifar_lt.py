import pickle
import tarfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from oltr.data.curate import CURATORS, CurateOptions, curate
from oltr.data.curate import cifar_lt as module
from oltr.data.curate.card import fact_rows
from oltr.data.curate.cifar_lt import long_tail_of
from oltr.data.sources import read_source
from oltr.errors import UserError
from tests.helpers.pictures import class_folders, picture, write_picture

NAMES = ["apple", "bear", "train", "zebra"]
TRAIN, TEST = 30, 3  # images per class of the toy CIFAR-100


@pytest.fixture(autouse=True)
def toy_size(monkeypatch):
    monkeypatch.setattr(module, "CLASSES", len(NAMES))
    monkeypatch.setattr(module, "TRAIN_PER_CLASS", TRAIN)


def labels_of(split):
    """Labels in official order: classes mixed, as in the original."""
    number = TRAIN if split == "train" else TEST
    return np.random.default_rng(number).permutation(np.repeat(np.arange(len(NAMES)), number)).tolist()


def image_folders(folder):
    for split in ("train", "test"):
        for index, label in enumerate(labels_of(split)):
            path = folder / split / NAMES[label] / f"{index:05d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture(f"{split}{index}", 32)).save(path)
    return folder


def pickles(folder, protocol=2):
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        labels = labels_of(split)
        images = np.stack([picture(f"{split}{index}", 32) for index in range(len(labels))])
        content = {b"data": images.transpose(0, 3, 1, 2).reshape(len(labels), 3072), b"fine_labels": labels}
        (folder / split).write_bytes(pickle.dumps(content, protocol=protocol))
    (folder / "meta").write_bytes(pickle.dumps({b"fine_label_names": [name.encode() for name in NAMES]}))
    return folder


def pixels(path):
    return np.asarray(Image.open(path))


@pytest.mark.parametrize(
    ("imbalance", "total", "groups"),
    [(100, 10_847, [35, 35, 30]), (50, 12_608, [41, 41, 18]), (10, 19_573, [69, 31, 0])],
)
def test_the_real_size_gives_the_published_facts(monkeypatch, imbalance, total, groups):
    monkeypatch.undo()
    names = [f"class{number:02d}" for number in range(100)]
    sizes = {"train": 500, "test": 100}
    rows = [
        (f"{split}/{i}/{n}", n, split) for split, size in sizes.items() for i in range(size) for n in names
    ]
    table = long_tail_of(pd.DataFrame(rows, columns=["path", "label", "split"]), imbalance)
    counts = table[table["split"] == "train"]["label"].value_counts()
    assert counts.sum() == total
    assert counts["class00"] == 500
    assert [(counts > 100).sum(), counts.between(20, 100).sum(), (counts < 20).sum()] == groups
    val = table[table["split"] == "val"]["label"].value_counts()
    assert "class00" not in val
    assert val.sum() == 990
    assert (table["split"] == "test").sum() == 10_000
    assert not table["path"].duplicated().any()


def test_image_folders_are_referenced_and_the_first_images_taken(tmp_path):
    root = image_folders(tmp_path / "cifar")
    out = tmp_path / "out"
    curated = curate("cifar100-lt", CurateOptions(out=out, root=root, imbalance=10))
    assert sorted(entry.name for entry in out.iterdir()) == ["card.md", "manifest.csv"]
    made = read_source(out)
    assert made.root == root
    assert made.train_counts().tolist() == [30, 13, 6, 3]
    for name, size in zip(NAMES, [30, 13, 6, 3], strict=True):
        official = [index for index, label in enumerate(labels_of("train")) if NAMES[label] == name]
        rows = made.rows("train")
        taken = [int(path.split("/")[-1][:5]) for path in rows.loc[rows["label"] == name, "path"]]
        assert taken == official[:size]
        rows = made.rows("val")
        spared = [int(path.split("/")[-1][:5]) for path in rows.loc[rows["label"] == name, "path"]]
        assert spared == official[size : size + 10]
    assert made.sizes()["test"] == 12
    assert all(path.is_file() for path in made.paths("test"))
    assert ("training images", 52, 19_573) in fact_rows(curated)


def test_pickles_and_archive_give_the_same_set_as_folders(tmp_path):
    folders = tmp_path / "folders"
    curate("cifar100-lt", CurateOptions(out=folders, root=image_folders(tmp_path / "cifar"), imbalance=5))
    expected = read_source(folders)
    raw = pickles(tmp_path / "raw" / "cifar-100-python")
    archive = tmp_path / "cifar-100-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(raw, arcname="cifar-100-python")
    for number, root in enumerate([raw, raw.parent, archive]):
        out = tmp_path / f"out{number}"
        curate("cifar100-lt", CurateOptions(out=out, root=root, imbalance=5))
        made = read_source(out)
        assert made.root == out
        assert made.sizes() == expected.sizes()
        for split in ("train", "val", "test"):
            for mine, theirs in zip(made.paths(split), expected.paths(split), strict=True):
                assert mine.parts[-2:] == theirs.parts[-2:]
                np.testing.assert_array_equal(pixels(mine), pixels(theirs))
        assert len(list((out / "images").rglob("*.png"))) == sum(made.sizes().values())


@pytest.mark.parametrize("protocol", [2, 4])
def test_pickles_of_other_protocols(tmp_path, protocol):
    raw = pickles(tmp_path / "raw", protocol)
    curated = CURATORS["cifar100-lt"](CurateOptions(out=tmp_path / "out", root=raw))
    assert curated.manifest.train_counts().tolist() == [30, 6, 1, 1]


class Evil:
    def __reduce__(self):
        return print, ("code was run",)


def test_a_pickle_that_would_run_code_is_refused(tmp_path, capsys):
    raw = pickles(tmp_path / "raw")
    (raw / "train").write_bytes(pickle.dumps({b"data": Evil()}))
    with pytest.raises(UserError, match="print"):
        curate("cifar100-lt", CurateOptions(out=tmp_path / "out", root=raw))
    assert "code was run" not in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_damaged_pickles_and_archives(tmp_path):
    raw = pickles(tmp_path / "raw")
    (raw / "test").write_bytes((raw / "test").read_bytes()[:100])
    with pytest.raises(UserError, match="test"):
        curate("cifar100-lt", CurateOptions(out=tmp_path / "out", root=raw))
    (tmp_path / "cut.tar.gz").write_bytes(b"\x1f\x8b not gzip")
    with pytest.raises(UserError, match="archive"):
        curate("cifar100-lt", CurateOptions(out=tmp_path / "out", root=tmp_path / "cut.tar.gz"))


def test_open_images_flat_and_in_class_folders(tmp_path):
    root = image_folders(tmp_path / "cifar")
    others = class_folders(tmp_path / "others", {"lorry": 2})
    write_picture(others / "loose.png")
    write_picture(others / "train" / "split not class.png")  # although `train` is a CIFAR-100 class
    curate("cifar100-lt", CurateOptions(out=tmp_path / "out", root=root, open_root=others))
    made = read_source(tmp_path / "out")
    assert sorted(made.rows("open")["label"]) == ["lorry", "lorry", "unknown", "unknown"]
    assert all(path.is_file() for path in made.paths("open"))
    for empty in (tmp_path / "nowhere", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(UserError, match=empty.name):
            curate("cifar100-lt", CurateOptions(out=tmp_path / "out2", root=root, open_root=empty))


def test_an_incomplete_set_and_wrong_options(tmp_path):
    root = image_folders(tmp_path / "cifar")
    out = tmp_path / "out"
    next((root / "train" / "bear").iterdir()).unlink()
    with pytest.raises(UserError, match=r"bear \(29\)"):
        curate("cifar100-lt", CurateOptions(out=out, root=root))
    with pytest.raises(UserError, match="--root"):
        curate("cifar100-lt", CurateOptions(out=out))
    with pytest.raises(UserError, match="takes no --size"):
        curate("cifar100-lt", CurateOptions(out=out, root=root, size=8))
    with pytest.raises(UserError, match="not found"):
        curate("cifar100-lt", CurateOptions(out=out, root=tmp_path))
    with pytest.raises(UserError, match="did you mean cifar100-lt"):
        curate("cifar100lt", CurateOptions(out=out, root=root))
    assert not out.exists()
