"""Self-distillation of experts: each learns from the mean of all."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def agreement_loss(logits: Tensor, *, temperature: float = 2.0) -> Tensor:
    """T² Σ_e KL(softmax(z̄/T) ‖ softmax(z_e/T)), mean over the batch; z̄ = mean_e z_e, constant: E×B×K → 1."""
    together = (logits.mean(dim=0).detach() / temperature).log_softmax(dim=1).expand_as(logits)
    each = (logits / temperature).log_softmax(dim=2)
    return temperature**2 * F.kl_div(each, together, reduction="sum", log_target=True) / logits.shape[1]
