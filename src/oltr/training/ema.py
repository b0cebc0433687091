"""Weights averaged over the steps of a stage."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from oltr.nn.network import Network


class WeightAverage:
    """θ̄ ← d·θ̄ + (1 − d)·θ after each step, with θ̄ = θ before the first: an exponential moving average.

    θ are the parameters and floating-point buffers (running statistics); other buffers are copied. Torch's
    own `AveragedModel` asks the device for its step count each time, which a CUDA graph cannot record.
    """

    def __init__(self, network: Network, decay: float):
        self.decay = decay
        self.network = copy.deepcopy(network).requires_grad_(False).eval()
        pairs = list(zip(_tensors(self.network), _tensors(network), strict=True))
        self.averages = [mean for mean, _ in pairs if mean.is_floating_point()]
        self.weights = [weight for _, weight in pairs if weight.is_floating_point()]
        self.copies = [mine for mine, _ in pairs if not mine.is_floating_point()]
        self.originals = [theirs for _, theirs in pairs if not theirs.is_floating_point()]

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights as they are now, in a few kernels for all tensors together."""
        torch._foreach_lerp_(self.averages, self.weights, 1 - self.decay)
        if self.copies:
            torch._foreach_copy_(self.copies, self.originals)


def _tensors(network: Network) -> list[Tensor]:
    return [*network.parameters(), *network.buffers()]
