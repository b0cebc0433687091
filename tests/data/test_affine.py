"""Rotations, shears and shifts against a loop over pixels, and as one resampling with the crop."""

import math

import numpy as np
import pytest
import torch

from oltr.config import DataConfig
from oltr.data.affine import cut, random_affine
from oltr.data.augment import Augment, crop_boxes, draw_views, draws_per_view
from oltr.samplers import generator

STILL = {"flip": False, "jitter": 0.0, "mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
IDENTITY = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def pictures(number, size, seed=0):
    random = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (number, 3, size, size), generator=random, dtype=torch.uint8)


def map_loop(which, amount, chance):
    """The 2×3 matrix of one image's two draws, in words."""
    if which >= chance:
        return IDENTITY
    kind, part = int(5 * which / chance), 2 * amount - 1
    if kind == 0:
        angle = math.radians(30) * part
        return [[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0]]
    if kind == 1:
        return [[1, 0.3 * part, 0], [0, 1, 0]]
    if kind == 2:
        return [[1, 0, 0], [0.3 * part, 1, 0]]
    if kind == 3:
        return [[1, 0, 0.4 * part], [0, 1, 0]]
    return [[1, 0, 0], [0, 1, 0.4 * part]]


@pytest.mark.parametrize("chance", [0.3, 0.625, 1.0])
def test_a_map_is_one_of_five_by_chance(chance):
    draws = torch.from_numpy(generator(1).random((5000, 2), dtype=np.float32))
    found = random_affine(draws, chance)
    expected = torch.tensor([map_loop(which, amount, chance) for which, amount in draws.tolist()])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)

    changes = found - torch.tensor(IDENTITY)
    rotated = changes[:, 0, 0] != 0
    entries = [(0, 1), (1, 0), (0, 2), (1, 2)]
    shares = [rotated, *((changes[:, row, column] != 0) & ~rotated for row, column in entries)]
    for share in shares:
        deviation = math.sqrt(chance / 5 * (1 - chance / 5) / 5000)
        assert float(share.float().mean()) == pytest.approx(chance / 5, abs=4 * deviation)
    for (row, column), limit in zip(entries, (0.3, 0.3, 0.4, 0.4), strict=True):
        values = changes[~rotated, row, column]
        assert 0.95 * limit < values.max() <= limit and -limit <= values.min() < -0.95 * limit
    angles = torch.rad2deg(found[:, 1, 0][rotated].asin())
    assert 28.5 < angles.max() <= 30 and -30 <= angles.min() < -28.5


def read(image, y, x, fill):
    """The value of a 3×S×S picture between four pixels, those outside black or mirrored at the edge."""
    side, total = image.shape[1], np.zeros(3)
    low_y, low_x = math.floor(y), math.floor(x)
    for row in (low_y, low_y + 1):
        for column in (low_x, low_x + 1):
            weight = (1 - abs(y - row)) * (1 - abs(x - column))
            inside = 0 <= row < side and 0 <= column < side
            if fill == "zeros" and not inside:
                continue
            mirrored = [min(place % (2 * side), 2 * side - 1 - place % (2 * side)) for place in (row, column)]
            total += weight * image[:, mirrored[0], mirrored[1]]
    return total


@pytest.mark.parametrize(
    ("crop", "fill"), [("resized", "reflection"), ("random", "reflection"), ("padded", "zeros")]
)
def test_a_view_reads_the_stored_picture_once_at_the_composed_places(crop, fill):
    """Noise, so that resampling twice would blur it."""
    number, stored, size = 40, 13, 8
    config = DataConfig(size, stored, crop=crop, affine=0.9, **STILL)
    images, draws = pictures(number, stored), draw_views(generator(2), number, draws_per_view(config))
    found = Augment(config).train(images, draws).numpy()
    margin = 1 if crop == "padded" else 0
    kinds = set()
    for b, image in enumerate(images.double().numpy() / 255):
        if crop == "resized":
            left, top, width, height = crop_boxes(draws[b : b + 1], stored, config.smallest_crop)[0].tolist()
        else:
            room = stored + 2 * margin - size + 1
            top, left = (int(draws[b, place] * room) - margin for place in (0, 1))
            width = height = size
        which, amount = draws[b, 34:36].tolist()
        kinds.add(int(5 * which / 0.9))
        matrix = np.array(map_loop(which, amount, 0.9))
        for row in range(size):
            for column in range(size):
                view = [2 * (column + 0.5) / size - 1, 2 * (row + 0.5) / size - 1, 1]
                across, down = (matrix @ view + 1) / 2  # 0..1 over the crop
                expected = read(image, top + height * down - 0.5, left + width * across - 0.5, fill)
                np.testing.assert_allclose(found[b, :, row, column], expected, atol=2e-5)
    assert kinds == {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("crop", ["resized", "random", "padded"])
def test_images_without_an_operation_look_as_they_did(crop):
    plain = DataConfig(16, 20, crop=crop, **(STILL | {"flip": True}))
    strong = DataConfig(16, 20, crop=crop, affine=0.5, **(STILL | {"flip": True}))
    images, draws = pictures(60, 20), draw_views(generator(4), 60, draws_per_view(strong))
    before, after = (Augment(config).train(images, draws) for config in (plain, strong))
    still = draws[:, 34] >= 0.5
    torch.testing.assert_close(after[still], before[still], rtol=0, atol=1e-5)
    moved = (after - before).abs().amax(dim=(1, 2, 3)) > 0.1
    assert moved[~still].float().mean() > 0.9 and 15 < still.sum() < 45  # a few amounts are next to nothing


def test_a_rotation_is_torchvisions():
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    image, boxes = pictures(1, 16) / 255, torch.tensor([[0.0, 0.0, 16.0, 16.0]])
    for part in (-1.0, 0.4):
        maps = random_affine(torch.tensor([[0.1, (part + 1) / 2]]), 1.0)
        expected = functional.rotate(image, 30 * part, functional.InterpolationMode.BILINEAR)
        torch.testing.assert_close(cut(image, boxes, 16, maps, "zeros"), expected, rtol=0, atol=1e-4)
