"""The largest logit."""

from __future__ import annotations

from torch import Tensor

from oltr.openset.scores import Score, ScoreInfo, register


@register
class MaxLogit(Score):
    """max_k logits_k; unlike the softmax it does not fall when several classes look alike."""

    name = "max-logit"
    info = ScoreInfo(
        title="Maximum logit",
        summary="The largest logit, before any softmax",
        paper="Hendrycks et al., Scaling Out-of-Distribution Detection for Real-World Settings, ICML 2022",
        year=2022,
    )
    higher_is_known = True

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        return logits.amax(dim=1).double()
