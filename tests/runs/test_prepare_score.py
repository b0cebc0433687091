"""Scores made ready for a trained run: what they read, where it is kept, and what is said when it is lost."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
import torch

from oltr.console import Console
from oltr.data.augment import Augment
from oltr.data.image_access import open_images
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.metrics.detection import detection_error
from oltr.openset import SCORES
from oltr.openset.odin import Odin, perturbed
from oltr.runs import prepare_score, read_outputs
from oltr.runs.evaluate_run import cached_outputs, load_network, make_report, outputs_on
from oltr.runs.prepare_score import prepared_score, training_outputs
from oltr.runs.train_run import train_run
from oltr.runs.tune_odin import tune_odin
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from tests.helpers.tiny import tiny_config, tiny_pack

QUIET, CPU = Console(quiet=True), torch.device("cpu")
FITTED = ["knn", "mahalanobis", "openmax", "vim"]


@pytest.fixture(scope="module")
def trained(pack, tmp_path_factory) -> Path:
    """A run with attention and memory; read-only."""
    folder, options = tmp_path_factory.mktemp("runs") / "oltr", TrainOptions(accelerator="cpu")
    train_run(tiny_config(epochs=(1, 1)), open_pack(pack).manifest, folder, QUIET, options, str(pack))
    return folder


@pytest.fixture
def run(trained, tmp_path) -> RunFolder:
    return RunFolder(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture
def no_images(monkeypatch):
    """From here on, whoever reads an image fails."""
    for place in (read_outputs, prepare_score):
        monkeypatch.setattr(place, "read_outputs", lambda *given: pytest.fail("images are read"))


def views_of(run, pack, split):
    """The centre crops of a split's images."""
    config = run.config()
    images = open_images(open_pack(pack).manifest, [split], 32, 32, CPU)[split]
    return Augment(config.data).evaluate(next(images.batches([range(len(images))], CPU, 0))), images.labels


def lost(run):
    """The run forgets where its images are."""
    file = run.path / "run.yaml"
    lines = file.read_text().splitlines()
    file.write_text("\n".join("source: gone.pack" if line.startswith("source:") else line for line in lines))


def test_training_outputs_are_those_of_the_centre_crops_and_read_once(run, pack, request):
    found = training_outputs(run, None, QUIET)
    views, labels = views_of(run, pack, "train")
    with torch.no_grad():
        said = load_network(run)(views)
    assert found.labels.tolist() == labels.tolist() and len(found) == 64
    torch.testing.assert_close(found.logits, said.logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.features, said.direct_feature, rtol=1e-4, atol=1e-4)
    assert (run.outputs / "train.safetensors").is_file()
    request.getfixturevalue("no_images")
    assert torch.equal(training_outputs(run, None, QUIET).logits, found.logits)
    assert set(cached_outputs(run)) == {"val", "test", "open"}  # they are for scores alone


@pytest.mark.parametrize("name", FITTED)
def test_a_fitted_score_reaches_the_report(run, name):
    outputs = cached_outputs(run)
    report = make_report(run, outputs, name, unknown_rate=0.2)
    score = SCORES[name].fit(training_outputs(run, None, QUIET))
    assert report["open"]["score"] == name
    rejected = score.is_unknown(score.value(outputs["open"]), report["open"]["threshold"])
    assert report["open"]["unknown_recall"] == pytest.approx(float(rejected.double().mean()))
    prepared = prepared_score(run, name, outputs)
    assert prepared.outputs is outputs
    assert make_report(run, outputs, prepared, unknown_rate=0.2).data == report.data
    assert prepared_score(run, prepared.score, outputs).score is prepared.score  # not fitted again


def test_the_methods_own_score_and_others_need_no_images(run, no_images):
    outputs = cached_outputs(run)
    assert prepared_score(run, None, outputs).score is SCORES["softmax"]
    assert prepared_score(run, "energy", outputs).outputs is outputs
    assert prepared_score(run, Odin(noise=0.0), outputs).outputs is outputs
    closed = {split: outputs[split] for split in ("val", "test")}
    assert "open" not in make_report(run, closed, "knn")  # nothing to decide, so nothing to read
    with pytest.raises(UserError, match="no default threshold"):
        make_report(run, outputs, "knn")


def test_odin_reads_changed_images_and_predicts_from_the_others(run, pack, request):
    outputs = cached_outputs(run)
    score, changed = prepared_score(run, "odin", outputs, console=QUIET)
    network, config = load_network(run), run.config()
    step = 0.0014 / torch.tensor(config.data.std).view(1, 3, 1, 1)
    views, _ = views_of(run, pack, "open")
    with torch.no_grad():
        logits = network(perturbed(network, views, 1000.0, step)).logits
    torch.testing.assert_close(changed["open"].logits, logits, rtol=1e-4, atol=1e-3)
    assert not torch.allclose(changed["open"].logits, outputs["open"].logits, rtol=1e-4, atol=1e-3)
    kept = run.outputs / "odin-T1000-e0.0014"
    assert sorted(file.name for file in kept.iterdir()) == [
        f"{split}.safetensors" for split in ("open", "test", "val")
    ]
    request.getfixturevalue("no_images")
    report = make_report(run, outputs, "odin", unknown_rate=0.2)
    assert report["closed"] == make_report(run, outputs)["closed"]
    rejected = score.is_unknown(score.value(changed["open"]), report["open"]["threshold"])
    assert report["open"]["unknown_recall"] == pytest.approx(float(rejected.double().mean()))


def test_odin_on_another_source_leaves_the_run_alone(run, tmp_path):
    other = read_source(tiny_pack(tmp_path / "other", seed=0))
    other = dataclasses.replace(other, table=other.table.assign(path="elsewhere/" + other.table["path"]))
    before = sorted(run.path.rglob("*"))
    outputs = outputs_on(run, other, QUIET)
    changed = prepared_score(run, "odin", outputs, other, QUIET).outputs
    assert changed.keys() == outputs.keys() and sorted(run.path.rglob("*")) == before
    some = {"test": outputs["open"]}
    with pytest.raises(UserError, match=r"(?s)no outputs of these test images.*source"):
        prepared_score(run, "odin", some, console=QUIET)


def test_a_manifest_of_the_runs_own_data_is_read_and_kept(run, pack, request):
    lost(run)
    outputs, own = cached_outputs(run), read_source(pack)
    changed = prepared_score(run, "odin", outputs, own, QUIET).outputs
    request.getfixturevalue("no_images")
    again = prepared_score(run, "odin", outputs, own, QUIET).outputs
    assert torch.equal(again["test"].logits, changed["test"].logits)


def test_training_images_that_have_moved_are_read_there_and_kept(run, tmp_path):
    lost(run)
    moved = read_source(tiny_pack(tmp_path / "moved"))
    outputs = outputs_on(run, moved, QUIET)
    assert len(training_outputs(run, moved, QUIET)) == 64 and (run.outputs / "train.safetensors").is_file()
    assert prepared_score(run, "knn", outputs, console=QUIET).score.learned is not None


def test_others_stand_in_for_training_images_that_are_gone(run, tmp_path, capsys):
    other = read_source(tiny_pack(tmp_path / "other"))
    other = dataclasses.replace(other, table=other.table.assign(path="elsewhere/" + other.table["path"]))
    own = training_outputs(run, other, QUIET)  # the run's own are there, and preferred
    (run.outputs / "train.safetensors").unlink()
    lost(run)
    torch.testing.assert_close(training_outputs(run, other, Console()).logits, own.logits)
    assert "taken instead" in capsys.readouterr().err
    assert not (run.outputs / "train.safetensors").exists()
    fewer = dataclasses.replace(other, table=other.table[other.table["split"] != "train"])
    with pytest.raises(UserError, match="are needed"):
        training_outputs(run, fewer, QUIET)


@pytest.mark.parametrize("name", ["knn", "odin"])
def test_images_that_are_gone_or_others(run, pack, tmp_path, name):
    outputs = cached_outputs(run)
    lost(run)
    with pytest.raises(UserError, match=r"(?s)are needed.*gone\.pack.*--source SOURCE"):
        prepared_score(run, name, outputs, console=QUIET)
    text = (run.path / "run.yaml").read_text()
    other = tiny_pack(tmp_path / "other", seed=3)
    (run.path / "run.yaml").write_text(text.replace("gone.pack", f"'{other}'"))
    with pytest.raises(UserError, match="holds other images now"):
        prepared_score(run, name, outputs, console=QUIET)
    (run.path / "run.yaml").write_text(text.replace("gone.pack", "''"))
    with pytest.raises(UserError, match="does not tell where"):
        prepared_score(run, name, outputs, console=QUIET)
    assert not (run.outputs / "train.safetensors").exists()


def test_odin_is_tuned_on_open_images_that_are_measured_no_more(run):
    outputs = cached_outputs(run)
    grid = {"temperatures": (1.0, 1000.0), "noises": (0.0, 0.002)}
    tuned = tune_odin(run, console=QUIET, images=5, **grid)
    assert len(tuned.held_out) == 5 and len(set(tuned.held_out.tolist())) == 5
    assert (tune_odin(run, console=QUIET, images=5, **grid).held_out == tuned.held_out).all()
    assert len(tune_odin(run, console=QUIET, images=99, **grid).held_out) == len(outputs["open"]) // 2
    rest = tuned.rest(outputs)
    left = [number for number in range(len(outputs["open"])) if number not in tuned.held_out]
    assert torch.equal(rest["open"].logits, outputs["open"].logits[left]) and rest["test"] is outputs["test"]
    assert torch.equal(rest["open"].reachability, outputs["open"].reachability[left])
    prepared = prepared_score(run, tuned.score, outputs, console=QUIET)
    report = make_report(run, rest, prepared._replace(outputs=tuned.rest(prepared.outputs)), unknown_rate=0.1)
    assert report["open"]["score"] == "odin"


def test_the_chosen_setting_has_the_least_detection_error(run):
    outputs = cached_outputs(run)
    held_out = tune_odin(run, console=QUIET, temperatures=(1.0,), noises=(0.0,)).held_out
    errors = {}
    for temperature in (1.0, 1000.0):
        for noise in (0.0, 0.01):
            score, said = prepared_score(run, Odin(temperature, noise), outputs, console=QUIET)
            unseen = score.unknown_score(said["open"])[held_out]
            errors[temperature, noise] = detection_error(score.unknown_score(said["val"]), unseen)
    tuned = tune_odin(run, console=QUIET, temperatures=(1.0, 1000.0), noises=(0.0, 0.01))
    assert tuned.error == pytest.approx(min(errors.values()))
    assert errors[tuned.score.temperature, tuned.score.noise] == pytest.approx(tuned.error)


def test_odin_cannot_be_tuned_without_open_images(run, tmp_path):
    manifest = read_source(tiny_pack(tmp_path / "other"))
    table = manifest.table[manifest.table["split"] != "open"]
    with pytest.raises(UserError, match="18 validation and 0 open"):
        tune_odin(run, Manifest.build(table, manifest.root), QUIET)
