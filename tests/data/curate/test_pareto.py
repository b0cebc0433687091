"""The recipe of ImageNet-LT and Places-LT on made-up paths."""

import numpy as np
import pytest

from oltr.data.curate.imagenet_lt import class_of
from oltr.data.curate.pareto import _require_same_classes, class_pools, draw, draw_pareto
from oltr.data.longtail import pareto_counts
from oltr.errors import UserError


def paths(sizes):
    return [f"train/{name}/{n}.jpg" for name, size in sizes.items() for n in range(size)]


def test_pools_are_the_positions_of_each_class():
    assert {k: v.tolist() for k, v in class_pools(np.array(["b", "a", "b"])).items()} == {
        "a": [1],
        "b": [0, 2],
    }


def test_counts_follow_the_distribution_and_splits_are_disjoint():
    drawn = draw_pareto(paths(dict.fromkeys("abcdef", 70)), class_of, 40, None, seed=0)
    sizes = drawn.table[drawn.table["split"] == "train"]["label"].value_counts()
    assert sorted(sizes, reverse=True) == pareto_counts(6, 40, 5).tolist()
    assert (drawn.table[drawn.table["split"] == "val"]["label"].value_counts() == 20).all()
    assert not drawn.table["path"].duplicated().any() and drawn.notes == ()
    assert all(class_of(row.path) == row.label for row in drawn.table.itertuples())


def test_the_seed_decides_and_a_class_does_not_depend_on_the_others():
    pools = {"a": np.arange(100), "b": np.arange(100, 200)}
    train, val, _ = draw(pools, ["a", "b"], np.array([30, 10]), 20, seed=4)
    again, alone = draw(pools, ["a", "b"], np.array([30, 10]), 20, seed=4), {"b": pools["b"]}
    assert np.array_equal(train, again[0]) and np.array_equal(val, again[1])
    assert not np.array_equal(train, draw(pools, ["a", "b"], np.array([30, 10]), 20, seed=5)[0])
    assert np.array_equal(draw(alone, ["b"], np.array([10]), 20, seed=4)[0], train[30:])


def test_validation_takes_what_training_leaves():
    train, val, notes = draw({"a": np.arange(32)}, ["a"], np.array([30]), 20, seed=0)
    assert len(train) == 30 and len(val) == 2 and set(train) | set(val) == set(range(32))
    assert "Fewer than 20 unused images for validation in 1 class: a (2)." in notes[0]


def test_too_few_images_are_counted_and_named():
    with pytest.raises(UserError, match=r"Not enough images in 2 classes: a \(has 39, needs 40\), b"):
        draw({"a": np.arange(39), "b": np.arange(3)}, ["a", "b"], np.array([40, 5]), 20, seed=0)
    with pytest.raises(UserError, match="1 training image outside any class folder"):
        draw_pareto(["loose.jpg", "a/1.jpg"], class_of, 40, None, seed=0)


def test_training_and_test_must_show_the_same_classes():
    with pytest.raises(UserError, match="1 class missing in the validation images: b"):
        _require_same_classes({"a", "b"}, {"a"})
    with pytest.raises(UserError, match="1 class missing in the training images: b"):
        _require_same_classes({"a"}, {"a", "b"})
