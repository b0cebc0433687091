"""A trained run opened once: its outputs, scores and data, and what is said when something is lost."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from oltr.config import RunConfig
from oltr.console import console
from oltr.data.augment import Augment
from oltr.data.image_access import open_images
from oltr.data.pack import open_pack
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.openset import SCORES
from oltr.openset.odin import perturbed
from oltr.runs import split_outputs
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from tests.helpers.pictures import class_folders
from tests.helpers.tiny import tiny_config, tiny_pack

CPU = torch.device("cpu")
FITTED = [
    *("cosine", "knn", "mahalanobis", "openmax", "openmax-textbook"),
    *("relative-mahalanobis", "unit-mahalanobis", "vim"),
]


def train(out: Path, source: str | Path, config: RunConfig | None = None, root=None) -> TrainedRun:
    config = config or tiny_config(epochs=(1, 1))
    options = TrainOptions(accelerator="cpu")
    with console.silent():
        train_run(config, read_source(source, root), out, options, str(source))
    return TrainedRun(out)


@pytest.fixture(scope="module")
def trained(pack, tmp_path_factory) -> Path:
    """A run with attention and memory; read-only."""
    return train(tmp_path_factory.mktemp("runs") / "oltr", pack).path


@pytest.fixture
def folder(trained, tmp_path) -> Path:
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def run(folder) -> TrainedRun:
    return TrainedRun(folder)


@pytest.fixture
def no_images(monkeypatch):
    """From here on, whoever reads an image fails."""
    monkeypatch.setattr(split_outputs, "collect_outputs", lambda *_, **__: pytest.fail("images are read"))


def test_its_network_runs_channels_last(run):
    convolutions = [each for each in run.network.modules() if isinstance(each, torch.nn.Conv2d)]
    assert convolutions
    for each in convolutions:
        assert each.weight.is_contiguous(memory_format=torch.channels_last)


def views_of(run, pack, split):
    """The centre crops of a split's images."""
    images = open_images(open_pack(pack).manifest, [split], 32, 32, CPU)[split]
    pixels = next(images.batches([range(len(images))], CPU, 0))
    return Augment(run.config.data).evaluate(pixels), images.labels


def lose(folder: Path, source: str = "gone.pack") -> TrainedRun:
    """The run forgets where its images are."""
    values = yaml.safe_load((folder / "run.yaml").read_text())
    (folder / "run.yaml").write_text(yaml.safe_dump(values | {"source": source}))
    return TrainedRun(folder)


def elsewhere(manifest):
    """The same images under other names: other data, as far as a fingerprint tells."""
    return dataclasses.replace(
        manifest, table=manifest.table.assign(path="elsewhere/" + manifest.table["path"])
    )


def test_run_yaml_is_parsed_once_and_parts_are_kept(folder, monkeypatch):
    read, times = yaml.safe_load, []
    monkeypatch.setattr(yaml, "safe_load", lambda text: times.append(1) or read(text))
    run = TrainedRun(folder)
    run.measure()
    assert run.rule.score == "softmax" and run.network is run.network
    assert run.scored("test") is run.scored("test") and run.outputs["test"] is run.outputs["test"]
    # Once for the run itself, and its recipe for the published rows.
    assert len(times) <= 2


def test_training_outputs_are_those_of_the_centre_crops_and_computed_once(run, folder, pack, request):
    found = run.own_outputs()["train"]
    views, labels = views_of(run, pack, "train")
    with torch.no_grad():
        said = run.network(views.to(run.device))
    assert found.labels.tolist() == labels.tolist() and len(found) == 64
    torch.testing.assert_close(found.logits, said.logits.cpu(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.features, said.direct_feature.cpu(), rtol=1e-4, atol=1e-4)
    assert (run.folder.outputs / "train.safetensors").is_file()
    request.getfixturevalue("no_images")
    assert torch.equal(TrainedRun(folder).own_outputs()["train"].logits, found.logits)
    assert set(run.outputs) == {"val", "test", "open"}  # the training images are for scores alone


@pytest.mark.parametrize("name", FITTED)
def test_a_fitted_score_reaches_the_report(run, name):
    rule = run.other_rule(name, unknown_rate=0.2)
    report = run.under(rule).measure()
    training = run.own_outputs()["train"]
    score = SCORES[name]().fit(training.features, training.logits, training.labels)
    assert report.open.score == name and report.open.threshold == rule.threshold
    rejected = score.is_unknown(score.value(*run.outputs["open"].inputs), rule.threshold)
    assert report.open.unknown_recall == pytest.approx(float(rejected.double().mean()))
    assert run.fitted(name) is run.fitted(name)  # not fitted again


def test_a_sum_of_scores_takes_its_units_from_validation_images(run, tmp_path):
    training, val, unseen = (run.own_outputs()[split] for split in ("train", "val", "open"))
    values = torch.zeros(len(unseen), dtype=torch.float64)
    for name in ("max-logit", "cosine"):
        score = SCORES[name]().fit(training.features, training.logits, training.labels)
        known = score(*val.inputs)
        values += (score(*unseen.inputs) - known.mean()) / known.std(correction=0)
    torch.testing.assert_close(run.scored("open", "max-logit+cosine").values, values)
    (run.path / "outputs/val.safetensors").unlink()
    alone = TrainedRun(run.path).scored("open", "max-logit+cosine").values
    untouched = SCORES["max-logit+cosine"]().fit(training.features, training.logits, training.labels)
    torch.testing.assert_close(alone, untouched.value(*unseen.inputs))
    assert not torch.allclose(alone, values)


def test_plain_scores_need_no_images(run, no_images):
    for name in ("softmax", "energy", "gen", "max-logit", "reachability", "scale"):
        assert run.under(run.other_rule(name, unknown_rate=0.2)).measure().open.score == name


def test_odin_reads_changed_images_and_predicts_from_the_others(run, folder, pack, request):
    score = run.fitted("odin")
    changed = run.own_outputs(score)["open"]
    step = 0.0014 / torch.tensor(run.config.data.std).view(1, 3, 1, 1)
    views, _ = views_of(run, pack, "open")
    with torch.no_grad():
        moved = perturbed(lambda x: run.network(x).logits, views.to(run.device), 1000.0, step.to(run.device))
        logits = run.network(moved).logits.cpu()
    torch.testing.assert_close(changed.logits, logits, rtol=1e-4, atol=1e-3)
    assert not torch.allclose(changed.logits, run.outputs["open"].logits, rtol=1e-4, atol=1e-3)
    rule = run.other_rule("odin", unknown_rate=0.2)
    report = run.under(rule).measure()
    kept = run.folder.outputs / "odin-T1000-e0.0014"
    assert sorted(file.name for file in kept.iterdir()) == [
        f"{split}.safetensors" for split in ("open", "test", "val")
    ]
    request.getfixturevalue("no_images")
    again = TrainedRun(folder).under(rule).measure()
    assert again.data == report.data and report.closed == run.measure().closed
    rejected = score.is_unknown(score.value(*changed.inputs), rule.threshold)
    assert report.open.unknown_recall == pytest.approx(float(rejected.double().mean()))


def test_another_source_leaves_the_run_alone(run, tmp_path):
    other = elsewhere(read_source(tiny_pack(tmp_path / "other", seed=0)))
    before = sorted(run.path.rglob("*"))
    there = run.on(other)
    report = there.under(there.other_rule("odin", unknown_rate=0.2)).measure()
    assert report.closed == run.measure().closed  # the same pictures
    assert sorted(run.path.rglob("*")) == before


def test_of_a_folder_without_splits_all_images_are_measured(tmp_path, capsys):
    class_folders(tmp_path / "photos", {"a": 10, "b": 10}, 32)
    run = train(tmp_path / "run", tmp_path / "photos", tiny_config("plain", (1, 1)))
    own = run.on(tmp_path / "photos")
    assert len(own.outputs["test"]) == run.facts["data"]["images"]["test"] < 20
    class_folders(tmp_path / "new", {"a": 1, "b": 4}, 32)
    capsys.readouterr()
    new = run.on(tmp_path / "new")
    assert "all for testing" in capsys.readouterr().err
    assert set(new.outputs) == {"val", "test"} and len(new.outputs["test"]) == 5
    with pytest.raises(UserError, match="no open images"):
        _ = new.outputs["open"]
    assert len(new.outputs["val"]) == run.facts["data"]["images"]["val"]  # the run's own, for a threshold
    class_folders(tmp_path / "strange", {"a": 1, "zebra": 4}, 32)
    with pytest.raises(UserError, match=r"(?s)not among the run's.*zebra"):
        run.on(tmp_path / "strange")


def test_a_run_finds_its_images_from_any_folder(tmp_path, monkeypatch):
    class_folders(tmp_path / "photos", {"a": 10, "b": 10}, 32)
    monkeypatch.chdir(tmp_path)
    config = tiny_config("plain", (1, 1))
    flat = train(tmp_path / "flat", "photos", config)
    (tmp_path / "lists").mkdir()
    read_source("photos").write(tmp_path / "lists" / "all.csv", record_root=False)
    listed = train(tmp_path / "listed", "lists/all.csv", config, root="photos")
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    for run in (flat, listed):
        assert len(run.own_outputs()["train"]) == run.facts["data"]["images"]["train"]
    assert "root" not in flat.facts and listed.facts["root"] == str(tmp_path / "photos")


def test_images_that_have_moved_are_read_there_and_kept(folder, pack, tmp_path, request):
    lose(folder)
    moved = TrainedRun(folder, tiny_pack(tmp_path / "moved"))
    report = moved.under(moved.other_rule("knn", unknown_rate=0.2)).measure()
    assert (folder / "outputs" / "train.safetensors").is_file()
    request.getfixturevalue("no_images")
    again = TrainedRun(folder)
    assert again.under(again.other_rule("knn", unknown_rate=0.2)).measure().data == report.data
    with pytest.raises(UserError, match="other images than the run was trained on"):
        TrainedRun(folder, tiny_pack(tmp_path / "other", seed=3))


def test_others_stand_in_for_training_images_that_are_gone(run, folder, tmp_path, capsys):
    other = elsewhere(read_source(tiny_pack(tmp_path / "other")))
    own = run.own_outputs()["train"]
    (run.folder.outputs / "train.safetensors").unlink()
    there = lose(folder).on(other)
    torch.testing.assert_close(there._training_outputs().logits, own.logits)
    assert "taken instead" in capsys.readouterr().err
    assert not (run.folder.outputs / "train.safetensors").exists()
    fewer = dataclasses.replace(other, table=other.table[other.table["split"] != "train"])
    with pytest.raises(UserError, match="are needed"):
        lose(folder).on(fewer).fitted("knn")


@pytest.mark.parametrize("name", ["knn", "odin"])
def test_images_that_are_gone_or_others(folder, tmp_path, name):
    with pytest.raises(UserError, match=r"(?s)are needed.*gone\.pack.*--source SOURCE"):
        lose(folder).scored("test", name)
    with pytest.raises(UserError, match="holds other images now"):
        lose(folder, str(tiny_pack(tmp_path / "other", seed=3))).scored("test", name)
    with pytest.raises(UserError, match="does not tell where"):
        lose(folder, "").scored("test", name)
    assert not (folder / "outputs" / "train.safetensors").exists()


def test_what_a_damaged_run_lacks_is_told_with_what_brings_it(folder):
    for name, words in (
        ("outputs/test.safetensors", r"(?s)no outputs of test images.*--resume"),
        ("model.safetensors", r"(?s)model.safetensors is missing.*--resume"),
    ):
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        with pytest.raises(UserError, match=words):
            broken = TrainedRun(folder)
            _ = broken.network, broken.outputs["test"]
        (folder / name).write_bytes(kept[:100])
        with pytest.raises(UserError, match="--resume"):
            broken = TrainedRun(folder)
            _ = broken.network, broken.outputs["test"]
        (folder / name).write_bytes(kept)
    values = yaml.safe_load((folder / "run.yaml").read_text())
    (folder / "run.yaml").write_text(yaml.safe_dump(values | {"finished": False}))
    with pytest.raises(UserError, match=r"(?s)has not finished training.*--resume"):
        TrainedRun(folder)
