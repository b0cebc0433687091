"""Datasets as sources: labels, classes, splits and pixels."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset

from oltr.data import loader
from oltr.data.check import check
from oltr.data.datasets import is_dataset
from oltr.data.image_access import open_images
from oltr.data.images import UnreadableImage
from oltr.data.items import as_picture
from oltr.data.make_longtail import make_longtail
from oltr.data.pack import open_pack, write_pack
from oltr.data.sources import read_source
from oltr.errors import UserError
from tests.helpers.pictures import class_folders, picture, write_picture

CPU = torch.device("cpu")


class Pictures(Dataset):
    """Pairs of a picture and a label, made on the spot; counts how often an item is asked for."""

    def __init__(self, labels, /, form=Image.fromarray, size=8, key="", **attributes):
        self.own, self.form, self.size, self.key, self.asked = list(labels), form, size, key, 0
        for name, value in attributes.items():
            setattr(self, name, value)

    def __len__(self):
        return len(self.own)

    def __getitem__(self, index):
        self.asked += 1
        return self.form(picture(f"{self.key}{index}", self.size)), self.own[index]


def splits(**changed):
    """Three datasets of three classes and an open one."""
    made = {
        "train": Pictures([0, 1, 2, 0, 1, 0], key="train"),
        "val": Pictures([0, 1, 2], key="val"),
        "test": Pictures([2, 1, 0, 2], key="test"),
        "open": Pictures([7, 7], key="open"),
    }
    return made | changed


def pixels_of(manifest, split, size=8, smallest=8):
    images = open_images(manifest, [split], size, smallest, CPU)[split]
    (batch,) = images.batches([np.arange(len(images))], CPU, workers=0)
    return batch.permute(0, 2, 3, 1).numpy()


def test_a_mapping_of_datasets_is_a_manifest():
    manifest = read_source(splits())
    assert manifest.sizes() == {"train": 6, "val": 3, "test": 4, "open": 2}
    assert manifest.classes == ("0", "1", "2") and not manifest.split_made
    assert manifest.rows("train")["path"].tolist()[:2] == ["train/000000", "train/000001"]
    assert manifest.labels("test").tolist() == [2, 1, 0, 2]
    assert set(manifest.rows("open")["label"]) == {"unknown"}
    for split in ("train", "test", "open"):
        expected = np.stack([picture(f"{split}{index}") for index in range(manifest.sizes()[split])])
        np.testing.assert_array_equal(pixels_of(manifest, split), expected)


def test_names_of_splits_are_those_of_folders():
    manifest = read_source(
        {"Unknown": Pictures([0]), "validation": Pictures([0, 1]), "train": Pictures([0, 1])}
    )
    assert manifest.sizes() == {"train": 2, "val": 2, "test": 0, "open": 1}
    assert manifest.table["split"].tolist() == ["train"] * 2 + ["val"] * 2 + ["open"]


def test_one_dataset_is_split_as_a_flat_folder_is(tmp_path):
    class_folders(tmp_path, {"cat": 10, "dog": 7, "owl": 1})
    labels = ["cat"] * 10 + ["dog"] * 7 + ["owl"]
    manifest, folder = read_source(Pictures(labels)), read_source(tmp_path)
    assert manifest.table["split"].tolist() == folder.table["split"].tolist()
    assert manifest.table["label"].tolist() == folder.table["label"].tolist()
    assert manifest.notes == folder.notes and manifest.split_made and folder.split_made
    assert read_source(Pictures(labels), seed=1).fingerprint() != manifest.fingerprint()
    whole = read_source(Pictures(labels), flat="test")
    assert whole.sizes()["test"] == 18 and not whole.split_made
    assert any("The dataset has no splits: 18 images" in note for note in whole.notes)
    assert read_source(manifest) is manifest


def test_mixed_classes_are_split_as_sorted_ones_are():
    labels = ["a", "b"] * 9
    mixed = read_source(Pictures(labels)).table
    ordered = read_source(Pictures(sorted(labels))).table
    for label in "ab":
        one, other = (table.loc[table["label"] == label, "split"].tolist() for table in (mixed, ordered))
        assert one == other


@pytest.mark.parametrize("attribute", ["targets", "labels"])
@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_listed_labels_save_reading_the_images(attribute, kind):
    labels = [1, 0, 1, 1, 0]
    dataset = Pictures(labels, **{attribute: kind(labels)}, classes=["ant", "bee", "cow"])
    manifest = read_source({"train": dataset})
    assert dataset.asked == 0
    assert manifest.rows("train")["label"].tolist() == ["bee", "ant", "bee", "bee", "ant"]
    assert manifest.classes == ("ant", "bee")


def test_a_list_of_another_length_is_no_list_of_labels():
    dataset = Pictures([0, 1, 0], targets=[0, 1], labels=["zero", "one"])
    assert read_source({"train": dataset}).labels("train").tolist() == [0, 1, 0]
    assert dataset.asked == 3


def test_listed_labels_that_lie_are_found_out():
    manifest = read_source({"train": Pictures([0, 1, 0], targets=[0, 1, 1])})
    with pytest.raises(UnreadableImage, match=r"item 2 of the train dataset has the label '0', but .* '1'"):
        pixels_of(manifest, "train")


def test_subsets_and_changed_targets_are_seen_through():
    whole = Pictures([0, 1, 2, 3, 4], targets=[0, 1, 2, 3, 4], classes=["a", "b", "c", "d", "e"])
    part = Subset(Subset(whole, [4, 2, 0]), torch.tensor([1, 2]))
    manifest = read_source({"train": part})
    assert whole.asked == 0 and manifest.rows("train")["label"].tolist() == ["c", "a"]
    np.testing.assert_array_equal(pixels_of(manifest, "train"), [picture("2"), picture("0")])
    changed = Pictures([5, 6], targets=[0, 1], target_transform=lambda target: target + 5)
    assert read_source({"train": changed}).classes == ("5", "6") and changed.asked == 0


def test_classes_that_are_tuples_of_synonyms():
    names = [("crane", "bird"), ("crane", "machine")]
    assert read_source({"train": Pictures([0, 1], classes=names)}).classes == (
        "crane, bird",
        "crane, machine",
    )


def test_files_that_a_dataset_tells_are_its_paths(tmp_path, monkeypatch):
    class_folders(tmp_path / "data", {"cat": 2, "dog": 1})
    files = sorted((tmp_path / "data").rglob("*.png"))
    samples = [(str(file), file.parent.name == "dog") for file in files]
    dataset = Pictures([0, 0, 1], samples=samples, targets=[0, 0, 1])
    monkeypatch.chdir(tmp_path)
    manifest = read_source({"train": dataset})
    assert manifest.table["path"].tolist() == ["data/cat/0.png", "data/cat/1.png", "data/dog/0.png"]
    assert manifest.paths("train") == files
    np.testing.assert_array_equal(
        pixels_of(manifest, "train")[1], picture("1")
    )  # the dataset's, not the file's
    with pytest.raises(UserError, match="3 paths in more than one split"):
        read_source({"train": dataset, "test": dataset})
    twice = Pictures([0, 0, 1], samples=[samples[0], *samples[:2]])
    assert read_source({"train": twice}).table["path"].iloc[0] == "train/000000"


def test_torchvisions_folders_read_as_ours_do(tmp_path):
    from torchvision.datasets import ImageFolder

    class_folders(tmp_path / "train", {"cat": 4, "dog": 3}, size=20)
    class_folders(tmp_path / "test", {"cat": 2, "dog": 2}, size=20)
    theirs = {split: ImageFolder(tmp_path / split) for split in ("train", "test")}
    manifest, ours = read_source(theirs, root=tmp_path), read_source(tmp_path)
    assert manifest.fingerprint() == ours.fingerprint()
    for size in (20, 12):
        np.testing.assert_array_equal(pixels_of(manifest, "train", size), pixels_of(ours, "train", size))


GREY = picture("grey")[..., 0]


@pytest.mark.parametrize(
    ("image", "same_as"),
    [
        (picture("x"), picture("x")),
        (GREY, GREY),
        (torch.from_numpy(picture("x")).permute(2, 0, 1), picture("x")),
        (torch.from_numpy(picture("x")).permute(2, 0, 1) / 255, picture("x")),
        (torch.from_numpy(picture("x")).permute(2, 0, 1).double() / 255, picture("x")),
        (torch.from_numpy(GREY)[None], np.stack([GREY] * 3, axis=2)),
        (torch.from_numpy(GREY)[None] / 255, np.stack([GREY] * 3, axis=2)),
    ],
)
def test_arrays_and_tensors_keep_their_values(image, same_as):
    np.testing.assert_array_equal(np.asarray(as_picture(image)), same_as)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1", "I;16", "CMYK"])
def test_pictures_of_any_mode_read_as_their_files_do(tmp_path, mode):
    image = Image.fromarray(picture("mode", 24)).convert("L" if mode == "I;16" else mode).convert(mode)
    suffix = "tif" if mode == "CMYK" else "png"
    image.save(tmp_path / f"0.{suffix}")
    manifest = read_source({"train": [(image, "a"), (image, "b")]})
    table = manifest.table.assign(path=[f"0.{suffix}", f"./../{tmp_path.name}/0.{suffix}"])
    from_files = read_source(table.iloc[:1], root=tmp_path)
    for size in (24, 9):
        expected = pixels_of(from_files, "train", size)[0]
        np.testing.assert_array_equal(pixels_of(manifest, "train", size)[0], expected)
    assert image.mode == mode


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("a.jpg", "is a str"),
        (np.zeros((8, 8, 3)), "is an array 8×8×3 of float64"),
        (np.zeros((3, 8, 8), np.uint8), "is an array 3×8×8 of uint8"),
        (np.zeros((8, 8, 4), np.uint8), "is an array 8×8×4 of uint8"),
        (np.zeros((8, 8, 1), np.uint8), "is an array 8×8×1 of uint8"),
        (np.zeros((0, 8, 3), np.uint8), "is an array 0×8×3 of uint8"),
        (np.zeros(8, np.uint8), "is an array 8 of uint8"),
        (torch.zeros(8, 8, 3), "is a tensor 8×8×3 of float32"),
        (torch.zeros(4, 8, 8), "is a tensor 4×8×8 of float32"),
        (torch.zeros(8, 8), "is a tensor 8×8 of float32"),
        (torch.zeros(3, 0, 8), "is a tensor 3×0×8 of float32"),
        (torch.zeros(3, 8, 8, dtype=torch.int64), "is a tensor 3×8×8 of int64"),
        (torch.full((3, 8, 8), -0.1), "outside of 0 to 1"),
        (torch.full((3, 8, 8), 1.01), "outside of 0 to 1"),
        (torch.full((3, 8, 8), float("nan")), "outside of 0 to 1"),
    ],
)
def test_images_of_another_form_are_refused_by_number(image, said):
    good = picture("x")
    manifest = read_source({"train": [(good, 0), (good, 1)], "test": [(good, 0), (image, 1)]})
    assert len(pixels_of(manifest, "train")) == 2
    with pytest.raises(UserError, match="item 1 of the test dataset") as refused:
        pixels_of(manifest, "test")
    assert said in str(refused.value) and "Try: a PIL image" in str(refused.value)


def test_a_refusal_leaves_the_worker_process(monkeypatch):
    monkeypatch.setattr(loader, "MANY", 0)
    with pytest.raises(UnreadableImage, match=r"(?s)item 1 of the train dataset is a str.*Try: a PIL image"):
        pixels_of(read_source({"train": [(GREY, 0), ("a.jpg", 1)]}), "train")


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([(GREY, 0), GREY], "Item 1 of the train dataset is a ndarray, not a pair"),
        ([(GREY, 0, 1)], "Item 0 of the train dataset is a tuple of 3, not a pair"),
        ([{"image": GREY, "label": 0}], "Item 0 of the train dataset is a dict, not a pair"),
        (["ab"], "Item 0 of the train dataset is a str, not a pair"),
        ([(GREY, 0), (GREY, 0.5)], "Item 1 of the train dataset has the label 0.5"),
        ([(GREY, None)], "has the label None"),
        ([(GREY, " ")], "has the label ' '"),
        ([(GREY, [1, 0])], r"has the label \[1, 0\]"),
        ([(GREY, -1)], r"(?s)has the label -1.*dataset `open`"),
        ([], "The train dataset is empty"),
        (Pictures([0, 3], classes=["a", "b"]), "Item 1 .* has the label 3.(?s:.*)Its `classes` are 2"),
        (Pictures([0, 1], classes=["a", "a"]), "have a name twice: a"),
        (SimpleNamespace(), "The train split is a SimpleNamespace"),
        ("photos/", "The train split is a str"),
    ],
)
def test_items_and_labels_that_make_no_sense_are_named(items, said):
    with pytest.raises(UserError, match=said):
        read_source({"train": items})


class Failing(Pictures):
    """A dataset with an item that it cannot give."""

    def __getitem__(self, index):
        if index == 2:
            raise OSError("the disk is gone")
        return super().__getitem__(index)


def test_what_a_dataset_raises_is_told_with_the_item():
    with pytest.raises(
        UserError, match=r"Item 2 of the dataset raised OSError: the disk is gone \(.*test_data"
    ):
        read_source(Failing([0, 1, 0]))
    manifest = read_source({"train": Failing([0, 1, 0], targets=[0, 1, 0])})
    with pytest.raises(UnreadableImage, match="Item 2 of the train dataset raised OSError"):
        pixels_of(manifest, "train")


class Stream(IterableDataset):
    def __iter__(self):
        yield picture("x"), 0


class Endless(Dataset):
    def __getitem__(self, index):
        return picture("x"), 0


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({}, "There is no dataset"),
        ({"train": Pictures([0, 1]), "tset": Pictures([0])}, "no split called 'tset'"),
        ({"val": Pictures([0]), "valid": Pictures([0])}, "Two datasets are the val split"),
        (Stream(), "An object of type Stream is no source"),
        (Endless(), "An object of type Endless is no source"),
        (3, "An object of type int is no source"),
        (None, "An object of type NoneType is no source"),
        ({"train": Pictures([0, 1]), "test": Pictures([2])}, "1 class that training never saw: 2"),
    ],
)
def test_objects_that_are_no_source(source, said):
    with pytest.raises(UserError, match=said):
        read_source(source)


def test_a_class_of_datasets_is_no_dataset():
    assert is_dataset(Pictures([0])) and not is_dataset(Pictures)


@pytest.mark.parametrize("workers", [0, 2])
def test_too_many_images_for_memory_are_read_through_the_dataset(workers, monkeypatch):
    monkeypatch.setattr("oltr.data.image_access.KEPT_IN_MEMORY", 100)
    manifest = read_source(splits())
    images = open_images(manifest, ["train", "test"], 8, 8, CPU)["test"]
    assert images.pixels is None and images.home == "a dataset"
    order = [np.array([3, 0]), np.array([2])]
    first, second = images.batches(order, CPU, workers)
    np.testing.assert_array_equal(first.permute(0, 2, 3, 1), [picture("test3"), picture("test0")])
    np.testing.assert_array_equal(second.permute(0, 2, 3, 1), [picture("test2")])


def test_worker_processes_read_the_same(monkeypatch):
    alone = pixels_of(read_source(splits()), "train")
    monkeypatch.setattr(loader, "MANY", 3)
    monkeypatch.setattr(loader, "AT_A_TIME", 2)
    np.testing.assert_array_equal(pixels_of(read_source(splits()), "train"), alone)


def test_the_order_of_random_numbers_is_not_touched():
    manifest, before = read_source(splits()), torch.get_rng_state()
    pixels_of(manifest, "train")
    assert torch.equal(torch.get_rng_state(), before)


def test_packing_checking_and_long_tails_work_through_the_dataset(tmp_path):
    manifest = read_source(splits(test=Pictures([2, 1, 0], key="test", size=10)))
    opened = open_pack(write_pack(manifest, 8, tmp_path / "all.pack"))
    np.testing.assert_array_equal(opened.images[0], picture("train0"))
    assert opened.manifest.fingerprint() == manifest.fingerprint()
    report = check(manifest)
    assert report.images == 14 and report.problems == ()
    assert "small_images" in {finding.kind for finding in report.warnings}
    drawn = make_longtail(manifest, alpha=6, largest=2, smallest=1)
    assert drawn.train_counts().sum() < 6 and pixels_of(drawn, "train").shape[1:] == (8, 8, 3)
    with pytest.raises(UserError, match=r"(?s)manifest.csv was not written.*oltr data pack"):
        drawn.write(tmp_path / "manifest.csv")
    assert not (tmp_path / "manifest.csv").exists()


def test_checking_finds_copies_and_broken_items():
    same = picture("same")
    items = {"train": [(same, 0), (picture("b"), 1)], "test": [(same, 0), (np.zeros(3), 1)]}
    kinds = {finding.kind: finding.items for finding in check(read_source(items)).problems}
    assert kinds["duplicates_across_splits"] == ("train/000000 (train) = test/000000 (test)",)
    assert "item 1 of the test dataset" in kinds["unreadable"][0]


def test_a_thumbnail_of_an_item():
    from oltr.report.page.worst import Thumbnails

    own = Thumbnails(read_source(splits(open=[(np.zeros(3), 0)])))
    assert own.thumbnail("test", 1).startswith("data:image/webp") and own.thumbnail("open", 0) == ""


def test_the_error_survives_pickling_with_its_advice():
    error = pickle.loads(pickle.dumps(UnreadableImage("train/1", "it is odd", "another")))
    assert (str(error.path), error.reason, error.try_this) == ("train/1", "it is odd", "another")


def test_a_picture_that_pil_opens_too_late(tmp_path):
    whole = write_picture(tmp_path / "whole.png", size=64).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[:-500])
    lazy = Image.open(tmp_path / "cut.png")
    manifest = read_source({"train": [(lazy, "a"), (lazy, "b")]})
    with pytest.raises(UnreadableImage, match="train/000000"):
        pixels_of(manifest, "train")
