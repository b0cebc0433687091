"""The paper's augmentation on whole batches, each image with its own draw, on CPU or GPU."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.config import DataConfig

_DRAWS = 16  # random numbers per image; the spare ones let new augmentations leave the others unchanged
_STEPS = 3  # brightness, contrast, saturation


def draw_views(rng: np.random.Generator, images: int) -> Tensor:
    """Uniform random numbers (n×16) that determine one augmented view of each image."""
    return torch.from_numpy(rng.random((images, _DRAWS), dtype=np.float32))


class Augment:
    """uint8 B×3×S×S → float B×3×s×s, normalised: random crop, flip and colour jitter, or the centre crop."""

    def __init__(self, config: DataConfig, device: torch.device | str = "cpu"):
        self.config = config
        mean, std = (torch.tensor(each, device=device).view(1, 3, 1, 1) for each in (config.mean, config.std))
        # (x − mean) / std as one multiplication and addition, from pixels in 0..1 and in 0..255.
        self.shift, self.scale, self.byte_scale = -mean / std, 1 / std, 1 / (255 * std)

    def evaluate(self, images: Tensor) -> Tensor:
        """The centre crop; features that stand for images pass as they are."""
        if images.is_floating_point():
            return images
        size = self.config.image_size
        top, left = ((side - size) // 2 for side in images.shape[2:])
        crop = images[:, :, top : top + size, left : left + size].float()
        return torch.addcmul(self.shift, crop, self.byte_scale)

    def train(self, images: Tensor, draws: Tensor) -> Tensor:
        """One augmented view of each image, by its row of `draws` (see `draw_views`); features pass."""
        if images.is_floating_point():
            return images
        config = self.config
        x = self._crop(images, draws[:, :4])
        if config.flip:
            x = torch.where((draws[:, 4] < 0.5).view(-1, 1, 1, 1), x.flip(3), x)
        x = x.float() / 255 if not x.is_floating_point() else x
        if config.jitter:
            x = jitter(x, 1 + config.jitter * (2 * draws[:, 5:8] - 1), draws[:, 8:11].argsort(dim=1))
        return torch.addcmul(self.shift, x, self.scale)

    def _crop(self, images: Tensor, draws: Tensor) -> Tensor:
        size = self.config.image_size
        if self.config.crop == "resized":
            return _resized_crop(images, draws, size, self.config.smallest_crop)
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


def _resized_crop(images: Tensor, draws: Tensor, size: int, smallest: float) -> Tensor:
    """A rectangle of random area (smallest..1) and shape (3/4..4/3), resized to size×size bilinearly."""
    area = smallest + (1 - smallest) * draws[:, 0]
    shape = torch.exp((2 * draws[:, 1] - 1) * math.log(4 / 3))
    width, height = (area * shape).sqrt().clamp(max=1), (area / shape).sqrt().clamp(max=1)
    centre_x, centre_y = (2 * draws[:, 2] - 1) * (1 - width), (2 * draws[:, 3] - 1) * (1 - height)
    zero = torch.zeros_like(width)
    frame = torch.stack(
        [torch.stack([width, zero, centre_x], 1), torch.stack([zero, height, centre_y], 1)], dim=1
    )
    grid = F.affine_grid(frame, [len(images), 3, size, size], align_corners=False)
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
