"""Our own method: balanced softmax, experts that learn from each other, views that are compared, a memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.config import within
from oltr.errors import UserError
from oltr.losses.agreement import agreement_loss
from oltr.losses.balanced_contrast import BalancedContrastLoss
from oltr.losses.balanced_softmax import BalancedSoftmaxLoss
from oltr.losses.consistency import consistency_loss
from oltr.losses.mixed_labels import MixedLabels
from oltr.losses.uniform import uniform_cross_entropy
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.methods.fit_beside_memory import fit_beside_memory
from oltr.methods.logit_adjusted import NEVER, log_prior
from oltr.methods.remember import remember
from oltr.metrics.labels import OPEN
from oltr.nn.backbone import Backbone
from oltr.nn.cosine_head import CosineHead
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.expert_head import ExpertHead, expert_logits
from oltr.nn.expert_stages import give_experts
from oltr.nn.heads import Head, LinearHead
from oltr.nn.memory_head import MemoryHead
from oltr.nn.multilevel import MultilevelBackbone
from oltr.nn.network import Network, Output
from oltr.nn.projector import projector

AFTERWARDS = ("class_means", "memory", "tau", "decay", "iterations")  # settings of what follows the stages
PROJECTED = 128  # dimensions in which views are compared


@dataclass(frozen=True)
class Oltr2Settings:
    experts: int = 1  # last stages with a classifier each, on a shared backbone
    classifier: Literal["linear", "cosine"] = "linear"
    logit_scale: float = 16.0  # of the cosine classifier
    agreement: float = 0.5  # weight of what experts learn from their mean
    contrast: float = 0.5  # weight of the contrastive term; of two views or more
    contrast_temperature: float = 0.1
    consistency: float = 0.0  # weight of views that predict each other; of two views or more
    # Where the backbone is trained: class means beside the classifier, their weight by validation images.
    class_means: Literal["validation", "none"] = "validation"
    # Where the backbone is frozen and the head is fitted:
    memory: float = 20.0  # weight of the cosine to the class means
    tau: float = 1.25  # weight of the log frequencies
    decay: float = 5e-3  # of the linear classifier's weights
    iterations: int = 60

    def __post_init__(self) -> None:
        within("settings.experts", self.experts, 1)
        within("settings.logit_scale", self.logit_scale, 1e-6)
        within("settings.agreement", self.agreement, 0)
        within("settings.contrast", self.contrast, 0)
        within("settings.contrast_temperature", self.contrast_temperature, 1e-6)
        within("settings.consistency", self.consistency, 0)
        within("settings.memory", self.memory, 0)
        within("settings.tau", self.tau, 0)
        within("settings.decay", self.decay, 0)
        within("settings.iterations", self.iterations, 1)


@METHODS.register("oltr2")
class Oltr2(Method):
    """L = Σ_e balanced softmax(z_e) + a · agreement(z_1 … z_E) + c · contrast + s · consistency.

    z_e are the logits of expert e, z their mean. The last two terms compare views of an image in projections
    of v_direct, and are left out where there is one view. The memory is the class means of v_direct after
    training: their cosines are added to z, with a weight by validation images (`remember`), and the unknown
    score adds to SCALE the whitened cosine to the nearest of them, beside the spread of v_direct.

    On a frozen backbone nothing is trained. There the memory is part of the head (`MemoryHead`), and the
    linear classifier beside it is the minimum of the logit-adjusted softmax.
    """

    Settings = Oltr2Settings
    score = "scale-70+spread-cosine"
    frozen_score = "scale-70"  # the memory is in the logits already
    frozen_class_means = True
    info = MethodInfo(
        title="OLTR 2 (ours)",
        summary="Balanced softmax, agreement of experts, contrastive loss between views; cosines to a memory "
        "of class means in the logits and in the unknown score; on frozen features a linear head fitted "
        "beside them",
        paper="this project, 2026; parts after Ren et al. 2020 (balanced softmax), Wang et al. 2021 and Jin "
        "et al. 2023 (experts, agreement), Zhu et al. 2022 (contrast), Chen and He 2021 (consistency)",
        year=2026,
    )

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__(settings, train_counts, image_size)
        # The loss has no place for a class without images: one that is never seen.
        self.balanced_softmax = BalancedSoftmaxLoss(train_counts.clamp(min=1))
        self.contrast = BalancedContrastLoss(self.settings.contrast_temperature)

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        used = {name: value for name, value in vars(self.settings).items() if name not in AFTERWARDS}
        return f"oltr2, {used}"

    def build_stage1(self, backbone: Backbone) -> Network:
        s, dims = self.settings, backbone.channels
        if s.experts > 1:
            give_experts(backbone, s.experts, self.image_size)
        if isinstance(backbone, MultilevelBackbone):
            if s.classifier != "linear":
                raise UserError(
                    f"settings.classifier is {s.classifier!r}.",
                    "On a frozen backbone the classifier is fitted, and linear.",
                    "settings.classifier=linear, or --train-backbone all",
                )
            return self._beside_memory(backbone)
        head = self._head(dims, s.logit_scale if s.classifier == "cosine" else None)
        direct_feature = DirectFeature(backbone.channels)
        return Network(backbone, direct_feature, head, auxiliary=self._auxiliary(direct_feature.dims))

    def build_stage2(self, first: Network) -> Network:
        """Where the backbone is frozen, features of several of its levels and a head to fit to them."""
        if not self.backbone_frozen or isinstance(first.backbone, MultilevelBackbone):
            return first
        return self._beside_memory(MultilevelBackbone(first.backbone))

    def _beside_memory(self, backbone: MultilevelBackbone) -> Network:
        dims = backbone.channels
        head = MemoryHead(dims, self.num_classes, self.settings.memory)
        return Network(backbone, DirectFeature(dims), head)

    def _head(self, dims: int, scale: float | None) -> Head:
        if self.settings.experts > 1:
            return ExpertHead(self.settings.experts, dims, self.num_classes, scale)
        return CosineHead(dims, self.num_classes, scale) if scale else LinearHead(dims, self.num_classes)

    def fit(self, network: Network, features: Tensor, labels: Tensor) -> float | None:
        if not isinstance(network.head, MemoryHead):
            return None
        s, counts = self.settings, self.train_counts.to(features.device)
        prior = log_prior(counts, s.tau)
        fitted = fit_beside_memory(
            features, labels, prior, scale=s.memory, decay=s.decay, iterations=s.iterations
        )
        network.head.classifier.weight.data.copy_(fitted.weight)
        network.head.classifier.bias.data.copy_(fitted.bias.masked_fill(counts == 0, NEVER))
        network.head.class_means.start_from(*fitted.memory)
        return fitted.loss

    def after_training(
        self, network: Network, features: Callable[..., tuple[Tensor, Tensor] | None]
    ) -> str | None:
        if self.settings.class_means == "none" or isinstance(network.head, MemoryHead):
            return None
        validation = features()
        if validation is None or not (known := validation[1] != OPEN).any():
            return "no memory beside the classifier: there are no validation images to choose its weight by"
        trained = features("train")
        assert trained is not None
        return remember(network, trained, (validation[0][known], validation[1][known]), self.num_classes)

    def _auxiliary(self, dims: int) -> nn.ModuleDict | None:
        parts: dict[str, nn.Module] = {}
        if self.settings.contrast:
            parts["contrast"] = projector(dims, PROJECTED)
            # Ten times as long as the features: shorter ones turn faster, follow features that are all alike
            # at first, and hold a short training up.
            parts["prototypes"] = nn.Embedding(self.num_classes, PROJECTED)
        if self.settings.consistency:
            parts["consistency"] = projector(dims, PROJECTED)
            parts["predictor"] = projector(PROJECTED, PROJECTED, PROJECTED)
        return nn.ModuleDict(parts) if parts else None

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        logits = expert_logits(network.head, output)
        return self._terms(logits, self._balanced(logits, labels).mean())

    def mixed_loss(
        self, stage: int, network: Network, output: Output, labels: MixedLabels
    ) -> dict[str, Tensor]:
        logits = expert_logits(network.head, output)
        return self._terms(logits, labels.mean(lambda hard: self._balanced(logits, hard)))

    def open_loss(self, stage: int, network: Network, output: Output) -> Tensor:
        logits = expert_logits(network.head, output)
        return len(logits) * uniform_cross_entropy(logits.flatten(0, 1))

    def _balanced(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Σ_e balanced softmax of each image: E×B×K, B → B."""
        return self.balanced_softmax.of_experts(logits, labels).sum(dim=0)

    def _terms(self, logits: Tensor, cross_entropy: Tensor) -> dict[str, Tensor]:
        terms = {"cross_entropy": cross_entropy}
        if len(logits) > 1 and self.settings.agreement:
            terms["agreement"] = self.settings.agreement * agreement_loss(logits)
        return terms

    def across_views(
        self, stage: int, network: Network, views: list[Output], labels: Tensor
    ) -> dict[str, Tensor]:
        s, parts = self.settings, network.auxiliary
        terms: dict[str, Tensor] = {}
        if parts is None:
            return terms
        features = [view.direct_feature.float() for view in views]
        if s.contrast:
            z = F.normalize(parts["contrast"](torch.cat(features)), dim=1)
            prototypes = parts["prototypes"]
            assert isinstance(prototypes, nn.Embedding)
            unit = F.normalize(prototypes.weight, dim=1)
            terms["contrast"] = s.contrast * self.contrast(z, labels.repeat(len(features)), unit)
        if s.consistency:
            projected = parts["consistency"](torch.cat(features))
            predicted = parts["predictor"](projected)
            size = len(labels)
            terms["consistency"] = s.consistency * consistency_loss(
                predicted.split(size), projected.split(size)
            )
        return terms
