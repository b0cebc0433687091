"""Cutmix and mixup against loops over single pixels, and the partners that images are mixed with."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from oltr.config import DataConfig, StageConfig
from oltr.data import batches as feed
from oltr.data.augment import draw_views
from oltr.data.batches import MixedBatch, TrainBatch, TrainBatches
from oltr.data.image_access import Images
from oltr.data.mixing import mix
from oltr.samplers import generator

CPU = torch.device("cpu")
MIXED = StageConfig(batch_size=12, views=3, mix="cutmix", mix_partner="balanced")


def pictures(number=40, seed=0):
    views, partners = np.random.default_rng(seed).random((2, number, 3, 9, 9), dtype=np.float32)
    draws = np.random.default_rng(seed + 1).random((number, 5), dtype=np.float32)
    return views, partners, draws


def slow_cutmix(view, partner, draw, chance):
    """One image, pixel by pixel; what is left of it."""
    result, size = view.copy(), view.shape[1]
    share = draw[1] if draw[0] < chance else np.float32(1)
    side = math.floor(np.float32(size) * np.sqrt(np.float32(1) - share))
    top, left = (math.floor(np.float32(size) * at) - side // 2 for at in draw[2:4])
    replaced = 0
    for row in range(size):
        for column in range(size):
            if top <= row < top + side and left <= column < left + side:
                result[:, row, column] = partner[:, row, column]
                replaced += 1
    return result, 1 - replaced / size**2


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_cutmix_replaces_a_box_and_tells_the_share_of_pixels_left(chance):
    views, partners, draws = pictures()
    found, share = mix(*map(torch.from_numpy, (views, partners, draws)), "cutmix", chance)
    slow = [slow_cutmix(*each, chance) for each in zip(views, partners, draws, strict=True)]
    np.testing.assert_array_equal(found, np.stack([image for image, _ in slow]))
    np.testing.assert_allclose(share, [left for _, left in slow], atol=1e-6)
    left = (found.numpy() == views).all(axis=1).mean(axis=(1, 2))
    np.testing.assert_allclose(share, left, atol=1e-6)
    assert (share < 1).any() == (chance > 0)


def test_mixup_is_a_weighted_sum():
    views, partners, draws = pictures()
    found, share = mix(*map(torch.from_numpy, (views, partners, draws)), "mixup", 0.5)
    for number, (view, partner, draw) in enumerate(zip(views, partners, draws, strict=True)):
        weight = draw[1] if draw[0] < 0.5 else 1.0
        assert share[number].item() == pytest.approx(weight)
        np.testing.assert_allclose(found[number], weight * view + (1 - weight) * partner, atol=1e-6)
        if weight == 1:
            np.testing.assert_array_equal(found[number], view)


def some_images(labels):
    """Of 2×2 pixels that are all the image's number."""
    pixels = torch.arange(len(labels), dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 2, 2, 3).contiguous()
    return Images(2, np.asarray(labels), np.arange(len(labels)), pixels)


def long_tail():
    return some_images(np.repeat(np.arange(5), [60, 20, 10, 4, 2]))


def test_a_balanced_partner_has_any_class_and_then_any_of_its_images():
    images, drawn = long_tail(), []
    for epoch in range(100):
        batches = TrainBatches(images, MIXED, (0, 1, epoch), CPU, 0)
        drawn.append(batches.partners().reshape(-1))
    drawn = np.concatenate(drawn)
    assert len(drawn) == 9600
    classes = np.bincount(images.labels[drawn]) / len(drawn)
    np.testing.assert_allclose(classes, 0.2, atol=0.02)
    of_first = np.bincount(drawn, minlength=96)[:60] / (classes[0] * len(drawn))
    np.testing.assert_allclose(of_first, 1 / 60, atol=0.015)


def test_a_partner_of_the_batch_is_another_order_of_it():
    stage = dataclasses.replace(MIXED, mix_partner="batch")
    batches = TrainBatches(long_tail(), stage, (0, 1, 2), CPU, 0)
    order, partners = batches.order().reshape(8, 12), batches.partners()
    np.testing.assert_array_equal(np.sort(order, axis=1), np.sort(partners, axis=1))
    assert (order != partners).mean() > 0.7
    assert len({tuple(np.argsort(np.argsort(row))) for row in partners}) == 8  # each step another


@pytest.mark.parametrize("partner", ["batch", "balanced"])
def test_partners_are_read_beside_their_images_and_depend_on_the_key_alone(partner):
    images, stage = long_tail(), dataclasses.replace(MIXED, mix_partner=partner)

    def epoch(*key):
        return list(TrainBatches(images, stage, key, CPU, 0))

    batches = TrainBatches(images, stage, (3, 1, 0), CPU, 0)
    whole = np.concatenate([batches.order().reshape(8, 12), batches.partners()], axis=1)
    for number, (batch, again) in enumerate(zip(batches, epoch(3, 1, 0), strict=True)):
        assert isinstance(batch, MixedBatch)
        assert batch.pixels[:, 0, 0, 0].tolist() == whole[number].tolist()
        assert batch.labels.tolist() == images.labels[whole[number]].tolist()
        assert batch.draws.shape == (4 * 12, 34) and batch.mixing.shape == (12, 5)
        assert all(torch.equal(one, other) for one, other in zip(batch, again, strict=True))
    for key in [(4, 1, 0), (3, 2, 0), (3, 1, 1)]:
        other = epoch(*key)[0]
        first = next(iter(batches))
        assert not torch.equal(first.mixing, other.mixing) and not torch.equal(first.pixels, other.pixels)


@pytest.mark.parametrize("mix_kind", ["none", "cutmix"])
@pytest.mark.parametrize(("erase", "numbers"), [(0.0, 34), (0.5, 42)])
def test_the_first_view_is_drawn_as_the_only_one_and_no_two_alike(mix_kind, erase, numbers):
    stage = dataclasses.replace(MIXED, mix=mix_kind)
    alone = TrainBatches(long_tail(), StageConfig(batch_size=12), (3, 1, 0), CPU, 0)
    for step, (one, more) in enumerate(
        zip(alone, TrainBatches(long_tail(), stage, (3, 1, 0), CPU, 0, DataConfig(erase=erase)), strict=True)
    ):
        assert type(one) is TrainBatch and one.draws.shape == (12, 34)
        assert torch.equal(one.draws, more.draws[:12, :34])
        assert torch.equal(one.pixels, more.pixels[:12]) and torch.equal(one.labels, more.labels[:12])
        assert len(more.draws.unique(dim=0)) == len(more.draws) == (36 if mix_kind == "none" else 48)
        assert torch.equal(more.draws[:12], draw_views(generator(3, 1, 0, step), 12, numbers))


def test_the_parts_of_two_processes_make_up_the_mixed_batch_of_one(monkeypatch):
    def epoch():
        return list(TrainBatches(long_tail(), MIXED, (0, 2, 1), CPU, 0))

    whole, parts = epoch(), []
    monkeypatch.setattr(feed, "world_size", lambda: 2)
    for rank in range(2):
        monkeypatch.setattr(feed, "rank", lambda rank=rank: rank)
        parts.append(epoch())
    for batch, first, second in zip(whole, *parts, strict=True):
        for name, tensor in batch._asdict().items():
            halves = [getattr(part, name).split(6) for part in (first, second)]
            # View by view, the first process's images before the second's.
            joined = torch.cat([half for both in zip(*halves, strict=True) for half in both])
            assert torch.equal(joined, tensor), name
