"""Mosaics: pictures of nothing, put together from the images of a batch, to learn on what "unknown" is."""

from __future__ import annotations

import torch
from torch import Tensor

SIDE = 4  # tiles along each side
TILES = SIDE**2  # and as many images in a mosaic


def half_of(images: int) -> int:
    """How many mosaics go with so many images."""
    return (images + 1) // 2


def mosaics(images: Tensor, draws: Tensor) -> Tensor:
    """Pictures of 4×4 tiles, each tile what another image shows at that place: B×3×h×w, M×n → M×3×h×w.

    The first 16 of a mosaic's n uniform `draws` say which image is where.
    """
    height, width = images.shape[2:]
    y, x = torch.arange(height, device=images.device), torch.arange(width, device=images.device)
    tile = (y * SIDE // height)[:, None] * SIDE + x * SIDE // width  # h×w
    source = _sources(len(images), draws)[:, tile]  # M×h×w
    # Channels last, as in the crop: the colours of a pixel are read together.
    return images.permute(0, 2, 3, 1)[source, y[:, None], x].permute(0, 3, 1, 2)


def _sources(images: int, draws: Tensor) -> Tensor:
    """Which image each tile of each mosaic is of, M×16: sixteen neighbours in the batch, in random order.

    Neighbours, as processes that share a batch each have a run of it: mosaics do not depend on their number
    if a part is a multiple of sixteen. With fewer than sixteen images some have several tiles.
    """
    group = torch.arange(len(draws), device=draws.device) * 2 // TILES
    first = (group * TILES).clamp(max=max(images - TILES, 0))
    return (first[:, None] + draws[:, :TILES].argsort(dim=1)) % images
