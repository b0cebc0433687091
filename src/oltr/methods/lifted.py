"""The lifted structured loss beside cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from oltr.losses.lifted import lifted_structure_loss
from oltr.losses.whole_batch import whole_batch
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.network import Network, Output


@dataclass(frozen=True)
class LiftedSettings:
    weight: float
    margin: float  # α


@METHODS.register("lifted")
class Lifted(Method):
    """The plain model, then class-balanced batches in which v_direct of one class is drawn together."""

    Settings = LiftedSettings
    needs_stage2 = True
    info = MethodInfo(
        title="Lifted structured loss",
        summary="The plain model, then cross-entropy and a loss on all pairs of a class-balanced batch",
        paper="Song et al., Deep Metric Learning via Lifted Structured Feature Embedding, CVPR 2016",
        year=2016,
        changes="beside cross-entropy; on v_direct scaled to unit length, whose distances stay below 2: "
        "the loss is quadratic in them, and v_direct has any length",
    )

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        terms = super().loss(stage, network, output, labels)
        if stage == 2:
            features, labels = whole_batch(output.direct_feature.float(), labels)
            pairs = lifted_structure_loss(F.normalize(features, dim=1), labels, margin=self.settings.margin)
            terms["lifted"] = self.settings.weight * pairs
        return terms
