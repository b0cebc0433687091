"""Label-distribution-aware margins with re-weighting deferred to the second stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from oltr.config import within
from oltr.losses.ldam import LDAMLoss
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.backbone import Backbone
from oltr.nn.cosine_head import CosineHead
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.network import Network, Output


@dataclass(frozen=True)
class LdamSettings:
    scale: float = 30.0  # s, of the cosines
    margin: float = 0.5  # of the rarest class
    beta: float = 0.9999  # of the second stage's class weights

    def __post_init__(self) -> None:
        within("settings.margin", self.margin, 0)
        within("settings.beta", self.beta, 0, 0.999999)


@METHODS.register("ldam-drw")
class LdamDrw(Method):
    """A cosine classifier with margins in both stages, and class weights in the second."""

    Settings = LdamSettings
    info = MethodInfo(
        title="LDAM-DRW",
        summary="Larger margins for rarer classes; in the second stage also larger weights (re-weighting)",
        paper="Cao et al., Learning Imbalanced Datasets with Label-Distribution-Aware Margin Loss, "
        "NeurIPS 2019",
        year=2019,
        changes="re-weighting starts with the second stage; a run of one stage is LDAM alone",
    )

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__(settings, train_counts, image_size)
        s = self.settings
        self.ldam = LDAMLoss(train_counts, s.scale, s.margin)
        self.reweighted = LDAMLoss(train_counts, s.scale, s.margin, s.beta)

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return f"ldam, scale {self.settings.scale}, margin {self.settings.margin}"

    def build_stage1(self, backbone: Backbone) -> Network:
        head = CosineHead(backbone.channels, self.num_classes, self.settings.scale)
        return Network(backbone, DirectFeature(backbone.channels), head)

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        criterion = self.reweighted if stage == 2 else self.ldam
        return {"cross_entropy": criterion(output.logits.float(), labels)}
