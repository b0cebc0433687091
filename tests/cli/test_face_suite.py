"""A suite whose rows are identified: trained on some people, measured on others."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from oltr.suites import identification, train
from tests.cli.test_suite import QUICK
from tests.helpers import pretended
from tests.helpers.pictures import class_folders

ROWS = """
about: tiny
recipe: glyphs
source: oltr data curate faces
identify: {mates: each, shot_similarity: 0.9}
rows:
  - {method: plain}
  - {method: oltr}
  - {method: oltr, label: direct, embedding: direct}
"""


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """`oltr train` in this process."""
    monkeypatch.setattr(train, "CommandProcess", pretended.Here)


@pytest.fixture
def faces(tmp_path):
    """Training images alone, probes and their mates, distractors, a table of groups; the suite."""
    folder = class_folders(tmp_path / "t", {"al": 9, "bo": 6, "di": 3}, size=32)
    rows = [(path.relative_to(folder).as_posix(), path.parent.name) for path in sorted(folder.rglob("*.png"))]
    table = pd.DataFrame(rows, columns=["path", "label"]).assign(split="train", root=str(folder))
    table.to_csv(tmp_path / "train.csv", index=False)
    class_folders(tmp_path / "people", {"ann": 3, "bob": 3, "cy": 2}, size=32)
    class_folders(tmp_path / "far", {"x": 3, "y": 2}, size=32)
    (tmp_path / "sex.csv").write_text("label,sex\nann,female\nbob,male\ncy,male\n")
    (tmp_path / "faces.yaml").write_text(ROWS, encoding="utf-8")
    return tmp_path


def words(faces, *more, quick=tuple(QUICK)):
    sources = {"probes": "people", "gallery": "people", "distractors": "far", "groups": "sex.csv"}
    given = [word for name, file in sources.items() for word in (f"--{name}", faces / file)]
    options = ["--source", faces / "train.csv", *given, *quick, "--out", faces / "out"]
    return ["suite", faces / "faces.yaml", *options, *more]


def test_a_table_of_identification_rates(oltr, faces, monkeypatch):
    said = oltr(*words(faces, "--seeds", "2"))
    assert said.code == 0, said.err
    for text in ("identification rate", "full test", "sex female", "sex male", "mates: each", "± "):
        assert text in said.out, said.out
    assert "Pseudo-shots: training images more similar than 0.9" in said.out
    held = json.loads((faces / "out" / "suite.json").read_text())
    plain, oltr_row, direct = held["rows"]
    seeds = plain["seeds"]
    assert set(seeds) == {"0", "1"} and seeds["0"]["identify"]["counts"]["trials"] == 6 + 6 + 2
    assert plain["mean"]["identify.rank1"] == pytest.approx(
        np.mean([each["identify"]["rank1"] for each in seeds.values()])
    )
    used = [row["seeds"]["0"]["identify"]["embedding"] for row in (oltr_row, direct)]
    assert used == ["meta", "direct"] and "identify.sex.male" in plain["mean"]
    assert sum(seeds["0"]["identify"]["counts"]["by_shot"].values()) == 8
    for name in ("table.md", "table.csv", "bars.svg", "bars.png"):
        assert (faces / "out" / name).is_file()
    # The same numbers as `oltr identify` finds on the run.
    run = faces / "out" / "oltr-0"
    options = words(faces, quick=())[4:-2]
    options += ["--train", faces / "train.csv", "--mates", "each", "--shot-similarity", "0.9", "--json"]
    alone = json.loads(oltr("identify", run, *options).out)
    kept = json.loads((run / "identify-faces" / "identify.json").read_text())
    assert {key: kept[key] for key in alone} == alone
    assert (run / "identify-faces" / "by-group.svg").is_file()

    # Nothing is trained or computed again, unless something else is asked.
    monkeypatch.setattr(train, "CommandProcess", pretended.never)
    answered = []
    answer = identification.answer
    monkeypatch.setattr(identification, "answer", lambda *a: answered.append(a) or answer(*a))
    again = oltr(*words(faces, "--seeds", "2", "--json"))
    assert json.loads(again.out)["rows"] == held["rows"] and not answered
    (faces / "sex.csv").write_text("label,sex\nann,male\nbob,male\ncy,female\n")
    other = json.loads(oltr(*words(faces, "--seeds", "2", "--json")).out)
    assert len(answered) == 4  # two methods, two seeds; the rows of oltr share one
    assert other["rows"][0]["mean"]["identify.rank1"] == plain["mean"]["identify.rank1"]


def test_without_groups_and_by_features_of_another_network(oltr, faces):
    np.savez(faces / "p.npz", features=np.eye(8, 2, dtype=np.float32) + 1, labels=np.arange(8))
    np.savez(faces / "s.npz", features=np.ones((3, 2), np.float32), labels=np.arange(3))
    given = words(faces, "--methods", "plain", "--shots-from", faces / "p.npz", faces / "s.npz")
    at = given.index("--groups")
    said = oltr(*given[:at], *given[at + 2 :])
    assert said.code == 0, said.err
    assert "by the features in p.npz" in " ".join(said.out.split()) and "sex" not in said.out
    row = json.loads((faces / "out" / "suite.json").read_text())["rows"][0]
    assert row["seeds"]["0"]["identify"]["counts"]["by_shot"] == {"many": 0, "few": 8, "one": 0, "zero": 0}


def test_a_row_that_cannot_be_measured_leaves_the_others(oltr, faces):
    (faces / "faces.yaml").write_text(ROWS + "  - {method: plain, label: none, embedding: meta}\n")
    said = oltr(*words(faces, "--methods", "plain"))
    assert said.code == 1 and "none (failed)" in said.out and "has no meta-embedding" in said.err
    assert "\nplain " in said.out and "plain (" not in said.out


def test_the_plan_of_the_papers_table(oltr, tmp_path):
    plan = json.loads(oltr("suite", "megaface", "--dry-run", "--json", "--out", tmp_path / "out").out)["runs"]
    assert [entry["run"] for entry in plan] == ["plain-0", "range-0", "oltr-0"]
    oltr("suite", "megaface").refused("oltr data curate ms1m-lt")


def test_what_is_refused_before_training(oltr, faces, monkeypatch):
    monkeypatch.setattr(train, "CommandProcess", pretended.never)
    given = words(faces)

    def without(name):
        at = given.index(f"--{name}")
        return [*given[:at], *given[at + 2 :]]

    oltr(*without("probes")).refused("needs --probes and --gallery")
    oltr(*without("distractors")).refused("nobody is in the gallery", "--distractors")
    oltr(*without("groups"), "--groups", faces / "none.csv").refused("none.csv")
    oltr(*without("gallery"), "--gallery", faces / "nowhere").refused("nowhere")
    oltr(*without("gallery"), "--gallery", faces / "far").refused("No probe has a mate")
    np.savez(faces / "f.npz", features=np.ones((2, 3), np.float32), labels=["ann", "bob"])
    oltr(*without("gallery"), "--gallery", faces / "f.npz").refused("holds features")
    oltr(*given, "--shots-from", faces / "f.npz", faces / "f.npz").refused("2 features for 8 probes")
    oltr("suite", "glyphs", "--probes", faces / "people").refused("identifies nobody")
    other = class_folders(faces / "other", {"al": 2}, size=32)
    (other / "al" / "1.png").write_bytes(b"no picture")
    oltr(*given, "--train", other).refused("1.png")
    (faces / "people" / "ann" / "0.png").write_bytes(b"no picture")
    oltr(*given).refused("0.png")
    assert not list((faces / "out").glob("*-0"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mates: each", "mate: each", "did you mean mates"),
        ("mates: each", "mates: all", "one of: nearest, each"),
        ("direct}", "sideways}", "one of: direct, meta"),
        ("{method: plain}", "{method: plain, score: energy}", "no score of the unknown"),
        ("recipe: glyphs", "recipe: glyphs\nsweep: open", "do not go together"),
        ("recipe: glyphs", "recipe: glyphs\ncolumns: [identify.rank7]", "did you mean identify.rank"),
        ("identify: {mates: each, shot_similarity: 0.9}\n", "", "an embedding is for suites"),
    ],
)
def test_a_wrong_file(oltr, faces, old, new, message):
    (faces / "faces.yaml").write_text(ROWS.replace(old, new))
    oltr("suite", faces / "faces.yaml", "--dry-run").refused(message)
