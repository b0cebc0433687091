"""A linear classifier fitted to all features at once, by L-BFGS."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

AT_ONCE = 2**22  # logits: those of all images may not fit, and smaller blocks are faster on a CPU

Prior = Tensor | Callable[[slice], Tensor]


def fit_linear(
    features: Tensor,
    labels: Tensor,
    prior: Prior,
    *,
    decay: float = 2.5e-3,
    iterations: int = 60,
) -> tuple[Tensor, Tensor, float]:
    """W (K×D), b (K) and the loss at the minimum of mean −log softmax(W v + b + prior)[y] + decay/2 ‖W‖².

    features N×D, labels N, prior K or N×K (zero: plain logistic regression; τ log n: logit-adjusted; also
    what others say of each image), or a function that gives the rows of a slice. The problem is convex and
    starts at zero: the result depends on the data alone.
    """
    classes, images = _rows(prior, slice(0, 1)).shape[-1], len(labels)
    size = max(AT_ONCE // classes, 1)
    blocks = [slice(start, min(start + size, images)) for start in range(0, images, size)]
    weight = torch.zeros(classes, features.shape[1], device=features.device, requires_grad=True)
    bias = torch.zeros(classes, device=features.device, requires_grad=True)
    solver = torch.optim.LBFGS(
        [weight, bias], max_iter=iterations, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
    )

    def share(block: slice) -> Tensor:
        """What the images of a block add to the mean."""
        logits = F.linear(features[block], weight, bias) + _rows(prior, block)
        return F.cross_entropy(logits, labels[block], reduction="sum") / images

    def closure() -> Tensor:
        solver.zero_grad()
        loss = 0.5 * decay * weight.square().sum()
        loss.backward()
        for block in blocks:
            part = share(block)
            part.backward()
            loss = loss.detach() + part.detach()
        return loss

    with torch.enable_grad():
        solver.step(closure)
    with torch.no_grad():
        loss = 0.5 * decay * weight.square().sum() + sum(share(block) for block in blocks)
        return weight.detach(), bias.detach(), float(loss)


def _rows(prior: Prior, block: slice) -> Tensor:
    if isinstance(prior, Tensor):
        return prior if prior.ndim == 1 else prior[block]
    return prior(block)
