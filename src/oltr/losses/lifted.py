"""The lifted structured loss: each pair of one class against all images of other classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oltr.losses.whole_batch import whole_batch
from oltr.nn.memory import squared_distances

_NO_NEGATIVE = -1e30  # in place of −∞, which has no gradient


def lifted_structure_loss(features: Tensor, labels: Tensor, *, margin: float) -> Tensor:
    """1/(2|P|) Σ_{(i,j) ∈ P} max(0, J_ij)², P the pairs of one class: B×D, B → a scalar, 0 without pairs.

    J_ij = log(Σ_{k: y_k ≠ y_i} exp(margin − D_ik) + Σ_{l: y_l ≠ y_j} exp(margin − D_jl)) + D_ij,
    D_ij = ‖x_i − x_j‖.
    """
    squares = squared_distances(features, features)
    # The floor is the rounding error of a zero distance between features of unit length.
    distances = squares.clamp(min=4 * torch.finfo(squares.dtype).eps).sqrt()
    same = labels[:, None] == labels
    pairs = same.triu(1)
    # An inner sum depends on one image alone: B of them serve all pairs.
    to_others = (margin - distances).masked_fill(same, _NO_NEGATIVE).logsumexp(dim=1)
    violations = torch.logaddexp(to_others[:, None], to_others) + distances
    total = violations.clamp(min=0).square().masked_fill(~pairs, 0).sum()
    return total / (2 * pairs.sum().clamp(min=1))


class LiftedStructureLoss(nn.Module):
    """The lifted structured loss on features (B×D) as they are given: scale them to unit length before."""

    def __init__(self, margin: float = 1.0):
        super().__init__()
        self.margin = margin

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        return lifted_structure_loss(*whole_batch(features, labels), margin=self.margin)
