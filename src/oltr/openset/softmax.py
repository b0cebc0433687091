"""The largest softmax probability."""

from __future__ import annotations

from torch import Tensor

from oltr.openset.parts import by_parts
from oltr.openset.scores import Score, ScoreInfo, register


@register
class Softmax(Score):
    """max_k softmax(logits)_k; the paper calls an image unknown when it is below 0.1."""

    name = "softmax"
    info = ScoreInfo(
        title="Maximum softmax probability (MSP)",
        summary="The maximum softmax probability (MSP), that of the likeliest class",
        paper="Hendrycks and Gimpel, A Baseline for Detecting Misclassified and Out-of-Distribution "
        "Examples in Neural Networks, ICLR 2017",
        year=2017,
        changes="the threshold 0.1 is that of Liu et al., CVPR 2019",
    )
    higher_is_known = True
    default_threshold = 0.1
    limits = (0, 1)

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        # In float32 a sure network gives exactly 1 to many images, and their order is lost.
        return by_parts(lambda part: part.softmax(dim=1).amax(dim=1), logits)

    def __call__(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        return 1 - self.value(features, logits)
