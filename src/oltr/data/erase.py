"""A square of each image of a batch becomes the mean colour."""

from __future__ import annotations

import torch
from torch import Tensor


def erase(x: Tensor, draws: Tensor, chance: float) -> Tensor:
    """Normalised B×3×s×s with, by `chance`, a square of zeros (0.2..0.6 of the side) around a point anywhere
    in the image, by B×4 `draws`; it may hang over the edge."""
    whether, side, *centre = draws[:, :, None].unbind(1)  # B×1
    half = (0.1 + 0.2 * side) * (whether < chance)
    places = (torch.arange(x.shape[3], device=x.device) + 0.5) / x.shape[3]
    rows, columns = ((places - at).abs() < half for at in centre)  # B×s
    return x.masked_fill((rows[:, :, None] & columns[:, None, :])[:, None], 0)
