"""ODIN tuned on open images, which are measured no more."""

from __future__ import annotations

import pytest

from oltr.console import console
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.metrics.detection import detection_error
from oltr.openset.odin import Odin
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.runs.tune_odin import tune_odin
from oltr.training.options import TrainOptions
from tests.helpers.tiny import tiny_config, tiny_pack


@pytest.fixture(scope="module")
def run(pack, tmp_path_factory) -> TrainedRun:
    out, options = tmp_path_factory.mktemp("runs") / "oltr", TrainOptions(accelerator="cpu")
    with console.silent():
        train_run(tiny_config(epochs=(1, 1)), open_pack(pack).manifest, out, options, str(pack))
    return TrainedRun(out)


def test_the_held_out_images_are_at_most_half_and_the_same_each_time(run):
    grid = {"temperatures": (1.0, 1000.0), "noises": (0.0, 0.002)}
    tuned = tune_odin(run, images=5, **grid)
    assert len(tuned.held_out) == 5 and len(set(tuned.held_out.tolist())) == 5
    assert (tune_odin(run, images=5, **grid).held_out == tuned.held_out).all()
    assert len(tune_odin(run, images=99, **grid).held_out) == len(run.outputs["open"]) // 2


def test_the_chosen_setting_has_the_least_detection_error(run):
    held_out = tune_odin(run, temperatures=(1.0,), noises=(0.0,)).held_out
    errors = {}
    for temperature in (1.0, 1000.0):
        for noise in (0.0, 0.01):
            score = Odin(temperature, noise)
            unseen = run.scored("open", score).unknown[held_out]
            errors[temperature, noise] = detection_error(run.scored("val", score).unknown, unseen)
    tuned = tune_odin(run, temperatures=(1.0, 1000.0), noises=(0.0, 0.01))
    assert tuned.error == pytest.approx(min(errors.values()))
    assert errors[tuned.score.temperature, tuned.score.noise] == pytest.approx(tuned.error)


def test_odin_cannot_be_tuned_without_open_images(run, tmp_path):
    manifest = read_source(tiny_pack(tmp_path / "other"))
    table = manifest.table[manifest.table["split"] != "open"]
    with pytest.raises(UserError, match="18 validation and 0 open"):
        tune_odin(run, Manifest.build(table, manifest.root))
