"""The cosine to the nearest class mean, after whitening by the covariance within classes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.openset.mahalanobis import learn_whitened
from oltr.openset.parts import by_parts
from oltr.openset.scores import FittedScore, ScoreInfo, register


class Directions(NamedTuple):
    """Where the class means lie, seen from the mean of all, after whitening."""

    whitening: Tensor  # D×D
    centre: Tensor  # D, the mean training feature, whitened
    means: Tensor  # of the classes that have training images, whitened, from there


@register
class WhitenedCosine(FittedScore[Directions]):
    """max_k cos(W(v − m), W(μ_k − m)), v = v_direct, m the mean training feature, μ_k the class means.

    WᵀW = Σ⁻¹, Σ the shrunk covariance within classes, as `mahalanobis` has it. What varies within classes
    counts less, what tells them apart more; unlike a distance it does not grow with all that is unusual.
    """

    name = "whitened-cosine"
    info = ScoreInfo(
        title="Whitened cosine to the nearest class mean",
        summary="The cosine similarity to the nearest class mean, of features centred and whitened by the "
        "within-class covariance",
        paper="Dehak et al., Front-End Factor Analysis for Speaker Verification, IEEE Transactions on Audio, "
        "Speech, and Language Processing 2011",
        year=2011,
        changes="features are centred on the mean feature; class means instead of single recordings; "
        "Ledoit-Wolf shrinkage (2004) of the covariance, so that few images suffice",
    )
    higher_is_known = True
    limits = (-1.0, 1.0)

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> Directions:
        return learn_directions(features, labels, logits.shape[1])

    def compare(self, features: Tensor, logits: Tensor, learned: Directions) -> Tensor:
        return by_parts(lambda x: cosines(x, learned).amax(dim=1), features)


def learn_directions(features: Tensor, labels: Tensor, num_classes: int) -> Directions:
    """The directions of the class means: N×D, N → Directions, in float64."""
    whitening, means = learn_whitened(features, labels, num_classes)
    centre = features.mean(dim=0, dtype=torch.float64) @ whitening
    return Directions(whitening, centre, means - centre)


def cosines(x: Tensor, learned: Directions) -> Tensor:
    """The cosine with the mean of each class that has training images: B×D float64 → B×k."""
    return direction(x, learned) @ F.normalize(learned.means, dim=1).T


def direction(x: Tensor, learned: Directions) -> Tensor:
    """Where features lie, seen from the mean of all: B×D float64 → B×D, of unit length."""
    return F.normalize(x @ learned.whitening - learned.centre, dim=1)
