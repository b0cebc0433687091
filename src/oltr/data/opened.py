"""Every image of a manifest opened once: whether it can be read, its bytes' hash, and how it looks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image

from oltr.console import console
from oltr.data.images import NO_FILE, UnreadableImage, decode_image, read_bytes, to_pixels
from oltr.data.looks import LOOK_SIZE, Look, look_at
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack

if TYPE_CHECKING:
    from oltr.data.items import Items

AT_A_TIME = 4096  # images handed to the threads at once, so that a million files cost no memory


class Row(NamedTuple):
    """One image of the manifest and what opening it told."""

    path: str
    label: str
    split: str
    failure: str = ""  # why it could not be read
    missing: bool = False
    content: bytes = b""  # a hash of its bytes
    side: int = 0  # its shorter side in pixels
    look: Look | None = None


def open_all(manifest: Manifest, progress: Callable[[int, int], None] | None = None) -> list[Row]:
    """All rows in order; `progress(done, total)` is called now and then, else a bar is shown."""
    rows: list[Row] = []
    with console.progress("opening images") as shown:
        for row in _opened_rows(manifest):
            rows.append(row)
            if len(rows) % 64 == 0 or len(rows) == len(manifest.table):
                (progress or shown)(len(rows), len(manifest.table))
    return rows


def _opened_rows(manifest: Manifest) -> Iterator[Row]:
    table = manifest.table
    entries = [Row(*entry) for entry in zip(table["path"], table["label"], table["split"], strict=True)]
    if manifest.pack is not None:
        for row, image in zip(entries, open_pack(manifest.pack).images, strict=True):
            look = look_at(to_pixels(Image.fromarray(image), LOOK_SIZE))
            yield row._replace(content=_digest(image.tobytes()), side=len(image), look=look)
        return
    if manifest.items is not None:
        yield from (_opened_item(row, manifest.items) for row in entries)
        return
    with ThreadPoolExecutor() as threads:
        for start in range(0, len(entries), AT_A_TIME):
            yield from threads.map(
                lambda row: _opened(row, manifest.root), entries[start : start + AT_A_TIME]
            )


def _opened(row: Row, root: Path) -> Row:
    file = root / row.path
    try:
        content = read_bytes(file)
        pixels, size = decode_image(content, LOOK_SIZE, file)
    except FileNotFoundError:
        return row._replace(failure=NO_FILE, missing=True)
    except UnreadableImage as error:
        return row._replace(failure=error.reason)
    except OSError as error:
        return row._replace(failure=error.strerror or "it cannot be opened")
    return row._replace(content=_digest(content), side=min(size), look=look_at(pixels))


def _opened_item(row: Row, items: Items) -> Row:
    try:
        picture = items.picture(row.path)
        content = f"{picture.mode} {picture.size}".encode() + picture.tobytes()
        pixels = to_pixels(picture, LOOK_SIZE)
    except UnreadableImage as error:
        return row._replace(failure=error.reason)
    return row._replace(content=_digest(content), side=min(picture.size), look=look_at(pixels))


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
