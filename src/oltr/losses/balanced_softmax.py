"""Balanced softmax, which is logit adjustment: the training set's imbalance is said to the loss."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def balanced_softmax_loss(logits: Tensor, labels: Tensor, counts: Tensor) -> Tensor:
    """Mean over the batch of −log(n_y exp z_y / Σ_c n_c exp z_c), z the logits: B×K, B, K → a scalar."""
    return F.cross_entropy(logits + counts.log(), labels)
