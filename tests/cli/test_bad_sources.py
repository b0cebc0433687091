"""Sources that cannot be trained on: one message that says what, where and what to try; no run is left."""

from __future__ import annotations

import shutil

import pytest

from tests.cli.conftest import QUICK
from tests.helpers.pictures import class_folders

GOOD = [
    f"{name}/{index}.png,{name},{split}"
    for name in ("a", "b")
    for index, split in enumerate(("train", "train", "val", "test"))
]


@pytest.fixture
def images(tmp_path):
    return class_folders(tmp_path / "images", {"a": 4, "b": 4}, size=16)


@pytest.fixture
def refuses(oltr, tmp_path):
    """Every verb that reads the source refuses it, and training leaves nothing."""

    def check(source, *words, verbs=("check", "stats"), options=()):
        out = tmp_path / "run"
        oltr("train", source, *QUICK, "--out", out, *options).refused(*words)
        assert not out.exists()
        for verb in verbs:
            oltr("data", verb, source, *options).refused(*words)

    return check


def manifest(folder, rows, head="path,label,split", name="m.csv"):
    (folder / name).write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    return folder / name


def test_nothing_there(refuses, tmp_path):
    refuses(tmp_path / "nowhere", "no file or folder", str(tmp_path / "nowhere"), "Try: a path that exists")


def test_an_empty_folder(refuses, tmp_path):
    (tmp_path / "empty").mkdir()
    refuses(tmp_path / "empty", "No images were found", "one folder of images per class")


def test_empty_class_folders(refuses, tmp_path):
    refuses(class_folders(tmp_path / "photos", {"a": 0, "b": 0}), "No images were found")


def test_images_without_class_folders(refuses, images):
    refuses(images / "a", "no class folders", "one folder per class")


def test_one_class(refuses, tmp_path):
    refuses(class_folders(tmp_path / "photos", {"a": 4}), "only one class", verbs=())


def test_not_a_source(refuses, tmp_path):
    (tmp_path / "notes.docx").write_text("")
    refuses(tmp_path / "notes.docx", "notes.docx is not a source", "or a pack (.pack)")


@pytest.mark.parametrize(
    ("rows", "head", "words"),
    [
        (
            [row.rsplit(",", 1)[0] for row in GOOD],
            "path,lable",
            ["lacks the columns label, split", "It has: path, lable"],
        ),
        (GOOD, "path,lable,split", ["lacks the column label", "'lable' → 'label'"]),
        ([row.replace(",", ";") for row in GOOD], "path;label;split", ["separate the columns with commas"]),
        (
            [*GOOD, "a/0.png,a,test"],
            None,
            ["1 path in more than one split: a/0.png", "keep each image in one"],
        ),
        ([*GOOD, "./a/0.png,a,test"], None, ["more than one split"]),
        ([*GOOD, "a/0.png,a,train"], None, ["listed more than once: a/0.png"]),
        ([*GOOD, "c/0.png,zebra,test"], None, ["never saw: zebra", "the split `open`"]),
        ([*GOOD, "c/0.png,zebra,val"], None, ["The val split", "never saw: zebra"]),
        ([*GOOD, "c/0.png,a,open"], None, ["training knows too: a"]),
        ([*GOOD, "c/0.png,a,trian"], None, ["'trian'", "did you mean 'train'?"]),
        ([*GOOD, "c/0.png,,train"], None, ["without a label: row 9"]),
        ([*GOOD, "c/0.png,a,train,more,more"], None, ["cannot be read as a manifest", "line 10"]),
        ([], None, ["no rows"]),
    ],
)
def test_a_manifest(refuses, images, rows, head, words):
    refuses(manifest(images, rows, *([head] if head else [])), "m.csv", *words)


def test_a_manifest_of_no_bytes(refuses, tmp_path):
    for name in ("empty.csv", "empty.parquet"):
        (tmp_path / name).write_bytes(b"")
        refuses(tmp_path / name, f"{name} cannot be read as a manifest")


def test_a_manifest_in_another_encoding(refuses, tmp_path):
    (tmp_path / "m.csv").write_bytes("path,label,split\na.png,dög,train\n".encode("latin-1"))
    refuses(tmp_path / "m.csv", "not UTF-8")


def test_a_manifest_without_training_images(refuses, images):
    refuses(manifest(images, [row for row in GOOD if "train" not in row]), "no training images", verbs=())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a/0.png zero\n", ["_train.txt, line 1", "'zero'", "not an integer"]),
        ("a/0.png\n", ["line 1 has no label"]),
        ("a/0.png 0\n\na/1.png -1\n", ["line 3 has the label -1 in the train list"]),
        ("a/0.png 0\nb/0.png 1\n", ["The test split", "never saw: 7"]),
        ("", ["never saw: 7"]),
    ],
)
def test_lists(oltr, tmp_path, text, words):
    (tmp_path / "X_train.txt").write_text(text)
    (tmp_path / "X_test.txt").write_text("a/2.png 7\n" if text else "")
    said = oltr("train", tmp_path, *QUICK, "--out", tmp_path / "run")
    said.refused(*(words if text else ["are empty"]))


def test_lists_without_their_images(oltr, images, tmp_path):
    (tmp_path / "lists").mkdir()
    for split in ("train", "test"):
        rows = [row.split(",") for row in GOOD if row.endswith(split)]
        lines = [f"{path} {'ab'.index(label)}" for path, label, _ in rows]
        (tmp_path / "lists" / f"X_{split}.txt").write_text("\n".join(lines))
    command = ("train", tmp_path / "lists", *QUICK, "--out", tmp_path / "run")
    oltr(*command).refused("6 of 6 images cannot be read", "no such file", "--root")
    assert not (tmp_path / "run").exists()
    assert oltr(*command, "--root", images).code == 0


@pytest.mark.parametrize("keep", [0, 4, 40, 0.5, -10])
def test_a_pack_cut_short(refuses, pack, tmp_path, keep):
    content = pack.read_bytes()
    cut = tmp_path / "cut.pack"
    cut.write_bytes(content[: int(len(content) * keep) if isinstance(keep, float) else keep])
    refuses(cut, "cut.pack is not a whole pack", "oltr data pack")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty (0 bytes)"), (b"hello", "not an image"), (None, "truncated"), ("gone", "no such file")],
)
def test_an_image_that_cannot_be_read(oltr, images, tmp_path, content, reason):
    victim = images / "a" / "1.png"
    source = images
    if content == "gone":
        source = manifest(images, GOOD)
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:200] if content is None else content)
    oltr("train", source, *QUICK, "--out", tmp_path / "run").refused("1 of 8 images", str(victim), reason)
    oltr("data", "pack", source, "--out", tmp_path / "x.pack").refused("1 of 8 images", str(victim), reason)
    assert not (tmp_path / "run").exists() and not list(tmp_path.glob("*x.pack*"))
    said = oltr("data", "check", source)
    assert (
        said.code == 2
        and "a/1.png" in said.out
        and ("not there" if content == "gone" else reason) in said.out
    )


def test_other_data_for_a_trained_run(oltr, trained, images, tmp_path):
    words = ("2 classes of the source are not among the run's", "a, b", "open split")
    oltr("evaluate", trained["oltr"], "--source", images).refused(*words)


def test_resuming_on_other_data(oltr, photos, tmp_path):
    mine = shutil.copytree(photos, tmp_path / "photos")
    command = ("train", mine, *QUICK, "--method", "plain", "--out", tmp_path / "run")
    assert oltr(*command).code == 0
    next((mine / "cat").iterdir()).unlink()
    oltr(*command, "--resume").refused("trained on other data", "a new --out")
