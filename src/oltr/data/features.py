"""Features that stand for the images of a split, so that a frozen backbone sees each image once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from oltr.data.image_access import Images


@dataclass(frozen=True)
class Features(Images):
    """A split's features, N×R: batches are float B×R×1×1 instead of pixels."""

    values: Tensor = field(default_factory=lambda: torch.empty(0, 0))

    def batches(
        self, order: Sequence[np.ndarray] | np.ndarray, device: torch.device, workers: int
    ) -> Iterator[Tensor]:
        """The features of each index array in `order`."""
        for indices in order:
            rows = torch.from_numpy(np.asarray(indices)).to(self.values.device)
            yield self.values[rows].to(device, non_blocking=True)[:, :, None, None]


def as_features(labels: np.ndarray, values: Tensor) -> Features:
    """Images of those labels (n) as their features (n×R)."""
    return Features(1, labels, values=values, home="features")
