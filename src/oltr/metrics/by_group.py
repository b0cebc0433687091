"""Accuracy by groups of images that are no classes (sites, cameras, women and men), and how they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from oltr.metrics.accuracy import mean, tally
from oltr.metrics.group_numbers import GroupAccuracy, GroupNumbers
from oltr.metrics.intervals import difference_interval, mean_interval, shares_that_spread, wilson_interval
from oltr.metrics.labels import OPEN

NONE = "(none)"  # images whose group is not told
ALL = "all"
FEW = 10  # images: a group with fewer is in no gap, for one image would be a gap of 100 %
DRAWS = 1000


def group_accuracy(
    predictions: Tensor,
    labels: Tensor,
    groups: Sequence[str] | np.ndarray,
    rejected: Tensor | None = None,
    few: int = FEW,
) -> GroupAccuracy:
    """Of N predicted classes, N labels (−1: open) and the N names of groups, an empty one being "(none)".

    `rejected` (N bool) tells which images are called unknown; without it, those predicted −1 (and wrong).

    >>> found = group_accuracy(torch.tensor([0, 1, 1, 1]), torch.tensor([0, 1, 0, 1]), ["a", "a", "b", "b"])
    >>> found.worst, found.gap, found.overall.accuracy
    ('b', 0.5, 0.75)
    """
    named = np.array([str(name) or NONE for name in groups], dtype=object)
    if not len(predictions) == len(labels) == len(named):
        raise ValueError("there must be as many predictions as labels and groups")
    if not len(named):
        raise ValueError("there are no images")
    if rejected is None:
        rejected = predictions == OPEN
    correct, total = tally(predictions, labels, int(labels.max()) + 1)
    shares = correct.double() / total
    names, place = np.unique(named, return_inverse=True)
    rows = np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])
    found = [
        _numbers(name, predictions[row], labels[row], rejected[row], shares)
        for name, row in zip(names.tolist(), map(torch.from_numpy, rows), strict=True)
    ]
    overall = _numbers(ALL, predictions, labels, rejected, shares)

    def chance(compared: set[str]) -> float:
        kept = np.array([name in compared for name in names])[place] & (labels != OPEN).numpy()
        return _gap_by_chance(correct.numpy(), total.numpy(), labels.numpy()[kept], place[kept])

    return with_gap(found, overall, chance, few)


def with_gap(
    groups: Sequence[GroupNumbers],
    overall: GroupNumbers,
    chance: Callable[[set[str]], float],
    few: int = FEW,
) -> GroupAccuracy:
    """The groups in order, with the gap between the best and the worst of those that are compared.

    Compared are those with `few` images, or all of them if not two have as many; `chance` tells what gap
    chance makes between these, by their names.
    """
    found = sorted(
        groups, key=lambda group: (2.0 if group.accuracy is None else group.accuracy, -group.images)
    )
    known = [group for group in found if group.images]
    large = [group for group in known if group.images >= few]
    compared = large if len(large) > 1 else known
    if len(compared) < 2:
        return GroupAccuracy(found, overall, None, None, None, None, None, few)
    worst, best = compared[0], max(compared[1:], key=lambda group: (group.accuracy or 0.0, group.images))
    assert worst.accuracy is not None and best.accuracy is not None
    gap, within = best.accuracy - worst.accuracy, difference_interval(*_share_of(best), *_share_of(worst))
    by_chance = chance({group.name for group in compared})
    return GroupAccuracy(found, overall, worst.name, best.name, gap, list(within), by_chance, few)


def _numbers(
    name: str, predictions: Tensor, labels: Tensor, rejected: Tensor, shares: Tensor
) -> GroupNumbers:
    """Of the images of one group; `shares` are the accuracies of the classes over all groups."""
    known = labels != OPEN
    right, images = (of.numpy() for of in tally(predictions, labels, len(shares)))
    present = images > 0
    accuracy, within = _share(int(right.sum()), int(images.sum()))
    turned_away, turned_within = _share(int(rejected[known].sum()), int(known.sum()))
    caught, caught_within = _share(int(rejected[~known].sum()), int((~known).sum()))
    spread = mean_interval(right, images)
    return GroupNumbers(
        name=name,
        images=int(known.sum()),
        classes=int(present.sum()),
        accuracy=accuracy,
        class_mean=mean(torch.from_numpy(right[present] / images[present])),
        expected=mean(shares[labels[known]]),
        rejected=turned_away,
        open_images=int((~known).sum()),
        unknown_recall=caught,
        interval={
            "accuracy": within,
            "class_mean": None if spread is None else list(spread),
            "rejected": turned_within,
            "unknown_recall": caught_within,
        },
    )


def _gap_by_chance(correct: np.ndarray, total: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> float:
    """The 95 % quantile of the gap if an image's group did not matter beside its class.

    The images of a group that have one class are right Binomial(images, the class's accuracy) times.
    """
    cells, images = np.unique(np.stack([groups, labels]), axis=1, return_counts=True)
    shares = shares_that_spread(correct, total)[cells[1]]
    starts = np.flatnonzero(np.diff(cells[0], prepend=-1))  # cells come by group
    sizes = np.add.reduceat(images, starts)
    draw = np.random.default_rng(0)  # the same images, the same number
    gaps = np.empty(DRAWS)
    for number in range(DRAWS):
        accuracy = np.add.reduceat(draw.binomial(images, shares), starts) / sizes
        gaps[number] = np.ptp(accuracy)
    return float(np.quantile(gaps, 0.95))


def _share_of(group: GroupNumbers) -> tuple[int, int]:
    return round((group.accuracy or 0.0) * group.images), group.images


def _share(part: int, of: int) -> tuple[float | None, list[float] | None]:
    return (part / of, list(wilson_interval(part, of))) if of else (None, None)
