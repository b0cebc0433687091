"""Weights that make rare classes count more, and the cross-entropy that takes them."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from oltr.distributed import sum_over_ranks, world_size


def inverse_frequency(counts: Tensor) -> Tensor:
    """w_c = (1 / n_c) / mean of 1 / n over the classes: K → K."""
    weights = 1 / counts
    return weights / weights.mean()


def class_balanced(counts: Tensor, beta: float) -> Tensor:
    """w_c ∝ (1 − β) / (1 − β^n_c), with mean 1 over the classes: K → K.

    β = 0 weighs all classes alike, β near 1 by the inverse of their frequency.
    """
    # In float64, since β^n is near 1 where n is small.
    weights = (1 - beta) / (1 - beta ** counts.double())
    return (weights / weights.mean()).to(counts.dtype)


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Σ w_y l / Σ w_y over the batch, l = −log softmax(logits)[label]: B×K, B, K → a scalar."""
    own = weights[labels]
    losses = F.cross_entropy(logits, labels, reduction="none")
    # The processes' results are averaged: with the mean of their Σ w_y below, that is the whole batch's.
    return (own * losses).sum() / (sum_over_ranks(own.sum()) / world_size())
