"""Cross-entropy weighted by inverse class frequency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from oltr.losses.class_weights import InverseFrequencyLoss
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.network import Network, Output


@METHODS.register("cost-sensitive")
class CostSensitive(Method):
    """The plain model; in stage 2 an image's weight is 1 / (training images of its class)."""

    needs_stage2 = True
    info = MethodInfo(
        title="Cost-sensitive",
        summary="The plain model, then cross-entropy weighted by inverse class frequency",
        paper="Huang et al., Learning Deep Representation for Imbalanced Classification, CVPR 2016",
        year=2016,
        changes="the baseline of that paper's comparison, on a softmax; only in the second stage: from "
        "scratch a few images of the rarest classes outweigh all others, and short trainings learn nothing",
    )

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__(settings, train_counts, image_size)
        self.weighted_loss = InverseFrequencyLoss(train_counts)

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        if stage == 1:
            return super().loss(stage, network, output, labels)
        return {"cross_entropy": self.weighted_loss(output.logits.float(), labels)}
