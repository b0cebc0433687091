"""Cross-entropy plus the lifted structured loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from oltr.losses.lifted import LiftedStructureLoss
from oltr.methods.base import LAYER, METHODS, Method, MethodInfo
from oltr.nn.network import Network, Output


@dataclass(frozen=True)
class LiftedSettings:
    weight: float = 0.1  # ours
    margin: float = 1.0  # α, as published


@METHODS.register("lifted")
class Lifted(Method):
    """The plain model, then class-balanced batches with a loss that pulls v_direct of one class together."""

    Settings = LiftedSettings
    needs_stage2 = True
    acts_on_features = True
    info = MethodInfo(
        title="Lifted structured loss",
        summary="The plain model, then cross-entropy and a loss on all pairs of a class-balanced batch",
        paper="Song et al., Deep Metric Learning via Lifted Structured Feature Embedding, CVPR 2016",
        year=2016,
        changes="added to cross-entropy; on v_direct scaled to unit length: the loss is quadratic in the "
        "distances, and v_direct has any length",
    )

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__(settings, train_counts, image_size)
        self.lifted_loss = LiftedStructureLoss(self.settings.margin)

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return f"plain, fc {LAYER}" if self.has_layer else "plain"

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        terms = super().loss(stage, network, output, labels)
        if stage == 2:
            features = F.normalize(output.direct_feature.float(), dim=1)
            terms["lifted"] = self.settings.weight * self.lifted_loss(features, labels)
        return terms
