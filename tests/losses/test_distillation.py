"""The distillation loss against its formula, class by class."""

from __future__ import annotations

import math

import pytest
import torch

from oltr.losses import distillation_loss


def slow(logits, teacher, temperature):
    total = 0.0
    for ours, theirs in zip(logits.tolist(), teacher.tolist(), strict=True):
        p, q = (
            [math.exp(z / temperature) / sum(math.exp(y / temperature) for y in row) for z in row]
            for row in (theirs, ours)
        )
        total += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    return temperature**2 * total / len(logits)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 5.0])
def test_the_formula(temperature):
    random = torch.Generator().manual_seed(0)
    logits, teacher = torch.randn(2, 7, 5, generator=random) * 3
    found = float(distillation_loss(logits, teacher, temperature))
    assert found == pytest.approx(slow(logits, teacher, temperature), rel=1e-5)
    assert float(distillation_loss(teacher, teacher, temperature)) == pytest.approx(0, abs=1e-6)


def test_the_gradient_is_the_difference_of_the_probabilities():
    logits, teacher = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(1))
    logits.requires_grad_()
    distillation_loss(logits, teacher, 2.0).backward()
    expected = 2.0 * ((logits / 2).softmax(1) - (teacher / 2).softmax(1)) / len(logits)
    torch.testing.assert_close(logits.grad, expected.detach())


def test_rounded_logits_are_compared_in_float32():
    logits, teacher = torch.randn(2, 4, 50, generator=torch.Generator().manual_seed(2)).bfloat16()
    found = distillation_loss(logits, teacher)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, distillation_loss(logits.float(), teacher.float()))
