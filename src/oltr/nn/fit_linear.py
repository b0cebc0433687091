"""A linear classifier fitted to all features at once, by L-BFGS."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def fit_linear(
    features: Tensor,
    labels: Tensor,
    prior: Tensor,
    *,
    decay: float = 2.5e-3,
    iterations: int = 60,
) -> tuple[Tensor, Tensor, float]:
    """W (K×D), b (K) and the loss at the minimum of mean −log softmax(W v + b + prior)[y] + decay/2 ‖W‖².

    features N×D, labels N, prior K or N×K (zero: plain logistic regression; τ log n: logit-adjusted; also
    what others say of each image). The problem is convex and starts at zero: the result depends on the data
    alone.
    """
    classes = prior.shape[-1]
    weight = torch.zeros(classes, features.shape[1], device=features.device, requires_grad=True)
    bias = torch.zeros(classes, device=features.device, requires_grad=True)
    solver = torch.optim.LBFGS(
        [weight, bias], max_iter=iterations, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        logits = F.linear(features, weight, bias) + prior
        return F.cross_entropy(logits, labels) + 0.5 * decay * weight.square().sum()

    def closure() -> Tensor:
        solver.zero_grad()
        value = loss()
        value.backward()
        return value

    with torch.enable_grad():
        solver.step(closure)
    with torch.no_grad():
        return weight.detach(), bias.detach(), float(loss())
