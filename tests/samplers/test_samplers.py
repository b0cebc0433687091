from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from oltr.samplers import (
    SAMPLERS,
    BalancedSampler,
    ClassAwareSampler,
    ShuffleSampler,
    balanced,
    class_aware,
    generator,
    shuffle,
)

LONG_TAIL = np.repeat(np.arange(5), [40, 17, 6, 3, 1])
SHUFFLED = np.random.default_rng(0).permutation(LONG_TAIL)


@pytest.mark.parametrize("name", ["shuffle", "balanced", "class-aware"])
@pytest.mark.parametrize("length", [1, 7, 32, 67])
def test_every_sampler_gives_exactly_the_length_asked_for(name, length):
    order = SAMPLERS[name](SHUFFLED, length, (0, 0), 4)
    assert order.shape == (length,) and order.dtype == np.int64
    assert order.min() >= 0 and order.max() < len(SHUFFLED)


@pytest.mark.parametrize("name", ["shuffle", "balanced", "class-aware"])
def test_the_order_depends_on_the_key_alone(name):
    def order(*key):
        return SAMPLERS[name](SHUFFLED, 60, key, 4).tolist()

    assert order(3, 1, 0) == order(3, 1, 0)
    assert (
        len({tuple(order(*key)) for key in [(3, 1, 0), (4, 1, 0), (3, 2, 0), (3, 1, 1), (3, 1, 0, 0)]}) == 5
    )


def test_a_longer_key_gives_other_numbers_even_if_it_ends_in_zero():
    draws = [
        tuple(generator(*key).random(4)) for key in [(1,), (1, 0), (1, 0, 0), (1, 0, 0, 0), (1, 0, 0, 0, 0)]
    ]
    assert len(set(draws)) == 5


def test_an_unknown_sampler_gets_a_suggestion():
    with pytest.raises(Exception, match=r"(?s)no sampler called 'class_aware'.*did you mean class-aware"):
        SAMPLERS["class_aware"]


def test_shuffle_shows_each_image_once():
    order = shuffle(SHUFFLED, len(SHUFFLED), (0, 0))
    assert sorted(order) == list(range(len(SHUFFLED)))
    assert order.tolist() != list(range(len(SHUFFLED)))
    assert len(set(shuffle(SHUFFLED, 50, (0, 0)).tolist())) == 50


def test_balanced_shows_every_class_and_every_image_of_a_class_equally_often():
    draws = 50_000
    order = balanced(SHUFFLED, draws, (0, 0))
    per_image = np.bincount(order, minlength=len(SHUFFLED))
    for label, size in Counter(SHUFFLED.tolist()).items():
        own = per_image[label == SHUFFLED]
        assert own.sum() / draws == pytest.approx(1 / 5, abs=0.01)
        assert own / draws == pytest.approx(np.full(size, 1 / 5 / size), rel=0.25)


@pytest.mark.parametrize("images_per_class", [1, 3, 4])
@pytest.mark.parametrize("length", [60, 61, 67])  # whole rounds of classes and cut ones
def test_class_aware_draws_classes_in_rounds(images_per_class, length):
    order = class_aware(SHUFFLED, length, (0, 0), images_per_class)
    labels = SHUFFLED[order].tolist()
    visits = [labels[at : at + images_per_class] for at in range(0, length, images_per_class)]
    assert all(len(set(visit)) == 1 for visit in visits)
    drawn = [visit[0] for visit in visits]
    rounds = [drawn[at : at + 5] for at in range(0, len(drawn), 5)]
    assert all(sorted(whole) == [0, 1, 2, 3, 4] for whole in rounds[:-1])
    assert len(set(rounds[-1])) == len(rounds[-1])
    assert len({tuple(whole) for whole in rounds[:-1]}) > 1  # each round has its own order


@pytest.mark.parametrize("images_per_class", [1, 4])
def test_class_aware_uses_all_images_of_a_class_before_any_again(images_per_class):
    order = class_aware(SHUFFLED, 200, (0, 0), images_per_class)
    for label in range(5):
        images = set(np.flatnonzero(label == SHUFFLED).tolist())
        chain = [index for index in order.tolist() if index in images]
        passes = [chain[at : at + len(images)] for at in range(0, len(chain), len(images))]
        for whole in passes[:-1]:
            assert set(whole) == images
        assert len(set(passes[-1])) == len(passes[-1])


def test_class_aware_repeats_images_of_classes_smaller_than_a_visit():
    labels = np.array([0, 1, 1, 2, 2, 2, 2, 2])
    order = class_aware(labels, 12, (0, 0), 4)
    shown = Counter(order.tolist())
    assert shown[0] == 4
    assert [shown[1], shown[2]] == [2, 2]
    assert sorted(shown[index] for index in range(3, 8)) == [0, 1, 1, 1, 1]


def test_classes_without_images_are_passed_over():
    labels = np.array([0, 0, 3, 3, 7])
    for name in ("balanced", "class-aware"):
        order = SAMPLERS[name](labels, 30, (0, 0), 2)
        assert set(labels[order].tolist()) == {0, 3, 7}


CLASSES = {"shuffle": ShuffleSampler, "balanced": BalancedSampler, "class-aware": ClassAwareSampler}


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("kind", [list, np.asarray, torch.as_tensor])
def test_a_sampler_gives_the_order_of_its_function_and_of_no_other_epoch(name, kind):
    sampler = CLASSES[name](kind(SHUFFLED.tolist()), length=60, seed=3)
    assert isinstance(sampler, torch.utils.data.Sampler) and len(sampler) == 60
    orders = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
        assert orders[-1] == SAMPLERS[name](SHUFFLED, 60, (3, epoch), 4).tolist()
        assert orders[-1] == list(sampler)
    assert orders[0] == orders[2] != orders[1]
    assert all(type(number) is int for number in orders[0])


@pytest.mark.parametrize("name", CLASSES)
def test_an_epoch_is_as_long_as_the_training_set_unless_told(name):
    sampler = CLASSES[name](SHUFFLED)
    assert len(sampler) == len(list(sampler)) == len(SHUFFLED)


def test_a_shuffled_epoch_is_never_longer_than_the_set():
    sampler = ShuffleSampler(SHUFFLED, length=1000)
    assert len(sampler) == len(list(sampler)) == len(SHUFFLED)


def test_a_data_loader_gets_the_promised_classes():
    images, labels = torch.arange(len(SHUFFLED)), torch.from_numpy(SHUFFLED)
    sampler = ClassAwareSampler(labels, images_per_class=3, length=60, seed=1)
    loader = DataLoader(TensorDataset(images, labels), batch_size=15, sampler=sampler)
    assert len(loader) == 4
    epochs = []
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        batches = list(loader)
        for _, found in batches:  # five classes of three images make a batch
            assert Counter(found.tolist()) == dict.fromkeys(range(5), 3)
        epochs.append(torch.cat([numbers for numbers, _ in batches]).tolist())
    assert epochs[0] != epochs[1]
    sampler.set_epoch(0)
    assert torch.cat([numbers for numbers, _ in loader]).tolist() == epochs[0]
