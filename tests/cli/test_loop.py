"""`loop`: curves of a tiny run as files, and options that make no sense."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from PIL import Image


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    """A copy, since outputs of the training images are added to it."""
    import shutil

    return shutil.copytree(trained["plain"], tmp_path_factory.mktemp("loop") / "run")


def test_curves_of_every_strategy(oltr, run, tmp_path):
    out = tmp_path / "loop"
    said = oltr("loop", run, "--out", out, "--weeks", 2, "--labels", 3, "--seeds", 2, "--json")
    assert said.code == 0, said.err
    told, table = json.loads(said.out), pd.read_csv(out / "loop.csv")
    assert told == json.loads((out / "loop.json").read_text())
    assert list(told["strategies"]) == ["discover", "uncertainty", "random", "everything"]
    assert len(table) == 4 * 2 * 2 and set(table["week"]) == {1, 2}
    spent = table.groupby(["strategy", "week"])["labels"].mean()
    assert spent["random", 1] == 3 and spent["discover", 2] == 6
    whole = table[table["strategy"] == "everything"]
    assert (whole["labels"] == whole["arrived"]).all()
    assert table["accuracy"].between(0, 1).all()
    assert Image.open(out / "loop.png").format == "PNG" and (out / "loop.svg").is_file()


def test_table_on_the_screen_and_another_source(oltr, run, pack, tmp_path):
    said = oltr("loop", run, "--out", tmp_path, "--source", pack, "--weeks", 2, "--seeds", 1)
    assert said.code == 0, said.err
    assert all(name in said.out for name in ("discover", "uncertainty", "random", "everything"))
    assert "questions a week" in said.err and "loop.png" in said.out


def test_bad_options(oltr, run, tmp_path):
    oltr("loop", run, "--out", tmp_path, "--weeks", 0).refused("--weeks", "0")
    oltr("loop", run, "--out", tmp_path, "--labels", 0).refused("--labels", "0")
    oltr("loop", tmp_path / "none", "--out", tmp_path).refused("none")
