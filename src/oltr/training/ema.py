"""Weights averaged over the steps of a stage."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from oltr.nn.network import Network


class WeightAverage:
    """θ̄ ← d_t·θ̄ + (1 − d_t)·θ after step t = 0, 1, …: an exponential moving average.

    d_t = min(decay, (1 + t) / (10 + t)): nothing is left of the start after a few steps, however slow the
    decay. θ are the parameters and floating-point buffers (running statistics); other buffers are copied.
    The steps are counted on the device, which torch's own `AveragedModel` asks for their number each time:
    a CUDA graph could not record that. `steps` have been made before.
    """

    def __init__(self, network: Network, decay: float, steps: int = 0):
        self.decay = decay
        self.steps = torch.full((), float(steps), device=next(network.parameters()).device)
        self.network = copy.deepcopy(network).requires_grad_(False).eval()
        pairs = list(zip(_tensors(self.network), _tensors(network), strict=True))
        self.averages = [mean for mean, _ in pairs if mean.is_floating_point()]
        self.weights = [weight for _, weight in pairs if weight.is_floating_point()]
        self.copies = [mine for mine, _ in pairs if not mine.is_floating_point()]
        self.originals = [theirs for _, theirs in pairs if not theirs.is_floating_point()]

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights as they are now, in a few kernels for all tensors together."""
        share = (9 / (self.steps + 10)).clamp(min=1 - self.decay)  # 1 − d_t
        # Not _foreach_lerp_, which takes the share as a number of the host.
        differences = torch._foreach_sub(self.weights, self.averages)
        torch._foreach_mul_(differences, share)
        torch._foreach_add_(self.averages, differences)
        self.steps += 1
        if self.copies:
            torch._foreach_copy_(self.copies, self.originals)


def _tensors(network: Network) -> list[Tensor]:
    return [*network.parameters(), *network.buffers()]
