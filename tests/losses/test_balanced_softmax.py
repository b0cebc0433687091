"""The balanced softmax against a loop, and what it is on a balanced set."""

import math

import pytest
import torch
from torch.nn import functional as F

from oltr.losses.balanced_softmax import balanced_softmax_loss

LABELS = torch.tensor([0, 2, 1, 1])


def example():
    torch.manual_seed(0)
    return torch.randn(4, 3, dtype=torch.float64)


def test_the_balanced_softmax_equals_a_loop():
    logits, counts, total = example(), [500, 20, 3], 0.0
    for row, label in zip(logits.tolist(), LABELS.tolist(), strict=True):
        powers = [n * math.exp(z) for n, z in zip(counts, row, strict=True)]
        total -= math.log(powers[label] / sum(powers))
    loss = balanced_softmax_loss(logits, LABELS, torch.tensor(counts).double())
    assert loss.item() == pytest.approx(total / 4, rel=1e-9)


def test_on_a_balanced_set_it_is_cross_entropy():
    logits = example()
    loss = balanced_softmax_loss(logits, LABELS, torch.full((3,), 40.0).double())
    torch.testing.assert_close(loss, F.cross_entropy(logits, LABELS))
