"""A space in which images of classes never seen fall into groups, learned from the known classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_matrix

SHRINKAGE = 0.7  # towards equal variance in every direction; best on known classes that played unknown


@dataclass(frozen=True, eq=False)
class Metric:
    """Centred unit features whitened by how known classes vary within, made of unit length again.

    With S the mean over classes of the covariance within a class, S' = (1 − s) S + s tr(S)/D · 1 = L Lᵀ, and
    u = unit(v − μ): z = unit(L⁻¹ u). Directions in which the images of one class differ count less.
    """

    centre: np.ndarray  # D
    factor: np.ndarray  # D×D, L

    @classmethod
    def fit(cls, features: np.ndarray, labels: np.ndarray, shrinkage: float = SHRINKAGE) -> Self:
        """From features N×D of known classes and their labels N; every class counts the same."""
        centre = features.mean(axis=0, dtype=np.float64)
        units = unit(features - centre)
        names, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        within = units - class_means(units, numbers, len(names))[numbers]
        within /= np.sqrt(np.maximum(sizes - 1, 1))[numbers, None]
        spread = within.T @ within / max((sizes > 1).sum(), 1)
        level = np.trace(spread) / len(spread) or 1.0  # 1: no class has two images, nothing can be learned
        spread = (1 - shrinkage) * spread + shrinkage * level * np.eye(len(spread))
        return cls(centre, cholesky(spread, lower=True))

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """z, N×D → N×D float64 of length 1."""
        return unit(solve_triangular(self.factor, unit(features - self.centre).T, lower=True).T)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Each row divided by its length; rows of zeros stay."""
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def class_means(features: np.ndarray, numbers: np.ndarray, classes: int) -> np.ndarray:
    """Means of the rows of each class number 0..K-1: N×D → K×D; zeros where a class has none."""
    images = np.arange(len(numbers))
    members = csr_matrix((np.ones(len(numbers), features.dtype), (numbers, images)), (classes, len(numbers)))
    return members @ features / np.maximum(np.bincount(numbers, minlength=classes), 1)[:, None]
