"""Over how many dimensions of the feature the activations are spread."""

from __future__ import annotations

from torch import Tensor

SMALLEST = 1e-12  # a sum of activations: below it there are none


def spread(features: Tensor, percentile: int) -> Tensor:
    """Σ a / Σ the largest of a, those above the percentile, a = max(v_direct, 0): B×D → B×1.

    1 where all others are zero, up to 1 / (1 − percentile/100) where all are alike; 0 without activations.
    """
    dims = features.shape[1]
    largest = max(dims - round(dims * percentile / 100), 1)
    a = features.clamp(min=0)
    top = a.topk(largest, dim=1).values.sum(dim=1, keepdim=True)
    return a.sum(dim=1, keepdim=True) / top.clamp(min=SMALLEST)
