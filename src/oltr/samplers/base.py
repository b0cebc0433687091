"""What the samplers have in common: seeded random numbers, epochs, and labels grouped by class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler

from oltr.registry import Registry

# (labels, length, key, images_per_class) -> image numbers; the last number of the key is the epoch
SAMPLERS: Registry[Callable[..., np.ndarray]] = Registry("sampler")


def generator(*key: int) -> np.random.Generator:
    """Random numbers that depend on `key` alone, such as (seed, stage, epoch, step)."""
    # NumPy pads short keys with zeros: without its length, (1, 2, 3) would be the same as (1, 2, 3, 0).
    return np.random.default_rng(np.random.SeedSequence(entropy=(len(key), *map(int, key))))


class EpochSampler(Sampler[int]):
    """Image numbers of one epoch, a function of (seed, epoch); call `set_epoch` before each epoch.

    `labels` are the training set's (N integers), `length` the images per epoch (default: N).
    """

    def __init__(self, labels: Tensor | np.ndarray | Sequence[int], length: int | None = None, seed: int = 0):
        self.labels = torch.as_tensor(labels).cpu().numpy()
        self.length = len(self.labels) if length is None else length
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Draw the order of this epoch from now on."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        return iter(self.order((self.seed, self.epoch)).tolist())

    def order(self, key: Sequence[int]) -> np.ndarray:
        """`length` image numbers, drawn by `key`, whose last number is the epoch."""
        raise NotImplementedError


def by_class(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Image numbers sorted by class, where each class starts in them, and its size."""
    order = np.argsort(labels, kind="stable")
    _, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
    return order, starts, sizes
