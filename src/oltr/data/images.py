"""One image file, whatever its kind, to a size × size × 3 array."""

from __future__ import annotations

import io
import logging
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from oltr.data.records import BrokenRecord, read_record, record_place
from oltr.errors import UserError

# Pillow warns about odd metadata and large pictures on the console. Set once at import:
# `warnings.catch_warnings` is not safe with threads.
warnings.filterwarnings("ignore", module=r"PIL\.")
logging.getLogger("PIL").addHandler(logging.NullHandler())

# EXIF tag 0x0112 to the move that makes the picture upright.
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


NO_FILE = "there is no such file"


class UnreadableImage(UserError):
    """An image that cannot be turned into pixels: its path, the reason, and what to try."""

    def __init__(self, path: str | Path, reason: str, try_this: str = "remove it or save it anew"):
        self.path, self.reason = Path(path), reason
        advice = "another path, or data without it" if reason == NO_FILE else try_this
        super().__init__(f"The image {path} cannot be read: {reason}.", try_this=advice)

    def __reduce__(self):  # so that it can leave a worker process
        return type(self), (self.path, self.reason, self.try_this)


def read_image(path: str | Path, size: int) -> np.ndarray:
    """The picture as uint8 (size, size, 3) RGB: upright, clear parts on white, stretched and not cropped."""
    try:
        content = read_bytes(path)
    except FileNotFoundError:
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


def is_there(path: Path) -> bool:
    """Whether a path names a file, or a place in a record file that exists."""
    return path.exists() or record_place(path) is not None


def decode_image(content: bytes, size: int, path: str | Path) -> tuple[np.ndarray, tuple[int, int]]:
    """The pixels of a file's bytes, as `read_image` gives them, and the picture's own width and height."""
    if not content:
        raise UnreadableImage(path, "the file is empty (0 bytes)")
    try:
        with Image.open(io.BytesIO(content)) as image:
            width_height = image.size
            # JPEG can be decoded at 1/2, 1/4 or 1/8: much quicker, and still at least twice the size wanted.
            image.draft(None, (2 * size, 2 * size))
            image.load()
            return to_pixels(image, size), width_height
    except UnidentifiedImageError:
        raise UnreadableImage(path, "it is not an image, or of a kind that is not known") from None
    except Image.DecompressionBombError:
        raise UnreadableImage(path, "it claims more pixels than any photograph has") from None
    except MemoryError:
        raise UnreadableImage(path, "it does not fit in memory") from None
    except Exception as error:
        # Decoders of broken files raise almost anything (OSError, SyntaxError, struct.error ...).
        reason = " ".join(str(error).split()).rstrip(".")
        raise UnreadableImage(path, reason or type(error).__name__) from None


def to_pixels(image: Image.Image, size: int) -> np.ndarray:
    """A decoded picture, whatever its mode, as uint8 (size, size, 3) RGB."""
    picture = _rgb(image)
    if picture.size != (size, size):
        picture = picture.resize((size, size), Image.Resampling.BILINEAR, reducing_gap=3.0)
    # Turning after stretching to a square gives the same pixels as before it, on far fewer of them.
    turn = UPRIGHT.get(_orientation(image))
    return np.array(picture if turn is None else picture.transpose(turn))


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_eight_bits(np.asarray(image), image.mode)).convert("RGB")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")


def _eight_bits(values: np.ndarray, mode: str) -> np.ndarray:
    """Grey values of more than 8 bits to 0..255: 16-bit by its full range, other ranges by their own."""
    values = np.nan_to_num(values.astype(np.float64))
    low, high = float(values.min()), float(values.max())
    if mode == "F" and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif mode == "F" and low >= 0 and high <= 255:
        low, high = 0.0, 255.0
    elif low >= 0 and high <= 65535:
        low, high = 0.0, 65535.0
    return np.rint((values - low) * (255.0 / max(high - low, 1e-12))).astype(np.uint8)


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation; read it after loading, for Pillow turns a TIFF by itself and then forgets it."""
    try:
        return int(image.getexif().get(0x0112, 1))
    except Exception:  # broken metadata is no reason to lose the picture
        return 1
