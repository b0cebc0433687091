"""The page's first sentences: numbers by hand, and honest words for bad runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.evaluation.evaluate import evaluate
from oltr.evaluation.outputs import Outputs
from oltr.openset import SCORES
from oltr.report.loaded_run import LoadedRun
from oltr.report.page.load import PageRun
from oltr.report.page.verdict import caught_at, caught_at_rate, verdict


def outputs(labels, predictions, sure):
    """Logits that give each image its prediction, with a margin."""
    logits = torch.zeros(len(labels), 4)
    logits[torch.arange(len(labels)), torch.tensor(predictions)] = torch.tensor(sure, dtype=torch.float32)
    return Outputs(logits, torch.tensor(labels), torch.zeros(len(labels), 1))


def page_run(splits, name="run", counts=(200, 50, 50, 3), **choice):
    score, names = SCORES["max-logit"], ["a", "b", "c", "d"]
    report = evaluate(splits, names, counts, method="plain", backbone="net", score=score, **choice)
    threshold = report["open"]["threshold"] if "open" in report else None
    loaded = LoadedRun(
        name, Path(name), "plain", names, np.array(counts), "standard", splits, score, threshold, splits,
        UserError("gone"),
    )  # fmt: skip
    return PageRun(loaded, report, {}, Path(name))


# Right: a, b, c; wrong: d (few-shot). Margins 1 to 4; open images 0.5, 1.5, 5, 6.
KNOWN = outputs([0, 1, 2, 3], [0, 1, 2, 0], [1, 2, 3, 4])
UNSEEN = outputs([-1] * 4, [0, 1, 2, 3], [0.5, 1.5, 5, 6])
KNOWN_AS_OPEN = outputs([-1] * 4, [0, 1, 2, 3], [1, 2, 3, 4])
VALIDATION = outputs([0, 1, 2, 3] * 5, [0] * 20, [float(n) for n in range(1, 21)])


def test_shares_by_hand():
    run = page_run({"test": KNOWN, "open": UNSEEN, "val": VALIDATION}, threshold=2.5)
    own, careful = caught_at(run, 2.5), caught_at_rate(run)
    assert (own.unknown, own.false_alarms) == (0.5, 0.5)  # 0.5 and 1.5 of the open; 1 and 2 of the known
    # One of twenty validation images may be called unknown: the threshold is 2, below it lie 1 and 0.5, 1.5.
    assert (careful.unknown, careful.false_alarms) == (0.5, 0.25)
    said = verdict([run])
    assert said.headline == (
        "run names 75.0 % of the known images rightly, 0.0 % on few-shot classes, and catches 50.0 % of the "
        "unknown ones at 50.0 % false alarms."
    )
    assert any("catches 50.0 % of the unknown ones at 25.0 % false alarms" in line for line in said.more)
    assert any("the tail is lost" in line for line in said.more)
    assert {name: value for name, value, _ in said.numbers} == {
        "overall": "75.0 %", "many-shot": "100.0 %", "medium-shot": "100.0 %", "few-shot": "0.0 %",
        "unknown caught": "50.0 %", "false alarms": "50.0 %",
    }  # fmt: skip


def test_a_threshold_that_rejects_nothing():
    run = page_run({"test": KNOWN, "open": UNSEEN, "val": VALIDATION}, threshold=-1.0)
    said = verdict([run])
    assert said.headline.endswith("and can catch 50.0 % of the unknown ones at 25.0 % false alarms.")
    assert "threshold -1) catches 0.0 %" in said.more[0] and "almost nothing" in said.more[0]
    blind = verdict([page_run({"test": KNOWN, "open": UNSEEN}, threshold=-1.0)])
    assert blind.headline.endswith("and catches 0.0 % of the unknown ones at 0.0 % false alarms.")
    assert any("almost nothing" in line for line in blind.more)


def test_near_chance_and_no_better_than_a_coin():
    bad = outputs([0, 1, 2, 3], [0, 0, 0, 0], [1, 2, 3, 4])
    said = verdict([page_run({"test": bad, "open": KNOWN_AS_OPEN}, threshold=2.5)])
    assert any("near chance: guessing among 4 classes gives 25.0 %" in line for line in said.more)
    assert any("AUROC 0.50; a coin has 0.50" in line for line in said.more)


def test_without_open_images():
    said = verdict([page_run({"test": KNOWN})])
    assert said.headline.endswith("on few-shot classes; it was not tested on unknown classes.")
    assert any("no open images" in line for line in said.more)
    assert "unknown caught" not in [name for name, _, _ in said.numbers]
    assert caught_at(page_run({"test": KNOWN}), 0.5) is None


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((200, 50, 50, 30), "with no few-shot class among its 4 classes"),
        ((200, 50, 50, 3), "0.0 % on few-shot classes"),
    ],
)
def test_few_shot_classes_there_or_not(counts, words):
    assert words in verdict([page_run({"test": KNOWN}, counts=counts)]).headline


def test_the_best_of_several_and_who_is_better_at_something():
    tail = outputs([0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 3, 4])
    best = page_run({"test": KNOWN, "open": UNSEEN}, "best", threshold=2.5)
    other = page_run({"test": tail, "open": outputs([-1], [0], [0.1])}, "other", threshold=2.5)
    said = verdict([other, best])
    assert said.headline.startswith("best, the best of 2 runs, names 75.0 %")
    assert "other is better on few-shot classes: 100.0 %." in said.more
    # Of the sixteen pairs of `best`, the open image is the less familiar one in four (0.5) and three (1.5).
    assert "other tells known from unknown images better: AUROC 1.00 against 0.44." in said.more
