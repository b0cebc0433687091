"""Class weights and the cross-entropy that takes them, against loops."""

import math

import pytest
import torch
from torch.nn import functional as F

from oltr.losses.class_weights import class_balanced, inverse_frequency, weighted_cross_entropy

COUNTS = [500, 120, 7, 1]
LABELS = [0, 0, 3, 1, 0, 2]


def example():
    logits = torch.randn(len(LABELS), len(COUNTS), generator=torch.Generator().manual_seed(0))
    return logits.double().requires_grad_(), torch.tensor(LABELS), torch.tensor([0.1, 0.5, 1.0, 2.4]).double()


def test_inverse_frequency_equals_a_loop():
    mean = sum(1 / n for n in COUNTS) / len(COUNTS)
    found = inverse_frequency(torch.tensor(COUNTS).float())
    assert found.tolist() == pytest.approx([1 / n / mean for n in COUNTS], rel=1e-6)
    assert found.mean().item() == pytest.approx(1)


@pytest.mark.parametrize("beta", [0.0, 0.9, 0.9999])
def test_class_balanced_weights_equal_a_loop(beta):
    weights = [(1 - beta) / (1 - beta**n) for n in COUNTS]
    mean = sum(weights) / len(COUNTS)
    found = class_balanced(torch.tensor(COUNTS).float(), beta)
    assert found.dtype == torch.float32
    assert found.tolist() == pytest.approx([weight / mean for weight in weights], rel=1e-6)


def test_the_weighted_cross_entropy_equals_a_loop_and_torchs():
    logits, labels, weights = example()
    total = sum_of_weights = 0.0
    for row, label in zip(logits.tolist(), LABELS, strict=True):
        minus_log = math.log(sum(math.exp(z) for z in row)) - row[label]
        total += weights[label].item() * minus_log
        sum_of_weights += weights[label].item()
    loss = weighted_cross_entropy(logits, labels, weights)
    assert loss.item() == pytest.approx(total / sum_of_weights, rel=1e-9)
    expected = torch.autograd.grad(F.cross_entropy(logits, labels, weight=weights), logits)[0]
    torch.testing.assert_close(torch.autograd.grad(loss, logits)[0], expected)
