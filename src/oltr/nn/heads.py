"""Heads: from the direct feature to the logits."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.errors import UserError
from oltr.nn.blocked_softmax import blocked_cross_entropy
from oltr.nn.blocks import in_one_piece
from oltr.nn.classifier import CosineClassifier
from oltr.nn.meta_embedding import MetaEmbedding


class Output(NamedTuple):
    """A network's output for a batch; None where it has no such part."""

    logits_or_none: Tensor | None  # B×K; None only in training, of a head that works in blocks of classes
    direct_feature: Tensor  # B×D
    meta_embedding: Tensor | None = None  # B×D
    reachability: Tensor | None = None  # B
    memory_feature: Tensor | None = None  # B×D
    concept_selector: Tensor | None = None  # B×D

    def rows(self, rows: slice) -> Output:
        """The output for some images of the batch."""
        return Output(*(None if part is None else part[rows] for part in self))  # type: ignore[arg-type]

    @property
    def logits(self) -> Tensor:
        """B×K; a UserError where the head computed none."""
        if self.logits_or_none is None:
            raise UserError(
                "This method's loss needs all logits of a batch at once.",
                f"There are too many classes for that with {len(self.direct_feature)} images in a batch.",
                "a smaller batch, e.g. --set stage1.batch_size=32",
            )
        return self.logits_or_none


class Head(nn.Module):
    """From the direct feature to the logits: B×D → Output."""

    def cross_entropy(self, output: Output, labels: Tensor, reduction: str = "mean") -> Tensor:
        """−log softmax(logits)[label] in float32: its mean over the batch, or ("none") that of each image."""
        return F.cross_entropy(output.logits.float(), labels, reduction=reduction)

    def without_class_means(self, direct: Tensor) -> Tensor:
        """The logits less what class means add, where the head was fitted beside them: B×D → B×K."""
        return self(direct).logits


class LinearHead(Head):
    """logits = W v_direct + b, the plain model's head; always in float32, as rounded logits would tie.

    In training it computes no logits beyond `blocks.LARGEST` of them, only their cross-entropy.
    """

    def __init__(self, dims: int, num_classes: int):
        super().__init__()
        self.classifier = nn.Linear(dims, num_classes)

    def forward(self, direct: Tensor) -> Output:
        if self.training and not in_one_piece(len(direct), self.classifier.out_features):
            return Output(None, direct)
        with torch.autocast(direct.device.type, enabled=False):
            return Output(self.classifier(direct.to(self.classifier.weight.dtype)), direct)

    def cross_entropy(self, output: Output, labels: Tensor, reduction: str = "mean") -> Tensor:
        if output.logits_or_none is not None:
            return super().cross_entropy(output, labels, reduction)
        weight, bias = self.classifier.weight, self.classifier.bias
        return blocked_cross_entropy(output.direct_feature, weight, labels, bias, reduction)


class MetaEmbeddingHead(Head):
    """logits = cosine classifier of the meta-embedding; always in float32, which 1/γ needs.

    In training it computes no logits beyond `blocks.LARGEST` of them, only their cross-entropy.
    """

    def __init__(self, meta: MetaEmbedding, classifier: CosineClassifier):
        super().__init__()
        self.meta, self.classifier = meta, classifier

    def forward(self, direct: Tensor) -> Output:
        with torch.autocast(direct.device.type, enabled=False):
            direct = direct.float() if direct.dtype in (torch.bfloat16, torch.float16) else direct
            parts = self.meta(direct)
            whole = not self.training or in_one_piece(len(direct), len(self.classifier.weight))
            logits = self.classifier(parts.meta_embedding) if whole else None
        return Output(
            logits,
            direct,
            parts.meta_embedding,
            parts.reachability,
            parts.memory_feature,
            parts.concept_selector,
        )

    def cross_entropy(self, output: Output, labels: Tensor, reduction: str = "mean") -> Tensor:
        if output.logits_or_none is not None or output.meta_embedding is None:
            return super().cross_entropy(output, labels, reduction)
        return self.classifier.cross_entropy(output.meta_embedding, labels, reduction)
