"""Label-distribution-aware margins, and re-weighting that is put off to the second stage."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from oltr.config import within
from oltr.losses.class_weights import class_balanced
from oltr.losses.ldam import ldam_loss
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.backbone import Backbone
from oltr.nn.class_counts import counts_of, keep_counts
from oltr.nn.cosine_head import CosineHead
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.network import Network, Output


@dataclass(frozen=True)
class LdamSettings:
    scale: float  # s, of the cosines
    margin: float  # of the rarest class
    beta: float  # of the second stage's class weights

    def __post_init__(self) -> None:
        within("settings.margin", self.margin, 0)
        within("settings.beta", self.beta, 0, 0.999999)


@METHODS.register("ldam-drw")
class LdamDrw(Method):
    """A cosine classifier with margins in both stages, and class weights in the second."""

    Settings = LdamSettings
    info = MethodInfo(
        title="LDAM-DRW",
        summary="Larger margins for rarer classes; in the second stage these also weigh more",
        paper="Cao et al., Learning Imbalanced Datasets with Label-Distribution-Aware Margin Loss, "
        "NeurIPS 2019",
        year=2019,
        changes="re-weighting begins with the second stage; a run of one stage is LDAM alone",
    )

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return f"ldam, scale {self.settings.scale}, margin {self.settings.margin}"

    def build_stage1(self, backbone: Backbone) -> Network:
        head = CosineHead(backbone.channels, self.num_classes, self.settings.scale)
        return keep_counts(Network(backbone, DirectFeature(backbone.channels), head), self.train_counts)

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        counts, s = counts_of(network), self.settings
        weights = class_balanced(counts, s.beta) if stage == 2 else torch.ones_like(counts)
        logits = output.logits.float()
        return {"cross_entropy": ldam_loss(logits, labels, counts, weights, scale=s.scale, margin=s.margin)}
