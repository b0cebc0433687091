"""Several experts on one backbone, trained to differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from oltr.config import within
from oltr.losses.balanced_softmax import BalancedSoftmaxLoss
from oltr.losses.mixed_labels import MixedLabels
from oltr.losses.uniform import uniform_cross_entropy
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.backbone import Backbone
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.expert_head import ExpertHead, expert_logits
from oltr.nn.expert_stages import give_experts
from oltr.nn.heads import Output
from oltr.nn.network import Network


@dataclass(frozen=True)
class ExpertsSettings:
    experts: int = 3
    logit_scale: float = 30.0  # of the cosine classifiers
    diversity: float = 0.2  # λ
    temperature: float = 1.0  # of the softmax in which experts are compared

    def __post_init__(self) -> None:
        within("settings.experts", self.experts, 1)
        within("settings.logit_scale", self.logit_scale, 1e-6)
        within("settings.diversity", self.diversity, 0)
        within("settings.temperature", self.temperature, 1e-6)


@METHODS.register("experts")
class Experts(Method):
    """Each expert has its own last stage and classifier; all are trained on every image, from the start."""

    Settings = ExpertsSettings
    works_frozen = False
    info = MethodInfo(
        title="Diverse experts (after RIDE)",
        summary="Experts (own last stage and classifier) on one backbone, trained to differ, logits averaged",
        paper="Wang et al., Long-tailed Recognition by Routing Diverse Distribution-Aware Experts, ICLR 2021",
        year=2021,
        changes="balanced softmax (logit-adjusted cross-entropy), not LDAM; experts of full width that "
        "share all stages except the last; one temperature for all classes; divergence from the mean of "
        "the experts' probabilities, which is bounded; no routing and no distillation",
    )

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__(settings, train_counts, image_size)
        self.balanced_softmax = BalancedSoftmaxLoss(train_counts)

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return str(self.settings)  # it depends on all of them

    def build_stage1(self, backbone: Backbone) -> Network:
        s, dims = self.settings, backbone.channels
        give_experts(backbone, s.experts, self.image_size)
        head = ExpertHead(s.experts, dims, self.num_classes, s.logit_scale)
        return Network(backbone, DirectFeature(backbone.channels), head)

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        logits = expert_logits(network.head, output)
        cross_entropy = self.balanced_softmax.of_experts(logits, labels).mean()
        return {"cross_entropy": cross_entropy, "diversity": self._diversity(logits)}

    def mixed_loss(
        self, stage: int, network: Network, output: Output, labels: MixedLabels
    ) -> dict[str, Tensor]:
        logits = expert_logits(network.head, output)
        cross_entropy = labels.mean(lambda hard: self.balanced_softmax.of_experts(logits, hard).mean(dim=0))
        return {"cross_entropy": cross_entropy, "diversity": self._diversity(logits)}

    def open_loss(self, stage: int, network: Network, output: Output) -> Tensor:
        return uniform_cross_entropy(expert_logits(network.head, output).flatten(0, 1))

    def _diversity(self, logits: Tensor) -> Tensor:
        return -self.settings.diversity * divergence(logits / self.settings.temperature)


def divergence(logits: Tensor) -> Tensor:
    """Mean over experts and images of KL(p_e ‖ p̄), p = softmax(logits), p̄ = mean_e p_e: E×B×K → a scalar.

    It is at most log E, which bounds what a larger distance between experts gains.
    """
    log_p = logits.log_softmax(dim=2)
    log_mean = log_p.logsumexp(dim=0) - math.log(len(log_p))
    return (log_p.exp() * (log_p - log_mean)).sum(dim=2).mean()
