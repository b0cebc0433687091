"""Logit adjustment, with a head that is fitted directly where the backbone is frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from oltr.config import within
from oltr.methods.balanced_softmax import BalancedSoftmax
from oltr.methods.base import METHODS, MethodInfo
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.fit_linear import fit_linear
from oltr.nn.heads import LinearHead
from oltr.nn.multilevel import MultilevelBackbone
from oltr.nn.network import Network

NEVER = -1e4  # the logit of a class without training images


@dataclass(frozen=True)
class Settings:
    """Numbers of the head's fit; steps use τ = 1, the loss as published."""

    tau: float = 1.25  # weight of the log frequencies
    decay: float = 2.5e-3  # of the head's weights
    iterations: int = 60

    def __post_init__(self) -> None:
        within("settings.tau", self.tau, 0)
        within("settings.decay", self.decay, 0)
        within("settings.iterations", self.iterations, 1)


@METHODS.register("logit-adjusted")
class LogitAdjusted(BalancedSoftmax):
    """Log class frequencies added to the logits in the loss; on frozen features the head's exact minimum.

    Stage 1 learns by steps. Stage 2, or stage 1 on a frozen backbone, fits a linear head to the features of
    several levels in one go.
    """

    info = MethodInfo(
        title="Logit adjustment on frozen or tuned features",
        summary="A linear head under logit-adjusted softmax, fitted by L-BFGS to features of several levels",
        paper="Menon et al., Long-Tail Learning via Logit Adjustment, ICLR 2021",
        year=2021,
        changes="on frozen features the convex problem is solved instead of trained, on the pooled features "
        "of the last map and of middle levels; tau 1.25",
    )
    Settings = Settings
    score = "max-logit"

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        # The loss has no place for a class without images: one that is never seen.
        super().__init__(settings, train_counts.clamp(min=1), image_size)
        self.train_counts = train_counts

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return f"logit-adjusted, {self.settings if self.backbone_frozen else 'by steps'}"

    def build_stage2(self, first: Network) -> Network:
        if isinstance(first.backbone, MultilevelBackbone):
            return first
        backbone = MultilevelBackbone(first.backbone)
        return Network(
            backbone, DirectFeature(backbone.channels), LinearHead(backbone.channels, self.num_classes)
        )

    def fit(self, network: Network, features: Tensor, labels: Tensor) -> float | None:
        if not isinstance(network.backbone, MultilevelBackbone):
            return None
        assert isinstance(network.head, LinearHead)
        s, counts = self.settings, self.train_counts.to(features.device)
        prior = log_prior(counts, s.tau)
        weight, bias, loss = fit_linear(features, labels, prior, decay=s.decay, iterations=s.iterations)
        bias.masked_fill_(counts == 0, NEVER)
        network.head.classifier.weight.data.copy_(weight)
        network.head.classifier.bias.data.copy_(bias)
        return loss


def log_prior(counts: Tensor, tau: float) -> Tensor:
    """τ log(n_k / Σ n), K: what is added to the logits in the loss."""
    counts = counts.float()
    return tau * (counts / counts.sum()).clamp(min=1e-12).log()
