import pandas as pd
import pytest

from oltr.data.manifest import Manifest
from oltr.data.stats import read_counts, stats, stats_from_counts
from oltr.errors import UserError


def manifest(**splits):
    rows = [
        (f"{split}/{label}/{index}.jpg", label, split)
        for split, counts in splits.items()
        for label, number in counts.items()
        for index in range(number)
    ]
    return Manifest.build(pd.DataFrame(rows, columns=["path", "label", "split"]), ".")


def test_the_contract_of_the_command_line():
    made = manifest(train={"a": 101, "b": 100, "c": 20, "d": 19}, val={"a": 1}, test={"a": 2}, open={"z": 3})
    assert stats(made) == {
        "images": {"train": 240, "val": 1, "test": 2, "open": 3},
        "classes": 4,
        "max": 101,
        "min": 19,
        "shots": {"many": 1, "medium": 2, "few": 1},
    }
    assert stats(made, shots="released")["shots"] == {"many": 2, "medium": 0, "few": 2}


def test_without_a_train_split_the_counts_are_zero():
    facts = stats(manifest(val={"a": 2, "b": 2}, open={"z": 1}))
    assert facts["classes"] == 2
    assert (facts["max"], facts["min"]) == (0, 0)
    assert facts["shots"] == {"many": 0, "medium": 0, "few": 0}
    assert stats(manifest(open={"z": 1}))["classes"] == 0


def test_counts_alone():
    facts = stats_from_counts([500, 50, 5])
    assert facts["images"]["train"] == 555
    assert (facts["max"], facts["min"], facts["classes"]) == (500, 5, 3)
    assert facts["shots"] == {"many": 1, "medium": 1, "few": 1}


def test_a_shot_rule_that_does_not_exist():
    with pytest.raises(UserError, match="did you mean standard"):
        stats_from_counts([1], "standart")


def test_counts_file(tmp_path):
    file = tmp_path / "counts.json"
    file.write_text("[3, 2, 1]")
    assert read_counts(file).tolist() == [3, 2, 1]
    for content in ("[1, 2.5]", "[1, -2]", '{"a": 1}', "[]", "words", "[true]"):
        file.write_text(content)
        with pytest.raises(UserError):
            read_counts(file)
    with pytest.raises(UserError, match="cannot be read"):
        read_counts(tmp_path / "nowhere.json")
