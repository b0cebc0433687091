"""Tiny image files and folders for tests."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image


def picture(key: str, size: int = 8) -> np.ndarray:
    """A picture (size, size, 3) of noise that is the same for the same key and differs for others."""
    rng = np.random.default_rng(zlib.crc32(key.encode()))
    return rng.integers(0, 256, (size, size, 3), dtype=np.uint8)


def write_picture(path: Path, size: int = 8) -> Path:
    """An image file whose pixels depend on its path's last three parts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture("/".join(path.parts[-3:]), size)).save(path)
    return path


def touch(*paths: Path) -> None:
    """Empty files in the place of images, for code that never opens them."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def class_folders(folder: Path, counts: Mapping[str, int], size: int = 8) -> Path:
    """`folder/CLASS/0.png ...` with so many images per class."""
    for name, number in counts.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for index in range(number):
            write_picture(folder / name / f"{index}.png", size)
    return folder
