"""The range loss against loops, and where a class has too few images or the same one twice."""

import math

import pytest
import torch

from oltr.losses.range import between_classes, within_classes
from tests.helpers.created import Created

LABELS = torch.tensor([4, 1, 4, 2, 4, 2, 3, 1, 4])  # four of class 4, pairs of 1 and 2, and 3 alone


def example(dtype=torch.float64):
    random = torch.Generator().manual_seed(0)
    return torch.randn(len(LABELS), 5, generator=random, dtype=torch.float64).to(dtype).requires_grad_()


def of_class(features, labels, label):
    return [x for x, y in zip(features.tolist(), labels.tolist(), strict=True) if y == label]


def within_loop(features, labels, largest):
    total = 0.0
    for label in set(labels.tolist()):
        x = of_class(features, labels, label)
        squares = [math.dist(x[a], x[b]) ** 2 for a in range(len(x)) for b in range(a)]
        chosen = sorted(squares, reverse=True)[:largest]
        if chosen:
            total += len(chosen) / sum(1 / square for square in chosen)
    return total


def between_loop(features, labels, margin):
    means = []
    for label in set(labels.tolist()):
        x = of_class(features, labels, label)
        means.append([sum(values) / len(x) for values in zip(*x, strict=True)])
    nearest = min(math.dist(means[a], means[b]) ** 2 for a in range(len(means)) for b in range(a))
    return max(0.0, margin - nearest)


@pytest.mark.parametrize("largest", [1, 2, 3, 20])
def test_the_ranges_within_classes_equal_a_loop(largest):
    features = example()
    loss = within_classes(features, LABELS, largest=largest)
    assert loss.item() == pytest.approx(within_loop(features, LABELS, largest), rel=1e-9)
    assert torch.autograd.gradcheck(lambda x: within_classes(x, LABELS, largest=largest), (features,))


@pytest.mark.parametrize("margin", [100.0, 0.01])  # the hinge is open, closed
def test_the_distance_between_classes_equals_a_loop(margin):
    features = example()
    loss = between_classes(features, LABELS, margin=margin)
    assert loss.item() == pytest.approx(between_loop(features, LABELS, margin), rel=1e-9)
    assert (loss.item() > 0) == (margin == 100)
    assert torch.autograd.gradcheck(lambda x: between_classes(x, LABELS, margin=margin), (features,))


def test_both_are_as_exact_in_float32_and_under_autocast():
    features = example(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        within = within_classes(features, LABELS, largest=2)
        between = between_classes(features, LABELS, margin=100.0)
    assert within.item() == pytest.approx(within_loop(features, LABELS, 2), rel=1e-5)
    assert between.item() == pytest.approx(between_loop(features, LABELS, 100.0), rel=1e-5)


def gradient(loss, features):
    return torch.autograd.grad(loss, features)[0]


def test_a_batch_without_pairs_has_no_range_and_one_of_a_single_class_no_distance_between():
    features = example(torch.float32)
    within = within_classes(features, torch.arange(9), largest=2)
    between = between_classes(features, torch.zeros(9, dtype=torch.long), margin=100.0)
    for loss in (within, between):
        assert loss.item() == 0
        assert torch.equal(gradient(loss, features), torch.zeros_like(features))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_same_image_twice_gives_finite_gradients(dtype):
    # Both pairs are one image twice, and so are two of class 4; the means of 1 and 2 fall together.
    features = example(dtype).detach()[[0, 1, 0, 1, 4, 1, 6, 1, 8]].requires_grad_()
    within = within_classes(features, LABELS, largest=2)
    between = between_classes(features, LABELS, margin=100.0)
    for loss in (within, between):
        assert torch.isfinite(gradient(loss, features)).all()
    others = [0, 2, 4, 8]
    expected = within_loop(features[others], LABELS[others], 2)
    assert within.item() == pytest.approx(expected, rel=1e-5)
    assert between.item() == pytest.approx(100, rel=1e-5)


def test_nothing_larger_than_batch_by_batch_a_few_times_is_made():
    batch, largest = 32, 2
    features, labels = torch.randn(batch, 16, requires_grad=True), torch.arange(batch) // 4
    with Created() as created:
        within_classes(features, labels, largest=largest).backward()
        between_classes(features, labels, margin=100.0).backward()
    assert not created.above(largest * batch * batch)
