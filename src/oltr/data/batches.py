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
from oltr.distributed import rank, world_size
from oltr.errors import UserError
from oltr.samplers import SAMPLERS, generator

# Steps whose labels and draws are copied to the device together; few at first, so that the device has work
# while the others are drawn.
AT_FIRST, AT_A_TIME = 4, 256


class TrainBatch(NamedTuple):
    """Stored images (uint8 B×3×S×S), the random draws of their augmentation (B×34 or more), labels (B)."""

    pixels: Tensor
    draws: Tensor
    labels: Tensor


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

    def __iter__(self) -> Iterator[TrainBatch]:
        share = self.batch // world_size()
        part = slice(rank() * share, (rank() + 1) * share)
        mine = self.order().reshape(len(self), self.batch)[:, part]
        pixels = self.images.batches(mine, self.device, self.workers)
        for steps in _parts(len(self)):
            # All processes make all draws: the views do not depend on how many share the batch.
            draws = torch.stack(
                [draw_views(generator(*self.key, step), self.batch, self.numbers)[part] for step in steps]
            ).to(self.device)
            labels = torch.from_numpy(self.images.labels[mine[steps.start : steps.stop]]).to(self.device)
            for row in range(len(steps)):
                yield TrainBatch(next(pixels), draws[row], labels[row])

    def order(self) -> np.ndarray:
        """The image numbers of the epoch, over all processes."""
        sampler = SAMPLERS[self.stage.sampler]
        return sampler(self.images.labels, len(self) * self.batch, self.key, self.stage.images_per_class)


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
