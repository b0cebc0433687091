"""How to repeat a run: command lines that give its very configuration again."""

from __future__ import annotations

import shlex

import pytest
import torch
import yaml

from oltr.config import RunConfig
from oltr.data.pack import open_pack
from oltr.openset import RejectionRule
from oltr.report.page.repeat import origin
from oltr.report.page.runs import measured_runs
from oltr.runs.tables import comparison
from oltr.runs.trained_run import TrainedRun
from oltr.training.configure import configure
from oltr.training.run_folder import RunFolder
from tests.report.made_run import made_pack, made_run
from tests.report.sample import sample_report


@pytest.fixture
def run(tmp_path):
    return made_run(tmp_path / "a run", made_pack(tmp_path / "my data", val=0))


def told(run):
    (measured,) = measured_runs([run])
    return origin(measured)


def configured(command: str) -> RunConfig:
    """What `oltr train` would make of the words."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:2] == ["oltr", "train"]
    options: dict[str, list[str]] = {}
    for name, value in zip(words[3::2], words[4::2], strict=True):
        options.setdefault(name, []).append(value)
    return configure(
        options["--recipe"][0],
        options["--method"][0],
        backbone=options.get("--backbone", [None])[0],
        seed=int(options.get("--seed", ["0"])[0]),
        changes=options.get("--set", []),
    )


def test_the_command_gives_the_configuration_again(tmp_path, run):
    pack = tmp_path / "my data" / "made.pack"
    changes = [
        "stage1.lr=0.00001",
        "stage2=null",
        "data.mean=[0.1, 0.2, 0.3]",
        "stage1.lr_milestones={3: 0.5}",
    ]
    config = configure("glyphs", "plain", backbone="test_resnet", seed=7, changes=changes, epochs=(5,))
    other = RunFolder(tmp_path / "other")
    other.begin(config, open_pack(pack).manifest, str(pack), torch.device("cpu"))
    other.finish(12.0)
    kept = (tmp_path / "other" / "run.yaml").read_text()
    (run / "run.yaml").write_text(kept)
    found = told(run)
    assert found.note == ""
    assert configured(found.commands[0]) == config
    assert f"'{pack}'" in found.commands[0] and "--out" in found.commands[0]  # quoted: there is a space
    assert yaml.safe_load(found.configuration) == yaml.safe_load(kept)["config"]
    facts = dict(found.facts)
    assert facts["seed"] == "7" and len(facts["data fingerprint"]) == 64 and "torch " in facts["versions"]
    assert facts["images"] == "train 183, val 0, test 24, open 8"


def test_the_threshold_is_repeated_too(run):
    words = shlex.split(told(run).commands[1].replace("\\\n", " "))
    assert words == ["oltr", "evaluate", f"{run}-again", "--score", "softmax", "--threshold", "0.1"]
    TrainedRun(run).keep_rule(RejectionRule("softmax", 0.3, 0.05))
    assert "--unknown-rate 0.05" in told(run).commands[1]


def test_shot_groups_are_those_of_the_report(tmp_path):
    run = made_run(tmp_path / "run", made_pack(tmp_path / "data", counts=(100, 30, 20, 3)))
    TrainedRun(run).measure(shots="released").save(run / "report.json")
    (measured,) = measured_runs([run])
    assert measured.run.groups.tolist() == ["many", "medium", "few", "few"] and not measured.caution
    assert measured.report.shots.many == 1 and "--shots released" in told(run).commands[1]
    assert "shots" not in told(run).commands[0]  # the training is the same


@pytest.mark.parametrize("root", ["/elsewhere/my images", None])
def test_where_paths_start_is_repeated_if_it_is_elsewhere(run, root):
    facts = yaml.safe_load((run / "run.yaml").read_text())
    (run / "run.yaml").write_text(yaml.safe_dump(facts | ({"root": root} if root else {})))
    words = shlex.split(told(run).commands[0].replace("\\\n", " "))
    assert words[2] == facts["source"]
    assert words[3:5] == (["--root", root] if root else ["--recipe", "glyphs"])


def test_a_recipe_that_is_gone(run):
    facts = yaml.safe_load((run / "run.yaml").read_text())
    facts["config"]["recipe"] = "/nowhere/mine.yaml"
    (run / "run.yaml").write_text(yaml.safe_dump(facts))
    found = told(run)
    assert "only the configuration below is exact" in found.note
    assert [command.split()[1] for command in found.commands] == ["evaluate"]


def test_differences_to_the_first_run():
    better = sample_report("oltr", closed={"many": 0.8, "medium": None, "few": 0.2, "overall": 0.5})
    table = comparison({"plain": sample_report("plain"), "oltr": better}, over="plain")
    rows = {row[0]: row[1:5] for row in table.rows}
    assert rows["  over plain"] == ["+5.0", "–", "-10.0", "-2.5"]
    assert len(rows) == 3 and len(comparison({"plain": better, "oltr": better}).rows) == 2
