"""The class-aware sampler over many epochs, against a walker that really goes on."""

import numpy as np
import pytest
import torch

from oltr.config import StageConfig
from oltr.data import batches as feed
from oltr.data.batches import TrainBatches
from oltr.data.image_access import Images
from oltr.samplers import ClassAwareSampler, class_aware, generator

SIZES = [40, 17, 6, 3, 1]
LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(5), SIZES))


def splitmix64(state):
    """SplitMix64 as printed, with Python's own whole numbers: endless numbers from a state."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        yield z ^ (z >> 31)


class Cycle:
    """A list walked to its end, shuffled anew only then: endless."""

    def __init__(self, things, states):
        self.things, self.at = list(things), len(things)
        self.streams = {thing: splitmix64(int(state)) for thing, state in zip(things, states, strict=True)}

    def next(self):
        if self.at == len(self.things):
            numbers = {thing: next(self.streams[thing]) for thing in self.things}
            self.things.sort(key=numbers.get)
            self.at = 0
        self.at += 1
        return self.things[self.at - 1]


def walked(labels, length, walk, images_per_class, epochs):
    """The epochs of one walk over classes and images that is never interrupted."""
    rng, classes = generator(*walk), sorted(set(labels.tolist()))
    turns = Cycle(classes, rng.integers(2**64, size=len(classes), dtype=np.uint64))
    states, images = rng.integers(2**64, size=len(labels), dtype=np.uint64), {}
    for label in classes:
        own = np.flatnonzero(labels == label).tolist()
        images[label], states = Cycle(own, states[: len(own)]), states[len(own) :]
    for _ in range(epochs):
        order = []
        while len(order) < length:  # a visit always takes all of its images
            label = turns.next()
            order += [images[label].next() for _ in range(images_per_class)]
        yield order[:length]


@pytest.mark.parametrize("images_per_class", [1, 3, 4])
@pytest.mark.parametrize("length", [3, 60, 61, 67, 130])
def test_every_epoch_goes_on_where_the_one_before_it_ended(length, images_per_class):
    for epoch, expected in enumerate(walked(LABELS, length, (3, 2), images_per_class, 12)):
        assert class_aware(LABELS, length, (3, 2, epoch), images_per_class).tolist() == expected


def test_any_epoch_is_had_without_those_before_it():
    expected = list(walked(LABELS, 61, (3, 2), 4, 40))
    for epoch in (39, 0, 17):
        assert class_aware(LABELS, 61, (3, 2, epoch), 4).tolist() == expected[epoch]
    sampler = ClassAwareSampler(LABELS, 4, length=61, seed=8)
    for epoch, order in enumerate(walked(LABELS, 61, (8,), 4, 3)):
        sampler.set_epoch(epoch)
        assert list(sampler) == order


def test_an_image_is_seen_as_often_as_any_other_of_its_class_over_all_epochs():
    """200 images at 30 draws an epoch: 13.4 ± 0.5 times in 90 epochs; started anew each epoch, ± 3.2."""
    labels, per_epoch = np.repeat(np.arange(3), [200, 50, 7]), 89
    counts = sum(
        np.bincount(class_aware(labels, per_epoch, (0, 1, epoch), 1), minlength=len(labels))
        for epoch in range(90)
    )
    assert counts.sum() == 90 * per_epoch
    assert counts[:200].mean() == pytest.approx(13.35, abs=0.01)
    assert counts[:200].std() < 0.55
    for label in range(3):
        assert np.ptp(counts[labels == label]) <= 1  # walked to the end before anything comes again
    visits = [counts[labels == label].sum() for label in range(3)]
    assert max(visits) - min(visits) <= 1


def test_rounds_of_classes_go_on_too():
    labels = np.arange(7)  # 4 classes an epoch: rounds of seven lie across epochs
    drawn = np.concatenate([class_aware(labels, 4, (0, 1, epoch), 1) for epoch in range(70)]).reshape(40, 7)
    assert (np.sort(drawn, axis=1) == np.arange(7)).all()


def test_all_orders_of_a_small_class_are_equally_likely():
    labels = np.zeros(3, dtype=np.int64)
    orders = class_aware(labels, 3 * 6000, (0, 1, 0), 3).reshape(-1, 3)
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 6
    assert ((counts - 1000) ** 2 / 1000).sum() < 20.5  # χ² of 5 degrees of freedom, 99.9 %
    repeats = (orders[1:] == orders[:-1]).all(axis=1).mean()
    assert repeats == pytest.approx(1 / 6, abs=0.02)  # a pass says nothing about the next


def test_streams_are_those_of_the_walk_alone():
    def orders(*walk):
        return tuple(class_aware(LABELS, 60, (*walk, 5), 4).tolist())

    assert orders(1, 2) == orders(1, 2)
    assert len({orders(1, 2), orders(1, 1), orders(2, 2), orders(2, 1)}) == 4


@pytest.mark.parametrize("world", [1, 2, 3])
def test_the_parts_of_the_processes_make_up_the_walk(world, monkeypatch):
    pixels = torch.arange(len(LABELS), dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 1, 3)
    images = Images(1, LABELS, np.arange(len(LABELS)), pixels.contiguous())
    stage = StageConfig(batch_size=30, sampler="class-aware", images_per_class=4)
    monkeypatch.setattr(feed, "world_size", lambda: world)

    def part(rank, epoch):
        monkeypatch.setattr(feed, "rank", lambda: rank)
        batches = TrainBatches(images, stage, (0, 2, epoch), torch.device("cpu"), 0)
        return torch.stack([batch.pixels[:, 0, 0, 0] for batch in batches])

    for epoch, expected in enumerate(walked(LABELS, 60, (0, 2), 4, 4)):
        seen = torch.cat([part(rank, epoch) for rank in range(world)], dim=1)
        assert seen.reshape(-1).tolist() == expected
