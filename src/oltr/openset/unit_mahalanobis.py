"""Mahalanobis distance between directions: features of unit length, seen from their common mean."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.openset.mahalanobis import Whitened, learn_whitened, least_distance
from oltr.openset.moments import ROUNDING
from oltr.openset.parts import by_parts
from oltr.openset.scores import FittedScore, ScoreInfo, register


class _Sphere(NamedTuple):
    centre: Tensor  # D, the mean of the training images' directions
    whitened: Whitened


@register
class UnitMahalanobis(FittedScore[_Sphere]):
    """min_k (z − μ_k)ᵀ Σ⁻¹ (z − μ_k) of z = u − m over its length, u = v_direct / ‖v_direct‖, m the mean u.

    Features behind a ReLU all point one way; from m they lie around a whole sphere. Without the second
    division m would not matter, as Σ and the distances do not change when everything moves.
    """

    name = "unit-mahalanobis"
    info = ScoreInfo(
        title="Mahalanobis distance of normalised features",
        summary="The Mahalanobis distance of features that are normalised, centred and normalised again",
        paper="Müller and Hein, Mahalanobis++: Improving OOD Detection via Feature Normalization, ICML 2025",
        year=2025,
        changes="normalised features are centred on their training mean and normalised again; Ledoit-Wolf "
        "shrinkage (2004) of the covariance, so that few images suffice",
    )
    higher_is_known = False

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> _Sphere:
        # float16 has no number as small as the least length: zeros would become NaN.
        centre = F.normalize(features.float(), dim=1).mean(dim=0, dtype=torch.float64)
        directions = by_parts(lambda x: _from(centre, x).float(), features)  # half the memory
        return _Sphere(centre, learn_whitened(directions, labels, logits.shape[1]))

    def compare(self, features: Tensor, logits: Tensor, learned: _Sphere) -> Tensor:
        centre, whitened = learned
        return by_parts(lambda x: least_distance(_from(centre, x), whitened), features)


def _from(centre: Tensor, x: Tensor) -> Tensor:
    """The direction of x as seen from the centre: B×D, D → B×D; zero where they are the same."""
    return F.normalize(F.normalize(x, dim=1) - centre, dim=1, eps=ROUNDING)
