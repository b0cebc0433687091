"""Label-distribution-aware margins against loops."""

import math

import pytest
import torch
from torch.nn import functional as F

from oltr.losses.ldam import label_margins, ldam_loss

COUNTS, LABELS = [500, 81, 16, 1], [0, 3, 2, 2, 1]


def margins_loop(largest):
    """C / n^(1/4), with C such that the rarest class has `largest`."""
    constant = largest * min(COUNTS) ** 0.25
    return [constant / n**0.25 for n in COUNTS]


def test_the_margins_equal_a_loop():
    found = label_margins(torch.tensor(COUNTS).double(), 0.5)
    assert found.tolist() == pytest.approx(margins_loop(0.5), rel=1e-9)
    assert found.tolist()[1:] == pytest.approx([0.5 / 3, 0.25, 0.5])


def test_the_loss_and_its_gradient_equal_a_loop():
    torch.manual_seed(0)
    cosines = torch.rand(len(LABELS), len(COUNTS), dtype=torch.float64) * 2 - 1
    logits, labels = (30 * cosines).requires_grad_(), torch.tensor(LABELS)
    counts, weights = torch.tensor(COUNTS).double(), torch.tensor([0.2, 0.4, 1.0, 2.4]).double()
    loss = ldam_loss(logits, labels, counts, weights, scale=30.0, margin=0.5)
    margins, total = margins_loop(0.5), 0.0
    for row, label in zip(cosines.tolist(), LABELS, strict=True):
        lowered = [30 * (c - margins[k] * (k == label)) for k, c in enumerate(row)]
        minus_log = math.log(sum(math.exp(z) for z in lowered)) - lowered[label]
        total += weights[label].item() * minus_log
    assert loss.item() == pytest.approx(total / weights[labels].sum().item(), rel=1e-9)
    assert torch.autograd.gradcheck(
        lambda z: ldam_loss(z, labels, counts, weights, scale=30.0, margin=0.5), (logits,)
    )


def test_without_margin_and_weights_it_is_cross_entropy():
    logits, labels = torch.randn(5, 4), torch.tensor(LABELS)
    loss = ldam_loss(logits, labels, torch.tensor(COUNTS).float(), torch.ones(4), scale=30.0, margin=0.0)
    torch.testing.assert_close(loss, F.cross_entropy(logits, labels))
