"""The visual memory: one discriminative centroid per class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oltr.distributed import gather_over_ranks
from oltr.nn.blocks import class_blocks
from oltr.nn.class_rows import class_sums, first_of_class, take_rows

# Keeps 1/γ finite for an image that lies on a centroid.
NEAREST_POSSIBLE = 1e-6


class Memory(nn.Module):
    """M = {c_i}: K×D centroids, learned together with the features.

    A class without an image so far has no centroid: it is never the nearest one.
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
    def update_centroids(self, direct: Tensor, labels: Tensor, rate: float) -> None:
        """The paper's neighbourhood sampling: move each centroid towards its group's mean in this mini-batch.

        c_i ← c_i + rate · (mean of the group − c_i), and onto the mean when class i is seen for the first
        time; groups are over the global batch.
        """
        direct = gather_over_ranks(direct.to(self.centroids.dtype))
        labels = gather_over_ranks(labels)
        counts = first_of_class(labels).sum(dim=1, keepdim=True).clamp(min=1)
        to_mean = class_sums(direct - self.centroids[labels], labels) / counts
        step = 1 - (1 - rate) * self.known[labels].to(direct.dtype)[:, None]
        self.centroids.index_add_(0, labels, step * to_mean)
        self.known.index_fill_(0, labels, True)

    def reachability(self, direct: Tensor, constant: bool) -> Tensor:
        """γ = min_i ‖v_direct − c_i‖₂: B×D → B; with `constant` no gradient reaches the centroids."""
        centroids = self.centroids.detach() if constant else self.centroids
        # The matrix product only selects the nearest; its distance is then computed exactly.
        gap = direct - take_rows(centroids, self.nearest(direct))
        return gap.square().sum(dim=1).clamp(min=NEAREST_POSSIBLE**2).sqrt()

    @torch.no_grad()
    def nearest(self, direct: Tensor) -> Tensor:
        """argmin_i ‖v_direct − c_i‖ over the classes that have a centroid: B×D → B."""
        blocks = class_blocks(direct.shape[0], *self.centroids.shape)
        return self._nearest_of(direct, blocks[0])[1] if len(blocks) == 1 else self._over(direct, blocks)

    @torch.compiler.disable  # a compiler would unroll the blocks
    def _over(self, direct: Tensor, blocks: list[slice]) -> Tensor:
        distances, nearest = map(
            torch.stack, zip(*(self._nearest_of(direct, b) for b in blocks), strict=True)
        )
        return nearest.gather(0, distances.argmin(dim=0, keepdim=True))[0]

    def _nearest_of(self, direct: Tensor, block: slice) -> tuple[Tensor, Tensor]:
        """The least ‖c‖² − 2 x·c, which orders classes as the distance does, and its class: B, B."""
        centroids = self.centroids[block]
        squares = torch.linalg.vector_norm(centroids, dim=1).square()
        squares = squares.masked_fill_(~self.known[block], torch.inf)
        with torch.autocast(direct.device.type, enabled=False):
            distances, nearest = torch.addmm(squares, direct, centroids.T, alpha=-2).min(dim=1)
        return distances, nearest + block.start


def squared_distances(x: Tensor, centroids: Tensor) -> Tensor:
    """‖x_b − c_k‖² = ‖x_b‖² + ‖c_k‖² − 2 x_b·c_k: B×D, K×D → B×K, by one matrix product."""
    with torch.autocast(x.device.type, enabled=False):  # in bfloat16 the difference of large squares is noise
        squares = x.square().sum(dim=1, keepdim=True) + centroids.square().sum(dim=1)
        return torch.addmm(squares, x, centroids.T, alpha=-2).clamp(min=0)
