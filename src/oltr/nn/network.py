"""The whole network: backbone, attention, direct feature and head, in the order of the paper's figure."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from oltr.nn.attention import Attention, AttentionForm, AttentionKind
from oltr.nn.backbone import Backbone
from oltr.nn.classifier import CosineClassifier
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.layout import from_map, to_map
from oltr.nn.meta_embedding import MetaEmbedding


class Output(NamedTuple):
    """What a network says of a batch; None where it has no such part."""

    logits: Tensor  # B×K
    direct_feature: Tensor  # B×D
    meta_embedding: Tensor | None = None  # B×D
    reachability: Tensor | None = None  # B
    memory_feature: Tensor | None = None  # B×D
    concept_selector: Tensor | None = None  # B×D


class LinearHead(nn.Module):
    """logits = W v_direct + b: the plain model's head."""

    def __init__(self, dims: int, num_classes: int):
        super().__init__()
        self.classifier = nn.Linear(dims, num_classes)

    def forward(self, direct: Tensor) -> Output:
        return Output(self.classifier(direct), direct)


class MetaEmbeddingHead(nn.Module):
    """logits = cosine classifier of the meta-embedding; always in float32, where 1/γ needs it."""

    def __init__(self, meta: MetaEmbedding, classifier: CosineClassifier):
        super().__init__()
        self.meta, self.classifier = meta, classifier

    def forward(self, direct: Tensor) -> Output:
        with torch.autocast(direct.device.type, enabled=False):
            direct = direct.float() if direct.dtype in (torch.bfloat16, torch.float16) else direct
            parts = self.meta(direct)
            logits = self.classifier(parts.meta_embedding)
        return Output(
            logits,
            direct,
            parts.meta_embedding,
            parts.reachability,
            parts.memory_feature,
            parts.concept_selector,
        )


class Network(nn.Module):
    """images → f → f_att → v_direct → head."""

    def __init__(
        self,
        backbone: Backbone,
        direct_feature: DirectFeature,
        head: nn.Module,
        attention: Attention | None = None,
        attention_stage: int = -1,
    ):
        super().__init__()
        self.backbone, self.attention = backbone, attention
        self.direct_feature, self.head = direct_feature, head
        self.attention_last = attention_stage == -1
        if attention is not None and not self.attention_last:
            # An earlier stage is inside the backbone: its output is replaced on the way through. (By a
            # method, not a lambda: copies of the network then attend with their own weights.)
            stage = backbone.net.get_submodule(backbone.stages[attention_stage])
            stage.register_forward_hook(self._attend)
            self.attended_channels = backbone.net.feature_info[attention_stage]["num_chs"]

    def forward(self, images: Tensor) -> Output:
        f = self.backbone(images)
        if self.attention is not None and self.attention_last:
            f = self.attention(f)
        return self.head(self.direct_feature(f))

    def _attend(self, stage: nn.Module, inputs: tuple[Tensor, ...], f: Tensor) -> Tensor:
        assert self.attention is not None
        return from_map(self.attention(to_map(f, self.attended_channels, self.backbone.prefix_tokens)), f)

    def roles(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Each parameter with its role: backbone, attention, direct_feature, classifier or memory."""
        for name, parameter in self.named_parameters():
            room = name.split(".")[0]
            if name.endswith("memory.centroids"):
                room = "memory"
            yield ("classifier" if room == "head" else room), parameter

    def idle_parameters(self, image_size: int) -> list[nn.Parameter]:
        """Parameters that no logit depends on, such as a norm in the backbone's own unused head."""
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        training = self.training
        self.eval()
        logits = self(torch.zeros(1, 3, image_size, image_size, device=learning[0].device)).logits
        gradients = torch.autograd.grad(logits.sum(), learning, allow_unused=True)
        self.train(training)
        centroids = [p for role, p in self.roles() if role == "memory"]  # their gradient is the loss's
        return [
            parameter
            for parameter, gradient in zip(learning, gradients, strict=True)
            if gradient is None and not any(parameter is c for c in centroids)
        ]


def build_attention(
    backbone: Backbone, kind: AttentionKind, form: AttentionForm, stage: int, image_size: int
) -> Attention | None:
    """Attention sized for the map after `stage` (−1: the last), or None where there is no map."""
    if kind == "none":
        return None
    channels, map_size = backbone.channels, backbone.map_size
    if stage != -1:
        channels, map_size = backbone.shape_after(stage, image_size)
    if map_size[0] * map_size[1] < 2:
        warnings.warn("The backbone gives no feature map at this image size: attention is off.")
        return None
    return Attention(channels, map_size, kind, form)
