"""Classes in turn, a few images of each at a time (Shen et al., ECCV 2016)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from oltr.samplers.base import SAMPLERS, EpochSampler, by_class


@SAMPLERS.register("class-aware")
def class_aware(
    labels: np.ndarray, length: int, rng: np.random.Generator, images_per_class: int = 1
) -> np.ndarray:
    """Shuffled rounds of the classes, `images_per_class` images at a time.

    No image comes again before all others of its class.
    """
    order, starts, sizes = by_class(labels)
    num_classes, visits = len(sizes), -(-length // images_per_class)
    rounds = -(-visits // num_classes)
    drawn = np.concatenate([rng.permutation(num_classes) for _ in range(rounds)])[:visits]
    wanted = np.bincount(drawn, minlength=num_classes) * images_per_class
    chains = [
        _chain(order[start : start + size], length, rng)
        for start, size, length in zip(starts, sizes, wanted, strict=True)
    ]
    # The chains are sorted by class; a stable sort of the visits by class says where each image goes.
    picked = np.empty((visits, images_per_class), dtype=np.int64)
    picked[np.argsort(drawn, kind="stable")] = np.concatenate(chains).reshape(visits, images_per_class)
    return picked.reshape(-1)[:length]


def _chain(images: np.ndarray, length: int, rng: np.random.Generator) -> np.ndarray:
    """`length` images of one class, shuffle after shuffle."""
    rounds = -(-length // len(images))
    return np.concatenate([rng.permutation(images) for _ in range(rounds)])[:length] if length else images[:0]


class ClassAwareSampler(EpochSampler):
    """Shuffled rounds of the classes, `images_per_class` images at a time."""

    def __init__(
        self,
        labels: Tensor | np.ndarray | Sequence[int],
        images_per_class: int = 4,
        length: int | None = None,
        seed: int = 0,
    ):
        super().__init__(labels, length, seed)
        self.images_per_class = images_per_class

    def order(self, rng: np.random.Generator) -> np.ndarray:
        return class_aware(self.labels, self.length, rng, self.images_per_class)
