"""Cutmix (Yun et al., ICCV 2019) and mixup (Zhang et al., ICLR 2018), each image with its own draw."""

from __future__ import annotations

import torch
from torch import Tensor

# Random numbers per image: whether it is mixed, λ, where (down, across), and which label is drawn.
MIXING_DRAWS = 5


def mix(views: Tensor, partners: Tensor, draws: Tensor, kind: str, chance: float) -> tuple[Tensor, Tensor]:
    """Views mixed with their partners', and λ, the share that is left of each: B×3×s×s, B×5 → B×3×s×s, B."""
    share = torch.where(draws[:, 0] < chance, draws[:, 1], 1)
    if kind == "mixup":
        return torch.lerp(partners, views, share.view(-1, 1, 1, 1)), share
    box = _boxes(share, draws[:, 2:4], views.shape[2], views.shape[3])
    return torch.where(box[:, None], partners, views), 1 - box.float().mean(dim=(1, 2))


def _boxes(share: Tensor, centres: Tensor, height: int, width: int) -> Tensor:
    """A box of sides √(1 − λ) around a point of the image (B×2), cut at its edges, as a mask: B×h×w."""
    inside = []
    for length, centre in zip((height, width), centres.unbind(1), strict=True):
        side = (length * (1 - share).sqrt()).floor()
        start = (length * centre).floor() - (side / 2).floor()
        pixels = torch.arange(length, device=share.device)
        inside.append((pixels >= start[:, None]) & (pixels < (start + side)[:, None]))
    return inside[0][:, :, None] & inside[1][:, None, :]
