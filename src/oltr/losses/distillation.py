"""Distillation: another network's answers in the place of labels (Hinton, Vinyals and Dean, 2015)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def distillation_loss(logits: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    """T² · mean over rows of KL(softmax(teacher/T) ‖ softmax(logits/T)), in float32; B×K each → a scalar.

    The factor T² keeps the gradient's size whatever the temperature.
    """
    ours, theirs = ((each.float() / temperature).log_softmax(dim=1) for each in (logits, teacher))
    return temperature**2 * F.kl_div(ours, theirs, reduction="batchmean", log_target=True)
