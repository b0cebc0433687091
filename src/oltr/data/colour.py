"""One of seven colour operations on each image of a batch, all in a few passes over the pixels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.data.chance import one_of

KINDS = ("brightness", "contrast", "saturation", "sharpness", "auto-contrast", "solarise", "posterise")
_BLENDS = 4  # the first of them


def recolour(images: Tensor, draws: Tensor, chance: float) -> Tensor:
    """uint8 B×3×S×S → float in 0..1: by `chance` one operation on each image, by B×2 `draws`.

    The first four are a blend a·x + (1 − a)·target, a in 0.1..1.9, with black, the image's mean grey, its
    grey picture or its blur (means of 3×3 pixels). Auto-contrast stretches each colour to 0..1. Solarise
    inverts what is above a threshold in 60..255, posterise keeps the 2 to 5 highest bits.
    """
    drawn, amount = one_of(len(KINDS), draws[:, :1], chance), draws[:, 1:]  # B×7, B×1
    auto, solarise, posterise = drawn[:, _BLENDS:, None, None].split(1, dim=1)
    # Colour by colour in memory, in which sums over an image and over neighbours are fast.
    images = _change_bits(images, amount[:, :, None, None], solarise, posterise).contiguous()
    x = images.float() / 255

    # 1 − a where the blend was drawn, else 0
    to_target = (drawn[:, :_BLENDS] * (0.9 - 1.8 * amount))[:, :, None, None]
    grey = grey_of(x)
    low, high = x.amin(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
    stretched = auto & (high > low)
    stretch = 1 / (high - low)
    scale = torch.where(stretched, stretch, 1 - to_target.sum(dim=1, keepdim=True))
    shift = torch.where(stretched, -low * stretch, to_target[:, 1:2] * grey.mean(dim=(2, 3), keepdim=True))
    y = torch.addcmul(shift, x, scale)
    y = torch.addcmul(y, grey, to_target[:, 2:3])
    return torch.addcmul(y, _sums_of_nine(x), to_target[:, 3:4], value=1 / 9).clamp(0, 1)


def grey_of(x: Tensor) -> Tensor:
    """The luma (B×1×S×S) of B×3×S×S pixels."""
    return 0.299 * x[:, 0:1] + 0.587 * x[:, 1:2] + 0.114 * x[:, 2:3]


def _sums_of_nine(x: Tensor) -> Tensor:
    """The sum of each pixel and its eight neighbours, the edge repeated; on a CPU far faster than pooling."""
    x = F.pad(x, [1] * 4, mode="replicate")
    x = x[:, :, :-2] + x[:, :, 1:-1] + x[:, :, 2:]
    return x[..., :-2] + x[..., 1:-1] + x[..., 2:]


def _change_bits(images: Tensor, amount: Tensor, solarise: Tensor, posterise: Tensor) -> Tensor:
    """uint8 images with the bits inverted or cut off where it was drawn: exact on bytes, and a quarter of the
    memory that floats would move."""
    threshold = torch.where(solarise, 60 + 196 * amount, 255).to(torch.uint8)
    cut_off = torch.where(posterise, torch.exp2((3 + 4 * amount).floor()), 1)  # 8..64 levels in one
    kept = (256 - cut_off).to(torch.uint8)
    return torch.where(images > threshold, ~images, images & kept)
