"""Images on their way to the network: where they lie, and batches of them in a seeded order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from oltr.config import StageConfig
from oltr.data.augment import Augment
from oltr.data.images import UnreadableImage, read_image
from oltr.data.manifest import Manifest
from oltr.data.samplers import SAMPLERS, generator
from oltr.data.store import Progress, decode_all, open_pack
from oltr.distributed import rank, world_size
from oltr.errors import UserError

# Files that together stay below this are decoded once and kept in memory.
KEPT_IN_MEMORY = 2 * 2**30


@dataclass(frozen=True)
class Images:
    """A split's images as uint8: in a tensor (in memory, memory-mapped or on the device) or as files."""

    size: int
    labels: np.ndarray  # n, −1 = open
    rows: np.ndarray | None = None  # image number → row of `pixels`
    pixels: Tensor | None = None  # N×S×S×3
    files: Sequence[Path] = ()
    home: str = "files"

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, order: Sequence[np.ndarray], device: torch.device, workers: int) -> Iterator[Tensor]:
        """The images of each index array in `order`, as uint8 B×3×S×S on `device`."""
        if self.pixels is not None and self.rows is not None:
            for indices in order:
                rows = torch.from_numpy(self.rows[indices]).to(self.pixels.device)
                yield self.pixels[rows].to(device, non_blocking=True).permute(0, 3, 1, 2)
            return
        loader: DataLoader[Any] = DataLoader(
            _Files(self.files, self.size),
            batch_sampler=[list(map(int, indices)) for indices in order],
            num_workers=min(workers, len(order)),
            collate_fn=_stack,
            pin_memory=device.type == "cuda",
            generator=torch.Generator(),  # else each pass would move on the global one
        )
        for pixels in loader:
            if isinstance(pixels, UnreadableImage):
                raise pixels
            yield pixels.to(device, non_blocking=True).permute(0, 3, 1, 2)


class _Files(Dataset[Any]):
    """Image files, decoded one by one in the loader's worker processes."""

    def __init__(self, files: Sequence[Path], size: int):
        self.files, self.size = files, size

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Tensor | UnreadableImage:
        try:
            return torch.from_numpy(read_image(self.files[index], self.size))
        except UnreadableImage as problem:  # raised in a worker it would come out as a RuntimeError
            return problem


def _stack(items: list[Tensor | UnreadableImage]) -> Tensor | UnreadableImage:
    """The pictures as one tensor, or the first that cannot be read."""
    broken = [item for item in items if isinstance(item, UnreadableImage)]
    return broken[0] if broken else torch.stack([item for item in items if isinstance(item, Tensor)])


def open_images(
    manifest: Manifest,
    splits: Sequence[str],
    size: int,
    smallest: int,
    device: torch.device,
    progress: Progress | None = None,
) -> dict[str, Images]:
    """The images of each split, as near to the network as they fit: on the device, in memory, or as files.

    `size` is what files are decoded to; a pack has its own size, which must be at least `smallest`.
    """
    labels = {split: manifest.labels(split) for split in splits}
    if manifest.pack is not None:
        pack = open_pack(manifest.pack)
        if pack.size < smallest:
            raise UserError(
                f"{pack.path.name} holds images of {pack.size} px, but {smallest} px are needed.",
                try_this=f"oltr data pack SOURCE --size {size}, or --image-size {pack.size}",
            )
        pixels, home = torch.from_numpy(np.asarray(pack.images)), "a memory-mapped pack"
        if _fits(pixels.nbytes, device):
            pixels, home = pixels.to(device), "a pack resident on the GPU"
        return {
            split: Images(pack.size, labels[split], manifest.positions(split), pixels, home=home)
            for split in splits
        }
    if size < smallest:
        raise UserError(
            f"Images are kept at {size} px, but {smallest} px are needed.",
            try_this=f"data.stored_size of {smallest} or more",
        )
    files = {split: manifest.paths(split) for split in splits}
    everything = [file for split in splits for file in files[split]]
    if len(everything) * size * size * 3 > KEPT_IN_MEMORY:
        return {split: Images(size, labels[split], files=files[split]) for split in splits}
    pixels = torch.empty((len(everything), size, size, 3), dtype=torch.uint8)
    for row, image in enumerate(decode_all(everything, size, progress)):
        pixels[row] = torch.from_numpy(image)
    home = "memory"
    if _fits(pixels.nbytes, device):
        pixels, home = pixels.to(device), "GPU memory"
    starts = np.cumsum([0, *(len(files[split]) for split in splits)])
    return {
        split: Images(size, labels[split], np.arange(a, b), pixels, home=home)
        for split, a, b in zip(splits, starts[:-1], starts[1:], strict=True)
    }


def _fits(size: int, device: torch.device) -> bool:
    """Whether that many bytes may stay on the GPU, leaving it more than half of its free memory."""
    return device.type == "cuda" and size < torch.cuda.mem_get_info(device)[0] * 0.4


class TrainBatches:
    """One epoch of augmented batches (images B×3×s×s, labels B); each process has its part of each."""

    def __init__(
        self,
        images: Images,
        augment: Augment,
        stage: StageConfig,
        key: tuple[int, int, int],
        device: torch.device,
        workers: int,
    ):
        self.images, self.augment, self.stage, self.key = images, augment, stage, key
        self.device, self.workers = device, workers
        self.batch = batch_size(stage, len(images))

    def __len__(self) -> int:
        return len(self.images) // self.batch

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = self.order()
        share = self.batch // world_size()
        part = slice(rank() * share, (rank() + 1) * share)
        steps = [order[start : start + self.batch] for start in range(0, len(order), self.batch)]
        mine = [indices[part] for indices in steps]
        for step, pixels in enumerate(self.images.batches(mine, self.device, self.workers)):
            views = self.augment.train(pixels, generator(*self.key, step), part, self.batch)
            yield views, torch.from_numpy(self.images.labels[mine[step]]).to(self.device)

    def order(self) -> np.ndarray:
        """The image numbers of the epoch, over all processes."""
        sampler = SAMPLERS[self.stage.sampler]
        return sampler(
            self.images.labels, len(self) * self.batch, generator(*self.key), self.stage.images_per_class
        )


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
        for indices, pixels in zip(steps, self.images.batches(steps, self.device, self.workers), strict=True):
            yield self.augment.evaluate(pixels), torch.from_numpy(self.images.labels[indices]).to(self.device)


def batch_size(stage: StageConfig, images: int) -> int:
    """The stage's batch, or less where the training set is smaller; a multiple of the number of processes."""
    size = min(stage.batch_size, images) // world_size() * world_size()
    if size < 1:
        raise UserError(f"{images} training images are too few for {world_size()} processes.")
    return size
