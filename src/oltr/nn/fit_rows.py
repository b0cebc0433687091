"""Rows of a classifier for new classes, fitted beside rows that stay as they are."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def fit_rows(
    features: Tensor,
    logits: Tensor,
    labels: Tensor,
    weights: Tensor,
    prior: Tensor,
    residuals: Tensor,
    *,
    decay: float = 2.5e-3,
    spread: float = 0.05,
    iterations: int = 60,
) -> tuple[Tensor, Tensor]:
    """W (M×D) and b (M) of M new classes beside K old ones, old logits fixed:

    min Σ ω −log softmax([z | W u + b + prior])[y] + decay/2 (‖W‖² + spread/σ² · mean_r ‖W r‖²).

    features u N×D, the old logits z N×K (their own prior included), labels N (K and above: new), weights ω N
    (they are made to sum to 1), prior M. The residuals r (R×D) are what features of one class differ by; σ²
    is their mean square: a row must not answer to what varies within every class. Convex, from zero: the
    result depends on the data alone.
    """
    new, old = len(prior), logits.shape[1]
    rest = logits.logsumexp(dim=1, keepdim=True)  # of the old classes this is all the loss needs
    own = logits.gather(1, labels.clamp(max=old - 1)[:, None])[:, 0]
    is_new = labels >= old
    weights = weights / weights.sum()
    scale = spread / residuals.square().mean().clamp(min=1e-12) if len(residuals) else 0.0
    weight = torch.zeros(new, features.shape[1], device=features.device, requires_grad=True)
    bias = torch.zeros(new, device=features.device, requires_grad=True)
    solver = torch.optim.LBFGS(
        [weight, bias], max_iter=iterations, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        solver.zero_grad()
        added = F.linear(features, weight, bias) + prior
        right = added.gather(1, (labels - old).clamp(min=0)[:, None])[:, 0]
        loss = weights @ (torch.cat([rest, added], dim=1).logsumexp(dim=1) - torch.where(is_new, right, own))
        penalty = weight.square().sum()
        if len(residuals):
            penalty = penalty + scale * (residuals @ weight.T).square().sum() / len(residuals)
        value = loss + 0.5 * decay * penalty
        value.backward()
        return value

    with torch.enable_grad():
        solver.step(closure)
    return weight.detach(), bias.detach()
