"""The cosines of training images with a memory that they are no part of."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.openset.parts import by_parts
from oltr.openset.whitened_cosine import Directions, direction, learn_directions

FOLDS = 5


class OtherFolds:
    """cos(A(v − m), A(μ_k − m)) of each image, with m, A and μ_k of all folds but its own: rows → B×K.

    Zero for a class with no image in the other folds. The only image of a class would have no other: it gets
    the mean cosine of other images with their own class. With zero, a classifier fitted beside the cosines
    would learn to stand in for them, and new images would have both.

    All N×K cosines may not fit: unit features and unit means are kept (N×D, 5×K×D), and multiplied when
    asked.
    """

    def __init__(self, features: Tensor, labels: Tensor, num_classes: int):
        x, y = features.cpu(), labels.cpu()  # the memory is learned in float64
        fold, device = folds(y), features.device
        unit = torch.zeros_like(x)
        means = x.new_zeros(FOLDS, num_classes, x.shape[1])
        for number in range(FOLDS):
            own = fold == number
            if not own.any() or own.all():
                continue
            memory = every_class(x[~own], y[~own], num_classes)
            unit[own] = by_parts(partial(direction, learned=memory), x[own]).to(x)
            means[number] = F.normalize(memory.means, dim=1)
        self.labels, self.fold, self.alone = labels, fold.to(device), (y.bincount()[y] == 1).to(device)
        self.unit, self.means = unit.to(device), means.to(device)
        self.usual = self._usual()

    def __call__(self, rows: slice) -> Tensor:
        unit, fold, alone = self.unit[rows], self.fold[rows], self.alone[rows]
        found = unit.new_zeros(len(unit), self.means.shape[1])
        for number in range(FOLDS):
            own = fold == number
            found[own] = unit[own] @ self.means[number].T
        found[alone, self.labels[rows][alone]] = self.usual
        return found

    def _usual(self) -> Tensor:
        """The mean cosine of an image with its own class; zero where every class has one image."""
        others = ~self.alone
        if not others.any():
            return self.unit.new_zeros(())
        own_means = self.means[self.fold[others], self.labels[others]]
        return (self.unit[others] * own_means).sum(dim=1).mean()


def folds(labels: Tensor) -> Tensor:
    """The fold of each image: a fifth of every class, neighbours together, as shots of one burst are."""
    order = labels.argsort(stable=True)
    counts = labels.bincount()
    starts = (counts.cumsum(0) - counts)[labels[order]]
    fold = torch.empty_like(labels)
    fold[order] = (torch.arange(len(labels)) - starts) * FOLDS // counts[labels[order]]
    return fold


def every_class(features: Tensor, labels: Tensor, num_classes: int) -> Directions:
    """The memory of all classes, zero where one has no image: N×D, N → Directions with K means."""
    learned = learn_directions(features, labels, num_classes)
    means = torch.zeros(num_classes, features.shape[1], dtype=torch.float64)
    means[labels.bincount(minlength=num_classes) > 0] = learned.means
    return learned._replace(means=means)
