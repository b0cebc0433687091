"""The paper's pseudo-shots: how many training images are similar to a probe."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from oltr.identify.search import Search, top_similarities

SIMILAR = 0.7
NAMES = ("many", "few", "one", "zero")
MANY, FEW = 5, 2


def pseudo_shots(
    probes: Tensor,
    training: Tensor,
    similar: float = SIMILAR,
    search: Search = "auto",
    device: torch.device | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """many (≥ 5), few (2 to 4), one or zero training images with a cosine above `similar`, for each probe."""
    # More than five need not be counted.
    near = top_similarities(probes, training, MANY, search=search, device=device, progress=progress)
    number = (near > similar).sum(axis=1)
    return np.select([number >= MANY, number >= FEW, number == 1], NAMES[:3], NAMES[3])
