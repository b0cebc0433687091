"""Scans larger than Pillow allows by default, up to the stated bound."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from oltr.data import images, pixels
from oltr.data.images import MOST_PIXELS, UnreadableImage, decode_image
from oltr.data.pixels import LARGE, to_pixels

WIDTH, HEIGHT = 20_000, 10_000


def png(width: int, height: int, rows: bytes) -> bytes:
    """A PNG of one bit a pixel from its packed rows."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    data = zlib.compress(rows, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_a_png_of_200_megapixels():
    assert WIDTH * HEIGHT > LARGE
    black, white = (b"\0" + value * (WIDTH // 8) for value in (b"\0", b"\xff"))
    content = png(WIDTH, HEIGHT, black * (HEIGHT // 2) + white * (HEIGHT // 2))
    found, size = decode_image(content, 16, "scan.png")
    assert size == (WIDTH, HEIGHT)
    assert (found[:7] == 0).all() and (found[9:] == 255).all()


def test_a_jpeg_of_200_megapixels():
    buffer = io.BytesIO()
    Image.new("L", (WIDTH, HEIGHT), 200).save(buffer, "JPEG", quality=30)
    found, size = decode_image(buffer.getvalue(), 16, "scan.jpg")
    assert size == (WIDTH, HEIGHT) and np.abs(found.astype(int) - 200).max() <= 2


@pytest.mark.parametrize("side", [23_000, 60_000])  # Pillow's limit is twice what it is set to
def test_above_the_bound_the_limit_is_named(side):
    assert side**2 > MOST_PIXELS
    with pytest.raises(UnreadableImage, match="more than 500 megapixels") as refused:
        decode_image(png(side, side, b"\0"), 16, "huge.png")
    assert refused.value.try_this == "a smaller copy of it"


def test_pillows_own_limit_is_as_it_was_afterwards():
    before = Image.MAX_IMAGE_PIXELS
    decode_image(png(8, 1, b"\0\xff"), 4, "a.png")
    with pytest.raises(UnreadableImage):
        decode_image(b"none", 4, "b.png")
    assert Image.MAX_IMAGE_PIXELS == before != images.MOST_PIXELS


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "P", "1", "L", "CMYK", "I;16", "I", "F"])
def test_strip_by_strip_is_as_the_whole(mode, monkeypatch):
    ramp = np.add.outer(np.arange(90), np.arange(70)) / 158  # 0..1, as smooth as a scan made smaller is
    if mode == "I;16":
        picture = Image.fromarray((65535 * ramp).astype(np.uint16))
    elif mode in ("I", "F"):
        picture = Image.fromarray((3e5 * ramp - 1e5).astype(np.int32 if mode == "I" else np.float32))
    else:
        layers = np.stack([255 * ramp, 255 * ramp[::-1], 255 * (1 - ramp), 60 + 150 * ramp], axis=-1)
        picture = (
            Image.fromarray(layers.astype(np.uint8), "RGBA")
            .convert("RGB" if mode in ("P", "CMYK", "1", "L") else mode)
            .convert(mode)
        )
    assert picture.mode == mode
    whole = to_pixels(picture, 10).astype(int)
    monkeypatch.setattr(pixels, "LARGE", 0)
    monkeypatch.setattr(pixels, "STRIP", 700)
    strips = to_pixels(picture, 10).astype(int)
    assert np.abs(strips - whole).max() <= (60 if mode == "1" else 12)
    assert np.abs(strips - whole).mean() <= (12 if mode == "1" else 4)
