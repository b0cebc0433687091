"""Mistakes, against loops and by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.metrics.shots import shot_groups
from oltr.openset import RejectionRule
from oltr.report.page.mistakes import (
    confident_mistakes,
    confused_pairs,
    open_taken_for_tail,
    tail_taken_for_open,
)
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import MadeUpRun
from tests.helpers.separable import outputs, separable, strangers

COUNTS = [500, 300, 50, 40, 9, 5]
GROUPS, TAIL = shot_groups(COUNTS), np.array(["few", "few"])


@pytest.fixture(scope="module")
def made():
    splits = {"test": separable([20] * 6, seed=0, height=1.5), "open": strangers(60, 6, seed=1)}
    return MadeUpRun(splits, COUNTS, 0.45).decisions


def test_pairs_equal_a_loop(made):
    seen = Counter(
        (label, prediction)
        for label, prediction in zip(made.labels.tolist(), made.predictions.tolist(), strict=True)
        if label != -1 and prediction not in (-1, label)
    )
    slow = sorted(seen.items(), key=lambda entry: (-entry[1], entry[0]))
    pairs = confused_pairs(made, most=1000)
    found = zip(zip(pairs.labels, pairs.predictions, strict=True), pairs.images, strict=True)
    assert list(found) == slow and len(slow) > 5
    assert pairs.of.tolist() == [20] * len(slow)
    assert confused_pairs(made, most=3).images.tolist() == [images for _, images in slow[:3]]


@pytest.mark.parametrize(
    ("find", "split", "wrong", "most_first"),
    [
        (lambda d: confident_mistakes(d, 1000), "test", lambda t, p: t != -1 and p not in (t, -1), True),
        (lambda d: tail_taken_for_open(d, GROUPS, most=1000), "test", lambda t, p: t > 3 and p == -1, False),
        (lambda d: open_taken_for_tail(d, GROUPS, most=1000), "open", lambda t, p: t == -1 and p > 3, True),
    ],
)
def test_images_equal_a_loop(made, find, split, wrong, most_first):
    slow = []
    for number in range(len(made.labels)):
        label, prediction = int(made.labels[number]), int(made.predictions[number])
        if wrong(label, prediction):
            row = number - made.test_images if split == "open" else number
            slow.append((float(made.confidence[number]), row, label, prediction))
    slow.sort(key=lambda entry: entry[0], reverse=most_first)
    found = find(made)
    columns = (found.confidence, found.rows, found.labels, found.predictions)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == slow
    assert len(slow) > 3 and found.split == split


def test_another_score_orders_by_itself():
    logits = torch.tensor([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    far = torch.tensor([7.0, 9.0, 8.0])
    test = Outputs(logits, torch.zeros(3), torch.zeros(3, 2), reachability=far)
    unseen = Outputs(logits, torch.full((3,), -1), torch.zeros(3, 2), reachability=far)
    run = MadeUpRun({"test": test, "open": unseen}, [5, 5], RejectionRule("reachability", 5.0))
    assert tail_taken_for_open(run.decisions, TAIL).rows.tolist() == [1, 2, 0]
    lax = run.under(RejectionRule("reachability", 10.0)).decisions
    assert open_taken_for_tail(lax, TAIL).rows.tolist() == [0, 2, 1]
    assert open_taken_for_tail(lax, TAIL, most=1).values.tolist() == [7.0]
    assert confident_mistakes(lax).rows.tolist() == [2, 1, 0]


def test_equal_images_come_in_the_order_of_their_rows():
    same = MadeUpRun({"test": outputs(torch.tensor([[0.0, 1.0]]).repeat(50, 1))}, [5, 5]).decisions
    assert confident_mistakes(same, most=50).rows.tolist() == list(range(50))


def test_no_mistakes_and_no_open_images():
    right = MadeUpRun({"test": outputs(torch.zeros(1, 1))}, [5]).decisions  # one image of one class
    assert confused_pairs(right).labels.tolist() == []
    found = [
        confident_mistakes(right),
        tail_taken_for_open(right, TAIL[:1]),
        open_taken_for_tail(right, TAIL[:1]),
    ]
    assert all(mistakes.rows.tolist() == [] for mistakes in found)


def test_what_is_refused(made):
    with pytest.raises(UserError, match="At least one mistake"):
        confused_pairs(made, most=0)
