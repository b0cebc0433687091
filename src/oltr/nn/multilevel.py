"""A frozen backbone as a feature extractor: its pooled last map joined with those of middle levels."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.backbone import Backbone
from oltr.nn.layout import to_map

SCALE = 16.0  # features of about this length train well at the rates that suit a network's own


class MultilevelBackbone(Backbone):
    """v = s·[unit(√f̄ − μ) | w·unit((ḡ_k − m_k) / σ_k) for each level k]: B×3×S×S → B×D×1×1.

    f̄ is the last map's mean over positions, with √ keeping the sign, and ḡ_k that of the k-th of the last
    `levels` stages. μ, m and σ are statistics of the training images (`fit_statistics`). Descriptors that
    were computed before (`describe`, B×R) pass as B×R×1×1, so that a run on frozen weights sees every image
    once.
    """

    def __init__(self, backbone: Backbone, levels: int = 3, level_weight: float = 0.35):
        nn.Module.__init__(self)
        self.net, self.pretrained = backbone.net, backbone.pretrained
        self.prefix_tokens, self.map_channels = backbone.prefix_tokens, backbone.channels
        self.level_weight, self.has_map, self.map_size = level_weight, False, (1, 1)
        infos = getattr(self.net, "feature_info", None) or []
        self.levels = min(levels, len(infos)) if hasattr(self.net, "forward_intermediates") else 0
        widths = [int(info["num_chs"]) for info in list(infos)[len(infos) - self.levels :]]
        self.widths = [self.map_channels, *widths]
        self.channels = self.described = sum(self.widths)
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.zeros(self.described))
        self.register_buffer("std", torch.ones(self.described))
        self.bfloat16_on_cpu = False  # in which CPUs that have it are twice as fast

    def forward(self, images: Tensor) -> Tensor:
        described = images.shape[1:] == (self.described, 1, 1)
        return self.normalise(images.flatten(1) if described else self.describe(images))[:, :, None, None]

    def describe(self, images: Tensor) -> Tensor:
        """√f̄ and ḡ_k of each image, side by side: B×3×S×S → B×R, float32.

        With `mirrors` their mean over the image and its mirror image.
        """
        if self.mirrors:
            return (self._describe(images) + self._describe(images.flip(3))) / 2
        return self._describe(images)

    def _describe(self, images: Tensor) -> Tensor:
        fast = self.bfloat16_on_cpu and images.device.type == "cpu"
        with torch.autocast("cpu", torch.bfloat16) if fast else nullcontext():
            if self.levels:
                last, maps = self.net.forward_intermediates(images, indices=self.levels)
            else:
                last, maps = self.net.forward_features(images), []
        last = to_map(last, self.map_channels, self.prefix_tokens).float().mean(dim=(2, 3))
        root = last.sign() * last.abs().sqrt()
        return torch.cat([root, *(each.float().mean(dim=(2, 3)) for each in maps)], dim=1)

    def normalise(self, descriptors: Tensor) -> Tensor:
        """v of descriptors: B×R → B×R."""
        parts = ((descriptors.float() - self.mean) / self.std).split(self.widths, dim=1)
        weights = [1.0, *[self.level_weight] * self.levels]
        return SCALE * torch.cat(
            [weight * F.normalize(part, dim=1) for weight, part in zip(weights, parts, strict=True)], dim=1
        )

    def fit_statistics(self, descriptors: Tensor) -> None:
        """μ, m and σ from the training images' descriptors, N×R."""
        std = descriptors.std(dim=0, correction=0)
        levels = std.split(self.widths)
        # A channel that hardly moves in training would outweigh all others of its level in a new image.
        floors = [torch.maximum(0.1 * level.median(), level.new_tensor(1e-6)) for level in levels[1:]]
        std = torch.cat([torch.ones_like(levels[0]), *map(torch.maximum, levels[1:], floors)])
        self.mean.copy_(descriptors.mean(dim=0))
        self.std.copy_(std)
