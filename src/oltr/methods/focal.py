"""The focal loss in both stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from oltr.config import within
from oltr.losses.focal import FocalLoss
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.network import Network, Output


@dataclass(frozen=True)
class FocalSettings:
    gamma: float = 1.0  # how fast an image counts less as its probability grows; 0: cross-entropy

    def __post_init__(self) -> None:
        within("settings.gamma", self.gamma, 0)


@METHODS.register("focal")
class Focal(Method):
    """The plain model's network under the focal loss, class-balanced batches in its second stage."""

    Settings = FocalSettings
    info = MethodInfo(
        title="Focal loss",
        summary="Cross-entropy that weights images less the more confidently they are recognised",
        paper="Lin et al., Focal Loss for Dense Object Detection, ICCV 2017",
        year=2017,
        changes="of a softmax, not of one sigmoid per class; no weight per class; γ = 1 as is usual here",
    )

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__(settings, train_counts, image_size)
        self.focal_loss = FocalLoss(self.settings.gamma)

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return f"focal, γ {self.settings.gamma}"

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        return {"cross_entropy": self.focal_loss(output.logits.float(), labels)}
