"""The training images per class, as losses take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from oltr.errors import UserError

Counts = Tensor | np.ndarray | Sequence[int]


def as_counts(counts: Counts) -> Tensor:
    """n_c as float32, at least 1: K numbers → K."""
    n = torch.as_tensor(counts).float()
    if n.ndim != 1 or not bool((n >= 1).all()):
        raise UserError(
            "A loss needs the training images of each class, at least one of each.",
            f"It was given {n.tolist() if n.numel() < 10 else f'a tensor of shape {tuple(n.shape)}'}.",
        )
    return n
