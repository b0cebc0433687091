"""The temperature of a run: kept with its rule, fitted where it is not, none without validation images."""

from __future__ import annotations

import pytest

from oltr.metrics import fit_temperature
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun
from oltr.training.run_folder import RunFolder
from tests.report.made_run import made_pack, made_run


def test_it_is_kept_with_the_rule_and_changes_no_other_number(tmp_path):
    path = made_run(tmp_path / "run", made_pack(tmp_path / "data"), sure=1.5)
    val = Outputs.load(path / "outputs" / "val.safetensors")
    assert RunFolder(path).run()["temperature"] == fit_temperature(val.logits, val.labels)
    run = TrainedRun(path)
    assert run.report.calibration.temperature == run.temperature
    other = TrainedRun(path)
    other.temperature = 17.0
    numbers, others = run.measure().data, other.measure().data
    assert numbers.pop("calibration") != others.pop("calibration") and numbers == others


def test_a_run_of_before_is_fitted_when_asked_and_not_changed(tmp_path):
    path = made_run(tmp_path / "run", made_pack(tmp_path / "data"), sure=1.5)
    kept, folder = TrainedRun(path).temperature, RunFolder(path)
    facts = {key: value for key, value in folder.run().items() if key != "temperature"}
    folder.write(facts)
    assert TrainedRun(path).temperature == kept
    assert folder.run() == facts


@pytest.mark.parametrize("kept", [True, False])
def test_without_validation_images_there_is_none(tmp_path, kept):
    path = made_run(tmp_path / "run", made_pack(tmp_path / "data", val=0))
    folder = RunFolder(path)
    assert folder.run()["temperature"] is None
    if not kept:
        folder.write({key: value for key, value in folder.run().items() if key != "temperature"})
    report = TrainedRun(path).measure()
    assert report.calibration.temperature is None and report.calibration.calibrated_ece is None
