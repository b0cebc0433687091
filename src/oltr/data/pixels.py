"""A decoded picture of any mode and size as a size × size × 3 array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from PIL import Image

from oltr.config import Frame
from oltr.data.resize import resized

# Pictures above this, which Pillow refuses by default, are made smaller in strips before anything else:
# a whole copy in another mode would take gigabytes.
LARGE = 178_956_970
STRIP = 2**24  # pixels

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


def to_pixels(image: Image.Image, size: int | Frame) -> np.ndarray:
    """A decoded picture, whatever its mode, as uint8 (size, size, 3) RGB."""
    frame = Frame(size) if isinstance(size, int) else size
    picture = _rgb(image) if image.width * image.height <= LARGE else _reduced(image, frame)
    return np.array(resized(_turned(picture, image), frame))


def whole_picture(image: Image.Image) -> np.ndarray:
    """All pixels of a decoded picture, whatever its mode, upright: uint8 (H, W, 3) RGB."""
    return np.array(_turned(_rgb(image), image))


def reduced_copy(image: Image.Image, side: int) -> Image.Image:
    """A decoded picture, whatever its mode, as RGB for people to look at, no side longer than `side`."""
    picture = _rgb(image) if image.width * image.height <= LARGE else _reduced(image, Frame(side, "crop"))
    picture = _turned(picture, image)
    picture.thumbnail((side, side), Image.Resampling.BILINEAR, reducing_gap=2.0)
    return picture


def _turned(picture: Image.Image, image: Image.Image) -> Image.Image:
    """The picture as the metadata of the image it was made from want it."""
    turn = UPRIGHT.get(_orientation(image))
    return picture if turn is None else picture.transpose(turn)


def _reduced(image: Image.Image, frame: Frame) -> Image.Image:
    """The picture as RGB, by whole factors smaller, sides still twice the frame's if they were."""
    across, down = (max(side // (2 * frame.size), 1) for side in image.size)
    if frame.resize != "stretch":  # the shape is kept
        across = down = min(across, down)
    rows = max(STRIP // image.width // down, 1) * down
    limits = None
    if _is_deep_grey(image):
        ranges = [_range(_grey(strip)) for _, strip in _strips(image, rows)]
        limits = min(low for low, _ in ranges), max(high for _, high in ranges)
    reduced = Image.new("RGB", (-(-image.width // across), -(-image.height // down)))
    for top, strip in _strips(image, rows):
        reduced.paste(_rgb(strip, limits).reduce((across, down)), (0, top // down))
    return reduced


def _strips(image: Image.Image, rows: int) -> Iterator[tuple[int, Image.Image]]:
    for top in range(0, image.height, rows):
        yield top, image.crop((0, top, image.width, min(top + rows, image.height)))


def _rgb(image: Image.Image, limits: tuple[float, float] | None = None) -> Image.Image:
    """The picture as RGB, transparency on white; `limits` are the least and greatest grey of the whole."""
    if _is_deep_grey(image):
        values = _grey(image)
        return Image.fromarray(_eight_bits(values, image.mode, *(limits or _range(values)))).convert("RGB")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")


def _is_deep_grey(image: Image.Image) -> bool:
    """Whether it has grey values of more than 8 bits."""
    return image.mode.startswith("I") or image.mode == "F"


def _grey(image: Image.Image) -> np.ndarray:
    return np.nan_to_num(np.asarray(image).astype(np.float64))


def _range(values: np.ndarray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _eight_bits(values: np.ndarray, mode: str, low: float, high: float) -> np.ndarray:
    """Grey values from low to high as 0..255: 16-bit by its full range, other ranges by their own."""
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
