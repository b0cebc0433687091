"""Cross-entropy in which rare classes weigh more."""

from __future__ import annotations

from torch import Tensor

from oltr.losses.class_weights import inverse_frequency, weighted_cross_entropy
from oltr.methods.base import METHODS, Method, MethodInfo
from oltr.nn.class_counts import counts_of, keep_counts
from oltr.nn.network import Network, Output


@METHODS.register("cost-sensitive")
class CostSensitive(Method):
    """The plain model; in its second stage images weigh 1 / (training images of their class)."""

    needs_stage2 = True
    info = MethodInfo(
        title="Cost-sensitive",
        summary="The plain model, then cross-entropy weighted by the inverse of each class's frequency",
        paper="Huang et al., Learning Deep Representation for Imbalanced Classification, CVPR 2016",
        year=2016,
        changes="the baseline of that paper's comparison, on a softmax; only in the second stage: from "
        "scratch a few images of the rarest classes outweigh all others, and short trainings learn nothing",
    )

    def build_stage2(self, first: Network) -> Network:
        return keep_counts(first, self.train_counts)

    def loss(self, stage: int, network: Network, output: Output, labels: Tensor) -> dict[str, Tensor]:
        if stage == 1:
            return super().loss(stage, network, output, labels)
        weights = inverse_frequency(counts_of(network))
        return {"cross_entropy": weighted_cross_entropy(output.logits.float(), labels, weights)}
