"""Every class equally often, drawn with replacement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oltr.samplers.base import SAMPLERS, EpochSampler, by_class, generator


@SAMPLERS.register("balanced")
def balanced(labels: np.ndarray, length: int, key: Sequence[int], images_per_class: int = 1) -> np.ndarray:
    """A class at random, then one of its images at random, `length` times."""
    rng = generator(*key)
    order, starts, sizes = by_class(labels)
    drawn = rng.integers(len(sizes), size=length)
    return order[starts[drawn] + (rng.random(length) * sizes[drawn]).astype(np.int64)]


class BalancedSampler(EpochSampler):
    """A class at random, then one of its images at random."""

    def order(self, key: Sequence[int]) -> np.ndarray:
        return balanced(self.labels, self.length, key)
