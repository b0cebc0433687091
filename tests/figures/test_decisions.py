"""What is made of each image: the likeliest class, or unknown beyond the threshold."""

from __future__ import annotations

import pytest
import torch

from oltr.errors import UserError
from oltr.metrics.fmeasure import f_measure
from oltr.openset import SCORES
from oltr.runs.decisions import class_groups, decide
from oltr.runs.evaluate import evaluate
from oltr.runs.outputs import Outputs
from tests.helpers.separable import outputs, separable, strangers

TEST = outputs(torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]).log(), torch.tensor([0, 1, 0]))
UNSEEN = outputs(torch.tensor([[0.4, 0.6]]).log(), torch.tensor([-1]))


def test_by_hand():
    made = decide(TEST, UNSEEN, threshold=0.6)
    assert made.labels.tolist() == [0, 1, 0, -1]
    assert made.likeliest.tolist() == [0, 0, 1, 1]
    assert made.confidence.tolist() == pytest.approx([0.9, 0.5, 0.8, 0.6])
    assert decide(TEST, UNSEEN, threshold=0.7).predictions.tolist() == [0, -1, 1, -1]
    assert (made.test_images, made.num_classes) == (3, 2)


def test_without_a_threshold_nothing_is_unknown():
    assert decide(TEST, UNSEEN).predictions.tolist() == [0, 0, 1, 1]
    assert decide(TEST).predictions.tolist() == [0, 0, 1]


def test_the_report_counts_the_same():
    test, unseen = separable([9] * 4, seed=0, height=3.0), strangers(30, 4, seed=1)
    report = evaluate(
        {"test": test, "open": unseen}, list("abcd"), [500, 50, 5, 4], method="m", backbone="b", threshold=0.7
    )
    made = decide(test, unseen, threshold=0.7)
    assert f_measure(made.predictions, made.labels) == report["open"]["f_measure"]


def test_another_score_decides_and_the_probability_stays_the_confidence():
    near = Outputs(TEST.logits, TEST.labels, TEST.features, reachability=torch.tensor([1.0, 2.0, 3.0]))
    made = decide(near, score="reachability", threshold=2.0)
    assert made.predictions.tolist() == [0, 0, -1]
    assert made.values.tolist() == [1, 2, 3]
    assert made.confidence.tolist() == pytest.approx([0.9, 0.5, 0.8])


def test_the_score_may_read_other_outputs():
    other = outputs(TEST.logits.flip(0), TEST.labels)
    made = decide(TEST, score=SCORES["softmax"], threshold=0.85, read=[other])
    assert made.predictions.tolist() == [-1, -1, 1]
    with pytest.raises(UserError, match="not of the same images"):
        decide(TEST, UNSEEN, read=[other])
    with pytest.raises(UserError, match="that it has changed"):
        decide(TEST, score="odin")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([outputs(torch.zeros(0, 2))], "no images"),
        ([TEST, outputs(torch.zeros(1, 3), torch.tensor([-1]))], "different numbers of classes"),
        ([outputs(torch.tensor([[0.0, torch.nan]]))], "NaN"),
        ([UNSEEN], "mixed up"),
        ([TEST, TEST], "mixed up"),
    ],
)
def test_what_cannot_be_decided(parts, message):
    with pytest.raises(UserError, match=message):
        decide(*parts)


def test_groups_must_be_of_the_same_classes():
    assert class_groups(decide(TEST), [200, 3]).tolist() == ["many", "few"]
    with pytest.raises(UserError, match="3 training counts but 2 classes"):
        class_groups(decide(TEST), [200, 3, 3])
