"""Losses that pull features to their own centroid and push them from the others, in both forms."""

from __future__ import annotations

import torch
from torch import Tensor

from oltr.distributed import sum_over_ranks, world_size
from oltr.nn.memory import squared_distances


def discriminative_centroids_loss(
    direct: Tensor, labels: Tensor, centroids: Tensor, *, weight: float, repel: float, margin: float
) -> Tensor:
    """The released form, on direct features x (B×D) and centroids c (K×D); a scalar.

    weight · [ (1/2B) Σ‖x − c_y‖² + repel · max(0, margin − (1/BK) Σ_{i≠y} ‖x − c_i‖²) ]

    The features' gradient is that of the formula. The centroids' gradient from the first part is
    Σ(c − x) / ((1 + n_j) B), n_j the images of class j in the batch, and it does *not* carry `weight`:
    with it the centroids would hardly move at the released learning rate. Batch sums are over all
    processes, so the hinge opens on all of them or on none.
    """
    batch, num_classes = len(direct), len(centroids)
    attract = (direct - centroids.detach()[labels]).square().sum() / (2 * batch)

    counts = sum_over_ranks(torch.bincount(labels, minlength=num_classes)).to(direct.dtype)
    pull = (direct.detach() - centroids[labels]).square().sum(dim=1) / (2 * (1 + counts[labels]) * batch)

    distances = squared_distances(direct, centroids)
    own = distances.gather(1, labels[:, None])
    mean_other = (distances.sum() - own.sum()) / (batch * num_classes)
    mean_everywhere = sum_over_ranks(mean_other.detach()) / world_size()
    push = (margin - mean_other) * (mean_everywhere < margin)

    moved = pull.sum()  # adds its gradient to the centroids, nothing to the value
    return weight * (attract + repel * push) + (moved - moved.detach())


def large_margin_loss(meta: Tensor, labels: Tensor, centroids: Tensor, *, margin: float) -> Tensor:
    """The paper's L_LM, mean over the batch: max(0, ‖v_meta − c_y‖ − Σ_{i≠y} ‖v_meta − c_i‖ + margin)."""
    distances = squared_distances(meta, centroids).clamp(min=1e-12).sqrt()
    others = distances.scatter(1, labels[:, None], 0.0).sum(dim=1)
    # The matrix product is too rough for the one distance that is meant to shrink to nothing.
    own = (meta - centroids[labels]).square().sum(dim=1).clamp(min=1e-12).sqrt()
    return (own - others + margin).clamp(min=0).mean()
