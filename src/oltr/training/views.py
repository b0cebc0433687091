"""What the network sees of a batch: the views of its images, and their labels."""

from __future__ import annotations

import torch
from torch import Tensor

from oltr.config import StageConfig
from oltr.data.augment import Augment
from oltr.data.mixing import mix
from oltr.data.mosaics import half_of, mosaics
from oltr.losses.mixed_labels import MixedLabels


class Views:
    """The views of a batch (see `MixedBatch`) as V·B×3×s×s, view by view, the first one mixed; labels V·B.

    Mosaics of the last view's images, half as many, follow the views; they have no labels.
    """

    def __init__(self, augment: Augment, stage: StageConfig):
        self.augment, self.stage, self.number = augment, stage, stage.views

    def __call__(
        self, pixels: Tensor, draws: Tensor, labels: Tensor, mixing: Tensor | None
    ) -> tuple[Tensor, Tensor | MixedLabels]:
        if not self.stage.mosaics:
            return self._labelled(pixels, draws, labels, mixing)
        size = len(labels if mixing is None else mixing)
        of_views, of_mosaics = draws.tensor_split([len(draws) - half_of(size)])
        views, targets = self._labelled(pixels, of_views, labels, mixing)
        return torch.cat([views, mosaics(views[-size:], of_mosaics)]), targets

    def _labelled(
        self, pixels: Tensor, draws: Tensor, labels: Tensor, mixing: Tensor | None
    ) -> tuple[Tensor, Tensor | MixedLabels]:
        more = self.number - 1
        if mixing is None:
            images = torch.cat([pixels] * self.number) if more else pixels
            return self.augment.train(images, draws), labels.repeat(self.number) if more else labels
        size = len(pixels) // 2
        own, partners = labels.split(size)
        images = torch.cat([pixels, *[pixels[:size]] * more]) if more else pixels
        first, others, *clean = self.augment.train(images, draws).split(size)
        mixed, share = mix(first, others, mixing, self.stage.mix, self.stage.mix_chance)
        drawn = torch.where(mixing[:, -1] < share, own, partners)
        repeated = [own] * more
        targets = MixedLabels(
            torch.cat([own, *repeated]),
            torch.cat([partners, *repeated]),
            torch.cat([share, *[torch.ones_like(share)] * more]),
            torch.cat([drawn, *repeated]),
        )
        return torch.cat([mixed, *clean]), targets
