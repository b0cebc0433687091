"""TinyImageNet's 64 px originals at the 32 px of CIFAR, in the ways that published open sets were made."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from oltr.console import Progress
from oltr.data.curate.open_images import OpenImages
from oltr.data.images import decode_image, read_bytes
from oltr.errors import UserError
from oltr.registry import unknown_name

ORIGINAL, SMALL = 64, 32


def mean_of_four(picture: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Bilinear without antialiasing: a new pixel's middle lies between four old ones, and has their mean."""
    blocks = picture.reshape(SMALL, 2, SMALL, 2, 3).astype(np.float64)
    return np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)


def every_second(picture: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """To the nearest pixels: one of each four stays."""
    return picture[1::2, 1::2]


def random_crop(picture: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A quarter of the picture, anywhere in it."""
    top, left = random.integers(0, ORIGINAL - SMALL + 1, size=2)
    return picture[top : top + SMALL, left : left + SMALL]


# name → how, and in words. Published sets are "resize" and "crop"; how the former was resized is not told.
WAYS: dict[str, tuple[Callable[[np.ndarray, np.random.Generator], np.ndarray], str]] = {
    "resized": (mean_of_four, "resized by bilinear interpolation without antialiasing"),
    "nearest": (every_second, "resized to the nearest pixels"),
    "crop": (random_crop, "a random crop of each"),
}


def small_copies(opened: OpenImages, way: str, seed: int, progress: Progress | None = None) -> OpenImages:
    """A 32 × 32 copy of each open image, as pictures in images/open/."""
    if way not in WAYS:
        raise unknown_name("way of --open-images", way, WAYS)
    make, words = WAYS[way]
    random, pictures = np.random.default_rng(seed), {}
    for number, path in enumerate(opened.table["path"], start=1):
        pixels, width_height = decode_image(read_bytes(path), ORIGINAL, path)
        if width_height != (ORIGINAL, ORIGINAL):
            raise UserError(
                f"{path} has {width_height[0]} × {width_height[1]} pixels.",
                f"--open-images {way} is made from TinyImageNet's originals, {ORIGINAL} × {ORIGINAL}.",
                "--open-root with these; or without --open-images, which takes images as they are",
            )
        pictures[f"images/open/{number - 1:05d}.png"] = make(pixels, random)
        if progress is not None:
            progress(number, len(opened.table))
    table: pd.DataFrame = opened.table.assign(path=list(pictures))
    size = f"{SMALL} × {SMALL} pixels"
    return OpenImages(table, f"{opened.sentence} Of each a picture of {size}: {words}.", pictures)
