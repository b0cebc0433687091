"""What a run makes of each image: the likeliest class, or unknown where its rule rejects it."""

from __future__ import annotations

import pytest
import torch

from oltr.errors import UserError
from oltr.metrics.fmeasure import f_measure
from oltr.openset import RejectionRule
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import MadeUpRun
from tests.helpers.separable import outputs, separable, strangers

TEST = outputs(torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]).log(), torch.tensor([0, 1, 0]))
UNSEEN = outputs(torch.tensor([[0.4, 0.6]]).log(), torch.tensor([-1]))


def decide(test, unseen=None, rule=0.1):
    return MadeUpRun({"test": test} | ({"open": unseen} if unseen else {}), [200, 3], rule).decisions


def test_by_hand():
    made = decide(TEST, UNSEEN, 0.6)
    assert made.labels.tolist() == [0, 1, 0, -1]
    assert made.likeliest.tolist() == [0, 0, 1, 1]
    assert made.confidence.tolist() == pytest.approx([0.9, 0.5, 0.8, 0.6])
    assert decide(TEST, UNSEEN, 0.7).predictions.tolist() == [0, -1, 1, -1]
    assert (made.test_images, made.num_classes) == (3, 2)


def test_without_open_images_the_rule_holds_all_the_same():
    assert decide(TEST).predictions.tolist() == [0, 0, 1]
    assert decide(TEST, rule=0.7).predictions.tolist() == [0, -1, 1]


def test_the_report_counts_the_same():
    splits = {"test": separable([9] * 4, seed=0, height=3.0), "open": strangers(30, 4, seed=1)}
    run = MadeUpRun(splits, [500, 50, 5, 4], 0.7)
    assert f_measure(run.decisions.predictions, run.decisions.labels) == run.measure().open.f_measure


def test_another_score_decides_and_the_probability_stays_the_confidence():
    near = Outputs(TEST.logits, TEST.labels, TEST.features, reachability=torch.tensor([1.0, 2.0, 3.0]))
    made = decide(near, rule=RejectionRule("reachability", 2.0))
    assert made.predictions.tolist() == [0, 0, -1]
    assert made.values.tolist() == [1, 2, 3]
    assert made.confidence.tolist() == pytest.approx([0.9, 0.5, 0.8])


def test_another_rule_makes_other_decisions():
    run = MadeUpRun({"test": TEST}, [200, 3], 0.1)
    assert run.decisions is run.decisions
    assert run.under(RejectionRule("softmax", 0.7)).decisions.predictions.tolist() == [0, -1, 1]
    assert run.decisions.predictions.tolist() == [0, 0, 1]


def test_what_cannot_be_decided():
    with pytest.raises(UserError, match="no test images"):
        decide(outputs(torch.zeros(0, 2)))
    with pytest.raises(UserError, match="NaN"):
        decide(outputs(torch.tensor([[0.0, torch.nan]])))
