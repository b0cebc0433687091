"""GEN: a generalised entropy of the probabilities, in which small ones count nearly as much."""

from __future__ import annotations

from torch import Tensor

from oltr.openset.parts import by_parts
from oltr.openset.scores import Score, ScoreInfo, register

GAMMA, MOST = 0.1, 100  # γ and M


@register
class GeneralizedEntropy(Score):
    """Σ_j p_j^γ (1 − p_j)^γ over the M likeliest classes, γ = 0.1 and M = 100 (or all); high is unknown."""

    name = "gen"
    info = ScoreInfo(
        title="Generalised entropy (GEN)",
        summary="The generalised entropy Σ p^0.1 (1 − p)^0.1 of the 100 largest probabilities",
        paper="Liu et al., GEN: Pushing the Limits of Softmax-Based Out-of-Distribution Detection, CVPR 2023",
        year=2023,
        changes="positive, so that high is unknown",
    )
    higher_is_known = False
    limits = (0, MOST)

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        most = min(MOST, logits.shape[1])

        def entropy(part: Tensor) -> Tensor:
            p = part.softmax(dim=1).topk(most, dim=1).values
            return (p * (1 - p)).pow(GAMMA).sum(dim=1)

        return by_parts(entropy, logits)
