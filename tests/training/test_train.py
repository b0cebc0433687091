"""Training: the same seed gives the same weights, runs are complete, bad runs leave a clear word."""

from __future__ import annotations

import csv
import dataclasses
import errno
import functools
import json
from pathlib import Path

import pytest
import torch
import torch._dynamo.config
import yaml
from safetensors.torch import load_file

from oltr.console import console
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.methods.plain import Plain
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.train import train
from tests.helpers.tiny import tiny_config, tiny_pack
from tests.helpers.training import stop_at


def run(config, pack, out, **options):
    with console.silent():
        return train_run(config, open_pack(pack).manifest, out, TrainOptions(**options), "tiny")


def weights(out):
    return load_file(RunFolder(out).model)


def same(a, b) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("method", ["plain", "class-aware", "oltr", "oltr-paper"])
def test_a_run_is_complete(pack, tmp_path, method):
    report = run(tiny_config(method), pack, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert set(json.loads(folder.report.read_text())) >= {"schema", "closed", "open", "per_class", "shots"}
    assert report["method"] == method and report["num_classes"] == 6
    rows = list(csv.DictReader(folder.metrics.open()))
    assert [(row["stage"], row["epoch"]) for row in rows] == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    assert all(row["overall"] and row["open_f"] for row in rows)
    kept = folder.run()
    assert kept["finished"] and kept["train_seconds"] > 0 and kept["versions"]["torch"]
    assert kept["config"]["seed"] == 0 and kept["data"]["images"]["train"] == len(
        open_pack(pack).manifest.rows("train")
    )
    assert [entry["train_count"] for entry in folder.classes()] == list(
        open_pack(pack).manifest.train_counts()
    )
    assert {file.stem for file in folder.outputs.iterdir()} == {"val", "test", "open"}
    assert not list((tmp_path / "run").rglob("*.part"))


def test_same_seed_same_weights_other_seed_other_weights(pack, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(tiny_config(seed=seed), pack, tmp_path / name)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


def test_strong_augmentation_reaches_the_weights(pack, tmp_path):
    plain, manifest = tiny_config("plain", epochs=(1,)), open_pack(pack).manifest
    found = []
    for name, changes in (("weak", {}), ("strong", {"affine": 0.6, "colour": 0.8, "erase": 0.5})):
        config = dataclasses.replace(plain, data=dataclasses.replace(plain.data, **changes))
        with console.silent():
            network, *_ = train(config, manifest, tmp_path / name, TrainOptions())
        found.append(network.state_dict())
    assert not same(*found)


def test_however_many_trainings_there_are_in_a_process_each_is_compiled(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    with torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        for name in ("a", "b"):
            run(tiny_config(compile="always"), pack, tmp_path / name)
    run(tiny_config(compile="never"), pack, tmp_path / "as written")
    assert same(weights(tmp_path / "b"), weights(tmp_path / "as written"))


def test_shared_stage_one_gives_the_weights_of_a_run_that_trained_its_own(pack, tmp_path):
    run(tiny_config("plain"), pack, tmp_path / "plain")
    run(tiny_config("oltr"), pack, tmp_path / "shared", stage1_from=tmp_path / "plain")
    run(tiny_config("oltr"), pack, tmp_path / "alone")
    assert same(weights(tmp_path / "shared"), weights(tmp_path / "alone"))
    shared, alone = (
        list(csv.DictReader(RunFolder(tmp_path / n).metrics.open())) for n in ("shared", "alone")
    )
    assert [row["loss"] for row in shared] == [row["loss"] for row in alone]
    assert RunFolder(tmp_path / "shared").run()["train_seconds"] == pytest.approx(
        sum(float(row["seconds"]) for row in shared), abs=0.01
    )


def test_a_run_of_one_stage_takes_all_of_training(pack, tmp_path):
    """What follows training is its own: τ-norm of plain's weights is τ-norm of its own."""
    for name in ("plain", "tau-norm"):
        run(dataclasses.replace(tiny_config(name, epochs=(2, 1)), stage2=None), pack, tmp_path / name)
    config = dataclasses.replace(tiny_config("tau-norm", epochs=(2, 1)), stage2=None)
    run(config, pack, tmp_path / "shared", stage1_from=tmp_path / "plain")
    assert same(weights(tmp_path / "shared"), weights(tmp_path / "tau-norm"))
    assert not same(weights(tmp_path / "shared"), weights(tmp_path / "plain"))
    rows = [[*csv.DictReader(RunFolder(tmp_path / n).metrics.open())] for n in ("shared", "plain")]
    assert [row["loss"] for row in rows[0]] == [row["loss"] for row in rows[1]]


def test_stage_one_of_other_settings_is_not_shared(pack, tmp_path):
    run(tiny_config("plain", epochs=(1, 1)), pack, tmp_path / "plain")
    with pytest.raises(UserError, match="stage1"):
        run(tiny_config("oltr"), pack, tmp_path / "oltr", stage1_from=tmp_path / "plain")


def test_the_best_validation_epoch_is_kept(pack, tmp_path):
    run(tiny_config("plain"), pack, tmp_path / "best")
    run(tiny_config("plain", keep="last"), pack, tmp_path / "last")
    for out, pick in (("best", max), ("last", None)):
        rows = [
            row for row in csv.DictReader(RunFolder(tmp_path / out).metrics.open()) if row["stage"] == "2"
        ]
        expected = (
            float(pick(rows, key=lambda row: float(row["overall"]))["overall"])
            if pick
            else float(rows[-1]["overall"])
        )
        from oltr.metrics.accuracy import mean, per_class_accuracy
        from oltr.runs.outputs import Outputs

        val = Outputs.load(RunFolder(tmp_path / out).outputs / "val.safetensors")
        assert mean(per_class_accuracy(val.logits.argmax(1), val.labels, 6)) == pytest.approx(
            expected, abs=1e-6
        )


def test_a_used_folder_is_refused(pack, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("precious")
    with pytest.raises(UserError, match="not empty"):
        run(tiny_config(), pack, tmp_path / "run")
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["thesis.txt"]


def test_resuming_with_another_config_names_the_difference(pack, tmp_path):
    run(tiny_config(), pack, tmp_path / "run")
    with pytest.raises(UserError, match=r"stage2\.epochs: 2 → 3"):
        run(tiny_config(epochs=(2, 3)), pack, tmp_path / "run", resume=True)


def test_a_finished_run_is_not_trained_again(pack, tmp_path):
    run(tiny_config(), pack, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    kept = TrainedRun(folder.path)
    kept.keep_rule(kept.other_rule(unknown_rate=0.2))
    kept.measure().save(folder.report)
    files = [file for file in folder.path.rglob("*") if file.is_file()]
    before = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}
    again = run(tiny_config(), pack, folder.path, resume=True)
    assert {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in files} == before
    assert again["open"]["unknown_rate"] == 0.2
    with pytest.raises(UserError, match="another configuration"):
        run(tiny_config(seed=1), pack, folder.path, resume=True)


@pytest.mark.parametrize("name", ["model.safetensors", "outputs/test.safetensors", "report.json"])
def test_what_a_finished_run_has_lost_is_made_anew(pack, tmp_path, name):
    run(tiny_config(), pack, tmp_path / "run")
    file = tmp_path / "run" / name
    before = file.read_bytes()
    file.unlink() if name == "report.json" else file.write_bytes(before[:100])
    run(tiny_config(), pack, tmp_path / "run", resume=True)
    assert file.read_bytes() == before


def test_loss_turned_nan_stops_and_keeps_the_last_good_epoch(pack, tmp_path, monkeypatch):
    from oltr.methods.plain import Plain

    calls = []

    def loss(self, stage, network, output, labels):
        calls.append(1)
        terms = super(Plain, self).loss(stage, network, output, labels)
        steps = 8  # 64 images in batches of 8
        return {name: value * float("nan") for name, value in terms.items()} if len(calls) > steps else terms

    monkeypatch.setattr(Plain, "loss", loss)
    with pytest.raises(UserError, match="stage 1, epoch 2"):  # a GPU would replay the first loss
        run(tiny_config("plain"), pack, tmp_path / "run", accelerator="cpu")
    saved = torch.load(RunFolder(tmp_path / "run").last, weights_only=True)
    assert saved["epoch"] == 1
    assert all(torch.isfinite(value).all() for value in saved["network"].values())


def test_a_full_disk_keeps_the_checkpoint_before(pack, tmp_path, monkeypatch):
    real, calls = Path.write_bytes, []

    def write_bytes(self, content):
        calls.append(self)
        if "last.pt" in self.name and sum("last.pt" in path.name for path in calls) == 2:
            real(self, bytes(content)[:100])
            raise OSError(errno.ENOSPC, "No space left on device", str(self))
        return real(self, content)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises(UserError, match=r"No space left on device\. What was there before is kept"):
        run(tiny_config(), pack, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert torch.load(folder.last, weights_only=True)["epoch"] == 1
    assert not list(folder.path.rglob("*.part"))
    monkeypatch.undo()
    run(tiny_config(), pack, tmp_path / "run", resume=True)
    run(tiny_config(), pack, tmp_path / "straight")
    assert same(weights(tmp_path / "run"), weights(tmp_path / "straight"))


def test_without_validation_the_last_epoch_counts(pack, tmp_path):
    import dataclasses

    from oltr.data.manifest import Manifest

    manifest = open_pack(pack).manifest
    # A pack is read by row, so the rows stay; only the split is renamed away.
    table = manifest.table.assign(split=manifest.table["split"].replace({"val": "train"}))
    merged = dataclasses.replace(Manifest.build(table, manifest.root), pack=manifest.pack)
    network, *_ = train(tiny_config("plain"), merged, tmp_path / "run", TrainOptions())
    last = torch.load(RunFolder(tmp_path / "run").last, map_location="cpu", weights_only=True)["network"]
    assert same({k: v.cpu() for k, v in network.state_dict().items()}, last)


def test_the_start_says_where_images_are_device_and_seed(pack, tmp_path, capsys):
    options = TrainOptions(accelerator="cpu")
    train(tiny_config(epochs=(1, 1), seed=3), open_pack(pack).manifest, tmp_path / "run", options)
    said = capsys.readouterr().err
    assert said.startswith("images from a memory-mapped pack; training on CPU (")
    assert "), seed 3\n" in said
    assert said.count("images/s") == 2  # a column of each stage's table


def test_a_run_of_an_earlier_version_without_newer_settings_resumes(pack, tmp_path):
    run(tiny_config(), pack, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    kept = folder.run()
    for stage in ("stage1", "stage2"):
        for setting in ("ema", "lr_every", "optimizer", "layer_decay", "keep_statistics"):
            del kept["config"][stage][setting]
    for setting in ("affine", "colour", "erase"):
        del kept["config"]["data"][setting]
    (folder.path / "run.yaml").write_text(yaml.safe_dump(kept))
    before = weights(folder.path)
    folder.model.unlink()
    run(tiny_config(), pack, folder.path, resume=True)
    assert same(weights(folder.path), before)


def test_run_yaml_is_plain_yaml(pack, tmp_path):
    run(tiny_config(), pack, tmp_path / "run")
    kept = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    assert RunFolder(tmp_path / "run").config() == tiny_config()
    assert kept["config"]["data"]["mean"] == [0.5, 0.5, 0.5]


def test_evaluation_takes_a_larger_pack_and_refuses_a_smaller_one(pack, tmp_path):
    run(tiny_config("plain", epochs=(1, 1)), pack, tmp_path / "run")
    packs = [open_pack(tiny_pack(tmp_path / str(size), size=size)).manifest for size in (40, 24)]
    outputs = TrainedRun(tmp_path / "run").on(packs[0]).outputs
    assert len(outputs["test"]) == packs[0].sizes()["test"]
    with pytest.raises(UserError, match="24 px, the run learned from 32 px"):
        _ = TrainedRun(tmp_path / "run").on(packs[1]).outputs["test"]


class _LearnsItsScale(Plain):
    """A method that makes the mistake of putting a parameter into its loss."""

    def __init__(self, *given):
        super().__init__(*given)
        self.scale = torch.nn.Parameter(torch.ones(()))


class _CountsSteps(Plain):
    """A method with a state of its own."""

    def __init__(self, *given):
        super().__init__(*given)
        self.register_buffer("steps", torch.zeros(()))

    def after_step(self, stage, network, output, labels):
        self.steps += 1


def test_a_parameter_that_nothing_would_train_is_refused(pack, tmp_path):
    config = dataclasses.replace(tiny_config("plain"), method=f"{__name__}:_LearnsItsScale")
    with pytest.raises(UserError, match="parameters of its own: scale"):
        run(config, pack, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_state_of_a_method_is_resumed(pack, tmp_path, monkeypatch):
    config = dataclasses.replace(tiny_config("plain", epochs=(3, 1)), method=f"{__name__}:_CountsSteps")
    seen = []
    monkeypatch.setattr(_CountsSteps, "after_training", lambda self, *_: seen.append(int(self.steps)))
    run(config, pack, tmp_path / "whole")
    with monkeypatch.context() as patched:
        stop_at(patched, 14)  # in the second epoch of stage 1
        with pytest.raises(KeyboardInterrupt):
            run(config, pack, tmp_path / "stopped")
    run(config, pack, tmp_path / "stopped", resume=True)
    assert seen[0] == seen[1] > 0
