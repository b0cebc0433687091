"""The focal loss: confident images count less."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_LEAST = 1e-12  # of 1 − p, whose power has no gradient at 0 where γ < 1


def focal_loss(logits: Tensor, labels: Tensor, *, gamma: float) -> Tensor:
    """Mean over the batch of −(1 − p)^γ log p, p = softmax(logits)[label]: B×K, B → a scalar."""
    minus_log = F.cross_entropy(logits, labels, reduction="none")
    unsure = -torch.expm1(-minus_log)  # 1 − p, exact near p = 1 too
    return (unsure.clamp(min=_LEAST) ** gamma * minus_log).mean()


class FocalLoss(nn.Module):
    """The focal loss of a softmax; γ = 0 is cross-entropy."""

    def __init__(self, gamma: float = 1.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        return focal_loss(logits, labels, gamma=self.gamma)
