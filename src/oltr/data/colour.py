"""One of seven colour operations on each image of a batch, all in a few passes over the pixels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

KINDS = ("brightness", "contrast", "saturation", "sharpness", "auto-contrast", "solarise", "posterise")
_BLENDS = 4  # the first of them


def recolour(images: Tensor, draws: Tensor, chance: float) -> Tensor:
    """uint8 B×3×S×S → float in 0..1: by `chance` one operation on each image, by B×3 `draws`.

    The first four are a blend a·x + (1 − a)·target, a in 0.1..1.9, with black, the image's mean grey, its
    grey picture or its blur (means of 3×3 pixels). Auto-contrast stretches each colour to 0..1. Solarise
    inverts what is above a threshold in 60..255, posterise keeps the 2 to 5 highest bits.
    """
    whether, which, amount = draws[:, :, None].unbind(1)  # B×1
    kinds = torch.arange(len(KINDS), device=draws.device)
    drawn = (whether < chance) & ((len(KINDS) * which).floor() == kinds)  # B×7
    auto, solarise, posterise = drawn[:, _BLENDS:, None, None].split(1, dim=1)
    x = _change_bits(images, amount[:, :, None, None], solarise, posterise).float() / 255

    # 1 − a where the blend was drawn, else 0
    to_target = (drawn[:, :_BLENDS] * (0.9 - 1.8 * amount))[:, :, None, None]
    grey = grey_of(x)
    low, high = (each.view(-1, 3, 1, 1) for each in x.flatten(2).aminmax(dim=2))
    stretched = auto & (high > low)
    stretch = 1 / (high - low)
    scale = torch.where(stretched, stretch, 1 - to_target.sum(dim=1, keepdim=True))
    shift = torch.where(stretched, -low * stretch, to_target[:, 1:2] * grey.mean(dim=(2, 3), keepdim=True))
    blur = F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)
    x = torch.addcmul(shift, x, scale)
    x = torch.addcmul(x, grey, to_target[:, 2:3])
    return torch.addcmul(x, blur, to_target[:, 3:4]).clamp(0, 1)


def grey_of(x: Tensor) -> Tensor:
    """The luma (B×1×S×S) of B×3×S×S pixels."""
    return 0.299 * x[:, 0:1] + 0.587 * x[:, 1:2] + 0.114 * x[:, 2:3]


def _change_bits(images: Tensor, amount: Tensor, solarise: Tensor, posterise: Tensor) -> Tensor:
    """uint8 images with the bits inverted or cut off where it was drawn: exact on bytes, and a quarter of the
    memory that floats would move."""
    threshold = torch.where(solarise, 60 + 196 * amount, 255).to(torch.uint8)
    cut_off = torch.where(posterise, torch.exp2((3 + 4 * amount).floor()), 1)  # 8..64 levels in one
    kept = (256 - cut_off).to(torch.uint8)
    return torch.where(images > threshold, ~images, images & kept)
