"""Copies of the images that a class was added from, on disk before the action that needs them is recorded."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from PIL import Image, ImageOps

from oltr.console import console
from oltr.data.images import read_bytes
from oltr.errors import UserError
from oltr.files import sync, unwritable
from oltr.runs.learned_images import content_digest

Picture: TypeAlias = Path | Image.Image | np.ndarray


@dataclass(frozen=True)
class Copies:
    """Whole files in a folder of their own, to be put in their places."""

    names: list[str]  # digest and suffix
    staged: Path
    folder: Path

    def put(self) -> list[str]:
        """Give them their places, where a power cut leaves them; paths relative to the run folder."""
        for name in dict.fromkeys(self.names):
            (self.staged / name).replace(self.folder / name)
        sync(self.folder)
        return [f"{self.folder.name}/{name}" for name in self.names]


@contextmanager
def copied(folder: Path, images: Sequence[Picture], digests: Sequence[str]) -> Iterator[Copies]:
    """Copies of the images, one file at a time; an image that is no longer what it was is refused.

    What is not put in its place vanishes at the end. A killed process may leave its `.part` folder, or copies
    that no action names: nothing looks at either.
    """
    with unwritable(folder):
        new = not folder.is_dir()
        folder.mkdir(exist_ok=True)
        if new:
            sync(folder.parent)
        staged = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=folder))
        try:
            yield Copies(_stage(staged, images, digests), staged, folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)


def _stage(staged: Path, images: Sequence[Picture], digests: Sequence[str]) -> list[str]:
    names = []
    with console.progress("copying images") as progress:
        for number, (image, digest) in enumerate(zip(images, digests, strict=True), start=1):
            progress(number, len(images))
            if isinstance(image, Path) and image.stem == digest and image.parent.parent == staged.parents[1]:
                # The run keeps it under its content already, on disk.
                names.append(image.name)
                _link(image, staged / image.name)
                continue
            content = _content(image)
            if content_digest(content) != digest:
                what = image if isinstance(image, Path) else f"image {number}"
                raise UserError(f"{what} was changed while it was read.", try_this="the same again")
            kind = ".png" if content.startswith(b"\x89PNG") else Path(str(image)).suffix.lower()
            names.append(f"{digest}{kind}")
            with (staged / names[-1]).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
    return names


def _link(image: Path, place: Path) -> None:
    try:
        os.link(image, place)
    except OSError:  # a disk without links
        shutil.copyfile(image, place)
        sync(place)


def digest_of(image: Picture) -> str:
    """The digest of an image's content; empty where it cannot be read."""
    content = _content(image)
    return content_digest(content) if content else ""


def _content(image: Picture) -> bytes:
    """The bytes of its file; of an image in no file, those of a PNG; none where it cannot be read."""
    try:
        if isinstance(image, Path):
            return read_bytes(image)
        picture = Image.fromarray(image) if isinstance(image, np.ndarray) else ImageOps.exif_transpose(image)
        with io.BytesIO() as file:
            (picture if picture.mode in ("L", "RGB", "RGBA") else picture.convert("RGB")).save(file, "PNG")
            return file.getvalue()
    except Exception:  # decoders of broken files raise almost anything; who decodes it next tells the reason
        return b""
