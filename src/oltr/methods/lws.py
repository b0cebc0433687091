"""Learnable weight scaling: one learned scale per class of the plain classifier."""

from __future__ import annotations

from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.heads import LinearHead
from oltr.nn.network import Network
from oltr.nn.scaled_head import ScaledHead


@METHODS.register("lws")
class Lws(Method):
    """The plain model; then only a scale for each class is trained, on class-balanced batches."""

    needs_stage2 = True
    info = MethodInfo(
        title="Learnable weight scaling (LWS)",
        summary="The plain model, then one learned scale per class on class-balanced batches",
        paper="Kang et al., Decoupling Representation and Classifier for Long-Tailed Recognition, ICLR 2020",
        year=2020,
        changes="the second stage is as long as the others', not a few epochs after a full training",
    )

    def build_stage2(self, first: Network) -> Network:
        assert isinstance(first.head, LinearHead)
        return Network(first.backbone, first.direct_feature, ScaledHead(first.head.classifier))
