"""What experts learn from each other and views from each other, against loops."""

import math

import pytest
import torch

from oltr.losses import agreement_loss, consistency_loss


def softmax(logits, temperature):
    powers = [math.exp(z / temperature) for z in logits]
    return [power / sum(powers) for power in powers]


def test_agreement_equals_a_loop():
    logits = 2 * torch.randn(3, 4, 5, dtype=torch.float64)
    total = 0.0
    for b in range(4):
        target = softmax(logits.mean(dim=0)[b].tolist(), 2.0)
        for expert in logits[:, b].tolist():
            total += sum(p * math.log(p / q) for p, q in zip(target, softmax(expert, 2.0), strict=True))
    assert agreement_loss(logits).item() == pytest.approx(4 * total / 4, rel=1e-9)


def test_experts_that_agree_have_nothing_to_learn_and_their_mean_is_no_pupil():
    alike = torch.randn(1, 4, 5).expand(3, 4, 5)
    assert agreement_loss(alike).item() == pytest.approx(0, abs=1e-6)
    logits = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)
    agreement_loss(logits, temperature=1.0).backward()
    mean = logits.detach().mean(dim=0).softmax(dim=1)
    torch.testing.assert_close(logits.grad, (logits.detach().softmax(dim=2) - mean) / 4)


def test_consistency_is_the_mean_cosine_of_all_pairs_and_only_predictions_learn():
    predicted = [torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    projected = [torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    loss = consistency_loss(predicted, projected)
    total = 0.0
    for v in range(3):
        for w in range(3):
            if v != w:
                for p, z in zip(predicted[v].tolist(), projected[w].tolist(), strict=True):
                    total += sum(a * b for a, b in zip(p, z, strict=True)) / math.hypot(*p) / math.hypot(*z)
    assert loss.item() == pytest.approx(-total / 24, rel=1e-9)
    loss.backward()
    assert all(z.grad is None for z in projected) and all(p.grad is not None for p in predicted)
