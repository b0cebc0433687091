"""One classifier per expert, their logits averaged."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.heads import Head, Output


class ExpertHead(Head):
    """logits = mean over the experts e of scale · cos(v_e, w_ek), v_direct = (v_1 … v_E): B×(E·D) → B×K.

    Without a scale the classifiers are linear: w_ek·v_e + b_ek.
    """

    def __init__(self, experts: int, dims: int, num_classes: int, scale: float | None = 30.0):
        super().__init__()
        self.scale, weight = scale, torch.randn(experts, num_classes, dims)
        if scale is None:
            self.weight = nn.Parameter(weight / (3 * dims) ** 0.5)  # the deviation of nn.Linear's start
            self.bias = nn.Parameter(torch.zeros(experts * num_classes))  # of one dimension, as biases are
        else:
            self.weight = nn.Parameter(F.normalize(weight, dim=2))

    def forward(self, direct: Tensor) -> Output:
        direct = direct.to(self.weight.dtype)
        return Output(self.expert_logits(direct).mean(dim=0), direct)

    def expert_logits(self, direct: Tensor) -> Tensor:
        """The logits of each expert, from its own part of v_direct: B×(E·D) → E×B×K."""
        experts, classes, dims = self.weight.shape
        with torch.autocast(direct.device.type, enabled=False):
            own = direct.to(self.weight.dtype).unflatten(1, (experts, dims)).transpose(0, 1)
            if self.scale is None:
                return torch.baddbmm(self.bias.view(experts, 1, classes), own, self.weight.transpose(1, 2))
            weight = F.normalize(self.weight, dim=2)
            return (self.scale * F.normalize(own, dim=2)) @ weight.transpose(1, 2)


def expert_logits(head: Head, output: Output) -> Tensor:
    """The logits of each expert, of a head without experts its own: E×B×K."""
    if isinstance(head, ExpertHead):
        return head.expert_logits(output.direct_feature)
    return output.logits.float()[None]
