"""How much farther an image is from every class than from the training images as a whole."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from oltr.openset.mahalanobis import Whitened, learn_whitened, least_distance
from oltr.openset.parts import by_parts
from oltr.openset.scores import FittedScore, ScoreInfo, register


class _Both(NamedTuple):
    classes: Whitened
    whole: Whitened  # of one class that holds all images


@register
class RelativeMahalanobis(FittedScore[_Both]):
    """min_k d_k(v) − d_0(v), d_k the Mahalanobis distance to class k, d_0 that to the mean of all images.

    d_0 is by the covariance of all images around that mean. In directions in which classes do not differ the
    two are alike, and what is unusual there does not count.
    """

    name = "relative-mahalanobis"
    info = ScoreInfo(
        title="Relative Mahalanobis distance",
        summary="The Mahalanobis distance to the nearest class, minus that to all training images together",
        paper="Ren et al., A Simple Fix to Mahalanobis Distance for Improving Near-OOD Detection, ICML "
        "workshop 2021",
        year=2021,
        changes="Ledoit-Wolf shrinkage (2004) of both covariances, so that few images suffice",
    )
    higher_is_known = False

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> _Both:
        classes = learn_whitened(features, labels, logits.shape[1])
        return _Both(classes, learn_whitened(features, torch.zeros_like(labels), 1))

    def compare(self, features: Tensor, logits: Tensor, learned: _Both) -> Tensor:
        classes, whole = learned
        return by_parts(lambda x: least_distance(x, classes) - least_distance(x, whole), features)
