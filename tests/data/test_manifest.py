import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oltr.data.manifest import Manifest
from oltr.data.sources import read_source
from oltr.errors import UserError


def table(*rows):
    return pd.DataFrame(rows, columns=["path", "label", "split"])


def small():
    return Manifest.build(
        table(
            ("a/1.jpg", "lynx", "train"),
            ("a/2.jpg", "lynx", "train"),
            ("b/1.jpg", "Bär", "train"),
            ("b/2 mit Leerzeichen.jpg", "Bär", "test"),
            ("c/1.jpg", "", "open"),
        ),
        "/images",
    )


def test_classes_labels_counts_and_sizes():
    manifest = small()
    assert manifest.classes == ("Bär", "lynx")
    assert manifest.labels("train").tolist() == [1, 1, 0]
    assert manifest.labels("train").dtype == np.int64
    assert manifest.labels("open").tolist() == [-1]
    assert manifest.labels("val").shape == (0,)
    assert manifest.train_counts().tolist() == [1, 2]
    assert manifest.sizes() == {"train": 3, "val": 0, "test": 1, "open": 1}
    assert manifest.rows("open")["label"].tolist() == ["unknown"]


def test_paths_start_at_the_root_unless_absolute():
    manifest = Manifest.build(
        table(("a b/é.jpg", "x", "train"), ("/elsewhere/2.jpg", "x", "train")), "/images"
    )
    assert manifest.paths("train") == [Path("/images/a b/é.jpg"), Path("/elsewhere/2.jpg")]


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["10", "9", "0"], ["0", "9", "10"]),
        (["img10", "img9", "Img1"], ["Img1", "img9", "img10"]),
        (["10", "9", "apple"], ["9", "10", "apple"]),
    ],
)
def test_classes_are_in_natural_order(names, order):
    manifest = Manifest.build(table(*[(f"{name}.jpg", name, "train") for name in names]), ".")
    assert list(manifest.classes) == order


def test_extra_columns_and_missing_cells():
    frame = table(("1.jpg", 3.0, "train"), ("2.jpg", None, "open")).assign(site=["north", "south"])
    manifest = Manifest.build(frame, ".")
    assert manifest.classes == ("3",)
    assert manifest.table["label"].tolist() == ["3", "unknown"]
    assert manifest.table["site"].tolist() == ["north", "south"]


def test_single_image_class_is_noted_and_no_train_split_is_legal():
    assert any("single training image" in note and "Bär" in note for note in small().notes)
    manifest = Manifest.build(table(("1.jpg", "7", "val"), ("2.jpg", "5", "test")), ".")
    assert manifest.classes == ("5", "7")
    assert manifest.train_counts().tolist() == [0, 0]
    assert any("no train split" in note for note in manifest.notes)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("1.jpg", "a", "train"), ("2.jpg", "b", "test")], ["test", "1 class", "never saw", "b"]),
        ([("1.jpg", "a", "train"), ("2.jpg", "a", "open")], ["open", "a"]),
        ([("1.jpg", "a", "train"), ("1.jpg", "a", "test")], ["1 path", "more than one split", "1.jpg"]),
        ([("1.jpg", "a", "train"), ("./1.jpg", "a", "train")], ["1 path", "more than once"]),
        (
            [("1.jpg", "a", "train"), (str(Path("1.jpg").absolute()), "", "open")],
            ["1 path", "more than one split", "1.jpg"],
        ),
        ([("1.jpg", "", "train")], ["without a label", "row 1"]),
        ([("", "a", "train")], ["without a path"]),
        ([("1.jpg", "a", "training")], ["'training'", "did you mean 'train'"]),
        ([], ["no rows"]),
    ],
)
def test_bad_tables_are_refused_in_words(rows, said):
    with pytest.raises(UserError) as refused:
        Manifest.build(table(*rows), ".")
    for words in said:
        assert words in str(refused.value)


def test_many_duplicates_are_counted_and_five_named():
    rows = [(f"{i}.jpg", "a", split) for i in range(7) for split in ("train", "val")]
    with pytest.raises(UserError, match=r"7 paths .*0\.jpg.* and 2 more"):
        Manifest.build(table(*rows), ".")


def test_missing_columns_are_named_with_a_guess():
    frame = pd.DataFrame({"Paths": ["1.jpg"], "label": ["a"], "fold": ["train"]})
    with pytest.raises(UserError) as refused:
        Manifest.build(frame, ".")
    message = str(refused.value)
    assert "path, split" in message
    assert "Paths, label, fold" in message
    assert "'Paths' → 'path'" in message


def test_fingerprint_depends_on_content_alone():
    first, second = small(), small()
    assert first.fingerprint() == second.fingerprint()
    assert Manifest.build(first.table, "/elsewhere").fingerprint() == first.fingerprint()
    changed = first.table.copy()
    changed.loc[0, "path"] = "a/3.jpg"
    assert Manifest.build(changed, "/images").fingerprint() != first.fingerprint()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_written_and_read_back_with_the_same_bytes(tmp_path, suffix):
    manifest = small()
    file = tmp_path / f"set{suffix}"
    manifest.write(file)
    bytes_of = hashlib.sha256(file.read_bytes()).hexdigest()
    back = read_source(file)
    pd.testing.assert_frame_equal(back.table, manifest.table, check_dtype=False)
    assert back.root == manifest.root
    assert back.fingerprint() == manifest.fingerprint()
    back.write(file)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == bytes_of
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_root_is_recorded_only_where_it_is_needed(tmp_path):
    manifest = Manifest.build(small().table, tmp_path)
    manifest.write(tmp_path / "beside.csv")
    assert "root" not in (tmp_path / "beside.csv").read_text()
    manifest.write(tmp_path / "recorded.csv", record_root=True)
    assert str(tmp_path) in (tmp_path / "recorded.csv").read_text()
    assert "root" not in read_source(tmp_path / "recorded.csv").table


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "set.csv"
    small().write(file)
    before = file.read_bytes()

    def full(self, path, **options):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(UserError, match="No space left"):
        small().write(file)
    assert file.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["set.csv"]


def test_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"csv or \.parquet"):
        small().write(tmp_path / "set.txt")


def test_names_with_every_mark_are_read_back(tmp_path):
    odd = ["a,b", 'say "a"', "line\nfeed", "carriage\rreturn", "tab\tx", "NA", "007", "雪 豹"]
    made = Manifest.build(table(*((f"{name}/1.jpg", name, "train") for name in odd)), "/images")
    made.write(tmp_path / "manifest.csv")
    back = read_source(tmp_path / "manifest.csv")
    pd.testing.assert_frame_equal(back.table, made.table)
    assert back.root == made.root


def test_a_root_that_cannot_be_recorded_is_refused(tmp_path):
    made = Manifest.build(table(("1.jpg", "a", "train")), "/caf\udce9")
    with pytest.raises(UserError, match="not valid UTF-8"):
        made.write(tmp_path / "manifest.csv")
