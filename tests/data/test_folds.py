import numpy as np
import pandas as pd
import pytest

from oltr.data.folds import make_folds
from oltr.data.groups import find_groups
from oltr.data.sources import read_source
from oltr.errors import UserError


def long_tailed(sizes, **columns):
    labels = [label for label, size in sizes.items() for _ in range(size)]
    paths = [f"{label}/{number}.jpg" for number, label in enumerate(labels)]
    return pd.DataFrame({"path": paths, "label": labels}).assign(**columns)


SIZES = {"a": 50, "b": 23, "c": 10, "d": 3, "e": 1, "": 4}


def test_every_image_is_tested_once_in_folds_of_equal_classes():
    folds = make_folds(read_source(long_tailed(SIZES)), 5)
    assert len(folds.manifests) == 5
    tested = pd.concat([manifest.rows("test") for manifest in folds.manifests])
    assert tested["path"].is_unique and len(tested) == 50 + 23 + 10 + 3
    for manifest in folds.manifests:
        assert manifest.classes == tuple("abcde") and (manifest.train_counts() > 0).all()
        counts = manifest.rows("test")["label"].value_counts()
        assert (counts["a"], counts["c"]) == (10, 2) and counts["b"] in (4, 5)
        assert abs(manifest.sizes()["test"] - 86 / 5) < 1.5 and abs(manifest.sizes()["val"] - 87 / 5) < 2
        assert manifest.sizes()["open"] == 4 and manifest.split_kept
    assert len({manifest.fingerprint() for manifest in folds.manifests}) == 5
    notes = " ".join(folds.notes)
    assert "2 classes with fewer than 5 images, not tested in every fold: d, e" in notes
    assert "1 class never tested, for training needs their one image: e" in notes
    assert "pooled" not in notes and "Split made for you" not in notes


def test_the_same_folds_each_time():
    one, other = (make_folds(read_source(long_tailed(SIZES)), 3).manifests for _ in range(2))
    assert [m.fingerprint() for m in one] == [m.fingerprint() for m in other]


def test_splits_of_the_source_are_pooled():
    splits = ["train"] * 40 + ["test"] * 10
    table = long_tailed({"a": 25, "b": 25}, split=np.random.default_rng(0).permutation(splits))
    folds = make_folds(read_source(table), 5)
    assert sum(manifest.sizes()["test"] for manifest in folds.manifests) == 50
    assert any("pooled: train 40, val 0, test 10" in note for note in folds.notes)


def test_groups_stay_whole():
    rng = np.random.default_rng(0)
    table = long_tailed({"a": 120, "b": 60, "c": 20, "lone": 5})
    table["site"] = [f"s{n}" for n in rng.integers(0, 30, len(table))]
    table.loc[table["label"] == "lone", "site"] = "s7"
    manifest = read_source(table)
    folds = make_folds(manifest, 4, find_groups(manifest, "site"))
    for fold in folds.manifests:
        assert (fold.table.groupby("site")["split"].nunique() == 1).all()
        assert (fold.train_counts() > 0).all() and "s7" not in set(fold.rows("test")["site"])
    tested = pd.concat([fold.rows("test") for fold in folds.manifests])
    assert sorted(tested["path"]) == sorted(table.loc[table["site"] != "s7", "path"])
    notes = " ".join(folds.notes)
    assert "1 class never tested, for training needs their one group: lone" in notes
    assert f"{(table['site'] == 's7').sum()} images in groups that training always needs" in notes


@pytest.mark.parametrize(("folds", "said"), [(1, "--folds 1 is too small"), (9, "there are 4")])
def test_folds_that_cannot_be(folds, said):
    with pytest.raises(UserError, match=said):
        make_folds(read_source(long_tailed({"a": 2, "b": 2})), folds)
