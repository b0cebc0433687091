"""The paper's method, as released and as printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from oltr.losses.centroids import DiscriminativeCentroidsLoss
from oltr.losses.large_margin import LargeMarginLoss
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.attention import AttentionForm, AttentionKind, AttentionStart
from oltr.nn.classifier import CosineClassifier, SquashForm
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import LinearHead, MetaEmbeddingHead, Output
from oltr.nn.memory import Memory
from oltr.nn.meta_embedding import CoefficientForm, MetaEmbedding
from oltr.nn.network import Network, build_attention

PAPER = "Liu et al., Large-Scale Long-Tailed Recognition in an Open World, CVPR 2019"


@dataclass(frozen=True)
class OltrSettings:
    """Both forms of every box, and a switch for each; the defaults are the released form."""

    attention: AttentionKind = "modulated"
    attention_form: AttentionForm = "pointwise"
    attention_start: AttentionStart = "zero"
    fc: int | None = None  # width of the direct feature's extra layer; None: no layer
    fc_from: Literal[1, 2] = 2  # the first stage that has it: on Places-LT stage 1
    memory: bool = True
    selector: bool = True
    reachability: bool = True
    coefficients: CoefficientForm = "softmax"
    reachability_scale: float = 10.0
    constant_centroids: bool = True  # no gradient from the classifier to the centroids
    hallucinator_start: Literal["classifier", "random"] = "classifier"
    centroid_start: Literal["class-means", "mini-batches"] = "class-means"
    centroid_rate: float = 0.1  # mini-batches: how far a centroid moves to its group's mean each step
    squash: SquashForm = "released"
    logit_scale: float = 16.0
    centroid_loss: Literal["released", "paper"] = "released"
    centroid_weight: float = 0.01  # λ
    repel: float = 0.01
    margin: float = 10.0


@dataclass(frozen=True)
class OltrPaperSettings(OltrSettings):
    """The equations as printed, the logit scale excepted."""

    coefficients: CoefficientForm = "raw"
    reachability_scale: float = 1.0
    constant_centroids: bool = False
    hallucinator_start: Literal["classifier", "random"] = "random"
    centroid_start: Literal["class-means", "mini-batches"] = "mini-batches"
    squash: SquashForm = "paper"
    centroid_loss: Literal["released", "paper"] = "paper"
    centroid_weight: float = 0.1
    repel: float = 0.0
    margin: float = 5.0


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
        changes="as in the released code; attention is initialised to zero as intended, except where a "
        "recipe says `released`; centroid distances have a lower bound",
    )

    def __init__(self, settings: Mapping[str, Any], train_counts: Tensor, image_size: int):
        super().__init__(settings, train_counts, image_size)
        s = self.settings
        self.released_loss = DiscriminativeCentroidsLoss(s.centroid_weight, s.repel, s.margin)
        self.paper_loss = LargeMarginLoss(s.margin)

    @property
    def first_stage(self) -> str:  # type: ignore[override]
        return f"plain, fc {self.first_fc}" if self.first_fc else "plain"

    @property
    def first_fc(self) -> int | None:
        return self.settings.fc if self.settings.fc_from == 1 else None

    def build_stage2(self, first: Network) -> Network:
        s, backbone = self.settings, first.backbone
        attention = build_attention(backbone, s.attention, s.attention_form, s.attention_start)
        direct_feature = first.direct_feature if self.first_fc else DirectFeature(backbone.channels, s.fc)
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
            terms["centroids"] = self.released_loss(output.direct_feature, labels, memory.centroids)
        elif output.meta_embedding is not None:
            margins = self.paper_loss(output.meta_embedding, labels, memory.centroids)
            terms["centroids"] = s.centroid_weight * margins
        return terms

    def after_step(self, stage: int, network: Network, output: Output, labels: Tensor) -> None:
        memory = _memory(network)
        if memory is not None and self.settings.centroid_start == "mini-batches":
            memory.update_centroids(output.direct_feature, labels, self.settings.centroid_rate)


@METHODS.register("oltr-paper")
class OltrPaper(Oltr):
    """The same boxes with the paper's equations."""

    Settings = OltrPaperSettings
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
