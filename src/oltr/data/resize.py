"""A picture to a square of pixels, by Pillow, the same in each of its versions and in an exported graph.

`Image.resize(..., reducing_gap=3.0)` would do the same in one call, but versions of Pillow differ in whether
they scale rows or columns first, and each rounds to 8 bits in between.
"""

from __future__ import annotations

import math

from PIL import Image

from oltr.config import Frame

GAP = 3.0  # cells of pixels are averaged first where as many pixels as this are left for each one wanted
SUPPORT = {"bilinear": 1.0, "bicubic": 2.0}  # pixels to each side that a filter reaches

Span = tuple[float, float]


def resized(picture: Image.Image, frame: Frame) -> Image.Image:
    """The RGB picture, or the largest square in its middle, at the frame's size: first across, then down."""
    size, resample = frame.size, Image.Resampling[frame.interpolation.upper()]
    short = min(picture.size)
    (across, left, right, fx), (down, top, bottom, fy) = (_span(side, short, frame) for side in picture.size)
    if (fx, fy) != (1, 1) or (left, top, right, bottom) != (0, 0, *picture.size):
        picture = picture.reduce((fx, fy), (left, top, right, bottom))
    low, high = ((end - left) / fx for end in across)
    picture = picture.resize((size, picture.height), resample, (low, 0, high, picture.height))
    low, high = ((end - top) / fy for end in down)
    return picture.resize((size, size), resample, (0, low, size, high))


def _span(side: int, short: int, frame: Frame) -> tuple[Span, int, int, int]:
    """What is kept of an axis; the pixels, from first to last − 1, that the filter reaches from there; and
    how many of these are averaged. `short` is the picture's short side."""
    low, high = _kept(side, short, frame)
    scale = (high - low) / frame.size
    reach = (SUPPORT[frame.interpolation] - 0.5) * max(scale, 1.0)
    first, last = max(math.floor(low - reach), 0), min(math.ceil(high + reach), side)
    return (low, high), first, last, max(int(scale / GAP), 1)


def _kept(side: int, short: int, frame: Frame) -> Span:
    """Where the part of an axis that becomes the frame begins and ends."""
    if frame.resize == "short-side":
        becomes = frame.size * side // short  # pixels of the whole axis, of which the middle ones are kept
        begin = round((becomes - frame.size) / 2)
        return begin * side / becomes, (begin + frame.size) * side / becomes
    low = (side - short) / 2 if frame.resize == "crop" else 0.0
    return low, side - low
