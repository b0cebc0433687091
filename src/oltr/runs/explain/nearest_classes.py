"""To which classes an image lies nearest in the space of the direct feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class NearestClasses:
    """T classes, the nearest first."""

    classes: np.ndarray  # T int64
    distances: np.ndarray  # T float64, ‖v_direct − c‖₂
    of: str  # what c is, in words


def nearest_classes(direct: Tensor, centres: Tensor, there: Tensor, of: str, top: int = 5) -> NearestClasses:
    """The classes whose centres (K×D, those that are `there`) lie nearest to one feature (D)."""
    distances = (centres - direct).double().norm(dim=1).masked_fill(~there, torch.inf)
    values, classes = distances.sort(stable=True)
    count = min(top, int(there.sum()))
    return NearestClasses(classes[:count].numpy(), values[:count].numpy(), of)
