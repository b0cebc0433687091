"""Classifiers on top of an embedding."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from oltr.nn.blocked_softmax import blocked_cross_entropy, lengths

SquashForm = Literal["released", "paper"]


def squash(v: Tensor, form: SquashForm) -> Tensor:
    """Scale vectors to below unit length, short ones most: B×D → B×D.

    released: v / (1 + ‖v‖);  paper: ‖v‖² / (1 + ‖v‖²) · v / ‖v‖.
    """
    norm = v.norm(dim=1, keepdim=True)
    if form == "released":
        return v / (1 + norm)
    return v * norm / (1 + norm.square())  # the paper's form with its ‖v‖ / ‖v‖² cancelled: no 0/0


class CosineClassifier(nn.Module):
    """logits = scale · squash(v) · (w_k / ‖w_k‖), no bias: B×D → B×K."""

    def __init__(self, dims: int, num_classes: int, scale: float = 16.0, form: SquashForm = "released"):
        super().__init__()
        self.scale, self.form = scale, form
        bound = 1 / math.sqrt(dims)
        self.weight = nn.Parameter(torch.empty(num_classes, dims).uniform_(-bound, bound))

    def forward(self, v: Tensor) -> Tensor:
        # Divided after the product, which has fewer elements than the weight where B < D.
        return (self.scale * squash(v, self.form)) @ self.weight.T / lengths(self.weight)

    def cross_entropy(self, v: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Cross-entropy of the logits of v, in blocks of classes: B×D, B → its mean, or ("none") B."""
        return blocked_cross_entropy(self.scale * squash(v, self.form), self.weight, labels, None, reduction)
