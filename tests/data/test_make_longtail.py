import pandas as pd
import pytest

from oltr.data.longtail import exponential_counts, pareto_counts
from oltr.data.make_longtail import make_longtail
from oltr.data.manifest import Manifest
from oltr.errors import UserError


def source(sizes=None, splits=("train", "val", "test"), extra_open=0):
    """Classes c0, c1 ...: `sizes[i]` train images, 5 val and 5 test images each."""
    sizes = sizes or [100] * 20
    rows = []
    for number, size in enumerate(sizes):
        for split in splits:
            rows += [
                (f"{split}/c{number}/{index}.jpg", f"c{number}", split)
                for index in range(size if split == "train" else 5)
            ]
    rows += [(f"open/{index}.jpg", "", "open") for index in range(extra_open)]
    return Manifest.build(
        pd.DataFrame(rows, columns=["path", "label", "split"]).assign(site="north"), "/images"
    )


def test_exponential_counts_known_and_open_classes():
    made = make_longtail(source(extra_open=3), imbalance=50, largest=100, open_classes=0.2)
    assert len(made.classes) == 16
    assert sorted(made.train_counts(), reverse=True) == exponential_counts(16, 100, 50).tolist()
    assert made.sizes() | {"train": 0} == {"train": 0, "val": 16 * 5, "test": 16 * 5, "open": 4 * 5 + 3}
    opened = set(made.rows("open")["label"]) - {"unknown"}
    assert len(opened) == 4
    assert not opened & set(made.classes)
    assert made.rows("open")["path"].str.startswith(("test/", "open/")).all()
    assert set(made.table["site"]) == {"north"}


def test_pareto_counts_and_a_number_of_open_classes():
    made = make_longtail(source(), alpha=6, largest=90, smallest=3, open_classes=5)
    assert len(made.classes) == 15
    assert sorted(made.train_counts(), reverse=True) == pareto_counts(15, 90, 3, 6).tolist()


def test_classes_with_more_images_get_more():
    made = make_longtail(source([40, 200, 60, 120, 80]), imbalance=10, largest=200)
    counts = dict(zip(made.classes, made.train_counts(), strict=True))
    assert sorted(counts, key=lambda name: -counts[name]) == ["c1", "c3", "c4", "c2", "c0"]


def test_the_largest_class_defaults_to_what_the_images_allow():
    sizes = [200, 120, 80, 60, 40]
    made = make_longtail(source(sizes), imbalance=10)
    counts = made.train_counts().tolist()
    assert max(counts) == 200
    # The second class cannot fill a flatter profile: there the top is set by it.
    flat = make_longtail(source(sizes), imbalance=2).train_counts().max()
    assert (exponential_counts(5, flat, 2) <= sizes).all()
    assert (exponential_counts(5, flat + 1, 2) > sizes).any()


def test_without_val_and_test_they_come_from_unused_images():
    made = make_longtail(source([100] * 10, splits=("train",)), imbalance=10, largest=60, open_classes=2)
    assert made.rows("test")["label"].value_counts().tolist() == [20] * 8
    assert made.rows("val")["label"].value_counts().tolist() == [10] * 8
    assert made.sizes()["open"] == 200  # all images of the two open classes
    assert not made.table["path"].duplicated().any()


def test_val_is_what_training_leaves():
    made = make_longtail(source([100] * 4, splits=("train", "test")), imbalance=100, largest=100)
    per_class = made.rows("val")["label"].value_counts()
    largest = made.classes[made.train_counts().argmax()]
    assert largest not in per_class
    assert per_class.tolist() == [10, 10, 10]


def test_the_seed_decides():
    first, again, other = (make_longtail(source(), alpha=6, open_classes=4, seed=seed) for seed in (0, 0, 1))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()


def test_too_few_images_name_the_classes_and_a_possible_max():
    with pytest.raises(UserError) as refused:
        make_longtail(source([100, 50, 40, 30]), imbalance=2, largest=100)
    message = str(refused.value)
    assert "c1 (has 50, needs 79)" in message
    possible = int(message.split("--max ")[1].split()[0])
    make_longtail(source([100, 50, 40, 30]), imbalance=2, largest=possible)
    with pytest.raises(UserError):
        make_longtail(source([100, 50, 40, 30]), imbalance=2, largest=possible + 1)
    with pytest.raises(UserError, match="smaller --min"):
        make_longtail(source([100, 4]), alpha=6, smallest=10)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 6, "imbalance": 10},
        {"alpha": -1},
        {"imbalance": 0.5},
        {"alpha": 6, "smallest": 0},
        {"alpha": 6, "largest": 3, "smallest": 5},
        {"alpha": 6, "open_classes": 20},
        {"alpha": 6, "open_classes": 2.5},
        {"alpha": 6, "open_classes": -1},
    ],
)
def test_senseless_options_are_refused(options):
    with pytest.raises(UserError):
        make_longtail(source(), **options)


def test_a_source_without_train_images_is_refused():
    with pytest.raises(UserError, match="train split"):
        make_longtail(source(splits=("test",)), alpha=6)
