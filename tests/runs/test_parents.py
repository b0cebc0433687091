"""Parents over a run's classes, thresholds from its validation images, and the report by level."""

from __future__ import annotations

import json
import math
import shutil

import pytest
import torch

from oltr import Recognizer
from oltr.console import console
from oltr.errors import UserError
from oltr.metrics.labels import OPEN
from oltr.runs.measure_levels import measure_levels
from oltr.runs.parents import Parents, Rollup, fit_rollup, read_parents
from oltr.runs.report import Report
from oltr.runs.temperature import calibrated
from oltr.runs.trained_run import TrainedRun
from tests.report.made_run import NAMES, made_pack, made_run

ABOVE = {
    "ant": "insect",
    "bee": "insect",
    "cat": "mammal",
    "insect": "animal",
    "mammal": "animal",
    "new 0": "insect",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of ant, bee, cat and dog; its open images are new 0 and new 1. Read-only."""
    folder = tmp_path_factory.mktemp("made")
    return made_run(folder / "run", made_pack(folder, test=30, val=30, unseen=40), sure=2.5)


@pytest.fixture
def run(made):
    return TrainedRun(made)


def table(tmp_path, above=ABOVE):
    path = tmp_path / "parents.csv"
    path.write_text("label,parent\n" + "".join(f"{label},{parent}\n" for label, parent in above.items()))
    return path


def heard(capsys, path, names=NAMES):
    """What reading a table has to say."""
    capsys.readouterr()
    parents = read_parents(path, names)
    return parents, capsys.readouterr().err


def test_classes_below_their_parents(tmp_path, capsys):
    parents, said = heard(capsys, table(tmp_path))
    assert parents.names == [list(NAMES), ["insect", "mammal"], ["animal"]]
    assert parents.levels == ["class", "1", "2"]
    assert parents.lineage.tolist() == [[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, -1, -1]]
    assert "1 class has no parent" in said and "dog" in said and "warning" not in said


def test_a_ragged_tree_counts_levels_by_the_longest_way_down():
    above = {
        "ball moss": "Tillandsia",
        "Tillandsia": "Bromeliaceae",
        "bromelia": "Bromeliaceae",
        "rose": "Rosa",
    }
    parents = Parents(above, ["ball moss", "bromelia", "rose"])
    assert parents.names[1:] == [["Tillandsia", "Rosa"], ["Bromeliaceae"]]
    assert parents.lineage.tolist() == [[0, 0, 0], [1, -1, 0], [2, 1, -1]]
    # The level of a family does not hang on whether the run knows the genus.
    assert Parents(above, ["bromelia", "rose"]).names == [["bromelia", "rose"], ["Rosa"], ["Bromeliaceae"]]


def test_levels_without_a_class_are_left_out():
    parents = Parents({"a": "x", "b": "x", "x": "y", "c": "y"}, ["c"])
    assert parents.names == [["c"], ["y"]]
    assert parents.lineage_of(["a", "c", "z"]).tolist() == [[-1, 0], [0, 0], [-1, -1]]


def test_a_class_that_is_a_parent_too():
    parents = Parents({"lynx": "cat", "puma": "cat"}, ["lynx", "cat", "dog"])
    assert parents.names == [["lynx", "cat", "dog"], ["cat"]]
    assert parents.lineage.tolist() == [[0, 0], [1, 0], [2, -1]]
    rollup = Rollup(parents, [0.8, 0.8], 0.9)
    found = rollup.answers(
        torch.tensor([[0.5, 0.4, 0.1], [0.05, 0.9, 0.05]]), torch.zeros(2, dtype=torch.bool)
    )
    assert [(each.answer, each.level) for each in found] == [("cat", "1"), ("cat", "class")]


def test_misspelt_names_get_a_hint(tmp_path, capsys):
    _, said = heard(capsys, table(tmp_path, {"ant": "insect", "bee": "insect", "catt": "mammal"}))
    assert "'catt' is no class of the run; did you mean 'cat', which has no parent?" in said
    _, said = heard(capsys, table(tmp_path, {"ant": "insect", "bee": "insect", "insects": "animal"}))
    assert "did you mean 'insect'" in said
    _, said = heard(capsys, table(tmp_path, ABOVE | {"wasp": "insect"}))
    assert "wasp" not in said  # the truth of open images, maybe
    with pytest.raises(UserError, match="none of the run's classes"):
        read_parents(table(tmp_path, {"Ant": "insect"}), NAMES)


def test_answers_in_words():
    parents = Parents(ABOVE, NAMES)
    probabilities = torch.tensor(
        [[0.9, 0.05, 0.0, 0.05], [0.5, 0.45, 0.0, 0.05], [0.4, 0.2, 0.3, 0.1], [0.1, 0.1, 0.1, 0.7]]
    )
    rejected = torch.tensor([False, False, False, True])
    found = Rollup(parents, [0.7, 0.8, 0.85], 0.9).answers(probabilities, rejected)
    assert [(each.answer, each.level) for each in found] == [
        ("ant", "class"),
        ("insect", "1"),
        ("animal", "2"),
        ("unknown", "unknown"),
    ]
    assert [each.probability for each in found] == [*map(pytest.approx, (0.9, 0.95, 0.9)), None]
    assert Rollup(parents, [0.5, 0.8, 0.25], 0.9).answers(probabilities, rejected)[3].answer == "animal"


def test_the_promise_is_about_validation_images_under_the_rule(run):
    parents = Parents(ABOVE, NAMES)
    rollup = fit_rollup(run, parents, 0.8)
    val = run.outputs["val"]
    rejected = run.rule.rejects(run.scored("val").values)
    assert rejected.any()
    found = rollup.roll_up(calibrated(run, val), rejected)
    assert not (found.levels[rejected] == 0).any()
    for level in range(3):
        here = found.levels == level
        if here.any():
            right = (found.groups == parents.lineage[val.labels, level])[here].double().mean()
            assert right >= 0.75  # a few answers may be wrong where their probabilities speak for them
    assert (found.levels == 0).sum() > 40


def test_the_report_counts_as_a_loop_does(run):
    parents = Parents(ABOVE, NAMES)
    rollup = Rollup(parents, [0.8, 0.75, 0.9], 0.9)
    measured = measure_levels(run, rollup)
    assert [each.level for each in measured.levels] == ["class", "1", "2", "unknown"]
    above = {name: [name, ABOVE.get(name), ABOVE.get(ABOVE.get(name, ""))] for name in [*NAMES, "new 0"]}
    for split, truths in {
        "test": [NAMES[label] for label in run.outputs["test"].labels],
        "open": run.manifest.rows("open")["label"].tolist(),
    }.items():
        rejected = run.rule.rejects(run.scored(split).values)
        answers = rollup.answers(calibrated(run, run.outputs[split]), rejected)
        assert {each.level for each in answers} == {"class", "1", "2", "unknown"}
        for level in measured.levels:
            mine = [(a.answer, t) for a, t in zip(answers, truths, strict=True) if a.level == level.level]
            hits = [answer in above[truth] for answer, truth in mine if truth in above]
            given = getattr(level, split)
            assert given.images == len(mine) and given.share == len(mine) / len(truths)
            if level.level == "unknown" or not hits:
                assert given.right is None
            else:
                assert given.right == pytest.approx(sum(hits) / len(hits))
    assert measured.open_labelled == measured.open_within == truths.count("new 0") > 0
    right = sum(each.test.right * each.test.images for each in measured.levels[:-1])
    assert measured.right == pytest.approx(right / sum(each.test.images for each in measured.levels[:-1]))


def test_accuracy_of_a_level_is_that_of_its_likeliest_group(run):
    measured = measure_levels(run, Rollup(Parents(ABOVE, NAMES), [math.inf] * 3, 0.9))
    test = run.outputs["test"]
    probabilities = calibrated(run, test)
    assert measured.levels[0].accuracy == pytest.approx(
        float((probabilities.argmax(1) == test.labels).double().mean())
    )
    insects, known = probabilities[:, :2].sum(1) > probabilities[:, 2], test.labels < 3  # a dog has no parent
    assert measured.levels[1].accuracy == pytest.approx(
        float((insects == (test.labels < 2))[known].double().mean())
    )
    assert measured.levels[0].threshold is None and measured.right is None
    assert measured.levels[-1].test.share == 1


def test_the_report_goes_to_json_and_back(run, tmp_path):
    recognizer = Recognizer.load(run.path, verbose=False)
    report = recognizer.evaluate(parents=table(tmp_path), precision=0.8)
    assert report.parents is not None and report.parents.precision == 0.8
    assert Report.from_dict(json.loads(report.to_json())).parents == report.parents
    assert "parents" not in recognizer.evaluate() and "parents" not in Report.load(run.folder.report)
    assert "insect" not in report.parents.table().text()
    assert report.parents.table().text().splitlines()[5].startswith("class")


def test_open_images_whose_data_are_gone_have_no_truth(made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "run")
    facts = (folder / "run.yaml").read_text()
    (folder / "run.yaml").write_text(facts.replace("made.pack", "gone.pack"))
    with console.silent():
        measured = measure_levels(run := TrainedRun(folder), fit_rollup(run, Parents(ABOVE, NAMES), 0.8))
    assert measured.levels[0].open.images > 0 and measured.levels[0].open.right is None
    assert measured.open_labelled == 0


def test_no_validation_images(made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "run")
    (folder / "outputs" / "val.safetensors").unlink()
    with pytest.raises(UserError, match="no validation images"):
        fit_rollup(TrainedRun(folder), Parents(ABOVE, NAMES))


def test_validation_images_of_no_class_are_left_out(run):
    val = run.outputs["val"]
    parents = Parents(ABOVE, NAMES)
    before = fit_rollup(run, parents, 0.8).thresholds
    extra = val.logits[:5].clone()
    run._outputs["own "].made["val"] = type(val)(
        torch.cat([val.logits, extra]),
        torch.cat([val.labels, torch.full((5,), OPEN)]),
        torch.cat([val.features, val.features[:5]]),
    )
    run._scored.clear()
    assert fit_rollup(run, parents, 0.8).thresholds == before


def test_without_open_images(tmp_path):
    run = TrainedRun(made_run(tmp_path / "run", made_pack(tmp_path, unseen=0)))
    measured = measure_levels(run, Rollup(Parents(ABOVE, NAMES), [0.8, 0.75, 0.9], 0.9))
    assert all(each.open is None for each in measured.levels) and measured.open_labelled == 0
    assert "open images" not in measured.table().text()
