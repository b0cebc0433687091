"""A classifier that compares directions alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.blocked_softmax import lengths
from oltr.nn.heads import Head, Output


class CosineHead(Head):
    """logits = scale · cos(v_direct, w_k), no bias; always in float32, where cosines differ by little."""

    def __init__(self, dims: int, num_classes: int, scale: float = 30.0):
        super().__init__()
        self.scale = scale
        self.classifier = nn.Linear(dims, num_classes, bias=False)

    def forward(self, direct: Tensor) -> Output:
        weight = self.classifier.weight
        with torch.autocast(direct.device.type, enabled=False):
            unit = F.normalize(direct.to(weight.dtype), dim=1)
            return Output((self.scale * unit) @ weight.T / lengths(weight), direct)
