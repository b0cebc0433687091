"""The range loss: shorten the largest distances within each class, separate the two nearest classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oltr.losses.whole_batch import whole_batch
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
    # A class's largest are among the largest of its rows; they are collected in the row of its first image.
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


class RangeLoss(nn.Module):
    """α · ranges within classes + β · margin between classes, on features B×D.

    `largest` is the number of distances per class, `margin` the squared distance at which the nearest two
    class means are far enough apart.
    """

    def __init__(
        self,
        within_weight: float = 5e-5,
        between_weight: float = 1e-4,
        largest: int = 2,
        margin: float = 100.0,
    ):
        super().__init__()
        self.within_weight, self.between_weight = within_weight, between_weight
        self.largest, self.margin = largest, margin

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        terms = self.terms(features, labels)
        return terms["within"] + terms["between"]

    def terms(self, features: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Both parts, weighted."""
        features, labels = whole_batch(features, labels)
        return {
            "within": self.within_weight * within_classes(features, labels, largest=self.largest),
            "between": self.between_weight * between_classes(features, labels, margin=self.margin),
        }
