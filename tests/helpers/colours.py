"""A small run on noisy colours whose classes can be changed, and files of classes that it does not know."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers.tiny import tiny_config

COLOURS = {
    "red": (200, 40, 40),
    "green": (40, 180, 60),
    "blue": (40, 60, 200),
    "yellow": (220, 210, 50),
    "white": (230, 230, 230),
    "black": (25, 25, 25),
}
UNKNOWN = {"pink": (240, 120, 190), "cyan": (40, 200, 210)}
SPLITS = {"train": (24, 20, 14, 10, 8, 6), "val": (6,) * 6, "test": (6,) * 6}


@pytest.fixture(scope="session")
def photo_folder(tmp_path_factory) -> Path:
    """train/ val/ test/ open/ with noisy colours; the two open classes have ten images each."""
    folder, draw = tmp_path_factory.mktemp("colours"), np.random.default_rng(0)

    def write(place: Path, colour: tuple[int, int, int], number: int) -> None:
        place.mkdir(parents=True)
        for index in range(number):
            Image.fromarray(noisy(colour, draw)).save(place / f"{index}.png")

    for split, numbers in SPLITS.items():
        for (name, colour), number in zip(COLOURS.items(), numbers, strict=True):
            write(folder / split / name, colour, number)
    for name, colour in UNKNOWN.items():
        write(folder / "open" / name, colour, 10)
    return folder


def noisy(colour: tuple[int, int, int], draw: np.random.Generator) -> np.ndarray:
    """A picture of about this colour, 32×32×3."""
    pixels = np.array(colour) + draw.normal(0, 12, 3) + draw.normal(0, 30, (32, 32, 3))
    return pixels.clip(0, 255).astype(np.uint8)


def _trained(photo_folder: Path, out: Path, method: str) -> Path:
    from oltr.console import console
    from oltr.data.sources import read_source
    from oltr.runs.train_run import train_run
    from oltr.training.options import TrainOptions

    config = tiny_config(method, epochs=(6, 3) if method == "oltr" else (6,))
    with console.silent():
        train_run(config, read_source(photo_folder), out, TrainOptions(accelerator="cpu"), str(photo_folder))
    return out


@pytest.fixture(scope="session")
def plain_run(photo_folder, tmp_path_factory) -> Path:
    """Read-only."""
    return _trained(photo_folder, tmp_path_factory.mktemp("runs") / "plain", "plain")


@pytest.fixture(scope="session")
def oltr_run(photo_folder, tmp_path_factory) -> Path:
    """With a memory; read-only."""
    return _trained(photo_folder, tmp_path_factory.mktemp("runs") / "oltr", "oltr")


@pytest.fixture(scope="session")
def strangers(photo_folder) -> dict[str, list[Path]]:
    """The files of each open class."""
    return {each.name: sorted(each.iterdir()) for each in sorted((photo_folder / "open").iterdir())}
