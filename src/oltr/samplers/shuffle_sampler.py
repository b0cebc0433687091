"""Each image once per epoch."""

from __future__ import annotations

import numpy as np

from oltr.samplers.base import SAMPLERS, EpochSampler


@SAMPLERS.register("shuffle")
def shuffle(
    labels: np.ndarray, length: int, rng: np.random.Generator, images_per_class: int = 1
) -> np.ndarray:
    """Each image once, shuffled; the first `length` of them."""
    return rng.permutation(len(labels))[:length]


class ShuffleSampler(EpochSampler):
    """Each image once, shuffled: frequent classes come as often as they are."""

    def order(self, rng: np.random.Generator) -> np.ndarray:
        return shuffle(self.labels, self.length, rng)

    def __len__(self) -> int:
        return min(self.length, len(self.labels))
