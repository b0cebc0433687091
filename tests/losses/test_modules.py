"""Losses as modules: the values of the loops, counts in any form, and buffers that move with them."""

import math

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.losses import (
    BalancedSoftmaxLoss,
    ClassBalancedLoss,
    DiscriminativeCentroidsLoss,
    FocalLoss,
    InverseFrequencyLoss,
    LargeMarginLoss,
    LDAMLoss,
    LiftedStructureLoss,
    RangeLoss,
)
from tests.losses.test_centroids import released_loop
from tests.losses.test_large_margin import large_margin_loop
from tests.losses.test_lifted import lifted_loop
from tests.losses.test_range import between_loop, within_loop

COUNTS = [625, 81, 16]
LABELS = torch.tensor([0, 2, 1, 0, 1, 2, 2])


def example(columns=3):
    random = torch.Generator().manual_seed(0)
    return torch.randn(len(LABELS), columns, generator=random, dtype=torch.float64).requires_grad_()


def softmax_loop(logits, weight_of=lambda label, p: 1.0, change=lambda z, k, label: z, weigh_mean=True):
    """Σ w_y (−log p_y) / Σ w_y of changed logits, or the mean of w (−log p)."""
    total = sum_of_weights = 0.0
    for row, label in zip(logits.tolist(), LABELS.tolist(), strict=True):
        powers = [math.exp(change(z, k, label)) for k, z in enumerate(row)]
        p = powers[label] / sum(powers)
        total -= weight_of(label, p) * math.log(p)
        sum_of_weights += weight_of(label, p)
    return total / (sum_of_weights if weigh_mean else len(LABELS))


def lowered(z, k, label):
    return z - 30 * 0.5 * (16 / COUNTS[k]) ** 0.25 * (k == label)


def effective(label, p):
    return (1 - 0.9999) / (1 - 0.9999 ** COUNTS[label])


OF_LOGITS = {
    "balanced": (BalancedSoftmaxLoss, {"change": lambda z, k, label: z + math.log(COUNTS[k])}),
    "adjusted": (
        lambda counts: BalancedSoftmaxLoss(counts, tau=0.5),
        {"change": lambda z, k, label: z + 0.5 * math.log(COUNTS[k])},
    ),
    "inverse": (InverseFrequencyLoss, {"weight_of": lambda label, p: 1 / COUNTS[label]}),
    "class-balanced": (ClassBalancedLoss, {"weight_of": effective}),
    "ldam": (LDAMLoss, {"change": lowered}),
    "ldam-drw": (
        lambda counts: LDAMLoss(counts, beta=0.9999),
        {"change": lowered, "weight_of": effective},
    ),
    "focal": (
        lambda counts: FocalLoss(2.0),
        {"weight_of": lambda label, p: (1 - p) ** 2, "weigh_mean": False},
    ),
}


@pytest.mark.parametrize("kind", [list, np.asarray, torch.tensor])
@pytest.mark.parametrize("name", OF_LOGITS)
def test_losses_of_logits_equal_a_loop(name, kind):
    make, words = OF_LOGITS[name]
    loss, logits = make(kind(COUNTS)), example()
    value = loss(logits, LABELS)
    assert value.item() == pytest.approx(softmax_loop(logits, **words), rel=1e-6)
    value.backward()
    assert logits.grad.abs().sum() > 0
    assert not list(loss.parameters())


def test_losses_of_features_equal_a_loop():
    features = example(5)
    assert LiftedStructureLoss(1.5)(features, LABELS).item() == pytest.approx(
        lifted_loop(features, LABELS, 1.5)
    )
    loss = RangeLoss(within_weight=2.0, between_weight=3.0, largest=2, margin=100.0)
    within, between = within_loop(features, LABELS, 2), between_loop(features, LABELS, 100.0)
    assert loss(features, LABELS).item() == pytest.approx(2 * within + 3 * between)
    assert {name: term.item() for name, term in loss.terms(features, LABELS).items()} == pytest.approx(
        {"within": 2 * within, "between": 3 * between}
    )


def test_losses_of_features_and_centroids_equal_a_loop():
    features, centroids = example(5), torch.randn(3, 5, dtype=torch.float64)
    expected = released_loop(features, LABELS, centroids, 0.01, 0.01, 10.0)[0]
    assert DiscriminativeCentroidsLoss()(features, LABELS, centroids).item() == pytest.approx(expected)
    expected = large_margin_loop(features, LABELS, centroids, 5.0)
    assert LargeMarginLoss()(features, LABELS, centroids).item() == pytest.approx(expected)


@pytest.mark.parametrize("make", [BalancedSoftmaxLoss, InverseFrequencyLoss, ClassBalancedLoss, LDAMLoss])
def test_the_counts_move_with_the_module_and_are_saved_with_it(make):
    loss = make(COUNTS)
    assert loss.state_dict() and all(value.dtype == torch.float32 for value in loss.state_dict().values())
    assert all(buffer.is_meta for buffer in loss.to("meta").buffers())


@pytest.mark.parametrize("counts", [[5, 0, 2], [[5, 2]], [5.0, float("nan")]])
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(UserError, match="training images of each class"):
        BalancedSoftmaxLoss(counts)
