"""Feature maps as B×C×H×W, whatever layout a network uses."""

from __future__ import annotations

import math

from torch import Tensor


def to_map(features: Tensor, channels: int, prefix_tokens: int) -> Tensor:
    """B×C×H×W from a map, a channels-last map (Swin), tokens (`prefix_tokens`, then patches), or a vector.

    Tokens that form no square grid, and vectors, become a map one position wide.
    """
    if features.ndim == 4:
        return features if features.shape[1] == channels else features.permute(0, 3, 1, 2)
    if features.ndim == 3:
        if prefix_tokens == 0 and features.shape[1] > 2 and _is_square(features.shape[1] - 1):
            prefix_tokens = 1  # a class token that the network (XCiT, CaiT) does not declare
        patches = features[:, prefix_tokens:].transpose(1, 2)
        side = math.isqrt(patches.shape[2])
        return patches.unflatten(2, (side, side)) if _is_square(patches.shape[2]) else patches.unsqueeze(3)
    return features[:, :, None, None]


def _is_square(number: int) -> bool:
    return math.isqrt(number) ** 2 == number
