"""Label-distribution-aware margins: the rarer a class, the farther its images must be from the border."""

from __future__ import annotations

import torch
from torch import Tensor

from oltr.losses.class_weights import weighted_cross_entropy


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
