"""Classifier weights for new classes, generated from a few features and the weights of known classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.blocked_softmax import lengths


class WeightGenerator(nn.Module):
    """w' = φ_avg ⊙ z + φ_att ⊙ Σ_b softmax_b(scale · cos(φ_q z, k_b)) w_b / ‖w_b‖, z a unit-length feature.

    A new class's weight is the mean of w' over its supports. The keys k start as the weights w, φ_q as the
    identity: at first a support attends to the classes most similar to it.
    """

    def __init__(self, weight: Tensor, scale: float):
        super().__init__()
        dims = weight.shape[1]
        self.average, self.attention = nn.Parameter(torch.ones(dims)), nn.Parameter(torch.ones(dims))
        self.query = nn.Linear(dims, dims, bias=False)
        nn.init.eye_(self.query.weight)
        self.keys = nn.Parameter(weight.clone())
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, z: Tensor, weight: Tensor, attended: Tensor) -> Tensor:
        """Features (n×D), the classes' weights (K×D) and which of them may be attended to (K) → n×D."""
        query = self.scale * F.normalize(self.query(z), dim=1)
        scores = query @ self.keys.T / lengths(self.keys)
        # A finite floor and the mask again: nothing is added where no class may be attended to.
        floor = torch.finfo(scores.dtype).min
        coefficients = scores.masked_fill(~attended, floor).softmax(dim=1) * attended / lengths(weight)
        return self.average * z + self.attention * (coefficients @ weight)
