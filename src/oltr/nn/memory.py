"""The visual memory: one discriminative centroid per class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oltr.distributed import sum_over_ranks

# Keeps 1/γ finite for an image that lies on a centroid.
NEAREST_POSSIBLE = 1e-6


class Memory(nn.Module):
    """M = {c_i}: K×D centroids, learned together with the features.

    A class that has given no image yet has no centroid: it is never the nearest one.
    """

    def __init__(self, num_classes: int, dims: int):
        super().__init__()
        self.centroids = nn.Parameter(torch.zeros(num_classes, dims))
        self.known: Tensor
        self.register_buffer("known", torch.zeros(num_classes, dtype=torch.bool))

    @torch.no_grad()
    def start_from(self, class_means: Tensor) -> None:
        """The released start: c_i = mean direct feature of class i over the training set (K×D)."""
        self.centroids.copy_(class_means)
        self.known.fill_(True)

    @torch.no_grad()
    def gather(self, direct: Tensor, labels: Tensor, rate: float) -> None:
        """The paper's neighbourhood sampling: move each centroid towards its group's mean in this mini-batch.

        c_i ← c_i + rate · (mean of the group − c_i), and onto the mean when class i is seen for the first
        time; groups are over the global batch.
        """
        direct = direct.detach().to(self.centroids.dtype)
        sums = torch.zeros_like(self.centroids).index_add_(0, labels, direct)
        counts = torch.bincount(labels, minlength=len(sums)).to(sums.dtype)
        sums, counts = sum_over_ranks(sums), sum_over_ranks(counts)
        step = torch.where(self.known, rate, 1.0) * (counts > 0)
        means = sums / counts.clamp(min=1)[:, None]
        self.centroids.add_(step[:, None] * (means - self.centroids))
        self.known |= counts > 0

    def reachability(self, direct: Tensor, constant: bool) -> Tensor:
        """γ = min_i ‖v_direct − c_i‖₂: B×D → B; with `constant` no gradient reaches the centroids."""
        centroids = self.centroids.detach() if constant else self.centroids
        # The matrix product only picks the nearest; its distance is then computed exactly, and nothing of
        # size batch × classes × features is made.
        with torch.no_grad():
            distances = squared_distances(direct, centroids).masked_fill_(~self.known, float("inf"))
            nearest = distances.argmin(dim=1)
        gap = direct - centroids[nearest]
        return gap.square().sum(dim=1).clamp(min=NEAREST_POSSIBLE**2).sqrt()


def squared_distances(x: Tensor, centroids: Tensor) -> Tensor:
    """‖x_b − c_k‖² = ‖x_b‖² + ‖c_k‖² − 2 x_b·c_k: B×D, K×D → B×K, by one matrix product."""
    with torch.autocast(x.device.type, enabled=False):  # in bfloat16 the difference of large squares is noise
        squares = x.square().sum(dim=1, keepdim=True) + centroids.square().sum(dim=1)
        return torch.addmm(squares, x, centroids.T, alpha=-2).clamp(min=0)
