"""The range loss: shorten the largest distances inside each class, part the two nearest classes."""

from __future__ import annotations

import torch
from torch import Tensor

from oltr.nn.class_rows import class_sums, first_of_class
from oltr.nn.memory import squared_distances

_NO_PAIR = -1.0  # below every squared distance
_LEAST = 1e-12  # squared distance that has a reciprocal


def within_classes(features: Tensor, labels: Tensor, *, largest: int) -> Tensor:
    """Σ over classes of k / Σ_{j ≤ k} 1/D_j, D_j the class's j-th largest ‖x_a − x_b‖²: B×D, B → a scalar.

    k is `largest`, or as many pairs as the class has; a class with one image adds nothing.
    """
    k = min(largest, len(labels))
    squares = squared_distances(features, features)
    pairs = (labels[:, None] == labels).triu(1)
    # The class's largest are among the largest of its rows, and stand in the row of its first image.
    of_image = squares.masked_fill(~pairs, _NO_PAIR).topk(k, dim=1).values
    members = first_of_class(labels)[:, :, None]
    of_class = torch.where(members, of_image, _NO_PAIR).flatten(1).topk(k, dim=1).values
    is_pair = of_class >= 0
    reciprocals = torch.where(is_pair, 1 / of_class.clamp(min=_LEAST), 0).sum(dim=1)
    return (is_pair.sum(dim=1) / reciprocals.masked_fill(~is_pair.any(dim=1), 1)).sum()


def between_classes(features: Tensor, labels: Tensor, *, margin: float) -> Tensor:
    """max(0, margin − D), D the least ‖x̄_p − x̄_q‖² of two class means: B×D, B → a scalar, 0 for one class."""
    members = first_of_class(labels)
    counts = members.sum(dim=1, keepdim=True)
    means = class_sums(features, labels) / counts.clamp(min=1)
    is_class = counts > 0
    apart = squared_distances(means, means).masked_fill(~(is_class & is_class.T).triu(1), torch.inf)
    return (margin - apart.amin()).clamp(min=0)
