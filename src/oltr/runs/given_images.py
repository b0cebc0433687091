"""Images as they are given to a run: files, folders, PIL images, arrays, a pack; decoded a few at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from PIL import Image

from oltr.config import Frame
from oltr.data.images import UnreadableImage, read_image, to_pixels
from oltr.data.scan import find_images
from oltr.errors import UserError
from oltr.files import is_utf8
from oltr.runs.read_ahead import Chunks, Decoded, chunks_of, read_ahead

Given: TypeAlias = "str | Path | Image.Image | np.ndarray"
_TOUCHED = threading.Lock()  # a PIL image reads its file when first touched, which is not safe with threads


@dataclass(frozen=True, eq=False)
class GivenImages:
    """Images that are no pack: what a reader needs of them."""

    images: list[Path | Image.Image | np.ndarray]
    frame: Frame
    piece: int = 1  # a file takes milliseconds

    @property
    def names(self) -> list[str]:
        """Paths; empty for images that are in no file."""
        return [_name(image) for image in self.images]

    @property
    def size(self) -> int:
        """Side of the decoded pictures."""
        return self.frame.size

    def read(self, number: int) -> np.ndarray | str:
        """The picture, or why there is none."""
        return _pixels(self.images[number], self.frame)


def given_images(images: Iterable[Given] | Given, frame: Frame) -> GivenImages:
    """The images in their order, a folder as the images below it."""
    found = [checked_name(each) if isinstance(each, Path) else each for each in each_image(images)]
    return GivenImages(found, frame)


def decoded(images: Iterable[Given] | Given, frame: Frame, chunks: Chunks | None = None) -> Iterator[Decoded]:
    """The images in their order, a few at a time, others being decoded meanwhile."""
    given = given_images(images, frame)
    return read_ahead(given, chunks_of(len(given.images)) if chunks is None else chunks)


def each_image(images: Iterable[Given] | Given) -> list[Path | Image.Image | np.ndarray]:
    """Images as they were given, each folder as the images below it, a stack N×H×W×3 as its images."""
    if isinstance(images, np.ndarray) and images.ndim == 4:
        images = list(images)
    found: list[Path | Image.Image | np.ndarray] = []
    for place, image in enumerate([images] if isinstance(images, _KINDS) else images):
        if isinstance(image, np.ndarray):
            found.append(_checked(image, place))
        elif isinstance(image, Image.Image):
            found.append(image)
        elif isinstance(image, str) and not image.strip():
            raise UserError(f"images[{place}] is an empty path.", try_this="paths of files or folders")
        elif isinstance(image, str | Path):
            found += _files(Path(image).expanduser())
        else:
            hint = "paths of files or folders, PIL images, arrays H×W×3 or H×W of uint8"
            raise UserError(f"images[{place}] is a {type(image).__name__}.", try_this=hint)
    return found


def checked_name(path: Path) -> Path:
    """The path, refused where it could be neither printed nor written into a table."""
    if not is_utf8(path):
        raise UserError(f"The name {str(path)!a} is not valid UTF-8.", try_this="rename it")
    return path


def _files(path: Path) -> list[Path]:
    below = [path / name for name in find_images(path)] if path.is_dir() else [path]
    if not below:
        raise UserError(f"There are no images in {path}.")
    return below


def _checked(image: np.ndarray, place: int) -> np.ndarray:
    """Grey or with colours, and with values whose range is beyond doubt."""
    fits = image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (3, 4))
    if fits and image.dtype == np.uint8 and image.size:
        return image
    raise UserError(
        f"images[{place}] is an ndarray of {image.dtype}, shape {'×'.join(map(str, image.shape)) or 'none'}.",
        "An image is H×W×3 (RGB) or H×W (grey), of uint8.",
        "(255 * image).astype(np.uint8) for values from 0 to 1; image.transpose(1, 2, 0) for 3×H×W",
    )


def _pixels(image: Path | Image.Image | np.ndarray, size: int | Frame) -> np.ndarray | str:
    """The picture, or why there is none."""
    try:
        if isinstance(image, Path):
            return read_image(image, size)
        if isinstance(image, np.ndarray):
            return to_pixels(Image.fromarray(image), size)
        with _TOUCHED:
            image.load()
            return to_pixels(image, size)
    except UnreadableImage as problem:
        return problem.reason
    except Exception as problem:  # decoders of broken files raise almost anything
        return " ".join(str(problem).split()).rstrip(".") or type(problem).__name__


def _name(image: Path | Image.Image | np.ndarray) -> str:
    """Its path; a PIL image knows it until it is changed."""
    name = image if isinstance(image, Path) else getattr(image, "filename", "")
    return str(name) if isinstance(name, str | Path) else ""


_KINDS = (str, Path, Image.Image, np.ndarray)
