"""Accuracy by group against counts by hand, and the gap of chance against images dealt out at random."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.metrics import OPEN, difference_interval, group_accuracy, wilson_interval
from oltr.metrics.by_group import NONE


def some(seed: int = 0, images: int = 600, classes: int = 7) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Predictions right in 70 % of the images, a fifth of which are open; groups a to d and unnamed ones."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, images)
    guessed = np.where(random.random(images) < 0.7, labels, random.integers(0, classes, images))
    labels[random.random(images) < 0.2] = OPEN
    groups = random.choice(["a", "b", "c", "d", ""], images)
    return torch.from_numpy(guessed), torch.from_numpy(labels), groups


def test_every_number_of_a_group_by_hand():
    predictions, labels, groups = some()
    rejected = torch.from_numpy(np.random.default_rng(1).random(len(labels)) < 0.3)
    found = group_accuracy(predictions, labels, groups, rejected)
    everywhere = {
        k: np.mean([int(p) == k for p, y in zip(predictions, labels, strict=True) if y == k])
        for k in range(7)
    }
    assert {group.name for group in found.groups} == {"a", "b", "c", "d", NONE}
    for group in found.groups:
        name = "" if group.name == NONE else group.name
        rows = [row for row in range(len(groups)) if groups[row] == name]
        known = [row for row in rows if labels[row] != OPEN]
        unseen = [row for row in rows if labels[row] == OPEN]
        hits = [bool(predictions[row] == labels[row]) for row in known]
        by_class = {}
        for row, hit in zip(known, hits, strict=True):
            by_class.setdefault(int(labels[row]), []).append(hit)
        assert (group.images, group.open_images, group.classes) == (len(known), len(unseen), len(by_class))
        assert group.accuracy == pytest.approx(np.mean(hits))
        assert group.class_mean == pytest.approx(np.mean([np.mean(each) for each in by_class.values()]))
        assert group.expected == pytest.approx(np.mean([everywhere[int(labels[row])] for row in known]))
        assert group.rejected == pytest.approx(np.mean([bool(rejected[row]) for row in known]))
        assert group.unknown_recall == pytest.approx(np.mean([bool(rejected[row]) for row in unseen]))
        assert group.interval["accuracy"] == list(wilson_interval(sum(hits), len(hits)))
        low, high = group.interval["class_mean"]
        assert low < group.class_mean < high
    ordered = [group.accuracy for group in found.groups]
    assert ordered == sorted(ordered)
    assert (found.worst, found.best) == (found.groups[0].name, found.groups[-1].name)
    assert found.gap == pytest.approx(ordered[-1] - ordered[0])
    low, high = found.gap_interval
    assert low < found.gap < high
    assert found.overall.images == sum(group.images for group in found.groups)
    assert found.overall.expected == pytest.approx(found.overall.accuracy)


def test_rejected_images_are_those_predicted_unknown_unless_told():
    predictions, labels = torch.tensor([0, OPEN, 1, OPEN]), torch.tensor([0, 0, OPEN, OPEN])
    (group,) = group_accuracy(predictions, labels, ["x"] * 4).groups
    assert (group.accuracy, group.rejected, group.unknown_recall) == (0.5, 0.5, 0.5)


def test_groups_with_few_images_are_in_no_gap_unless_there_are_no_others():
    labels = torch.zeros(25, dtype=torch.int64)
    predictions = labels.clone()
    predictions[[0, 1, 2, 24]] = 1  # three of twelve, none of twelve, the one
    groups = ["a"] * 12 + ["b"] * 12 + ["tiny"]
    found = group_accuracy(predictions, labels, groups)
    assert [group.name for group in found.groups] == ["tiny", "a", "b"]
    assert (found.worst, found.best, found.gap) == ("a", "b", 0.25)
    small = group_accuracy(predictions, labels, groups, few=13)
    assert (small.worst, small.gap) == ("tiny", 1.0)
    alike = group_accuracy(labels, labels, groups)  # best and worst are two groups even then
    assert {alike.worst, alike.best} == {"a", "b"} and alike.gap == 0


def test_groups_without_known_images_come_last_and_one_group_has_no_gap():
    predictions, labels = torch.tensor([0, OPEN, 0]), torch.tensor([0, OPEN, OPEN])
    found = group_accuracy(predictions, labels, ["known", "open", "open"])
    assert [group.name for group in found.groups] == ["known", "open"]
    last = found.groups[1]
    assert last.accuracy is last.class_mean is last.expected is last.rejected is None
    assert last.interval["accuracy"] is None and last.unknown_recall == 0.5
    assert found.gap is found.worst is found.best is found.gap_interval is found.gap_by_chance is None
    nothing_known = group_accuracy(predictions[1:], labels[1:], ["x", "y"])
    assert nothing_known.overall.accuracy is None and nothing_known.gap is None


def test_the_gap_of_chance_is_that_of_images_dealt_out_within_classes():
    """Classes that are easy or hard, all of the hard ones in one group: no gap beyond the classes'."""
    random = np.random.default_rng(2)
    labels = np.repeat(np.arange(6), 60)
    right = random.random(len(labels)) < np.where(labels < 3, 0.95, 0.5)
    groups = np.where(labels < 3, random.choice(["a", "b"], len(labels)), "hard")
    predictions = torch.from_numpy(np.where(right, labels, (labels + 1) % 6))
    found = group_accuracy(predictions, torch.from_numpy(labels), groups)
    gaps = []
    for _ in range(2000):
        again = right.copy()
        for k in range(6):
            again[labels == k] = random.permutation(right[labels == k])
        gaps.append(np.ptp([again[groups == name].mean() for name in ("a", "b", "hard")]))
    assert found.worst == "hard" and found.gap > 0.3
    # Answers dealt out leave "hard" as it is; answers drawn anew do not, so that chance makes somewhat more.
    assert np.quantile(gaps, 0.95) < found.gap_by_chance < np.quantile(gaps, 0.95) + 0.12
    assert found.groups[0].expected == pytest.approx(found.groups[0].accuracy)


def test_random_groups_stay_within_chance_and_a_bad_one_does_not():
    def beyond(harm: float) -> int:
        times = 0
        for seed in range(20):
            predictions, labels, groups = some(seed)
            hurt = torch.from_numpy((groups == "c") & (np.random.default_rng(seed).random(600) < harm))
            found = group_accuracy(predictions.where(~hurt, 99), labels, groups)
            times += found.gap > found.gap_by_chance
        return times

    assert beyond(0.0) <= 4 and beyond(0.6) == 20


def test_the_difference_of_two_shares():
    """Newcombe, Statistics in Medicine 17 (1998), table II: 9/10 less 3/10, and 10/10 less 0/20."""
    assert difference_interval(9, 10, 3, 10) == pytest.approx((0.1705, 0.8090), abs=1e-4)
    assert difference_interval(10, 10, 0, 20) == pytest.approx((0.6791, 1.0), abs=1e-4)


def test_images_without_a_group_are_refused():
    with pytest.raises(ValueError, match="as many"):
        group_accuracy(torch.tensor([0]), torch.tensor([0]), ["a", "b"])
    with pytest.raises(ValueError, match="no images"):
        group_accuracy(torch.tensor([]), torch.tensor([]), [])
