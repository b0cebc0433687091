"""The released centroid loss: features near the own class's centroid, far from the others."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from oltr.distributed import gather_over_ranks, sum_over_ranks, world_size
from oltr.nn.class_rows import class_sums


def discriminative_centroids_loss(
    direct: Tensor, labels: Tensor, centroids: Tensor, *, weight: float, repel: float, margin: float
) -> Tensor:
    """The released form, on direct features x (B×D) and centroids c (K×D); a scalar.

    weight · [ (1/2B) Σ‖x − c_y‖² + repel · max(0, margin − (1/BK) Σ_{i≠y} ‖x − c_i‖²) ]

    The features' gradient is that of the formula. The centroids' gradient from the first part is
    Σ(c − x) / ((1 + n_j) B), n_j the images of class j in the batch, and it does *not* carry `weight`:
    with it the centroids would hardly move at the released learning rate. Batch sums are over all
    processes, so the hinge is active in all of them or in none.
    """
    return _DiscriminativeCentroids.apply(direct, labels, centroids, weight, repel, margin)


class DiscriminativeCentroidsLoss(nn.Module):
    """The released centroid loss, its defaults the released numbers."""

    def __init__(self, weight: float = 0.01, repel: float = 0.01, margin: float = 10.0):
        super().__init__()
        self.weight, self.repel, self.margin = weight, repel, margin

    def forward(self, features: Tensor, labels: Tensor, centroids: Tensor) -> Tensor:
        """Direct features (B×D), labels (B) and centroids (K×D) → a scalar."""
        return discriminative_centroids_loss(
            features, labels, centroids, weight=self.weight, repel=self.repel, margin=self.margin
        )


class _DiscriminativeCentroids(torch.autograd.Function):
    """Computes no distances: (1/K) Σ_i ‖x − c_i‖² = ‖x − μ‖² + (1/K) Σ_i ‖c_i‖² − ‖μ‖², μ = (1/K) Σ_i c_i."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, labels: Tensor, centroids: Tensor, weight: float, repel: float, margin: float
    ) -> Tensor:
        batch, num_classes = len(x), len(centroids)
        middle = centroids.mean(dim=0)
        variance = torch.linalg.vector_norm(centroids).square() / num_classes - middle.square().sum()
        from_own, from_middle = x - centroids[labels], x - middle
        own = from_own.square().sum() / batch
        mean_other = from_middle.square().sum() / batch + variance - own / num_classes
        is_open = sum_over_ranks(mean_other) / world_size() < margin
        images_of_class = (labels[:, None] == gather_over_ranks(labels)).sum(dim=1, keepdim=True)
        ctx.save_for_backward(x, labels, centroids, from_own, from_middle, is_open, images_of_class)
        ctx.weight, ctx.repel = weight, repel
        return weight * (own / 2 + repel * (margin - mean_other) * is_open)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, labels, centroids, from_own, from_middle, is_open, images_of_class = ctx.saved_tensors
        batch, num_classes = len(x), len(centroids)
        push = 2 * ctx.weight * ctx.repel / batch * gradient * is_open
        to_x = (ctx.weight / batch * gradient + push / num_classes) * from_own - push * from_middle

        # push/K · Σ_b (x − c) for all classes in one pass; then, for the classes in the batch, the pull, and
        # the push of their own images taken back.
        push = push / num_classes
        to_centroids = torch.addcmul(push * x.sum(dim=0), centroids, -batch * push)
        strength = gradient / (batch * (1 + images_of_class)) + push
        to_centroids.index_add_(0, labels, strength * class_sums(from_own, labels), alpha=-1)
        return to_x, None, to_centroids, None, None, None
