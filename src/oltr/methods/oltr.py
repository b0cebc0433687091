"""The paper's method, as released and as printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from oltr.losses.centroids import discriminative_centroids_loss
from oltr.losses.large_margin import large_margin_loss
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.attention import AttentionForm, AttentionKind
from oltr.nn.backbone import Backbone
from oltr.nn.classifier import CosineClassifier, SquashForm
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import LinearHead, MetaEmbeddingHead, Output
from oltr.nn.memory import Memory
from oltr.nn.meta_embedding import CoefficientForm, MetaEmbedding
from oltr.nn.network import Network, build_attention

PAPER = "Liu et al., Large-Scale Long-Tailed Recognition in an Open World, CVPR 2019"


@dataclass(frozen=True)
class OltrSettings:
    """Both forms of every box, and a switch for each; the numbers are in recipes/methods/."""

    attention: AttentionKind
    attention_form: AttentionForm
    fc: int | None  # width of the extra layer of the direct feature, none without
    fc_from: Literal[1, 2]  # the stage that brings it in: Places-LT has it from the start
    memory: bool
    selector: bool
    reachability: bool
    coefficients: CoefficientForm
    reachability_scale: float
    constant_centroids: bool  # no gradient from the classifier to the centroids
    hallucinator_start: Literal["classifier", "random"]
    centroid_start: Literal["class-means", "mini-batches"]
    centroid_rate: float  # mini-batches: how far a centroid moves to its group's mean each step
    squash: SquashForm
    logit_scale: float
    centroid_loss: Literal["released", "paper"]
    centroid_weight: float  # λ
    repel: float
    margin: float


@METHODS.register("oltr")
class Oltr(Method):
    """Stage 1 the plain model; stage 2 adds attention, memory, meta-embedding and a cosine classifier."""

    Settings = OltrSettings
    needs_stage2 = True
    info = MethodInfo(
        title="OLTR",
        summary="Dynamic meta-embedding with a visual memory, and modulated attention",
        paper=PAPER,
        year=2019,
        changes="the released form; attention starts at zero as was meant, centroid distances have a floor",
    )

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return f"plain, fc {self.settings.fc}" if self._fc_at_once else "plain"

    @property
    def _fc_at_once(self) -> bool:
        return self.settings.fc is not None and self.settings.fc_from == 1

    def build_stage1(self, backbone: Backbone) -> Network:
        if not self._fc_at_once:
            return super().build_stage1(backbone)
        direct_feature = DirectFeature(backbone.channels, self.settings.fc)
        return Network(backbone, direct_feature, LinearHead(direct_feature.dims, self.num_classes))

    def build_stage2(self, first: Network) -> Network:
        s, backbone = self.settings, first.backbone
        attention = build_attention(backbone, s.attention, s.attention_form)
        direct_feature = first.direct_feature if self._fc_at_once else DirectFeature(backbone.channels, s.fc)
        dims = direct_feature.dims
        meta = MetaEmbedding(
            self.num_classes,
            dims,
            memory=s.memory,
            selector=s.selector,
            reachability=s.reachability,
            coefficients=s.coefficients,
            reachability_scale=s.reachability_scale,
            constant_centroids=s.constant_centroids,
        )
        if s.hallucinator_start == "classifier":
            _start_hallucinator(meta.hallucinator, first.head)
        head = MetaEmbeddingHead(meta, CosineClassifier(dims, self.num_classes, s.logit_scale, s.squash))
        return Network(backbone, direct_feature, head, attention)

    def on_stage_start(self, stage: int, network: Network, class_means: Callable[[], Tensor]) -> None:
        memory = _memory(network)
        if memory is not None and self.settings.centroid_start == "class-means":
            memory.start_from(class_means())

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        terms = super().loss(stage, network, output, labels)
        memory, s = _memory(network), self.settings
        if memory is None:
            return terms
        if s.centroid_loss == "released":
            terms["centroids"] = discriminative_centroids_loss(
                output.direct_feature,
                labels,
                memory.centroids,
                weight=s.centroid_weight,
                repel=s.repel,
                margin=s.margin,
            )
        elif output.meta_embedding is not None:
            terms["centroids"] = s.centroid_weight * large_margin_loss(
                output.meta_embedding, labels, memory.centroids, margin=s.margin
            )
        return terms

    def after_step(self, stage: int, network: Network, output: Output, labels: Tensor) -> None:
        memory = _memory(network)
        if memory is not None and self.settings.centroid_start == "mini-batches":
            memory.update_centroids(output.direct_feature, labels, self.settings.centroid_rate)


@METHODS.register("oltr-paper")
class OltrPaper(Oltr):
    """The same boxes with the paper's equations."""

    info = MethodInfo(
        title="OLTR (as printed)",
        summary="The paper's equations: raw coefficients, 1/γ, capsule squash, large margin on v_meta",
        paper=PAPER,
        year=2019,
        changes="keeps a logit scale of 16: without one the largest softmax at 100 classes is 0.069",
    )


def _memory(network: Network) -> Memory | None:
    """The network's memory; None in stage 1 and where it is switched off."""
    return network.head.meta.memory if isinstance(network.head, MetaEmbeddingHead) else None


@torch.no_grad()
def _start_hallucinator(hallucinator: nn.Linear | None, head: nn.Module) -> None:
    """T_hal starts as the stage-1 classifier: both map a feature to one number per class."""
    if hallucinator is None or not isinstance(head, LinearHead):
        return
    if hallucinator.weight.shape == head.classifier.weight.shape:
        hallucinator.load_state_dict(head.classifier.state_dict())
