"""Which images make up an epoch, each sampler a pure function of the epoch's seed.

Every process draws the same global order and takes its own part of each batch, so the result does not
depend on how many processes there are or on where a run was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oltr.registry import Registry

Sampler = Callable[..., np.ndarray]
SAMPLERS: Registry[Sampler] = Registry("sampler")


def generator(*key: int) -> np.random.Generator:
    """Random numbers that depend on `key` alone, such as (seed, stage, epoch, step)."""
    # NumPy fills short keys up with zeros: without its length, (1, 2, 3) would be the same as (1, 2, 3, 0).
    return np.random.default_rng(np.random.SeedSequence(entropy=(len(key), *map(int, key))))


@SAMPLERS.register("shuffle")
def shuffle(
    labels: np.ndarray, length: int, rng: np.random.Generator, images_per_class: int = 1
) -> np.ndarray:
    """Each image once, shuffled; the first `length` of them."""
    return rng.permutation(len(labels))[:length]


@SAMPLERS.register("balanced")
def balanced(
    labels: np.ndarray, length: int, rng: np.random.Generator, images_per_class: int = 1
) -> np.ndarray:
    """A class at random, then one of its images at random, `length` times."""
    order, starts, sizes = _by_class(labels)
    drawn = rng.integers(len(sizes), size=length)
    return order[starts[drawn] + (rng.random(length) * sizes[drawn]).astype(np.int64)]


@SAMPLERS.register("class-aware")
def class_aware(
    labels: np.ndarray, length: int, rng: np.random.Generator, images_per_class: int = 1
) -> np.ndarray:
    """Classes in shuffled rounds, `images_per_class` images at a time, none again before all of its class."""
    order, starts, sizes = _by_class(labels)
    num_classes, visits = len(sizes), -(-length // images_per_class)
    rounds = -(-visits // num_classes)
    drawn = np.concatenate([rng.permutation(num_classes) for _ in range(rounds)])[:visits]
    wanted = np.bincount(drawn, minlength=num_classes) * images_per_class
    chains = [
        _chain(order[start : start + size], length, rng)
        for start, size, length in zip(starts, sizes, wanted, strict=True)
    ]
    # The chains stand class by class; a stable sort by class says where each visit's images go.
    picked = np.empty((visits, images_per_class), dtype=np.int64)
    picked[np.argsort(drawn, kind="stable")] = np.concatenate(chains).reshape(visits, images_per_class)
    return picked.reshape(-1)[:length]


def _by_class(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Image numbers grouped by class, where each class starts, and its size."""
    order = np.argsort(labels, kind="stable")
    _, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
    return order, starts, sizes


def _chain(images: np.ndarray, length: int, rng: np.random.Generator) -> np.ndarray:
    """`length` images from one shuffle after another of the same class."""
    rounds = -(-length // len(images))
    return np.concatenate([rng.permutation(images) for _ in range(rounds)])[:length] if length else images[:0]
