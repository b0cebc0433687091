"""A linear classifier beside a memory of class means."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.heads import Head, Output


class ClassMeans(nn.Module):
    """s · cos(A(v − m), A(μ_k − m)), v = v_direct: B×D → B×K; always in float32.

    The memory is one mean μ_k per class; m is the mean of all training images, and A whitens by the
    covariance within classes. A class without a mean, zeros, has a cosine of 0.
    """

    def __init__(self, num_classes: int, dims: int, scale: float):
        super().__init__()
        self.scale = scale
        self.whitening: Tensor
        self.centre: Tensor
        self.means: Tensor
        self.register_buffer("whitening", torch.eye(dims))  # Aᵀ, D×D
        self.register_buffer("centre", torch.zeros(dims))  # A m
        self.register_buffer("means", torch.zeros(num_classes, dims))  # A(μ_k − m)

    def forward(self, direct: Tensor) -> Tensor:
        with torch.autocast(direct.device.type, enabled=False):
            return self.scale * F.normalize(self.seen(direct), dim=1) @ F.normalize(self.means, dim=1).T

    def seen(self, direct: Tensor) -> Tensor:
        """A(v − m): B×D → B×D."""
        return direct.to(self.means.dtype) @ self.whitening - self.centre

    @torch.no_grad()
    def start_from(self, whitening: Tensor, centre: Tensor, means: Tensor) -> None:
        """Take Aᵀ (D×D), A m (D) and A(μ_k − m) (K×D)."""
        self.whitening.copy_(whitening)
        self.centre.copy_(centre)
        self.means.copy_(means)

    def of_others(self, means: Sequence[Tensor]) -> ClassMeans:
        """The memory of other classes, given A(μ − m) of each; A and m are shared, not copied."""
        others = ClassMeans(0, 0, self.scale)
        others.whitening, others.centre = self.whitening, self.centre
        others.means = torch.stack(list(means)) if means else self.means[:0]
        return others


class MemoryHead(Head):
    """logits = W v + b + s · cos(A(v − m), A(μ_k − m)): B×D → B×K; always in float32."""

    def __init__(self, dims: int, num_classes: int, scale: float = 20.0):
        super().__init__()
        self.classifier = nn.Linear(dims, num_classes)
        self.class_means = ClassMeans(num_classes, dims, scale)

    def forward(self, direct: Tensor) -> Output:
        direct = direct.to(self.classifier.weight.dtype)
        with torch.autocast(direct.device.type, enabled=False):
            return Output(self.classifier(direct) + self.class_means(direct), direct)

    def without_class_means(self, direct: Tensor) -> Tensor:
        # From all logits, which may have been shifted since.
        return super().without_class_means(direct) - self.class_means(direct)
