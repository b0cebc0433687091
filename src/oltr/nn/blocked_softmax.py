"""Softmax over very many classes, computed one block of classes at a time.

The forward pass keeps each row's largest score and its sum of exponentials; the backward pass recomputes each
block and writes its part of the weights' gradient in place. Not compiled: a compiler would unroll the blocks
and hold more of them at once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from oltr.nn.blocks import class_blocks

_SHORTEST = 1e-12  # of a weight that is divided by its length


def lengths(weight: Tensor) -> Tensor:
    """‖w_k‖, with a floor: K×D → K."""
    return torch.linalg.vector_norm(weight, dim=1).clamp(min=_SHORTEST)


@torch.compiler.disable
def blocked_cross_entropy(
    v: Tensor, weight: Tensor, labels: Tensor, bias: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """−log softmax(z)[label]: B×D, K×D, B (and K) → its mean over the batch, or ("none") B.

    z = v·w_k + b_k with a bias; without one the weights have unit length, z = v·w_k / ‖w_k‖.
    """
    with torch.autocast(v.device.type, enabled=False):
        losses = _CrossEntropy.apply(v.to(weight.dtype), weight, bias, labels)
        return losses if reduction == "none" else losses.mean()


@torch.compiler.disable
def blocked_memory_feature(v: Tensor, weight: Tensor, bias: Tensor, centroids: Tensor) -> Tensor:
    """v_memory = softmax(W v + b) M: B×D, K×D, K, K×D → B×D."""
    with torch.autocast(v.device.type, enabled=False):
        return _MemoryFeature.apply(v.to(weight.dtype), weight, bias, centroids)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
        largest, total = v.new_full((len(v), 1), -torch.inf), v.new_zeros(len(v), 1)
        for block in class_blocks(len(v), *weight.shape):
            largest, shrunk, powers = _raised(largest, _scores(v, weight, bias, block))
            total = total * shrunk + powers.sum(dim=1, keepdim=True)
        own = (v * weight[labels]).sum(dim=1)
        own = own / lengths(weight[labels]) if bias is None else own + bias[labels]
        ctx.save_for_backward(v, weight, bias, labels, largest, total)
        return (total.log() + largest - own[:, None])[:, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        v, weight, bias, labels, largest, total = ctx.saved_tensors
        to_v, to_weight = torch.zeros_like(v), torch.empty_like(weight)
        to_bias = None if bias is None else torch.empty_like(bias)
        with torch.autocast(v.device.type, enabled=False):
            for block in class_blocks(len(v), *weight.shape):
                w, scores = weight[block], _scores(v, weight, bias, block)
                classes = torch.arange(block.start, block.stop, device=labels.device)
                slope = (scores - largest).exp_().div_(total)
                slope = slope.add_(labels[:, None] == classes, alpha=-1).mul_(gradient[:, None])
                if to_bias is not None:
                    to_weight[block].addmm_(slope.T, v, beta=0)
                    to_bias[block] = slope.sum(dim=0)
                else:  # ∂z/∂w = v/‖w‖ − z w/‖w‖²
                    length = lengths(w)
                    slope = slope.div_(length)
                    along = scores.mul_(slope).sum(dim=0).div_(length)
                    to_weight[block].addmm_(slope.T, v, beta=0).addcmul_(w, along[:, None], value=-1)
                to_v.addmm_(slope, w)
        return to_v, to_weight, to_bias, None


class _MemoryFeature(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, weight: Tensor, bias: Tensor, centroids: Tensor) -> Tensor:
        largest, total = v.new_full((len(v), 1), -torch.inf), v.new_zeros(len(v), 1)
        feature = torch.zeros_like(v)
        for block in class_blocks(len(v), *weight.shape):
            largest, shrunk, powers = _raised(largest, _scores(v, weight, bias, block))
            total = total * shrunk + powers.sum(dim=1, keepdim=True)
            feature.mul_(shrunk).addmm_(powers, centroids[block])
        feature.div_(total)
        ctx.save_for_backward(v, weight, bias, centroids, largest, total, feature)
        return feature

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        v, weight, bias, centroids, largest, total, feature = ctx.saved_tensors
        to_v, to_weight, to_bias = torch.zeros_like(v), torch.empty_like(weight), torch.empty_like(bias)
        to_centroids = torch.empty_like(centroids) if ctx.needs_input_grad[3] else None
        with torch.autocast(v.device.type, enabled=False):
            shared = (gradient * feature).sum(dim=1, keepdim=True)
            for block in class_blocks(len(v), *weight.shape):
                coefficients = _scores(v, weight, bias, block).sub_(largest).exp_().div_(total)
                if to_centroids is not None:
                    to_centroids[block].addmm_(coefficients.T, gradient, beta=0)
                slope = (gradient @ centroids[block].T).sub_(shared).mul_(coefficients)
                to_weight[block].addmm_(slope.T, v, beta=0)
                to_bias[block] = slope.sum(dim=0)
                to_v.addmm_(slope, weight[block])
        return to_v, to_weight, to_bias, to_centroids


def _scores(v: Tensor, weight: Tensor, bias: Tensor | None, block: slice) -> Tensor:
    """z of the classes of one block: B×n."""
    w = weight[block]
    return (v @ w.T).div_(lengths(w)) if bias is None else torch.addmm(bias[block], v, w.T)


def _raised(largest: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The new largest score, the factor of earlier exponentials, and this block's (in place)."""
    higher = torch.maximum(largest, scores.amax(dim=1, keepdim=True))
    return higher, (largest - higher).exp(), scores.sub_(higher).exp_()
