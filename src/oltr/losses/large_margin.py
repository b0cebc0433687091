"""The paper's large-margin loss: nearer to the own centroid than to all others together."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from oltr.nn.blocks import class_blocks
from oltr.nn.class_rows import take_rows
from oltr.nn.memory import NEAREST_POSSIBLE, squared_distances


def large_margin_loss(meta: Tensor, labels: Tensor, centroids: Tensor, *, margin: float) -> Tensor:
    """The paper's L_LM, mean over the batch: max(0, ‖v_meta − c_y‖ − Σ_{i≠y} ‖v_meta − c_i‖ + margin)."""
    # The matrix product is too inexact for the one distance that shrinks towards zero.
    own = (meta - take_rows(centroids, labels)).square().sum(dim=1).clamp(min=NEAREST_POSSIBLE**2).sqrt()
    others = _DistancesToOthers.apply(meta, labels, centroids)
    return (own - others + margin).clamp(min=0).mean()


class LargeMarginLoss(nn.Module):
    """The paper's L_LM on meta-embeddings; without a weight (the paper's λ is 0.1)."""

    def __init__(self, margin: float = 5.0):
        super().__init__()
        self.margin = margin

    def forward(self, features: Tensor, labels: Tensor, centroids: Tensor) -> Tensor:
        """Embeddings (B×D), labels (B) and centroids (K×D) → a scalar."""
        return large_margin_loss(features, labels, centroids, margin=self.margin)


class _DistancesToOthers(torch.autograd.Function):
    """Σ_{i≠y} ‖x − c_i‖: B×D, B, K×D → B; the backward pass recomputes the distances."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, labels: Tensor, centroids: Tensor) -> Tensor:
        total = x.new_zeros(len(x))
        for block in class_blocks(len(x), *centroids.shape):
            squares = squared_distances(x, centroids[block])
            total += squares.masked_fill_(_own(labels, block), 0).sqrt_().sum(dim=1)
        ctx.save_for_backward(x, labels, centroids)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, labels, centroids = ctx.saved_tensors
        to_x, to_centroids = torch.zeros_like(x), torch.empty_like(centroids)
        with torch.autocast(x.device.type, enabled=False):
            for block in class_blocks(len(x), *centroids.shape):
                c, squares = centroids[block], squared_distances(x, centroids[block])
                silent = _own(labels, block) | (squares <= NEAREST_POSSIBLE**2)
                slope = squares.masked_fill_(silent, torch.inf).rsqrt_().mul_(gradient[:, None])
                # Σ slope (x − c), as two sums.
                to_x.addmm_(slope, c, alpha=-1).addcmul_(x, slope.sum(dim=1, keepdim=True))
                to_centroids[block].addmm_(slope.T, x, beta=0, alpha=-1)
                to_centroids[block].addcmul_(c, slope.sum(dim=0)[:, None])
        return to_x, None, to_centroids


def _own(labels: Tensor, block: slice) -> Tensor:
    """Whether a class of the block is the image's own: B → B×n."""
    return labels[:, None] == torch.arange(block.start, block.stop, device=labels.device)
