"""The focal loss against a loop, and where its images are sure."""

import math

import pytest
import torch
from torch.nn import functional as F

from oltr.losses.focal import focal_loss

LABELS = torch.tensor([0, 2, 1, 1])


def example():
    torch.manual_seed(0)
    return (3 * torch.randn(4, 3, dtype=torch.float64)).requires_grad_()


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_the_focal_loss_equals_a_loop(gamma):
    logits, total = example(), 0.0
    for row, label in zip(logits.tolist(), LABELS.tolist(), strict=True):
        p = math.exp(row[label]) / sum(math.exp(z) for z in row)
        total -= (1 - p) ** gamma * math.log(p)
    assert focal_loss(logits, LABELS, gamma=gamma).item() == pytest.approx(total / 4, rel=1e-9)
    assert torch.autograd.gradcheck(lambda z: focal_loss(z, LABELS, gamma=gamma), (logits,))


def test_without_focus_it_is_cross_entropy():
    logits = example()
    torch.testing.assert_close(focal_loss(logits, LABELS, gamma=0.0), F.cross_entropy(logits, LABELS))


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_the_gradient_is_finite_where_an_image_is_certain_of_right_or_wrong(gamma):
    logits = torch.tensor([[200.0, 0.0], [0.0, 200.0]], requires_grad=True)
    loss = focal_loss(logits, torch.tensor([0, 0]), gamma=gamma)
    loss.backward()
    assert loss.item() == pytest.approx(100)
    torch.testing.assert_close(logits.grad, torch.tensor([[0.0, 0.0], [-0.5, 0.5]]))
