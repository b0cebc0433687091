"""Training and evaluation batches on the device, in a seeded order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from oltr.config import DataConfig, StageConfig
from oltr.data.augment import Augment, draw_views, draws_per_view
from oltr.data.image_access import Images
from oltr.data.mixing import MIXING_DRAWS
from oltr.data.mosaics import half_of
from oltr.distributed import rank, world_size
from oltr.errors import UserError
from oltr.samplers import SAMPLERS, balanced, generator

# Steps whose labels and draws are copied to the device together; few at first, so that the device has work
# while the others are drawn.
AT_FIRST, AT_A_TIME = 4, 256
MIXING = 2**32 - 1  # in a key, a step that no epoch has: whom its images are mixed with, and how
MOSAICS = 2**32 - 1  # after a step, a view that no image has: what its mosaics are made of


class TrainBatch(NamedTuple):
    """Stored images (uint8 B×3×S×S), the draws of their views (V·B×34 or more, view by view), labels (B).

    The draws of mosaics, if there are any, follow those of the views, here and in a `MixedBatch`.
    """

    pixels: Tensor
    draws: Tensor
    labels: Tensor


class MixedBatch(NamedTuple):
    """Images, then as many partners to mix them with: pixels and labels are 2B, draws (V + 1)·B×34 or more.

    The draws are those of the first views, then of the partners, then of the other views.
    """

    pixels: Tensor
    draws: Tensor
    labels: Tensor
    mixing: Tensor  # B×5


Batch = TrainBatch | MixedBatch


class TrainBatches:
    """One epoch of batches on the device; every process has its part of each batch."""

    def __init__(
        self,
        images: Images,
        stage: StageConfig,
        key: tuple[int, int, int],
        device: torch.device,
        workers: int,
        data: DataConfig | None = None,
    ):
        self.images, self.stage, self.key = images, stage, key
        self.device, self.workers = device, workers
        self.numbers = draws_per_view(data or DataConfig())
        self.batch = batch_size(stage, len(images))

    def __len__(self) -> int:
        return len(self.images) // self.batch

    def __iter__(self) -> Iterator[Batch]:
        share = self.batch // world_size()
        part = slice(rank() * share, (rank() + 1) * share)
        mine = self.order().reshape(len(self), self.batch)[:, part]
        mixed = self.stage.mix != "none"
        if mixed:
            mine = np.concatenate([mine, self.partners()[:, part]], axis=1)
            mixing = torch.from_numpy(self._mixing_draws()[:, part])
        pixels = self.images.batches(mine, self.device, self.workers)
        for steps in _parts(len(self)):
            # All processes make all draws: the views do not depend on how many share the batch.
            draws = torch.stack([self._draws(step, part) for step in steps]).to(self.device)
            labels = torch.from_numpy(self.images.labels[mine[steps.start : steps.stop]]).to(self.device)
            how = mixing[steps.start : steps.stop].to(self.device) if mixed else None
            for row in range(len(steps)):
                batch = TrainBatch(next(pixels), draws[row], labels[row])
                yield batch if how is None else MixedBatch(*batch, how[row])

    def order(self) -> np.ndarray:
        """The image numbers of the epoch, over all processes."""
        sampler = SAMPLERS[self.stage.sampler]
        return sampler(self.images.labels, len(self) * self.batch, self.key, self.stage.images_per_class)

    def partners(self) -> np.ndarray:
        """The image that each image of the epoch is mixed with, over all processes: steps×batch."""
        shape, key = (len(self), self.batch), (*self.key, MIXING)
        if self.stage.mix_partner == "balanced":
            return balanced(self.images.labels, len(self) * self.batch, key).reshape(shape)
        return generator(*key).permuted(self.order().reshape(shape), axis=1)

    def _mixing_draws(self) -> np.ndarray:
        """Uniform random numbers that determine how the images of the epoch are mixed: steps×batch×5."""
        shape = len(self), self.batch, MIXING_DRAWS
        return generator(*self.key, MIXING, 0).random(shape, dtype=np.float32)

    def _draws(self, step: int, part: slice) -> Tensor:
        """The draws of a step's views, this process's part of each, and of its mosaics."""
        keys: list[tuple[int, ...]] = [(step,)]
        keys += [(step, 0)] if self.stage.mix != "none" else []
        keys += [(step, view) for view in range(1, self.stage.views)]
        views = [draw_views(generator(*self.key, *key), self.batch, self.numbers)[part] for key in keys]
        if self.stage.mosaics:
            number = half_of(self.batch // world_size())
            drawn = draw_views(generator(*self.key, step, MOSAICS), number * world_size(), self.numbers)
            views.append(drawn[rank() * number : (rank() + 1) * number])
        return torch.cat(views) if len(views) > 1 else views[0]


def _parts(steps: int) -> Iterator[range]:
    """Ranges of steps, the first one short."""
    start, end = 0, min(AT_FIRST, steps)
    while start < steps:
        yield range(start, end)
        start, end = end, min(end + AT_A_TIME, steps)


class EvalBatches:
    """Each image once, or `limit` evenly spread ones, in order, centre-cropped, shared among processes."""

    def __init__(
        self,
        images: Images,
        augment: Augment,
        size: int,
        device: torch.device,
        workers: int,
        limit: int | None = None,
    ):
        self.images, self.augment, self.size = images, augment, size
        self.device, self.workers = device, workers
        wanted = np.arange(len(images))
        if limit is not None and len(wanted) > limit:
            wanted = np.linspace(0, len(images) - 1, limit).round().astype(np.int64)
        self.indices = wanted[rank() :: world_size()]

    def __len__(self) -> int:
        return -(-len(self.indices) // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        steps = [self.indices[at : at + self.size] for at in range(0, len(self.indices), self.size)]
        if not steps:
            return
        labels = torch.from_numpy(self.images.labels[self.indices]).to(self.device).split(self.size)
        for pixels, answer in zip(self.images.batches(steps, self.device, self.workers), labels, strict=True):
            yield self.augment.evaluate(pixels), answer


def evaluation_batch(image_size: int, device: torch.device) -> int:
    """Images per evaluation batch; more on a GPU, which small batches of small images would leave idle."""
    return 256 if device.type == "cpu" else max(256, min(2**24 // image_size**2, 4096))


def batch_size(stage: StageConfig, images: int) -> int:
    """The stage's batch size, at most the training set's; a multiple of the number of processes."""
    size = min(stage.batch_size, images) // world_size() * world_size()
    if size < 1:
        raise UserError(f"{images} training images are too few for {world_size()} processes.")
    return size
