"""The range loss beside cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from oltr.config import within
from oltr.losses.range import between_classes, within_classes
from oltr.losses.whole_batch import whole_batch
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.network import Network, Output


@dataclass(frozen=True)
class RangeSettings:
    within_weight: float  # α
    between_weight: float  # β
    largest: int  # k, distances per class
    margin: float  # squared distance at which the nearest two classes are far enough apart

    def __post_init__(self) -> None:
        within("settings.largest", self.largest, 1)


@METHODS.register("range")
class Range(Method):
    """The plain model, then class-balanced batches in which each class's v_direct is held together."""

    Settings = RangeSettings
    needs_stage2 = True
    info = MethodInfo(
        title="Range loss",
        summary="The plain model, then cross-entropy, short ranges within and distance between classes",
        paper="Zhang et al., Range Loss for Deep Face Recognition with Long-Tailed Training Data, ICCV 2017",
        year=2017,
        changes="a margin that suits v_direct, which is shorter than their features; a class with one pair "
        "in a batch has that pair's distance for its range",
    )

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        terms, s = super().loss(stage, network, output, labels), self.settings
        if stage == 2:
            features, labels = whole_batch(output.direct_feature.float(), labels)
            terms["within"] = s.within_weight * within_classes(features, labels, largest=s.largest)
            terms["between"] = s.between_weight * between_classes(features, labels, margin=s.margin)
        return terms
