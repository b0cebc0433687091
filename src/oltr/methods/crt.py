"""Classifier re-training: a new classifier on the plain model's representation."""

from __future__ import annotations

from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.heads import LinearHead
from oltr.nn.network import Network


@METHODS.register("crt")
class Crt(Method):
    """The plain model; then a new classifier on class-balanced batches, the backbone frozen."""

    needs_stage2 = True
    info = MethodInfo(
        title="Classifier re-training (cRT)",
        summary="The plain model, then a new classifier on class-balanced batches and a frozen backbone",
        paper="Kang et al., Decoupling Representation and Classifier for Long-Tailed Recognition, ICLR 2020",
        year=2020,
        changes="the second stage is as long as the others', not a few epochs after a full training",
    )

    def build_stage2(self, first: Network) -> Network:
        head = LinearHead(first.direct_feature.dims, self.num_classes)
        return Network(first.backbone, first.direct_feature, head)
