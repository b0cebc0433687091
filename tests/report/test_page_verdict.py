"""The page's first sentences: numbers by hand, and honest words for bad runs."""

from __future__ import annotations

import pytest
import torch

from oltr.metrics import wilson_interval
from oltr.openset import RejectionRule
from oltr.report.page.runs import MeasuredRun
from oltr.report.page.verdict import caught_by, near_chance, verdict
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import MadeUpRun


def outputs(labels, predictions, sure):
    """Logits that give each image its prediction, with a margin."""
    logits = torch.zeros(len(labels), 4)
    logits[torch.arange(len(labels)), torch.tensor(predictions)] = torch.tensor(sure, dtype=torch.float32)
    return Outputs(logits, torch.tensor(labels), torch.zeros(len(labels), 1))


def measured(splits, name="run", counts=(200, 50, 50, 3), data="one", threshold=2.5, **more):
    rule = RejectionRule("max-logit", threshold, **more)
    run = MadeUpRun(splits, counts, rule, name, "plain", data)
    return MeasuredRun(run, run.measure())


# Right: a, b, c; wrong: d (few-shot). Margins 1 to 4; open images 0.5, 1.5, 5, 6.
KNOWN = outputs([0, 1, 2, 3], [0, 1, 2, 0], [1, 2, 3, 4])
UNSEEN = outputs([-1] * 4, [0, 1, 2, 3], [0.5, 1.5, 5, 6])
KNOWN_AS_OPEN = outputs([-1] * 4, [0, 1, 2, 3], [1, 2, 3, 4])


def test_shares_by_hand():
    run = measured({"test": KNOWN, "open": UNSEEN}, unknown_rate=0.05)
    assert (caught_by(run.run).unknown, caught_by(run.run).false_alarms) == (
        0.5,
        0.5,
    )  # 0.5 and 1.5 of the open; 1 and 2 of the known
    said = verdict([run])
    assert said.headline == (
        "Classifies 75 of 100 known images correctly; detects 50 of 100 unknown ones while rejecting "
        "50 of 100 known."
    )
    assert said.more[0] == (
        "An image is unknown when its max-logit score is below 2.5, which rejects at most 5 % of known "
        "validation images."
    )
    assert any("few-shot class is classified correctly" in line for line in said.alerts)
    assert {tile.title: tile.value for tile in said.numbers} == {
        "overall": "75.0 %", "many-shot": "100.0 %", "medium-shot": "100.0 %", "few-shot": "0.0 %",
        "unknown detected": "50.0 %", "known rejected": "50.0 %",
    }  # fmt: skip
    assert tiles(said)["unknown detected"][1] == "max-logit, threshold 2.5"


def tiles(said):
    return {tile.title: (tile.value, tile.note) for tile in said.numbers}


def test_tiles_have_half_of_their_interval():
    spreads = {
        tile.title: tile.spread for tile in verdict([measured({"test": KNOWN, "open": UNSEEN})]).numbers
    }
    half = 50 * (wilson_interval(2, 4)[1] - wilson_interval(2, 4)[0])
    assert spreads["unknown detected"] == spreads["known rejected"] == f"± {half:.1f}"
    assert spreads["overall"].startswith("± ")


@pytest.mark.parametrize(
    ("right", "words"),
    [(0, "0 of 100"), (1, "fewer than 1 of 100"), (999, "more than 99 of 100"), (1000, "100 of 100")],
)
def test_shares_that_are_only_nearly_none_or_all(right, words):
    labels = [0] * 1000 + [1] * 1000
    taken = [0 if place < right else 2 for place in range(1000)] + [
        1 if place < right else 2 for place in range(1000)
    ]
    said = verdict([measured({"test": outputs(labels, taken, [1.0] * 2000)})])
    assert said.headline == f"Classifies {words} known images correctly; not tested on unknown ones."


def test_tiles_tell_classes_that_are_in_no_mean():
    some = outputs([0, 1, 3], [0, 1, 3], [1, 2, 3])
    notes = {name: note for name, (_, note) in tiles(verdict([measured({"test": some})])).items()}
    assert notes["medium-shot"] == "2 classes, 1 without test images"
    assert (notes["many-shot"], notes["few-shot"]) == ("1 class", "1 class")


@pytest.mark.parametrize(
    ("threshold", "caught", "fault"),
    [
        (-1.0, "0 of 100 unknown ones while rejecting 0 of 100 known", "detects almost no unknown image"),
        (3.5, "50 of 100 unknown ones while rejecting 75 of 100 known", "rejects most known images"),
    ],
)
def test_a_rule_that_is_of_no_use(threshold, caught, fault):
    said = verdict([measured({"test": KNOWN, "open": UNSEEN}, threshold=threshold)])
    assert said.headline.endswith(f"detects {caught}.")
    rule = f"An image is unknown when its max-logit score is below {threshold:g}. That {fault}."
    assert said.alerts[-1] == rule and rule not in said.more


def test_a_rule_that_is_not_the_one_asked_for_says_why():
    said = verdict([measured({"test": KNOWN, "open": UNSEEN}, note="no validation images: it is 2.5")])
    assert said.more[1] == "No validation images: it is 2.5."


def test_a_mean_over_classes_is_not_a_share_of_images():
    labels = [0] * 96 + [1, 2, 3] * 2
    deer = outputs(labels, [0] * len(labels), [1.0] * len(labels))
    said = verdict([measured({"test": deer})])
    assert said.headline.startswith(
        "Classifies 25 of 100 known images correctly (mean over classes); not tested"
    )
    assert said.more[0] == (
        "Its test images are spread unevenly over the classes: of all 102 images it classifies 94.1 % "
        "correctly."
    )
    assert not any("unevenly" in line for line in verdict([measured({"test": KNOWN})]).more)


@pytest.mark.parametrize(
    ("classes", "near", "far"),
    [(2, 0.54, 0.97), (3, 0.39, 0.45), (10, 0.15, 0.25), (100, 0.015, 0.025), (8000, 1.5 / 8000, 3 / 8000)],
)
def test_near_chance_by_the_number_of_classes(classes, near, far):
    assert near_chance(near, classes) and near_chance(1 / classes, classes)
    assert not near_chance(far, classes)


def test_near_chance_and_no_better_than_a_coin():
    bad = outputs([0, 1, 2, 3], [0, 0, 0, 0], [1, 2, 3, 4])
    said = verdict([measured({"test": bad, "open": KNOWN_AS_OPEN})])
    assert any("near chance: guessing among 4 classes gives 25.0 %" in line for line in said.alerts)
    assert any("AUROC 0.50; chance is 0.50" in line for line in said.alerts)


def test_without_open_images():
    said = verdict([measured({"test": KNOWN})])
    assert said.headline == "Classifies 75 of 100 known images correctly; not tested on unknown ones."
    assert any("no open images" in line for line in said.more)
    assert "unknown detected" not in tiles(said)
    assert caught_by(measured({"test": KNOWN}).run) is None


@pytest.mark.parametrize(("counts", "there"), [((200, 50, 50, 30), False), ((200, 50, 50, 3), True)])
def test_few_shot_classes_there_or_not(counts, there):
    assert ("few-shot" in tiles(verdict([measured({"test": KNOWN}, counts=counts)]))) == there


def test_the_best_of_several_and_who_is_better_at_something():
    tail = outputs([0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 3, 4])
    best = measured({"test": KNOWN, "open": UNSEEN}, "best")
    other = measured({"test": tail, "open": outputs([-1], [0], [0.1])}, "other")
    said = verdict([other, best])
    assert said.headline.startswith("best, the best of 2 runs: classifies 75 of 100")
    assert "other is better on few-shot classes: 100.0 %." in said.more
    # Of the sixteen pairs of `best`, the open image is the less familiar one in four (0.5) and three (1.5).
    assert "other separates known from unknown images better: AUROC 1.00 against 0.44." in said.more


def test_equal_numbers_are_level():
    splits = {"test": KNOWN, "open": UNSEEN}
    runs = [measured(splits, name) for name in "ab"]
    said = verdict(runs)
    assert said.headline.startswith("a, level with b: classifies 75 of 100")
    assert not any("better" in line for line in said.more)
    worse = outputs([0, 1, 2, 3], [0, 1, 1, 0], [1, 2, 3, 4])
    three = [*runs, measured({"test": worse, "open": UNSEEN}, "c")]
    assert verdict(three).headline.startswith("a, level with b as the best of 3 runs: classifies")


def test_runs_on_other_data_are_not_ranked():
    tail = outputs([0, 1, 2, 3], [0, 0, 1, 3], [1, 2, 3, 4])
    best, other = measured({"test": KNOWN}, "best"), measured({"test": tail}, "other", data="two")
    said = verdict([other, best])
    assert said.headline.startswith("best: classifies 75 of 100")
    assert not any("better" in line for line in said.more)  # though the other knows the tail
    third = measured({"test": outputs([0, 1, 2, 3], [0, 1, 2, 3], [1] * 4)}, "third", data="two")
    said = verdict([best, other, third])
    assert said.headline.startswith("third, the best of 2 runs on the same data: classifies 100 of 100")
