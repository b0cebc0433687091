"""The seven colour operations against Pillow and a loop, and how often each is drawn."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from oltr.config import DataConfig
from oltr.data.augment import Augment, draw_views, draws_per_view
from oltr.data.colour import KINDS, recolour
from oltr.samplers import generator

STILL = {"flip": False, "jitter": 0.0, "mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}


def pictures(number, size, seed=0):
    """Noise over part of the range, so that auto-contrast has room."""
    random = torch.Generator().manual_seed(seed)
    return torch.randint(20, 231, (number, 3, size, size), generator=random, dtype=torch.uint8)


def blur(values):
    """Means of 3×3 pixels, the edge repeated."""
    side, found = values.shape[0], np.zeros(values.shape)
    for y in range(side):
        for x in range(side):
            near = [
                values[min(max(y + down, 0), side - 1), min(max(x + across, 0), side - 1)]
                for down in (-1, 0, 1)
                for across in (-1, 0, 1)
            ]
            found[y, x] = np.mean(near, axis=0)
    return found


def by_hand(image, kind, amount):
    """One operation on a picture (S×S×3, uint8), by Pillow where it has it; 0..1."""
    picture, a = Image.fromarray(image), 0.1 + 1.8 * amount
    if kind == "sharpness":
        values = image / 255
        return np.clip(a * values + (1 - a) * blur(values), 0, 1)
    if kind == "solarise":
        picture = ImageOps.solarize(picture, threshold=int(60 + 196 * amount) + 1)
    elif kind == "posterise":
        picture = ImageOps.posterize(picture, bits=8 - (3 + int(4 * amount)))
    elif kind == "auto-contrast":
        picture = ImageOps.autocontrast(picture)
    elif kind == "brightness":
        picture = ImageEnhance.Brightness(picture).enhance(a)
    elif kind == "contrast":
        picture = ImageEnhance.Contrast(picture).enhance(a)
    else:
        picture = ImageEnhance.Color(picture).enhance(a)
    return np.asarray(picture) / 255


@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_is_pillows(kind):
    images, amounts = pictures(30, 9), torch.linspace(0, 0.999, 30)
    which = torch.full((30,), (KINDS.index(kind) + 0.5) / len(KINDS))
    found = recolour(images, torch.stack([which, amounts], dim=1), 1.0).permute(0, 2, 3, 1).numpy()
    exact = kind in ("solarise", "posterise", "sharpness")  # Pillow rounds the others, and their mean or grey
    for image, amount, view in zip(images.permute(0, 2, 3, 1).numpy(), amounts.tolist(), found, strict=True):
        expected = by_hand(np.ascontiguousarray(image), kind, amount)
        np.testing.assert_allclose(view, expected, atol=1e-6 if exact else 1.5 / 255)
    changed = (torch.from_numpy(found).permute(0, 3, 1, 2) - images / 255).abs().amax(dim=(1, 2, 3))
    assert (changed > 0.02).sum() >= 24


def test_auto_contrast_fills_the_range_of_each_colour_and_leaves_a_flat_one():
    images = pictures(4, 8)
    images[:, 1] = 77
    which = torch.tensor([(KINDS.index("auto-contrast") + 0.5) / len(KINDS), 0.5]).expand(4, -1)
    found = recolour(images, which, 1.0)
    torch.testing.assert_close(found[:, ::2].amin(dim=(2, 3)), torch.zeros(4, 2), rtol=0, atol=1e-6)
    torch.testing.assert_close(found[:, ::2].amax(dim=(2, 3)), torch.ones(4, 2), rtol=0, atol=1e-6)
    assert torch.equal(found[:, 1], images[:, 1] / 255)


@pytest.mark.parametrize("chance", [0.25, 0.8, 1.0])
def test_the_operations_are_equally_likely_and_the_other_images_untouched(chance):
    images = pictures(7000, 4)
    draws = torch.from_numpy(generator(3).random((7000, 2), dtype=np.float32))
    found = recolour(images, draws, chance)
    untouched = draws[:, 0] >= chance
    assert torch.equal(found[untouched], images[untouched] / 255)
    # Which operation an image had is known by making them all.
    every = torch.stack([(torch.arange(7) + 0.5) / 7] * 7000, dim=1)  # 7×7000
    made = [recolour(images, torch.stack([which, draws[:, 1]], dim=1), 1.0) for which in every]
    same = torch.stack([(found == one).flatten(1).all(dim=1) for one in made], dim=1) & ~untouched[:, None]
    assert (same.any(dim=1) | untouched).all()
    shares = (
        (same & (same.sum(dim=1, keepdim=True) == 1)).float().mean(dim=0)
    )  # a factor of 1 changes nothing
    np.testing.assert_allclose(shares.numpy(), chance / 7, atol=0.02)


def test_the_black_beside_a_picture_stays_black():
    config = DataConfig(16, 16, crop="padded", colour=1.0, affine=1.0, **STILL)
    images = pictures(200, 16).clamp(min=130)
    views = Augment(config).train(images, draw_views(generator(1), 200, draws_per_view(config)))
    beside = Augment(DataConfig(16, 16, crop="padded", affine=1.0, **STILL)).train(
        images, draw_views(generator(1), 200, draws_per_view(config))
    )
    outside = (beside == 0).all(dim=1, keepdim=True).expand_as(views)
    assert outside.float().mean() > 0.05 and (views[outside] == 0).all()


@pytest.mark.parametrize("crop", ["resized", "random", "padded"])
def test_images_without_an_operation_look_as_they_did_to_the_bit(crop):
    plain, strong = (DataConfig(16, 20, crop=crop, colour=chance) for chance in (0.0, 0.5))
    images, draws = pictures(60, 20), draw_views(generator(4), 60, draws_per_view(strong))
    before, after = (Augment(config).train(images, draws) for config in (plain, strong))
    still = draws[:, 36] >= 0.5
    assert torch.equal(after[still], before[still]) and 15 < still.sum() < 45
    assert (after != before).flatten(1).any(dim=1)[~still].float().mean() > 0.9
