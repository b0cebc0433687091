"""How many images a second each stage of the input gives, measured before training begins."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from oltr.data.augment import Augment, draw_views
from oltr.data.image_access import Images

LONG_ENOUGH = 0.06  # seconds
FEW = 64  # images to begin with: with less, a CPU works in its cache and seems quicker than it is


class InputRate(NamedTuple):
    """Images per second: out of where they lie to the device, and from there to views."""

    read: float
    augmented: float

    def words(self) -> str:
        """The rates in two digits; more would not be true."""
        read, augmented = (f"{float(f'{rate:.2g}'):,.0f} images/s" for rate in self)
        return f"{read} read, {augmented} augmented"


def input_rate(images: Images, augment: Augment, batch: int, device: torch.device, workers: int) -> InputRate:
    """The rates of reading random images and of augmenting them, in batches of `batch`.

    It takes a fraction of a second and draws from a generator of its own. Files are read by this process, and
    its rate counts for each worker: starting them would take longer than the measurement. For the same reason
    the views are made by uncompiled code, also where training compiles it.
    """
    rng = np.random.default_rng(0)
    # Nothing here depends on what the images show, and files may take long to read.
    pixels = torch.zeros((batch, images.size, images.size, 3), dtype=torch.uint8, device=device)
    pixels, draws = pixels.permute(0, 3, 1, 2), draw_views(rng, batch).to(device)

    def read(number: int) -> None:
        numbers = rng.integers(len(images), size=number)
        order = [numbers[start : start + batch] for start in range(0, number, batch)]
        for _ in images.batches(order, device, workers=0):
            pass

    def views(number: int) -> None:
        for start in range(0, number, batch):
            part = slice(0, min(batch, number - start))
            augment.train(pixels[part], draws[part])

    few = min(FEW, batch)
    if images.pixels is not None:
        return InputRate(_rate(read, few, device), _rate(views, few, device))
    readers = max(min(workers, os.cpu_count() or 1), 1)
    return InputRate(_rate(read, 1, device) * readers, _rate(views, few, device))


def _rate(work: Callable[[int], None], number: int, device: torch.device) -> float:
    """Images per second of `work(images)`: the best of a few trials, with ever more images.

    The best, since whatever else the machine does only takes from it.
    """
    work(1)  # what the first call brings into memory is not part of the rate
    best, spent = 0.0, 0.0
    while spent < LONG_ENOUGH:
        _wait(device)
        began = time.perf_counter()
        work(number)
        _wait(device)
        seconds = time.perf_counter() - began
        best, spent, number = max(best, number / seconds), spent + seconds, 2 * number
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
