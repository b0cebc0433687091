"""A trained classifier with one learned scale per class."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.heads import Head, Output


class ScaledHead(Head):
    """logits_c = s_c (w_c·v_direct + b_c), s starting at 1, w and b of `classifier`: B×D → B×K, float32."""

    weight: Tensor
    bias: Tensor

    def __init__(self, classifier: nn.Linear):
        super().__init__()
        # Buffers, since a stage trains all parameters of the head or none.
        self.register_buffer("weight", classifier.weight.detach().clone())
        self.register_buffer("bias", classifier.bias.detach().clone())
        self.scale = nn.Parameter(torch.ones_like(self.bias))

    def forward(self, direct: Tensor) -> Output:
        with torch.autocast(direct.device.type, enabled=False):
            logits = F.linear(direct.to(self.weight.dtype), self.weight, self.bias)
        return Output(self.scale * logits, direct)
