"""`oltr rescore`: what has changed since, and files that it cannot speak of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from oltr import Recognizer
from oltr.runs import run_model

CHANGES = [
    "path", "before", "after", "likeliest_before", "likeliest_after", "probability_before",
    "probability_after",
]  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def predictions(oltr, trained, images, tmp_path) -> Path:
    """Of copies of the images, which may be spoilt."""
    shutil.copytree(images / "test", tmp_path / "photos")
    (tmp_path / "photos" / "bad.png").write_text("no picture")
    assert oltr("predict", trained["plain"], "photos").code == 0
    return tmp_path / "predictions.csv"


@pytest.fixture
def changed_run(monkeypatch):
    """Runs are in another state than a moment ago."""
    real = run_model.model_version
    monkeypatch.setattr(run_model, "model_version", lambda run: real(run).split(".")[0] + ".1")


def test_the_run_as_it_was_has_nothing_to_judge(oltr, trained, predictions):
    said = oltr("rescore", trained["plain"], predictions)
    assert said.code == 0 and "nothing to judge again" in said.out
    answer = json.loads(oltr("rescore", trained["plain"], predictions, "--json").out)
    assert answer["same_model"] == answer["images"] == len(pd.read_csv(predictions))
    again = json.loads(oltr("rescore", trained["plain"], predictions, "--json", "--all").out)
    assert again["same_model"] == 0 and again["changed"] == []


def test_changed_answers_are_listed(oltr, trained, predictions, changed_run):
    table = pd.read_csv(predictions, dtype=str, keep_default_na=False)
    names = Recognizer.load(trained["plain"]).classes_
    good = table.index[table["error"] == ""].tolist()
    a, b, c = good[:3]
    other = next(name for name in names if name != table.loc[a, "label"])
    now = {i: ("unknown" if table.loc[i, "unknown"] == "True" else table.loc[i, "label"]) for i in good}
    table.loc[a, ["label", "unknown"]] = [other, "False"]
    table.loc[b, ["unknown"]] = ["False" if now[b] == "unknown" else "True"]
    table.loc[c, ["label", "unknown"]] = [other, "True"] if now[c] == "unknown" else [now[c], "False"]
    table.to_csv(predictions, index=False)
    gone = table.loc[good[3], "path"]
    Path(gone).unlink()
    said = oltr("rescore", trained["plain"], predictions, "--out", "changes.csv", "--json")
    assert said.code == 0, said.err
    answer, listed = json.loads(said.out), pd.read_csv("changes.csv", dtype=str)
    expected = {table.loc[i, "path"]: now[i] for i in (a, b) if i != a or now[a] != other}
    assert {each["path"]: each["after"] for each in answer["changed"]} == expected
    assert answer["gone"] == [gone] and list(listed) == CHANGES and len(listed) == len(expected)
    first = answer["changed"][0]
    assert (first["before"], first["likeliest_before"]) == (other, other)
    assert first["probability_after"] == pytest.approx(float(table.loc[a, "probability"]), rel=1e-4)
    said = oltr("rescore", trained["plain"], predictions)
    assert f"{first['path']}: {other} -> " in said.out and f"1 image gone: {gone}" in said.out


def test_a_burst_is_judged_again_as_one(oltr, trained, images, changed_run, tmp_path):
    files = sorted(map(str, images.rglob("*.png")))
    table = pd.DataFrame({"path": files, "event": [f"e{i % 3}" for i in range(len(files))]})
    table.to_csv("list.csv", index=False)
    assert (
        oltr("predict", trained["plain"], "list.csv", "--sequence", "event", "--out", "p.parquet").code == 0
    )
    before = pd.read_parquet("p.parquet")
    before["model"] = before["model"].str.replace(".1", ".0")
    before.to_parquet("p.parquet")
    answer = json.loads(oltr("rescore", trained["plain"], "p.parquet", "--json").out)
    assert answer["changed"] == [] and answer["same_model"] == 0


def test_files_that_cannot_be_compared(oltr, trained, predictions, tmp_path):
    oltr("rescore", trained["oltr"], predictions).refused("answers of another run", "oltr predict")
    oltr("rescore", trained["plain"], "gone.csv").refused("no such file")
    oltr("rescore", trained["plain"], tmp_path / "photos").refused("no table of predictions")
    pd.read_csv(predictions).drop(columns="model").to_csv("old.csv", index=False)
    oltr("rescore", trained["plain"], "old.csv").refused("lacks the column model")
    table = pd.read_csv(predictions)
    pd.concat([table, table[:1]]).to_csv("twice.csv", index=False)
    oltr("rescore", trained["plain"], "twice.csv").refused("several rows for one image")
