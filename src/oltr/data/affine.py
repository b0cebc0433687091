"""The part of each picture that its view shows, cut out, turned and resized in one resampling."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.data.chance import one_of

_ROTATION = math.pi / 6  # radians
_SHEAR = 0.3
_SHIFT = 0.4  # of half the side
_KINDS = 5  # rotation, shear across and down, shift across and down


def random_affine(draws: Tensor, chance: float) -> Tensor:
    """Maps (n×2×3) from a view's coordinates (−1..1) to those of its crop, by n×2 `draws`: by `chance` one of
    a rotation, a shear or a shift, each uniform up to its limit, or else the identity."""
    amounts = one_of(_KINDS, draws[:, :1], chance) * (2 * draws[:, 1:] - 1)
    angle, shear, shift = amounts.split((1, 2, 2), dim=1)
    cos, sin = (_ROTATION * angle).cos(), (_ROTATION * angle).sin()
    (shear_across, shear_down), (shift_across, shift_down) = (
        (limit * part).split(1, dim=1) for limit, part in ((_SHEAR, shear), (_SHIFT, shift))
    )
    entries = [cos, shear_across - sin, shift_across, sin + shear_down, cos, shift_down]
    return torch.cat(entries, dim=1).view(-1, 2, 3)


def cut(
    pixels: Tensor, boxes: Tensor, size: int, maps: Tensor | None = None, fill: str = "reflection"
) -> Tensor:
    """Parts of n images (n×4: left, top, width, height), changed by `maps` (n×2×3) and resized to size×size
    bilinearly; what lies outside the picture is its reflection, or black (`fill` "zeros")."""
    low, length = (boxes / pixels.shape[3]).split(2, dim=1)
    if maps is None:
        maps = torch.eye(2, 3, device=pixels.device)
    centre = F.pad((2 * low + length - 1)[:, :, None], (2, 0))
    grid = F.affine_grid(
        maps * length[:, :, None] + centre, [len(pixels), 3, size, size], align_corners=False
    )
    return F.grid_sample(pixels, grid, mode="bilinear", padding_mode=fill, align_corners=False)
