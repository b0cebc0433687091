"""A virtual logit from the part of a feature that training features do not fill."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from oltr.openset.energy import log_sum_exp
from oltr.openset.moments import ROUNDING, scatter
from oltr.openset.parts import by_parts
from oltr.openset.scores import FittedScore, ScoreInfo, register


class _Space(NamedTuple):
    origin: Tensor  # D
    principal: Tensor  # D×P, orthonormal columns
    alpha: float


@register
class VirtualLogit(FittedScore[_Space]):
    """α ‖residual of v_direct‖ − log Σ_k exp(logits_k); high is unknown.

    The residual is what is left of v_direct − origin outside the principal space: the first half of the
    directions in which training features scatter. α makes it as large as a logit:
    α = Σ max_k logits_k / Σ ‖residual‖ over the training images.
    """

    name = "vim"
    info = ScoreInfo(
        title="Virtual-logit matching (ViM)",
        summary="Scaled norm of the feature outside the subspace of training features, minus the energy",
        paper="Wang et al., ViM: Out-of-Distribution with Virtual-logit Matching, CVPR 2022",
        year=2022,
        changes="the origin is the mean training feature, because outputs have no classifier weights; the "
        "principal subspace has half of the dimensions that training features span",
    )
    higher_is_known = False

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> _Space:
        origin = features.mean(dim=0, dtype=torch.float64)
        same = torch.zeros(len(labels), dtype=torch.int64)
        covariance, _ = scatter(features, origin[None], same)
        variances, directions = torch.linalg.eigh(covariance)  # rising
        rounding = ROUNDING * origin.norm()
        filled = int((variances > torch.maximum(rounding.square(), 1e-9 * variances[-1])).sum())
        principal = directions[:, len(variances) - filled // 2 :]
        residuals = _residual(features, origin, principal).mean()
        largest = logits.amax(dim=1).mean(dtype=torch.float64)
        # Features that are all the same leave nothing to match; and a negative α would welcome strangers.
        alpha = max(float(largest / residuals), 0.0) if residuals > rounding else 1.0
        return _Space(origin, principal, alpha)

    def compare(self, features: Tensor, logits: Tensor, learned: _Space) -> Tensor:
        origin, principal, alpha = learned
        return alpha * _residual(features, origin, principal) - log_sum_exp(logits)


def _residual(features: Tensor, origin: Tensor, principal: Tensor) -> Tensor:
    """‖x − P Pᵀ x‖ for x = feature − origin: N×D, D, D×P → N."""

    def length(part: Tensor) -> Tensor:
        x = part - origin
        return (x - x @ principal @ principal.T).norm(dim=1)

    return by_parts(length, features)
