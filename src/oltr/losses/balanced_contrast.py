"""Balanced contrastive learning: images of a class together, every class an equal part of the others."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oltr.losses.whole_batch import whole_batch


def balanced_contrast_loss(
    z: Tensor, labels: Tensor, prototypes: Tensor, *, temperature: float = 0.1
) -> Tensor:
    """Mean over i and over the others p of i's class of −log(exp s_ip / Σ_k mean_{a of class k} exp s_ia).

    s_ia = z_i·a / temperature; a runs over the images other than i and one prototype of each class, all of
    unit length: B×d, B, K×d → a scalar. The mean in place of a sum lets a common class weigh no more than a
    rare one, and with the prototypes every class is there in every batch.
    """
    classes = torch.arange(len(prototypes), device=labels.device)
    others, owners = torch.cat([z, prototypes]), torch.cat([labels, classes])
    similar = z @ others.T / temperature  # B×(B + K)
    itself = torch.eye(*similar.shape, dtype=torch.bool, device=z.device)
    same = labels[:, None] == owners
    positive = same & ~itself
    # How many a's class has in all, its prototype too; of its own class an image leaves itself out.
    sizes = (1 + same.sum(dim=0) - same.long()).to(z.dtype)
    all_classes = (similar - sizes.log()).masked_fill(itself, -torch.inf).logsumexp(dim=1, keepdim=True)
    losses = (all_classes - similar).masked_fill(~positive, 0).sum(dim=1)
    return (losses / positive.sum(dim=1)).mean()


class BalancedContrastLoss(nn.Module):
    """The loss on projected features (B×d, of unit length) over the batches of all processes."""

    def __init__(self, temperature: float = 0.1):
        super().__init__()
        self.temperature = temperature

    def forward(self, z: Tensor, labels: Tensor, prototypes: Tensor) -> Tensor:
        return balanced_contrast_loss(*whole_batch(z, labels), prototypes, temperature=self.temperature)
