"""One of several operations for each image, from one random number."""

from __future__ import annotations

import torch
from torch import Tensor


def one_of(kinds: int, draws: Tensor, chance: float) -> Tensor:
    """Which kind was drawn (n×kinds bool) by uniform `draws` (n×1): each equally likely, `chance` in all."""
    return (draws * (kinds / chance)).floor() == torch.arange(kinds, device=draws.device)
