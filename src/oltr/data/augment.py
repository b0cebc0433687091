"""Augmentation on whole batches, each image by its own draws, on CPU or GPU."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.config import DataConfig
from oltr.data.affine import cut, random_affine
from oltr.data.colour import grey_of, recolour
from oltr.data.erase import erase

_DRAWS = 16  # random numbers per image; the spare ones let new augmentations leave the others unchanged
_TRIES = 10  # areas and shapes drawn until a "resized" crop fits, as in torchvision; the first are of the 16
_STEPS = 3  # brightness, contrast, saturation
_WEAK = _DRAWS + 2 * (_TRIES - 1)
_AFFINE, _COLOUR, _ERASE = (slice(_WEAK + start, _WEAK + end) for start, end in ((0, 2), (2, 4), (4, 8)))


def draws_per_view(config: DataConfig) -> int:
    """How many random numbers a view takes: 34, and eight more where strong augmentation is on."""
    return _ERASE.stop if config.affine or config.colour or config.erase else _WEAK


def draw_views(rng: np.random.Generator, images: int, numbers: int = _WEAK) -> Tensor:
    """Uniform random numbers (n×`numbers`) that determine one augmented view of each image."""
    # Drawn part by part: the earlier numbers do not depend on whether there are later ones.
    parts = (_DRAWS, _WEAK - _DRAWS, numbers - _WEAK)
    drawn = [rng.random((images, width), dtype=np.float32) for width in parts if width]
    return torch.from_numpy(np.concatenate(drawn, axis=1))


class Augment:
    """uint8 B×3×S×S → float B×3×s×s, normalised: a random view of each image, or the centre crop."""

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
        config, x = self.config, images
        if config.colour:
            # Before the crop: the black beside a moved picture is no part of its colours and stays black.
            x = recolour(x, draws[:, _COLOUR], config.colour)
        x = self._crop(x, draws)
        if config.flip:
            x = torch.where((draws[:, 4] < 0.5).view(-1, 1, 1, 1), x.flip(3), x)
        x = _as_float(x)
        if config.jitter:
            x = jitter(x, 1 + config.jitter * (2 * draws[:, 5:8] - 1), draws[:, 8:11].argsort(dim=1))
        x = torch.addcmul(self.shift, x, self.scale)
        return erase(x, draws[:, _ERASE], config.erase) if config.erase else x

    def _crop(self, images: Tensor, draws: Tensor) -> Tensor:
        config, size = self.config, self.config.image_size
        maps = random_affine(draws[:, _AFFINE], config.affine) if config.affine else None
        if config.crop == "resized":
            boxes = crop_boxes(draws, images.shape[3], config.smallest_crop)
            return cut(_as_float(images), boxes, size, maps)
        margin = size // 8 if config.crop == "padded" else 0
        room = images.shape[3] + 2 * margin - size + 1
        corner = (draws[:, :2] * room).long().clamp(max=room - 1)  # top and left
        if maps is not None:
            boxes = torch.cat([corner.flip(1) - margin, torch.full_like(corner, size)], dim=1)
            return cut(_as_float(images), boxes, size, maps, "zeros" if margin else "reflection")
        if margin:
            images = F.pad(images, [margin] * 4)
        rows, columns = (corner[:, :, None] + torch.arange(size, device=images.device)).unbind(1)  # B×s
        batch = torch.arange(len(images), device=images.device)
        # Indexing channels-last keeps the three colours of a pixel together: one read instead of three.
        picked = images.permute(0, 2, 3, 1)[batch[:, None, None], rows[:, :, None], columns[:, None, :]]
        return picked.permute(0, 3, 1, 2)


def _as_float(images: Tensor) -> Tensor:
    """Pixels in 0..1."""
    return images if images.is_floating_point() else images.float() / 255


def crop_boxes(draws: Tensor, side: int, smallest: float) -> Tensor:
    """Left, top, width and height (n×4, whole pixels) of a random part of a side×side picture for each of n
    `draws`: the first area (smallest..1) and shape (3/4..4/3) of ten that fit, or else the whole picture."""
    tries = torch.cat([draws[:, :2], draws[:, _DRAWS:_WEAK]], dim=1).view(len(draws), _TRIES, 2)
    area = side**2 * (smallest + (1 - smallest) * tries[:, :, 0])
    shape = torch.exp((2 * tries[:, :, 1] - 1) * math.log(4 / 3))
    sides = torch.stack([(area * shape).sqrt(), (area / shape).sqrt()], dim=2).round()  # n×10×2
    fits = ((sides >= 1) & (sides <= side)).all(dim=2)
    chosen = sides[torch.arange(len(draws), device=draws.device), fits.int().argmax(dim=1)]
    chosen = torch.where(fits.any(dim=1, keepdim=True), chosen, side)
    room = side - chosen
    return torch.cat([(draws[:, 2:4] * (room + 1)).floor().minimum(room), chosen], dim=1)


def jitter(x: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Brightness, contrast and saturation of each image, by its own factors (B×3) in its own order (B×3).

    Each is a blend x ← clamp(a·x + (1 − a)·target) towards black, the image's mean grey, or its grey picture.
    """
    for step in range(_STEPS):
        kind = order[:, step]
        a = factors.gather(1, kind[:, None]).view(-1, 1, 1, 1)
        grey = grey_of(x)
        target = torch.where((kind == 1).view(-1, 1, 1, 1), grey.mean(dim=(2, 3), keepdim=True), grey)
        target = target * (kind > 0).view(-1, 1, 1, 1)
        x = (a * x + (1 - a) * target).clamp(0, 1)
    return x
