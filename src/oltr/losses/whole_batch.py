"""The batches of all processes as one, for losses that compare images with each other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from oltr.distributed import gather_over_ranks, rank, world_size


def whole_batch(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of all P processes, the same on each; the gradient reaches the own: B×D, B → P·B×D, P·B.

    Each process computes the loss of the whole batch; their gradients are to be averaged, as DDP does.
    """
    if world_size() == 1:
        return features, labels
    return _AllRows.apply(features), gather_over_ranks(labels)


class _AllRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return gather_over_ranks(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        # The own rows have their whole gradient in this process: the average over P would be a P-th of it.
        return gradient.chunk(world_size())[rank()] * world_size()
