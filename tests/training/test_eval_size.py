"""The evaluation size that validation images decide on: the run is measured, used and resumed at it."""

import dataclasses
import re

import pytest
import torch
import yaml

from oltr import TrainedRun
from oltr.data.image_access import open_images
from oltr.data.pack import open_pack
from oltr.runs.collect import collect_outputs
from oltr.runs.train_run import train_run
from oltr.training import eval_size as module
from oltr.training import train as train_module
from oltr.training.command import train_command
from oltr.training.configure import configure
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from tests.helpers.tiny import tiny_config

CPU, ON_CPU = torch.device("cpu"), TrainOptions(accelerator="cpu")
TRAINED, LARGER = 32, 40
FITTED = {"epochs": 1, "frozen": ("backbone",)}


def candidate(method, **changes):
    config = tiny_config(method, (1, 1), backbone="resnet10_half", keep="last", **changes)
    data = dataclasses.replace(config.data, eval_size=LARGER, eval_size_by="validation")
    return dataclasses.replace(config, data=data)


@pytest.fixture
def asked(monkeypatch):
    """The sizes at which the choice measures, and a wish which of them is better."""
    sizes, better = [], [LARGER]

    def measured(network, images, config, *_):
        sizes.append(config.data.seen_size)
        return {"overall": 0.6 if config.data.seen_size == better[0] else 0.5}

    monkeypatch.setattr(module, "validate", measured)
    return sizes, better


def fitted(config):
    """Stage 2 is the fit of the head, on features of the chosen size."""
    return dataclasses.replace(config, stage2=dataclasses.replace(config.stage2, **FITTED))


@pytest.mark.parametrize("wanted", [TRAINED, LARGER])
@pytest.mark.parametrize("method", ["plain", "oltr2", "fit", "crt", "logit-adjusted"])
def test_the_better_size_is_that_of_the_run(pack, tmp_path, asked, method, wanted):
    sizes, better = asked
    better[:] = [wanted]
    config = fitted(candidate("oltr2")) if method == "fit" else candidate(method)
    manifest = open_pack(pack).manifest
    train_run(config, manifest, tmp_path / "run", ON_CPU, str(pack))
    run = TrainedRun(tmp_path / "run")
    assert sizes == [TRAINED, LARGER] and run.config.data.seen_size == wanted
    assert run.facts["eval_size"] == wanted and run.facts["config"]["data"]["eval_size"] == LARGER
    # Its outputs are of this size alone.
    for size in (TRAINED, LARGER):
        data = run.config.seen_at(size).data
        images = open_images(manifest, ["test"], data.frame, data.image_size, CPU)["test"]
        outputs = collect_outputs(run.trained_network, images, data, CPU, precision="float32")
        assert torch.allclose(outputs.logits, run.outputs["test"].logits, atol=1e-5) == (size == wanted)


def test_a_stopped_run_goes_on_at_the_chosen_size(pack, tmp_path, asked, monkeypatch):
    def stop(run, number, network):
        if number == 2:
            raise KeyboardInterrupt

    sizes, better = asked
    better[:] = [TRAINED]
    config, manifest = fitted(candidate("oltr2")), open_pack(pack).manifest
    train_run(config, manifest, tmp_path / "straight", ON_CPU)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(train_module, "fit_stage", stop)
        train_run(config, manifest, tmp_path / "run", ON_CPU)
    assert yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())["eval_size"] == TRAINED
    better[:] = [LARGER]  # would be chosen now
    sizes.clear()
    train_run(config, manifest, tmp_path / "run", dataclasses.replace(ON_CPU, resume=True))
    assert not sizes
    ours, theirs = (TrainedRun(tmp_path / name) for name in ("run", "straight"))
    assert ours.config == theirs.config
    assert torch.equal(ours.outputs["test"].logits, theirs.outputs["test"].logits)


def test_without_validation_images_the_size_of_training(pack, tmp_path):
    manifest = open_pack(pack).manifest
    table = manifest.table[manifest.table["split"] != "val"]
    decision = dataclasses.replace(
        tiny_config("plain").decision, score="softmax", threshold=0.1, unknown_rate=None
    )
    config = dataclasses.replace(candidate("plain"), decision=decision)
    train_run(config, dataclasses.replace(manifest, table=table), tmp_path / "run", ON_CPU)
    assert TrainedRun(tmp_path / "run").config.data.seen_size == TRAINED


def test_validation_images_decide_for_real(pack, tmp_path, capsys):
    train_run(candidate("plain"), open_pack(pack).manifest, tmp_path / "run", ON_CPU)
    said = capsys.readouterr().err
    chosen = TrainedRun(tmp_path / "run").config.data.seen_size
    found = re.search(r"evaluated at (\d+) px: validation accuracy (.*) % at 32 px, (.*) % at 40 px", said)
    assert found and int(found[1]) == chosen
    assert chosen == (LARGER if float(found[3]) > float(found[2]) else TRAINED)


def test_a_size_that_is_asked_for_is_no_candidate():
    assert configure("photos", "plain").data.eval_size_by == "validation"
    asked_for = configure("photos", "plain", changes=["data.eval_size=144"]).data
    assert (asked_for.eval_size, asked_for.eval_size_by) == (144, "fixed")
    both = configure("photos", "plain", changes=["data.eval_size=144", "data.eval_size_by=validation"]).data
    assert both.eval_size_by == "validation"


def test_a_command_leads_to_the_same_candidate():
    for config in (
        configure("photos", "plain", image_size=64),
        configure("photos", "plain", changes=["data.eval_size=144", "data.eval_size_by=validation"]),
        configure("photos", "plain", changes=["data.eval_size=144"]),
    ):
        words, exact = train_command(config, "SOURCE")
        assert exact, words


def test_until_it_is_settled_the_size_is_that_of_training():
    data = candidate("plain").data
    assert data.seen_size == TRAINED and dataclasses.replace(data, eval_size_by="fixed").seen_size == LARGER


def test_a_run_of_an_earlier_version_is_gone_on_with(pack, tmp_path):
    config, manifest = candidate("plain"), open_pack(pack).manifest
    train_run(config.seen_at(LARGER), manifest, tmp_path / "run", ON_CPU)
    file = tmp_path / "run" / "run.yaml"
    told = yaml.safe_load(file.read_text())
    del told["config"]["data"]["eval_size_by"]
    file.write_text(yaml.safe_dump(told))
    RunFolder(tmp_path / "run").check_same(config, manifest)
