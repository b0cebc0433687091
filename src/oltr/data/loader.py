"""Images read one by one through a `DataLoader`: files that do not fit in memory, and items of datasets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from oltr.config import Frame
from oltr.console import Progress
from oltr.data.images import UnreadableImage
from oltr.data.items import Items

Read = Callable[[Any, int | Frame], np.ndarray]  # a path and a size → size×size×3 uint8

AT_A_TIME = 64
MANY = 2048  # items; fewer are read before worker processes would have started


def decode_items(
    items: Items, paths: Sequence[str], size: int | Frame, progress: Progress | None = None
) -> Iterator[np.ndarray]:
    """Items as size×size×3 uint8, in order; by processes, since a dataset need not be safe for threads."""
    workers = min(8, os.cpu_count() or 1) if len(paths) > MANY else 0
    starts = range(0, len(paths), AT_A_TIME)
    order = [np.arange(start, min(start + AT_A_TIME, len(paths))) for start in starts]
    for batch, pixels in zip(order, load_batches(paths, size, items.read, order, workers), strict=True):
        yield from pixels.numpy()
        if progress:
            progress(int(batch[-1]) + 1, len(paths))


def load_batches(
    paths: Sequence[Any],
    size: int | Frame,
    read: Read,
    order: Iterable[np.ndarray],
    workers: int,
    pin_memory: bool = False,
) -> Iterator[Tensor]:
    """The images of each index array in `order`, as uint8 B×S×S×3, decoded by so many processes."""
    numbers = [list(map(int, indices)) for indices in order]
    loader: DataLoader[Any] = DataLoader(
        _Pictures(paths, size, read),
        batch_sampler=numbers,
        num_workers=min(workers, len(numbers)),
        collate_fn=_stack,
        pin_memory=pin_memory,
        generator=torch.Generator(),  # else each pass would move on the global one
    )
    for pixels in loader:
        if isinstance(pixels, UnreadableImage):
            raise pixels
        yield pixels


class _Pictures(Dataset[Any]):
    """Images, decoded one by one in the loader's worker processes."""

    def __init__(self, paths: Sequence[Any], size: int | Frame, read: Read):
        self.paths, self.size, self.read = paths, size, read

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor | UnreadableImage:
        try:
            return torch.from_numpy(self.read(self.paths[index], self.size))
        except UnreadableImage as problem:  # raised in a worker it would come out as a RuntimeError
            return problem


def _stack(items: list[Tensor | UnreadableImage]) -> Tensor | UnreadableImage:
    """The pictures as one tensor, or the first that cannot be read."""
    broken = [item for item in items if isinstance(item, UnreadableImage)]
    return broken[0] if broken else torch.stack([item for item in items if isinstance(item, Tensor)])
