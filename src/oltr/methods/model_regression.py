"""Classifiers of rare classes, regressed from few-shot classifiers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from oltr.config import within
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.common_classes import common_classes
from oltr.nn.episode import make_episode
from oltr.nn.heads import LinearHead
from oltr.nn.network import Network, Output
from oltr.nn.regressed_head import RegressedHead
from oltr.nn.regressors import Regressor, level


@dataclass(frozen=True)
class RegressionSettings:
    least_images: int = 101  # of a class that keeps its own row: the many-shot classes
    supports: int = 2  # images of a class in the batch that its few-shot row is made from, at most
    levels: int = 7  # trained on few-shot rows as of 1, 2, 4 ... 2^(levels − 1) images
    cross_entropy_weight: float = 1.0  # λ

    def __post_init__(self) -> None:
        within("settings.supports", self.supports, 1)
        within("settings.levels", self.levels, 1)
        within("settings.cross_entropy_weight", self.cross_entropy_weight, 0)


@METHODS.register("model-regression")
class ModelRegression(Method):
    """Stage 1 the plain model; stage 2 learns T: few-shot row r⁰ → row r* trained on many images.

    L = mean over the batch's common classes of ‖T(r⁰) − r*‖² + λ · cross-entropy of the queries, under the
    classifier with rows T(r⁰) for the classes in the batch.
    """

    Settings = RegressionSettings
    needs_stage2 = True
    info = MethodInfo(
        title="Model regression",
        summary="A small network turns few-shot classifiers into many-shot ones",
        paper="Wang and Hebert, Learning to Learn: Model Regression Networks for Easy Small Sample Learning, "
        "ECCV 2016",
        year=2016,
        changes="few-shot classifiers are mean features with the variance of 1 to 64 images, computed per "
        "batch; the paper trains SVMs. Softmax cross-entropy instead of the hinge loss; two "
        "layers",
    )

    def regressor(self, dims: int) -> nn.Module:
        """T on rows of D+1 numbers."""
        return Regressor(dims)

    def build_stage2(self, first: Network) -> Network:
        assert isinstance(first.head, LinearHead)
        common = common_classes(self.train_counts, self.settings.least_images)
        regressor = self.regressor(first.direct_feature.dims + 1)
        head = RegressedHead(first.head.classifier, common, self.train_counts, regressor)
        return Network(first.backbone, first.direct_feature, head)

    def on_stage_start(self, stage: int, network: Network, class_means: Callable[[], Tensor]) -> None:
        if isinstance(network.head, RegressedHead):
            network.head.start_from(class_means())

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        head, direct = network.head, output.direct_feature
        if not isinstance(head, RegressedHead):
            return super().loss(stage, network, output, labels)
        episode = make_episode(labels, torch.ones_like(labels, dtype=torch.bool), self.settings.supports)
        shots = draw_shots(head.counts[labels], self.settings.levels)
        means = as_of(shots, episode.means(direct), episode.shots, head.class_means[labels])
        rows = head.regress(means, shots)
        logits = episode.overwrite(output.logits, head.scores(direct, rows))
        known = episode.row & head.common[labels]
        errors = torch.where(known, (rows - head.rows[labels]).square().sum(dim=1), 0)
        return {
            "cross_entropy": self.settings.cross_entropy_weight * episode.cross_entropy(logits),
            "regression": errors.sum() / known.sum().clamp(min=1),
        }


def draw_shots(counts: Tensor, levels: int) -> Tensor:
    """k = 2^i with i at random below `levels`, for a class of n ≥ 2 images with 2k ≤ n: B → B.

    With k nearer to n the few-shot row would depend on the queries, which are part of their class mean.
    """
    highest = level(counts // 2, levels)
    return 2 ** (torch.rand(len(counts), device=counts.device) * (highest + 1)).long()


def as_of(shots: Tensor, means: Tensor, images: Tensor, class_means: Tensor) -> Tensor:
    """Means of `images` images, rescaled to the variance of means of `shots`: B, B×D, B, B×D → B×D.

    c + √(images / shots) (m − c), c the class mean: a batch need not hold `shots` images of a class.
    """
    return class_means + (images / shots).sqrt()[:, None] * (means - class_means)
