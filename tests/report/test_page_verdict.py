"""The page's first sentences: numbers by hand, and honest words for bad runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from oltr.report.loaded_run import LoadedRun
from oltr.report.page.caught import Caught, report_rule, validation_rule
from oltr.report.page.load import PageRun

from oltr.errors import UserError
from oltr.openset import SCORES
from oltr.report.page.verdict import near_chance, verdict
from oltr.runs.evaluate import evaluate
from oltr.runs.outputs import Outputs


def outputs(labels, predictions, sure):
    """Logits that give each image its prediction, with a margin."""
    logits = torch.zeros(len(labels), 4)
    logits[torch.arange(len(labels)), torch.tensor(predictions)] = torch.tensor(sure, dtype=torch.float32)
    return Outputs(logits, torch.tensor(labels), torch.zeros(len(labels), 1))


def page_run(splits, name="run", counts=(200, 50, 50, 3), data="one", decision=None, **choice):
    score, names = SCORES["max-logit"], ["a", "b", "c", "d"]
    report = evaluate(splits, names, counts, method="plain", backbone="net", score=score, **choice)
    threshold = report["open"]["threshold"] if "open" in report else None
    loaded = LoadedRun(
        name, Path(name), "plain", names, np.array(counts), "standard", splits, score, threshold, splits,
        UserError("gone"),
    )  # fmt: skip
    facts = {"data": {"fingerprint": data}, "decision": decision or {"score": "max-logit"}}
    return PageRun(loaded, report, report, facts, Path(name))


# Right: a, b, c; wrong: d (few-shot). Margins 1 to 4; open images 0.5, 1.5, 5, 6.
KNOWN = outputs([0, 1, 2, 3], [0, 1, 2, 0], [1, 2, 3, 4])
UNSEEN = outputs([-1] * 4, [0, 1, 2, 3], [0.5, 1.5, 5, 6])
KNOWN_AS_OPEN = outputs([-1] * 4, [0, 1, 2, 3], [1, 2, 3, 4])
VALIDATION = outputs([0, 1, 2, 3] * 5, [0] * 20, [float(n) for n in range(1, 21)])


def test_shares_by_hand():
    run = page_run({"test": KNOWN, "open": UNSEEN, "val": VALIDATION}, threshold=2.5)
    own, careful = report_rule(run), validation_rule(run)
    assert own.caught == Caught(0.5, 0.5)  # 0.5 and 1.5 of the open; 1 and 2 of the known
    # One of twenty validation images may be called unknown: the threshold is 2, below it lie 1 and 0.5, 1.5.
    assert (careful.threshold, careful.caught) == (2.0, Caught(0.5, 0.25))
    said = verdict([run])
    assert said.headline == (
        "run reaches 75.0 % on known classes, mean over classes, and 0.0 % on few-shot ones; it catches "
        "50.0 % of the unknown images at 50.0 % false alarms."
    )
    assert said.more[:2] == (
        "That is by the threshold of its report.json (max-logit score, threshold 2.5).",
        "With the threshold at which at most 5 % of the known validation images are called unknown, the one "
        "that predict and explain use, it catches 50.0 % of the unknown images at 25.0 % false alarms.",
    )
    assert any("the tail is lost" in line for line in said.more)
    assert {name: value for name, value, _ in said.numbers} == {
        "overall": "75.0 %", "many-shot": "100.0 %", "medium-shot": "100.0 %", "few-shot": "0.0 %",
        "unknown caught": "50.0 %", "false alarms": "50.0 %",
    }  # fmt: skip


def tiles(said):
    return {name: (value, note) for name, value, note in said.numbers}


def test_tiles_tell_classes_that_are_in_no_mean():
    some = outputs([0, 1, 3], [0, 1, 3], [1, 2, 3])
    notes = {name: note for name, (_, note) in tiles(verdict([page_run({"test": some})])).items()}
    assert notes["medium-shot"] == "2 classes, 1 without test images"
    assert (notes["many-shot"], notes["few-shot"]) == ("1 class", "1 class")


def test_a_threshold_that_rejects_nothing():
    run = page_run({"test": KNOWN, "open": UNSEEN, "val": VALIDATION}, threshold=-1.0)
    said = verdict([run])
    assert said.headline.endswith("it can catch 50.0 % of the unknown images at 25.0 % false alarms.")
    assert "threshold -1) catches 0.0 %" in said.more[0] and "it rejects almost nothing" in said.more[0]
    rule = "max-logit score, threshold 2 (at most 5 % of validation)"
    assert tiles(said)["unknown caught"] == ("50.0 %", rule)
    assert tiles(said)["false alarms"][0] == "25.0 %"
    blind = verdict([page_run({"test": KNOWN, "open": UNSEEN}, threshold=-1.0)])
    assert blind.headline.endswith("it catches 0.0 % of the unknown images at 0.0 % false alarms.")
    assert "which rejects almost nothing" in blind.more[0]
    assert tiles(blind)["unknown caught"] == ("0.0 %", "max-logit score, threshold -1 (report.json)")


def test_a_threshold_that_calls_most_known_images_unknown():
    run = page_run({"test": KNOWN, "open": UNSEEN, "val": VALIDATION}, threshold=3.5)
    said = verdict([run])
    assert said.headline.endswith("it can catch 50.0 % of the unknown images at 25.0 % false alarms.")
    assert "at 75.0 % false alarms: it calls most known images unknown." in said.more[0]
    alone = verdict([page_run({"test": KNOWN, "open": UNSEEN}, threshold=3.5)])
    assert alone.headline.endswith("at 75.0 % false alarms.")
    assert "which calls most known images unknown" in alone.more[0]


def test_a_careful_threshold_that_catches_nothing_is_not_offered():
    far = outputs([-1] * 4, [0, 1, 2, 3], [5, 6, 7, 8])
    for threshold in (-1.0, 6.5):
        said = verdict([page_run({"test": KNOWN, "open": far, "val": VALIDATION}, threshold=threshold)])
        assert "can catch" not in said.headline and not any("validation" in line for line in said.more)


@pytest.mark.parametrize(
    ("decision", "rate", "used"),
    [
        ({"score": "max-logit"}, "5 %", True),
        ({"score": "max-logit", "unknown_rate": 0.2}, "20 %", True),
        ({"score": "max-logit", "unknown_rate": None}, "5 %", False),
        ({"score": "softmax", "unknown_rate": 0.05}, "5 %", False),
        ({"score": None, "unknown_rate": 0.05}, "5 %", False),  # the method's own is softmax
    ],
)
def test_the_threshold_of_predictions_is_named_where_it_is_that(decision, rate, used):
    run = page_run({"test": KNOWN, "open": UNSEEN, "val": VALIDATION}, decision=decision, threshold=2.5)
    words = validation_rule(run).words
    assert f"at which at most {rate} of the known validation images" in words
    assert words.endswith("predict and explain use") == used


def test_the_same_threshold_is_told_once():
    run = page_run({"test": KNOWN, "open": UNSEEN, "val": VALIDATION}, unknown_rate=0.05)
    assert not any("validation" in line for line in verdict([run]).more)


def test_a_mean_over_classes_is_not_a_share_of_images():
    labels = [0] * 96 + [1, 2, 3] * 2
    deer = outputs(labels, [0] * len(labels), [1.0] * len(labels))
    said = verdict([page_run({"test": deer})])
    assert said.headline.startswith(
        "run reaches 25.0 % on known classes, mean over classes, and 0.0 % on few"
    )
    assert said.more[0] == (
        "Its test images are spread unevenly over the classes: of the 102 images themselves it names 94.1 % "
        "rightly."
    )
    assert not any("unevenly" in line for line in verdict([page_run({"test": KNOWN})]).more)


@pytest.mark.parametrize(
    ("classes", "near", "far"),
    [(2, 0.54, 0.97), (3, 0.39, 0.45), (10, 0.15, 0.25), (100, 0.015, 0.025), (8000, 1.5 / 8000, 3 / 8000)],
)
def test_near_chance_by_the_number_of_classes(classes, near, far):
    assert near_chance(near, classes) and near_chance(1 / classes, classes)
    assert not near_chance(far, classes)


def test_near_chance_and_no_better_than_a_coin():
    bad = outputs([0, 1, 2, 3], [0, 0, 0, 0], [1, 2, 3, 4])
    said = verdict([page_run({"test": bad, "open": KNOWN_AS_OPEN}, threshold=2.5)])
    assert any("near chance: guessing among 4 classes gives 25.0 %" in line for line in said.more)
    assert any("AUROC 0.50; a coin has 0.50" in line for line in said.more)


def test_without_open_images():
    said = verdict([page_run({"test": KNOWN})])
    assert said.headline.endswith("on few-shot ones; it was not tested on unknown classes.")
    assert any("no open images" in line for line in said.more)
    assert "unknown caught" not in [name for name, _, _ in said.numbers]
    assert report_rule(page_run({"test": KNOWN, "val": VALIDATION})) is None
    assert validation_rule(page_run({"test": KNOWN, "val": VALIDATION})) is None


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((200, 50, 50, 30), "with no few-shot class among its 4 classes"),
        ((200, 50, 50, 3), "0.0 % on few-shot ones"),
    ],
)
def test_few_shot_classes_there_or_not(counts, words):
    assert words in verdict([page_run({"test": KNOWN}, counts=counts)]).headline


def test_the_best_of_several_and_who_is_better_at_something():
    tail = outputs([0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 3, 4])
    best = page_run({"test": KNOWN, "open": UNSEEN}, "best", threshold=2.5)
    other = page_run({"test": tail, "open": outputs([-1], [0], [0.1])}, "other", threshold=2.5)
    said = verdict([other, best])
    assert said.headline.startswith("best, the best of 2 runs, reaches 75.0 %")
    assert "other is better on few-shot classes: 100.0 %." in said.more
    # Of the sixteen pairs of `best`, the open image is the less familiar one in four (0.5) and three (1.5).
    assert "other tells known from unknown images better: AUROC 1.00 against 0.44." in said.more


def test_equal_numbers_are_level():
    splits = {"test": KNOWN, "open": UNSEEN}
    runs = [page_run(splits, name, threshold=2.5) for name in "ab"]
    said = verdict(runs)
    assert said.headline.startswith("a, level with b, reaches 75.0 %")
    assert not any("better" in line for line in said.more)
    worse = outputs([0, 1, 2, 3], [0, 1, 1, 0], [1, 2, 3, 4])
    three = [*runs, page_run({"test": worse, "open": UNSEEN}, "c", threshold=2.5)]
    assert verdict(three).headline.startswith("a, level with b as the best of 3 runs, reaches")


def test_runs_on_other_data_are_not_ranked():
    tail = outputs([0, 1, 2, 3], [0, 0, 1, 3], [1, 2, 3, 4])
    best, other = page_run({"test": KNOWN}, "best"), page_run({"test": tail}, "other", data="two")
    said = verdict([other, best])
    assert said.headline.startswith("best reaches 75.0 %")
    assert not any("better" in line for line in said.more)  # though the other knows the tail
    third = page_run({"test": outputs([0, 1, 2, 3], [0, 1, 2, 3], [1] * 4)}, "third", data="two")
    said = verdict([best, other, third])
    assert said.headline.startswith("third, the best of 2 runs on the same data, reaches 100.0 %")
