"""Label-distribution-aware margins: the rarer a class, the larger the margin of its images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oltr.losses.class_counts import Counts, as_counts
from oltr.losses.class_weights import class_balanced, weighted_cross_entropy


def label_margins(counts: Tensor, largest: float) -> Tensor:
    """Δ_c ∝ n_c^(−1/4), the rarest class's being `largest`: K → K."""
    margins = counts**-0.25
    return largest * margins / margins.max()


def ldam_loss(
    logits: Tensor, labels: Tensor, counts: Tensor, weights: Tensor, *, scale: float, margin: float
) -> Tensor:
    """Weighted cross-entropy of logits whose label's is lowered by scale · Δ_y: B×K, B, K, K → a scalar.

    The logits are scale · cosine; `margin` is the largest Δ.
    """
    is_label = labels[:, None] == torch.arange(len(counts), device=labels.device)
    lowered = torch.where(is_label, logits - scale * label_margins(counts, margin), logits)
    return weighted_cross_entropy(lowered, labels, weights)


class LDAMLoss(nn.Module):
    """LDAM for logits scale · cosine: margins by n_c^(−1/4), of at most `margin`, and class-balanced weights.

    β = 0 weights all classes equally; deferred re-weighting (DRW) switches to a loss with β near 1 late in
    training.
    """

    counts: Tensor
    weights: Tensor

    def __init__(self, counts: Counts, scale: float = 30.0, margin: float = 0.5, beta: float = 0.0):
        super().__init__()
        self.scale, self.margin = scale, margin
        self.register_buffer("counts", as_counts(counts))
        self.register_buffer("weights", class_balanced(self.counts, beta))

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ldam_loss(logits, labels, self.counts, self.weights, scale=self.scale, margin=self.margin)
