"""Pictures to squares in our own order of passes, against Pillow's one call."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from oltr.config import DataConfig, Frame
from oltr.data.augment import Augment
from oltr.data.images import decode_image
from oltr.data.pixels import UPRIGHT, to_pixels, whole_picture
from oltr.data.resize import resized


def noise(height: int, width: int) -> Image.Image:
    rng = np.random.default_rng(height * 10_000 + width)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(24, 24), (10, 13), (40, 90), (150, 150), (201, 313), (77, 1000)])
def test_a_wide_picture_is_stretched_as_pillow_does_it(size, interpolation):
    picture = noise(*size)
    whole = picture.resize((24, 24), Image.Resampling[interpolation.upper()], reducing_gap=3.0)
    np.testing.assert_array_equal(resized(picture, Frame(24, "stretch", interpolation)), whole)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(24, 24), (13, 10), (41, 90), (90, 41), (150, 155), (313, 201), (1000, 77)])
def test_the_middle_is_cut_out_as_pillow_does_it(size, interpolation):
    picture, (height, width) = noise(*size), size
    side = min(size)
    box = ((width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2)
    whole = picture.resize((24, 24), Image.Resampling[interpolation.upper()], box, reducing_gap=3.0)
    gaps = np.array(resized(picture, Frame(24, "crop", interpolation))).astype(int) - np.array(whole)
    # Pillow takes columns first where a picture is tall, and rounds to whole numbers in between.
    assert np.abs(gaps).max() <= (0 if width >= height else 8) and np.abs(gaps).mean() < 0.3


# Wide, tall and square; larger and smaller than 256; rests of half a pixel to either side of an even number.
SHAPES = [(375, 500), (500, 375), (256, 256), (100, 133), (333, 500), (500, 334), (256, 259), (60, 900)]


@pytest.mark.parametrize("size", SHAPES)
def test_evaluation_by_the_short_side_is_torchvisions_resize_and_centre_crop(size):
    transforms = pytest.importorskip("torchvision.transforms")
    picture, config = noise(*size), DataConfig(image_size=224, stored_size=256, resize="short-side")
    pixels = torch.from_numpy(to_pixels(picture, config.frame)).permute(2, 0, 1)[None]
    released = transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize(config.mean, config.std),
        ]
    )
    gaps = (Augment(config).evaluate(pixels)[0] - released(picture)).abs() * 255 * min(config.std)
    # Pillow takes columns first where a picture is tall, and rounds to whole numbers in between.
    assert gaps.max() < 2.1 and gaps.mean() < (0.01 if size[1] >= size[0] else 0.2)


@pytest.mark.parametrize("size", [(375, 500), (500, 375), (300, 301), (60, 900)])
def test_the_short_side_shows_what_the_middle_does_to_a_pixel(size):
    across, down = np.meshgrid(np.linspace(0, 250, size[1]), np.linspace(0, 250, size[0]))
    ramp = Image.fromarray(np.stack([across, down, across], axis=2).astype(np.uint8))
    by_side, middle, stretched = (
        np.array(resized(ramp, Frame(64, kind))).astype(int) for kind in ("short-side", "crop", "stretch")
    )
    assert np.abs(by_side - middle).max() <= 8
    if max(size) > 1.2 * min(size):
        assert np.abs(by_side - stretched).max() > 25  # the ends are left out


@pytest.mark.parametrize("orientation", UPRIGHT)
@pytest.mark.parametrize("frame", [Frame(24), Frame(24, "crop", "bicubic"), Frame(24, "short-side")])
def test_a_turned_photo_has_the_pixels_of_one_saved_upright(orientation, frame):
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    picture = noise(201, 313)
    picture.save(file, "PNG", exif=exif)
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(file.getvalue())))
    found, _ = decode_image(file.getvalue(), frame, "a.png")
    np.testing.assert_array_equal(found, to_pixels(Image.fromarray(np.asarray(upright)), frame))
    np.testing.assert_array_equal(whole_picture(Image.open(io.BytesIO(file.getvalue()))), np.asarray(upright))
