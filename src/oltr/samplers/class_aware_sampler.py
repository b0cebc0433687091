"""Classes in turn, a few images of each at a time (Shen et al., ECCV 2016), going on from epoch to epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from oltr.samplers.base import SAMPLERS, EpochSampler, by_class, generator


@SAMPLERS.register("class-aware")
def class_aware(labels: np.ndarray, length: int, key: Sequence[int], images_per_class: int = 1) -> np.ndarray:
    """Shuffled rounds of the classes, `images_per_class` images at a time; an epoch goes on where the one
    before it ended.

    No image comes again before all others of its class, over all epochs; a last visit to a class that the
    epoch cuts short counts as whole. The epochs must have one length: where an epoch begins is arithmetic,
    and round r of the classes and pass p of a class can be shuffled without those before them.
    """
    *walk, epoch = key
    order, starts, sizes = by_class(labels)
    num_classes, visits = len(sizes), -(-length // images_per_class)
    rng = generator(*walk)
    class_streams, image_streams = (
        rng.integers(2**64, size=number, dtype=np.uint64) for number in (num_classes, len(order))
    )

    whole_rounds, gone = divmod(epoch * visits, num_classes)
    rounds = _shuffled(class_streams, whole_rounds, whole_rounds - (-(gone + visits) // num_classes))
    drawn = rounds[gone : gone + visits]
    seen = (whole_rounds + np.bincount(rounds[:gone], minlength=num_classes)) * images_per_class
    wanted = np.bincount(drawn, minlength=num_classes) * images_per_class
    chains = []
    for start, size, before, more in zip(
        starts.tolist(), sizes.tolist(), seen.tolist(), wanted.tolist(), strict=True
    ):
        whole_passes, gone = divmod(before, size)
        own = slice(start, start + size)
        passes = _shuffled(image_streams[own], whole_passes, whole_passes - (-(gone + more) // size))
        chains.append(order[own][passes[gone : gone + more]])
    # The chains are sorted by class; a stable sort of the visits by class says where each image goes.
    picked = np.empty((visits, images_per_class), dtype=np.int64)
    picked[np.argsort(drawn, kind="stable")] = np.concatenate(chains).reshape(visits, images_per_class)
    return picked.reshape(-1)[:length]


def _shuffled(streams: np.ndarray, first: int, last: int) -> np.ndarray:
    """Passes `first` to `last` − 1 over n things, each pass shuffled, one after the other.

    Each thing has a SplitMix64 stream (Steele et al., 2014), whose p-th number is known without those before;
    the order of pass p is that of the p-th numbers.
    """
    numbers = np.arange(first + 1, last + 1, dtype=np.uint64)[:, None]
    z = streams + numbers * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).argsort(axis=1).reshape(-1)


class ClassAwareSampler(EpochSampler):
    """Shuffled rounds of the classes, `images_per_class` images at a time, going on from epoch to epoch."""

    def __init__(
        self,
        labels: Tensor | np.ndarray | Sequence[int],
        images_per_class: int = 4,
        length: int | None = None,
        seed: int = 0,
    ):
        super().__init__(labels, length, seed)
        self.images_per_class = images_per_class

    def order(self, key: Sequence[int]) -> np.ndarray:
        return class_aware(self.labels, self.length, key, self.images_per_class)
