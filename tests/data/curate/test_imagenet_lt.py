"""ImageNet-LT from lists, from trees of each layout, and at its real size from an index."""

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from oltr.cli.data import draw_classes
from oltr.data.curate import CurateOptions, curate
from oltr.data.curate import imagenet_lt as module
from oltr.data.sources import read_source
from oltr.data.stats import stats
from oltr.errors import UserError
from tests.helpers.pictures import touch, write_picture

WNIDS = ["n00000001", "n00000002", "n00000003"]


@pytest.fixture
def toy_size(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 12)


def tree(root, flat=False, classes=WNIDS):
    """An ILSVRC2012 tree of empty files: 40 training images and 2 validation images of each class."""
    for c, wnid in enumerate(classes):
        touch(*(root / "train" / wnid / f"{wnid}_{n}.JPEG" for n in range(40)))
        for n in (2 * c + 1, 2 * c + 2):
            name = f"ILSVRC2012_val_{n:08d}.JPEG"
            touch(root / "val" / name if flat else root / "val" / wnid / name)
    return root


def made(tmp_path, **options):
    curated = curate("imagenet-lt", CurateOptions(tmp_path / "out", **options), draw_classes)
    table = read_source(tmp_path / "out").table
    pd.testing.assert_frame_equal(table, curated.manifest.table)
    return curated, table


def test_the_recipe_on_a_tree(tmp_path, toy_size):
    curated, table = made(tmp_path, root=tree(tmp_path / "ilsvrc"))
    assert stats(curated.manifest)["images"] == {"train": 12 + 7 + 5, "val": 60, "test": 6, "open": 0}
    assert read_source(tmp_path / "out").root == tmp_path / "ilsvrc"
    assert all((tmp_path / "ilsvrc" / path).is_file() for path in table["path"])
    assert all(row.label in row.path for row in table.itertuples())
    assert any("1,000 classes; here are 3" in note for note in curated.manifest.notes)
    assert "![" in (tmp_path / "out" / "card.md").read_text() and (tmp_path / "out" / "classes.png").is_file()


GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"


@pytest.mark.parametrize("form", ["kit", "map", "wnids", "caffe", "kaggle"])
def test_flat_validation_images_are_labelled_by_the_ground_truth(tmp_path, toy_size, form):
    root = tree(tmp_path / "ilsvrc", flat=True)
    # The kit numbers classes in an order of its own: 1 is the third wnid.
    kit = {1: WNIDS[2], 2: WNIDS[0], 3: WNIDS[1]}
    labels = [2, 2, 3, 3, 1, 1]
    names = [f"ILSVRC2012_val_{n:08d}" for n in range(1, 7)]
    if form in ("kit", "map"):
        (root / GROUND_TRUTH).write_text("".join(f"{label}\n" for label in labels))
    if form == "kit":
        synsets = np.array(list(kit.items()), dtype=[("ILSVRC2012_ID", object), ("WNID", object)])
        (root / "ILSVRC2012_devkit_t12" / "data").mkdir(parents=True)
        savemat(root / "ILSVRC2012_devkit_t12" / "data" / "meta.mat", {"synsets": synsets})
    elif form == "map":
        (root / "map_clsloc.txt").write_text("".join(f"{w} {n} some_name\n" for n, w in kit.items()))
    elif form == "wnids":
        (root / GROUND_TRUTH).write_text("".join(f"{kit[label]}\n" for label in labels))
    elif form == "caffe":  # numbers here do follow the order of the wnids
        (root / "val.txt").write_text("".join(f"{n}.JPEG {i // 2}\n" for i, n in enumerate(names)))
    else:
        lines = [f"{n},{kit[label]} 1 2 3 4\n" for n, label in zip(names, labels, strict=True)]
        (root / "LOC_val_solution.csv").write_text("ImageId,PredictionString\n" + "".join(lines))
    _, table = made(tmp_path, root=root)
    test = table[table["split"] == "test"]
    assert test["label"].tolist() == [wnid for wnid in WNIDS for _ in range(2)]


def test_flat_validation_images_without_a_ground_truth_are_refused(tmp_path, toy_size):
    root = tree(tmp_path / "ilsvrc", flat=True)
    with pytest.raises(UserError, match="no ground truth"):
        made(tmp_path, root=root)
    (root / GROUND_TRUTH).write_text("1\n1\n2\n2\n3\n3\n")
    with pytest.raises(UserError, match="nothing says which class each of them is"):
        made(tmp_path, root=root)
    (root / GROUND_TRUTH).write_text("\n".join([WNIDS[0]] * 5))
    with pytest.raises(UserError, match="lacks 1 image: val/ILSVRC2012_val_00000006"):
        made(tmp_path, root=root)
    assert not (tmp_path / "out").exists()


def test_a_missing_class_folder_is_named(tmp_path, toy_size):
    root = tree(tmp_path / "ilsvrc")
    for file in (root / "val" / WNIDS[1]).iterdir():
        file.unlink()
    with pytest.raises(UserError, match=f"1 class missing in the validation images: {WNIDS[1]}"):
        made(tmp_path, root=root)


@pytest.mark.parametrize("flat", [True, False])
def test_open_images_are_those_of_ilsvrc2010_whose_class_is_not_known(tmp_path, toy_size, flat):
    later = tmp_path / "ilsvrc2010"
    shown = [WNIDS[0], "n00000009", "n00000008", "n00000009"]
    for n, wnid in enumerate(shown, start=1):
        name = f"ILSVRC2010_val_{n:08d}.JPEG"
        touch(later / name if flat else later / wnid / name)
    if flat:
        (later / "ILSVRC2010_validation_ground_truth.txt").write_text("\n".join(shown))
    curated, table = made(tmp_path, root=tree(tmp_path / "ilsvrc"), open_root=later)
    opened = table[table["split"] == "open"].sort_values("path")
    assert sorted(opened["label"]) == ["n00000008", "n00000009", "n00000009"]
    assert any("3 ILSVRC2010 validation images of the 2 classes" in line for line in curated.recipe)


def test_any_other_open_folder_must_not_show_known_classes(tmp_path, toy_size):
    touch(tmp_path / "open" / WNIDS[0] / "a.jpg", tmp_path / "open" / "n5" / "b.jpg")
    with pytest.raises(UserError, match=f"1 class that training knows too: {WNIDS[0]}"):
        made(tmp_path, root=tree(tmp_path / "ilsvrc"), open_root=tmp_path / "open")


def lists(folder, train=True):
    folder.mkdir()
    parts = {
        "val": [(f"train/{w}/{w}_9.JPEG", c) for c, w in enumerate(WNIDS)],
        "test": [
            (f"val/{w}/ILSVRC2012_val_{2 * c + k:08d}.JPEG", c) for c, w in enumerate(WNIDS) for k in (1, 2)
        ],
        "open": [("ILSVRC2010_val_00000007.JPEG", -1)],
    }
    if train:
        parts["train"] = [(f"train/{w}/{w}_{n}.JPEG", c) for c, w in enumerate(WNIDS) for n in range(3 + c)]
    for split, rows in parts.items():
        (folder / f"ImageNet_LT_{split}.txt").write_text("".join(f"{path} {c}\n" for path, c in rows))
    return folder


@pytest.mark.parametrize("flat", [True, False])
def test_lists_give_exactly_those_images(tmp_path, flat):
    root = tree(tmp_path / "ilsvrc", flat)
    write_picture(tmp_path / "ilsvrc2010" / "ILSVRC2010_val_00000007.JPEG")
    curated, table = made(
        tmp_path, root=root, lists=lists(tmp_path / "lists"), open_root=tmp_path / "ilsvrc2010"
    )
    assert stats(curated.manifest)["images"] == {"train": 12, "val": 3, "test": 6, "open": 1}
    assert set(table["label"]) == {*WNIDS, "unknown"}
    assert all((root / path).is_file() for path in table["path"])
    assert curated.seed is None


def test_lists_without_a_train_list_are_legal(tmp_path):
    (tmp_path / "index.txt").write_text("a.jpg\n")
    curated, _ = made(tmp_path, index=tmp_path / "index.txt", lists=lists(tmp_path / "lists", train=False))
    assert stats(curated.manifest)["images"] == {"train": 0, "val": 3, "test": 6, "open": 1}
    assert any("The index lacks 10 listed files" in note for note in curated.manifest.notes)
    assert not (tmp_path / "out" / "classes.png").exists()


def test_listed_files_that_are_not_there_are_counted_and_the_first_five_named(tmp_path):
    root = tree(tmp_path / "ilsvrc", classes=WNIDS[:2])
    with pytest.raises(UserError) as caught:
        made(tmp_path, root=root, lists=lists(tmp_path / "lists"))
    said = str(caught.value)
    assert said.startswith("Not there: 9 of 22 listed files, ")
    assert said.split("\n")[0].count(".JPEG") == 5 and "and 4 more" in said
    assert not (tmp_path / "out").exists()


def test_an_image_in_two_lists_is_refused(tmp_path):
    folder = lists(tmp_path / "lists")
    with (folder / "ImageNet_LT_test.txt").open("a") as file:
        file.write(f"train/{WNIDS[0]}/{WNIDS[0]}_0.JPEG 0\n")
    with pytest.raises(UserError, match="1 path in more than one split"):
        write_picture(tmp_path / "ILSVRC2010_val_00000007.JPEG")
        made(tmp_path, root=tree(tmp_path / "ilsvrc"), lists=folder, open_root=tmp_path)


@pytest.mark.soak
def test_the_real_size_from_an_index(tmp_path):
    sizes = 1281 + (np.arange(1000) < 167)
    names = [f"n{c:08d}" for c in range(1000)]
    lines = [f"train/{w}/{w}_{n}.JPEG\n" for w, size in zip(names, sizes, strict=True) for n in range(size)]
    assert len(lines) == 1_281_167
    (tmp_path / "index.txt").write_text("".join(lines))
    options = CurateOptions(tmp_path / "out", root=tmp_path / "nowhere", index=tmp_path / "index.txt")
    facts = stats(curate("imagenet-lt", options).manifest)
    assert abs(facts["images"]["train"] - 115_846) < 11_584
    assert (facts["classes"], facts["max"], facts["min"]) == (1000, 1280, 5)
    assert [abs(n - m) <= 20 for n, m in zip(facts["shots"].values(), (385, 479, 136), strict=True)] == [
        True
    ] * 3


def test_same_seed_same_bytes_whatever_the_order_of_the_index(tmp_path, toy_size):
    lines = [f"train/{w}/{n}.JPEG\n" for w in WNIDS for n in range(40)]
    written = []
    for name, text, seed in (("a", lines, 0), ("b", lines[::-1], 0), ("c", lines, 1)):
        (tmp_path / "index.txt").write_text("".join(text))
        options = CurateOptions(tmp_path / name, index=tmp_path / "index.txt", seed=seed)
        curate("imagenet-lt", options, draw_classes)
        files = ("manifest.csv", "card.md", "classes.png")
        written.append([(tmp_path / name / file).read_bytes() for file in files])
    assert written[0] == written[1]
    assert written[0][0] != written[2][0]


@pytest.mark.parametrize("flat", [True, False])
def test_a_root_above_the_tree_is_refused(tmp_path, toy_size, flat):
    """Validation images would be taken for training images, or for a class called val."""
    tree(tmp_path / "kaggle" / "Data" / "CLS-LOC", flat)
    with pytest.raises(UserError, match="--root with its folder Data/CLS-LOC"):
        made(tmp_path, root=tmp_path / "kaggle")


def test_a_root_without_images_and_images_outside_class_folders_are_refused(tmp_path, toy_size):
    (tmp_path / "empty" / "train").mkdir(parents=True)
    with pytest.raises(UserError, match="No images were found"):
        made(tmp_path, root=tmp_path / "empty")
    root = tree(tmp_path / "ilsvrc")
    touch(root / "train" / "loose.JPEG")
    with pytest.raises(UserError, match="1 training image outside any class folder"):
        made(tmp_path, root=root)


@pytest.mark.parametrize(
    "files",
    [
        {"LOC_val_solution.csv": ""},
        {"LOC_val_solution.csv": "one\ncolumn\n"},
        {"LOC_val_solution.csv": "ImageId,PredictionString\nILSVRC2012_val_00000001,\n"},
        {"LOC_val_solution.csv": b"\xff\xfe"},
        {GROUND_TRUTH: "1\n2\n3\n", "map_clsloc.txt": "junk\n"},
        {GROUND_TRUTH: ""},
    ],
)
def test_a_broken_ground_truth_is_refused(tmp_path, toy_size, files):
    root = tree(tmp_path / "ilsvrc", flat=True)
    for name, content in files.items():
        (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=r"lacks \d image|cannot be read|missing in"):
        made(tmp_path, root=root)


def test_a_stray_image_does_not_make_known_classes_open(tmp_path, toy_size):
    later = tmp_path / "ilsvrc" / "ILSVRC2010_val"
    root = tree(tmp_path / "ilsvrc")
    touch(*(later / f"ILSVRC2010_val_{n:08d}.JPEG" for n in (1, 2)), later / "overview.png")
    (later / "ILSVRC2010_validation_ground_truth.txt").write_text(f"{WNIDS[0]}\nn00000009\n")
    (root / "LOC_val_solution.csv").write_text("ImageId,PredictionString\n")  # of ILSVRC2012 alone
    _, table = made(tmp_path, root=root, open_root=later)
    opened = table[table["split"] == "open"]
    assert (
        opened["label"].tolist() == ["n00000009"] and opened["path"].str.contains("2010_val_00000002").all()
    )


def test_a_test_image_cannot_be_open_too(tmp_path, toy_size):
    root = tree(tmp_path / "ilsvrc", flat=True)
    (root / GROUND_TRUTH).write_text("\n".join(wnid for wnid in WNIDS for _ in range(2)))
    with pytest.raises(UserError, match="6 paths in more than one split"):
        made(tmp_path, root=root, open_root=root / "val")


def test_an_open_root_that_the_lists_have_no_use_for_is_refused(tmp_path):
    folder = lists(tmp_path / "lists")
    (folder / "ImageNet_LT_open.txt").unlink()
    with pytest.raises(UserError, match="name no open images"):
        made(tmp_path, root=tree(tmp_path / "ilsvrc"), lists=folder, open_root=tmp_path)


def test_lists_whose_numbers_and_folders_disagree_are_told_of(tmp_path):
    folder = lists(tmp_path / "lists", train=False)
    with (folder / "ImageNet_LT_val.txt").open("a") as file:
        file.write(f"train/{WNIDS[0]}/{WNIDS[0]}_8.JPEG 1\n")
    (tmp_path / "index.txt").write_text("a.jpg\n")
    curated, _ = made(tmp_path, index=tmp_path / "index.txt", lists=folder)
    assert curated.manifest.classes == ("0", "1", "2")
    assert any("called by their numbers" in note for note in curated.manifest.notes)


def test_a_listed_open_image_of_a_known_class_is_refused(tmp_path):
    folder = lists(tmp_path / "lists")
    with (folder / "ImageNet_LT_open.txt").open("a") as file:
        file.write(f"train/{WNIDS[0]}/{WNIDS[0]}_30.JPEG -1\n")
    with pytest.raises(UserError, match=f"1 class both known and open: {WNIDS[0]}"):
        made(tmp_path, root=tree(tmp_path / "ilsvrc"), lists=folder)


def test_empty_lists_and_folders_in_place_of_images_are_refused(tmp_path):
    folder, root = tmp_path / "lists", tree(tmp_path / "ilsvrc")
    folder.mkdir()
    for content, words in {"": "are empty", f"train/{WNIDS[0]} 0\n": "1 of 1 listed file"}.items():
        (folder / "ImageNet_LT_train.txt").write_text(content)
        with pytest.raises(UserError, match=words):
            made(tmp_path, root=root, lists=folder)
