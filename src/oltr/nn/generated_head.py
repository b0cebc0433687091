"""A cosine classifier that generates the weights of its rare classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn import blocks
from oltr.nn.blocked_softmax import lengths
from oltr.nn.episode import Episode
from oltr.nn.heads import Head, Output
from oltr.nn.weight_generator import WeightGenerator


class GeneratedHead(Head):
    """logits = scale · cos(v_direct − μ, w_k), in evaluation with generated weights for classes not common.

    In training every class has its own weight, until an episode overwrites some; always in float32.
    Features are centred on the mean μ of the class means: after a ReLU all directions are similar.
    """

    common: Tensor  # K
    others: Tensor  # indices of the classes that are not common
    class_means: Tensor  # K×D
    middle: Tensor  # D

    def __init__(self, weight: Tensor, common: Tensor, scale: float):
        super().__init__()
        self.weight = nn.Parameter(F.normalize(weight, dim=1))
        self.generator = WeightGenerator(self.weight.detach(), scale)
        self.scale = nn.Parameter(torch.tensor(scale))
        self.register_buffer("common", common)
        self.register_buffer("others", (~common).nonzero()[:, 0])
        self.register_buffer("class_means", torch.zeros_like(weight))
        self.register_buffer("middle", torch.zeros_like(weight[0]))

    def start_from(self, class_means: Tensor) -> None:
        """Store the class means (K×D) and their mean."""
        self.class_means.copy_(class_means)
        self.middle.copy_(class_means.mean(dim=0))

    def forward(self, direct: Tensor) -> Output:
        with torch.autocast(direct.device.type, enabled=False):
            direct = direct.to(self.weight.dtype)
            z = self.unit(direct)
            logits = self.cosines(z, self.weight)
            if not self.training:
                logits = logits.index_copy(1, self.others, self.cosines(z, self._others_weights()))
        return Output(logits, direct)

    def unit(self, features: Tensor) -> Tensor:
        """Centred features of unit length: n×D → n×D."""
        return F.normalize(features - self.middle, dim=1)

    def cosines(self, z: Tensor, weight: Tensor) -> Tensor:
        """scale · cos(z, w) of unit-length z: B×D, n×D → B×n."""
        return self.scale * z @ weight.T / lengths(weight)

    def pose(self, output: Output, episode: Episode) -> Tensor:
        """Logits with generated weights for the posing classes, to which none attends: B×K."""
        z, attended = self.unit(output.direct_feature), self.common & ~episode.posing(len(self.common))
        generated = episode.means(self.generator(z, self.weight, attended))
        return episode.overwrite(output.logits, self.cosines(z, generated))

    def _others_weights(self) -> Tensor:
        """Generated weights of the classes that are not common, each from its class mean as one support."""
        # A part at a time: these classes × all classes may be too large a tensor.
        parts = self.unit(self.class_means[self.others]).split(max(blocks.LARGEST // len(self.weight), 1))
        return torch.cat([self.generator(part, self.weight, self.common) for part in parts])
