"""The distance to the nearest class mean, measured by how features scatter within classes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from oltr.nn.memory import squared_distances
from oltr.openset.moments import ROUNDING, class_means, scatter
from oltr.openset.parts import by_parts
from oltr.openset.scores import FittedScore, ScoreInfo, register


class Whitened(NamedTuple):
    """Class means after whitening by the covariance within classes."""

    whitening: Tensor  # D×D, x ↦ x · whitening has a within-class covariance of the identity
    means: Tensor  # of the classes that have training images, whitened


@register
class Mahalanobis(FittedScore[Whitened]):
    """min_k (v − μ_k)ᵀ Σ⁻¹ (v − μ_k), v = v_direct, μ_k the class means, Σ the covariance within classes.

    Σ is shared by all classes and shrunk towards a multiple of the identity, so that it has an inverse with
    fewer images than dimensions.
    """

    name = "mahalanobis"
    info = ScoreInfo(
        title="Mahalanobis distance",
        summary="The Mahalanobis distance to the nearest class mean, with the within-class covariance",
        paper="Lee et al., A Simple Unified Framework for Detecting Out-of-Distribution Samples and "
        "Adversarial Attacks, NeurIPS 2018",
        year=2018,
        changes="last-layer features only, no input perturbation; Ledoit-Wolf shrinkage (2004) of the "
        "covariance, so that few images suffice",
    )
    higher_is_known = False

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> Whitened:
        return learn_whitened(features, labels, logits.shape[1])

    def compare(self, features: Tensor, logits: Tensor, learned: Whitened) -> Tensor:
        return by_parts(lambda x: least_distance(x, learned), features)


def learn_whitened(x: Tensor, labels: Tensor, num_classes: int) -> Whitened:
    """Class means and the whitening by the shrunk covariance within classes: N×D, N → Whitened."""
    means, counts = class_means(x, labels, num_classes)
    means, numbers = means[counts > 0], (counts > 0).cumsum(0) - 1
    covariance, fourths = scatter(x, means, numbers[labels])
    if covariance.trace() <= ROUNDING**2 * means.square().sum(dim=1).mean():
        # One image per class, say: nothing is known of the scatter, so that every direction is alike.
        return Whitened(torch.eye(means.shape[1], dtype=torch.float64), means)
    factor = torch.linalg.cholesky(shrunk(covariance, fourths, len(labels)))
    whitening = torch.linalg.inv(factor).T
    return Whitened(whitening, means @ whitening)


def least_distance(x: Tensor, learned: Whitened) -> Tensor:
    """The squared distance to the nearest mean after whitening: B×D float64 → B."""
    whitening, means = learned
    # From the middle of the means, where squares are small and so is the error of their difference.
    middle = means.mean(dim=0)
    return squared_distances(x @ whitening - middle, means - middle).amin(dim=1)


def shrunk(covariance: Tensor, fourths: Tensor, images: int) -> Tensor:
    """(1 − s) Σ + s μ I with μ = tr Σ / D and Ledoit and Wolf's s, from the mean ‖r‖⁴ of N images: D×D → D×D.

    s = min(1, b / d), b = (mean ‖r‖⁴ − ‖Σ‖²) / N, d = ‖Σ‖² − D μ².
    """
    dims, squares, level = len(covariance), covariance.square().sum(), covariance.diagonal().mean()
    noise, spread = (fourths - squares) / images, squares - dims * level.square()
    share = 1.0 if noise >= spread else float(noise / spread)
    share = max(share, 1e-6)  # a direction without any scatter needs some
    return (1 - share) * covariance + share * level * torch.eye(dims, dtype=covariance.dtype)
