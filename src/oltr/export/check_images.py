"""Whole pictures of many sizes on which an exported model is compared with its run."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from oltr.data.heif import register_heif
from oltr.data.images import UnreadableImage, read_bytes
from oltr.data.items import Items
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.data.pixels import whole_picture
from oltr.errors import UserError
from oltr.runs.given_images import each_image
from oltr.wording import count

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

SPLITS = ("test", "open", "val")  # last those that may have chosen the threshold: one of them lies on it
SIZES = (  # height, width
    (31, 47), (64, 64), (120, 90), (224, 224), (333, 500), (900, 64), (640, 480), (300, 1300), (1500, 1000),
    (1650, 2200),
)  # fmt: skip


@dataclass(frozen=True)
class CheckImages:
    """Pictures, each read when it is asked for, and what they are."""

    what: str
    readers: Sequence[Callable[[], np.ndarray]]  # upright RGB, H×W×3 uint8

    def __iter__(self) -> Iterator[np.ndarray]:
        return (read() for read in self.readers)

    def __len__(self) -> int:
        return len(self.readers)


def check_images(run: TrainedRun, wanted: Path | int) -> CheckImages:
    """Those at a path, or so many of the run's own."""
    if not isinstance(wanted, int):
        return given_images(Path(wanted).expanduser())
    if wanted < 1:
        raise UserError(f"A check of {wanted} images compares nothing.", try_this="100")
    return own_images(run, wanted)


def given_images(paths: Path) -> CheckImages:
    """The file, or all images below the folder."""
    if not paths.exists():
        raise UserError(f"There is no file or folder {paths} to check the model on.")
    files = [each for each in each_image(paths) if isinstance(each, Path)]
    return CheckImages(
        f"{count(len(files), 'image')} of {paths}", [partial(_decoded, each) for each in files]
    )


def own_images(run: TrainedRun, number: int) -> CheckImages:
    """So many of the run's own images that it did not learn from; made-up ones where they are gone."""
    try:
        manifest = run.manifest
        splits = [split for split in SPLITS if manifest.sizes()[split]]
        rows = np.concatenate([manifest.positions(split) for split in splits]) if splits else np.arange(0)
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, number).astype(int))] if len(rows) else rows
        readers = _readers(manifest, rows.tolist())
        if readers:
            readers[0]()  # are they still there?
    except UserError as problem:
        made = made_up(number)
        return CheckImages(f"{made.what} (the run's own cannot be read: {problem.what})", made.readers)
    if not readers:
        return made_up(number)
    rescaled = ", rescaled to many sizes" if manifest.pack is not None else ""
    kinds = " and ".join(splits)
    return CheckImages(f"{count(len(readers), 'image')} of the run's own ({kinds}){rescaled}", readers)


def made_up(number: int) -> CheckImages:
    """Smooth patterns of random colours: no photos, but of all sizes."""
    readers = [partial(_made, i) for i in range(number)]
    return CheckImages(f"{count(number, 'made-up image')}, no photos", readers)


def _readers(manifest: Manifest, rows: list[int]) -> Sequence[Callable[[], np.ndarray]]:
    if manifest.pack is not None:
        pixels = open_pack(manifest.pack).images
        return [partial(_rescaled, pixels[row], i) for i, row in enumerate(rows)]
    paths = [manifest.table["path"].iloc[row] for row in rows]
    if (items := manifest.items) is not None:
        return [partial(_of_dataset, items, path) for path in paths]
    return [partial(_decoded, manifest.root / path) for path in paths]


def _of_dataset(items: Items, path: str) -> np.ndarray:
    return whole_picture(items.picture(path))


def _decoded(path: Path) -> np.ndarray:
    """All pixels of a file; unlike `read_image` a JPEG is not decoded at a smaller scale."""
    register_heif()
    try:
        with Image.open(io.BytesIO(read_bytes(path))) as image:
            image.load()
            return whole_picture(image)
    except UnreadableImage:
        raise
    except Exception as problem:  # decoders of broken files raise almost anything
        raise UnreadableImage(path, " ".join(str(problem).split()) or type(problem).__name__) from None


def _made(number: int) -> np.ndarray:
    colours = np.random.default_rng(number).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return _rescaled(colours, number)


def _rescaled(picture: np.ndarray, number: int) -> np.ndarray:
    height, width = SIZES[number % len(SIZES)]
    return np.array(Image.fromarray(picture).resize((width, height), Image.Resampling.BICUBIC))
