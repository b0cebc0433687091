"""`oltr import`: from a checkpoint of the released code to a run that every verb opens."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml

from oltr.data.sources import read_source
from oltr.runs.trained_run import TrainedRun
from oltr.training.build import build_method
from oltr.training.configure import configure
from oltr.training.options import TrainOptions
from oltr.training.resume import find_start
from oltr.training.run_folder import RunFolder
from tests.helpers.pictures import class_folders
from tests.helpers.released import checkpoint, released_forward, write_checkpoint

COUNTS = {"0": 3, "1": 2, "2": 1, "3": 1, "4": 2}


@pytest.fixture(scope="module")
def saved():
    return checkpoint()


@pytest.fixture(scope="module")
def file(saved, tmp_path_factory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("files") / "final_model_checkpoint.pth", saved, True)


@pytest.fixture(scope="module")
def first_file(tmp_path_factory) -> Path:
    """Of stage 1."""
    return write_checkpoint(tmp_path_factory.mktemp("files") / "stage1.pth", checkpoint(1, fc=False))


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Pictures of five classes and of unknown things."""
    folder = tmp_path_factory.mktemp("data")
    class_folders(folder / "train", COUNTS, 16)
    class_folders(folder / "test", dict.fromkeys(COUNTS, 1), 16)
    class_folders(folder / "open", {"thing": 2}, 16)
    return folder


def test_without_a_source_it_names_classes_by_number_and_answers(oltr, file, saved, source, tmp_path):
    run = tmp_path / "run"
    said = oltr("import", file, "--out", run)
    assert said.code == 0 and said.out == "" and "all count as few-shot" in said.err
    facts, classes = (
        yaml.safe_load((run / "run.yaml").read_text()),
        json.loads((run / "classes.json").read_text()),
    )
    assert [entry["name"] for entry in classes] == list("01234")
    assert {entry["train_count"] for entry in classes} == {0}
    assert facts["decision"] == {"score": "softmax", "threshold": 0.1, "unknown_rate": None}
    assert facts["imported"]["file"] == file.name and facts["imported"]["best_acc"] == 0.356
    assert (facts["config"]["method"], facts["config"]["backbone"]) == ("oltr", "resnet10")
    assert facts["config"]["recipe"] == "photos-released"
    assert sorted(path.name for path in run.iterdir()) == ["classes.json", "model.safetensors", "run.yaml"]

    assert oltr("predict", run, source / "test", "--out", tmp_path / "p.csv").code == 0
    rows = pd.read_csv(tmp_path / "p.csv", dtype={"label": str}, keep_default_na=False)
    assert len(rows) == 5 and set(rows["error"]) == {""}
    measured = json.loads(oltr("evaluate", run, "--source", source, "--json").out)
    assert measured["num_classes"] == 5 and measured["open"]["threshold"] == 0.1
    oltr("evaluate", run).refused("has no outputs of test images", f"oltr evaluate {run} --source")


def test_the_run_answers_as_the_released_forward_does(oltr, file, saved, source, tmp_path):
    assert oltr("import", file, "--out", tmp_path / "run").code == 0
    views = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    run = TrainedRun(tmp_path / "run")
    with torch.no_grad():
        found = run.network.cpu()(views).logits
        torch.testing.assert_close(found, released_forward(saved, views)[1], rtol=1e-5, atol=2e-5)


def test_with_a_source_it_is_measured_as_after_training(oltr, file, source, tmp_path):
    run = tmp_path / "run"
    said = oltr("import", file, "--source", source, "--out", run, "--json")
    assert said.code == 0, said.err
    report = json.loads(said.out)
    assert report == json.loads((run / "report.json").read_text())
    assert {entry["name"]: entry["train_count"] for entry in report["per_class"]} == COUNTS
    assert not report.get("expect")  # no published row for these classes
    opened = TrainedRun(run)
    assert set(opened.outputs) == {"test", "open"} and opened.own_data.sizes()["train"] == 9
    assert json.loads(oltr("evaluate", run, "--json").out)["closed"] == report["closed"]
    assert "oltr" in oltr("compare", run).out
    assert (
        oltr("evaluate", run, "--score", "knn", "--threshold", "-1").code == 0
    )  # fitted on the training images


def test_a_stage_1_is_a_plain_run_that_stage_2_can_start_from(oltr, first_file, source, tmp_path):
    run = tmp_path / "run"
    assert oltr("import", first_file, "--source", source, "--out", run).code == 0
    opened = TrainedRun(run)
    assert (opened.method, opened.config.num_stages, opened.config.stage1.epochs) == ("plain", 1, 30)
    config = configure("photos-released", "oltr", changes=["precision=float32"])
    manifest = read_source(str(source))
    method = build_method(config, torch.from_numpy(manifest.train_counts()))
    start = find_start(RunFolder(tmp_path / "next"), config, method, manifest, TrainOptions(stage1_from=run))
    assert start.stage == 2
    method.build_stage1(opened.network.backbone).load_state_dict(start.weights)


def test_an_older_file_without_centroids_gets_class_means(oltr, saved, source, tmp_path):
    path = write_checkpoint(tmp_path / "old.pth", {k: v for k, v in saved.items() if k != "centroids"})
    oltr("import", path, "--out", tmp_path / "run").refused("old.pth has no centroids", "--source SOURCE")
    assert not (tmp_path / "run").exists()
    said = oltr("import", path, "--out", tmp_path / "run", "--source", source)
    assert said.code == 0 and "mean features of the training images stand in" in said.err
    run = TrainedRun(tmp_path / "run")
    assert run.facts["imported"]["centroids"] == "class means"
    train = run.own_outputs()["train"]
    means = torch.stack([train.features[train.labels == k].mean(dim=0) for k in range(5)])
    memory = run.network.head.meta.memory
    torch.testing.assert_close(memory.centroids.detach().cpu(), means, rtol=1e-3, atol=1e-4)
    assert memory.known.all()


class Code:
    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_what_cannot_be_imported_leaves_nothing_behind(oltr, file, source, tmp_path):
    out, made = tmp_path / "run", tmp_path / "made"
    bad = write_checkpoint(tmp_path / "bad.pth", checkpoint(1) | {"epoch": Code(made)})
    oltr("import", bad, "--out", out).refused("bad.pth could not be read", "could run code")
    oltr("train", source, "--weights", bad, "--backbone", "resnet10").refused("could run code")
    assert not made.exists()
    torch.save({"state_dict": {}}, tmp_path / "other.pth")
    oltr("import", tmp_path / "other.pth", "--out", out).refused("is no checkpoint of the released code")
    oltr("import", tmp_path / "none.pth", "--out", out).refused("There is no file", "none.pth")
    oltr("import", file, "--out", out, "--root", source).refused("--root was given without a --source")
    oltr("import", file, "--out", out, "--recipe", "glyphs").refused("has another shape")
    few = class_folders(tmp_path / "few" / "train", {"a": 1, "b": 1}, 16).parent
    oltr("import", file, "--out", out, "--source", few).refused("knows 5 classes, the source has 2")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    oltr("import", file, "--out", tmp_path / "full").refused("cannot take a new run")
    broken = class_folders(tmp_path / "broken" / "train", COUNTS, 16).parent
    class_folders(broken / "test", COUNTS, 16)
    (broken / "test" / "3" / "0.png").write_bytes(b"no image")
    oltr("import", file, "--out", out, "--source", broken).refused("0.png")
    assert not out.exists() and not list(tmp_path.glob(".*part"))
