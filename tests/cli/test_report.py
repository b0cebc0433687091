"""`oltr report`: what it writes and says, and what it refuses before any work."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from oltr.data.pack import open_pack
from oltr.figures.figure import all_figures
from tests.cli.conftest import QUICK


def test_one_run_with_all_its_figures(oltr, trained, tmp_path):
    run = shutil.copytree(trained["oltr"], tmp_path / "my run")
    said = oltr("report", run, "--figures", tmp_path / "figures", "--json")
    assert said.code == 0, said.err
    answer = json.loads(said.out)
    assert answer["page"] == str(run / "report.html")
    assert answer["bytes"] == (run / "report.html").stat().st_size
    made, missing = set(answer["figures"]), set(answer["missing"])
    assert made | missing == {figure.name for figure in all_figures() if figure.draw is not None}
    assert made.isdisjoint(missing) and "class-gain" in missing
    assert "oltr report PLAIN RUN" in answer["missing"]["class-gain"]
    files = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert files == sorted(f"{name}.{kind}" for name in made for kind in ("svg", "png"))
    assert sorted(answer["figure_files"]) == [str(tmp_path / "figures" / file) for file in files]
    assert not list(tmp_path.rglob("*.part"))


def test_several_runs_write_into_the_current_folder(oltr, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = oltr("report", trained["plain"], trained["oltr"])
    assert said.code == 0, said.err
    assert said.out.startswith("report.html (") and [path.name for path in tmp_path.iterdir()] == [
        "report.html"
    ]
    assert "Traceback" not in said.err and "class-gain" not in said.err


def test_weights_of_another_network_cost_no_more_than_their_figures(oltr, trained, tmp_path):
    run = shutil.copytree(trained["oltr"], tmp_path / "run")
    shutil.copy(trained["plain"] / "model.safetensors", run)
    said = oltr("report", run, "--json")
    assert said.code == 0, said.err
    missing = json.loads(said.out)["missing"]
    for name in ("attention", "infused", "activation"):
        assert "do not fit the network" in missing[name] and "Missing key(s)" in missing[name]
    assert "oscr" not in missing


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([], "No run folder was given"),
        (["nowhere"], "no run folder"),
        (["RUN", "--out", "page.txt"], "page.html"),
        (["RUN", "--out", "folder.html"], "is a folder"),
        (["RUN", "--figures", "file"], "is a file"),
        (["RUN", "--figure", "x"], "did you mean --figures?"),
    ],
)
def test_bad_input(oltr, trained, tmp_path, monkeypatch, words, answer):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").touch()
    oltr("report", *(str(trained["plain"]) if word == "RUN" else word for word in words)).refused(answer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.html"]


@pytest.mark.parametrize("broken", ["report.json", "outputs/test.safetensors", "classes.json", "run.yaml"])
def test_runs_that_are_not_whole(oltr, trained, tmp_path, broken):
    run = shutil.copytree(trained["plain"], tmp_path / "run")
    (run / broken).unlink()
    said = oltr("report", run)
    said.refused("run")
    assert not (run / "report.html").exists()


def test_of_data_without_test_images_the_figures_that_need_none(oltr, pack, tmp_path):
    """As faces are that are identified elsewhere."""
    opened = open_pack(pack)
    training = opened.manifest.rows("train")["label"]
    for row, label in zip(opened.manifest.positions("train"), training, strict=True):
        file = tmp_path / "faces" / "train" / label / f"{row}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(opened.images[row])).save(file)
    run = tmp_path / "run"
    assert oltr("train", tmp_path / "faces", *QUICK, "--method", "oltr", "--out", run).code == 0
    oltr("report", run).refused("has no outputs of test images")
    said = oltr("report", run, "--figures", tmp_path / "figures", "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["page"] is None and {"distribution", "infused"} <= told["figures"].keys()
    assert "no outputs of test images" in told["missing"]["confusion"]
    assert (tmp_path / "figures" / "infused.png").is_file() and not (run / "report.html").exists()
