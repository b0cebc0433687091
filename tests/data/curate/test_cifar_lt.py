import numpy as np
import pandas as pd
import pytest
from PIL import Image

from oltr.data.curate import CURATORS, CurateOptions, curate
from oltr.data.curate import cifar_lt as module
from oltr.data.curate.card import fact_rows
from oltr.data.curate.cifar_files import CIFAR10, CIFAR100
from oltr.data.curate.cifar_lt import class_counts, long_tail_of, published, relatives
from oltr.data.sources import read_source
from oltr.data.stats import stats_from_counts
from oltr.data.validate import natural_order
from oltr.errors import UserError
from tests.data.curate.test_cifar_files import (
    NAMES,
    TOY10,
    TOY100,
    image_folders,
    labels_of,
    official_archive,
    official_folder,
)
from tests.helpers.pictures import class_folders, picture, write_picture

both = pytest.mark.parametrize(("name", "cifar"), [("cifar100-lt", TOY100), ("cifar10-lt", TOY10)])


@pytest.fixture(autouse=True)
def toy_size(monkeypatch):
    monkeypatch.setattr(module, "CIFAR100", TOY100)
    monkeypatch.setattr(module, "CIFAR10", TOY10)


def pixels(path):
    return np.asarray(Image.open(path))


def indices(rows, name):
    """The official indices of a class, as the file names tell them."""
    return [int(path.split("/")[-1][:5]) for path in rows.loc[rows["label"] == name, "path"]]


@pytest.mark.parametrize(
    ("imbalance", "total", "groups"),
    [(100, 10_847, [35, 35, 30]), (50, 12_608, [41, 41, 18]), (10, 19_573, [69, 31, 0])],
)
def test_the_real_size_gives_the_published_facts(imbalance, total, groups):
    names = [f"class{number:02d}" for number in range(100)]
    rows = [
        (f"{split}/{i}/{n}", n, split)
        for split, size in CIFAR100.per_class.items()
        for i in range(size)
        for n in names
    ]
    whole = pd.DataFrame(rows, columns=["path", "label", "split"])
    table = long_tail_of(whole, class_counts(CIFAR100, imbalance))
    counts = table[table["split"] == "train"]["label"].value_counts()
    assert counts.sum() == total
    assert counts["class00"] == 500
    assert [(counts > 100).sum(), counts.between(20, 100).sum(), (counts < 20).sum()] == groups
    val = table[table["split"] == "val"]["label"].value_counts()
    assert "class00" not in val
    assert val.sum() == 990
    assert (table["split"] == "test").sum() == 10_000
    assert not table["path"].duplicated().any()


@pytest.mark.parametrize("cifar", [CIFAR100, CIFAR10], ids=["100", "10"])
@pytest.mark.parametrize("imbalance", [100, 50, 10])
def test_the_published_facts_are_ours(cifar, imbalance):
    facts = stats_from_counts(class_counts(cifar, imbalance))
    known = published(cifar, imbalance)
    assert known["images"]["train"] == facts["images"]["train"]
    assert {key: facts[key] for key in known if key != "images"} == {
        key: value for key, value in known.items() if key != "images"
    }
    assert ("shots" in known) == (cifar is CIFAR100)
    assert published(cifar, 77) == {}


@pytest.mark.parametrize("cifar", [CIFAR100, CIFAR10, TOY100, TOY10], ids=["100", "10", "toy 100", "toy 10"])
@pytest.mark.parametrize("imbalance", [1, 3, 10, 100])
def test_profiles_equal_slow_loops(cifar, imbalance):
    classes, largest = cifar.classes, cifar.per_class["train"]
    slow = []
    for c in range(classes):
        slow.append(max(int(largest * imbalance ** (-c / (classes - 1)) + 1e-9), 1))
    assert class_counts(cifar, imbalance).tolist() == slow
    smallest = max(int(largest / imbalance), 1)
    for alpha in (0.5, 6.0):
        medians = []
        for k in range(classes, 0, -1):
            medians.append((1 - (k - 0.3) / (classes + 0.4)) ** (-1 / alpha))
        top, bottom = medians[0], medians[-1]
        slow = [int(smallest + (m - bottom) / (top - bottom) * (largest - smallest) + 1e-9) for m in medians]
        assert class_counts(cifar, imbalance, alpha).tolist() == slow


@both
@pytest.mark.parametrize("alpha", [None, 6.0])
def test_image_folders_are_referenced_and_the_first_images_taken(tmp_path, name, cifar, alpha):
    root, out = image_folders(cifar, tmp_path / "cifar"), tmp_path / "out"
    curated = curate(name, CurateOptions(out=out, root=root, imbalance=10, alpha=alpha))
    assert not (out / "images").exists()
    made, counts = read_source(out), class_counts(cifar, 10, alpha).tolist()
    assert made.root == root
    assert made.train_counts().tolist() == counts
    for label, (known, size) in enumerate(zip(NAMES[cifar.title], counts, strict=True)):
        official = [index for index, other in enumerate(labels_of(cifar, "train")) if other == label]
        assert indices(made.rows("train"), known) == official[:size]
        assert indices(made.rows("val"), known) == official[size : size + 10]
    assert made.labels("test").tolist() == labels_of(cifar, "test")
    assert all(path.is_file() for path in made.paths("test"))
    facts = {fact: shown for fact, _, shown in fact_rows(curated)}
    expected = {"cifar100-lt": 19_573, "cifar10-lt": 20_431}[name]
    assert facts["training images"] == (expected if alpha is None else None)
    assert ("Pareto(α = 6)" in curated.recipe[0]) == (alpha is not None)


def test_the_toy_counts_by_hand(tmp_path):
    root = image_folders(TOY100, tmp_path / "cifar")
    made = CURATORS["cifar100-lt"](CurateOptions(out=tmp_path / "out", root=root, imbalance=10)).manifest
    assert made.train_counts().tolist() == [30, 13, 6, 3]
    made = CURATORS["cifar100-lt"](CurateOptions(out=tmp_path / "out", root=root)).manifest
    assert made.train_counts().tolist() == [30, 6, 1, 1]


@both
def test_official_files_and_archive_give_the_same_set_as_folders(tmp_path, name, cifar):
    folders = tmp_path / "folders"
    curate(name, CurateOptions(out=folders, root=image_folders(cifar, tmp_path / "cifar"), imbalance=5))
    expected = read_source(folders)
    archive = official_archive(cifar, tmp_path)
    for number, root in enumerate([archive, tmp_path / "raw", archive]):
        out = tmp_path / f"out{number}"
        curate(name, CurateOptions(out=out, root=root, imbalance=5))
        made = read_source(out)
        assert made.root == out
        assert made.sizes() == expected.sizes()
        for split in ("train", "val", "test"):
            for mine, theirs in zip(made.paths(split), expected.paths(split), strict=True):
                assert mine.parts[-2:] == theirs.parts[-2:]
                np.testing.assert_array_equal(pixels(mine), pixels(theirs))
        assert len(list((out / "images").rglob("*.png"))) == sum(made.sizes().values())
    first, again = (tmp_path / f"out{number}" / "manifest.csv" for number in (0, 2))
    assert first.read_bytes() == again.read_bytes()


@both
def test_classes_in_official_order_even_where_folders_are_numbers(name, cifar):
    rows = [(f"train/{c}/{i}.png", str(c), "train") for c in range(12) for i in range(12)]
    table = long_tail_of(pd.DataFrame(rows, columns=["path", "label", "split"]), np.arange(12, 0, -1))
    counts = table[table["split"] == "train"]["label"].value_counts()
    assert [counts[label] for label in natural_order(set(counts.index))] == list(range(12, 0, -1))


def test_open_images_flat_and_in_class_folders(tmp_path):
    root = image_folders(TOY100, tmp_path / "cifar")
    others = class_folders(tmp_path / "others", {"lorry": 2})
    write_picture(others / "loose.png")
    write_picture(others / "train" / "split not class.png")  # although `train` is a CIFAR-100 class
    curated = curate("cifar100-lt", CurateOptions(out=tmp_path / "out", root=root, open_root=others))
    assert curated.recipe[-1] == f"Open: all 4 images of {others}."
    made = read_source(tmp_path / "out")
    assert sorted(made.rows("open")["label"]) == ["lorry", "lorry", "unknown", "unknown"]
    assert all(path.is_file() for path in made.paths("open"))
    for empty in (tmp_path / "nowhere", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(UserError, match=empty.name):
            curate("cifar100-lt", CurateOptions(out=tmp_path / "out2", root=root, open_root=empty))


@both
@pytest.mark.parametrize("known_as", ["files", "arrays"])
@pytest.mark.parametrize("open_as", ["files", "arrays"])
def test_the_other_cifar_as_open_set(tmp_path, name, cifar, known_as, open_as):
    other = TOY10 if cifar is TOY100 else TOY100
    make = {"files": image_folders, "arrays": official_folder}
    root, open_root = make[known_as](cifar, tmp_path / "known"), make[open_as](other, tmp_path / "other")
    out = tmp_path / "out"
    curated = curate(name, CurateOptions(out=out, root=root, open_root=open_root, imbalance=10))
    made = read_source(out)
    assert made.sizes()["open"] == len(labels_of(other, "test"))
    for split, original in (("train", "train"), ("val", "train"), ("test", "test"), ("open", "test")):
        for path in made.paths(split):
            np.testing.assert_array_equal(pixels(path), picture(f"{original}{int(path.stem)}", 32))
    assert set(made.rows("open")["label"]) == set(NAMES[other.title])
    written = {path.parts[-3] for path in out.glob("images/*/*/*.png")}
    expected = {"train", "test"} if known_as == "arrays" else set()
    assert written == (expected | {"open"} if open_as == "arrays" else expected)
    if open_as == "files":
        assert all(str(path).startswith(str(open_root)) for path in made.rows("open")["path"])
    assert "test" in curated.recipe[-1]


def test_near_relatives_are_named_both_ways():
    ten, hundred = {"automobile", "cat", "ship"}, {"apple", "bus", "pickup_truck", "tiger"}
    (said,) = relatives(hundred, ten)
    assert "automobile beside bus, pickup_truck; cat beside tiger" in said
    (said,) = relatives(ten, hundred)
    assert "bus beside automobile; pickup_truck beside automobile; tiger beside cat" in said
    assert relatives(hundred, {"unknown"}) == ()


def test_remarks_and_the_size_of_a_pack(tmp_path):
    root = image_folders(TOY100, tmp_path / "cifar")
    others = class_folders(tmp_path / "others", {"truck": 1})
    options = CurateOptions(out=tmp_path / "out", root=root, open_root=others, size=40)
    curated = CURATORS["cifar100-lt"](options)
    assert curated.pack_size == 40
    assert curated.remarks == TOY100.remarks  # no bus among the toy's classes
    curated = CURATORS["cifar10-lt"](
        CurateOptions(
            out=tmp_path / "out",
            root=image_folders(TOY10, tmp_path / "ten"),
            open_root=class_folders(tmp_path / "buses", {"bus": 1}),
        )
    )
    assert curated.pack_size == 32
    assert curated.remarks == ("Some open classes show near relatives of known ones: bus beside truck.",)


@both
def test_an_incomplete_set_and_wrong_options(tmp_path, name, cifar):
    root, out = image_folders(cifar, tmp_path / "cifar"), tmp_path / "out"
    known, each = NAMES[cifar.title][1], cifar.per_class["train"]
    with pytest.raises(UserError, match=f"training knows too: {known}"):
        curate(
            name, CurateOptions(out=out, root=root, open_root=class_folders(tmp_path / "clash", {known: 1}))
        )
    next((root / "train" / known).iterdir()).unlink()
    for wrong, said in (
        ({"root": root}, rf"{known} \({each - 1}\)"),
        ({}, "--root"),
        ({"root": root, "lists": tmp_path}, "takes no --lists"),
        ({"root": tmp_path}, "not found"),
        ({"root": root, "imbalance": 0.5}, "imbalance of 0.5"),
        ({"root": root, "imbalance": 0, "alpha": 6}, "imbalance of 0"),
        ({"root": root, "alpha": -1}, "alpha of -1"),
    ):
        with pytest.raises(UserError, match=said):
            curate(name, CurateOptions(out=out, **wrong))
    with pytest.raises(UserError, match=f"did you mean {name}"):
        curate(name.replace("-", ""), CurateOptions(out=out, root=root))
    assert not out.exists()
