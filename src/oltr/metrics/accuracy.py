"""Accuracy and F1 of each class, and their means over the shot groups."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from oltr.metrics.labels import OPEN
from oltr.metrics.shots import GROUPS


def tally(predictions: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Correct predictions and images of each class, two K int64 tensors; open images (-1) are left out."""
    known = labels != OPEN
    right = labels[known & (predictions == labels)]
    return torch.bincount(right, minlength=num_classes), torch.bincount(labels[known], minlength=num_classes)


def per_class_accuracy(predictions: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """correct_c / images_c for each class, N and N ints -> K float64; NaN for a class without images.

    >>> per_class_accuracy(torch.tensor([0, 1, -1, 1]), torch.tensor([0, 0, 1, 1]), 3).tolist()
    [0.5, 0.5, nan]
    """
    correct, total = tally(predictions, labels, num_classes)
    return correct.double() / total


def per_class_f1(predictions: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """2 TP / (2 TP + FP + FN) for each class over the known images, K float64; NaN where no images.

    >>> per_class_f1(torch.tensor([0, 1, 1, 1]), torch.tensor([0, 0, 1, 1]), 3).tolist()
    [0.6666666666666666, 0.8, nan]
    """
    correct, total = tally(predictions, labels, num_classes)
    named = predictions[(labels != OPEN) & (predictions != OPEN)]
    predicted = torch.bincount(named, minlength=num_classes)
    f1 = 2 * correct.double() / (predicted + total)
    return f1.masked_fill(total == 0, torch.nan)


def top_k_hits(logits: Tensor, labels: Tensor, k: int = 5) -> Tensor:
    """Which of N images have their label among the k largest logits, N×K and N → N bool.

    >>> top_k_hits(torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), torch.tensor([1, 2]), k=2).tolist()
    [True, False]
    """
    return (logits.topk(k, dim=1).indices == labels[:, None]).any(dim=1)


def mean(values: Tensor) -> float | None:
    """Mean over the values that are not NaN (classes with images); None when there are none."""
    present = values[~values.isnan()]
    return float(present.mean()) if len(present) else None


def group_means(values: Tensor, groups: np.ndarray) -> dict[str, float | None]:
    """Mean of K per-class values over the many-, medium- and few-shot classes and over all of them.

    >>> group_means(torch.tensor([1.0, 0.5, 0.0]), np.array(["many", "few", "few"]))
    {'many': 1.0, 'medium': None, 'few': 0.25, 'overall': 0.5}
    """
    means = {group: mean(values[torch.from_numpy(groups == group)]) for group in GROUPS}
    return {**means, "overall": mean(values)}
