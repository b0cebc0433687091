"""Images decoded by threads into the next batches, while the network works on the present one."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

AT_A_TIME = 128  # images decoded and judged together: a million files cost no more memory than a few of these
AHEAD = 2  # batches that are decoded beside the one that is judged
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
THREADS = min(16, CORES if CORES <= 4 else CORES - 2)  # who feeds a GPU needs a core too

Chunks = Sequence[tuple[int, int]]  # first image and the one after the last


class Readable(Protocol):
    """Numbered images of one size."""

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def size(self) -> int: ...

    @property
    def piece(self) -> int:
        """Images that one thread reads in a go."""

    def read(self, number: int) -> np.ndarray | str:
        """The picture, size×size×3 uint8, or why there is none."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """A few images; those that could be read as n×S×S×3 uint8, in their order."""

    names: list[str]  # paths; empty for images that are in no file
    problems: list[str]  # why an image cannot be read; empty where it can
    pixels: np.ndarray | None  # None if none can


def chunks_of(images: int, at_a_time: int | None = None, start: int = 0) -> Chunks:
    """All images, so many at a time."""
    step = at_a_time or AT_A_TIME
    return [(first, min(first + step, images)) for first in range(start, images, step)]


def read_ahead(images: Readable, chunks: Chunks, pin_memory: bool = False) -> Iterator[Decoded]:
    """Each chunk of the images; the next ones are being read while the caller has this one."""
    names = images.names
    waiting: deque[tuple[tuple[int, int], np.ndarray, list[Future[list[str]]]]] = deque()

    def begun(first: int, end: int) -> tuple[tuple[int, int], np.ndarray, list[Future[list[str]]]]:
        shape = (end - first, images.size, images.size, 3)
        pixels = torch.empty(shape, dtype=torch.uint8, pin_memory=pin_memory).numpy()
        pieces = chunks_of(end - first, images.piece)
        return (first, end), pixels, [threads.submit(fill, pixels, first, *piece) for piece in pieces]

    def fill(pixels: np.ndarray, first: int, begin: int, end: int) -> list[str]:
        """Read some images into their places; what was wrong with each."""
        problems = [""] * (end - begin)
        for place in range(begin, end):
            found = images.read(first + place)
            if isinstance(found, str):
                problems[place - begin] = found
            else:
                pixels[place] = found
        return problems

    def ended(place: tuple[int, int], pixels: np.ndarray, parts: list[Future[list[str]]]) -> Decoded:
        problems = [problem for part in parts for problem in part.result()]
        if any(problems):
            pixels = pixels[[not problem for problem in problems]]
        return Decoded(list(names[place[0] : place[1]]), problems, pixels if len(pixels) else None)

    threads = ThreadPoolExecutor(THREADS)
    try:
        for chunk in chunks:
            waiting.append(begun(*chunk))
            if len(waiting) > AHEAD:
                yield ended(*waiting.popleft())
        while waiting:
            yield ended(*waiting.popleft())
    finally:
        threads.shutdown(cancel_futures=True)
