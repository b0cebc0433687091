"""Mosaics pixel by pixel, what they are made of, and their draws as they come with a batch."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from oltr.config import StageConfig
from oltr.data import batches as feed
from oltr.data.augment import draw_views
from oltr.data.batches import MOSAICS, TrainBatches
from oltr.data.mosaics import half_of, mosaics
from oltr.samplers import generator

CPU = torch.device("cpu")


def numbered(images, height, width):
    """Pictures whose every value tells its image, colour and place."""
    return torch.arange(images * 3 * height * width).view(images, 3, height, width)


def slow_mosaic(images, group, draws):
    """One mosaic: the tiles in the order of their draws' ranks."""
    _, colours, height, width = images.shape
    made = torch.empty(colours, height, width, dtype=images.dtype)
    order = sorted(range(16), key=lambda tile: draws[tile])
    for y in range(height):
        for x in range(width):
            row, column = int(4 * y / height), int(4 * x / width)
            made[:, y, x] = images[group[order[4 * row + column]], :, y, x]
    return made


@pytest.mark.parametrize(("images", "height", "width"), [(32, 8, 8), (16, 32, 32), (40, 10, 7), (21, 4, 5)])
def test_each_tile_is_another_image_at_its_place(images, height, width):
    pictures = numbered(images, height, width)
    draws = torch.rand(half_of(images), 34, generator=torch.Generator().manual_seed(0))
    found = mosaics(pictures, draws)
    assert found.shape == (half_of(images), 3, height, width)
    for number, made in enumerate(found):
        first = min(16 * (2 * number // 16), images - 16)
        group = list(range(first, first + 16))
        assert torch.equal(made, slow_mosaic(pictures, group, draws[number].tolist()))
        assert sorted((made // (3 * height * width)).unique().tolist()) == group


@pytest.mark.parametrize("images", [1, 2, 5, 15])
def test_of_few_images_some_have_several_tiles(images):
    draws = torch.rand(half_of(images), 34, generator=torch.Generator().manual_seed(0))
    found = mosaics(numbered(images, 4, 4), draws) // 48
    assert len(found) == half_of(images) >= 1
    for made in found:
        assert sorted(made[0].flatten().tolist()) == sorted(tile % images for tile in range(16))


@pytest.mark.parametrize("images", [32, 64])
def test_a_mosaic_is_the_same_whoever_makes_it(images):
    pictures, draws = numbered(images, 8, 8), torch.rand(images // 2, 34)
    halves = [mosaics(*part) for part in zip(pictures.chunk(2), draws.chunk(2), strict=True)]
    assert torch.equal(torch.cat(halves), mosaics(pictures, draws))


class SomeImages:
    """Seventy pictures, each of one grey."""

    def __init__(self):
        self.labels = np.arange(70) % 5

    def __len__(self):
        return 70

    def batches(self, steps, device, workers):
        for step in steps:
            yield torch.from_numpy(step.astype(np.uint8)).view(-1, 1, 1, 1).expand(-1, 3, 4, 4)


@pytest.mark.parametrize("changes", [{}, {"views": 2}, {"views": 2, "mix": "cutmix"}, {"mix": "mixup"}])
def test_their_draws_follow_those_of_the_views_and_change_no_others(changes):
    stage = StageConfig(batch_size=32, **changes)
    without = TrainBatches(SomeImages(), stage, (3, 1, 0), CPU, 0)
    batches = TrainBatches(SomeImages(), dataclasses.replace(stage, mosaics=0.5), (3, 1, 0), CPU, 0)
    drawn = []
    for step, (plain, batch) in enumerate(zip(without, batches, strict=True)):
        for name, tensor in plain._asdict().items():
            assert torch.equal(tensor, getattr(batch, name)[: len(tensor)]), name
        rest = batch.draws[len(plain.draws) :]
        assert torch.equal(rest, draw_views(generator(3, 1, 0, step, MOSAICS), 16))
        drawn.append(rest)
    assert not torch.equal(*drawn)
    (other, _) = TrainBatches(SomeImages(), dataclasses.replace(stage, mosaics=0.5), (3, 1, 1), CPU, 0)
    assert not torch.equal(other.draws[-16:], drawn[0])


@pytest.mark.parametrize("size", [32, 10])
def test_the_parts_of_two_processes_make_up_the_draws_of_one(monkeypatch, size):
    def epoch():
        return list(TrainBatches(SomeImages(), StageConfig(batch_size=size, mosaics=1), (0, 2, 1), CPU, 0))

    whole, parts = epoch(), []
    monkeypatch.setattr(feed, "world_size", lambda: 2)
    for rank in range(2):
        monkeypatch.setattr(feed, "rank", lambda rank=rank: rank)
        parts.append(epoch())
    for batch, first, second in zip(whole, *parts, strict=True):
        joined = torch.cat([first.draws[size // 2 :], second.draws[size // 2 :]])
        # Of five images each has three mosaics, of ten there are five.
        assert torch.equal(joined[: half_of(size), :16], batch.draws[size:, :16])
