"""One rejection rule per run: chosen in training, kept in run.yaml, changed only on demand."""

from __future__ import annotations

import shutil

import pytest
import yaml

from oltr.config import DecisionConfig
from oltr.console import console
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.openset import RejectionRule
from oltr.recipes import resolve
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from tests.helpers.tiny import tiny_config


@pytest.fixture(scope="module")
def trained(pack, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "oltr"
    with console.silent():
        train_run(
            tiny_config(epochs=(1, 1)),
            open_pack(pack).manifest,
            out,
            TrainOptions(accelerator="cpu"),
            str(pack),
        )
    return out


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def change(folder, **values):
    """Other entries in run.yaml; None: no such entry."""
    found = yaml.safe_load((folder / "run.yaml").read_text()) | values
    kept = {key: value for key, value in found.items() if value is not None}
    (folder / "run.yaml").write_text(yaml.safe_dump(kept, sort_keys=False))


def test_training_keeps_a_rule_that_rejects_at_most_five_percent(trained):
    run = TrainedRun(trained)
    kept = yaml.safe_load((trained / "run.yaml").read_text())["decision"]
    assert kept == {"score": "softmax", "threshold": run.rule.threshold, "unknown_rate": 0.05}
    assert run.rule.rejects(run.scored("val").values).double().mean() <= 0.05
    assert run.report.open.threshold == run.rule.threshold and run.report.open.unknown_rate == 0.05
    assert run.measure().data == run.report.data


@pytest.mark.parametrize("recipe", ["imagenet-lt", "places-lt", "sun-lt", "cifar100-tinyimagenet"])
def test_the_papers_settings_keep_its_threshold(recipe):
    assert resolve(recipe, "oltr").decision == DecisionConfig("softmax", 0.1, None)


@pytest.mark.parametrize("recipe", ["photos", "glyphs", "cifar100-lt-100", "cifar100-lt-10"])
def test_all_other_recipes_take_five_percent(recipe):
    assert resolve(recipe, "oltr").decision == DecisionConfig(None, None, 0.05)


def test_an_old_run_without_a_rule_gets_its_recipes(folder):
    config = yaml.safe_load((folder / "run.yaml").read_text())["config"]
    del config["decision"]
    change(folder, decision=None, config=config)
    assert TrainedRun(folder).rule.unknown_rate == 0.05
    change(folder, decision=None, config=config | {"recipe": "imagenet-lt"})
    assert TrainedRun(folder).rule == RejectionRule("softmax", 0.1)
    change(folder, decision=None, config=config | {"recipe": "a/file/that/is/gone.yaml"})
    assert TrainedRun(folder).rule.unknown_rate == 0.05
    # As `Recognizer.save` wrote it in version 0.1.
    change(folder, decision={"score": "reachability", "unknown_rate": 0.2}, config=config)
    assert (TrainedRun(folder).rule.score, TrainedRun(folder).rule.unknown_rate) == ("reachability", 0.2)
    change(folder, decision={"score": None, "unknown_rate": None}, config=config)
    assert TrainedRun(folder).rule == RejectionRule("softmax", 0.1)


def test_another_rule_is_measured_and_kept_only_on_demand(folder):
    run = TrainedRun(folder)
    own, before = run.rule, (folder / "run.yaml").read_text()
    other = run.other_rule(unknown_rate=0.4)
    assert other.score == "softmax" and other.threshold > own.threshold
    assert run.under(other).measure().open.threshold == other.threshold
    assert run.rule == own and (folder / "run.yaml").read_text() == before
    old = run.decisions
    run.keep_rule(other)
    assert TrainedRun(folder).rule == other == run.rule == run.decisions.rule != old.rule
    assert run.report.open.threshold == TrainedRun(folder).report.open.threshold == other.threshold
    assert yaml.safe_load((folder / "run.yaml").read_text())["config"] == yaml.safe_load(before)["config"]


def test_a_rule_that_cannot_be_measured_is_not_kept(folder):
    (folder / "model.safetensors").unlink()  # the weights that odin needs
    run = TrainedRun(folder)
    own, files = run.rule, [(folder / name).read_text() for name in ("run.yaml", "report.json")]
    with pytest.raises(UserError, match="safetensors is missing"):
        run.keep_rule(RejectionRule("odin", 0.5))
    assert run.rule == own == run.decisions.rule
    assert [(folder / name).read_text() for name in ("run.yaml", "report.json")] == files


def test_another_score_keeps_the_runs_rate(folder):
    run = TrainedRun(folder)
    assert run.other_rule("energy").unknown_rate == 0.05
    assert run.other_rule(threshold=0.2) == RejectionRule("softmax", 0.2)
    assert run.other_rule("softmax") == run.rule == run.other_rule()
    fixed = run.under(RejectionRule("softmax", 0.1))
    assert fixed.other_rule("openmax") == RejectionRule("openmax", 0.5)  # its own default
    assert fixed.other_rule("energy").unknown_rate == 0.05
    for wish, words in (
        ({"threshold": 0.1, "unknown_rate": 0.1}, "Both"),
        ({"threshold": 2.0}, "between 0 and 1"),
        ({"unknown_rate": 0.0}, "between 0 and 1"),
        ({"score": "softmx"}, "did you mean softmax"),
    ):
        with pytest.raises(UserError, match=words):
            run.other_rule(**wish)


def test_without_validation_images_the_default_holds_and_is_said(folder, capsys):
    (folder / "outputs" / "val.safetensors").unlink()
    change(folder, decision=None)
    run = TrainedRun(folder)
    assert run.rule.threshold == 0.1 and "no validation images" in run.rule.note
    assert "no validation images: the softmax threshold is its default, 0.1" in capsys.readouterr().err
    with pytest.raises(UserError, match="no validation images"):
        run.other_rule("energy", unknown_rate=0.1)
