"""A linear classifier beside a memory of class means."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.heads import Head, Output


class MemoryHead(Head):
    """logits = W v + b + s · cos(A(v − m), A(μ_k − m)): B×D → B×K, v = v_direct; always in float32.

    The memory is one mean μ_k per class, seen from the mean m of all training images where A has made the
    scatter within classes alike in every direction. A class without a mean has a cosine of 0.
    """

    def __init__(self, dims: int, num_classes: int, scale: float = 20.0):
        super().__init__()
        self.scale = scale
        self.classifier = nn.Linear(dims, num_classes)
        self.whitening: Tensor
        self.centre: Tensor
        self.means: Tensor
        self.register_buffer("whitening", torch.eye(dims))  # Aᵀ, D×D
        self.register_buffer("centre", torch.zeros(dims))  # A m
        self.register_buffer("means", torch.zeros(num_classes, dims))  # A(μ_k − m), each of length 1

    def forward(self, direct: Tensor) -> Output:
        with torch.autocast(direct.device.type, enabled=False):
            direct = direct.to(self.classifier.weight.dtype)
            cosines = F.normalize(direct @ self.whitening - self.centre, dim=1) @ self.means.T
            return Output(self.classifier(direct) + self.scale * cosines, direct)

    @torch.no_grad()
    def remember(self, whitening: Tensor, centre: Tensor, means: Tensor) -> None:
        """Take Aᵀ (D×D), A m (D) and the directions of the means (K×D) as the memory."""
        self.whitening.copy_(whitening)
        self.centre.copy_(centre)
        self.means.copy_(means)
