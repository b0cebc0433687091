"""Cross-entropy to the uniform distribution: the loss of images that are of no class."""

from __future__ import annotations

from torch import Tensor


def uniform_cross_entropy(logits: Tensor) -> Tensor:
    """−Σ_c log softmax(z)_c / K, as in outlier exposure (Hendrycks et al., ICLR 2019): B×K → the mean."""
    return (logits.logsumexp(dim=1) - logits.mean(dim=1)).mean()
