"""Balanced softmax in both stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from oltr.losses.balanced_softmax import BalancedSoftmaxLoss
from oltr.losses.mixed_labels import MixedLabels
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.network import Network, Output


@METHODS.register("balanced-softmax")
class BalancedSoftmax(Method):
    """The plain model with log n_c added to the logits in the loss; evaluated with the bare logits."""

    info = MethodInfo(
        title="Balanced softmax",
        summary="Log class frequencies are added to the logits in training, and left out in evaluation",
        paper="Ren et al., Balanced Meta-Softmax for Long-Tailed Visual Recognition, NeurIPS 2020 "
        "(the same loss: Menon et al., Long-Tail Learning via Logit Adjustment, ICLR 2021)",
        year=2020,
        changes="the balanced softmax alone, without the meta-learned sampler",
    )
    first_stage = "balanced-softmax"

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__(settings, train_counts, image_size)
        self.balanced_softmax = BalancedSoftmaxLoss(train_counts)

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        return {"cross_entropy": self.balanced_softmax(output.logits.float(), labels)}

    def mixed_loss(
        self, stage: int, network: Network, output: Output, labels: MixedLabels
    ) -> dict[str, Tensor]:
        logits = output.logits.float()
        return {"cross_entropy": labels.mean(lambda hard: self.balanced_softmax(logits, hard, "none"))}
