"""A linear classifier fitted beside the cosines with a memory of class means."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from oltr.nn.fit_linear import fit_linear
from oltr.openset.parts import AT_A_TIME
from oltr.openset.whitened_cosine import Directions, cosines, learn_directions

FOLDS = 5


class BesideMemory(NamedTuple):
    """The weights of a `MemoryHead`, and the loss of the fit."""

    weight: Tensor  # K×D
    bias: Tensor  # K
    memory: Directions  # with a row for every class, zero where it has no image
    loss: float


def fit_beside_memory(
    features: Tensor, labels: Tensor, prior: Tensor, *, scale: float, decay: float, iterations: int
) -> BesideMemory:
    """W, b at the minimum of mean −log softmax(W v + b + s·c(v) + prior)[y] + decay/2 ‖W‖², and the memory.

    features N×D, labels N, prior K. c(v) are out-of-fold cosines: that of an image with a mean that contains
    it is far larger than that of a new image of its class, and would leave nothing for W to learn.
    """
    on_cpu = features.cpu(), labels.cpu()
    others = _with_single_images(other_folds(*on_cpu, len(prior)), on_cpu[1]).to(features)
    weight, bias, loss = fit_linear(
        features, labels, prior + scale * others, decay=decay, iterations=iterations
    )
    return BesideMemory(weight, bias, _every_class(*on_cpu, len(prior)), loss)


def other_folds(features: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """The cosine of each image with the class means of all folds but its own: N×D, N → N×K float64.

    Zero for a class with no image in the other folds.
    """
    fold, found = folds(labels), torch.zeros(len(labels), num_classes, dtype=torch.float64)
    for number in range(FOLDS):
        own = fold == number
        if not own.any() or own.all():
            continue
        memory = _every_class(features[~own], labels[~own], num_classes)
        found[own] = torch.cat([cosines(part.double(), memory) for part in features[own].split(AT_A_TIME)])
    return found


def _with_single_images(others: Tensor, labels: Tensor) -> Tensor:
    """The same, in place: the only image of a class gets the mean cosine of others with their own class.

    No other fold has its class. With a cosine of zero W would learn to stand in for the memory, and new
    images would have both.
    """
    rows = torch.arange(len(labels))
    alone = labels.bincount()[labels] == 1
    if alone.any() and not alone.all():
        others[rows[alone], labels[alone]] = others[rows[~alone], labels[~alone]].mean()
    return others


def folds(labels: Tensor) -> Tensor:
    """The fold of each image: a fifth of every class, neighbours together, as shots of one burst are."""
    order = labels.argsort(stable=True)
    counts = labels.bincount()
    starts = (counts.cumsum(0) - counts)[labels[order]]
    fold = torch.empty_like(labels)
    fold[order] = (torch.arange(len(labels)) - starts) * FOLDS // counts[labels[order]]
    return fold


def _every_class(features: Tensor, labels: Tensor, num_classes: int) -> Directions:
    learned = learn_directions(features, labels, num_classes)
    means = torch.zeros(num_classes, features.shape[1], dtype=torch.float64)
    means[labels.bincount(minlength=num_classes) > 0] = learned.means
    return learned._replace(means=means)
