"""Erased squares against a loop over pixels."""

import numpy as np
import pytest
import torch

from oltr.config import DataConfig
from oltr.data.augment import Augment, draw_views, draws_per_view
from oltr.data.erase import erase
from oltr.samplers import generator


@pytest.mark.parametrize("chance", [0.4, 1.0])
def test_a_square_around_any_point_becomes_zero(chance):
    number, size = 300, 10
    x = torch.rand(number, 3, size, size, generator=torch.Generator().manual_seed(0)) + 1
    draws = torch.from_numpy(generator(1).random((number, 4), dtype=np.float32))
    found, erased, cut_off = erase(x, draws, chance), 0, 0
    for view, image, (whether, side, down, across) in zip(found, x, draws.tolist(), strict=True):
        expected, half = image.clone(), (0.2 + 0.4 * side) / 2
        erased += whether < chance
        cut_off += whether < chance and not (half <= down <= 1 - half and half <= across <= 1 - half)
        for row in range(size):
            for column in range(size):
                inside = abs((row + 0.5) / size - down) < half and abs((column + 0.5) / size - across) < half
                if inside and whether < chance:
                    expected[:, row, column] = 0
        assert torch.equal(view, expected)
    assert abs(erased / number - chance) < 0.1 and cut_off > erased / 3
    shares = (found == 0).float().mean(dim=(1, 2, 3))
    assert 0 < shares.max() <= 0.36 + 0.06


def test_the_square_has_the_mean_colour_and_the_rest_is_untouched():
    plain, strong = (DataConfig(32, 36, erase=chance) for chance in (0.0, 1.0))
    random = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (20, 3, 36, 36), generator=random, dtype=torch.uint8)
    draws = draw_views(generator(2), 20, draws_per_view(strong))
    before, after = (Augment(config).train(images, draws) for config in (plain, strong))
    changed = before != after
    assert changed.flatten(1).any(dim=1).all() and (after[changed] == 0).all()  # 0: the mean, normalised
