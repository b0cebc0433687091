"""The free energy of the logits."""

from __future__ import annotations

from torch import Tensor

from oltr.openset.parts import by_parts
from oltr.openset.scores import Score, ScoreInfo, register


def log_sum_exp(logits: Tensor) -> Tensor:
    """log Σ_k exp(logits_k), the negative energy at T = 1: N float64."""
    return by_parts(lambda part: part.logsumexp(dim=1), logits)


@register
class Energy(Score):
    """−E = T log Σ_k exp(logits_k / T) at T = 1; high is familiar."""

    name = "energy"
    info = ScoreInfo(
        title="Energy",
        summary="The log-sum-exp of the logits, log Σ exp(logits)",
        paper="Liu et al., Energy-based Out-of-distribution Detection, NeurIPS 2020",
        year=2020,
        changes="the negative energy, so that high is known; no fine-tuning with outliers",
    )
    higher_is_known = True

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        return log_sum_exp(logits)
