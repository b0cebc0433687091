"""Means and scatter of training features, in float64 and some rows at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from oltr.openset.parts import AT_A_TIME

ROUNDING = 1e-6  # float32 features that differ by less, relative to their length, are the same


def class_means(x: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """The mean of each class's rows and how many there are, zeros where there are none: N×D, N → K×D, K."""
    sums = torch.zeros(num_classes, x.shape[1], dtype=torch.float64)
    for part, own in zip(x.split(AT_A_TIME), labels.split(AT_A_TIME), strict=True):
        sums.index_add_(0, own, part.double())
    counts = labels.bincount(minlength=num_classes)
    return sums / counts.clamp(min=1)[:, None], counts


def scatter(x: Tensor, centres: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_i r_i r_iᵀ / N and Σ_i ‖r_i‖⁴ / N for r_i = x_i − centres[labels_i]: N×D, K×D, N → D×D, 1."""
    products = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64)
    fourths = torch.zeros((), dtype=torch.float64)
    for part, own in zip(x.split(AT_A_TIME), labels.split(AT_A_TIME), strict=True):
        residuals = part.double() - centres[own]
        products.addmm_(residuals.T, residuals)
        fourths += residuals.square().sum(dim=1).square().sum()
    return products / len(x), fourths / len(x)
