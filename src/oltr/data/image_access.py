"""Access to the images of a split: on the device, in memory, in a mapped pack, in files or in datasets."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.config import Frame
from oltr.console import Progress
from oltr.data.decode import decode_all
from oltr.data.images import read_image
from oltr.data.loader import Read, load_batches
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.errors import UserError

# Images that together stay below this are decoded once and kept in memory.
KEPT_IN_MEMORY = 2 * 2**30
READERS, READ_AHEAD = 4, 8  # threads that gather batches for another device, and batches they prefetch
AT_A_TIME = 256  # batches whose row numbers go to the device together: one copy instead of many


@dataclass(frozen=True)
class Images:
    """A split's images as uint8: in a tensor (in memory, memory-mapped or on the device) or read one by one.

    Batches are of `size` pixels, also where the tensor's are larger.
    """

    size: int
    labels: np.ndarray  # n, −1 = open
    rows: np.ndarray | None = None  # image number → row of `pixels`
    pixels: Tensor | None = None  # N×S×S×3
    files: Sequence[Any] = ()  # what `read` takes: image files, or paths of a dataset's items
    home: str = "files"
    read: Read = read_image
    frame: Frame | None = None  # how files are decoded; stretched unless given

    def __len__(self) -> int:
        return len(self.labels)

    def batches(
        self, order: Sequence[np.ndarray] | np.ndarray, device: torch.device, workers: int
    ) -> Iterator[Tensor]:
        """The images of each index array in `order`, as uint8 B×3×S×S on `device`."""
        if self.pixels is not None and self.rows is not None:
            rows = [self.rows[indices] for indices in order]
            here = self.pixels.device.type == device.type
            for batch in _resident(self.pixels, rows) if here else _sent(self.pixels, rows, device):
                yield batch if batch.shape[2] == self.size else resized(batch, self.size)
            return
        on_gpu = device.type == "cuda"
        frame = self.frame or self.size
        for pixels in load_batches(self.files, frame, self.read, order, workers, pin_memory=on_gpu):
            yield pixels.to(device, non_blocking=True).permute(0, 3, 1, 2)


def _resident(pixels: Tensor, rows: Sequence[np.ndarray]) -> Iterator[Tensor]:
    """Batches of images that are on the device already."""
    for start in range(0, len(rows), AT_A_TIME):
        block = rows[start : start + AT_A_TIME]
        sizes = [len(batch) for batch in block]
        for batch in torch.from_numpy(np.concatenate(block)).to(pixels.device).split(sizes):
            yield _rows(pixels, batch).permute(0, 3, 1, 2)


def _sent(pixels: Tensor, rows: Sequence[np.ndarray], device: torch.device) -> Iterator[Tensor]:
    """Batches gathered from memory or a mapped file, a few ahead of the device that they are sent to."""

    def gather(batch: np.ndarray) -> Tensor:
        return _rows(pixels, torch.from_numpy(batch)).pin_memory()

    with ThreadPoolExecutor(READERS) as readers:
        waiting: deque[Future[Tensor]] = deque()
        for batch in rows:
            waiting.append(readers.submit(gather, batch))
            if len(waiting) > READ_AHEAD:
                yield waiting.popleft().result().to(device, non_blocking=True).permute(0, 3, 1, 2)
        while waiting:
            yield waiting.popleft().result().to(device, non_blocking=True).permute(0, 3, 1, 2)


def _rows(pixels: Tensor, rows: Tensor) -> Tensor:
    """pixels[rows], eight bytes at a time where the size allows it: a GPU copies element by element."""
    flat = pixels.view(len(pixels), -1)
    if flat.shape[1] % 8:
        return pixels[rows]
    return flat.view(torch.int64)[rows].view(torch.uint8).view(-1, *pixels.shape[1:])


def resized(batch: Tensor, size: int) -> Tensor:
    """Larger images scaled down with antialiasing, as files are when they are decoded."""
    smaller = F.interpolate(batch.float(), (size, size), mode="bilinear", antialias=True)
    return smaller.round().clamp(0, 255).to(torch.uint8)


def open_images(
    manifest: Manifest,
    splits: Sequence[str],
    frame: int | Frame,
    smallest: int,
    device: torch.device,
    progress: Progress | None = None,
) -> dict[str, Images]:
    """The images of each split, kept on the device or in memory where they fit, else read on demand.

    Images are decoded, or those of a larger pack scaled down, to `size`; a smaller pack keeps its own size,
    which must be at least `smallest`.
    """
    frame = Frame(frame) if isinstance(frame, int) else frame
    size, labels = frame.size, {split: manifest.labels(split) for split in splits}
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
            split: Images(min(size, pack.size), labels[split], manifest.positions(split), pixels, home=home)
            for split in splits
        }
    if size < smallest:
        raise UserError(
            f"Images are kept at {size} px, but {smallest} px are needed.",
            try_this=f"data.stored_size of {smallest} or more",
        )
    paths = {split: list(manifest.rows(split)["path"]) for split in splits}
    everything = [path for split in splits for path in paths[split]]
    if not fits_in_memory(len(everything), size):
        if manifest.items is not None:
            read, home = manifest.items.read, "a dataset"
            return {
                s: Images(size, labels[s], files=paths[s], read=read, home=home, frame=frame) for s in splits
            }
        return {
            split: Images(size, labels[split], files=manifest.paths(split), frame=frame) for split in splits
        }
    pixels = torch.empty((len(everything), size, size, 3), dtype=torch.uint8)
    for row, image in enumerate(decode_all(manifest, everything, frame, progress)):
        pixels[row] = torch.from_numpy(image)
    home = "memory"
    if _fits(pixels.nbytes, device):
        pixels, home = pixels.to(device), "GPU memory"
    starts = np.cumsum([0, *(len(paths[split]) for split in splits)])
    return {
        split: Images(size, labels[split], np.arange(a, b), pixels, home=home)
        for split, a, b in zip(splits, starts[:-1], starts[1:], strict=True)
    }


def fits_in_memory(images: int, size: int) -> bool:
    """Whether so many images of size×size are decoded once and kept, rather than read again each epoch."""
    return images * size * size * 3 <= KEPT_IN_MEMORY


def _fits(size: int, device: torch.device) -> bool:
    """Whether that many bytes may stay on the GPU, leaving it more than half of its free memory."""
    return device.type == "cuda" and size < torch.cuda.mem_get_info(device)[0] * 0.4
