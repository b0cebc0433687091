"""Which classes are large: the forms in which an order may be given."""

import json

import pytest

from oltr.data.curate.class_order import largest_first, read_order
from oltr.data.curate.places_lt import class_of
from oltr.errors import UserError

CLASSES = ["airfield", "arena/hockey", "bar", "zoo"]


def order_of(file):
    ranks = read_order(file, CLASSES, class_of)
    return largest_first(dict.fromkeys(CLASSES, 1), ranks, seed=0)


def test_names_from_the_largest_on(tmp_path):
    file = tmp_path / "order.txt"
    file.write_text("/z/zoo\n/b/bar\n/a/arena/hockey\n\n/a/airfield\n")
    assert order_of(file) == ["zoo", "bar", "arena/hockey", "airfield"]


def test_names_with_their_sizes(tmp_path):
    file = tmp_path / "order.txt"
    file.write_text("airfield 10\narena/hockey 40\nbar 20\nzoo 30\n")
    assert order_of(file) == ["arena/hockey", "zoo", "bar", "airfield"]


def test_a_list_of_images_is_counted(tmp_path):
    file = tmp_path / "places365_train_challenge.txt"
    sizes = {"/a/airfield": 2, "/a/arena/hockey": 5, "/b/bar": 1, "/z/zoo": 3}
    lines = [f"{place}/{n:08d}.jpg {c}" for c, (place, size) in enumerate(sizes.items()) for n in range(size)]
    file.write_text("\n".join(lines))
    assert order_of(file) == ["arena/hockey", "zoo", "airfield", "bar"]


@pytest.mark.parametrize(
    "content",
    [
        {"base_classes": [1, 3], "novel_classes": [0, 2]},
        {"base_classes": [2, 4], "novel_classes_1": [1], "novel_classes_2": [3]},  # numbered from 1
        {"base_classes": ["zoo", "arena/hockey"], "novel_classes": ["bar", "airfield"]},
    ],
)
def test_base_classes_come_before_novel_ones(tmp_path, content):
    (tmp_path / "split.json").write_text(json.dumps(content))
    ranks = read_order(tmp_path / "split.json", CLASSES, class_of)
    assert ranks == {"airfield": 1, "arena/hockey": 0, "bar": 1, "zoo": 0}


def test_within_a_rank_larger_classes_come_first_and_ties_follow_the_seed():
    sizes = {"a": 5, "b": 9, "c": 5, "d": 5, "e": 5}
    orders = {tuple(largest_first(sizes, None, seed)) for seed in range(20)}
    assert all(order[0] == "b" for order in orders) and len(orders) > 5
    assert largest_first(sizes, {"a": 0, "b": 1, "c": 1, "d": 1, "e": 1}, 0)[:2] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("order.txt", "airfield\nbar\nzoo\n", "lacks 1 class: arena/hockey"),
        ("order.txt", "", "is empty"),
        ("order.json", "{}", "cannot be read"),
        ("order.json", "[" * 100_000, "cannot be read"),
        ("order.json", '{"base_classes": [0, 1], "novel_classes": [2, 9]}', "beyond the 4"),
    ],
)
def test_bad_orders(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=words):
        read_order(tmp_path / name, CLASSES, class_of)
    with pytest.raises(UserError, match="no order file"):
        read_order(tmp_path / "none.txt", CLASSES, class_of)
