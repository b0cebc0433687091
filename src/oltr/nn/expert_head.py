"""One cosine classifier per expert, their logits averaged."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.heads import Head, Output


class ExpertHead(Head):
    """logits = mean over the experts e of scale · cos(v_e, w_ek), v_direct = (v_1 … v_E): B×(E·D) → B×K."""

    def __init__(self, experts: int, dims: int, num_classes: int, scale: float = 30.0):
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(F.normalize(torch.randn(experts, num_classes, dims), dim=2))

    def forward(self, direct: Tensor) -> Output:
        direct = direct.to(self.weight.dtype)
        return Output(self.expert_logits(direct).mean(dim=0), direct)

    def expert_logits(self, direct: Tensor) -> Tensor:
        """The logits of each expert, from its own part of v_direct: B×(E·D) → E×B×K."""
        experts, _, dims = self.weight.shape
        with torch.autocast(direct.device.type, enabled=False):
            own = F.normalize(direct.to(self.weight.dtype).unflatten(1, (experts, dims)), dim=2)
            weight = F.normalize(self.weight, dim=2)
            return (self.scale * own).transpose(0, 1) @ weight.transpose(1, 2)
