"""Balanced softmax, also called logit adjustment: the class frequencies are added to the logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.losses.class_counts import Counts, as_counts


def balanced_softmax_loss(
    logits: Tensor,
    labels: Tensor,
    counts: Tensor,
    *,
    tau: float = 1.0,
    reduction: str = "mean",
    by_class: Tensor | None = None,
) -> Tensor:
    """−log(n_y^τ exp z_y / Σ_c n_c^τ exp z_c), z the logits: B×K, B, K → the batch's mean, or ("none") B.

    Where the share b of an image's label (`by_class`, B) was drawn by class and not by image, as that of a
    class-balanced partner, its frequencies are (1 − b) n_c + b N / K, N = Σ n_c.
    """
    if by_class is not None:
        counts = torch.lerp(counts, counts.mean(), by_class[:, None])  # B×K
    return F.cross_entropy(logits + tau * counts.log(), labels, reduction=reduction)


class BalancedSoftmaxLoss(nn.Module):
    """Cross-entropy of logits + τ log n_c, n_c the training images of class c; predict with logits alone."""

    counts: Tensor

    def __init__(self, counts: Counts, tau: float = 1.0):
        super().__init__()
        self.tau = tau
        self.register_buffer("counts", as_counts(counts))

    def forward(
        self, logits: Tensor, labels: Tensor, reduction: str = "mean", by_class: Tensor | None = None
    ) -> Tensor:
        return balanced_softmax_loss(
            logits, labels, self.counts, tau=self.tau, reduction=reduction, by_class=by_class
        )

    def of_experts(self, logits: Tensor, labels: Tensor, by_class: Tensor | None = None) -> Tensor:
        """The loss of every expert for every image: E×B×K, B → E×B."""
        experts = len(logits)
        by_class = None if by_class is None else by_class.repeat(experts)
        return self(logits.flatten(0, 1), labels.repeat(experts), "none", by_class).view(experts, -1)
