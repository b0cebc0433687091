"""Networks that map a classifier of few images to that of many."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def level(shots: Tensor, levels: int) -> Tensor:
    """⌊log2 shots⌋, at least 0 and below `levels`: n → n."""
    return (shots[:, None] >= 2 ** torch.arange(1, levels, device=shots.device)).sum(dim=1)


def perceptron(dims: int) -> nn.Sequential:
    """Two layers with a leaky ReLU between: n×D → n×D."""
    return nn.Sequential(nn.Linear(dims, dims), nn.LeakyReLU(), nn.Linear(dims, dims))


class Regressor(nn.Module):
    """T(w) = W_2 leaky(W_1 w + b_1) + b_2, whatever the number of images: n×D, n → n×D."""

    def __init__(self, dims: int):
        super().__init__()
        self.layers = perceptron(dims)

    def forward(self, rows: Tensor, shots: Tensor) -> Tensor:
        return self.layers(rows)


class RecursiveRegressor(nn.Module):
    """F_i(w) = F_{i+1}(w + f(w; θ_i)), entered at i = ⌊log2 shots⌋: n×D, n → n×D.

    Block i maps a classifier of 2^i images to one of 2^(i+1), the last to one of many. The chain starts as
    the identity.
    """

    def __init__(self, dims: int, levels: int):
        super().__init__()
        blocks = [perceptron(dims) for _ in range(levels)]
        for block in blocks:
            for parameter in block[-1].parameters():
                nn.init.zeros_(parameter)
        self.blocks = nn.ModuleList(blocks)

    def forward(self, rows: Tensor, shots: Tensor) -> Tensor:
        entry = level(shots, len(self.blocks))[:, None]
        for number, block in enumerate(self.blocks):
            rows = torch.where(entry <= number, rows + block(rows), rows)
        return rows
