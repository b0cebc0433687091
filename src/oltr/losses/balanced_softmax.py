"""Balanced softmax, also called logit adjustment: the class frequencies are added to the logits."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from oltr.losses.class_counts import Counts, as_counts


def balanced_softmax_loss(
    logits: Tensor, labels: Tensor, counts: Tensor, *, tau: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """−log(n_y^τ exp z_y / Σ_c n_c^τ exp z_c), z the logits: B×K, B, K → the batch's mean, or ("none") B."""
    return F.cross_entropy(logits + tau * counts.log(), labels, reduction=reduction)


class BalancedSoftmaxLoss(nn.Module):
    """Cross-entropy of logits + τ log n_c, n_c the training images of class c; predict with logits alone."""

    counts: Tensor

    def __init__(self, counts: Counts, tau: float = 1.0):
        super().__init__()
        self.tau = tau
        self.register_buffer("counts", as_counts(counts))

    def forward(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        return balanced_softmax_loss(logits, labels, self.counts, tau=self.tau, reduction=reduction)

    def of_experts(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of every expert for every image: E×B×K, B → E×B."""
        experts = len(logits)
        return self(logits.flatten(0, 1), labels.repeat(experts), "none").view(experts, -1)
