"""Each image once per epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oltr.samplers.base import SAMPLERS, EpochSampler, generator


@SAMPLERS.register("shuffle")
def shuffle(labels: np.ndarray, length: int, key: Sequence[int], images_per_class: int = 1) -> np.ndarray:
    """Each image once, shuffled; the first `length` of them."""
    return generator(*key).permutation(len(labels))[:length]


class ShuffleSampler(EpochSampler):
    """Each image once, shuffled: frequent classes come as often as they are."""

    def order(self, key: Sequence[int]) -> np.ndarray:
        return shuffle(self.labels, self.length, key)

    def __len__(self) -> int:
        return min(self.length, len(self.labels))
