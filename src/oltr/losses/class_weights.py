"""Class weights by frequency, and the cross-entropy weighted by them."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from oltr.distributed import sum_over_ranks, world_size
from oltr.losses.class_counts import Counts, as_counts


def inverse_frequency(counts: Tensor) -> Tensor:
    """w_c = (1 / n_c) / mean of 1 / n over the classes: K → K."""
    weights = 1 / counts
    return weights / weights.mean()


def class_balanced(counts: Tensor, beta: float) -> Tensor:
    """w_c ∝ (1 − β) / (1 − β^n_c), with mean 1 over the classes: K → K.

    β = 0 weights all classes equally, β near 1 by their inverse frequency.
    """
    # In float64, since β^n is near 1 where n is small.
    weights = (1 - beta) / (1 - beta ** counts.double())
    return (weights / weights.mean()).to(counts.dtype)


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Σ w_y l / Σ w_y over the batch, l = −log softmax(logits)[label]: B×K, B, K → a scalar."""
    own = weights[labels]
    losses = F.cross_entropy(logits, labels, reduction="none")
    # Divided by the mean Σ w_y of the processes: averaging their gradients then gives the whole batch's.
    return (own * losses).sum() / (sum_over_ranks(own.sum()) / world_size())


class WeightedCrossEntropyLoss(nn.Module):
    """Cross-entropy with a weight per class (K)."""

    weights: Tensor

    def __init__(self, weights: Tensor):
        super().__init__()
        self.register_buffer("weights", weights)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        return weighted_cross_entropy(logits, labels, self.weights)


class InverseFrequencyLoss(WeightedCrossEntropyLoss):
    """Cross-entropy weighted by 1 / n_c, n_c the training images of class c."""

    def __init__(self, counts: Counts):
        super().__init__(inverse_frequency(as_counts(counts)))


class ClassBalancedLoss(WeightedCrossEntropyLoss):
    """Cross-entropy weighted by (1 − β) / (1 − β^n_c) (Cui et al., CVPR 2019)."""

    def __init__(self, counts: Counts, beta: float = 0.9999):
        super().__init__(class_balanced(as_counts(counts), beta))
