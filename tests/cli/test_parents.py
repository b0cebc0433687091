"""`oltr evaluate --parents`: a table by level, and bad tables refused before anything is measured."""

import json

import pytest


@pytest.fixture(scope="module")
def names(trained):
    return [entry["name"] for entry in json.loads((trained["plain"] / "classes.json").read_text())]


def written(tmp_path, rows):
    path = tmp_path / "parents of characters.csv"
    path.write_text("label,parent\n" + "".join(f"{label},{parent}\n" for label, parent in rows))
    return path


def test_levels_in_a_table_and_in_json(oltr, trained, names, tmp_path):
    rows = [
        *((name, "left" if place < 3 else "right") for place, name in enumerate(names)),
        ("left", "all"),
        ("right", "all"),
    ]
    table, kept = written(tmp_path, rows), (trained["plain"] / "report.json").read_bytes()
    said = oltr("evaluate", trained["plain"], "--parents", table)
    assert said.code == 0, said.err
    assert "Classes and their parents" in said.out and "95 %" in said.out
    assert (
        "Classes and their parents"
        in oltr("evaluate", trained["plain"], "--parents", table, "--markdown").out
    )
    found = json.loads(
        oltr("evaluate", trained["plain"], "--parents", table, "--precision", 0.8, "--json").out
    )["parents"]
    assert [each["level"] for each in found["levels"]] == ["class", "1", "2", "unknown"]
    assert [each["groups"] for each in found["levels"]] == [6, 2, 1, None]
    for split in ("test", "open"):
        assert sum(each[split]["share"] for each in found["levels"]) == pytest.approx(1)
    assert found["precision"] == 0.8
    assert (trained["plain"] / "report.json").read_bytes() == kept


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--parents", "nowhere.csv"], "There is no table nowhere.csv"),
        (["--precision", "0.9"], "without --parents"),
    ],
)
def test_options_that_make_no_sense(oltr, trained, options, words):
    oltr("evaluate", trained["plain"], *options).refused(words)


def test_bad_tables(oltr, trained, names, tmp_path):
    cycle = written(tmp_path, [(names[0], "a"), ("a", "b"), ("b", "a")])
    oltr("evaluate", trained["plain"], "--parents", cycle).refused("a → b → a")
    strangers = written(tmp_path, [("lynx", "cat")])
    oltr("evaluate", trained["plain"], "--parents", strangers).refused("none of the run's classes")
    good = written(tmp_path, [(names[0], "a")])
    oltr("evaluate", trained["plain"], "--parents", good, "--precision", 95).refused("between 0 and 1")
