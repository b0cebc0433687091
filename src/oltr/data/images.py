"""One image file, whatever its kind, to a size × size × 3 array."""

from __future__ import annotations

import io
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, UnidentifiedImageError

from oltr.config import Frame
from oltr.data.heif import CURE, is_heif, register_heif
from oltr.data.pixels import LARGE, reduced_copy, to_pixels
from oltr.data.records import BrokenRecord, read_record, record_place
from oltr.errors import UserError

# Pillow warns about odd metadata and large pictures on the console. Set once at import:
# `warnings.catch_warnings` is not safe with threads.
warnings.filterwarnings("ignore", module=r"PIL\.")
logging.getLogger("PIL").addHandler(logging.NullHandler())

MOST_PIXELS = 500_000_000  # of an image that is read; Pillow alone refuses those above `LARGE`
NO_FILE = "there is no such file"


class UnreadableImage(UserError):
    """An image that cannot be read or decoded: its path, the reason, and what to try."""

    def __init__(self, path: str | Path, reason: str, try_this: str = "remove it or save it anew"):
        self.path, self.reason = Path(path), reason
        advice = "another path, or data without it" if reason == NO_FILE else try_this
        super().__init__(f"The image {path} cannot be read: {reason}.", try_this=advice)

    def __reduce__(self):  # so that it can leave a worker process
        return type(self), (self.path, self.reason, self.try_this)


def read_image(path: str | Path, size: int | Frame) -> np.ndarray:
    """The picture as uint8 (size, size, 3) RGB: upright, transparency on white, by default stretched."""
    try:
        content = read_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        raise UnreadableImage(path, NO_FILE) from None
    except OSError as error:
        raise UnreadableImage(path, error.strerror or "it cannot be opened") from None
    return decode_image(content, size, path)[0]


def read_bytes(path: str | Path) -> bytes:
    """The bytes of an image file, or of an image in a record file (`train.rec/000000123456.jpg`)."""
    path = Path(path)
    try:
        return path.read_bytes()
    except (NotADirectoryError, FileNotFoundError):  # which of the two depends on the system
        place = record_place(path)
        if place is None:
            raise
    try:
        return read_record(*place).image
    except BrokenRecord as error:
        raise UnreadableImage(path, error.reason) from None


def decode_image(
    content: bytes, size: int | Frame, path: str | Path, most_pixels: int = MOST_PIXELS
) -> tuple[np.ndarray, tuple[int, int]]:
    """The pixels of a file's bytes, as `read_image` gives them, and the picture's own width and height."""
    with _opened(content, path, 2 * (size if isinstance(size, int) else size.size), most_pixels) as opened:
        return to_pixels(opened.image, size), opened.width_height


def small_copy(content: bytes, side: int, path: str | Path, most_pixels: int = MOST_PIXELS) -> bytes:
    """A picture of a file's bytes as JPEG, upright, its longer side at most `side`, without metadata."""
    with _opened(content, path, side, most_pixels) as opened, io.BytesIO() as file:
        # Pillow writes the comment of what it opened, unless there is another.
        reduced_copy(opened.image, side).save(file, "JPEG", quality=85, comment=b"")
        return file.getvalue()


class _Opened(NamedTuple):
    image: Image.Image  # loaded, JPEG maybe at a fraction of its size
    width_height: tuple[int, int]  # of the whole picture


@contextmanager
def _opened(content: bytes, path: str | Path, side: int, most_pixels: int) -> Iterator[_Opened]:
    """A picture decoded for use at about `side`; what goes wrong in the block, too, is an UnreadableImage."""
    if not content:
        raise UnreadableImage(path, "the file is empty (0 bytes)")
    if is_heif(content) and not register_heif():
        raise UnreadableImage(path, f"it is HEIC, which needs another package: {CURE}", CURE)
    try:
        with _limit, Image.open(io.BytesIO(content)) as image:
            width_height = image.size
            if image.width * image.height > most_pixels:
                raise Image.DecompressionBombError
            # JPEG can be decoded at 1/2, 1/4 or 1/8: much quicker, and still at least the size wanted.
            image.draft(None, (side, side))
            with _one_at_a_time if image.width * image.height > LARGE else nullcontext():
                image.load()
                yield _Opened(image, width_height)
    except UnidentifiedImageError:
        raise UnreadableImage(path, "it is not an image, or of a kind that is not known") from None
    except Image.DecompressionBombError:
        most = min(most_pixels, MOST_PIXELS) // 10**6
        reason = f"it has more than {most} megapixels, the most that is read"
        raise UnreadableImage(path, reason, "a smaller copy of it") from None
    except MemoryError:
        raise UnreadableImage(path, "it does not fit in memory") from None
    except Exception as error:
        # Decoders of broken files raise almost anything (OSError, SyntaxError, struct.error ...).
        reason = " ".join(str(error).split()).rstrip(".")
        raise UnreadableImage(path, reason or type(error).__name__) from None


class _PillowLimit:
    """Pillow's own limit raised to ours while any thread decodes: the setting is the whole process's."""

    def __init__(self) -> None:
        self.lock, self.inside, self.before = threading.Lock(), 0, Image.MAX_IMAGE_PIXELS

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, MOST_PIXELS
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                Image.MAX_IMAGE_PIXELS = self.before


_limit = _PillowLimit()
_one_at_a_time = threading.Lock()  # for pictures that take gigabytes to decode
