"""The paper's augmentation on whole batches, each image with its own draw, on CPU or GPU."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.config import DataConfig

_DRAWS = 16  # random numbers per image; the spare ones let new augmentations leave the others unchanged
_TRIES = 10  # areas and shapes drawn until a "resized" crop fits, as in torchvision; the first are of the 16
_STEPS = 3  # brightness, contrast, saturation


def draw_views(rng: np.random.Generator, images: int) -> Tensor:
    """Uniform random numbers (n×34) that determine one augmented view of each image."""
    parts = (rng.random((images, number), dtype=np.float32) for number in (_DRAWS, 2 * (_TRIES - 1)))
    return torch.from_numpy(np.concatenate(list(parts), axis=1))


class Augment:
    """uint8 B×3×S×S → float B×3×s×s, normalised: random crop, flip and colour jitter, or the centre crop."""

    def __init__(self, config: DataConfig, device: torch.device | str = "cpu"):
        self.config = config
        mean, std = (torch.tensor(each, device=device).view(1, 3, 1, 1) for each in (config.mean, config.std))
        # (x − mean) / std as one multiplication and addition, from pixels in 0..1 and in 0..255.
        self.shift, self.scale, self.byte_scale = -mean / std, 1 / std, 1 / (255 * std)

    def evaluate(self, images: Tensor) -> Tensor:
        """The centre crop, at the evaluation size; features that stand for images pass as they are."""
        if images.is_floating_point():
            return images
        size = self.config.image_size
        top, left = ((side - size) // 2 for side in images.shape[2:])
        crop = images[:, :, top : top + size, left : left + size].float()
        views, seen = torch.addcmul(self.shift, crop, self.byte_scale), self.config.seen_size
        if seen == size:
            return views
        return F.interpolate(views, (seen, seen), mode="bilinear", align_corners=False, antialias=False)

    def train(self, images: Tensor, draws: Tensor) -> Tensor:
        """One augmented view of each image, by its row of `draws` (see `draw_views`); features pass."""
        if images.is_floating_point():
            return images
        config = self.config
        x = self._crop(images, draws)
        if config.flip:
            x = torch.where((draws[:, 4] < 0.5).view(-1, 1, 1, 1), x.flip(3), x)
        x = x.float() / 255 if not x.is_floating_point() else x
        if config.jitter:
            x = jitter(x, 1 + config.jitter * (2 * draws[:, 5:8] - 1), draws[:, 8:11].argsort(dim=1))
        return torch.addcmul(self.shift, x, self.scale)

    def _crop(self, images: Tensor, draws: Tensor) -> Tensor:
        size = self.config.image_size
        if self.config.crop == "resized":
            return _resized_crop(images, crop_boxes(draws, images.shape[3], self.config.smallest_crop), size)
        if self.config.crop == "padded":
            images = F.pad(images, [size // 8] * 4)
        rooms = (side - size + 1 for side in images.shape[2:])
        top, left = (
            (draw * room).long().clamp(max=room - 1)
            for draw, room in zip(draws[:, :2].unbind(1), rooms, strict=True)
        )
        steps = torch.arange(size, device=images.device)
        rows, columns = top[:, None] + steps, left[:, None] + steps  # B×s
        batch = torch.arange(len(images), device=images.device)
        # Indexing channels-last keeps the three colours of a pixel together: one read instead of three.
        picked = images.permute(0, 2, 3, 1)[batch[:, None, None], rows[:, :, None], columns[:, None, :]]
        return picked.permute(0, 3, 1, 2)


def crop_boxes(draws: Tensor, side: int, smallest: float) -> Tensor:
    """Left, top, width and height (n×4, whole pixels) of a random part of a side×side picture for each of n
    `draws`: the first area (smallest..1) and shape (3/4..4/3) of ten that fit, or else the whole picture."""
    tries = torch.cat([draws[:, :2], draws[:, _DRAWS:]], dim=1).view(len(draws), _TRIES, 2)
    area = side**2 * (smallest + (1 - smallest) * tries[:, :, 0])
    shape = torch.exp((2 * tries[:, :, 1] - 1) * math.log(4 / 3))
    sides = torch.stack([(area * shape).sqrt(), (area / shape).sqrt()], dim=2).round()  # n×10×2
    fits = ((sides >= 1) & (sides <= side)).all(dim=2)
    chosen = sides[torch.arange(len(draws), device=draws.device), fits.int().argmax(dim=1)]
    chosen = torch.where(fits.any(dim=1, keepdim=True), chosen, side)
    room = side - chosen
    return torch.cat([(draws[:, 2:4] * (room + 1)).floor().minimum(room), chosen], dim=1)


def _resized_crop(images: Tensor, boxes: Tensor, size: int) -> Tensor:
    """Those parts of the images (n×4: left, top, width, height), resized to size×size bilinearly."""
    low, length = (boxes / images.shape[3]).split(2, dim=1)
    centre, zero = 2 * low + length - 1, torch.zeros_like(length[:, 0])
    across = torch.stack([length[:, 0], zero, centre[:, 0]], dim=1)
    down = torch.stack([zero, length[:, 1], centre[:, 1]], dim=1)
    grid = F.affine_grid(
        torch.stack([across, down], dim=1), [len(images), 3, size, size], align_corners=False
    )
    pixels = images.float() / 255
    return F.grid_sample(pixels, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def jitter(x: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Brightness, contrast and saturation of each image, by its own factors (B×3) in its own order (B×3).

    Each is a blend x ← clamp(a·x + (1 − a)·target) towards black, the image's mean grey, or its grey picture.
    """
    for step in range(_STEPS):
        kind = order[:, step]
        a = factors.gather(1, kind[:, None]).view(-1, 1, 1, 1)
        grey = 0.299 * x[:, 0:1] + 0.587 * x[:, 1:2] + 0.114 * x[:, 2:3]
        target = torch.where((kind == 1).view(-1, 1, 1, 1), grey.mean(dim=(2, 3), keepdim=True), grey)
        target = target * (kind > 0).view(-1, 1, 1, 1)
        x = (a * x + (1 - a) * target).clamp(0, 1)
    return x
