"""Cross-entropy plus the range loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from oltr.config import within
from oltr.losses.range import RangeLoss
from oltr.methods.base import LAYER, METHODS, Method, MethodInfo
from oltr.nn.network import Network, Output


@dataclass(frozen=True)
class RangeSettings:
    within_weight: float = 5e-5  # α, after the paper
    between_weight: float = 1e-4  # β, after the paper
    largest: int = 2  # k, distances per class, after the paper
    # Squared distance at which the nearest two classes are far enough apart. Ours: v_direct is far shorter
    # than the face features for which the paper chose 2e4.
    margin: float = 100.0

    def __post_init__(self) -> None:
        within("settings.largest", self.largest, 1)


@METHODS.register("range")
class Range(Method):
    """The plain model, then class-balanced batches with a loss that shortens the range of each class."""

    Settings = RangeSettings
    needs_stage2 = True
    acts_on_features = True
    info = MethodInfo(
        title="Range loss",
        summary="The plain model, then cross-entropy with small ranges within and a margin between classes",
        paper="Zhang et al., Range Loss for Deep Face Recognition with Long-Tailed Training Data, ICCV 2017",
        year=2017,
        changes="a margin that fits v_direct, which is shorter than their features; a class with one pair "
        "in a batch has that pair's distance as its range",
    )

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__(settings, train_counts, image_size)
        s = self.settings
        self.range_loss = RangeLoss(s.within_weight, s.between_weight, s.largest, s.margin)

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return f"plain, fc {LAYER}" if self.has_layer else "plain"

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        terms = super().loss(stage, network, output, labels)
        if stage == 2:
            terms |= self.range_loss.terms(output.direct_feature.float(), labels)
        return terms
