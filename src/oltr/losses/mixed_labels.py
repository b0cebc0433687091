"""The labels of images that were mixed of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class MixedLabels(NamedTuple):
    """Both labels of each image and how much of it is the first's, λ; B each."""

    first: Tensor
    second: Tensor
    share: Tensor  # λ; 1: the image is not mixed
    drawn: Tensor  # one of both labels, the first with chance λ

    def mean(self, losses: Callable[[Tensor], Tensor]) -> Tensor:
        """Mean over the batch of λ·ℓ(first) + (1 − λ)·ℓ(second), where `losses` gives ℓ of labels: B → B."""
        return torch.lerp(losses(self.second), losses(self.first), self.share).mean()

    @property
    def larger(self) -> Tensor:
        """The label of the larger share."""
        return torch.where(self.share >= 0.5, self.first, self.second)
