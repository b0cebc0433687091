"""The balanced contrastive loss against a loop, and what its averages over classes are for."""

import math

import pytest
import torch
from torch.nn import functional as F

from oltr.losses import BalancedContrastLoss, balanced_contrast_loss

LABELS = torch.tensor([0, 1, 0, 2, 0, 2])
CLASSES, TEMPERATURE = 4, 0.2


def unit(rows, seed):
    x = torch.randn(rows, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return F.normalize(x, dim=1)


def contrast_loop(z, labels, prototypes, temperature):
    """Zhu et al. 2022, equation by equation: class averages in the denominator, prototypes as members."""
    members = [(row, int(label)) for row, label in zip(z, labels, strict=True)]
    members += [(row, k) for k, row in enumerate(prototypes)]
    total = 0.0
    for i, (own, label) in enumerate(members[: len(labels)]):
        others = [(math.exp(own @ row / temperature), k) for j, (row, k) in enumerate(members) if j != i]
        groups = [[e for e, k in others if k == each] for each in range(len(prototypes))]
        below = sum(sum(group) / len(group) for group in groups if group)
        total -= sum(math.log(e / below) for e in groups[label]) / len(groups[label])
    return total / len(labels)


def test_the_loss_equals_a_loop_and_has_its_gradient():
    z, prototypes = unit(6, 0).requires_grad_(), unit(CLASSES, 1).requires_grad_()
    loss = balanced_contrast_loss(z, LABELS, prototypes, temperature=TEMPERATURE)
    assert loss.item() == pytest.approx(
        contrast_loop(z.detach(), LABELS, prototypes.detach(), TEMPERATURE), rel=1e-9
    )
    assert torch.autograd.gradcheck(
        lambda a, b: balanced_contrast_loss(a, LABELS, b, temperature=TEMPERATURE), (z, prototypes)
    )
    assert BalancedContrastLoss(TEMPERATURE)(z, LABELS, prototypes).item() == loss.item()


def test_a_class_weighs_the_same_however_often_it_is_in_the_batch():
    z, prototypes = unit(3, 2), unit(CLASSES, 3)
    prototypes = torch.stack([z[0], z[1], z[2], prototypes[3]])

    def losses(copies):
        """Of an image of class 0, beside so many images of class 1 that all lie on its prototype."""
        batch = torch.cat([z[:1], z[1:2].expand(copies, -1)])
        labels = torch.tensor([0] + [1] * copies)
        return contrast_loop(batch[:1], labels[:1], prototypes, TEMPERATURE), balanced_contrast_loss(
            batch, labels, prototypes, temperature=TEMPERATURE
        )

    alone, once = losses(1)
    again, often = losses(9)
    assert alone == again
    # The mean over the batch is of 1 + 1 and of 1 + 9 images; what class 1's images lose is the same each.
    of_class_1 = 2 * once - alone
    assert often.item() == pytest.approx(((alone + 9 * of_class_1) / 10).item(), rel=1e-9)


def test_a_single_image_of_each_class_still_learns_from_its_prototype():
    z = unit(3, 4).float().requires_grad_()
    balanced_contrast_loss(z, torch.arange(3), unit(CLASSES, 5).float()).backward()
    assert torch.isfinite(z.grad).all() and (z.grad.abs().sum(dim=1) > 0).all()
