"""Classifier weights of rare classes from a generator trained on common ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from oltr.config import within
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.common_classes import common_classes
from oltr.nn.episode import make_episode
from oltr.nn.generated_head import GeneratedHead
from oltr.nn.heads import LinearHead
from oltr.nn.network import Network, Output


@dataclass(frozen=True)
class FslwfSettings:
    least_images: int = 20  # of a class that keeps its own weight: below are the few-shot classes
    scale: float = 10.0  # published; of the cosines at the start, in the classifier and in the attention
    posing: float = 0.5  # share of a batch's classes that pose as new
    supports: int = 2  # images that a posing class's weight is generated from, at most

    def __post_init__(self) -> None:
        within("settings.posing", self.posing, 0, 1)
        within("settings.supports", self.supports, 1)


@METHODS.register("fslwf")
class Fslwf(Method):
    """Stage 1 the plain model; stage 2 cosine weights and their generator, on fixed features."""

    Settings = FslwfSettings
    needs_stage2 = True
    info = MethodInfo(
        title="Few-shot learning without forgetting (FSLwF)",
        summary="Attention over the weights of common classes generates those of rare ones",
        paper="Gidaris and Komodakis, Dynamic Few-Shot Visual Learning without Forgetting, CVPR 2018",
        year=2018,
        changes="features from the plain model, centred, where the paper leaves out the last ReLU; rare "
        "classes in place of new ones, their class mean as the one support; keys start as the weights",
    )

    def build_stage2(self, first: Network) -> Network:
        assert isinstance(first.head, LinearHead)
        common = common_classes(self.train_counts, self.settings.least_images)
        head = GeneratedHead(first.head.classifier.weight.detach(), common, self.settings.scale)
        return Network(first.backbone, first.direct_feature, head)

    def on_stage_start(self, stage: int, network: Network, class_means: Callable[[], Tensor]) -> None:
        if isinstance(network.head, GeneratedHead):
            network.head.start_from(class_means())

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        if not isinstance(network.head, GeneratedHead):
            return super().loss(stage, network, output, labels)
        drawn = torch.rand(len(labels), device=labels.device) < self.settings.posing
        episode = make_episode(labels, drawn, self.settings.supports)
        return {"cross_entropy": episode.cross_entropy(network.head.pose(output, episode))}
