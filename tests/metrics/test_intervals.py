"""Intervals against an image-by-image bootstrap and against formulas by hand."""

import time

import numpy as np
import pytest
import torch

from oltr.metrics import (
    auroc,
    auroc_interval,
    f_interval,
    f_measure,
    group_intervals,
    group_means,
    per_class_accuracy,
    shot_groups,
    wilson_interval,
)

COUNTS = [200, 200, 50, 50, 5, 5, 5]


def answers(per_class=(40, 30, 25, 12, 20, 15, 9), seed=0):
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(7), per_class)
    wrong = random.random(len(labels)) < 0.1 + 0.1 * labels
    return torch.from_numpy(np.where(wrong, (labels + 1) % 7, labels)), torch.from_numpy(labels)


def resampled(labels, times=1500):
    """Row numbers drawn again within each class, over and over."""
    random = np.random.default_rng(1)
    rows = [np.flatnonzero(labels.numpy() == label) for label in labels.unique().tolist()]
    for _ in range(times):
        yield torch.from_numpy(np.concatenate([random.choice(of, len(of)) for of in rows]))


def middle(values):
    return tuple(np.quantile(values, (0.025, 0.975)))


def test_group_means_as_by_resampling_images():
    predictions, labels = answers()
    groups = shot_groups(COUNTS)
    found = group_intervals(predictions, labels, groups)
    drawn = [
        group_means(per_class_accuracy(predictions[rows], labels[rows], 7), groups)
        for rows in resampled(labels)
    ]
    for group, interval in found.items():
        assert interval == pytest.approx(middle([each[group] for each in drawn]), abs=0.02)
    assert found == group_intervals(predictions, labels, groups)


def test_f_as_by_resampling_images():
    predictions, labels = answers()
    unseen = torch.arange(60) % 3 - 1  # a third is called unknown
    every = torch.cat([predictions.masked_fill(labels == 4, -1), unseen])
    truth = torch.cat([labels, torch.full((60,), -1)])
    drawn = [f_measure(every[rows], truth[rows]) for rows in resampled(truth)]
    assert f_interval(every, truth, 7) == pytest.approx(middle(drawn), abs=0.01)


def test_auroc_as_by_resampling_images():
    _, labels = answers()
    random = torch.Generator().manual_seed(0)
    known = (torch.randn(len(labels), generator=random) + 0.3 * labels).round(decimals=1)
    unknown = (torch.randn(80, generator=random) + 2).round(decimals=1)
    every, truth = torch.cat([known, unknown]), torch.cat([labels, torch.full((80,), 7)])
    drawn = [auroc(every[rows][: len(labels)], every[rows][len(labels) :]) for rows in resampled(truth)]
    found = auroc_interval(known, unknown, labels)
    assert found == pytest.approx(middle(drawn), abs=0.012)
    assert found[0] < auroc(known, unknown) < found[1]


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    groups, covered = shot_groups(COUNTS), 0
    truth = np.mean(0.9 - 0.1 * np.arange(7))
    for seed in range(200):
        low, high = group_intervals(*answers(seed=seed), groups)["overall"]
        covered += low <= truth <= high
    assert 0.9 <= covered / 200 <= 0.99


def test_classes_with_one_image_have_a_spread_together():
    labels = torch.arange(100)
    predictions = torch.where(labels % 4 == 0, 1, labels)
    low, high = group_intervals(predictions, labels, shot_groups([5] * 100))["overall"]
    share = float((predictions == labels).double().mean())
    error = 1.96 * (share * (1 - share) / 100) ** 0.5
    assert (low, high) == pytest.approx((share - error, share + error), abs=0.015)
    score = torch.arange(100.0)
    low, high = auroc_interval(score, score + 30, labels)
    assert 0.01 < high - low < 0.2


def test_what_is_not_tested_has_none_and_what_is_certain_is_tight():
    labels = torch.tensor([0, 0, 1, 1])
    found = group_intervals(labels, labels, shot_groups([200, 50, 3]))
    assert found == {"many": (1, 1), "medium": (1, 1), "few": None, "overall": (1, 1)}
    assert auroc_interval(torch.zeros(4), torch.ones(3), labels) == (1, 1)
    assert f_interval(torch.full((4,), -1), labels, 3) == (0, 0)


@pytest.mark.parametrize(("correct", "total"), [(0, 5), (5, 5), (3, 7), (90, 100)])
def test_wilson_bounds_are_where_the_share_is_just_acceptable(correct, total):
    for bound in wilson_interval(correct, total):
        if 0 < bound < 1:
            distance = abs(correct / total - bound) / (bound * (1 - bound) / total) ** 0.5
            assert distance == pytest.approx(1.96, abs=1e-3)
    low, high = wilson_interval(correct, total)
    assert 0 <= low <= correct / total <= high <= 1


def test_ten_thousand_images_of_a_hundred_classes_take_no_time():
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(10_000) % 100
    predictions = torch.where(torch.rand(10_000, generator=random) < 0.3, 0, labels)
    scores = torch.rand(10_000, generator=random)
    start = time.perf_counter()
    group_intervals(predictions, labels, shot_groups(list(range(100))))
    f_interval(predictions, labels, 100)
    auroc_interval(scores, scores, labels)
    assert time.perf_counter() - start < 1
