"""Samplers for long-tailed training sets: shuffled, class-aware and balanced.

Each is a `torch.utils.data.Sampler` for any DataLoader, around a pure function (labels, length, key) →
image numbers. The order depends on the key alone, such as (seed, epoch), and is the same in every process of
a distributed run, of which each then takes its part of every batch.
"""

from oltr.samplers.balanced_sampler import BalancedSampler, balanced
from oltr.samplers.base import SAMPLERS, EpochSampler, generator
from oltr.samplers.class_aware_sampler import ClassAwareSampler, class_aware
from oltr.samplers.shuffle_sampler import ShuffleSampler, shuffle

__all__ = [
    "SAMPLERS",
    "BalancedSampler",
    "ClassAwareSampler",
    "EpochSampler",
    "ShuffleSampler",
    "balanced",
    "class_aware",
    "generator",
    "shuffle",
]
